"""Parts of suspensions: bushes by their rates, and anti-roll bars."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import casadi as ca

from pfaffian.errors import ModelError, brief
from pfaffian.maths import se3
from pfaffian.model import reprs
from pfaffian.model.compound import Compound
from pfaffian.model.data import data
from pfaffian.model.force import Dissipation, Potential
from pfaffian.model.joint import axis_frame
from pfaffian.model.number import Scalar, at_defaults, not_negative, positive, scalar, single, vector
from pfaffian.model.pose import Pose
from pfaffian.model.ranges import Range
from pfaffian.parts.elastic import Bushing, bushing
from pfaffian.parts.two_ends import check_two_ends


def bush(
    name: str, body_a: str, body_b: str, *, axis: Any = None, point: Any = (0, 0, 0), radial: Scalar, axial: Scalar,
    torsional: Scalar, cardanic: Scalar, damping: Scalar = 0.0, rest: Any = (0, 0, 0),
) -> Compound:  # fmt: skip
    """A rubber bush between two bodies at a point, with an axis and its four rates.

    For small displacements d and turns w of body_b at the point, the force is -radial d across the axis and -axial d along it,
    the moment -cardanic w across it and -torsional w along it. It is a `bushing` with this stiffness.

    Args:
        name: of the bush; its parts are called "name spring" and "name damper".
        body_a, body_b: names, "world" for the fixed frame.
        axis: (3,) of the bush, along the axes of body_b, of any length but zero.
        point: (3,) its middle, in body_b [m]; the origin by default.
        radial, axial: rates against displacements across and along the axis [N/m].
        torsional, cardanic: rates against turns about the axis and about those across it [N m/rad].
        damping: damping per rate, the same for all [s]; zero by default.
        rest: the pose of body_b in body_a at which the bush is relaxed; identity by default.
    Returns: a compound of spring and damper, for forces=[...].
    Raises ModelError: no axis, or one that is zero; a rate below zero; radial or axial of zero.

    Example:
        >>> import pfaffian as pf
        >>> arm, hinge = pf.body("arm", mass=2.0, inertia=0.5), pf.joint("hinge", "revolute", "world", "arm", axis=(1, 0, 0))
        >>> rates = {"radial": 1e6, "axial": 2e5, "torsional": 40.0, "cardanic": 90.0}
        >>> m = pf.mechanism("arm", [arm], [hinge], forces=[pf.forces.bush("eye", "world", "arm", axis=(1, 0, 0), **rates)])
        >>> pf.forward_dynamics(m, [0.01]).v_dot.round(3)  # -40 * sin(0.01) / 0.5
        array([-0.8])
    """
    what = f"force {name!r}"
    if axis is None:
        raise ModelError(f"{what}: a bush needs its axis, three numbers along the axes of {brief(body_b)}: axis=(0, 1, 0)")
    across, along = positive(radial, f"{what}: radial"), positive(axial, f"{what}: axial")
    about, tilt = not_negative(torsional, f"{what}: torsional"), not_negative(cardanic, f"{what}: cardanic")
    frame = Pose(axis_frame(axis, what).R, vector(point, 3, f"{what}: point"))
    X = se3.Ad_inv(frame.R, frame.p)
    K = ca.densify(X.T @ ca.diag(ca.vertcat(across, across, along, tilt, tilt, about)) @ X)
    K = (K + K.T) / 2
    d = not_negative(damping, f"{what}: damping")
    made = bushing(name, body_a, body_b, stiffness=K, damping=d * K, rest=rest)
    assert isinstance(made.of, Bushing)
    above = Range("radial", across, above=True), Range("axial", along, above=True)
    ranges = (*above, Range("torsional", about), Range("cardanic", tilt), Range("damping", d))
    return replace(made, of=replace(made.of, ranges=ranges))


def anti_roll_bar(
    name: str, left: str, right: str, stiffness: Scalar, *, ratio: Scalar = 1.0, damping: Scalar = 0.0
) -> Compound:
    """A torsion bar between the two arms of an axle: its twist is the difference of their angles.

        V = stiffness (q_left - ratio q_right)^2 / 2

    It resists roll alone: where both arms move alike it does not twist.

    Args:
        name: of the bar; its parts are called "name spring" and "name damper".
        left, right: names of the joints about which the arms turn; one coordinate each.
        stiffness: of the bar between its ends [N m/rad].
        ratio: angle of the left arm per angle of the right one when both wheels move alike; 1 by default, -1 where the axes of
            the joints are mirrored.
        damping: of the twist [N m s/rad], zero by default.
    Returns: a compound of spring and damper, for forces=[...].
    Raises ModelError: a rate below zero; both ends on one joint; in the mechanism, an unknown joint.

    Example:
        >>> import pfaffian as pf
        >>> arms = [pf.body(side, mass=3.0, inertia=0.5) for side in ("left", "right")]
        >>> joints = [pf.joint(b.name, "revolute", "world", b.name, axis=(1, 0, 0)) for b in arms]
        >>> bar = pf.forces.anti_roll_bar("bar", "left", "right", 400.0)
        >>> m = pf.mechanism("axle", arms, joints, forces=[bar])
        >>> pf.forward_dynamics(m, [0.1, 0.0]).v_dot.round(6)
        array([-80.,  80.])
    """
    what = f"force {name!r}"
    check_two_ends(what, "joint", left, right)
    k, d = not_negative(stiffness, f"{what}: stiffness"), not_negative(damping, f"{what}: damping")
    bar = Twist(left, right, scalar(ratio, f"{what}: ratio"))
    if (turns := at_defaults(bar.ratio)) is not None and not turns.any():
        raise ModelError(f"{what}: ratio 0 leaves {right!r} without the bar; give the left angle per right angle, 1 or -1")
    spring, damper = Potential(f"{name} spring", BarSpring(bar, k)), Dissipation(f"{name} damper", BarDamper(bar, d))
    return Compound(name, (spring,) if d.is_zero() else (spring, damper), AntiRollBar(left, right, k, bar.ratio, d))


@data
class AntiRollBar:
    """An anti-roll bar: the arguments of `anti_roll_bar`, checked."""

    left: str
    right: str
    stiffness: ca.SX
    ratio: ca.SX
    damping: ca.SX

    @property
    def ranges(self) -> tuple[Range, ...]:
        """What its numbers must be."""
        return Range("stiffness", self.stiffness), Range("damping", self.damping)


@data
class Twist:
    """The twist of a bar between two joints of one coordinate."""

    left: str
    right: str
    ratio: ca.SX

    def angle(self, k: Any) -> ca.SX:
        """(1, 1) the twist [rad]."""
        return single(k.joint(self.left), self.left, "a bar") - self.ratio * single(k.joint(self.right), self.right, "a bar")

    def rate(self, k: Any) -> ca.SX:
        """(1, 1) the rate of the twist [rad/s]."""
        return k.joint_rate(self.left) - self.ratio * k.joint_rate(self.right)


@data
class BarSpring:
    """V(k) of an anti-roll bar."""

    bar: Twist
    stiffness: ca.SX

    @property
    def joints(self) -> tuple[str, str]:
        return self.bar.left, self.bar.right

    def __call__(self, k: Any) -> ca.SX:
        return self.stiffness * self.bar.angle(k) ** 2 / 2

    def __repr__(self) -> str:
        return reprs.words(self, f"{self.bar.left!r} to {self.bar.right!r}", reprs.number(self.stiffness, "N m/rad"))


@data
class BarDamper:
    """R(k) of an anti-roll bar."""

    bar: Twist
    damping: ca.SX

    @property
    def joints(self) -> tuple[str, str]:
        return self.bar.left, self.bar.right

    def __call__(self, k: Any) -> ca.SX:
        return self.damping * self.bar.rate(k) ** 2 / 2

    def __repr__(self) -> str:
        return reprs.words(self, f"{self.bar.left!r} to {self.bar.right!r}")
