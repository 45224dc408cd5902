"""Three machines in their reduced spaces, by symmetries and wheels: spacecraft, rover with an arm, car with a crane.

[chhabra14 3.4, examples 4.6.1 and 4.6.2.] Each machine is run full, with the reactions of its wheels, and reduced. The
spacecraft has a linear and an angular momentum and is reduced as a bundle and in the space of that momentum. Rover and car are
reduced by their wheels (Chaplygin), the car in a second step by its post, whose momentum is conserved. This last space, of
dimension six, is integrated here from the printed matrices alone.

The thesis gives matrices and no numbers: masses, lengths and starts are ours, for machines of 146 kg, 26.5 kg and 670 kg.
Entries of momenta, positions and energies were also computed by a separate program from the thesis's equations.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import casadi as ca
import numpy as np
import xarray as xr
from scipy.spatial.transform import Rotation

import pfaffian as pf
from pfaffian.maths import subgroups
from pfaffian.study import Claim, blank_figure

X, Y, Z = (1, 0, 0), (0, 1, 0), (0, 0, 1)

MU_1, MU_2 = 40.0, 30.0
MU = np.array([0, MU_1, 0, MU_2, 0, 0])
"""Spatial momentum of the spacecraft: linear along y and angular about x [N s, N m s]."""

PLACE, SHAPE = (0.1, -0.2, 0.15, 0.2), (0.2, 0.3, -0.1, 0.4, -0.5, 0.6)
"""x, z [m], theta_X, theta_Z [rad] of the section, and the six hinges [rad]."""
SHAPE_RATES = np.array([0.1, -0.2, 0.15, 0.3, -0.25, 0.2])

ROVER = {"axle": 0.25, "radius": 0.10, "mast": 0.25, "com": 0.10}
"""Half the axle's length, radius of the wheels, distances of post and mass centre in front of the axle [m]."""
ROVER_START = (np.r_[0, 0, 0, 0, 0, 0.3, 0.5, -0.4], np.r_[0.35, 0, 0.2, 3, 4, 0.5, -0.2, 0.3])

CAR = {"l": 2.0, "l0": 0.9, "l1": 0.4, "l2": 1.2, "c": 0.5, "b": 0.3}
"""Wheelbase, distances of mass centre and post in front of the rear axle, height of the post, half the front axle's length,
radius of its wheels [m]."""
CAR_SHAPE, CAR_RATES = np.array([0.2, 0, 0.4, 0.3]), np.array([0.1, 4, 0.3, 0.2])
"""psi1, psi2, phi1, phi2: steering, left wheel, post, boom [rad]."""
MOMENTA = ["psi1", "psi2", "phi1", "phi2"]


def mechanism() -> pf.Mechanism:
    """The spacecraft. [chhabra14 3.4, figs. 3.1-3.2] Its spherical joint is three hinges about x, y and z."""
    bodies = [
        pf.body("B1", 120.0, inertia=(30.0, 40.0, 25.0)),
        pf.body("turned X"),
        pf.body("turned Y"),
        pf.body("B2", 10.0, com=(0, 0.5, 0), inertia=(0.9, 0.05, 0.9)),
        pf.body("B3", 8.0, com=(0, 0.4, 0), inertia=(0.5, 0.04, 0.5)),
        pf.body("B4", 4.0, com=(0, 0.4, 0), inertia=(0.06, 0.01, 0.06)),
        pf.body("B5", 4.0, com=(0, 0.4, 0), inertia=(0.06, 0.01, 0.06)),
    ]
    joints = [
        pf.joint("base", "free", "world", "B1"),
        pf.joint("psi_X", "revolute", "B1", "turned X", axis=X, placement=(0, 0.6, 0)),
        pf.joint("psi_Y", "revolute", "turned X", "turned Y", axis=Y),
        pf.joint("psi_Z", "revolute", "turned Y", "B2", axis=Z),
        pf.joint("psi_1", "revolute", "B2", "B3", axis=X, placement=(0, 1.0, 0)),
        pf.joint("psi_2", "revolute", "B3", "B4", axis=X, placement=(0.25, 0.8, 0)),
        pf.joint("psi_3", "revolute", "B3", "B5", axis=X, placement=(-0.25, 0.8, 0)),
    ]
    return pf.mechanism("spacecraft with manipulator", bodies, joints, gravity=(0, 0, 0))


