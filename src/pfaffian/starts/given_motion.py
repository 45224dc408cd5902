"""Given motions of coordinates and bodies over time, as a caller writes them, as values and rates of the coordinates they fix.

The pose of a body is given by a body of its own, at a joint to the world that is fixed along the motion, and a closure between
the two. So every given motion is one of coordinates.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from pfaffian.control.reference import Reference, Setpoint
from pfaffian.errors import ModelError, brief, listed, nearest
from pfaffian.evaluate.arrays import by_label
from pfaffian.evaluate.single_values import common_runs
from pfaffian.maths.spline import spline_slopes
from pfaffian.model.body import body
from pfaffian.model.constraint import closure
from pfaffian.model.joint import Joint, joint
from pfaffian.model.loop_coordinates import coordinates_of_closures
from pfaffian.model.mechanism import Mechanism
from pfaffian.model.number import floats, several
from pfaffian.model.pose import IDENTITY, Pose, as_pose
from pfaffian.starts.closures_as_joints import closures_named, with_joints
from pfaffian.starts.newton import fixed_entries, fixed_velocities
from pfaffian.terms.lengths import default_length

POSES = {3: ("translation", "spherical"), 4: ("spherical", "translation"), 7: ("free", "weld")}
"""Count of numbers that give a body's position, attitude or pose -> kinds of the joint with these coordinates and of the
closure that holds the body there."""

JUMP, SUDDEN = 0.5, 20.0
"""A coordinate jumps where it changes between two samples by more than JUMP [rad, the machine's length] and more than SUDDEN
times as much as before and after."""

NO_LENGTH = 1e-300
"""Squared length of a quaternion that counts as zero."""


class GivenMotion(NamedTuple):
    """Motions of the fixed coordinates, for all samples of a run and then those of the next one: index run * n + sample.

    m: the mechanism, with a body for each given pose.   times: (n,) instants [s], or indices if not `timed`.   runs: their
    number.   many: whether the caller gave a batch.   bodies: (joint, body, tool) of each given pose.
    closures: names of those that joints of `m` replace, since motions of their coordinates are given.
    fixed: (nv,) bool.   entries: (nq,) bool.
    values, slopes: (runs n, k) fixed entries of q, and their derivatives by time.   w, a: (runs n, l) rates of the fixed
    coordinates one by one, and their derivatives.
    """

    m: Mechanism
    times: np.ndarray
    timed: bool
    runs: int
    many: bool
    bodies: tuple[tuple[str, str, Pose], ...]
    closures: tuple[str, ...]
    fixed: np.ndarray
    entries: np.ndarray
    values: np.ndarray
    slopes: np.ndarray
    w: np.ndarray
    a: np.ndarray


class GivenSeries(NamedTuple):
    """One motion: values, rates and accelerations, (n, runs, k) each."""

    value: np.ndarray
    rate: np.ndarray
    acceleration: np.ndarray


def read_motion(m: Mechanism, q: Any, t: Any, p: np.ndarray) -> GivenMotion:
    """The GivenMotion of a caller's dict of series.   q, t: see `assemble`.   p: (runs, np) parameters.

    Raises ModelError: no dict, unknown names, series of unequal length, a coordinate that jumps, times that do not increase.
    """
    if not isinstance(q, Mapping) or not q:
        raise ModelError("along=True: q must be a dict of series, {coordinate or body: values over time}")
    q = {name: by_label(x, f"q[{name!r}]", series=True) for name, x in q.items()}
    closures = closures_named(m, q)
    m, of = _with_targets(with_joints(m, closures) if closures else m, q)
    n, times = _times(q, of, t)
    read = {name: _motion(x, f"q[{name!r}]", len(of[name]), n, times, p) for name, x in q.items()}
    runs = {f"q[{name!r}]": x.value.shape[1] for name, x in read.items()}
    count = common_runs({**runs, "parameters": len(p)} if len(p) > 1 else runs)
    many = count > 1 or any(_batch(x, len(of[name])) for name, x in q.items())
    columns = {entry: [part[:, :, i] for part in read[name]] for name in q for i, entry in enumerate(of[name])}
    at = np.array([name in columns for name in m.q_names])
    fixed = fixed_velocities(m, at)
    if (wrong := fixed_entries(m, fixed[None])[0] & ~at).any():
        raise ModelError(f"along=True: {m.q_names[int(np.argmax(wrong))]!r} moves together with coordinates in q: give it too")
    values, slopes, w, a = _columns(m, columns, fixed, n, count)
    bodies = tuple((f"{_body(name)} as given", *_tool(name)) for name in q if len(of[name]) > 1)
    given = GivenMotion(m, times, _timed(t), count, many, bodies, closures, fixed, at, values, slopes, w, a)
    _check_jumps(given)
    return given


# -- what is given ---------------------------------------------------------------------------------------------------


def _with_targets(m: Mechanism, q: Mapping[Any, Any]) -> tuple[Mechanism, dict[Any, list[str]]]:
    """The mechanism with a body for each given pose, and the coordinates that each of the caller's keys fixes."""
    bodies, joints, closures, of = list(m.bodies), list(m.joints), list(m.constraints), dict[Any, list[str]]()
    for name, x in q.items():
        if isinstance(name, str) and name in m.q_names:
            _check_rate(m, name)
            of[name] = [name]
            continue
        owner, place = _tool(name)
        if owner not in {b.name for b in m.bodies}:
            known = [*m.q_names, *coordinates_of_closures(m), *_names(m)]
            raise ModelError(f"q: there is no coordinate or body {brief(name)}; {nearest(owner, known)}")
        if m.velocities is not None:
            raise ModelError(
                f"along=True: the pose of body {owner!r} cannot be given where velocities are chosen by pf.velocities"
            )
        count = _width(x, name)
        kind, closing = POSES[count]
        target, size = f"{owner} as given", default_length(m) or 1.0
        if target in {b.name for b in bodies}:
            raise ModelError(f"q: the pose of body {owner!r} is given twice")
        bodies.append(body(target, 1.0, inertia=size**2))
        joints.append(joint(target, kind, "world", target))
        closures.append(closure(target, closing, target, owner, placement_b=place))
        of[name] = [""] * count  # named below
    if len(bodies) == len(m.bodies):
        return m, of
    m = m.with_(bodies=bodies, joints=joints, constraints=closures)
    return m, {name: x if len(x) == 1 else list(m.q_names[m.q_slices[f"{_body(name)} as given"]]) for name, x in of.items()}


def _names(m: Mechanism) -> list[str]:
    return [b.name for b in m.bodies]


def _check_rate(m: Mechanism, name: str) -> None:
    """Raise ModelError unless a coordinate has a rate of its own."""
    owner = next(j for j in m.owners if name in m.q_names[m.q_slices[j.name]])
    if m.velocities is not None or not isinstance(owner, Joint) or owner.distribution is not None:
        raise ModelError(f"along=True: {name!r} has no velocity of its own; give the pose of a body instead")


def _tool(name: Any) -> tuple[str, Pose]:
    """Body and placement of a key: the name of a body, or a pair of it and the pose of a tool."""
    if isinstance(name, tuple) and len(name) == 2 and isinstance(name[0], str):
        return name[0], as_pose(name[1], f"q[{name!r}]: tool")
    if not isinstance(name, str):
        raise ModelError(f"q: a key is the name of a coordinate or body, or a pair (body, pose of a tool), got {brief(name)}")
    return name, IDENTITY


def _body(name: Any) -> str:
    return name if isinstance(name, str) else str(name[0])


def _width(x: Any, name: Any) -> int:
    """Count of the numbers that give a body's position, attitude or pose at one instant."""
    width = x.size if isinstance(x, Reference) else ((0, *_shape(x))[-1])
    if width not in POSES:
        raise ModelError(
            f"q[{name!r}]: a body needs (samples, 3) positions, (samples, 4) quaternions (x, y, z, w), or (samples, 7) both"
        )
    return int(width)


def _shape(x: Any) -> tuple[int, ...]:
    """Shape of values, with or without their derivatives; of a reference ()."""
    return () if isinstance(x, Reference) else np.shape(x.value if isinstance(x, Setpoint) else x)


def _timed(t: Any) -> bool:
    return np.ndim(t) > 0


def _batch(x: Any, width: int) -> bool:
    """Whether values have an axis of runs."""
    return len(_shape(x)) == (2 if width == 1 else 3)


def _times(q: Mapping[Any, Any], of: Mapping[Any, list[str]], t: Any) -> tuple[int, np.ndarray]:
    """The number of samples, and their times (n,), or their indices where t is one number."""
    counts = {}
    for name, x in q.items():
        shape = _shape(x)
        if len(shape) > (0 if len(of[name]) == 1 else 1):
            counts[name] = shape[0]
    if len(set(counts.values())) > 1:
        each = listed([f"{name!r} has {count}" for name, count in counts.items()])
        raise ModelError(f"q: the series have different numbers of samples: {each}")
    n = next(iter(counts.values()), None)
    if not _timed(t):
        if n is None:
            raise ModelError("along=True: q has no series; give t=times (samples,) [s] with references, or arrays over time")
        if any(isinstance(x, Reference) for x in q.values()):
            raise ModelError("along=True: a reference is a function of time: give t=times (samples,) [s]")
        return _several(n), np.arange(float(n))
    times = floats(t, "t")
    if times.ndim != 1 or not (np.diff(times) > 0).all():
        raise ModelError(f"t: increasing times (samples,) [s] are needed, got shape {times.shape}")
    if n is not None and n != len(times):
        first = next(iter(counts))
        raise ModelError(f"q: {first!r} has {n} samples, but t has {len(times)} times")
    return _several(len(times)), times


def _several(n: int) -> int:
    if n < 2:
        raise ModelError("along=True: a series of two samples or more is needed; for one state leave out along=True")
    return n


def _motion(x: Any, what: str, width: int, n: int, times: np.ndarray, p: np.ndarray) -> GivenSeries:
    """The GivenSeries of values, of values with their derivatives (Setpoint), or of a Reference."""
    if isinstance(x, Reference):
        return _of_reference(x, what, width, times, p)
    parts = [floats(part, what) for part in (x if isinstance(x, Setpoint) else (x,))]
    most = max(part.ndim for part in parts) - (width > 1)
    if most > 2:
        raise ModelError(f"{what} has shape {parts[0].shape}: {_shapes(width)} is needed")
    shaped = []
    for part in parts:
        if width > 1 and (not part.ndim or part.shape[-1] != width):
            raise ModelError(f"{what} has shape {part.shape}: {_shapes(width)} is needed")
        part = part[..., None] if width == 1 else part
        part = part[None, None] if part.ndim == 1 else part[:, None] if part.ndim == 2 else part
        if part.shape[0] not in (1, n):
            raise ModelError(f"{what}: values, rates and accelerations need {n} samples each, got {part.shape[0]}")
        shaped.append(np.broadcast_to(part, (n, *part.shape[1:])))
    if len(shaped) == 3:
        count = common_runs({f"{what}, part {i}": part.shape[1] for i, part in enumerate(shaped)})
        return GivenSeries(*[np.broadcast_to(part, (n, count, width)) for part in shaped])
    value = _turned_alike(shaped[0]) if width in (4, 7) else shaped[0]
    if (value == value[:1]).all():
        return GivenSeries(value, np.zeros_like(value), np.zeros_like(value))
    found = spline_slopes(times, value.reshape(n, -1))
    return GivenSeries(value, found.first.reshape(value.shape), found.second.reshape(value.shape))


def _shapes(width: int) -> str:
    return "a number, (samples,) or (samples, runs)" if width == 1 else f"(samples, {width}) or (samples, runs, {width})"


def _turned_alike(x: np.ndarray) -> np.ndarray:
    """Values (n, runs, 4 or 7) whose quaternions have length one and do not change sign from one sample to the next."""
    turn = x[:, :, -4:]
    length = np.sqrt((turn * turn).sum(axis=2, keepdims=True))
    if not (length > NO_LENGTH).all():
        raise ModelError("q: a quaternion is zero, which is no attitude; the identity is (0, 0, 0, 1)")
    turn = turn / length
    along = (turn[1:] * turn[:-1]).sum(axis=2)
    sign = np.cumprod(np.where(along < 0, -1.0, 1.0), axis=0)[:, :, None]
    turn[1:] *= sign
    return np.concatenate([x[:, :, :-4], turn], axis=2)


def _of_reference(x: Reference, what: str, width: int, times: np.ndarray, p: np.ndarray) -> GivenSeries:
    """The GivenSeries of a Reference: exact derivatives."""
    if x.w_names or x.size != width:
        raise ModelError(f"{what}: a reference of {width} number(s) that needs no inputs is needed, got {x!r}")
    t = ca.SX.sym("t")
    at = x.at(t, ca.SX(0, 1))
    symbols = ca.veccat(*[s for s in ca.symvar(ca.veccat(*at)) if not ca.is_equal(s, t)])
    if symbols.numel():
        raise ModelError(f"{what}: a reference with parameters is not known here; give values over time")
    f = ca.Function("reference", [t], [ca.densify(ca.SX(part)) for part in at])
    parts = f.map(len(times))(times[None])
    return GivenSeries(*[np.array(part).T[:, None, :] for part in (parts if several(parts) else [parts])])


# -- as coordinates ----------------------------------------------------------------------------------------------------


def _columns(
    m: Mechanism, columns: Mapping[str, list[np.ndarray]], fixed: np.ndarray, n: int, runs: int
) -> tuple[np.ndarray, ...]:
    """values, slopes, w and a of a GivenMotion from value, rate and acceleration (n, runs) of each fixed coordinate."""
    flat = {name: [_flat(part, n, runs) for part in parts] for name, parts in columns.items()}
    values, slopes = ([flat[name][k] for name in m.q_names if name in flat] for k in (0, 1))
    w, a = list[np.ndarray](), list[np.ndarray]()
    place = {name: i for i, name in enumerate(name for name in m.q_names if name in flat)}
    for j in m.owners:
        names = m.q_names[m.q_slices[j.name]]
        plain = names[: j.plain] if j.name in m.quaternions else names
        for name in plain:
            if name in flat:
                w.append(flat[name][1])
                a.append(flat[name][2])
        if j.name in m.quaternions and names[-1] in flat:
            turn = names[-4:]
            x, rate, acceleration = (np.stack([flat[name][k] for name in turn]) for k in range(3))
            unit, spin, change = _spin(x, rate, acceleration)
            w += list(spin)
            a += list(change)
            for name, e, s in zip(turn, unit, _product(unit, np.vstack([spin, 0 * spin[:1]]) / 2), strict=True):
                values[place[name]], slopes[place[name]] = e, s
    return tuple(np.array(x).reshape(len(x), n * runs).T for x in (values, slopes, w, a))


def _flat(x: np.ndarray, n: int, runs: int) -> np.ndarray:
    """(runs n,) the values (n, 1 or runs) of one run after another."""
    return np.broadcast_to(x, (n, runs)).T.reshape(-1)


def _spin(x: np.ndarray, rate: np.ndarray, acceleration: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Unit quaternions (4, k), angular velocities (3, k) along the body's axes and their derivatives.

    x: (4, k) quaternions of any length, with their derivatives; w = 2 x^-1 x_dot without its real part.
    """
    squared = (x * x).sum(axis=0)
    if not (squared > NO_LENGTH).all():
        raise ModelError("q: a quaternion is zero, which is no attitude; the identity is (0, 0, 0, 1)")
    back = x * np.array([-1.0, -1.0, -1.0, 1.0])[:, None] / squared
    spin = 2 * _product(back, rate)[:3]
    growth = 2 * (x * rate).sum(axis=0) / squared
    return x / np.sqrt(squared), spin, 2 * _product(back, acceleration)[:3] - growth * spin


def _product(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The products (4, k) of quaternions (x, y, z, w)."""
    vector = x[3] * y[:3] + y[3] * x[:3] + np.cross(x[:3], y[:3], axis=0)
    return np.vstack([vector, x[3] * y[3] - (x[:3] * y[:3]).sum(axis=0)])


def _check_jumps(given: GivenMotion) -> None:
    """Raise ModelError where a fixed coordinate jumps between two samples."""
    m, n = given.m, len(given.times)
    if n < 3:
        return
    names = [name for name, yes in zip(m.q_names, given.entries, strict=True) if yes]
    units = [unit for unit, yes in zip(m.q_units, given.entries, strict=True) if yes]
    long = default_length(m) or np.inf
    change = np.abs(np.diff(given.values.reshape(given.runs, n, -1), axis=1))
    largest = change.max(axis=1, keepdims=True)
    limit = np.array([JUMP * (long if unit == "m" else 1.0) for unit in units])
    if (largest <= limit).all():
        return
    before, after = change[:, np.r_[1, 0 : n - 2]], change[:, np.r_[1 : n - 1, n - 3]]
    jumps = (change > limit) & (change > SUDDEN * np.maximum(before, after))
    if jumps.any():
        run, i, k = (int(x[0]) for x in np.nonzero(jumps))
        where = f" of run {run}" if given.runs > 1 else ""
        turn = "; np.unwrap removes whole turns" if units[k] == "rad" and change[run, i, k] > np.pi else ""
        raise ModelError(
            f"q: {names[k]!r} jumps by {change[run, i, k]:.4g}{'' if units[k] == '1' else ' ' + units[k]} between the samples "
            f"{i} and {i + 1}{where}: a motion along one branch is continuous; give the parts before and after as two series"
            f"{turn}"
        )
