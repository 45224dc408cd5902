"""Reduction steps without an example in the thesis: a second step by a noncommutative group, a third by constants of motion.

A gyroscope stands on a carriage that rolls on a steered wheel and never turns. The first step is Chaplygin's reduction by the
plane, the second is by the rotations of the gyroscope in space, SO(3); two unbalanced rotors turn in its hull. [chhabra14
theorem 4.5.2, (4.5.38)] The reduced space at one momentum is integrated here by its two-forms alone, in a chart of the
momentum's sphere.

The same carriage then has a load that slides along x instead, and a spring on its fork. The load's momentum is conserved, which
gives a second step, but the sum of its two-form and the wheel's, -D' p / 2 D da dpsi, is not closed. Yet h = p / sqrt(D) is a
constant of motion, where p is the momentum of rolling below a load at rest and D(a) the inertia of this motion. Its field, 1 /
sqrt(D) d/dpsi, is that of a group, and its contraction with d Xi vanishes where h is constant. This is the third step, after
which the fork swings as if nothing rolled, in two dimensions of six. [chhabra14 theorem 4.2.17]

All machines are ours, of the size of toys on a table; so are the fields. `chhabra-constants` has another third step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import casadi as ca
import numpy as np
import xarray as xr

import pfaffian as pf
from pfaffian.maths import subgroups
from pfaffian.study import Claim, blank_figure

X, Y, Z = (1, 0, 0), (0, 1, 0), (0, 0, 1)

# -- a gyroscope on a carriage ------------------------------------------------------------------------------------------

CARRIAGE = {"b": 0.1, "e": 0.08, "mass": 3.0, "fork": 0.6, "fork_I": 0.006, "wheel": 0.4, "wheel_I": 0.002, "cable": 0.4}
"""Radius of the wheel, distance of the fork's mass centre in front of its pivot [m]; masses [kg], inertias of the turning fork
with wheel and of the rolling wheel [kg m^2]; stiffness of the cable between the fork and a rotor [N m/rad]."""
HULL, ROTORS = np.array([0.030, 0.040, 0.035]), (np.array([0.012, 0.004, 0.009]), np.array([0.007, 0.003, 0.010]))
"""Principal inertias of the hull, and of the rotors about x and z, which are not symmetric about their axes [kg m^2]."""
GYRO_START = (np.array([0.3, 0.0, 0.4, -0.2]), np.array([0.8, 6.0, 1.5, -2.0]), np.array([0.6, -0.4, 1.0]))
"""Angles of fork, wheel and rotors [rad], their speeds [rad/s], and the hull's angular velocity in its axes [rad/s]."""


def mechanism() -> pf.Mechanism:
    """The gyroscope on the carriage."""
    g = CARRIAGE
    bodies = [
        pf.body("carriage", g["mass"], inertia=0.1),
        pf.body("fork", g["fork"], com=(g["e"], 0, 0), inertia=(0.003, 0.004, g["fork_I"])),
        pf.body("wheel", g["wheel"], inertia=(0.001, g["wheel_I"], 0.001)),
        pf.body("hull", 1.0, inertia=tuple(HULL)),
        pf.body("rotor x", 0.3, inertia=tuple(ROTORS[0])),
        pf.body("rotor z", 0.3, inertia=tuple(ROTORS[1])),
    ]
    joints = [
        pf.joint("ground", "planar-translation", "world", "carriage"),
        pf.joint("steer", "revolute", "carriage", "fork", axis=Z),
        pf.joint("roll", "revolute", "fork", "wheel", axis=Y),
        pf.joint("gimbal", "spherical", "carriage", "hull", placement=(0, 0, 0.3)),
        pf.joint("x", "revolute", "hull", "rotor x", axis=X),
        pf.joint("z", "revolute", "hull", "rotor z", axis=Z),
    ]

    def rolling(k: pf.Kinematics) -> ca.SX:
        a, ahead = k.joint("steer"), g["b"] * k.joint_rate("roll")
        return k.joint_rate("ground") - ca.vertcat(ahead * ca.cos(a), ahead * ca.sin(a))

    cable = pf.forces.potential("cable", lambda k: g["cable"] * (k.joint("x") - k.joint("steer")) ** 2 / 2)
    return pf.mechanism(
        "gyroscope on a carriage", bodies, joints, constraints=[pf.nonholonomic("wheel", rolling)], forces=[cable],
        gravity=(0, 0, -9.81),
    )  # fmt: skip