def rover() -> pf.Mechanism:
    """Two driven wheels, an arm of three hinges. [chhabra14 example 4.6.1, figs. 4.1-4.2]"""
    c, b = ROVER["axle"], ROVER["radius"]
    bodies = [
        pf.body("rover", 20.0, com=(ROVER["com"], 0, 0), inertia=(0.5, 0.6, 0.9)),
        pf.body("left", 1.0, inertia=(0.004, 0.006, 0.004)),
        pf.body("right", 1.0, inertia=(0.004, 0.006, 0.004)),
        pf.body("post", 2.0, com=(0, 0.15, 0), inertia=(0.02, 0.004, 0.02)),
        pf.body("upper", 1.5, com=(0, 0.2, 0), inertia=(0.025, 0.002, 0.025)),
        pf.body("lower", 1.0, com=(0, 0.2, 0), inertia=(0.012, 0.001, 0.012)),
    ]
    joints = [
        pf.joint("base", "planar", "world", "rover"),
        pf.joint("psi1", "revolute", "rover", "left", axis=Y, placement=(0, c, 0)),
        pf.joint("psi2", "revolute", "rover", "right", axis=Y, placement=(0, -c, 0)),
        pf.joint("phi1", "revolute", "rover", "post", placement=(ROVER["mast"], 0, 0)),
        pf.joint("phi2", "revolute", "post", "upper", axis=X, placement=(0, 0.3, 0)),
        pf.joint("phi3", "revolute", "upper", "lower", axis=X, placement=(0, 0.4, 0)),
    ]

    def rolling(k: pf.Kinematics) -> ca.SX:
        v_x, v_y, w = ca.vertsplit(k.joint_rate("base"))
        return ca.vertcat(v_y, v_x - c * w - b * k.joint_rate("psi1"), v_x + c * w - b * k.joint_rate("psi2"))

    return pf.mechanism("rover", bodies, joints, constraints=[pf.nonholonomic("wheels", rolling)], gravity=(0, 0, -9.81))


def car() -> pf.Mechanism:
    """Car with front wheels on a steered axle and a crane of post and boom. [chhabra14 example 4.6.2, figs. 4.3-4.4]"""
    l, l0, l1, l2, c, b = CAR.values()
    bodies = [
        pf.body("car", 500.0, com=(l0, 0, 0), inertia=(80.0, 150.0, 200.0)),
        pf.body("axle", 20.0, inertia=(2.0, 0.5, 2.0)),
        pf.body("post", 50.0, com=(0, 0, l2 / 2), inertia=(4.0, 4.0, 1.5)),
        pf.body("left", 10.0, inertia=(0.3, 0.45, 0.3)),
        pf.body("right", 10.0, inertia=(0.3, 0.45, 0.3)),
        pf.body("boom", 80.0, inertia=(2.0, 40.0, 40.0)),
    ]
    joints = [
        pf.joint("base", "planar", "world", "car"),
        pf.joint("psi1", "revolute", "car", "axle", placement=(l, 0, 0)),
        pf.joint("phi1", "revolute", "car", "post", placement=(l1, 0, 0)),
        pf.joint("psi2", "revolute", "axle", "left", axis=Y, placement=(0, c, 0)),
        pf.joint("psi3", "revolute", "axle", "right", axis=Y, placement=(0, -c, 0)),
        pf.joint("phi2", "revolute", "post", "boom", axis=Y, placement=(0, 0, l2)),
    ]

    def rolling(k: pf.Kinematics) -> ca.SX:
        v_x, v_y, w = ca.vertsplit(k.joint_rate("base"))
        s, e, turn = ca.sin(k.joint("psi1")), ca.cos(k.joint("psi1")), c * (w + k.joint_rate("psi1"))
        along, across = e * v_x + s * (v_y + l * w), e * (v_y + l * w) - s * v_x
        left, right = along - turn - b * k.joint_rate("psi2"), along + turn - b * k.joint_rate("psi3")
        return ca.vertcat(v_y, across, left, right)

    return pf.mechanism("car with crane", bodies, joints, constraints=[pf.nonholonomic("wheels", rolling)], gravity=(0, 0, 0))


# -- closed forms -----------------------------------------------------------------------------------------------------


def rover_connection() -> np.ndarray:
    """(3, 2) connection Â: the base has the velocity -Â (psi1_dot, psi2_dot) [m, 1]."""
    c, b = ROVER["axle"], ROVER["radius"]
    return np.array([[-b / 2, -b / 2], [0, 0], [b / (2 * c), -b / (2 * c)]])


def car_connection(psi1: ca.SX) -> ca.SX:
    """(4, 2) connection Â: base and right wheel have the velocities -Â (psi1_dot, psi2_dot)."""
    l, _, _, _, c, b = CAR.values()
    s, e = ca.sin(psi1), ca.cos(psi1)
    rows = [[l * c * e, l * b * e], [0, 0], [c * s, b * s], [2 * l * c / b, l + c * s]]
    return -ca.blockcat(rows) / (l - c * s)


def car_inertia(phi2: ca.SX) -> ca.SX:
    """(8, 8) K in base, psi1, phi1, psi2, psi3, phi2 at theta = 0, from the printed blocks."""
    l, l0, l1, _, c, _ = CAR.values()
    wheels = 2 * 10.0
    mass = 500.0 + 20.0 + 50.0 + wheels + 80.0
    S = l * (20.0 + wheels) + l0 * 500.0 + l1 * (50.0 + 80.0)
    axle = wheels * c**2 + 2.0 + 2 * 0.3
    post = 1.5 + 2.0 * ca.sin(phi2) ** 2 + 40.0 * ca.cos(phi2) ** 2
    turning = 200.0 + axle + post + l**2 * (20.0 + wheels) + l0**2 * 500.0 + l1**2 * (50.0 + 80.0)
    K = ca.SX(ca.diagcat(mass, mass, turning, axle, post, 0.45, 0.45, 40.0))
    K[1, 2] = K[2, 1] = S
    K[2, 3] = K[3, 2] = axle
    K[2, 4] = K[4, 2] = post
    return K


