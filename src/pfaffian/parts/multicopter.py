"""Multicopters: a flying body, arms that may tilt, and propellers that turn on the arms. [konz25 5.2]

`multicopter` is the full model, in which propellers are bodies driven by motors. `thrust_multicopter` is the simplified model
whose inputs are thrusts. Arm k points in the direction of azimuth phi_k and tilts by theta_k about its own axis. Its propeller
turns at eps_k varpi_k about

    H3 = (sin phi sin theta, -cos phi sin theta, cos theta),   eps = 1 anticlockwise as seen from above, -1 clockwise,

and pushes along H3 with the thrust kF varpi^2. `TRICOPTER` and `QUADCOPTER` are the machines of the thesis, Table 5.1.
`bicopter` has two propellers that tilt and lean outwards; `thrust_polygon` gives linear limits of their inputs. [konz25
4.8.4]
"""

from __future__ import annotations

from math import inf, pi
from types import MappingProxyType
from typing import Any

import casadi as ca
import numpy as np

from pfaffian.errors import ModelError, brief
from pfaffian.maths import so3
from pfaffian.model import reprs
from pfaffian.model.body import body, tensor
from pfaffian.model.data import data
from pfaffian.model.force import Wrench, actuator, thruster, wrench
from pfaffian.model.joint import joint
from pfaffian.model.mechanism import Mechanism, mechanism
from pfaffian.model.number import Scalar, floats, is_whole, named_float, not_negative, scalar, several, vector
from pfaffian.model.pose import pose
from pfaffian.parts.fluid import propeller

_PROPELLER = {"rotor": 3.6e-5, "thrust": 1.44e-5, "torque": 2.45e-7, "friction": 0.005}
"""Arguments of `multicopter` for the propellers of both machines."""

TRICOPTER = MappingProxyType({
    "azimuths": (pi / 3, pi, 5 * pi / 3), "spins": (-1, 1, 1),
    "mass": 1.251, "com": (1.7e-3, 0.6e-3, 0.0), "inertia": (19.2e-3, 19.2e-3, 30.8e-3, -0.8e-3, -1.2e-3, -2.1e-3),
    "arm": 0.240, "height": -6e-3, "tilt": (0.9, 0.002), **_PROPELLER,
    "drag": (0.29, 0.45), "drag_height": 4.0e-3, "turning_drag": (8.5e-3, 14e-3),
    "bias": (-0.21, -0.02, 0.03, 0.037, -0.024, -0.003),
})  # fmt: skip
"""Arguments of `multicopter` for the tricopter of the thesis, a read-only mapping. [konz25 Table 5.1]

Example:
    >>> import pfaffian as pf
    >>> m = pf.multicopters.multicopter("tricopter", **pf.multicopters.TRICOPTER)
    >>> m.u_names
    ('servo 1', 'servo 2', 'servo 3', 'motor 1', 'motor 2', 'motor 3')
"""

QUADCOPTER = MappingProxyType({
    "azimuths": (0.0, pi / 2, pi, 3 * pi / 2), "spins": (1, -1, 1, -1),
    "mass": 1.001, "com": (-1.8e-3, 0.6e-3, 0.0), "inertia": (17.9e-3, 18.0e-3, 30.7e-3, -0.7e-3, 0.2e-3, 0.0),
    "arm": 0.240, "height": 0.0, "tilt": None, **_PROPELLER,
    "drag": (0.30, 0.36), "drag_height": 12e-3, "turning_drag": (-1.5e-3, 10e-3),
    "bias": (0.09, 0.02, -0.09, 0.049, -0.015, -0.012),
})  # fmt: skip
"""Arguments of `multicopter` for the quadcopter of the thesis, a read-only mapping. [konz25 Table 5.1]

Its rotational drag coefficient about x and y is negative: this is the value identified in the thesis.

Example:
    >>> import pfaffian as pf
    >>> m = pf.multicopters.multicopter("quadcopter", **pf.multicopters.QUADCOPTER)
    >>> m.u_names
    ('motor 1', 'motor 2', 'motor 3', 'motor 4')
"""


