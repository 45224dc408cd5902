"""Multicopters: a body in flight, arms that may tilt, and propellers that turn on them. [konz25 5.2]

`multicopter` is the whole machine, its propellers turning bodies driven by motors; `thrust_multicopter` the simplified one
whose inputs are thrusts. Arm k points to the azimuth phi_k and tilts by theta_k about itself; its propeller turns at
eps_k varpi_k about

    H3 = (sin phi sin theta, -cos phi sin theta, cos theta),   eps = 1 against the clock as seen from above, -1 with it,

and pushes along H3 with kF varpi^2. `TRICOPTER` and `QUADCOPTER` are the machines of the thesis, Table 5.1. `bicopter` has two
propellers that tilt and lean outwards; what they can give within limits is `thrust_polygon`. [konz25 4.8.4]
"""

from __future__ import annotations

from math import inf, pi
from types import MappingProxyType
from typing import Any

import casadi as ca
import numpy as np

from pfaffian.errors import ModelError, brief
from pfaffian.maths import so3
from pfaffian.model import shown
from pfaffian.model.body import body, tensor
from pfaffian.model.data import data
from pfaffian.model.fluid import propeller
from pfaffian.model.force import Wrench, actuator, thruster, wrench
from pfaffian.model.joint import joint
from pfaffian.model.mechanism import Mechanism, mechanism
from pfaffian.model.number import Scalar, floats, named_float, scalar, vector
from pfaffian.model.pose import pose

_PROPELLER = {"rotor": 3.6e-5, "thrust": 1.44e-5, "torque": 2.45e-7, "friction": 0.005}

TRICOPTER = MappingProxyType({
    "azimuths": (pi / 3, pi, 5 * pi / 3), "spins": (-1, 1, 1),
    "mass": 1.251, "com": (1.7e-3, 0.6e-3, 0.0), "inertia": (19.2e-3, 19.2e-3, 30.8e-3, -0.8e-3, -1.2e-3, -2.1e-3),
    "arm": 0.240, "height": -6e-3, "tilt": (0.9, 0.002), **_PROPELLER,
    "drag": (0.29, 0.45), "drag_height": 4.0e-3, "turning_drag": (8.5e-3, 14e-3),
    "bias": (-0.21, -0.02, 0.03, 0.037, -0.024, -0.003),
})  # fmt: skip
"""What `multicopter` takes for the tricopter. [konz25 Table 5.1]"""

QUADCOPTER = MappingProxyType({
    "azimuths": (0.0, pi / 2, pi, 3 * pi / 2), "spins": (1, -1, 1, -1),
    "mass": 1.001, "com": (-1.8e-3, 0.6e-3, 0.0), "inertia": (17.9e-3, 18.0e-3, 30.7e-3, -0.7e-3, 0.2e-3, 0.0),
    "arm": 0.240, "height": 0.0, "tilt": None, **_PROPELLER,
    "drag": (0.30, 0.36), "drag_height": 12e-3, "turning_drag": (-1.5e-3, 10e-3),
    "bias": (0.09, 0.02, -0.09, 0.049, -0.015, -0.012),
})  # fmt: skip
"""What `multicopter` takes for the quadcopter; its drag about x and y is as identified, below zero. [konz25 Table 5.1]"""


