"""Forces: actuators, wrenches, springs between bodies, and functions of the kinematics."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import casadi as ca
import numpy as np

from pfaffian.errors import ModelError, brief, is_one_of
from pfaffian.model import reprs
from pfaffian.model.data import data
from pfaffian.model.load_loss import LoadLoss
from pfaffian.model.number import Scalar, direction, interval, is_whole, scalar, vector
from pfaffian.model.path_force import PathSpring, Winch
from pfaffian.model.traced_function import untraced


@data
class Actuator:
    """An actuator with one input u [N or N m] on one velocity of a joint: the generalised force gear * u.

    component: number of the velocity among those of the joint, from 0.
    """

    name: str
    joint: str
    component: int
    gear: ca.SX
    limits: tuple[float, float]

    @property
    def ends(self) -> tuple[tuple[str, int], ...]:
        """The velocity on which the actuator acts: a joint, and the number of the velocity among those of the joint."""
        return ((self.joint, self.component),)

    def __repr__(self) -> str:
        low, high = self.limits
        parts = [f"on {self.joint!r}", f"velocity {self.component}", f"gear {reprs.number(self.gear)}"]
        return reprs.words(self, *parts, f"from {low:g} to {high:g}", name=self.name)


@data
class Thruster:
    """An actuator with one input u [N] on a body: the force axis * u at a point, and the moment torque * axis * u.

    point: (3, 1) in the body [m].
    axis: (3, 1) unit vector along the body's axes.
    torque: moment per force [m].
    """

    name: str
    body: str
    point: ca.SX
    axis: ca.SX
    torque: ca.SX
    limits: tuple[float, float]
    unit: ClassVar[str] = "N"

    @property
    def ends(self) -> tuple[tuple[str, int], ...]:
        """The velocities of joints on which it acts directly: none."""
        return ()

    @property
    def wrench(self) -> ca.SX:
        """(6, 1) wrench about the point, along the body's axes, per unit of the input."""
        return ca.vertcat(self.axis, self.torque * self.axis)

    def __repr__(self) -> str:
        low, high = self.limits
        parts = [f"on {self.body!r} at {reprs.number(self.point, 'm')}", f"along {reprs.number(self.axis)}"]
        parts += [f"torque {reprs.number(self.torque, 'm')}", f"from {low:g} to {high:g}"]
        return reprs.words(self, *parts, name=self.name)


@data
class Transmission:
    """An actuator with one input u on several velocities of joints: the generalised force gear * u along each.

    joints: (n,) names of the joints.
    components: (n,) number of the velocity among those of its joint, from 0.
    gears: (n, 1) [N or N m per unit of u].
    """

    name: str
    joints: tuple[str, ...]
    components: tuple[int, ...]
    gears: ca.SX
    limits: tuple[float, float]

    @property
    def ends(self) -> tuple[tuple[str, int], ...]:
        """The velocities on which it acts: for each a joint, and the number of the velocity among those of the joint."""
        return tuple(zip(self.joints, self.components, strict=True))

    def __repr__(self) -> str:
        low, high = self.limits
        ends = enumerate(self.ends)
        parts = [f"{reprs.number(self.gears[i])} on {joint!r}, velocity {component}" for i, (joint, component) in ends]
        return reprs.words(self, *parts, f"from {low:g} to {high:g}", name=self.name)


@data
class Wrench:
    """A wrench [force; moment] on a body about `point` of the body, and the opposite wrench on the body that exerts it.

    axes: LOCAL (body axes) or WORLD.
    value: (6, 1), a function of Kinematics that gives it, or None for six inputs of the run.
    by: name of the body that exerts it; None for a wrench from outside the machine.
    """

    name: str
    body: str
    point: ca.SX
    axes: str
    value: ca.SX | Callable[[Any], Any] | None
    by: str | None = None

    def __repr__(self) -> str:
        parts = [f"on {self.body!r} at {reprs.number(self.point, 'm')}", _value_text(self.value), self.axes]
        parts += [f"by {self.by!r}"] if self.by is not None else []
        return reprs.words(self, *parts, name=self.name)


def _value_text(value: Any) -> str:
    """The value of a wrench as its repr shows it."""
    return "six inputs" if value is None else reprs.function(value) if callable(value) else reprs.number(value, "N, N m")