def multicopter(
    name: str, azimuths: Any, spins: Any, *, mass: Scalar, inertia: Any, arm: Scalar, rotor: Scalar, thrust: Scalar,
    torque: Scalar, com: Any = (0, 0, 0), height: Any = 0.0, leans: Any = None, tilt: Any = None, drag: Any = (0, 0),
    drag_height: Scalar = 0.0, turning_drag: Any = (0, 0), bias: Any = (0, 0, 0, 0, 0, 0), friction: Scalar = 0.0,
    gravity: Scalar = 9.81, parameters: Any = (),
) -> Mechanism:  # fmt: skip
    """A multicopter with rotating propellers on arms that are fixed or tilt. [konz25 (5.5)-(5.9)]

    Its body `body` is on the free joint `body`. The velocities are [v; w; tilt rates; propeller rates varpi]. The inputs are
    the moments `servo 1`, ... about the arms and `motor 1`, ... about the propellers' axes [N m]. Arms and propellers have
    inertia but no mass: the body carries the mass of the whole machine. This is exact, since the mass centre of an arm with its
    propeller is on the arm's axis and both together are symmetric about it.

    Args:
        name: of the mechanism.
        azimuths: (rho,) phi of the arms [rad].
        spins: (rho,) eps of the propellers, 1 for anticlockwise as seen from above, -1 for clockwise.
        mass: m of the whole machine [kg].
        com: s (3,) mass centre of the whole machine [m]; default the origin.
        inertia: Theta of the whole machine about the origin of the body frame [kg m^2]: a number, (3,) principal moments, (6,)
            or (3, 3), as in `body`.
        arm: l_A, radial distance from the origin to a propeller [m].
        height: h_A of a propeller above the origin [m], one for all or (rho,), for coaxial propellers for instance; default 0.
        leans: (rho,) fixed angles theta of arms that do not tilt, about their own axes [rad]; None (default) for upright
            propellers.
        tilt: (Theta_A, Theta_AC) [kg m^2], inertia of an arm about its axis including its servo's rotor, and the part of it
            that acts on the body; None (default) for arms that do not tilt.
        rotor: Theta_P, inertia of a propeller including its motor's rotor [kg m^2].
        thrust: kF [N s^2].
        torque: kT [N m s^2].
        friction: tau_MB, friction moment of a motor [N m], constant because propellers must never stop; default 0.
        drag: (d_x, d_z) [kg/s], in the body's xy-plane and along z; default zero.
        drag_height: l_z, height at which the drag acts [m]; default 0.
        turning_drag: (Upsilon_x, Upsilon_z), coefficients of rotational drag [kg m^2/s]; default zero.
        bias: (6,) constant force F_B [N] and moment tau_B [N m], along the body's axes; default zero.
        gravity: [m/s^2] along -z; default 9.81.
        parameters: all Parameters that the numbers use.
    Returns:
        Mechanism.
    Raises ModelError: no arms, a number of spins other than that of the arms, spins that are not 1 or -1, the wrong number of
    values, or leans for arms that tilt.

    Example:
        >>> import pfaffian as pf
        >>> m = pf.multicopters.multicopter("quadcopter", **pf.multicopters.QUADCOPTER)
        >>> m.nv, m.u_names  # six of the body, four of the propellers
        (10, ('motor 1', 'motor 2', 'motor 3', 'motor 4'))
    """
    what = f"multicopter {name!r}"
    phi, eps = _arms(azimuths, spins, what)
    m, s, Theta_P = scalar(mass, f"{what}: mass"), vector(com, 3, f"{what}: com"), scalar(rotor, f"{what}: rotor")
    I = tensor(inertia, f"{what}: inertia") - m * (ca.dot(s, s) * ca.SX.eye(3) - s @ s.T)
    length, heights = not_negative(arm, f"{what}: arm"), _for_each_arm(height, len(phi), f"{what}: height")
    angles = _leans(leans, len(phi), tilt is not None, what)
    disc = ca.diag(ca.vertcat(Theta_P / 2, Theta_P / 2, Theta_P))
    arms, propellers, tilts, turns, servos, motors, forces = [], [], [], [], [], [], []
    for i, (at, hand, up, lean) in enumerate(zip(phi, eps, heights, angles, strict=True), start=1):
        upright = ca.SX(ca.DM(so3.rotation((0, 0, 1), at)))
        R = upright @ ca.SX(ca.DM(so3.rotation((1, 0, 0), lean))) if lean else upright
        foot = pose(ca.vertcat(length * ca.cos(at), length * ca.sin(at), up), rpy=(lean, 0, at))
        carrier, place, whole = "body", foot, disc
        if tilt is not None:
            total, outer = ca.vertsplit(vector(tilt, 2, f"{what}: tilt"))
            arm_inertia = ca.diag(ca.vertcat(outer - Theta_P / 2, outer, outer - Theta_P / 2))
            carrier, place, whole = f"arm {i}", pose(), arm_inertia + disc
            arms.append(body(carrier, 0.0, inertia=arm_inertia))
            tilts.append(
                joint(f"tilt {i}", "revolute", "body", carrier, axis=(1, 0, 0), placement=foot, armature=total - outer)
            )
            servos.append(actuator(f"servo {i}", f"tilt {i}"))
        I -= R @ whole @ R.T
        blade, axis = f"propeller {i}", (0, 0, hand)
        propellers.append(body(blade, 0.0, inertia=disc))
        turns.append(joint(blade, "revolute", carrier, blade, axis=axis, placement=place))
        motors.append(actuator(f"motor {i}", blade))
        handed = "right" if hand > 0 else "left"
        forces.append(propeller(f"thrust {i}", blade, blade, thrust=thrust, torque=torque, handed=handed, axis=axis))
        loss = -hand * scalar(friction, f"{what}: friction")
        if not loss.is_zero():
            forces.append(wrench(f"friction {i}", blade, ca.vertcat(ca.SX(5, 1), loss), axes="LOCAL", by=carrier))
    D = linear_drag_matrix(drag, drag_height, turning_drag)
    return mechanism(
        name, [body("body", m, s, inertia=I), *arms, *propellers], [joint("body", "free", "world", "body"), *tilts, *turns],
        forces=[*forces, *_drag_and_bias(D, bias, what)], actuators=[*servos, *motors], gravity=(0, 0, -gravity),
        parameters=parameters,
    )  # fmt: skip