def two_steps() -> xr.Dataset:
    """Run of the car in psi1, psi2, phi2 and their shifted momenta, at the momentum of the post. [chhabra14 (4.5.38)]"""
    l, _, _, _, c, b = CAR.values()
    q, p, w = ca.SX.sym("q", 3), ca.SX.sym("p", 3), ca.SX.sym("theta")
    psi1, s, e = q[0], ca.sin(q[0]), ca.cos(q[0])
    D, K = l - c * s, car_inertia(q[2])
    lift = ca.SX(8, 4)  # v = lift (psi1, psi2, phi1, phi2)_dot
    lift[[0, 1, 2, 6], [0, 1]] = -car_connection(psi1)
    for column, row in enumerate((3, 5, 4, 7)):
        lift[row, column] = 1
    whole = ca.vertcat(p[0] + w * c * s / D, p[1] + w * b * s / D, w, p[2])
    M_hat = lift.T @ K @ lift
    rates = ca.solve(M_hat, whole)
    H = ca.dot(whole, rates) / 2
    P = (K @ lift @ rates)[[0, 1, 2, 6]]
    Upsilon = car_curvature(P, psi1)
    pull = Upsilon + w * b * l * e / D**2
    force = ca.vertcat(pull * rates[1], -pull * rates[0], 0)
    outputs = [ca.gradient(H, p), force - ca.gradient(H, q), rates[2], H, Upsilon, whole]
    f = ca.Function("f", [q, p, w], outputs)
    at_start = ca.Function("at_start", [q], [M_hat])
    start = np.array(at_start(CAR_SHAPE[[0, 1, 3]])) @ CAR_RATES
    s0 = np.sin(CAR_SHAPE[0])
    theta = start[2]
    x = np.r_[CAR_SHAPE[[0, 1, 3]], start[[0, 1, 3]] - theta * np.r_[c, b, 0] * [s0, s0, 0] / (l - c * s0), CAR_SHAPE[2]]

    def rate(x: np.ndarray) -> np.ndarray:
        found = f(x[:3], x[3:6], theta)
        return np.concatenate([np.array(y).ravel() for y in found[:3]])

    h, times, records = 0.005, np.linspace(0, 5, 1001), [x]
    for _ in times[1:]:
        k1 = rate(x)
        k2 = rate(x + h / 2 * k1)
        k3 = rate(x + h / 2 * k2)
        x = x + h / 6 * (k1 + 2 * k2 + 2 * k3 + rate(x + h * k3))
        records.append(x)
    state = np.array(records)[::10]
    found = f.map(len(state))(state[:, :3].T, state[:, 3:6].T, theta)
    entry = ("time", "entry")
    return xr.Dataset(
        {
            "q": (entry, state[:, [0, 1, 6, 2]]),
            "p": (entry, np.array(found[5]).T),
            "shifted": (("time", "axis"), state[:, 3:6]),
            "energy": ("time", np.array(found[3]).ravel()),
            "curvature": ("time", np.array(found[4]).ravel()),
        },
        coords={"time": times[::10], "entry": MOMENTA},
        attrs={"theta": theta, "dimension": 6},
    )


def car_curvature(P: ca.SX, psi1: ca.SX) -> ca.SX:
    """Upsilon from P, the momenta of base and right wheel. [chhabra14 example 4.6.2, sign corrected]"""
    l, _, _, _, c, b = CAR.values()
    s, e = ca.sin(psi1), ca.cos(psi1)
    return -l / (l - c * s) ** 2 * (b * (c - l * s) * P[0] + b * e * P[2] + 2 * c * e * P[3])


# -- runs -------------------------------------------------------------------------------------------------------------


def spacecraft_start(m: pf.Mechanism) -> tuple[np.ndarray, np.ndarray]:
    """q, and the v with the momentum MU: tau = K11^-1 mu_b - A q_dot. [chhabra14 (5.1.8)]"""
    x, z, a, b = PLACE
    R, p = Rotation.from_euler("XZ", [a, b]), np.array([x, 0, z])
    q = np.r_[p, R.as_quat(), SHAPE]
    body = np.r_[R.inv().apply(MU[:3]), R.inv().apply(MU[3:] - np.cross(p, MU[:3]))]
    tau = np.linalg.solve(pf.mass_matrix(m, q)[:6, :6], body) - pf.reduction.mechanical_connection(m, q) @ SHAPE_RATES
    return q, np.r_[tau, SHAPE_RATES]


def car_start() -> tuple[np.ndarray, np.ndarray]:
    group = -np.array(ca.DM(car_connection(ca.SX(CAR_SHAPE[0])))) @ CAR_RATES[:2]
    psi1, psi2, phi1, phi2 = CAR_SHAPE
    q = np.r_[0, 0, 0, psi1, phi1, psi2, 0, phi2]
    return q, np.r_[group[:3], CAR_RATES[0], CAR_RATES[2], CAR_RATES[1], group[3], CAR_RATES[3]]


