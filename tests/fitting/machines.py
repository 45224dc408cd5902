"""Machines with parameters, and records of their simulated motion."""

from __future__ import annotations

from typing import Any

import numpy as np

import pfaffian as pf

TRUTH = {"base": 0.21, "crank": 0.305, "rod mass": 0.4, "stiffness": 25.0, "damping": 0.2}
NEAR = {"left crank": 2.3, "right crank": 0.9, "left elbow": -1.4, "right elbow": 1.4}


def five_bar() -> pf.Mechanism:
    """A five-bar with springs at its cranks, whose lengths, mass and springs are parameters."""
    start = {"base": (0.2, "m"), "crank": (0.3, "m"), "rod mass": (0.5, "kg"), "stiffness": (20.0, ""), "damping": (0.1, "")}
    p = {n: pf.Parameter(n, value, unit) for n, (value, unit) in start.items()}
    c, rod, axis, bodies, joints = p["crank"], 0.4, (0, -1, 0), list[Any](), list[Any]()
    for side, sign, rest in (("left", -1, 2.3), ("right", 1, 0.9)):
        crank, arm = f"{side} crank", f"{side} rod"
        bodies += [pf.body(crank, 0.6, (c / 2, 0, 0), 0.005), pf.body(arm, p["rod mass"], (rod / 2, 0, 0), 0.005)]
        spring = {"stiffness": p["stiffness"], "damping": p["damping"], "rest": rest}
        joints.append(pf.joint(crank, "revolute", "world", crank, axis=axis, placement=(sign * p["base"] / 2, 0, 0), **spring))
        joints.append(pf.joint(f"{side} elbow", "revolute", crank, arm, axis=axis, placement=(c, 0, 0)))
    ends = {"placement_a": (rod, 0, 0), "placement_b": (rod, 0, 0)}
    tip = pf.closure("tip", "revolute", "left rod", "right rod", axis=axis, **ends)
    motors = [pf.actuator(f"{side} motor", f"{side} crank") for side in ("left", "right")]
    return pf.mechanism("five-bar", bodies, joints, constraints=[tip], actuators=motors, parameters=list(p.values()))


def pendulum(damping: float = 0.05) -> pf.Mechanism:
    """A driven pendulum of unknown first moment, inertia and damping."""
    h, I, d = pf.Parameter("m_r", 0.8, "kg m"), pf.Parameter("I", 0.5, "kg m^2"), pf.Parameter("damping", damping, "N m s")
    rod = pf.body("rod", 2.0, (0, 0, -h / 2), (0.3, I - h**2 / 2, 0.3))
    hinge = pf.joint("hinge", "revolute", "world", "rod", axis=(0, -1, 0), damping=d)
    return pf.mechanism("pendulum", [rod], [hinge], actuators=[pf.actuator("motor", "hinge")], parameters=[h, I, d])


PENDULUM = {"m_r": 1.0, "I": 0.6, "damping": 0.1}


def record(
    m: pf.Mechanism, truth: dict[str, float], names: tuple[str, ...], *, q: Any = None, guess: Any = None, seconds: float = 2.0,
    period: float = 0.01, late: int = 0, noise: float = 1e-3, seed: int = 1,
) -> dict[str, Any]:  # fmt: skip
    """A record of the named coordinates under inputs that vary.   late: tenths of a period by which the inputs are late."""
    fine, rng = 10, np.random.default_rng(seed)
    n, h = round(seconds / period), period / fine
    t = np.arange(n + 2) * period
    force = np.column_stack([2 * np.sin(5 * t + i) + 2 * np.sin((17 + 5 * i) * t) for i in range(m.nu)])
    acting = np.repeat(force, fine, axis=0)[late : late + n * fine]
    run = pf.run(
        m, q, guess=guess, u=acting, u_step=h, duration=n * period, step=h, parameters=truth, every=fine,
        error_bound=np.inf,
    )  # fmt: skip
    places = [m.q_names.index(x) for x in names]
    measured = run["q"].values[:, places] + noise * rng.normal(size=(n + 1, len(names)))
    return {"time": t[:-1], "q": dict(zip(names, measured.T, strict=True)), "u": force[:-1]}


CART = {"mass": 130.0, "wheelbase": 1.25, "trailer": 1.05, "steering": 9.0}
CART_NEAR = {"steer": 0.2, "hitch": 0.2}


def cart() -> pf.Mechanism:
    """A cart that steers its front wheels and pulls a trailer, whose hitch nobody measures; three axles roll without slip."""
    start = {"mass": (120.0, "kg"), "wheelbase": (1.2, "m"), "trailer": (1.0, "m"), "steering": (8.0, "N m s")}
    p = {n: pf.Parameter(n, value, unit) for n, (value, unit) in start.items()}
    bodies = [
        pf.body("cart", p["mass"], (0.6, 0, 0), 20.0),
        pf.body("front", 5.0, inertia=0.1),
        pf.body("trailer", 60.0, inertia=8.0),
    ]
    joints = [
        pf.joint("floor", "planar", "world", "cart"),
        pf.joint("steer", "revolute", "cart", "front", placement=(p["wheelbase"], 0, 0), damping=p["steering"], stiffness=20.0),
        pf.joint("hitch", "revolute", "cart", "trailer", placement=(-0.3, 0, 0)),
    ]
    axles = [
        pf.rolling.knife_edge("rear axle", "cart", (1, 0, 0)),
        pf.rolling.knife_edge("front axle", "front", (1, 0, 0)),
        pf.rolling.knife_edge("trailer axle", "trailer", (1, 0, 0), point=(-p["trailer"], 0, 0)),
    ]
    motors = [pf.forces.thruster("engine", "cart", axis=(1, 0, 0)), pf.actuator("steering motor", "steer")]
    return pf.mechanism(
        "cart", bodies, joints, constraints=axles, actuators=motors, parameters=list(p.values()), gravity=(0, 0, 0)
    )


def cart_record(noise: float = 1e-3, seed: int = 1) -> dict[str, Any]:
    """A record of the cart's pose and steering under a force of some hundred newton, late by 3 ms."""
    m, period, fine, late, n = cart(), 0.02, 10, 2, 200
    t = np.arange(n + 2) * period
    force = np.column_stack([150 * np.sin(2 * t) + 60 * np.sin(7 * t + 1), 12 * np.sin(3 * t) + 9 * np.sin(9 * t)])
    acting = np.repeat(force, fine, axis=0)[late : late + n * fine]
    run = pf.run(
        m, {"hitch": 0.2, "steer": 0.2}, {"floor.vx": 1.0}, u=acting, u_step=period / fine, duration=n * period,
        step=period / fine, parameters=CART, every=fine, error_bound=np.inf,
    )  # fmt: skip
    names = ("floor.x", "floor.y", "floor.angle", "steer")
    places = [m.q_names.index(x) for x in names]
    measured = run["q"].values[:, places] + noise * np.random.default_rng(seed).normal(size=(n + 1, 4))
    return {"time": t[:-1], "q": dict(zip(names, measured.T, strict=True)), "u": force[:-1]}