def thrust_multicopter(
    name: str, azimuths: Any, spins: Any, *, mass: Scalar, inertia: Any, arm: Scalar, thrust: Scalar, torque: Scalar,
    height: Any = 0.0, leans: Any = None, tilting: bool = False, drag: Any = (0, 0), bias: Any = (0, 0, 0, 0, 0, 0),
    gravity: Scalar = 9.81, limits: tuple[float, float] = (-inf, inf), parameters: Any = (),
) -> Mechanism:  # fmt: skip
    """The simplified multicopter: one body about its mass centre, with the propellers' thrusts as inputs. [konz25 (5.16),
    (5.17)]

    With fixed arms the inputs are `thrust 1`, ... along H3 [N], which is z for upright propellers. With arms that tilt they are
    `up 1`, ..., F cos theta, and `across 1`, ..., F sin theta. The moment that accelerates the propellers, Theta_P varpi_dot
    about z, is neglected.

    Args:
        name: of the mechanism, whose body `body` is on the free joint `body`.
        azimuths: (rho,) phi of the arms [rad].
        spins: (rho,) eps of the propellers, 1 for anticlockwise as seen from above, -1 for clockwise.
        mass: m [kg].
        inertia: (3,) principal moments about the mass centre [kg m^2].
        arm: radial distance from the mass centre to a propeller [m].
        thrust: kF [N s^2].
        torque: kT [N m s^2]; only the ratio kT / kF matters.
        height: of a propeller above the mass centre [m], one for all or (rho,), for coaxial propellers for instance; default 0.
        leans: (rho,) fixed angles theta of arms that do not tilt, about their own axes [rad], with which six propellers can
            push in all directions; None (default) for upright propellers.
        tilting: whether the arms tilt; default False.
        drag: (d_x, d_z) [kg/s]; the coefficient d = (2 d_x + d_z) / 3 is used for all directions; default zero.
        bias: (6,) constant force F_B [N] and moment tau_B [N m], along the body's axes; default zero.
        gravity: [m/s^2] along -z; default 9.81.
        limits: (low, high) of each input [N]; default none.
        parameters: all Parameters that the numbers use.
    Returns:
        Mechanism.
    Raises ModelError: as `multicopter`.

    Example:
        >>> import numpy as np
        >>> import pfaffian as pf
        >>> numbers = {"mass": 1.0, "inertia": (0.02, 0.02, 0.03), "arm": 0.2, "thrust": 1e-5, "torque": 2e-7}
        >>> m = pf.multicopters.thrust_multicopter("quad", np.arange(4) * np.pi / 2, [1, -1, 1, -1], **numbers)
        >>> B = pf.compile_terms(m, {"B": lambda T: T.B}, backend="numpy")(m.neutral(), np.zeros(6))["B"]
        >>> B[5].round(3) + 0.0  # moments about z for 1 N of each propeller, kT / kF
        array([-0.02,  0.02, -0.02,  0.02])
    """
    what = f"multicopter {name!r}"
    phi, eps = _arms(azimuths, spins, what)
    kappa = scalar(torque, f"{what}: torque") / scalar(thrust, f"{what}: thrust")
    length, heights = not_negative(arm, f"{what}: arm"), _for_each_arm(height, len(phi), f"{what}: height")
    angles = _leans(leans, len(phi), tilting, what)
    groups: dict[str, list[Any]] = {"up": [], "across": []} if tilting else {"thrust": []}
    for i, (at, hand, up, lean) in enumerate(zip(phi, eps, heights, angles, strict=True), start=1):
        point = ca.vertcat(length * ca.cos(at), length * ca.sin(at), up)
        for group, thrusters in groups.items():
            theta = pi / 2 if group == "across" else lean
            slant = float(np.sin(theta))
            axis = (slant * float(np.sin(at)), -slant * float(np.cos(at)), 0.0 if group == "across" else float(np.cos(theta)))
            thrusters.append(thruster(f"{group} {i}", "body", axis=axis, point=point, torque=-hand * kappa, limits=limits))
    d_x, d_z = ca.vertsplit(vector(drag, 2, f"{what}: drag"))
    d = (2 * d_x + d_z) / 3
    return mechanism(
        name, [body("body", mass, inertia=vector(inertia, 3, f"{what}: inertia"))], [joint("body", "free", "world", "body")],
        forces=_drag_and_bias(linear_drag_matrix(ca.vertcat(d, d), 0.0, (0, 0)), bias, what),
        actuators=[t for thrusters in groups.values() for t in thrusters], gravity=(0, 0, -gravity), parameters=parameters,
    )  # fmt: skip