def gyro_start() -> tuple[np.ndarray, np.ndarray]:
    q, s, w = GYRO_START
    ahead = CARRIAGE["b"] * s[1] * np.array([np.cos(q[0]), np.sin(q[0])])
    return np.r_[0, 0, q[:2], 0, 0, 0, 1, q[2:]], np.r_[ahead, s[:2], w, s[2:]]


def turning(axis: int, a: ca.SX) -> ca.SX:
    c, s = ca.cos(a), ca.sin(a)
    rows = {0: [[1, 0, 0], [0, c, -s], [0, s, c]], 1: [[c, 0, s], [0, 1, 0], [-s, 0, c]], 2: [[c, -s, 0], [s, c, 0], [0, 0, 1]]}
    return ca.blockcat(rows[axis])


def gyro_blocks(a: ca.SX) -> tuple[ca.SX, ca.SX, ca.SX]:
    """K (3, 3), the inertia of hull and rotors; connection B (3, 2) of the rotors; (2, 2) inertia matrix of their motion."""
    K, K1s = ca.SX(ca.diag(ca.DM(HULL))), ca.SX(3, 2)
    for i, axis in enumerate((0, 2)):
        R, J = turning(axis, a[i]), ca.diag(ca.DM(ROTORS[i]))
        K += R @ J @ R.T
        K1s[axis, i] = ROTORS[i][axis]
    B = ca.solve(K, K1s)
    return K, B, ca.diag(ca.DM([ROTORS[0][0], ROTORS[1][2]])) - K1s.T @ B


def upright(n: np.ndarray) -> np.ndarray:
    """Rotation whose last column is along n."""
    z = n / np.linalg.norm(n)
    x = np.cross(Y, z) / np.linalg.norm(np.cross(Y, z))
    return np.column_stack([x, np.cross(z, x), z])


class TwoSteps:
    """The gyroscope at one spatial momentum of hull and rotors; the chart turns about y and x from the momentum's axis.

    State: two coordinates of the sphere, fork, wheel, rotors x and z, and the momenta of these four minus the part that the
    connection assigns to the hull.
    """

    def __init__(self, momentum: np.ndarray) -> None:
        g = CARRIAGE
        self.size, self.axes = float(np.linalg.norm(momentum)), upright(momentum)
        o, s, p = ca.SX.sym("o", 2), ca.SX.sym("s", 4), ca.SX.sym("p", 4)
        K, B, shape = gyro_blocks(s[2:])
        body = self.body_momentum(o)
        R = self.section(o)
        spins = [ca.reshape(ca.jacobian(ca.vec(R), o[i]), 3, 3) for i in range(2)]
        of_section = ca.horzcat(*[_vee(R.T @ x) for x in spins])
        theta = ca.vertcat(of_section.T @ body, 0, 0, B.T @ body)
        x = ca.vertcat(o, s)
        J = ca.jacobian(theta, x)
        Xi = J.T - J
        felt = ca.diagcat(g["fork_I"] + g["fork"] * g["e"] ** 2 + 0.001, self._rolling(), shape)
        y = ca.solve(felt, p)
        V = g["cable"] * (s[2] - s[0]) ** 2 / 2
        H = ca.dot(p, y) / 2 + ca.dot(body, ca.solve(K, body)) / 2 + V
        # Curvature term of the wheel: <P, B^>, where P is the lateral momentum of the fork's mass centre.
        rolled = -g["b"] * g["fork"] * g["e"] * y[0]
        o_dot = ca.solve(Xi[:2, :2], ca.gradient(H, o) - Xi[:2, 2:] @ y)
        p_dot = -ca.gradient(H, s) + Xi[2:, :2] @ o_dot + Xi[2:, 2:] @ y
        p_dot += ca.vertcat(rolled * y[1], -rolled * y[0], 0, 0)
        w = ca.solve(K, body) - B @ y[2:]
        state = ca.vertcat(o, s, p)
        self.rate = ca.Function("rate", [state], [ca.vertcat(o_dot, y, p_dot)])
        self.outputs = ca.Function("said", [state], [body, w, H, rolled, ca.vec(Xi)])
        self.felt = ca.Function("felt", [s], [felt])

    @staticmethod
    def _rolling() -> float:
        g = CARRIAGE
        carried = g["mass"] + g["fork"] + g["wheel"] + 1.0 + 0.3 + 0.3
        return carried * g["b"] ** 2 + g["wheel_I"]

    @staticmethod
    def section(o: ca.SX) -> ca.SX:
        return turning(1, o[0]) @ turning(0, o[1])

    def body_momentum(self, o: ca.SX) -> ca.SX:
        return self.section(o).T @ ca.DM([0, 0, self.size])

    def orbit(self, R: np.ndarray) -> np.ndarray:
        """(2,) coordinates on the sphere at an attitude of the hull."""
        x, y, z = self.axes[:, 2] @ R
        return np.array([np.arctan2(-x, np.hypot(y, z)), np.arctan2(y, z)])


