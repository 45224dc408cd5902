"""Friction of joints by what it predicts: laws of growing size are fitted, and the smallest good one is proposed."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import casadi as ca
import numpy as np
import pandas as pd

from pfaffian.errors import ModelError, RunWarning
from pfaffian.evaluate.single_values import as_number
from pfaffian.fitting.fit import fit
from pfaffian.fitting.fit_result import Fit
from pfaffian.model.force import generalised_force
from pfaffian.model.mechanism import Mechanism, as_mechanism, as_names
from pfaffian.model.number import Parameter
from pfaffian.parts.load_friction import guide_friction, pin_friction

SMOOTH = 0.01
"""Rate below which dry friction grows with the rate [rad/s, m/s]."""

AS_GOOD = 1.05
"""Largest ratio of the error of a law to the smallest error of all laws, at which it counts as good."""


def _dry(v: ca.SX) -> ca.SX:
    """The direction of the rate, smooth at rest."""
    return v / ca.sqrt(v**2 + SMOOTH**2)


FrictionLaw = Callable[..., ca.SX]
LAWS: dict[str, tuple[tuple[str, ...], FrictionLaw]] = {
    "none": ((), lambda v: ca.SX(0)),
    "viscous": (("viscous",), lambda v, d: -d * v),
    "dry": (("dry",), lambda v, c: -c * _dry(v)),
    "dry and viscous": (("dry", "viscous"), lambda v, c, d: -c * _dry(v) - d * v),
    "asymmetric": (
        ("dry forwards", "dry backwards", "viscous"),
        lambda v, a, b, d: -ca.if_else(v > 0, a, b) * _dry(v) - d * v,
    ),
    "load": (("load",), lambda v: ca.SX(0)),
    "load and viscous": (("load", "viscous"), lambda v, d: -d * v),
    "Stribeck": (
        ("dry", "static", "Stribeck rate", "viscous"),
        lambda v, c, s, r, d: -(c + (s - c) * ca.exp(-((v / (r + SMOOTH)) ** 2))) * _dry(v) - d * v,
    ),
}
"""Name of a law -> names of its numbers, and the force at a rate v and these numbers. The number "load" is no argument: it
multiplies the force that the joint carries, solved with the motion."""

CARRIES: dict[str, Callable[..., Any]] = {"revolute": partial(pin_friction, radius=1.0), "prismatic": guide_friction}
"""Kind of a joint -> friction that follows its load; the number "load" is then mu times the pin's radius [m], or mu [1]."""


def compare_friction(
    m: Mechanism,
    records: Any,
    unseen: Any,
    *,
    joints: Iterable[str],
    horizon: float,
    size: float = 0.01,
    laws: Sequence[str] | None = None,
    **options: Any,
) -> pd.DataFrame:
    """Fit friction laws to some joints, and compare their predictions of records that the fits have not seen.

    A law with more numbers always fits better, and predicts better only if it is true. Compared are the mean errors at the end
    of the horizon, each relative to the smallest one of its signal. Proposed is the law of the fewest numbers whose error is at
    most 5 % above the smallest.

    Args:
        m: the mechanism, without friction in these joints. Its own parameters are fitted too.
        records: to be fitted, as for `pf.fit`.
        unseen: records for the comparison.
        joints: names of joints of one degree of freedom.
        horizon: of the predictions [s].
        size: guess of the forces and coefficients [N, N m, and per rate], 0.01 by default.
        laws: of "none", "viscous", "dry", "dry and viscous", "asymmetric", "load", "load and viscous" and "Stribeck"; all by
            default, those by load if all joints are revolute or prismatic.
        options: further arguments of `pf.fit`.
    Returns:
        a table with a row for each law: numbers (how many), error, proposed, and fit, its result.
    Raises ModelError: a law or a joint that does not exist; a horizon that is not a number above zero.

    Example:
        >>> import numpy as np, pfaffian as pf
        >>> slide = pf.joint("x", "prismatic", "world", "box", axis=(1, 0, 0), stiffness=8.0)
        >>> m = pf.mechanism("oscillator", [pf.body("box", mass=2.0)], [slide])
        >>> t = np.arange(0.0, 4.0, 0.02)
        >>> noise = np.random.default_rng(1).normal(size=(2, 200)) * 1e-3
        >>> one, two = ({"time": t, "q": a * np.exp(-0.1 * t) * np.cos(1.9975 * t) + n} for a, n in zip((1.0, 0.5), noise))
        >>> laws = ("none", "viscous", "dry and viscous")
        >>> pf.identification.compare_friction(m, one, two, joints=["x"], horizon=2.0, size=0.1, laws=laws).proposed.idxmax()
        'viscous'
    """
    as_mechanism(m)
    names, ahead = as_names(joints, "joints"), as_number(horizon, "horizon", above=0)
    rows, errors = list[dict[str, Any]](), list[np.ndarray]()
    usual = [law for law in LAWS if "load" not in law or {j.kind.name for j in m.joints if j.name in names} <= CARRIES.keys()]
    for law in usual if laws is None else laws:
        if law not in LAWS:
            raise ModelError(f"compare_friction: there is no law {law!r}; there are {', '.join(LAWS)}")
        machine = _with_law(m, law, names, size)
        known = bool(machine.parameters)
        found = fit(machine, records, **options) if known else _without_numbers(m, records, names, options)
        rows.append({"law": law, "numbers": len(machine.parameters), "fit": found})
        errors.append(found.unseen(unseen, [ahead])["fit"].to_numpy())
    return _judged(rows, errors)