def bicopter(
    name: str, *, mass: Scalar, inertia: Any, arm: Scalar, height: Scalar, lean: float = 0.0, gravity: Scalar = 9.81,
    parameters: Any = (),
) -> Mechanism:  # fmt: skip
    """A bicopter: one body about its mass centre, and two propellers to both sides that tilt about the y axis by theta.
    [konz25 (4.150)]

    Inputs are `across 1`, F1 sin theta1, `up 1`, F1 cos theta1, `across 2`, `up 2` [N]. Propeller 1 is at (0, l_y, l_z), 2 at
    (0, -l_y, l_z); at theta = 0 they push along (0, sin beta, cos beta) and (0, -sin beta, cos beta), so that B is

        Fx = [1 0 1 0],  Fy = sin beta [0 1 0 -1],  Fz = cos beta [0 1 0 1]
        tau_x = l'y [0 1 0 -1],  tau_y = l_z [1 0 1 0],  tau_z = l_y [-1 0 1 0],     l'y = l_y cos beta - l_z sin beta

    A force along x is coupled to a moment about y, and a force along y to a moment about x: see `bicopter_coupling_length`.

    Args:
        name: of the mechanism, whose body `body` is on the free joint `body`.
        mass: m [kg].
        inertia: (3,) principal moments about the mass centre [kg m^2].
        arm: l_y, distance of each propeller from the mass centre along y [m].
        height: l_z, height of the propellers above the mass centre [m].
        lean: beta, angle by which the propellers lean outwards [rad]; default 0.
        gravity: [m/s^2] along -z; default 9.81.
        parameters: all Parameters that the numbers use.
    Returns:
        Mechanism.
    Raises ModelError: the wrong number of values.

    Example:
        >>> import numpy as np
        >>> import pfaffian as pf
        >>> m = pf.multicopters.bicopter("bicopter", mass=1.0, inertia=(0.02, 0.01, 0.02), arm=0.2, height=0.1)
        >>> B = pf.compile_terms(m, {"B": lambda T: T.B}, backend="numpy")(m.neutral(), np.zeros(6))["B"]
        >>> B[4].round(3) + 0.0  # moments about y: l_z of `across 1` and `across 2`
        array([0.1, 0. , 0.1, 0. ])
    """
    what = f"bicopter {name!r}"
    out, up = not_negative(arm, f"{what}: arm"), scalar(height, f"{what}: height")
    beta = named_float(lean, f"{what}: lean")
    motors = []
    for i, side in enumerate((1, -1), start=1):
        point = ca.vertcat(0, side * out, up)
        along = {"across": (1.0, 0.0, 0.0), "up": (0.0, side * np.sin(beta), np.cos(beta))}
        motors += [thruster(f"{group} {i}", "body", axis=axis, point=point) for group, axis in along.items()]
    return mechanism(
        name, [body("body", mass, inertia=vector(inertia, 3, f"{what}: inertia"))], [joint("body", "free", "world", "body")],
        actuators=motors, gravity=(0, 0, -gravity), parameters=parameters,
    )  # fmt: skip