def _vee(x: ca.SX) -> ca.SX:
    return ca.vertcat(x[2, 1], x[0, 2], x[1, 0])


def rolled_out(rate: Callable[[np.ndarray], np.ndarray], x: np.ndarray, step: float, steps: int, every: int) -> np.ndarray:
    """(records, n) states by the classical Runge-Kutta method of fourth order."""
    records = [x]
    for i in range(steps):
        k1 = rate(x)
        k2 = rate(x + step / 2 * k1)
        k3 = rate(x + step / 2 * k2)
        x = x + step / 6 * (k1 + 2 * k2 + 2 * k3 + rate(x + step * k3))
        if not (i + 1) % every:
            records.append(x)
    return np.array(records)


def two_steps() -> xr.Dataset:
    """Run of the gyroscope by its two-forms. [chhabra14 (4.5.38)]"""
    q, s, w = GYRO_START
    K, B, _ = (np.array(ca.evalf(x)) for x in gyro_blocks(ca.SX(q[2:])))
    momentum = K @ (w + B @ s[2:])  # the hull starts at the identity
    machine = TwoSteps(momentum)
    p = np.array(machine.felt(q)) @ s
    x = rolled_out(lambda x: np.array(machine.rate(x)).ravel(), np.r_[machine.orbit(np.eye(3)), q, p], 2e-3, 1500, 15)
    body, spin, H, rolled, Xi = (np.array(y) for y in machine.outputs.map(len(x))(x.T))
    return xr.Dataset(
        {
            "orbit": (("time", "angle"), x[:, :2]),
            "shape": (("time", "joint"), x[:, 2:6]),
            "shape_momentum": (("time", "joint"), x[:, 6:]),
            "body_momentum": (("time", "axis"), body.T),
            "spin": (("time", "axis"), spin.T),
            "energy": ("time", H.ravel()),
            "curvature": ("time", rolled.ravel()),
            "form": (("time", "i", "j"), Xi.reshape(6, len(x), 6).transpose(1, 0, 2)),
        },
        coords={"time": 0.03 * np.arange(len(x)), "joint": ["steer", "roll", "x", "z"]},
        attrs={"momentum": momentum},
    )


# -- a load that slides along the carriage ------------------------------------------------------------------------------

CART_START = (np.array([0, 0, 0.4, 0, 0.05]), (0.3, 8.0, -0.2))
"""q; speeds of fork and wheel [rad/s] and of the load [m/s]."""
LOAD = 2.0
"""Mass on the slide [kg]."""
FORK_SPRING = 0.15
"""Stiffness of the spring on the fork [N m/rad]."""


def cart() -> pf.Mechanism:
    """The carriage with a balanced fork, and a load on a slide along x instead of the gyroscope."""
    g = CARRIAGE
    bodies = [
        pf.body("carriage", g["mass"], inertia=0.1),
        pf.body("fork", g["fork"], inertia=(0.003, 0.004, g["fork_I"])),
        pf.body("wheel", g["wheel"], inertia=(0.001, g["wheel_I"], 0.001)),
        pf.body("load", LOAD, inertia=0.01),
    ]
    joints = [
        pf.joint("ground", "planar-translation", "world", "carriage"),
        pf.joint("steer", "revolute", "carriage", "fork", axis=Z, stiffness=FORK_SPRING),
        pf.joint("roll", "revolute", "fork", "wheel", axis=Y),
        pf.joint("slide", "prismatic", "carriage", "load", axis=X),
    ]
    wheel = pf.nonholonomic("wheel", lambda k: k.joint_rate("ground") - ahead(k.joint("steer")) * k.joint_rate("roll"))
    return pf.mechanism("cart with a load", bodies, joints, constraints=[wheel], gravity=(0, 0, 0))


def ahead(a: Any) -> ca.SX:
    """(2,) displacement of the carriage per angle of the wheel [m], at a steering angle."""
    return CARRIAGE["b"] * ca.vertcat(ca.cos(a), ca.sin(a))


