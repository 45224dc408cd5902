"""Who is to blame for a fault of a control law, found at the state where it stopped a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from pfaffian.control.law import Control, Reason, motor_matrix
from pfaffian.control.reference import Reference, Setpoint
from pfaffian.control.task import Task, task_terms
from pfaffian.dynamics.motion import RANK_TOLERANCE
from pfaffian.model.mechanism import Mechanism
from pfaffian.terms.terms import Terms

INSTANTS = 4
"""Parts into which a step is divided to find the instant at which a reference ends."""

SHARE = 0.1
"""Velocities, task coordinates, rows and directions with at least this part of the largest share are named."""

MOST_NAMED = 6

DIGITS = 6
"""Shares and gains that agree to so many digits of the largest count as equal: which of them comes first is a matter of
rounding, and no two machines round alike.
"""

ALIKE = 10.0**-DIGITS

ROUNDING = 1e-12
"""A gain below this part of the largest is zero but for rounding."""


def undriven(constrained: bool = True) -> Reason:
    """Names the motion in N(A), orthogonal to the range of B, that no actuator drives; A is empty for a law that ignores it."""

    def words(m: Mechanism, x: Mapping[str, np.ndarray]) -> str:
        N = null_directions(x["A"])
        lost = participation(N @ weakest(x["B"].T @ N).inputs)
        motors = ", ".join(m.motor_names)
        return f"the motion without an actuator moves {mainly(lost, m.v_names)}; the actuators are {motors}"

    return Reason({"A": lambda T: _rows(T, constrained), "B": motor_matrix}, words)


def out_of_reach(task: Task, constrained: bool = True) -> Reason:
    """Names the task coordinates that the possible motions move least, within the constraints unless the law ignores them."""

    def words(m: Mechanism, x: Mapping[str, np.ndarray]) -> str:
        J, N = x["J"], null_directions(x["A"])
        sizes = np.linalg.norm(J, axis=1, keepdims=True)
        found = weakest((np.divide(J, sizes, out=np.zeros_like(J), where=sizes > 0) @ N).T)
        names = [f"task coordinate {i}" for i in range(len(J))]
        bound = "the constraints leave" if constrained and len(x["A"]) else "the joints leave"
        return f"{bound} {mainly(participation(found.inputs), names)} the least motion, {found.gain:.2g} where 1 is free"

    return Reason({"A": lambda T: _rows(T, constrained), "J": lambda T: task_terms(T, task).J}, words)


def _rows(terms: Terms, constrained: bool) -> ca.SX:
    return terms.A if constrained else ca.SX(0, terms.A.shape[1])


def references(made: Any, what: str = "law") -> list[tuple[str, Reference]]:
    """The references that a law follows, as (label, Reference), as far as it was made by the library."""
    if isinstance(made, Reference):
        return [(repr(what), made)]
    if isinstance(made, Control):
        arguments = made.made.arguments if made.made else ()
        return [found for name, x in arguments for found in references(x, name)]
    if isinstance(made, (tuple, list)):
        return [found for x in made for found in references(x, what)]
    if isinstance(made, Mapping):
        return [found for name, x in made.items() for found in references(x, str(name))]
    goal = getattr(made, "reference", None)
    return [(f"of {made!r}", goal)] if isinstance(goal, Reference) else []


def ended(m: Mechanism, law: Control, t: np.ndarray, step: float, p: np.ndarray) -> list[str]:
    """Which reference of a law is nan within the step after t (runs,), at parameters p (runs, np); "" where none is."""
    known = [(name, x) for name, x in references(law) if not x.w_names]
    if not known:
        return [""] * len(t)
    at, w = ca.SX.sym("t"), ca.SX(0, 1)
    parts = [(name, kind, x) for name, r in known for kind, x in zip(Setpoint._fields, r.at(at, w), strict=True)]
    f = ca.Function("references", [at, m.p_symbols], [ca.vertcat(*[ca.sum1(ca.densify(x)) for *_, x in parts])])
    found = []
    for begin, values in zip(t, p, strict=True):
        instants = begin + step * np.arange(INSTANTS + 1) / INSTANTS
        lost = ~np.isfinite(np.array([np.array(f(x, values)).ravel() for x in instants]))
        first, which = np.unravel_index(int(np.argmax(lost)), lost.shape)
        name, kind, _ = parts[which]
        found.append(f"the {kind} of the reference {name} is no number at t = {instants[first]:.6g} s" if lost.any() else "")
    return found


def mainly(w: np.ndarray, names: Sequence[str], most: int = MOST_NAMED) -> str:
    """The names with a large part in w (n,), the largest first and equal ones in their own order; at most `most` of them."""
    part = _parts(w)
    return ", ".join([names[i] for i in np.argsort(-part, kind="stable") if part[i] >= SHARE][:most])


def foremost(w: np.ndarray) -> tuple[int, ...]:
    """Index of the largest entry of w by absolute value; the first of equal ones."""
    return tuple(int(i) for i in np.unravel_index(int(np.argmax(_parts(w))), w.shape))


def _parts(w: np.ndarray) -> np.ndarray:
    """|w| in parts of the largest, rounded to DIGITS."""
    w = np.nan_to_num(np.abs(w), nan=np.inf, posinf=np.inf)
    largest = w.max(initial=0.0)
    return np.round(w / largest, DIGITS) if 0 < largest < np.inf else np.where(w == largest, 1.0, 0.0)


class Weakest(NamedTuple):
    """gain: the least |A x| of |x| = 1.   inputs: (n, d) orthonormal x of that gain, all of them.   outputs: (k, d) A x,
    normalised; where the gain is zero, what A does not reach.
    """

    gain: float
    inputs: np.ndarray
    outputs: np.ndarray


def weakest(A: np.ndarray) -> Weakest:
    """The directions of x in which A (k, n) has the least gain, all of them."""
    U, s, Vt = np.linalg.svd(A)
    gains = np.concatenate([s, np.zeros(max(A.shape) - len(s))])
    gains[gains <= ROUNDING * s.max(initial=0.0)] = 0.0
    least = gains[A.shape[1] - 1]
    low = np.abs(gains - least) <= ALIKE * s.max(initial=0.0)
    return Weakest(float(least), Vt[low[: A.shape[1]]].T, U[:, low[: A.shape[0]]])


def lowest(S: np.ndarray) -> np.ndarray:
    """(n, d) orthonormal eigenvectors of the lowest eigenvalue of a symmetric S (n, n), all of them."""
    values, vectors = np.linalg.eigh(S)
    return vectors[:, values <= values[0] + ALIKE * np.abs(values).max()]


def participation(directions: np.ndarray) -> np.ndarray:
    """(n,) part of each coordinate in the space of orthonormal directions (n, d), whatever the choice of these."""
    return np.linalg.norm(directions, axis=1)


def null_directions(A: np.ndarray) -> np.ndarray:
    """Orthonormal columns of the null space, the direction nearest to being lost last; that one even if none is lost."""
    if not len(A):
        return np.eye(A.shape[1])
    _, s, Vt = np.linalg.svd(A)
    rank = int((s > RANK_TOLERANCE * max(s.max(initial=0), 1e-300)).sum())
    return Vt[min(rank, A.shape[1] - 1) :].T