def bicopter_coupling_length(*, mass: float, inertia: Any, arm: float, height: float, lean: float = 0.0) -> tuple[float, float]:
    """The coupling lengths (eps_x, eps_y) of a bicopter: sideways acceleration per angular acceleration. [konz25 4.8.4]

        eps_x = -Theta_y / (m l_z),    eps_y = Theta_x sin beta / (m l'y),    l'y = l_y cos beta - l_z sin beta

    `quadcopter_pair` takes both as `coupling_length`, `bicopter_reference` takes eps_y.

    Args:
        mass: m [kg], above zero.
        inertia: (3,) principal moments about the mass centre [kg m^2].
        arm: l_y, distance of each propeller from the mass centre along y [m].
        height: l_z, height of the propellers above the mass centre [m].
        lean: beta, angle by which the propellers lean outwards [rad]; default 0.
    Returns:
        (eps_x, eps_y) [m].
    Raises ModelError: a mass not above zero; an l_z or l'y of zero, for which the propellers exert no moment about y or x.

    Example:
        >>> import pfaffian as pf
        >>> x = {"mass": 1.0, "inertia": (0.02, 0.01, 0.02), "arm": 0.2, "height": 0.1, "lean": 0.3}
        >>> eps_x, eps_y = pf.multicopters.bicopter_coupling_length(**x)
        >>> round(eps_x, 6), round(eps_y, 6)
        (-0.1, 0.036593)
    """
    what = "bicopter_coupling_length"
    given = {"mass": mass, "arm": arm, "height": height, "lean": lean}
    m, out, up, beta = (named_float(x, f"{what}: {n}") for n, x in given.items())
    Ix, Iy, _ = (float(x) for x in ca.vertsplit(ca.DM(vector(floats(inertia, f"{what}: inertia"), 3, f"{what}: inertia"))))
    side = out * np.cos(beta) - up * np.sin(beta)
    if not (m > 0 and up and side):
        raise ModelError(f"{what}: mass must be above zero, height and l'y = {side:.4g} m not zero: these are lever arms")
    return -Iy / (m * up), float(Ix * np.sin(beta) / (m * side))


def thrust_polygon(
    least: float, most: float, tilt: float, *, propellers: int = 1, chords: int = 4
) -> tuple[np.ndarray, np.ndarray]:
    """Linear limits W u <= l of tilting propellers with least <= F <= most and |theta| <= tilt.

    The inputs of each propeller are u = (F sin theta, F cos theta). The set of its possible inputs, a sector of a ring, is not
    convex. The limits describe a convex polygon within this set: F cos theta >= least, |F sin theta| <= F cos theta tan(tilt),
    and chords of the outer circle. [konz25 fig. 4.20, whose corners are not given]

    Args:
        least, most: limits of the thrust F [N], with least not below zero.
        tilt: largest angle theta [rad], above zero and below pi/2.
        propellers: number of propellers; default 1.
        chords: number of chords of the outer circle, default 4, which exclude up to 0.9 % of F at a tilt of 30 degrees.
    Returns:
        W (propellers (chords + 3), 2 propellers) with rows of unit length, and l (rows,) [N]: the `limits` of
        `prototype_tracking`.
    Raises ModelError: numbers out of range, or a least thrust above most cos(tilt / chords), which leaves no inputs.

    Example:
        >>> import pfaffian as pf
        >>> W, l = pf.multicopters.thrust_polygon(1.0, 10.0, tilt=0.5)
        >>> [bool((W @ u <= l).all()) for u in ([0.0, 5.0], [0.0, 11.0], [4.0, 5.0])]  # within, too strong, tilted too far
        [True, False, False]
    """
    what = "thrust_polygon"
    low, high, a = (named_float(x, f"{what}: {n}") for x, n in ((least, "least"), (most, "most"), (tilt, "tilt")))
    n, k = propellers, chords
    if not all(is_whole(x) and x > 0 for x in (n, k)):
        raise ModelError(f"{what}: propellers and chords must be whole numbers above zero, got {brief(n)} and {brief(k)}")
    if not (low >= 0 and 0 < a < pi / 2):
        raise ModelError(f"{what}: least must not be below zero and tilt between 0 and pi/2, got {low:g} N and {a:g}")
    reach = high * float(np.cos(a / k))
    if not low < reach:
        raise ModelError(f"{what}: no input is left between least = {low:g} N and the chords, {reach:.4g} N; use more chords")
    middles = a * (2 * np.arange(k) + 1 - k) / k
    rows = [[0.0, -1.0], [np.cos(a), -np.sin(a)], [-np.cos(a), -np.sin(a)], *np.stack([np.sin(middles), np.cos(middles)], 1)]
    return np.kron(np.eye(n), rows), np.tile([-low, 0.0, 0.0, *[reach] * k], n)