def multicopter(
    name: str, azimuths: Any, spins: Any, *, mass: Scalar, inertia: Any, arm: Scalar, rotor: Scalar, thrust: Scalar,
    torque: Scalar, com: Any = (0, 0, 0), height: Scalar = 0.0, tilt: Any = None, drag: Any = (0, 0), drag_height: Scalar = 0.0,
    turning_drag: Any = (0, 0), bias: Any = (0, 0, 0, 0, 0, 0), friction: Scalar = 0.0, gravity: Scalar = 9.81,
    parameters: Any = (),
) -> Mechanism:  # fmt: skip
    """A multicopter with propellers that turn, on arms that tilt or do not. [konz25 (5.5)-(5.9)]

    Its body `body` is on the free joint `body`; velocities are [v; w; tilt rates; propeller rates varpi], inputs the moments
    `servo 1`, ... about the arms and `motor 1`, ... about the propellers' axes [N m]. Arms and propellers have no mass of their
    own: that of all is the body's, as their mass centres lie on the arms' axes and arm and propeller together are alike
    around these.

    Args:
        name: of the mechanism.   azimuths: of the arms, phi [rad].   spins: eps, 1 or -1 for each propeller.
        mass, com: m [kg], s (3,) [m].   inertia: Theta of all about the origin of the body frame, said as of a `body`.
        arm, height: l_A, h_A, from the origin to a propeller, outwards and up [m].
        tilt: (Theta_A, Theta_AC) [kg m^2], of an arm about itself with its servo's rotor, and what of it the body feels;
            None for arms that do not tilt.   rotor: Theta_P of a propeller with its motor's rotor [kg m^2].
        thrust, torque: kF [N s^2], kT [N m s^2].   friction: tau_MB of a motor that turns [N m]; propellers may not stop.
        drag: (d_x, d_z) [kg/s], in the body's xy-plane and along z, at drag_height l_z [m].
        turning_drag: (Upsilon_x, Upsilon_z) [kg m^2/s].   bias: F_B [N], tau_B [N m], along the body's axes.
        gravity: [m/s^2] along -z.   parameters: all that the numbers use.
    Raises ModelError: no arms, another number of spins, spins that are not 1 or -1, numbers of the wrong count.
    """
    what = f"multicopter {name!r}"
    phi, eps = _arms(azimuths, spins, what)
    m, s, spin = scalar(mass, f"{what}: mass"), vector(com, 3, f"{what}: com"), scalar(rotor, f"{what}: rotor")
    I = tensor(inertia, f"{what}: inertia") - m * (ca.dot(s, s) * ca.SX.eye(3) - s @ s.T)
    length, up = scalar(arm, f"{what}: arm"), scalar(height, f"{what}: height")
    flat = ca.diag(ca.vertcat(spin / 2, spin / 2, spin))
    arms, propellers, tilts, turns, servos, motors, forces = [], [], [], [], [], [], []
    for i, (at, hand) in enumerate(zip(phi, eps, strict=True), start=1):
        foot = pose(ca.vertcat(length * ca.cos(at), length * ca.sin(at), up), rpy=(0, 0, at))
        carrier, place, whole = "body", foot, flat
        if tilt is not None:
            total, felt = ca.vertsplit(vector(tilt, 2, f"{what}: tilt"))
            own = ca.diag(ca.vertcat(felt - spin / 2, felt, felt - spin / 2))
            carrier, place, whole = f"arm {i}", pose(), own + flat
            arms.append(body(carrier, 0.0, inertia=own))
            tilts.append(joint(f"tilt {i}", "revolute", "body", carrier, axis=(1, 0, 0), placement=foot, armature=total - felt))
            servos.append(actuator(f"servo {i}", f"tilt {i}"))
        R = ca.SX(ca.DM(so3.rotation((0, 0, 1), at)))
        I -= R @ whole @ R.T
        blade, axis = f"propeller {i}", (0, 0, hand)
        propellers.append(body(blade, 0.0, inertia=flat))
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
        forces=[*forces, *_around(D, bias, what)], actuators=[*servos, *motors], gravity=(0, 0, -gravity),
        parameters=parameters,
    )  # fmt: skip