def run() -> dict[str, xr.Dataset]:
    keep = partial(pf.run, duration=5.0, step=1e-3, every=25)
    m, r, c = mechanism(), rover(), car()
    start, moving = spacecraft_start(m), car_start()
    q = start[0]
    at_start = xr.Dataset(
        {
            "K11": (("row", "column"), pf.mass_matrix(m)[:6, :6]),
            "shape_momentum": ("hinge", pf.reduction.shape_inertia(m, q) @ SHAPE_RATES),
        }
    )
    return {
        "spacecraft": keep(m, *start),
        "spacecraft, bundle": keep(pf.reduce(m), *start),
        "spacecraft, at mu": keep(pf.reduce(m, momentum=MU), *start),
        "spacecraft, at start": at_start,
        "rover": keep(r, *ROVER_START, duration=2.0, step=2.5e-4, every=10),
        "rover, reduced": keep(pf.reduce(r), *ROVER_START, duration=2.0, step=2.5e-4, every=10),
        "car": keep(c, *moving, every=50),
        "car, reduced": keep(pf.reduce(c, by=["base", "psi3"]), *moving, every=50),
        "car, two steps": two_steps(),
    }


def momenta(m: pf.Mechanism, r: xr.Dataset) -> np.ndarray:
    """(time, nv) momenta M v along a run."""
    return np.einsum("tij,tj->ti", pf.mass_matrix(m, r["q"].values), r["v"].values)


def about_mass_centre(r: xr.Dataset) -> np.ndarray:
    """(time, 6) spatial momentum of all bodies of the spacecraft, about their mass centre."""
    q, v = r["q"].values, r["v"].values
    p = pf.momentum(mechanism(), q, v)
    return np.hstack([p[:, :3], p[:, 3:] - np.cross(pf.mass_centre(mechanism(), q), p[:, :3])])


def below_the_crane(r: xr.Dataset) -> np.ndarray:
    """(time, 4) momenta of the car along MOMENTA, where base and right wheel move by the printed connection."""
    P = momenta(car(), r)
    carried = np.array([np.array(ca.DM(car_connection(float(a)))) for a in r["q"].sel(coordinate="psi1").values])
    p = P[:, [3, 5, 4, 7]]
    p[:, :2] -= np.einsum("tgi,tg->ti", carried, P[:, [0, 1, 2, 6]])
    return p


def in_section(r: xr.Dataset) -> np.ndarray:
    """(time, 4) x, z, theta_X, theta_Z of the base: its pose modulo the isotropy group of MU. [chhabra14 3.4]"""
    turns = Rotation.from_quat(r["q"].values[:, 3:7])
    about_y, about_x, about_z = turns.as_euler("YXZ").T
    slide = MU_2 / MU_1 * np.stack([np.sin(about_y), 0 * about_y, -2 * np.sin(about_y / 2) ** 2], axis=1)
    p = Rotation.from_euler("Y", about_y[:, None]).inv().apply(r["q"].values[:, :3] - slide)
    return np.stack([p[:, 0], p[:, 2], about_x, about_z], axis=1)


def in_plane(m: pf.Mechanism, r: xr.Dataset) -> np.ndarray:
    """(time, 3) spatial p_x, p_y and L_z of a planar base."""
    p, (x, y, a) = momenta(m, r)[:, :3], r["q"].values[:, :3].T
    f = np.stack([np.cos(a) * p[:, 0] - np.sin(a) * p[:, 1], np.sin(a) * p[:, 0] + np.cos(a) * p[:, 1]])
    return np.stack([*f, p[:, 2] + x * f[1] - y * f[0]], axis=1)


def rover_curvature(r: xr.Dataset) -> np.ndarray:
    """Upsilon = <P, (0, b^2 / 2c, 0)> of the rover along a run [N m s]."""
    return momenta(rover(), r)[:, 1] * ROVER["radius"] ** 2 / (2 * ROVER["axle"])


def along_time(r: xr.Dataset, values: np.ndarray) -> np.ndarray:
    """Rates by central differences of sixth order, for all records but three at each end."""
    h = float(r["time"][1] - r["time"][0])
    a = [values[3 + k : len(values) - 3 + k] for k in range(-3, 4)]
    return (-a[0] + 9 * a[1] - 45 * a[2] + 45 * a[4] - 9 * a[5] + a[6]) / (60 * h)


# -- figures ----------------------------------------------------------------------------------------------------------


def figures(result: dict[str, xr.Dataset]) -> dict[str, Any]:
    names = ("spacecraft", "rover", "car", "matrices")
    return {name: draw(result) for name, draw in zip(names, (_spacecraft, _rover, _car, _matrices), strict=True)}