def _without_numbers(m: Mechanism, records: Any, joints: tuple[str, ...], options: dict[str, Any]) -> Fit:
    """A fit of a machine without friction and without numbers: that of viscous friction which stays zero."""
    machine = _with_law(m, "viscous", joints, 0.0)
    zero = dict.fromkeys(machine.p_names, (0.0, 0.0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RunWarning)  # of numbers that cannot change
        return fit(machine, records, **options | {"bounds": zero})


def _judged(rows: list[dict[str, Any]], errors: list[np.ndarray]) -> pd.DataFrame:
    """The table of laws."""
    best = np.fmax(np.nanmin(errors, axis=0), np.finfo(float).tiny)
    for row, x in zip(rows, errors, strict=True):
        row["error"] = float(np.nanmean(x / best))
    table = pd.DataFrame(rows).set_index("law")[["numbers", "error", "fit"]]
    good = table[table["error"] <= AS_GOOD * table["error"].min()]
    table.insert(2, "proposed", table.index == good["numbers"].idxmin())
    return table


def _with_law(m: Mechanism, law: str, joints: tuple[str, ...], size: float) -> Mechanism:
    """The mechanism with a law in each joint, and its numbers as parameters."""
    numbers, law_of = LAWS[law]
    forces, parameters = list[Any](), list[Parameter]()
    for joint in joints:
        if joint not in m.v_slices:
            raise ModelError(f"compare_friction: there is no joint {joint!r}; there are {', '.join(m.v_slices)}")
        p = {name: Parameter(f"{name} {joint}", 0.1 if name.endswith("rate") else size) for name in numbers}
        parameters += p.values()
        if load := p.pop("load", None):
            forces.append(_carrying(m, joint)(f"{law} {joint} load", joint, load, smooth=SMOOTH))
        if p:
            forces.append(generalised_force(f"{law} {joint}", _force(law_of, joint, list(p.values())), joint=joint))
    return m.with_(forces=[*m.forces, *forces], parameters=[*m.parameters, *parameters])


def _carrying(m: Mechanism, joint: str) -> Callable[..., Any]:
    """The friction that follows the load of a joint. Raises ModelError: the joint is of another kind."""
    kind = next((j.kind.name for j in m.joints if j.name == joint), "coordinate")
    if kind not in CARRIES:
        raise ModelError(f"compare_friction: {joint!r} is {kind}: friction by load is known of {' and '.join(CARRIES)} joints")
    return CARRIES[kind]


def _force(law_of: FrictionLaw, joint: str, p: list[Parameter]) -> Callable[[Any], ca.SX]:
    """The force of a law at the kinematics."""
    return lambda k: law_of(k.joint_rate(joint), *[x.symbol for x in p])
