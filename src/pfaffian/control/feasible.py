"""Check whether a machine can follow a reference, and if not, which condition is violated and when. [konz25 (4.60)]"""

from __future__ import annotations

from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from pfaffian.control.motors import accelerations, limit_rows
from pfaffian.control.prototype import reference_motion
from pfaffian.control.reason import foremost, mainly
from pfaffian.control.reference import Reference, as_reference, places
from pfaffian.errors import ModelError
from pfaffian.model.mechanism import Mechanism, as_mechanism
from pfaffian.model.number import named_float
from pfaffian.terms.pfaffian import row_names
from pfaffian.terms.terms import Terms, symbols

INSTANTS = 500
"""Number of instants at which `check_reference` checks a reference."""

TOLERANCE = 1e-6
"""Error of a condition, relative to its largest term, above which the condition counts as violated."""


def check_reference(
    m: Mechanism, reference: Reference, duration: float, *, begin: float = 0.0, limits: Any = None
) -> np.ndarray:
    """Smallest inputs with which a mechanism follows a reference of its whole configuration; an error if it cannot.

    Along a reference that the mechanism can follow, M v_R_dot + b = B u + reactions has a solution u, the matching force of a
    prototype vanishes (4.60), and a run that begins on the reference stays on it. Flat outputs give such references.

    Args:
        m: the mechanism, with its parameters at their defaults.
        reference: Reference of (nq,) numbers, a function of time and not `sampled`.
        duration: [s], above zero.
        begin: first instant [s]; default 0.
        limits: limits W u <= l as the pair (W, l), W (rows, motors) and l (rows,), or "actuators" for the limits of the
            mechanism's actuators; None for no limits.
    Returns:
        (instants, motors) inputs [N, N m], at 500 instants from `begin` to `begin` + `duration`.
    Raises ModelError: the reference is nan (a flat output in free fall), leaves the constraints or the configurations,
    requires a motion that no input produces, or inputs beyond the limits; the message names the first violation and its time.
    Also: a reference of another size or with inputs of the run; a duration not above zero; no actuators.

    Example:
        >>> import pfaffian as pf
        >>> from pfaffian import control
        >>> rail = pf.joint("rail", "prismatic", "world", "cart", axis=(1, 0, 0))
        >>> m = pf.mechanism("cart", [pf.body("cart", 2.0)], [rail], actuators=[pf.actuator("motor", "rail")])
        >>> u = control.check_reference(m, control.function_of_time(lambda t: [0.5 * t**2], 1), duration=1.0)
        >>> u[[0, -1]].round(6)  # 2 kg at 1 m/s^2
        array([[2.],
               [2.]])
    """
    what = "check_reference"
    as_mechanism(m), as_reference(reference)
    T, t0 = (named_float(x, f"{what}: {n}") for n, x in (("duration", duration), ("begin", begin)))
    if not T > 0:
        raise ModelError(f"{what}: a duration above zero is needed, got {T:g} s")
    return along_reference(m, reference, np.linspace(t0, t0 + T, INSTANTS), limits, what).u


class FeasibleMotion(NamedTuple):
    """A motion along a reference.   v, v_dot: (instants, nv).   u: (instants, motors), the smallest inputs for it."""

    v: np.ndarray
    v_dot: np.ndarray
    u: np.ndarray


def along_reference(m: Mechanism, reference: Reference, times: np.ndarray, limits: Any, what: str) -> FeasibleMotion:
    """The motion along a reference at given times.

    Raises ModelError: as `check_reference` does, with messages that begin with `what`.
    """
    if reference.w_names or not m.actuators:
        raise ModelError(f"{what}: a reference without inputs of the run and a mechanism with actuators are needed")
    terms = symbols(m)
    path, machine = _path(terms, reference), _machine(terms, limits)
    motion = []
    for t in times:
        at = f"{what}: at t = {t:.4g} s the reference"
        x = _ReferenceAt(*[np.array(part).ravel() for part in path(t, m.p_defaults)])
        _check_numbers(m, x, at)
        y = _Machine(*[np.array(part) for part in machine(x.q, x.v, t, m.p_defaults)])
        _check_place(terms, x, y, at)
        u = _smallest_inputs(m, x, y, at)
        _check_limits(m, u, y, at)
        motion.append((x.v, x.v_dot, u))
    return FeasibleMotion(*map(np.array, zip(*motion, strict=True)))


class _ReferenceAt(NamedTuple):
    """A reference at one instant.   q: (nq,).   v, v_dot: (nv,).   slip: (nq,) its rate minus K v.
    lengths: lengths of its quaternions before normalisation.   left: for each of the `places`, whether it is no configuration.
    given: its value, rate and acceleration before normalisation.
    """

    q: np.ndarray
    v: np.ndarray
    v_dot: np.ndarray
    slip: np.ndarray
    lengths: np.ndarray
    left: np.ndarray
    given: np.ndarray