def _spacecraft(result: dict[str, xr.Dataset]) -> Any:
    figure = blank_figure(10.0, 6.0)
    (place, shape, phase), (orbit, momentum, spatial) = figure.subplots(2, 3)
    full, bundle, at_mu = (result[f"spacecraft{x}"] for x in ("", ", bundle", ", at mu"))
    t = full["time"]
    for i, axis in enumerate("xyz"):
        place.plot(t, full["q"][:, i], color=f"C{i}", label=axis)
        place.plot(t[::20], at_mu["q"][::20, i], ".", color=f"C{i}")
    place.set(ylabel="position of the base [m]", title="dots: at one momentum")
    place.legend()
    for i, name in enumerate(mechanism().q_names[7:]):
        shape.plot(t, full["q"][:, 7 + i], color=f"C{i}", label=name)
        shape.plot(t[::20], at_mu["q"][::20, 7 + i], ".", color=f"C{i}")
        phase.plot(at_mu["q"][:, 7 + i], at_mu["shape_momentum"][:, i], color=f"C{i}")
    shape.set(ylabel="hinge [rad]", title="shape")
    shape.legend(ncols=2)
    phase.set(xlabel="hinge [rad]", ylabel="its momentum [N m s]", title="reduced phase space: shape, same colours")
    x, z, a, b = in_section(full).T
    orbit.plot(x, z, label="x, z [m]")
    orbit.plot(a, b, label="theta_X, theta_Z [rad]")
    orbit.set(xlabel="x or theta_X", ylabel="z or theta_Z", title="reduced phase space: orbit of mu")
    orbit.legend()
    body = momenta(mechanism(), full)
    for i, axis in enumerate("xyz"):
        momentum.plot(t, body[:, 3 + i], color=f"C{i}", label=f"about {axis}")
        momentum.axhline(MU[3 + i], color=f"C{i}", linestyle=":")
    momentum.set(ylabel="momentum [N m s]", title="in the body; dotted: spatial, zero about y and z")
    momentum.legend()
    for label, r in (("full", full), ("at one momentum", at_mu), ("bundle", bundle)):
        off = np.abs(pf.reduction.momentum_map(mechanism(), r["q"].values, r["v"].values) - MU).max(axis=1)
        spatial.semilogy(t, np.maximum(off, 1e-17), label=label)
    spatial.set(ylabel="spatial momentum minus mu [N s, N m s]", title="momentum of the bodies")
    spatial.legend()
    for ax in (place, shape, momentum, spatial):
        ax.set(xlabel="time [s]")
    return figure


def _rover(result: dict[str, xr.Dataset]) -> Any:
    figure = blank_figure(10.0, 6.0)
    (way, wheels, phase), (ground, curvature, off) = figure.subplots(2, 3)
    full, r = result["rover"], result["rover, reduced"]
    t = r["time"]
    way.plot(full["q"][:, 0], full["q"][:, 1], color="#BBBBBB", linewidth=4, label="with reactions")
    way.plot(r["q"][:, 0], r["q"][:, 1], label="reduced")
    way.set(xlabel="x [m]", ylabel="y [m]", aspect="equal", title="axle's centre")
    way.legend()
    names = list(r["momentum_entry"].values)
    for i, name in enumerate(names):
        if i < 2:
            wheels.plot(t, r["momentum"][:, i], color=f"C{i}", label=name)
        else:
            phase.plot(r["q"][:, 3 + i], r["momentum"][:, i], color=f"C{i}", label=name)
    wheels.set(ylabel="momentum [N m s]", title="wheels: no force, yet not conserved")
    wheels.legend()
    phase.set(xlabel="hinge [rad]", ylabel="momentum [N m s]", title="reduced phase space: arm")
    phase.legend()
    for i, name in enumerate(("p_x [N s]", "p_y [N s]", "L_z [N m s]")):
        ground.plot(t, in_plane(rover(), full)[:, i], color=f"C{i}", label=name)
        ground.plot(t[::50], in_plane(rover(), r)[::50, i], ".", color=f"C{i}")
    ground.set(ylabel="spatial momentum", title="not conserved; dots: reduced")
    ground.legend()
    pull = rover_curvature(r)[3:-3]
    curvature.plot(t[3:-3], pull, color="#BBBBBB", linewidth=4, label="from momenta of the base")
    measured = along_time(r, r["momentum"].values[:, 0]) / r["v"].values[3:-3, 4]
    curvature.plot(t[3:-3], measured, label="from the rate of p_psi1")
    curvature.set(ylabel="Upsilon [N m s]", title="curvature term")
    curvature.legend()
    off.semilogy(t, np.maximum(np.abs(r["q"] - full["q"]).max(dim="coordinate"), 1e-17), label="reduced minus full, q")
    off.semilogy(t, np.maximum(r["velocity_violation"], 1e-17), label="slip of the reduced [m/s]")
    off.set(title="differences")
    off.legend()
    for ax in (wheels, ground, curvature, off):
        ax.set(xlabel="time [s]")
    return figure


