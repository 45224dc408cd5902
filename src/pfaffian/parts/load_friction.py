"""Friction that follows the load: guides, pins and bearings, screws and gear heads."""

from __future__ import annotations

from typing import Any, NamedTuple

import casadi as ca

from pfaffian.errors import ModelError, brief
from pfaffian.model.load_loss import GEAR, GUIDE, PIN, SCREW, LoadLoss
from pfaffian.model.number import Scalar, at_defaults, not_negative, positive, scalar
from pfaffian.parts.friction import SMOOTH


def guide_friction(
    name: str, joint: str, coefficient: Scalar, *, length: Scalar | None = None, static: Scalar | None = None,
    stribeck: Scalar = 0.01, smooth: Scalar = SMOOTH, settle: Scalar | None = None,
) -> LoadLoss:  # fmt: skip
    """Friction of a guide or rail: mu times the forces on its sides, against the rate of a prismatic joint.

        mu (|F| + 2 |N| / length),   F and N the force and the moment across the guide

    The load contains what friction itself does to the machine: it is solved with the accelerations. Where there is no such
    motion, or several (Painleve's paradox), a run stops and names the joint.

    Args:
        name: unique among the forces.
        joint: name of the prismatic joint, also of one that closes a loop.
        coefficient: mu [1].
        length: of the guide, by which moments press on both of its ends [m]; None, the default: they cause no friction.
        static: coefficient at the onset of motion [1]; equal to `coefficient` if None.
        stribeck: speed over which it drops to `coefficient` [m/s], 0.01 by default.
        smooth: speed below which friction grows with the speed [m/s], 0.001 by default: the joint creeps under load.
        settle: time in which the joint comes to rest, and stays there, where friction can hold it [s], longer than a step;
            None, the default: it creeps instead.
    Returns: a force, for `forces` of a mechanism.
    Raises ModelError: a number below zero, static below sliding friction; in the mechanism, a joint of another kind; where its
    equations are needed, a load that redundant constraints share, or servo constraints.

    Example:
        A cart of 3 kg slides with 0.1 of its weight against it:

        >>> import pfaffian as pf
        >>> cart, rail = pf.body("cart", mass=3.0), pf.joint("rail", "prismatic", "world", "cart", axis=(1, 0, 0))
        >>> m = pf.mechanism("cart", [cart], [rail], forces=[pf.forces.guide_friction("shoes", "rail", 0.1)])
        >>> pf.forward_dynamics(m, [0.0], [1.0]).v_dot.round(3)
        array([-0.981])
    """
    what = f"force {name!r}"
    size = ca.SX(0) if length is None else positive(length, f"{what}: length")
    return _loss(name, joint, GUIDE, ca.vertcat(size, 0), _Dry(coefficient, static, stribeck, smooth, settle))


def pin_friction(
    name: str, joint: str, coefficient: Scalar, radius: Scalar, *, collar: Scalar = 0.0, static: Scalar | None = None,
    stribeck: Scalar = 0.01, smooth: Scalar = SMOOTH, settle: Scalar | None = None,
) -> LoadLoss:  # fmt: skip
    """Friction of a pin or a bearing by its radius: the moment mu r |F| against the rate of a revolute joint.

        mu (radius |F_across| + collar |F_along|)

    Args:
        name: unique among the forces.
        joint: name of the revolute joint, also of one that closes a loop.
        coefficient: mu [1].
        radius: of the pin, or the mean radius of a bearing [m].
        collar: mean radius of the face that carries the force along the axis [m], zero by default.
        static: coefficient at the onset of motion [1]; equal to `coefficient` if None.
        stribeck: speed over which it drops to `coefficient` [rad/s], 0.01 by default.
        smooth: speed below which friction grows with the speed [rad/s], 0.001 by default.
        settle: time in which the joint comes to rest where friction can hold it [s]; None, the default: it creeps.
    Returns: a force, for `forces` of a mechanism; see `guide_friction`.
    Raises ModelError: as `guide_friction`; also a radius that is not above zero.

    Example:
        >>> import pfaffian as pf
        >>> wheel = pf.body("wheel", mass=10.0, inertia=1.0)
        >>> axle = pf.joint("axle", "revolute", "world", "wheel", axis=(0, 1, 0))
        >>> m = pf.mechanism("wheel", [wheel], [axle], forces=[pf.forces.pin_friction("journal", "axle", 0.1, 0.02)])
        >>> pf.forward_dynamics(m, [0.0], [5.0]).v_dot.round(4)  # -0.1 * 0.02 * 98.1 / 1
        array([-0.1962])
    """
    what = f"force {name!r}"
    radii = ca.vertcat(positive(radius, f"{what}: radius"), not_negative(collar, f"{what}: collar"))
    return _loss(name, joint, PIN, radii, _Dry(coefficient, static, stribeck, smooth, settle))


