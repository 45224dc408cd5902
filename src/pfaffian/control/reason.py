"""Who is to blame for a fault of a control law, found at the state where it stopped a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import casadi as ca
import numpy as np

from pfaffian.control.law import Reason, motor_matrix
from pfaffian.control.task import Task, task_terms
from pfaffian.dynamics.motion import RANK_TOLERANCE
from pfaffian.model.mechanism import Mechanism

SHARE = 0.1
"""Velocities, task coordinates, rows and directions with this part of the largest share are named."""

MOST_NAMED = 6


def undriven() -> Reason:
    """Which motion that the constraints leave free has no actuator: of N(A) what is orthogonal to the range of B."""

    def words(m: Mechanism, x: Mapping[str, np.ndarray]) -> str:
        N = null(x["A"])
        lost = N @ null(x["B"].T @ N)[:, -1]
        motors = ", ".join(m.motor_names)
        return f"the motion without an actuator moves {mainly(lost, m.v_names)}; the actuators are {motors}"

    return Reason({"A": lambda T: T.A, "B": motor_matrix}, words)


def out_of_reach(task: Task, constrained: bool = True) -> Reason:
    """Which coordinates of a task the motion, within the constraints unless a law ignores them, moves least."""

    def words(m: Mechanism, x: Mapping[str, np.ndarray]) -> str:
        J, N = x["J"], null(x["A"])
        sizes = np.linalg.norm(J, axis=1, keepdims=True)
        U, s, _ = np.linalg.svd(np.divide(J, sizes, out=np.zeros_like(J), where=sizes > 0) @ N)
        least = 0.0 if len(s) < len(J) else s[-1]
        names = [f"task coordinate {i}" for i in range(len(J))]
        bound = "the constraints leave" if constrained and len(x["A"]) else "the joints leave"
        return f"{bound} {mainly(U[:, -1], names)} the least motion, {least:.2g} where 1 is free"

    return Reason({"A": lambda T: T.A if constrained else ca.SX(0, T.A.shape[1]), "J": lambda T: task_terms(T, task).J}, words)


def mainly(w: np.ndarray, names: Sequence[str], most: int = MOST_NAMED) -> str:
    """The names with a large part in w (n,), the largest first, `most` of them."""
    w = np.abs(w)
    return ", ".join([names[i] for i in np.argsort(-w, kind="stable") if w[i] >= SHARE * w.max()][:most])


def null(A: np.ndarray) -> np.ndarray:
    """Orthonormal columns of the null space, the most nearly lost direction last; that one even where nothing is lost."""
    if not len(A):
        return np.eye(A.shape[1])
    _, s, Vt = np.linalg.svd(A)
    rank = int((s > RANK_TOLERANCE * max(s.max(initial=0), 1e-300)).sum())
    return Vt[min(rank, A.shape[1] - 1) :].T
