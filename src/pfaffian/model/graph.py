"""The graph of an open chain: which bodies a joint connects, and which joints lie between the world and a body."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pfaffian.errors import ModelError
from pfaffian.model import shown
from pfaffian.model.body import WORLD
from pfaffian.model.constraint import Closure, Holonomic
from pfaffian.model.mechanism import Mechanism, as_mechanism


@dataclass(frozen=True, eq=False)
class GraphMatrices:
    """N joints and the N bodies that they lead to, both in the order of the joints. [chhabra14 cor. 3.3.1, 3.3.2]

    joints: (N,) names, the rows.   bodies: (N + 1,) names, the columns of GM: the world, then what each joint leads to.
    GM: (N, N + 1) of int, -1 at the body before each joint and +1 at the one after it, so that GM 1 = 0.
    Ph: (N, N) of int, 1 where joint j lies between the world and body i + 1: GM without its first column, inverted.
    """

    joints: tuple[str, ...]
    bodies: tuple[str, ...]
    GM: np.ndarray
    Ph: np.ndarray

    def __repr__(self) -> str:
        return shown.words(self, f"joints {shown.listed(self.joints)}", f"extremities {shown.listed(self.extremities)}")

    @property
    def neighbours(self) -> dict[str, int]:
        """Body -> how many it is joined to, the diagonal of GM^T GM."""
        return dict(zip(self.bodies, (self.GM**2).sum(axis=0).tolist(), strict=True))

    @property
    def extremities(self) -> tuple[str, ...]:
        """Bodies with one neighbour, the world aside: the ends of the branches."""
        return tuple(b for b, n in self.neighbours.items() if n == 1 and b != WORLD)


def graph_matrices(m: Mechanism) -> GraphMatrices:
    """Graph and path matrix of an open chain, fixed joints and edges among its joints. [chhabra14 cor. 3.3.1, 3.3.2]

    m: the mechanism.   Raises ModelError: a constraint that closes a loop.
    """
    check_open(as_mechanism(m))
    bodies = (WORLD, *(j.child for j in m.joints))
    GM, Ph = np.zeros((len(m.joints), len(bodies)), dtype=int), np.eye(len(m.joints), dtype=int)
    for i, j in enumerate(m.joints):
        before = bodies.index(j.parent)
        GM[i, [before, i + 1]] = -1, 1
        if before:
            Ph[i] += Ph[before - 1]
    return GraphMatrices(tuple(j.name for j in m.joints), bodies, GM, Ph)


def check_open(m: Mechanism) -> None:
    """Raise ModelError where constraints tie the coordinates of the joints to each other: no chain is open then."""
    for c in m.constraints:
        if isinstance(c, (Closure, Holonomic)):
            what = (
                f"closure {c.name!r} from {c.body_a!r} to {c.body_b!r}" if isinstance(c, Closure) else f"constraint {c.name!r}"
            )
            raise ModelError(
                f"{what} closes the chain, and products of exponentials are those of an open one: open it by "
                f"m.with_(constraints=[c for c in m.constraints if c.name != {c.name!r}]), and use the closure as a "
                "constraint on the poses and Jacobians of the open chain"
            )
