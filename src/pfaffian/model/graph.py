"""The graph of an open chain: its graph and path matrices, and how a closure becomes a joint that merges two trees."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pfaffian.errors import ModelError, brief, nearest
from pfaffian.model import reprs
from pfaffian.model.body import WORLD
from pfaffian.model.compound import flat
from pfaffian.model.constraint import CARRIED, Closure, Holonomic
from pfaffian.model.joint import KINDS, Joint, joint
from pfaffian.model.mechanism import Mechanism, as_mechanism
from pfaffian.model.pose import Pose


@dataclass(frozen=True, eq=False)
class GraphMatrices:
    """The graph matrix GM and path matrix Ph of N joints and the N bodies to which they lead. [chhabra14 cor. 3.3.1, 3.3.2]

    joints: (N,) names of the rows.
    bodies: (N + 1,) names of the columns of GM: the world, then the body to which each joint leads, in their order.
    GM: (N, N + 1) of int, -1 at the parent of each joint and +1 at its child, so that each row sums to zero.
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
        """Name of a body -> number of bodies to which joints connect it: the diagonal of GM^T GM."""
        return dict(zip(self.bodies, (self.GM**2).sum(axis=0).tolist(), strict=True))

    @property
    def extremities(self) -> tuple[str, ...]:
        """Names of the bodies with one neighbour, without the world: the ends of the branches."""
        return tuple(b for b, n in self.neighbours.items() if n == 1 and b != WORLD)


def graph_matrices(m: Mechanism) -> GraphMatrices:
    """The graph matrix GM and the path matrix Ph of an open chain. [chhabra14 cor. 3.3.1, 3.3.2]

    Fixed joints and edges count as joints.

    Args:
        m: the mechanism.
    Returns:
        joints (N,) and bodies (N + 1,), names; GM (N, N + 1), -1 at the parent of each joint and +1 at its child;
        Ph (N, N), 1 where joint j lies between the world and body i + 1; neighbours; extremities (the ends of the branches).
    Raises ModelError: a constraint closes a loop.

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
        parent = bodies.index(j.parent)
        GM[i, [parent, i + 1]] = -1, 1
        if parent:
            Ph[i] += Ph[parent - 1]
    return GraphMatrices(tuple(j.name for j in m.joints), bodies, GM, Ph)


def check_open(m: Mechanism) -> None:
    """Raise ModelError if a constraint couples the coordinates of the joints, so that the chain is not open."""
    for item in m.constraints:
        for c in flat([item]):
            if isinstance(c, (Closure, Holonomic)):
                ends = f"closure {c.name!r} from {c.body_a!r} to {c.body_b!r}" if isinstance(c, Closure) else ""
                raise ModelError(
                    f"{ends or f'constraint {c.name!r}'} closes the chain, and products of exponentials are for an open one: "
                    f"open it by m.with_(constraints=[c for c in m.constraints if c.name != {item.name!r}]), and use the "
                    "closure as a constraint on the poses and Jacobians of the open chain"
                )


def joined(m: Mechanism, closure: str) -> Mechanism:
    """The mechanism with a closure turned into a joint, so that two machines connected by it become one tree.

    The closure's rows and reactions disappear; what it carries stays with the joint. One of its bodies, such as a captured
    target, must be connected to the world by a free joint. A joint from the other body, with the kind and name of the closure,
    replaces the free joint. All other names stay, so a state carries over by name. The coordinates of the new joint are zero
    where the frames of the closure coincide; a weld has none.

    Args:
        m: the mechanism.
        closure: name of the closure.
    Raises ModelError: no such closure, a closure whose kind is not a kind of joint, or one that is active only for a while;
    neither of its bodies is connected to the world by a free joint that does not also carry the other body; this free joint
    has an actuator, spring or damper.

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
    closures = {c.name: c for c in as_mechanism(m).constraints if isinstance(c, Closure)}
    if closure not in closures:
        raise ModelError(f"joined: {m.name!r} has no closure {brief(closure)}; {nearest(closure, list(closures))}")
    c = closures[closure]
    kind = "fixed" if c.kind == "weld" else c.kind
    if kind not in KINDS or kind == "universal" or c.active is not None:
        raise ModelError(
            f"joined: closure {c.name!r} ({c.kind}{', for a while' if c.active else ''}) is not a joint that is always active"
        )
    ends = ((c.body_a, c.body_b, c.placement_a, c.placement_b), (c.body_b, c.body_a, c.placement_b, c.placement_a))
    for parent, child, at, child_at in ends:
        base = next((j for j in m.joints if j.child == child), None)
        carried = _carried(m, child)
        if base is not None and _floats(m, base) and parent not in carried:
            link = _as_joint(m, c, kind, parent, child, at, child_at)
            rest = [j for j in m.joints if j.child not in carried]
            after = [j for j in m.joints if j.child in carried and j is not base]
            return m.with_(joints=[*rest, link, *after], constraints=[x for x in m.constraints if x is not c])
    raise ModelError(
        f"joined: neither {c.body_a!r} nor {c.body_b!r} of closure {c.name!r} has a free joint on the world without actuator, "
        "spring and damper that does not carry the other body too; keep the closure as a constraint"
    )


def _as_joint(m: Mechanism, c: Closure, kind: str, parent: str, child: str, at: Pose, child_at: Pose) -> Joint:
    """The joint from parent to child that a closure is, with what it carries and the sign of its coordinate."""
    back = parent != c.body_a
    driven = any(c.name == joint for a in m.actuators for joint, _ in a.ends)
    if back and KINDS[kind].nv > 1 and (c.carries or driven):
        raise ModelError(
            f"joined: closure {c.name!r} carries a spring, damper, limits or actuator along several motions from {child!r}; "
            f"write it from {parent!r} to {child!r}"
        )
    axis = (0, 0, -1) if back and KINDS[kind].nv == 1 else (0, 0, 1)
    pitch = c.number if KINDS[kind].screws else None
    if c.friction is not None:
        raise ModelError(f"joined: closure {c.name!r} has friction; give it by pf.forces.joint_friction, which names the joint")
    carried = {n: x for n in CARRIED if n != "friction" and (x := getattr(c, n)) is not None}
    return joint(
        c.name, kind, parent, child, placement=at, child_placement=child_at, axis=axis, pitch=pitch, mimic=c.mimic, **carried
    )


def _floats(m: Mechanism, j: Joint) -> bool:
    """Whether j is a free joint on the world without actuator, spring, damper or armature, so that it can be replaced."""
    free = j.parent == WORLD and j.pose is None and j.kind is KINDS["free"] and j.distribution is None
    driven = any(j.name == joint for a in m.actuators for joint, _ in a.ends)
    return free and not driven and all(x.is_zero() for x in (j.stiffness, j.damping, j.armature))


def _carried(m: Mechanism, body: str) -> set[str]:
    """Names of the body and of all its descendants in the tree."""
    subtree = {body}
    for j in m.joints:
        if j.parent in subtree:
            subtree.add(j.child)
    return subtree