def felt_below_the_load(a: Any) -> Any:
    """D(a) [kg m^2]: inertia of rolling while the load keeps its position along x."""
    g = CARRIAGE
    return (g["mass"] + g["fork"] + g["wheel"]) * g["b"] ** 2 + g["wheel_I"] + LOAD * (g["b"] * np.sin(a)) ** 2


def roll_below_the_load(k: pf.Kinematics) -> ca.SX:
    """Field of the constant: the wheel turns by 1 / sqrt(D), and the load keeps its position along x."""
    a = k.joint("steer")
    way = ahead(a)
    return ca.vertcat(way, 0, 1, -way[0]) / ca.sqrt(felt_below_the_load(a))


def cart_start() -> tuple[np.ndarray, np.ndarray]:
    q, (steer, roll, slide) = CART_START
    return q, np.r_[np.array(ahead(float(q[2]))).ravel() * roll, steer, roll, slide]


def three_steps() -> xr.Dataset:
    """Run of the cart by I a_ddot = -k a, psi_dot = h / sqrt(D(a)), 2 H = I a_dot^2 + k a^2 + h^2 + theta^2 / m.
    [chhabra14 (4.2.21)]"""
    q, (steer, roll, slide) = CART_START
    I, t = CARRIAGE["fork_I"] + 0.001, 0.03 * np.arange(101)
    w = np.sqrt(FORK_SPRING / I)
    a, a_dot = q[2] * np.cos(w * t) + steer / w * np.sin(w * t), steer * np.cos(w * t) - q[2] * w * np.sin(w * t)
    h = float(np.sqrt(felt_below_the_load(q[2]))) * roll
    momentum = LOAD * (CARRIAGE["b"] * roll * np.cos(q[2]) + slide)
    energy = (I * a_dot**2 + FORK_SPRING * a**2 + h**2 + momentum**2 / LOAD) / 2
    roll_dot = h / np.sqrt(felt_below_the_load(a))
    return xr.Dataset(
        {"steer": ("time", a), "steer_dot": ("time", a_dot), "roll_dot": ("time", roll_dot), "energy": ("time", energy)},
        coords={"time": t},
        attrs={"constant": h, "load": momentum},
    )


# -- runs -------------------------------------------------------------------------------------------------------------


def run() -> dict[str, xr.Dataset]:
    keep = partial(pf.run, duration=3.0, step=5e-4, every=60)
    g, c = mechanism(), cart()
    return {
        "gyroscope": keep(g, *gyro_start()),
        "gyroscope, reduced": keep(pf.reduce(g), *gyro_start()),
        "gyroscope, two steps": two_steps(),
        "cart": keep(c, *cart_start()),
        "cart, reduced": keep(pf.reduce(c, along={"roll": roll_below_the_load}), *cart_start()),
        "cart, three steps": three_steps(),
    }


def spatial(r: xr.Dataset) -> np.ndarray:
    """(time, 3) spatial momentum of hull and rotors about the gimbal."""
    q, v = r["q"].values, r["v"].values
    out = []
    for x, y in zip(q, v, strict=True):
        K, B, _ = (np.array(ca.evalf(b)) for b in gyro_blocks(ca.SX(x[8:])))
        out.append(attitude(x) @ K @ (y[4:7] + B @ y[7:]))
    return np.array(out)


def attitude(q: np.ndarray) -> np.ndarray:
    x, y, z, w = q[4:8]
    u = np.array([x, y, z])
    hat = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return (w * w - u @ u) * np.eye(3) + 2 * np.outer(u, u) + 2 * w * hat


# -- figures ----------------------------------------------------------------------------------------------------------


def figures(result: dict[str, xr.Dataset]) -> dict[str, Any]:
    return {"gyroscope": _gyroscope(result), "cart": _cart(result)}


