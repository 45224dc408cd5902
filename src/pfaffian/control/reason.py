"""The causes of a control law's faults: functions that name them from the state where a fault stopped a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from pfaffian.control.command import Reason
from pfaffian.control.law import Control, motor_matrix
from pfaffian.control.reference import Reference, Setpoint
from pfaffian.control.task import Task, task_terms
from pfaffian.dynamics.motion import RANK_TOLERANCE
from pfaffian.model.mechanism import Mechanism
from pfaffian.terms.generic_states import speed_units
from pfaffian.terms.terms import Terms

INSTANTS = 4
"""Number of parts into which a step is divided to find the instant at which a reference becomes nan."""

SHARE = 0.1
"""A message names velocities, task coordinates, rows and directions with at least this fraction of the largest share."""

MOST_NAMED = 6
"""Largest number of names in a message."""

DIGITS = 6
"""Shares and gains that agree to this many digits of the largest one count as equal. Their order would depend on rounding,
which differs between computers.
"""

EQUAL = 10.0**-DIGITS
"""Gains and eigenvalues that differ by no more than this fraction of the largest one count as equal."""

ROUNDING = 1e-12
"""A gain below this fraction of the largest one is zero up to rounding."""


def undriven(constrained: bool = True) -> Reason:
    """The Reason that names the motion that no actuator drives: in the null space of A, orthogonal to the range of B.

    constrained: False for a law that ignores constraints; A is then empty.
    """

    def words(m: Mechanism, x: Mapping[str, np.ndarray]) -> str:
        unit = speed_units(m, m.p_defaults)
        N = null_directions(x["A"] * unit)
        lost = participation(N @ weakest((x["B"].T * unit) @ N).inputs)
        motors = ", ".join(m.motor_names)
        words = f"the motion without an actuator moves {mainly(lost, m.v_names)}; the actuators are {motors}"
        return words + ("" if (lost[x["B"].any(axis=1)] >= SHARE * lost.max()).any() else _ways_out(m, lost))

    return Reason({"A": lambda T: _rows(T, constrained), "B": motor_matrix}, words)


def _ways_out(m: Mechanism, lost: np.ndarray) -> str:
    """How the joint that takes the largest part in a motion of passive joints could lose it.   lost: (nv,) shares."""
    at = foremost(lost)[0]
    j = next((j for j in m.joints if m.v_slices[j.name].start <= at < m.v_slices[j.name].stop), None)
    if j is None or m.velocities is not None or j.kind.name == "free":
        return ""
    if j.nv == 1:
        return f"; lock what need not move, for instance {j.name!r} by pf.locked"
    if j.kind.name == "spherical":
        return f"; a rod between two ball joints turns about itself: make {j.name!r} a universal joint, or lock it by pf.locked"
    return f"; lock what need not move, for instance {j.name!r} by pf.locked or by a joint with fewer motions"


def out_of_reach(task: Task, constrained: bool = True) -> Reason:
    """The Reason that names the task coordinates that the possible motions change least.

    constrained: whether the motions are those within the constraints; False for a law that ignores constraints.
    """

    def words(m: Mechanism, x: Mapping[str, np.ndarray]) -> str:
        unit = speed_units(m, m.p_defaults)
        J, N = x["J"] * unit, null_directions(x["A"] * unit)
        sizes = np.linalg.norm(J, axis=1, keepdims=True)
        least = weakest((np.divide(J, sizes, out=np.zeros_like(J), where=sizes > 0) @ N).T)
        names = [f"task coordinate {i}" for i in range(len(J))]
        bound = "the constraints leave" if constrained and len(x["A"]) else "the joints leave"
        return (
            f"{bound} {mainly(participation(least.inputs), names)} the least motion, {least.gain:.2g}, where 1 is unrestricted"
        )

    return Reason({"A": lambda T: _rows(T, constrained), "J": lambda T: task_terms(T, task).J}, words)


def _rows(terms: Terms, constrained: bool) -> ca.SX:
    """A, or no rows for a law that ignores constraints."""
    return terms.A if constrained else ca.SX(0, terms.A.shape[1])


def references(value: Any, what: str = "law") -> list[tuple[str, Reference]]:
    """The references that a law of the library follows, as (label, Reference).

    value: the law, or one of its arguments; references in a law of your own are unknown.   what: name of the argument, for the
    label.
    """
    if isinstance(value, Reference):
        return [(repr(what), value)]
    if isinstance(value, Control):
        arguments = value.made.arguments if value.made else ()
        return [reference for name, x in arguments for reference in references(x, name)]
    if isinstance(value, (tuple, list)):
        return [reference for x in value for reference in references(x, what)]
    if isinstance(value, Mapping):
        return [reference for name, x in value.items() for reference in references(x, str(name))]
    goal = getattr(value, "reference", None)
    return [(f"of {value!r}", goal)] if isinstance(goal, Reference) else []


def ended(m: Mechanism, law: Control, t: np.ndarray, step: float, p: np.ndarray) -> list[str]:
    """For each run a message that names the reference of a law that becomes nan within the step after t; "" if none does.

    t: (runs,) time at the start of the step.   p: (runs, np) parameters.
    """
    known = [(name, x) for name, x in references(law) if not x.w_names]
    if not known:
        return [""] * len(t)
    at, w = ca.SX.sym("t"), ca.SX(0, 1)
    parts = [(name, kind, x) for name, r in known for kind, x in zip(Setpoint._fields, r.at(at, w), strict=True)]
    f = ca.Function("references", [at, m.p_symbols], [ca.vertcat(*[ca.sum1(ca.densify(x)) for *_, x in parts])])
    messages = []
    for begin, values in zip(t, p, strict=True):
        instants = begin + step * np.arange(INSTANTS + 1) / INSTANTS
        lost = ~np.isfinite(np.array([np.array(f(x, values)).ravel() for x in instants]))
        first, which = np.unravel_index(int(np.argmax(lost)), lost.shape)
        name, kind, _ = parts[which]
        messages.append(f"the {kind} of the reference {name} is no number at t = {instants[first]:.6g} s" if lost.any() else "")
    return messages


def mainly(w: np.ndarray, names: Sequence[str], most: int = MOST_NAMED) -> str:
    """The names of the entries of w (n,) that are at least SHARE of the largest by absolute value, separated by commas.

    The largest comes first; equal ones are in the order of `names`.   most: largest number of names.
    """
    part = _parts(w)
    return ", ".join([names[i] for i in np.argsort(-part, kind="stable") if part[i] >= SHARE][:most])


def foremost(w: np.ndarray) -> tuple[int, ...]:
    """Index of the largest entry of w by absolute value; the first of them if several are equal."""
    return tuple(int(i) for i in np.unravel_index(int(np.argmax(_parts(w))), w.shape))


def _parts(w: np.ndarray) -> np.ndarray:
    """|w| as fractions of the largest entry, rounded to DIGITS digits."""
    w = np.nan_to_num(np.abs(w), nan=np.inf, posinf=np.inf)
    largest = w.max(initial=0.0)
    return np.round(w / largest, DIGITS) if 0 < largest < np.inf else np.where(w == largest, 1.0, 0.0)


class Weakest(NamedTuple):
    """The least gain of a matrix A, and its directions.

    gain: the least |A x| for |x| = 1.   inputs: (n, d) orthonormal basis of the x with this gain.   outputs: (k, d) their A x,
    normalised; where the gain is zero, a basis of the orthogonal complement of the range of A.
    """

    gain: float
    inputs: np.ndarray
    outputs: np.ndarray


def weakest(A: np.ndarray) -> Weakest:
    """All directions x in which A (k, n) has its least gain."""
    U, s, Vt = np.linalg.svd(A)
    gains = np.concatenate([s, np.zeros(max(A.shape) - len(s))])
    gains[gains <= ROUNDING * s.max(initial=0.0)] = 0.0
    least = gains[A.shape[1] - 1]
    low = np.abs(gains - least) <= EQUAL * s.max(initial=0.0)
    return Weakest(float(least), Vt[low[: A.shape[1]]].T, U[:, low[: A.shape[0]]])


def lowest(S: np.ndarray) -> np.ndarray:
    """(n, d) orthonormal basis of the eigenvectors with the lowest eigenvalue of a symmetric S (n, n)."""
    values, vectors = np.linalg.eigh(S)
    return vectors[:, values <= values[0] + EQUAL * np.abs(values).max()]


def participation(directions: np.ndarray) -> np.ndarray:
    """(n,) share of each coordinate in the space of orthonormal directions (n, d), independent of the choice of this basis."""
    return np.linalg.norm(directions, axis=1)


def null_directions(A: np.ndarray) -> np.ndarray:
    """Orthonormal columns of the null space of A (k, n), that of least gain last; it alone if A has full column rank."""
    if not len(A):
        return np.eye(A.shape[1])
    _, s, Vt = np.linalg.svd(A)
    rank = int((s > RANK_TOLERANCE * max(s.max(initial=0), 1e-300)).sum())
    return Vt[min(rank, A.shape[1] - 1) :].T