@data
class Spring:
    """A massless spring and damper between two points, which pull with k (l - rest) + d l_dot along the line between them."""

    name: str
    body_a: str
    point_a: ca.SX
    body_b: str
    point_b: ca.SX
    stiffness: ca.SX
    rest: ca.SX
    damping: ca.SX

    def __repr__(self) -> str:
        parts = [f"{self.body_a!r} to {self.body_b!r}", f"stiffness {reprs.number(self.stiffness, 'N/m')}"]
        parts += [f"rest {reprs.number(self.rest, 'm')}", f"damping {reprs.number(self.damping, 'N s/m')}"]
        return reprs.words(self, *parts, name=self.name)


@data
class GeneralisedForce:
    """A force f(k) along the velocities of one joint, or along all of v. It acts within joints, as an actuator does."""

    name: str
    function: Callable[[Any], Any]
    joint: str | None = None

    def __repr__(self) -> str:
        along = "v" if self.joint is None else repr(self.joint)
        return reprs.words(self, reprs.function(self.function), f"on {along}", name=self.name)


@data
class Potential:
    """A potential V(q, t) [J], whose generalised force is -(dV/dq K)^T."""

    name: str
    function: Callable[[Any], Any]

    def __repr__(self) -> str:
        return reprs.words(self, reprs.function(self.function), name=self.name)


@data
class Dissipation:
    """A dissipation function R(q, v, t) [W], whose generalised force is -(dR/dv)^T."""

    name: str
    function: Callable[[Any], Any]

    def __repr__(self) -> str:
        return reprs.words(self, reprs.function(self.function), name=self.name)


@data
class KineticEnergy:
    """A kinetic energy T(q, v, t) [J], quadratic in v, which adds to mass matrix and bias force by Hamel's equations."""

    name: str
    function: Callable[[Any], Any]

    def __repr__(self) -> str:
        return reprs.words(self, reprs.function(self.function), name=self.name)


Force = Wrench | Spring | PathSpring | GeneralisedForce | Potential | Dissipation | KineticEnergy | LoadLoss
Motor = Actuator | Thruster | Transmission | Winch


def joints_of(f: Force | Motor) -> tuple[str, ...]:
    """The joints, coordinates or closures that a force or an actuator names; empty if it names none."""
    if isinstance(f, LoadLoss):
        return (f.joint,)
    if isinstance(f, GeneralisedForce):
        return () if f.joint is None else (f.joint,)
    if isinstance(f, (PathSpring, Winch)):
        return f.path.joints
    if isinstance(f, (Actuator, Thruster, Transmission)):
        return tuple(joint for joint, _ in f.ends)
    law = f.value if isinstance(f, Wrench) else () if isinstance(f, Spring) else f.function
    return getattr(untraced(law), "joints", ())


def actuator(
    name: str, joint: str, *, component: int = 0, gear: Scalar = 1.0, limits: tuple[float, float] = (-np.inf, np.inf)
) -> Actuator:
    """An actuator: one input u on one velocity of a joint, with the generalised force gear * u.

    Args:
        name: unique among the actuators; also the name of its input.
        joint: name of the joint, or of coordinates.
        component: number of the velocity among those of the joint, from 0; 0 by default.
        gear: [1], one by default.
        limits: (low, high) of u [N or N m], none by default; the joint's effort limits u further. A result reports when and by
            how much u exceeded its limits; `Scheme(saturate=True)` clips u to them.
    Raises ModelError: a component that is not a whole number, or limits that are the wrong way round.

    Example:
        >>> import pfaffian as pf
        >>> cart, rail = pf.body("cart", mass=2.0), pf.joint("rail", "prismatic", "world", "cart", axis=(1, 0, 0))
        >>> m = pf.mechanism("cart", [cart], [rail], actuators=[pf.actuator("motor", "rail", gear=10.0)])
        >>> pf.forward_dynamics(m, [0.0], u={"motor": 1.0}).v_dot.round(9)  # gear u / mass
        array([5.])
    """
    what = f"actuator {name!r}"
    if not is_whole(component):
        raise ModelError(f"{what}: component must be a whole number, got {brief(component)}")
    return Actuator(name, joint, int(component), scalar(gear, f"{what}: gear"), interval(limits, f"{what}: limits"))