def _path(terms: Terms, reference: Reference) -> ca.Function:
    """Function (t, parameters) -> the fields of a _ReferenceAt."""
    m, none = terms.mechanism, ca.SX(0, 1)
    goal, x = reference_motion(terms, reference, none), reference.at(terms.t, none)
    slip = ca.SX(x.rate) - goal.k.kinematic_matrix @ goal.k.v
    lengths = ca.vertcat(ca.SX(0, 1), *[ca.norm_2(ca.SX(x.value)[turn, 0]) for turn in m.quaternions.values()])
    given = ca.vertcat(x.value, x.rate, x.acceleration)
    return ca.Function("path", [terms.t, m.p_symbols], [goal.k.q, goal.k.v, goal.v_dot, slip, lengths, goal.left, given])


class _Machine(NamedTuple):
    """A machine in one state.   a: (nv, 1), S: (nv, motors) of v_dot = a + S u.   M: (nv, nv).
    phi, eta: residuals of its constraints.   W, l: limits W u <= l.
    """

    a: np.ndarray
    S: np.ndarray
    M: np.ndarray
    phi: np.ndarray
    eta: np.ndarray
    W: np.ndarray
    l: np.ndarray


def _machine(terms: Terms, limits: Any) -> ca.Function:
    """Function (q, v, t, parameters) -> the fields of a _Machine; W and l have no rows if limits is None."""
    m = terms.mechanism
    W, l = (ca.SX(0, len(m.motor_names)), ca.SX(0, 1)) if limits is None else limit_rows(m, limits)
    parts = [*accelerations(terms), terms.M, terms.rows.phi, terms.rows.eta, W, l]
    return ca.Function("system", [terms.q, terms.v, terms.t, m.p_symbols], parts)


def _check_numbers(m: Mechanism, x: _ReferenceAt, at: str) -> None:
    """Raise ModelError for numbers that are not finite or not a configuration.   at: beginning of the message."""
    if not np.isfinite(np.concatenate([x.given, x.q, x.v, x.v_dot, x.slip])).all():
        raise ModelError(f"{at} is no number: a flat output in free fall, or a function outside its domain")
    for turn, length in zip(m.quaternions.values(), x.lengths, strict=True):
        if abs(length - 1) > TOLERANCE:
            raise ModelError(
                f"{at} leaves the configurations, by {', '.join(m.q_names[turn])}: quaternions must keep the length 1, and "
                f"the length of this one is {length:.6g}"
            )
    if x.left.any():
        by = places(m)[int(np.argmax(x.left))]
        raise ModelError(f"{at} leaves the configurations, by {by}: its numbers or their rates leave phi(q) = 0")


def _check_place(terms: Terms, x: _ReferenceAt, y: _Machine, at: str) -> None:
    """Raise ModelError if the reference leaves the configurations or the constraints."""
    size = 1 + np.abs(x.v).max()
    if np.abs(x.slip).max() > TOLERANCE * size:
        by = mainly(x.slip, terms.mechanism.q_names)
        raise ModelError(f"{at} leaves the configurations, by {by}: quaternions must keep their length")
    off = np.maximum(np.abs(y.phi), np.abs(y.eta) / size).ravel()
    if off.max(initial=0) > TOLERANCE:
        raise ModelError(f"{at} is off the constraints by {off.max():.3g}: {mainly(off, row_names(terms.kinematics))}")


def _smallest_inputs(m: Mechanism, x: _ReferenceAt, y: _Machine, at: str) -> np.ndarray:
    """(motors,) the smallest inputs with a + S u = v_R_dot. Raises ModelError: no inputs satisfy this."""
    L = np.linalg.cholesky(y.M)
    required = (x.v_dot - y.a.ravel()) @ L
    u = np.linalg.lstsq(L.T @ y.S, required, rcond=1e-9)[0]
    force = L @ (required - L.T @ y.S @ u)
    if np.abs(force).max() > TOLERANCE * max(1.0, np.abs(y.M @ x.v_dot).max(), np.abs(y.M @ y.a).max()):
        raise ModelError(
            f"{at} requires {np.abs(force).max():.3g} [N, N m] along {mainly(force, m.v_names)} that no input gives: "
            "M v_R_dot + b = B u has no solution; plan it by a flat output of this machine"
        )
    return u


def _check_limits(m: Mechanism, u: np.ndarray, y: _Machine, at: str) -> None:
    """Raise ModelError if the inputs are beyond the limits."""
    beyond = (y.W @ u - y.l.ravel()) / np.linalg.norm(y.W, axis=1)
    if beyond.max(initial=0) > TOLERANCE:
        row = foremost(np.maximum(beyond, 0))[0]
        raise ModelError(
            f"{at} requires inputs beyond the limits, row {row} of W u <= l by {beyond[row]:.3g}, of "
            f"{mainly(y.W[row], m.motor_names)}; take more time, or another path"
        )