def thrust_multicopter(
    name: str, azimuths: Any, spins: Any, *, mass: Scalar, inertia: Any, arm: Scalar, thrust: Scalar, torque: Scalar,
    height: Scalar = 0.0, tilting: bool = False, drag: Any = (0, 0), bias: Any = (0, 0, 0, 0, 0, 0), gravity: Scalar = 9.81,
    limits: tuple[float, float] = (-inf, inf), parameters: Any = (),
) -> Mechanism:  # fmt: skip
    """The simplified multicopter: one body about its mass centre, inputs the thrusts of propellers. [konz25 (5.16), (5.17)]

    Inputs are `thrust 1`, ... along z [N]; with arms that tilt `up 1`, ..., F cos theta, and `across 1`, ..., F sin theta.
    What propellers take to gain speed, Theta_P varpi_dot about z, is left out.

    Args:
        name, azimuths, spins, arm, height, thrust, torque, bias, gravity, parameters: as of `multicopter`.   mass: [kg].
        inertia: (3,) principal moments [kg m^2].   tilting: whether the arms tilt.   limits: (low, high) of each input [N].
        drag: (d_x, d_z) [kg/s], of which d = (2 d_x + d_z) / 3 slows all translation.
    Raises ModelError: as `multicopter`.
    """
    what = f"multicopter {name!r}"
    phi, eps = _arms(azimuths, spins, what)
    kappa = scalar(torque, f"{what}: torque") / scalar(thrust, f"{what}: thrust")
    length, up = scalar(arm, f"{what}: arm"), scalar(height, f"{what}: height")
    groups: dict[str, list] = {"up": [], "across": []} if tilting else {"thrust": []}
    for i, (at, hand) in enumerate(zip(phi, eps, strict=True), start=1):
        point = ca.vertcat(length * ca.cos(at), length * ca.sin(at), up)
        for group, made in groups.items():
            axis = (float(ca.sin(at)), -float(ca.cos(at)), 0.0) if group == "across" else (0.0, 0.0, 1.0)
            made.append(thruster(f"{group} {i}", "body", axis=axis, point=point, torque=-hand * kappa, limits=limits))
    d_x, d_z = ca.vertsplit(vector(drag, 2, f"{what}: drag"))
    d = (2 * d_x + d_z) / 3
    return mechanism(
        name, [body("body", mass, inertia=vector(inertia, 3, f"{what}: inertia"))], [joint("body", "free", "world", "body")],
        forces=_around(linear_drag_matrix(ca.vertcat(d, d), 0.0, (0, 0)), bias, what),
        actuators=[t for made in groups.values() for t in made], gravity=(0, 0, -gravity), parameters=parameters,
    )  # fmt: skip


def bicopter(
    name: str, *, mass: Scalar, inertia: Any, arm: Scalar, height: Scalar, lean: float = 0.0, gravity: Scalar = 9.81,
    parameters: Any = (),
) -> Mechanism:  # fmt: skip
    """One body about its mass centre and two propellers on its y axis that tilt about it by theta. [konz25 (4.150)]

    Inputs are `across 1`, F1 sin theta1, `up 1`, F1 cos theta1, `across 2`, `up 2` [N]. Propeller 1 is at (0, l_y, l_z), 2 at
    (0, -l_y, l_z); at theta = 0 they push along (0, sin beta, cos beta) and (0, -sin beta, cos beta), so that B is

        Fx = [1 0 1 0],  Fy = sin beta [0 1 0 -1],  Fz = cos beta [0 1 0 1]
        tau_x = l'y [0 1 0 -1],  tau_y = l_z [1 0 1 0],  tau_z = l_y [-1 0 1 0],     l'y = l_y cos beta - l_z sin beta

    A force along x comes with a turn about y, one along y with a turn about x: see `bicopter_lean`.

    Args:
        name: of the mechanism, whose body `body` is on the free joint `body`.   mass: m [kg].
        inertia: (3,) principal moments [kg m^2].   arm, height: l_y, l_z [m].   lean: beta_F, outwards [rad].
        gravity: [m/s^2] along -z.   parameters: all that the numbers use.
    Raises ModelError: numbers of the wrong count.
    """
    what = f"bicopter {name!r}"
    out, up = scalar(arm, f"{what}: arm"), scalar(height, f"{what}: height")
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


def bicopter_lean(*, mass: float, inertia: Any, arm: float, height: float, lean: float = 0.0) -> tuple[float, float]:
    """(eps_x, eps_y) [m] of a `bicopter`, which `quadcopter_pair` and `bicopter_reference` take. [konz25 4.8.4]

        eps_x = -Theta_y / (m l_z),    eps_y = Theta_x sin beta / (m l'y)

    mass, inertia, arm, height, lean: as of `bicopter`, numbers.
    Raises ModelError: l_z or l'y is zero: the propellers do not turn it about that axis.
    """
    what = "bicopter_lean"
    given = {"mass": mass, "arm": arm, "height": height, "lean": lean}
    m, out, up, beta = (named_float(x, f"{what}: {n}") for n, x in given.items())
    Ix, Iy, _ = (float(x) for x in ca.vertsplit(ca.DM(vector(floats(inertia, f"{what}: inertia"), 3, f"{what}: inertia"))))
    side = out * np.cos(beta) - up * np.sin(beta)
    if not (m > 0 and up and side):
        raise ModelError(f"{what}: mass must be above zero, height and l'y = {side:.4g} m not zero: they turn it about y and x")
    return -Iy / (m * up), float(Ix * np.sin(beta) / (m * side))