def screw_friction(
    name: str, joint: str, coefficient: Scalar, radius: Scalar, *, static: Scalar | None = None, stribeck: Scalar = 0.01,
    smooth: Scalar = SMOOTH, settle: Scalar | None = None,
) -> LoadLoss:  # fmt: skip
    """Friction on the thread of a screw or a worm, against the rate of a helical joint with a square thread.

    The flank carries N = |F| / (cos l -+ mu sin l) for the force F along the axis, l being the lead angle, tan l = pitch /
    radius; its friction takes mu N radius / cos l from the torque. A screw that drives its load thus has the efficiency
    tan l / tan(l + atan mu).

    Args:
        name: unique among the forces.
        joint: name of the helical joint of the tree.
        coefficient: mu [1]; with flanks inclined by an angle b, divide by cos b.
        radius: mean radius of the thread [m].
        static, stribeck, smooth, settle: as of `pin_friction`: None, 0.01 rad/s, 0.001 rad/s and None by default.
    Returns: a force, for `forces` of a mechanism; see `guide_friction`.
    Raises ModelError: as `guide_friction`; also a radius that is not above zero.

    Example:
        >>> import pfaffian as pf
        >>> nut = pf.joint("screw", "helical", "world", "nut", axis=(0, 0, 1), pitch=0.002)
        >>> thread = pf.forces.screw_friction("thread", "screw", 0.1, 0.02)
        >>> m = pf.mechanism("jack", [pf.body("nut", mass=100.0, inertia=0.01)], [nut], forces=[thread])
        >>> pf.inverse_dynamics(m, [0.0], [1.0], [0.0]).u.round(3)  # 981 N * 0.02 m * tan(l + atan 0.1)
        array([3.964])
    """
    what = f"force {name!r}"
    r = positive(radius, f"{what}: radius")
    return _loss(name, joint, SCREW, ca.vertcat(r, 0), _Dry(coefficient, static, stribeck, smooth, settle))


def gear_loss(
    name: str, joint: str, efficiency: Scalar, *, backward: Scalar | None = None, smooth: Scalar = SMOOTH
) -> LoadLoss:
    """The loss of a gear head between the motors of a joint and the joint itself, in proportion to their torque.

    While the motors drive, the joint gets `efficiency` times their torque. While the load drives, the motors feel `backward`
    times its torque.

    Args:
        name: unique among the forces.
        joint: name of a joint with one velocity, on which actuators act.
        efficiency: above 0, at most 1.
        backward: efficiency while the load drives, above 0, at most 1; None, the default: as `efficiency`.
        smooth: speed below which the loss grows with the speed [rad/s, m/s], 0.001 by default.
    Returns: a force, for `forces` of a mechanism; see `guide_friction`.
    Raises ModelError: an efficiency out of its range; in the mechanism, a joint of another kind.

    Example:
        >>> import pfaffian as pf
        >>> arm, hinge = pf.body("arm", mass=1.0, inertia=2.0), pf.joint("hinge", "revolute", "world", "arm", axis=(0, 0, 1))
        >>> motor, head = pf.actuator("motor", "hinge"), pf.forces.gear_loss("head", "hinge", 0.75)
        >>> m = pf.mechanism("arm", [arm], [hinge], actuators=[motor], forces=[head])
        >>> pf.forward_dynamics(m, [0.0], [1.0], u=[8.0]).v_dot.round(3)
        array([3.])
    """
    what = f"force {name!r}"
    back = efficiency if backward is None else backward
    forth, back = (_efficiency(x, f"{what}: {word}") for x, word in ((efficiency, "efficiency"), (back, "backward")))
    s0 = positive(smooth, f"{what}: smooth")
    return LoadLoss(name, joint, GEAR, forth, back, ca.SX(1), ca.SX.ones(2, 1), s0, None)


def _efficiency(x: Any, what: str) -> ca.SX:
    """An efficiency, checked. Raises ModelError: not above 0, or above 1."""
    e = scalar(x, what)
    value = at_defaults(e)
    if value is not None and not 0 < value.item() <= 1:
        raise ModelError(f"{what} must be above 0 and at most 1, got {value.item():g}")
    return e


class _Dry(NamedTuple):
    """Dry friction as a caller gives it."""

    coefficient: Any
    static: Any
    stribeck: Any
    smooth: Any
    settle: Any


def _loss(name: str, joint: str, carrier: str, levers: ca.SX, dry: _Dry) -> LoadLoss:
    """A LoadLoss from numbers, checked."""
    what = f"force {name!r}"
    if not isinstance(joint, str):
        raise ModelError(f"{what}: joint must be the name of a joint, got {brief(joint)}")
    C = not_negative(dry.coefficient, f"{what}: coefficient")
    S = C if dry.static is None else not_negative(dry.static, f"{what}: static")
    excess = at_defaults(S - C)
    if excess is not None and excess.item() < 0:
        raise ModelError(f"{what}: static friction is less than sliding friction by {-excess.item():g}")
    speeds = positive(dry.stribeck, f"{what}: stribeck"), positive(dry.smooth, f"{what}: smooth")
    time = None if dry.settle is None else positive(dry.settle, f"{what}: settle")
    return LoadLoss(name, joint, carrier, C, S, speeds[0], levers, speeds[1], time)
