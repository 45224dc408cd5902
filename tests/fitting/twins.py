"""Simulated twins of machines with loops and wheels, measured as real ones are: intervals must contain the true numbers.

Of every machine only what a real one measures is known: motors and encoders, a gyro, a camera; passive joints are not. Noise is
random and rounded to the counts of an encoder, and the record of the inputs is late. `python -m tests.fitting.twins DRAWS` fits
every machine to that many draws of noise, and says how many of the 95 % intervals contain the true value.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import pfaffian as pf
from studies.stewart_platform import CORNERS, FEET, HEIGHT
from tests.fitting.machines import CART, NEAR, TRUTH, cart, five_bar

FINE = 10
"""Steps of a simulation in a period of the record."""


class Twin(NamedTuple):
    """A machine and how it is measured.

    truth: of its parameters.   measured: {signal: standard deviation of its noise}, such as "q steer" or "foot".
    force: inputs at a time.   period, seconds: of the record [s].   late: delay of the inputs [s].   start: of `pf.run`.
    guess: near which the fit looks for coordinates that are not measured.   outputs: of `pf.fit`.
    """

    machine: Callable[[], pf.Mechanism]
    truth: dict[str, float]
    measured: dict[str, float]
    force: Callable[[np.ndarray], np.ndarray]
    period: float
    seconds: float
    late: float
    start: dict[str, Any]
    guess: Any = None
    outputs: dict[str, Any] = {}  # noqa: RUF012
    horizon: float | None = None


def stewart() -> pf.Mechanism:
    """A platform on six legs with springs, of which only the lengths are measured."""
    start = {"plate": (18.0, "kg"), "spin": (1.3, "kg m^2"), "damping": (50.0, "N s/m"), "stiffness": (2800.0, "N/m")}
    p = {n: pf.Parameter(n, value, unit) for n, (value, unit) in start.items()}
    above = pf.joint("platform", "free", "world", "platform", placement=pf.pose((0, 0, HEIGHT)))
    bodies, joints = [pf.body("platform", p["plate"], inertia=(0.8, 0.9, p["spin"]))], [above]
    balls, motors = list[Any](), list[Any]()
    for i, (foot, corner) in enumerate(zip(FEET, CORNERS, strict=True)):
        along = corner + (0, 0, HEIGHT) - foot
        length = float(np.linalg.norm(along))
        z = along / length
        x = np.cross((0, 0, 1), z) / np.linalg.norm(np.cross((0, 0, 1), z))
        upright = pf.pose(tuple(foot), rotation=np.column_stack([x, np.cross(z, x), z]))
        bodies += [pf.body(f"tube {i}", 2.0, (0, 0, 0.25), 0.04), pf.body(f"rod {i}", 1.0, (0, 0, -0.25), 0.02)]
        spring = {"stiffness": p["stiffness"], "damping": p["damping"]}
        joints += [
            pf.joint(f"foot {i}", "universal", "world", f"tube {i}", placement=upright),
            pf.joint(f"leg {i}", "prismatic", f"tube {i}", f"rod {i}", placement=pf.pose((0, 0, length)), **spring),
        ]
        balls.append(pf.coincide(f"ball {i}", f"rod {i}", (0, 0, 0), "platform", corner))
        motors.append(pf.actuator(f"push {i}", f"leg {i}"))
    return pf.mechanism("platform", bodies, joints, constraints=balls, actuators=motors, parameters=list(p.values()))


def leg() -> pf.Mechanism:
    """Theo Jansen's leg, three loops on a crank with a rotor; two lengths, mass of the foot and friction are parameters."""
    start = {"crank": (0.145, "m"), "coupler": (0.51, "m"), "foot": (0.3, "kg"), "friction": (0.06, "N m s")}
    p = {n: pf.Parameter(n, value, unit) for n, (value, unit) in start.items()}
    rods = {"j": 0.5, "k": 0.619, "bde": 0.415, "c": 0.393, "f": 0.394}
    bodies = [pf.body("crank", 0.15, (0.075, 0, 0), 3e-4)]
    bodies += [pf.body(n, x, (x / 2, 0, 0), (1e-4, x**3 / 12, x**3 / 12)) for n, x in rods.items()]
    bodies.append(pf.body("foot", p["foot"], (0.1835, 0.08, 0), (2e-3, 6e-3, 8e-3)))
    pins = {"j": ("crank", (p["crank"], 0, 0)), "k": ("crank", (p["crank"], 0, 0)), "bde": ("world", (-0.38, -0.078, 0)),
            "c": ("world", (-0.38, -0.078, 0)), "f": ("bde", (0.02609879518, 0.4001497881, 0)),
            "foot": ("c", (0.393, 0, 0))}  # fmt: skip
    joints = [pf.joint("crank", "revolute", "world", "crank", damping=p["friction"], armature=0.03)]
    joints += [pf.joint(n, "revolute", parent, n, placement=at) for n, (parent, at) in pins.items()]
    ends = {"J1": ("j", p["coupler"], "bde", 0.415), "J2": ("k", 0.619, "c", 0.393), "F": ("f", 0.394, "foot", 0.367)}
    loops = [pf.closure(n, "revolute", a, b, placement_a=(x, 0, 0), placement_b=(y, 0, 0)) for n, (a, x, b, y) in ends.items()]
    return pf.mechanism(
        "leg", bodies, joints, constraints=loops, actuators=[pf.actuator("motor", "crank")], parameters=list(p.values()),
        gravity=(0, -9.81, 0),
    )  # fmt: skip