def linear_drag_matrix(drag: Any, drag_height: Scalar, turning_drag: Any) -> ca.SX:
    """The matrix D (6, 6) of the drag -D [v; w] on a body: [[D_v, D_v hat(l)^T], [hat(l) D_v, Upsilon]]. [konz25 (5.4)]

    drag: (d_x, d_z) [kg/s].   drag_height: l_z [m].   turning_drag: (Upsilon_x, Upsilon_z) [kg m^2/s].
    """
    (d_x, d_z), (u_x, u_z) = (ca.vertsplit(vector(x, 2, n)) for x, n in ((drag, "drag"), (turning_drag, "turning_drag")))
    D, U = ca.diag(ca.vertcat(d_x, d_x, d_z)), ca.diag(ca.vertcat(u_x, u_x, u_z))
    l = ca.SX(so3.hat(ca.vertcat(0, 0, scalar(drag_height, "drag_height"))))
    return ca.densify(ca.blockcat([[D, D @ l.T], [l @ D, U]]))


@data
class LinearDrag:
    """f(k) of the drag -D [v; w]: a wrench along its body's axes.   D: (6, 6)."""

    body: str
    D: ca.SX

    def __repr__(self) -> str:
        return reprs.words(self, f"of {self.body!r}")

    def __call__(self, k: Any) -> ca.SX:
        return ca.densify(-self.D @ k.twist(self.body))


def _drag_and_bias(D: ca.SX, bias: Any, what: str) -> list[Wrench]:
    """The wrenches of drag and bias on the body, without those that are zero."""
    constant = vector(bias, 6, f"{what}: bias")
    drag = [] if D.is_zero() else [wrench("drag", "body", LinearDrag("body", D), axes="LOCAL")]
    return drag if constant.is_zero() else [*drag, wrench("bias", "body", constant, axes="LOCAL")]


def _for_each_arm(x: Any, count: int, what: str) -> list[ca.SX]:
    """One number for each of `count` arms, from one for all or a sequence."""
    return ca.vertsplit(vector(x, count, what)) if several(x) else [scalar(x, what)] * count


def _leans(leans: Any, count: int, tilting: bool, what: str) -> list[float]:
    """The fixed angle of each arm about its axis. Raises ModelError: the wrong number of angles, or arms that tilt."""
    if leans is None:
        return [0.0] * count
    angles = floats(leans, f"{what}: leans")
    if angles.shape != (count,):
        raise ModelError(f"{what}: leans: an angle is needed for each of {count} arms, got {brief(leans)}")
    if tilting:
        raise ModelError(f"{what}: leans are for arms that do not tilt; tilting arms have their angles in q")
    return angles.tolist()


def _arms(azimuths: Any, spins: Any, what: str) -> tuple[list[float], list[int]]:
    """The azimuths and spins of the arms, checked: one of each per arm, and spins of 1 or -1."""
    phi, eps = floats(azimuths, f"{what}: azimuths"), floats(spins, f"{what}: spins")
    if phi.ndim != 1 or not phi.size or phi.shape != eps.shape:
        raise ModelError(f"{what}: an azimuth and a spin are needed for each arm, got {brief(azimuths)} and {brief(spins)}")
    if not (abs(eps) == 1).all():
        raise ModelError(f"{what}: spins must be 1, anticlockwise from above, or -1, got {brief(spins)}")
    return phi.tolist(), [int(e) for e in eps]