def _car(result: dict[str, xr.Dataset]) -> Any:
    figure = blank_figure(10.0, 6.0)
    (way, shape, phase), (momentum, curvature, off) = figure.subplots(2, 3)
    full, r, six = result["car"], result["car, reduced"], result["car, two steps"]
    t = six["time"].values
    way.plot(full["q"][:, 0], full["q"][:, 1], color="#BBBBBB", linewidth=4, label="with reactions")
    way.plot(r["q"][:, 0], r["q"][:, 1], label="reduced")
    way.set(xlabel="x [m]", ylabel="y [m]", aspect="equal", title="rear axle's centre")
    way.legend()
    for i, name in enumerate(MOMENTA):
        if name != "psi2":
            shape.plot(t, r["q"].sel(coordinate=name), color=f"C{i}", label=name)
            shape.plot(t[::5], six["q"][::5, i], ".", color=f"C{i}")
        change = r["momentum"].sel(momentum_entry=name).values
        momentum.plot(t, change - change[0], color=f"C{i}", label=name)
    shape.set(ylabel="[rad]", title="shape; dots: in six dimensions")
    shape.legend()
    momentum.set(ylabel="change of momentum [N m s]", title="the post's is conserved")
    momentum.legend()
    for i, name in ((0, "psi1"), (2, "phi2")):
        values = six["shifted"].values[:, i]
        angle = six["q"].sel(entry=name).values
        phase.plot(angle - angle[0], values - values[0], color=f"C{MOMENTA.index(name)}", label=name)
    phase.set(xlabel="change of angle [rad]", ylabel="change of shifted momentum [N m s]", title="phase space of dimension six")
    phase.legend()
    curvature.plot(t, six["curvature"], label="Upsilon")
    curvature.set(ylabel="[N m s]", title="curvature term")
    joined = r["q"].sel(coordinate=MOMENTA).values
    off.semilogy(t, np.maximum(np.abs(r["q"] - full["q"]).max(dim="coordinate"), 1e-17), label="reduced minus full, q")
    off.semilogy(t, np.maximum(np.abs(six["q"].values - joined).max(axis=1), 1e-17), label="two steps minus one, q")
    off.set(title="differences [m, rad]")
    off.legend()
    for ax in (shape, momentum, curvature, off):
        ax.set(xlabel="time [s]")
    return figure


def _matrices(result: dict[str, xr.Dataset]) -> Any:
    figure = blank_figure(10.0, 5.2)
    axes = figure.subplots(2, 2, width_ratios=(1, 1.2)).ravel()
    K = pf.mass_matrix(car(), car_start()[0])
    names = [n.removeprefix("base.") for n in car().v_names]
    twist = ["v_x", "v_y", "v_z", "w_x", "w_y", "w_z"]
    wheels = ["psi1", "psi2"]
    matrix(axes[0], result["spacecraft, at start"]["K11"].values, twist, twist, "spacecraft: K11, arm stretched")
    matrix(axes[1], K, names, names, "car: K at the start")
    matrix(axes[2], rover_connection(), ["v_x", "v_y", "w"], wheels, "rover: connection of the wheels")
    connection = np.array(ca.DM(car_connection(ca.SX(CAR_SHAPE[0]))))
    matrix(axes[3], connection, ["v_x", "v_y", "w", "psi3"], wheels, "car: connection of the wheels, psi1 = 0.2")
    return figure


def matrix(ax: Any, M: np.ndarray, rows: list[str], columns: list[str], title: str) -> None:
    """Draw the numbers of a matrix, nonzero ones on a dark ground."""
    M = np.where(np.abs(M) < 1e-12 * np.abs(M).max(), 0, M)
    ax.imshow(M != 0, cmap="Blues", vmin=0, vmax=4, aspect="auto")
    for i, k in np.ndindex(M.shape):
        ax.text(k, i, f"{M[i, k]:.5g}", ha="center", va="center", fontsize=7)
    ax.set_xticks(range(len(columns)), columns)
    ax.set_yticks(range(len(rows)), rows)
    ax.tick_params(length=0)
    ax.grid(False)
    ax.spines[:].set_visible(False)
    ax.set_title(title)


# -- claims -----------------------------------------------------------------------------------------------------------


def claims(result: dict[str, xr.Dataset]) -> Iterator[Claim]:
    yield from _of_spacecraft(result)
    yield from _of_rover(result["rover"], result["rover, reduced"])
    yield from _of_car(result["car"], result["car, reduced"], result["car, two steps"])


def _entries(what: str, values: np.ndarray, expected: tuple[float, ...], tolerance: float, source: str) -> Iterator[Claim]:
    for i, (x, value) in enumerate(zip(values, expected, strict=True)):
        yield Claim(f"{what}, entry {i + 1}", x, value, tolerance, source)


