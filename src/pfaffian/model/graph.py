"""The graph of an open chain: which bodies a joint connects, which joints lead to a body, and how two trees become one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pfaffian.errors import ModelError, brief, nearest
from pfaffian.model import reprs
from pfaffian.model.body import WORLD
from pfaffian.model.constraint import Closure, Holonomic
from pfaffian.model.force import Thruster
from pfaffian.model.joint import KINDS, Joint, joint
from pfaffian.model.mechanism import Mechanism, as_mechanism


@dataclass(frozen=True, eq=False)
class GraphMatrices:
    """N joints and the N bodies that they lead to, both in the order of the joints. [chhabra14 cor. 3.3.1, 3.3.2]

    joints: (N,) names, the rows.
    bodies: (N + 1,) names, the columns of GM: the world, then the body to which each joint leads.
    GM: (N, N + 1) of int, -1 at the body before each joint and +1 at the one after it, so that GM 1 = 0.
    Ph: (N, N) of int, 1 where joint j lies between the world and body i + 1: the inverse of GM without its first column.
    """

    joints: tuple[str, ...]
    bodies: tuple[str, ...]
    GM: np.ndarray
    Ph: np.ndarray

    def __repr__(self) -> str:
        return reprs.words(self, f"joints {reprs.listed(self.joints)}", f"extremities {reprs.listed(self.extremities)}")

    @property
    def neighbours(self) -> dict[str, int]:
        """Body -> number of bodies that it is joined to, the diagonal of GM^T GM."""
        return dict(zip(self.bodies, (self.GM**2).sum(axis=0).tolist(), strict=True))

    @property
    def extremities(self) -> tuple[str, ...]:
        """Bodies with one neighbour, the world aside: the ends of the branches."""
        return tuple(b for b, n in self.neighbours.items() if n == 1 and b != WORLD)


def graph_matrices(m: Mechanism) -> GraphMatrices:
    """The graph matrix GM and the path matrix Ph of an open chain. [chhabra14 cor. 3.3.1, 3.3.2]

    Fixed joints and edges count as joints.

    Args:
        m: the mechanism.
    Returns:
        joints (N,) and bodies (N + 1,) by name; GM (N, N + 1), -1 at the body before each joint and +1 at the one after it;
        Ph (N, N), 1 where joint j lies between the world and body i + 1; neighbours and extremities (the ends of the branches).
    Raises ModelError: a constraint that closes a loop.

    Example:
        >>> import pfaffian as pf
        >>> rods = [pf.body(n, mass=2.0, inertia=0.1) for n in ("upper", "lower")]
        >>> joints = [pf.joint("A", "revolute", "world", "upper"), pf.joint("B", "revolute", "upper", "lower")]
        >>> g = pf.calculus.graph_matrices(pf.mechanism("double pendulum", rods, joints))
        >>> g.GM.tolist(), g.Ph.tolist(), g.extremities
        ([[-1, 1, 0], [0, -1, 1]], [[1, 0], [1, 1]], ('lower',))
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
    """Raise ModelError where constraints couple the coordinates of the joints: the chain is not open then."""
    for c in m.constraints:
        if isinstance(c, (Closure, Holonomic)):
            what = (
                f"closure {c.name!r} from {c.body_a!r} to {c.body_b!r}" if isinstance(c, Closure) else f"constraint {c.name!r}"
            )
            raise ModelError(
                f"{what} closes the chain, and products of exponentials are for an open one: open it by "
                f"m.with_(constraints=[c for c in m.constraints if c.name != {c.name!r}]), and use the closure as a "
                "constraint on the poses and Jacobians of the open chain"
            )


def joined(m: Mechanism, closure: str) -> Mechanism:
    """The mechanism with a closure turned into a joint, so that two machines that hold each other become one tree.

    The closure's rows and reactions disappear. One of its bodies, such as a captured target, must stand on the world by a free
    joint; a joint of the closure's kind and name, from the other body, takes its place. All other names stay, so a state
    carries over by name; coordinates of the new joint are zero where the frames of the closure coincide, and a weld has none.

    Args:
        m: the mechanism.
        closure: name of the closure.
    Raises ModelError: no such closure, or one of a kind that no joint has, or one that holds only for a while; neither of its
    bodies stands on the world by a free joint that carries nothing of the other one; that joint has an actuator, spring or
    damper.

    Example:
        >>> import pfaffian as pf
        >>> bodies = [pf.body(n, mass=2.0, inertia=0.1) for n in ("chaser", "target")]
        >>> bases = [pf.joint(f"{n} base", "free", "world", n) for n in ("chaser", "target")]
        >>> grip = pf.closure("grip", "weld", "chaser", "target", placement_a=(1, 0, 0))
        >>> m = pf.mechanism("capture", bodies, bases, constraints=[grip])
        >>> one = pf.joined(m, "grip")
        >>> m.nv, one.nv, float(pf.forward_kinematics(one)["target"].position[0])
        (12, 6, 1.0)
    """
    found = {c.name: c for c in as_mechanism(m).constraints if isinstance(c, Closure)}
    if closure not in found:
        raise ModelError(f"joined: {m.name!r} has no closure {brief(closure)}; {nearest(closure, list(found))}")
    c = found[closure]
    kind = "fixed" if c.kind == "weld" else c.kind
    if kind not in KINDS or kind == "universal" or c.active is not None:
        raise ModelError(
            f"joined: closure {c.name!r} ({c.kind}{', for a while' if c.active else ''}) is not a joint that always holds"
        )
    ends = ((c.body_a, c.body_b, c.placement_a, c.placement_b), (c.body_b, c.body_a, c.placement_b, c.placement_a))
    for parent, child, at, child_at in ends:
        lead = next((j for j in m.joints if j.child == child), None)
        carried = _carried(m, child)
        if lead is not None and _floats(m, lead) and parent not in carried:
            pitch = c.number if KINDS[kind].screws else None
            made = joint(c.name, kind, parent, child, placement=at, child_placement=child_at, pitch=pitch)
            rest = [j for j in m.joints if j.child not in carried]
            after = [j for j in m.joints if j.child in carried and j is not lead]
            return m.with_(joints=[*rest, made, *after], constraints=[x for x in m.constraints if x is not c])
    raise ModelError(
        f"joined: neither {c.body_a!r} nor {c.body_b!r} of closure {c.name!r} stands on the world by a free joint of its own, "
        "without actuator, spring and damper, that carries nothing of the other one; keep the closure as a constraint"
    )


def _floats(m: Mechanism, j: Joint) -> bool:
    """Whether a free joint on the world has nothing else attached, so that another joint can replace it."""
    free = j.parent == WORLD and j.pose is None and j.kind is KINDS["free"] and j.distribution is None
    driven = any(j.name == joint for a in m.actuators if not isinstance(a, Thruster) for joint, _ in a.ends)
    return free and not driven and all(x.is_zero() for x in (j.stiffness, j.damping, j.armature))


def _carried(m: Mechanism, body: str) -> set[str]:
    """The body and all bodies that it carries."""
    found = {body}
    for j in m.joints:
        if j.parent in found:
            found.add(j.child)
    return found