def transmission(
    name: str, gears: Mapping[str | tuple[str, int], Scalar], *, limits: tuple[float, float] = (-np.inf, np.inf)
) -> Transmission:
    """An actuator on several velocities at once: a tendon, a differential, a motor that two fingers share.

    One input u gives the generalised force gear * u along each of the velocities.

    Args:
        name: unique among the actuators; also the name of its input.
        gears: dict of joint -> gear [N or N m per unit of u]; for a joint with several velocities (joint, number) -> gear.
        limits: (low, high) of u, none by default. A result reports when and by how much u exceeded its limits;
            `Scheme(saturate=True)` clips u to them.
    Raises ModelError: no joint, gears that are not numbers, or limits that are the wrong way round.

    Example:
        >>> import pfaffian as pf
        >>> bodies = [pf.body("left", mass=2.0), pf.body("right", mass=4.0)]
        >>> joints = [pf.joint(b.name, "prismatic", "world", b.name, axis=(1, 0, 0)) for b in bodies]
        >>> rope = pf.forces.transmission("rope", {"left": 1.0, "right": -1.0})
        >>> m = pf.mechanism("pulley", bodies, joints, actuators=[rope])
        >>> pf.forward_dynamics(m, [0.0, 0.0], u={"rope": 8.0}).v_dot.round(9)
        array([ 4., -2.])
    """
    what = f"actuator {name!r}"
    if not isinstance(gears, Mapping) or not gears:
        raise ModelError(f"{what}: gears must be a dict of joint -> gear, got {brief(gears)}")
    ends = [(key, 0) if isinstance(key, str) else key for key in gears]
    for end in ends:
        if not (isinstance(end, tuple) and len(end) == 2 and isinstance(end[0], str) and type(end[1]) is int):
            raise ModelError(f"{what}: gears: each key must be a joint or (joint, number of its velocity), got {brief(end)}")
    numbers = ca.vertcat(*[scalar(x, f"{what}: gear of {key!r}") for key, x in gears.items()])
    return Transmission(
        name, tuple(j for j, _ in ends), tuple(i for _, i in ends), numbers, interval(limits, f"{what}: limits")
    )


def thruster(
    name: str, body: str, *, axis: Any = (0, 0, 1), point: Any = (0, 0, 0), torque: Scalar = 0.0,
    limits: tuple[float, float] = (-np.inf, np.inf),
) -> Thruster:  # fmt: skip
    """An actuator that pushes a body from outside: a jet, a rope, or a propeller with the thrust u = k_T |w| w as input [N].

    Args:
        name: unique among the actuators; also the name of its input.
        body: name of the body.
        axis: (3,) direction of the force for u > 0, along the body's axes, of any length; z by default.
        point: (3,) at which the force acts, in the body [m]; its origin by default.
        torque: moment about the axis per force [m], zero by default; -k_M / k_T for a right-handed propeller, k_M / k_T for a
            left-handed one.
        limits: (low, high) of u [N], none by default. A result reports when and by how much u exceeded its limits;
            `Scheme(saturate=True)` clips u to them.
    Raises ModelError: an axis that is zero, or the wrong number of values.

    Example:
        >>> import pfaffian as pf
        >>> jet = pf.forces.thruster("jet", "cart", axis=(1, 0, 0), limits=(0, 8))
        >>> cart, rail = pf.body("cart", mass=2.0), pf.joint("rail", "prismatic", "world", "cart", axis=(1, 0, 0))
        >>> m = pf.mechanism("cart", [cart], [rail], actuators=[jet])
        >>> pf.forward_dynamics(m, [0.0], u={"jet": 6.0}).v_dot.round(9)
        array([3.])
    """
    what = f"actuator {name!r}"
    if not isinstance(body, str):
        raise ModelError(f"{what}: body must be the name of a body, got {brief(body)}")
    a, t = direction(axis, f"{what}: axis"), scalar(torque, f"{what}: torque")
    return Thruster(name, body, vector(point, 3, f"{what}: point"), a, t, interval(limits, f"{what}: limits"))