def _of_spacecraft(result: dict[str, xr.Dataset]) -> Iterator[Claim]:
    at, source = result["spacecraft, at start"], "[chhabra14 3.4]"
    full, others = result["spacecraft"], {n: result[f"spacecraft, {n}"] for n in ("bundle", "at mu")}
    K11 = np.diag([146, 146, 146, 138.34, 40.61, 133.84])
    K11[[0, 5], [5, 0]], K11[[2, 3], [3, 2]] = -49.4, 49.4
    yield Claim("spacecraft: K11, arm stretched, minus the printed one", np.abs(at["K11"].values - K11).max(), 0, 1e-12, source)
    p = (4.23626868, -1.00450522, 2.68073404, 2.55851996, 0.28156443, 0.54542408)
    yield from _entries("spacecraft: shape momentum at 0", at["shape_momentum"].values, p, 6e-9, source)
    last = (1.6246502994, 0.9415472815, -0.4612152686, 0.1216709787, -0.5099969956, -1.1821938358)
    section = (0.25588136, -0.441264147, 0.8193218581, -0.6337636431)
    for name, r in {"full": full, **others}.items():
        yield Claim(f"spacecraft {name}: run ended early", float(r["status"] != 0), 0)
        yield Claim(f"spacecraft {name}: energy at 0 [J]", r["energy"][0], 9.56720528757156, 1e-13, source)
        yield Claim(f"spacecraft {name}: change of energy [J]", np.ptp(r["energy"].values), 0, 1e-10, source)
        yield from _entries(f"spacecraft {name}: shape at 5 s", r["q"].values[-1, 7:], last, 2e-10, source)
        yield from _entries(f"spacecraft {name}: base modulo isotropy at 5 s", in_section(r)[-1], section, 6e-9, source)
        off = np.abs(pf.reduction.momentum_map(mechanism(), r["q"].values, r["v"].values) - MU).max()
        yield Claim(f"spacecraft {name}: momentum of the bodies minus mu", off, 0, 1e-11, "[chhabra14 prop. 3.2.3]")
    for name, r in others.items():
        for what in ("q", "v"):
            yield Claim(
                f"spacecraft {name}: {what} minus that of the full run", np.abs(r[what] - full[what]).max(), 0, 1e-10, source
            )
    off = np.abs(others["bundle"]["momentum"].values[:, :6] - about_mass_centre(full)).max()
    yield Claim("spacecraft bundle: momentum in the state minus that of the bodies in the full run", off, 0, 1e-10, source)
    at_mu = others["at mu"]
    f, n = at_mu["orbit"].values[:, :3], at_mu["orbit"].values[:, 3:]
    # The two functions of the momentum whose level sets are the orbits.
    conserved = [np.linalg.norm(f, axis=1) / MU_1, (f * n).sum(axis=1) / (MU_1 * MU_2)]
    off = max(np.abs(x - level).max() for x, level in zip(conserved, (1, 0), strict=True))
    yield Claim("spacecraft at mu: distance of the body momentum from its orbit", float(off), 0, 1e-12, source)
    dimension = f.shape[1] + n.shape[1] - len(conserved) + 2 * at_mu["shape_momentum"].shape[1]
    yield Claim("spacecraft at mu: dimension", dimension, 16, 0, source)
    group = subgroups.isotropy(np.eye(6), MU)
    generators = np.array([[0, 1, 0, 0, 0, 0], [MU_2 / MU_1, 0, 0, 0, 1, 0]]).T
    yield Claim("isotropy group of mu is SO(2) x R", subgroups.name_of(group) == "SO(2) x R", 1, 0, "[chhabra14 table 3.1]")
    off = np.abs(generators - group @ (group.T @ generators)).max()
    yield Claim("isotropy group of mu: E2 and (mu2 / mu1) E1 + E5, part outside the group", off, 0, 1e-15, source)


def _of_rover(full: xr.Dataset, r: xr.Dataset) -> Iterator[Claim]:
    source = "[chhabra14 example 4.6.1]"
    p = r["momentum"].values
    start = (0.3420221583, 0.5009472578, 0.1602721127, -0.0313758986, -0.0084255255)
    yield from _entries("rover: momentum at 0", p[0], start, 6e-11, source)
    end = (0.2405473898, 0.5134040504, 0.7530522741, -1.8491991622, -0.3893480905)
    yield from _entries("rover: momentum at 2 s", p[-1], end, 3e-10, source)
    place = (0.4684499479, 0.1268339779, 0.280903417, 4.2006886571, 5.6052057422, 4.7065181915, -0.2445288112, 0.6321995637)
    yield from _entries("rover: position and shape at 2 s", r["q"].values[-1], place, 3e-10, source)
    yield Claim("rover: dimension", 2 * p.shape[1], 10, 0, source)
    yield Claim("rover: energy at 0 [J]", r["energy"][0], 5.0449578791725, 1e-12, source)
    yield Claim("rover: change of energy [J]", np.ptp(r["energy"].values), 0, 1e-9, source)
    for what in ("q", "v"):
        yield Claim(f"rover: {what} minus that with reactions", np.abs(r[what] - full[what]).max(), 0, 1e-9, source)
    yield Claim("rover: slip [m/s]", r["velocity_violation"].max(), 0, 1e-14, source)
    K = pf.mass_matrix(rover(), r["q"].values[0])
    lift = np.vstack([np.pad(-rover_connection(), [(0, 0), (0, 3)]), np.eye(5)])
    off = np.abs(lift.T @ K @ lift @ ROVER_START[1][3:] - p[0]).max()
    yield Claim("rover: momentum at 0 minus that by the printed connection", off, 0, 1e-14, source)
    pull = rover_curvature(r)
    yield Claim("rover: Upsilon at 0 [N m s]", pull[0], 0.006035250883290945, 1e-15, source)
    rates, turn = along_time(r, p), r["v"].values[3:-3, 3:5]
    for i, sign in ((0, 1), (1, -1)):
        off = np.abs(rates[:, i] - sign * pull[3:-3] * turn[:, 1 - i]).max()
        yield Claim(f"rover: rate of p_psi{i + 1} minus its curvature term [N m]", off, 0, 1e-8, "[chhabra14 (4.2.13)]")
        change = np.ptp(p[:, i])
        yield Claim(f"rover: change of p_psi{i + 1}, without any force on it [N m s]", change, 0.01, 0, source, "at least")
    ground = in_plane(rover(), r)
    yield from _entries("rover: spatial momentum at 0", ground[0], (8.00969416, 0.30176254, 0.38231275), 6e-9, source)
    yield from _entries("rover: spatial momentum at 2 s", ground[-1], (6.72787419, 2.52075095, 1.02916767), 6e-9, source)