def _gyroscope(result: dict[str, xr.Dataset]) -> Any:
    figure = blank_figure(10.0, 3.4)
    way, sphere, shape = figure.subplots(1, 3)
    full, two = result["gyroscope"], result["gyroscope, two steps"]
    way.plot(full["q"][:, 0], full["q"][:, 1])
    way.set(xlabel="x [m]", ylabel="y [m]", aspect="equal", title="carriage")
    for i, axis in enumerate("xyz"):
        body = np.array([attitude(x).T @ p for x, p in zip(full["q"].values, spatial(full), strict=True)])
        sphere.plot(full["time"], body[:, i], color=f"C{i}", label=axis)
        sphere.plot(two["time"][::4], two["body_momentum"][::4, i], ".", color=f"C{i}")
    sphere.set(xlabel="time [s]", ylabel="[N m s]", title="momentum in the hull; dots: two steps")
    sphere.legend()
    for name, entry, color in (("steer", 2, "C3"), ("x", 8, "C0"), ("z", 9, "C2")):
        shape.plot(full["time"], full["q"][:, entry], color=color, label=name)
        shape.plot(two["time"][::4], two["shape"].sel(joint=name)[::4], ".", color=color)
    shape.set(xlabel="time [s]", ylabel="[rad]", title="fork and rotors; dots: two steps")
    shape.legend()
    return figure


def _cart(result: dict[str, xr.Dataset]) -> Any:
    figure = blank_figure(10.0, 3.4)
    way, momenta, phase = figure.subplots(1, 3)
    full, reduced, three = (result[f"cart{x}"] for x in ("", ", reduced", ", three steps"))
    q = full["q"].values
    way.plot(q[:, 0], q[:, 1], label="carriage")
    way.plot(q[:, 0] + q[:, 4], q[:, 1], label="load")
    way.set(xlabel="x [m]", ylabel="y [m]", title="from above, y stretched")
    way.legend()
    momenta.plot(full["time"], of_rolling(full), label="rolling [N m s]")
    momenta.plot(
        full["time"], reduced["momentum"].sel(momentum_entry="roll"), "--", label="constant along the field [m kg^0.5 / s]"
    )
    momenta.plot(full["time"], reduced["momentum"].sel(momentum_entry="slide"), "--", label="load [N s]")
    momenta.set(xlabel="time [s]", title="momenta", ylim=(0, None))
    momenta.legend()
    phase.plot(q[:, 2], full["v"][:, 2], label="full")
    phase.plot(three["steer"][::4], three["steer_dot"][::4], ".", label="three steps")
    phase.set(xlabel="fork [rad]", ylabel="its speed [rad/s]", title="fork")
    phase.legend()
    return figure


def of_load(r: xr.Dataset) -> np.ndarray:
    """(time,) momentum of the load along x."""
    return LOAD * (r["v"].values[:, 0] + r["v"].values[:, 4])


def of_rolling(r: xr.Dataset) -> np.ndarray:
    """(time,) momentum p of rolling below a load at rest."""
    p = np.einsum("tij,tj->ti", pf.mass_matrix(cart(), r["q"].values), r["v"].values)
    way = np.array([np.array(ahead(float(a))).ravel() for a in r["q"].values[:, 2]])
    return p[:, 3] + np.einsum("ti,ti->t", p[:, :2], way) - p[:, 4] * way[:, 0]


# -- claims -----------------------------------------------------------------------------------------------------------


def claims(result: dict[str, xr.Dataset]) -> Iterator[Claim]:
    yield from _of_gyroscope(*(result[f"gyroscope{x}"] for x in ("", ", reduced", ", two steps")))
    yield from _of_cart(*(result[f"cart{x}"] for x in ("", ", reduced", ", three steps")))