def wrench(
    name: str, body: str, value: Any = None, *, point: Any = (0, 0, 0), axes: str = "WORLD", by: str | None = None
) -> Wrench:
    """A wrench on a body, and the opposite wrench on the body that exerts it, about the same point in space.

    Args:
        name: unique among the forces.
        body: name of the body.
        value: (6,) force [N] and moment [N m]; or a function f(k) that gives them, k being the mechanism's Kinematics (k.pose,
            k.twist, k.t, ...); None, the default, makes them six inputs of the run: name.fx ... name.nz.
        point: (3,) about which the wrench acts, in the body [m]; its origin by default.
        axes: "WORLD", the default, or "LOCAL" for the body's axes.
        by: name of the body that exerts the wrench; None for a wrench from outside the machine.
    Raises ModelError: body or by that is not text, other axes, or the wrong number of values.

    Example:
        >>> import pfaffian as pf
        >>> cart, rail = pf.body("cart", mass=2.0), pf.joint("rail", "prismatic", "world", "cart", axis=(1, 0, 0))
        >>> push = pf.wrench("push", "cart", lambda k: [4 * k.t, 0, 0, 0, 0, 0])
        >>> m = pf.mechanism("cart", [cart], [rail], forces=[push])
        >>> pf.forward_dynamics(m, [0.0], t=3.0).v_dot.round(9)  # 12 N on 2 kg
        array([6.])
    """
    what = f"force {name!r}"
    if not isinstance(body, str) or not isinstance(by, str | None):
        raise ModelError(f"{what}: body and by must be names of bodies, got {brief(body)} and {brief(by)}")
    if not is_one_of(axes, ("LOCAL", "WORLD")):
        raise ModelError(f"{what}: axes {brief(axes)} must be LOCAL or WORLD")
    force = value if value is None or callable(value) else vector(value, 6, f"{what}: value")
    return Wrench(name, body, vector(point, 3, f"{what}: point"), axes, force, by)


def generalised_force(name: str, f: Callable[[Any], Any], *, joint: str | None = None) -> GeneralisedForce:
    """A force f(k) along the velocities of a joint or of coordinates, or along all of v.

    It acts within the joints, as actuators do. A force that acts on a body is a `wrench`.

    Args:
        name: unique among the forces.
        f: function of the mechanism's Kinematics k (k.q, k.v, k.t, poses, twists, ...) giving one number for each
            velocity of the joint, or (nv,) numbers without a joint [N, N m].
        joint: name of a joint or of coordinates; None, the default, for all of v.
    Raises ModelError: f is not a function.

    Example:
        >>> import pfaffian as pf
        >>> cart, rail = pf.body("cart", mass=2.0), pf.joint("rail", "prismatic", "world", "cart", axis=(1, 0, 0))
        >>> cubic = pf.forces.generalised_force("cubic", lambda k: -8 * k.q[0]**3, joint="rail")
        >>> m = pf.mechanism("cart", [cart], [rail], forces=[cubic])
        >>> pf.forward_dynamics(m, [1.0]).v_dot.round(9)
        array([-4.])
    """
    return GeneralisedForce(name, _function(f, f"force {name!r}: f"), joint)


def potential(name: str, V: Callable[[Any], Any]) -> Potential:
    """The force -(dV/dq K)^T of a potential V(k), which becomes part of the energy.

    Where V depends on time, the energy changes at the additional rate dV/dt (q fixed): the power that the change of V
    supplies. V must not depend on velocities.

    Args:
        name: unique among the forces.
        V: function of the mechanism's Kinematics k (k.q, k.joint, k.pose, k.t, ...) giving a number [J].
    Raises ModelError: V is not a function.

    Example:
        >>> import pfaffian as pf
        >>> cart, rail = pf.body("cart", mass=2.0), pf.joint("rail", "prismatic", "world", "cart", axis=(1, 0, 0))
        >>> m = pf.mechanism("cart", [cart], [rail], forces=[pf.forces.potential("quartic", lambda k: 2 * k.q[0]**4)])
        >>> pf.forward_dynamics(m, [1.0]).v_dot.round(9), float(pf.energy(m, [1.0]).potential)
        (array([-4.]), 2.0)
    """
    return Potential(name, _function(V, f"force {name!r}: V"))