def bicycle() -> pf.Mechanism:
    """The benchmark bicycle with its rider, whose height, roll inertia, trail and steering friction are parameters."""
    start = {"height": (0.88, "m"), "roll inertia": (9.9, "kg m^2"), "fork": (4.4, "kg"), "steering": (0.6, "N m s")}
    p = {n: pf.Parameter(n, value, unit) for n, (value, unit) in start.items()}
    tilt = np.pi / 10
    bodies = [
        pf.body("frame", 85.0, (0.3, 0, p["height"]), (p["roll inertia"], 11, 2.8, 0, -2.4, 0)),
        pf.body("fork", p["fork"], (0.9, 0, 0.7), (0.05892, 0.06, 0.00708, 0, 0.00756, 0)),
        pf.body("rear", 2.0, inertia=(0.0603, 0.12, 0.0603)),
        pf.body("front", 3.0, inertia=(0.1405, 0.28, 0.1405)),
    ]
    at, axle = pf.pose((1.1, 0, 0)), (0, 1, 0)
    joints = [
        pf.joint("base", "free", "world", "frame"),
        pf.joint("rear", "revolute", "frame", "rear", axis=axle, placement=(0, 0, 0.3)),
        pf.joint(
            "steer", "revolute", "frame", "fork", axis=(-np.sin(tilt), 0, np.cos(tilt)), placement=at, child_placement=at,
            damping=p["steering"],
        ),
        pf.joint("front", "revolute", "fork", "front", axis=axle, placement=(1.02, 0, 0.35)),
    ]  # fmt: skip
    tyres = [pf.rolling.disk(f"{n} tyre", n, radius, axis=axle) for n, radius in (("rear", 0.3), ("front", 0.35))]
    return pf.mechanism(
        "bicycle", bodies, joints, constraints=tyres, actuators=[pf.actuator("handlebar", "steer")], parameters=list(p.values())
    )


def waves(*of: tuple[float, float, float, float, float]) -> Callable[[np.ndarray], np.ndarray]:
    """Inputs mean + a sin(w t + i) + b sin(z t), one for each (mean, a, w, b, z)."""
    return lambda t: np.column_stack(
        [mean + a * np.sin(w * t + i) + b * np.sin(z * t) for i, (mean, a, w, b, z) in enumerate(of)]
    )