def _of_car(full: xr.Dataset, r: xr.Dataset, six: xr.Dataset) -> Iterator[Claim]:
    source, theta = "[chhabra14 example 4.6.2]", 16.4431059224
    entries = r["momentum"].sel(momentum_entry=MOMENTA).values
    start = (460.9605650287, 275.1785530287, theta, 8)
    yield from _entries("car: momentum at 0", entries[0], start, 6e-11, source)
    yield Claim("car: dimension", 2 * entries.shape[1], 8, 0, source)
    with_reactions = below_the_crane(full)
    off = np.abs(with_reactions - entries).max()
    yield Claim("car: momenta minus those with reactions, by the printed connection [N m s]", off, 0, 1e-8, source)
    # A conserved momentum, which the second step removes together with its angle.
    conserved = np.ptp(with_reactions, axis=0) < 1e-8
    yield Claim("car: dimension after the second step", 2 * (~conserved).sum(), six.attrs["dimension"], 0, source)
    off = np.abs(with_reactions[:, 2] - theta).max()
    yield Claim("car: change of the post's momentum with reactions [N m s]", off, 0, 1e-9, "[chhabra14 cor. 4.2.13]")
    yield Claim("car: energy at 0 [J]", r["kinetic_energy"][0], 576.671600197, 6e-10, source)
    yield Claim("car: change of energy [J]", np.ptp(r["kinetic_energy"].values), 0, 1e-9, source)
    for what in ("q", "v"):
        yield Claim(f"car: {what} minus that with reactions", np.abs(r[what] - full[what]).max(), 0, 1e-10, source)
    yield Claim("car: slip [m/s]", r["velocity_violation"].max(), 0, 1e-13, source)
    K = np.array(ca.DM(car_inertia(ca.SX(CAR_SHAPE[3]))))
    off = np.abs(pf.mass_matrix(car(), car_start()[0]) - K).max()
    yield Claim("car: K minus its printed blocks", off, 0, 1e-12, source)
    P = momenta(car(), r)[:, [0, 1, 2, 6]]
    q, v = (r[x].values for x in ("q", "v"))
    pull = np.array([float(ca.DM(car_curvature(ca.DM(P[i]), ca.DM(q[i, 3])))) for i in range(len(q))])
    yield Claim("car: Upsilon at 0 [N m s]", pull[0], -35.5657813202671, 1e-12, source)
    off = np.abs(along_time(r, entries[:, 1]) + (pull * v[:, 3])[3:-3]).max()
    yield Claim("car: rate of p_psi2 minus its curvature term [N m]", off, 0, 1e-6, "[chhabra14 (4.2.13)]")
    off = np.abs(six["q"].values - r["q"].sel(coordinate=MOMENTA).values).max()
    yield Claim("car in six dimensions: shape minus that of one step", off, 0, 1e-9, "[chhabra14 (4.5.38)]")
    off = np.abs(six["p"].values - entries).max()
    yield Claim("car in six dimensions: momenta minus those of one step [N m s]", off, 0, 1e-8, "[chhabra14 (4.5.38)]")
    yield Claim("car in six dimensions: change of energy [J]", np.ptp(six["energy"].values), 0, 1e-9, "[chhabra14 (4.5.37)]")
    _, _, _, _, c, b = CAR.values()
    s = np.sin(q[:, 3])
    swing = theta / K_33(q[:, 7]) - (c * v[:, 3] + b * v[:, 5]) * s / (CAR["l"] - c * s)
    yield Claim("car: speed of the post from its momentum", np.abs(swing - v[:, 4]).max(), 0, 1e-9, "[chhabra14 (5.1.9)]")


def K_33(phi2: np.ndarray) -> np.ndarray:
    """Inertia of post and boom about the post [kg m^2]."""
    return 1.5 + 2.0 * np.sin(phi2) ** 2 + 40.0 * np.cos(phi2) ** 2