def _of_gyroscope(full: xr.Dataset, reduced: xr.Dataset, two: xr.Dataset) -> Iterator[Claim]:
    source = "[chhabra14 theorem 4.5.2]"
    for what in ("q", "v"):
        yield Claim(f"gyroscope: {what} minus that with reactions", np.abs(reduced[what] - full[what]).max(), 0, 1e-9, source)
    recorded = reduced["momentum"].values[:, 2:5]
    off = np.abs(recorded - spatial(full)).max()
    yield Claim("gyroscope: spatial momentum in the state minus that of hull and rotors", off, 0, 1e-11, source)
    yield Claim(
        "gyroscope: spatial momentum of hull and rotors minus that by hand",
        np.abs(spatial(full) - two.attrs["momentum"]).max(),
        0,
        1e-9,
        source,
    )
    off = np.abs(recorded[0] - two.attrs["momentum"]).max()
    yield Claim("gyroscope: spatial momentum in the state minus that by hand", off, 0, 1e-15, source)
    left = subgroups.name_of(np.eye(6)[:, 3:] @ subgroups.isotropy(np.eye(6)[:, 3:], two.attrs["momentum"]))
    yield Claim("gyroscope: isotropy group is SO(2)", left == "SO(2)", 1, 0, "[chhabra14 table 3.1]")
    yield Claim(
        "gyroscope: dimension, of 14 after the first step", two["orbit"].shape[1] + 2 * two["shape"].shape[1], 10, 0, source
    )
    shape = full["q"].values[:, [2, 3, 8, 9]]
    yield Claim("gyroscope in two steps: shape", np.abs(two["shape"] - shape).max(), 0, 1e-8, "[chhabra14 (4.5.38)]")
    body = np.array([attitude(q).T @ two.attrs["momentum"] for q in full["q"].values])
    off = np.abs(two["body_momentum"] - body).max()
    yield Claim("gyroscope in two steps: position on the sphere [N m s]", off, 0, 1e-9, "[chhabra14 (4.5.38)]")
    off = np.abs(two["spin"] - full["v"].values[:, 4:7]).max()
    yield Claim("gyroscope in two steps: reconstructed angular velocity of the hull", off, 0, 1e-8, "[chhabra14 (5.1.9)]")
    yield Claim("gyroscope in two steps: change of energy [J]", np.ptp(two["energy"].values), 0, 1e-9, "[chhabra14 (4.5.37)]")
    yield Claim(
        "gyroscope: largest curvature term of the wheel [N m s]", np.abs(two["curvature"]).max(), 1e-3, 0, source, "at least"
    )
    rotors = np.abs(two["form"].values[:, 4, 5]).max()
    yield Claim("gyroscope: largest two-form of the rotations, between rotors", rotors, 1e-3, 0, source, "at least")
    across = np.abs(two["form"].values[:, :2, 4:]).max()
    yield Claim("gyroscope: largest two-form between rotors and the sphere", across, 1e-3, 0, source, "at least")


def _of_cart(full: xr.Dataset, reduced: xr.Dataset, three: xr.Dataset) -> Iterator[Claim]:
    source = "[chhabra14 theorem 4.2.17]"
    for what in ("q", "v"):
        yield Claim(f"cart: {what} minus that with reactions", np.abs(reduced[what] - full[what]).max(), 0, 1e-9, source)
    by_hand = {"slide": of_load(full), "roll": of_rolling(full) / np.sqrt(felt_below_the_load(full["q"].values[:, 2]))}
    for (name, found), expected in zip(by_hand.items(), (three.attrs["load"], three.attrs["constant"]), strict=True):
        recorded = reduced["momentum"].sel(momentum_entry=name).values
        off = np.abs(found - recorded).max()
        yield Claim(f"cart: momentum of {name} in the state minus that of the machine with reactions", off, 0, 1e-11, source)
        yield Claim(f"cart: momentum of {name} in the state minus that by hand", recorded[0] - expected, 0, 1e-14, source)
    yield Claim("cart: change of p, which is not constant [N m s]", np.ptp(of_rolling(full)), 0.002, 0, source, "at least")
    q, v, m = full["q"].values, full["v"].values, cart()
    P = np.einsum("tij,tj->ti", pf.mass_matrix(m, q), v)[:, :2]
    first = np.einsum("tg,tg->t", pf.reduction.constraint_curvature(m, q)[:, 0, 1], P)
    second = -three.attrs["load"] * CARRIAGE["b"] * np.sin(q[:, 2])  # of d (theta (ds + b cos a dpsi))
    left = -LOAD * CARRIAGE["b"] ** 2 * np.sin(2 * q[:, 2]) / 2 * v[:, 3]  # -D' p / 2 D
    off = np.abs(first + second - left).max()
    yield Claim("cart: sum of the two-forms of two steps minus -D' p / 2 D [N m s]", off, 0, 1e-10, "[chhabra14 (4.2.19)]")
    yield Claim("cart: size of this sum [N m s]", np.abs(left).max(), 0.01, 0, source, "at least")
    off = np.abs(three["steer"].values - q[:, 2]).max()
    yield Claim("cart in three steps: fork [rad]", off, 0, 1e-8, "[chhabra14 (4.2.21)]")
    off = np.abs(three["roll_dot"].values - v[:, 3]).max()
    yield Claim("cart in three steps: reconstructed speed of the wheel [rad/s]", off, 0, 1e-7, "[chhabra14 (4.2.21)]")
    off = np.abs(three["energy"].values - full["energy"].values).max()
    yield Claim("cart in three steps: energy minus the machine's [J]", off, 0, 1e-9, "[chhabra14 (4.2.21)]")
    left = 2 * (np.ptp(reduced["momentum"].values, axis=0) != 0).sum()
    yield Claim("cart: dimension after the third step, of 6 after the first", left, 2, 0, source)