TWINS = {
    "five-bar": Twin(
        five_bar, TRUTH, {"q left crank": 1e-3, "q right crank": 1e-3}, waves((0, 2, 5, 2, 17), (0, 2, 5, 2, 22)), 0.01, 2.0,
        0.004, {"guess": NEAR}, NEAR,
    ),
    "Stewart platform": Twin(
        stewart, {"plate": 20.0, "spin": 1.5, "damping": 40.0, "stiffness": 3000.0}, {f"q leg {i}": 1e-4 for i in range(6)},
        waves(*[(60, 40, 3 + i, 30, 19 - 2 * i) for i in range(6)]), 0.01, 2.0, 0.004, {},
    ),
    "leg": Twin(
        leg, {"crank": 0.15, "coupler": 0.5, "foot": 0.367, "friction": 0.08}, {"q crank": 1e-3, "foot": 1e-3},
        waves((0.5, 1.0, 3, 0.6, 11)), 0.01, 2.0, 0.004,
        {"guess": {"crank": 0.0, "j": 2.466, "k": -2.315, "bde": 1.227, "c": -1.286, "f": -2.392, "foot": -2.352}},
        {"crank": 0.0, "j": 2.466, "k": -2.315, "bde": 1.227, "c": -1.286, "f": -2.392, "foot": -2.352},
        {"foot": lambda k: k.position("foot", (-0.038733, 0.24192, 0))[:2]},
    ),
    "cart": Twin(
        cart, CART, {f"q {n}": 1e-3 for n in ("floor.x", "floor.y", "floor.angle", "steer")},
        waves((60, 300, 3, 60, 7), (4, 12, 3, 9, 9)), 0.02, 8.0, 0.004,
        {"q": {"hitch": 0.8, "steer": 0.2}, "v": {"floor.vx": 2.5}}, {"steer": 0.2, "hitch": 0.8}, horizon=2.0,
    ),
    "bicycle": Twin(
        bicycle, {"height": 0.9, "roll inertia": 9.2, "fork": 4.0, "steering": 0.5},
        {"q steer": 1e-3, "v base.wx": 2e-3, "v base.wz": 2e-3, "v rear": 2e-2}, waves((0, 0.5, 3, 0.8, 7)), 0.01, 4.0, 0.004,
        {"guess": {"base.qx": 0.02}, "v": {"base.vx": 5.0, "rear": 5 / 0.3, "front": 5 / 0.35}},
    ),
}  # fmt: skip


def clean(x: Twin) -> dict[str, Any]:
    """A record of a twin without noise."""
    m, n, h = x.machine(), round(x.seconds / x.period), x.period / FINE
    t, late = np.arange(n + 2) * x.period, round(x.late / h)
    force = x.force(t)
    acting = np.repeat(force, FINE, axis=0)[late : late + n * FINE]
    run = pf.run(
        m, **x.start, u=acting, u_step=h, duration=n * x.period, step=h, parameters=x.truth, every=FINE, outputs=x.outputs,
        error_bound=np.inf,
    )  # fmt: skip
    names = {"q": m.q_names, "v": m.v_names}
    found: dict[str, Any] = {"time": t[:-1], "u": force[:-1]}
    for signal in x.measured:
        kind, _, entry = signal.partition(" ")
        column = run[kind].values if not entry else run[kind].values[:, names[kind].index(entry)]
        if entry:
            found.setdefault(kind, {})[entry] = column
        else:
            found[kind] = column
    return found


def noisy(x: Twin, record: dict[str, Any], seed: int) -> dict[str, Any]:
    """The record with noise, rounded to counts as large as the noise."""
    rng, found = np.random.default_rng(seed), {k: dict(y) if isinstance(y, dict) else y for k, y in record.items()}
    for signal, size in x.measured.items():
        kind, _, entry = signal.partition(" ")
        y = record[kind][entry] if entry else record[kind]
        y = size * np.round((y + size * rng.normal(size=y.shape)) / size)
        if entry:
            found[kind][entry] = y
        else:
            found[kind] = y
    return found


def fitted(x: Twin, record: dict[str, Any], seed: int) -> pf.identification.Fit:
    """The fit to one draw of noise."""
    return pf.fit(x.machine(), noisy(x, record, seed), guess=x.guess, outputs=x.outputs, horizon=x.horizon)


def inside(x: Twin, draws: range) -> np.ndarray:
    """(draws, numbers) of bool: whether the interval contains the true value, of parameters and delay."""
    record, truth = clean(x), x.truth | {"delay of u": x.late}
    fits = (fitted(x, record, seed) for seed in draws)
    return np.array([[abs(fit.values[n] - value) <= fit.half_widths[n] for n, value in truth.items()] for fit in fits])


if __name__ == "__main__":
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 40
    for name in sys.argv[2:] or TWINS:
        found = inside(TWINS[name], range(count))
        each = ", ".join(f"{n} {100 * x:.0f}" for n, x in zip([*TWINS[name].truth, "delay"], found.mean(axis=0), strict=True))
        print(
            f"{name}: {100 * found.mean():.1f} % of 95 % intervals contain the true value, {count} draws of noise; {each}",
            flush=True,
        )