def thrust_polygon(
    least: float, most: float, tilt: float, *, propellers: int = 1, chords: int = 4
) -> tuple[np.ndarray, np.ndarray]:
    """W u <= l of propellers with least <= F <= most and |theta| <= tilt, u = (F sin theta, F cos theta) of each in turn.

    What each can give, a part of a ring, is no convex set; this is a convex polygon within it: F cos theta >= least,
    |F sin theta| <= F cos theta tan(tilt), and chords of the outer circle. [konz25 fig. 4.20, whose corners are not given]

    Args:
        least, most: of F [N].   tilt: [rad], above zero and below pi/2.   propellers: how many there are.
        chords: of the outer circle; those of four leave out 0.9 % of F at a tilt of 30 degrees.
    Returns: W (propellers (chords + 3), 2 propellers) of unit rows, l [N]: `limits` of a law.
    Raises ModelError: numbers out of range; least where no input is left, above most cos(tilt / chords).
    """
    what = "thrust_polygon"
    low, high, a = (named_float(x, f"{what}: {n}") for x, n in ((least, "least"), (most, "most"), (tilt, "tilt")))
    n, k = propellers, chords
    if not all(isinstance(x, int) and not isinstance(x, bool) and x > 0 for x in (n, k)):
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
    """D (6, 6) of the drag -D [v; w] on a body, [[D_v, D_v hat(l)^T], [hat(l) D_v, Upsilon]]. [konz25 (5.4)]

    drag: (d_x, d_z) [kg/s].   drag_height: l_z [m].   turning_drag: (Upsilon_x, Upsilon_z) [kg m^2/s].
    """
    (d_x, d_z), (u_x, u_z) = (ca.vertsplit(vector(x, 2, n)) for x, n in ((drag, "drag"), (turning_drag, "turning_drag")))
    D, U = ca.diag(ca.vertcat(d_x, d_x, d_z)), ca.diag(ca.vertcat(u_x, u_x, u_z))
    l = ca.SX(so3.hat(ca.vertcat(0, 0, scalar(drag_height, "drag_height"))))
    return ca.densify(ca.blockcat([[D, D @ l.T], [l @ D, U]]))


@data
class LinearDrag:
    """f(k) of the drag -D [v; w], a wrench along its body's axes."""

    body: str
    D: ca.SX

    def __repr__(self) -> str:
        return shown.words(self, f"of {self.body!r}")

    def __call__(self, k: Any) -> ca.SX:
        return ca.densify(-self.D @ k.twist(self.body))


def _around(D: ca.SX, bias: Any, what: str) -> list[Wrench]:
    """Drag and bias of the body, where there are any."""
    given = vector(bias, 6, f"{what}: bias")
    drag = [] if D.is_zero() else [wrench("drag", "body", LinearDrag("body", D), axes="LOCAL")]
    return drag if given.is_zero() else [*drag, wrench("bias", "body", given, axes="LOCAL")]


def _arms(azimuths: Any, spins: Any, what: str) -> tuple[list[float], list[int]]:
    phi, eps = floats(azimuths, f"{what}: azimuths"), floats(spins, f"{what}: spins")
    if phi.ndim != 1 or not phi.size or phi.shape != eps.shape:
        raise ModelError(f"{what}: an azimuth and a spin for each arm are needed, got {brief(azimuths)} and {brief(spins)}")
    if not (abs(eps) == 1).all():
        raise ModelError(f"{what}: spins must be 1, against the clock from above, or -1, got {brief(spins)}")
    return phi.tolist(), [int(e) for e in eps]