def dissipation(name: str, R: Callable[[Any], Any]) -> Dissipation:
    """The force -(dR/dv)^T of a dissipation function R(k). [konz25 (3.37)]

    The energy changes at the rate -v^T (dR/dv)^T, which is -2 R if R is quadratic in the velocities.

    Args:
        name: unique among the forces.
        R: function of the mechanism's Kinematics k (k.q, k.v, k.twist, k.t, ...) giving a number [W].
    Raises ModelError: R is not a function.

    Example:
        >>> import pfaffian as pf
        >>> cart, rail = pf.body("cart", mass=2.0), pf.joint("rail", "prismatic", "world", "cart", axis=(1, 0, 0))
        >>> m = pf.mechanism("cart", [cart], [rail], forces=[pf.forces.dissipation("damper", lambda k: 3 * k.v[0]**2)])
        >>> pf.forward_dynamics(m, [0.0], [1.0]).v_dot.round(9)  # -6 v / mass
        array([-3.])
    """
    return Dissipation(name, _function(R, f"force {name!r}: R"))


def kinetic_energy(name: str, T: Callable[[Any], Any]) -> KineticEnergy:
    """The inertia forces of a kinetic energy T(k), which is added to that of the bodies. [konz25 (2.31)]

    T = M_ij v^i v^j / 2 + b_i v^i + T0 with M, b and T0 functions of q and t. Hamel's equations add d/dt dT/dv^i + gamma_ij^k
    v^j dT/dv^k - d_i T to M v_dot + c. To the energy they add v^i dT/dv^i - T = M_ij v^i v^j / 2 - T0, so that the energy is
    conserved where T does not depend on t. Like the armature of a rotor, T acts within the joints and not on any body.

    Args:
        name: unique among the forces.
        T: function of the mechanism's Kinematics k (k.q, k.v, k.q_dot, k.twist, ...) giving a number [J], quadratic in v.
    Raises ModelError: T is not a function.

    Example:
        >>> import pfaffian as pf
        >>> cart, rail = pf.body("cart", mass=2.0), pf.joint("rail", "prismatic", "world", "cart", axis=(1, 0, 0))
        >>> flywheel = pf.forces.kinetic_energy("flywheel", lambda k: 3 * k.v[0]**2 / 2)
        >>> pf.mass_matrix(pf.mechanism("cart", [cart], [rail], forces=[flywheel]), [0.0]).round(9)  # 2 + 3
        array([[5.]])
    """
    return KineticEnergy(name, _function(T, f"force {name!r}: T"))


def _function(f: Any, what: str) -> Callable[[Any], Any]:
    """The function f unchanged. Raises ModelError: f is not callable.   what: its label in the message."""
    if not callable(f):
        raise ModelError(f"{what} must be a function of the kinematics, got {brief(f)}")
    return f


def spring(
    name: str,
    body_a: str,
    body_b: str,
    *,
    point_a: Any = (0, 0, 0),
    point_b: Any = (0, 0, 0),
    stiffness: Scalar = 0.0,
    rest: Scalar = 0.0,
    damping: Scalar = 0.0,
) -> Spring:
    """A massless spring and damper between two points of two bodies: it pulls with k (l - rest) + d l_dot along their line.

    Unless rest and damping are zero, the points must never coincide, since the line between them then has no direction.

    Args:
        name: unique among the forces.
        body_a, body_b: names of the bodies, "world" for the fixed frame.
        point_a, point_b: (3,) in the frame of each body [m]; its origin by default.
        stiffness: k [N/m], zero by default.
        rest: free length, at which the spring exerts no force [m], zero by default.
        damping: d [N s/m], zero by default.
    Raises ModelError: the wrong number of values.

    Example:
        >>> import pfaffian as pf
        >>> cart, rail = pf.body("cart", mass=2.0), pf.joint("rail", "prismatic", "world", "cart", axis=(1, 0, 0))
        >>> rope = pf.spring("rope", "world", "cart", stiffness=40.0, rest=0.9)
        >>> m = pf.mechanism("cart", [cart], [rail], forces=[rope])
        >>> pf.forward_dynamics(m, [1.0]).v_dot.round(9)  # -40 (1 - 0.9) / 2
        array([-2.])
    """
    what = f"force {name!r}"
    return Spring(
        name,
        body_a,
        vector(point_a, 3, f"{what}: point_a"),
        body_b,
        vector(point_b, 3, f"{what}: point_b"),
        scalar(stiffness, f"{what}: stiffness"),
        scalar(rest, f"{what}: rest"),
        scalar(damping, f"{what}: damping"),
    )
