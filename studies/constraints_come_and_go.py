"""One controller, unchanged, while constraints come and go and through singular positions. [aghili05 section VIII-C]

An arm of three links (0.4, 0.35, 0.25 m; 4, 3, 2 kg) moves its tip along a rail in the vertical plane: x and the direction of
the last link follow sines, the height is that of the rail or, between two contacts, an arc above it. The rail constrains the
height of the tip while it is active (`active_while`, with its times as parameters). The law is `projected` throughout, with all
three motors, and does not know the times; only the projector changes. 64 arms run at once, each with its own times.

A slider-crank of two equal links (1 m, 1 kg at their ends, as in [aghili05 (64)]) turns its crank five times through both dead
centres, where the slider's row vanishes; the slider is absent for a part of the third turn. The task is the angles of both
links along the mechanism's branch, so it is a task with and without the slider.

Gains, masses and paths are ours. Claimed: the errors are the designed ones throughout, the rank follows the contacts, the rail
exerts force only while it is active and then lowers the torque, and the slider disappears and returns without a jump.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import casadi as ca
import numpy as np
import xarray as xr

import pfaffian as pf
from pfaffian import control
from pfaffian.study import Claim, blank_figure

LENGTHS, MASSES = (0.4, 0.35, 0.25), (4.0, 3.0, 2.0)
GAINS = {"stiffness": 100.0, "damping": 20.0}
RATE = 10.0
HEIGHT, START_X = -0.45, 0.45
ARC, LIFT, LAND = 0.08, 1.5, 2.5
"""The tip is above the rail by up to ARC [m] from LIFT to LAND [s]."""
DURATION = 4.0
ARMS = 64
TURNS, SLIDE_TIME = 5, 6.0


def mechanism() -> pf.Mechanism:
    """The arm, with its tip on the rail outside the times [off, on]."""
    off, on = pf.Parameter("off", 1.4, "s"), pf.Parameter("on", 2.6, "s")
    bodies, joints, before, at = [], [], "world", 0.0
    for i, (l, m) in enumerate(zip(LENGTHS, MASSES, strict=True)):
        bodies.append(pf.body(f"link {i}", m, (l / 2, 0, 0), m * l**2 / 12))
        joints.append(pf.joint(f"joint {i}", "revolute", before, f"link {i}", axis=(0, -1, 0), placement=pf.pose((at, 0, 0))))
        before, at = f"link {i}", l
    rail = pf.holonomic("rail", lambda k: tip(k)[2] - HEIGHT)
    there = pf.constraints.active_while(rail, lambda k: ca.logic_or(k.t < off.symbol, k.t >= on.symbol))
    motors = [pf.actuator(f"motor {i}", f"joint {i}") for i in range(3)]
    return pf.mechanism("arm on a rail", bodies, joints, constraints=[there], actuators=motors, parameters=[off, on])


def tip(k: pf.Kinematics) -> ca.SX:
    return k.position("link 2", (LENGTHS[2], 0, 0))


def arm_law() -> control.Control:
    """Law for x and z of the tip and the sum of the angles."""

    def task(k: pf.Kinematics) -> ca.SX:
        return ca.vertcat(tip(k)[0], tip(k)[2], ca.sum1(k.q))

    def path(t: ca.SX) -> list:
        s = ca.fmin(ca.fmax((t - LIFT) / (LAND - LIFT), 0), 1)
        bump = 64 * s**3 * (1 - s) ** 3
        return [START_X + 0.12 * ca.sin(2 * t), HEIGHT + ARC * bump, -1.2 + 0.3 * ca.sin(1.3 * t)]

    return control.projected(task, control.function_of_time(path, 3), **GAINS)


def arm_start() -> np.ndarray:
    """q with the tip on the rail and the last link 0.1 rad from its reference; the first two links follow by inverse
    kinematics."""
    a, b, c = LENGTHS
    last = -1.2 + 0.1
    x, z = START_X + 0.01 - c * np.cos(last), HEIGHT - c * np.sin(last)
    bend = -np.arccos((x * x + z * z - a * a - b * b) / (2 * a * b))
    first = np.arctan2(z, x) - np.arctan2(b * np.sin(bend), a + b * np.cos(bend))
    return np.array([first, bend, last - first - bend])


def crank(gone: tuple[float, float]) -> pf.Mechanism:
    """The slider-crank, with its slider absent between two times."""
    y = (0, -1, 0)
    slider = pf.holonomic("slider", lambda k: k.position("rod", (1, 0, 0))[2])
    there = pf.constraints.active_while(slider, lambda k: ca.logic_or(k.t < gone[0], k.t >= gone[1]))
    joints = [
        pf.joint("q1", "revolute", "world", "crank", axis=y),
        pf.joint("q2", "revolute", "crank", "rod", axis=y, placement=pf.pose((1, 0, 0))),
    ]
    bodies = [pf.body("crank", 1.0, (1, 0, 0)), pf.body("rod", 1.0, (1, 0, 0))]
    motors = [pf.actuator("motor 1", "q1"), pf.actuator("motor 2", "q2")]
    return pf.mechanism("slider-crank", bodies, joints, constraints=[there], actuators=motors)


GONE = (2.6, 3.4)


def crank_law() -> control.Control:
    """q1 makes TURNS turns in SLIDE_TIME; q2 = -2 q1 is the branch with the tip at height zero."""
    first = 0.3
    end = first + 2 * np.pi * TURNS
    return control.projected(
        control.joints("q1", "q2"), control.polynomial([first, -2 * first], [end, -2 * end], SLIDE_TIME), **GAINS
    )


def run() -> dict[str, xr.Dataset]:
    m = mechanism()
    random = np.random.default_rng(8)
    times = {"off": random.uniform(0.2, LIFT, ARMS), "on": random.uniform(LAND, 3.5, ARMS)}
    rest = {"q": np.tile(arm_start(), (ARMS, 1)), "duration": DURATION, "every": 5, "record": "all"}
    results = {"arms": pf.run(m, control=arm_law(), parameters=times, outputs={"tip": tip}, **rest)}
    results["arms"] = results["arms"].assign({name: ("run", x) for name, x in times.items()})
    results["crank"] = pf.run(crank(GONE), [0.3, -0.6], control=crank_law(), duration=SLIDE_TIME, every=2)
    results["never gone"] = pf.run(crank((9.0, 9.0)), [0.3, -0.6], control=crank_law(), duration=SLIDE_TIME, every=2)
    return results


def designed(r: xr.Dataset) -> np.ndarray:
    """(runs, times, 3) designed errors of the arm: from e(0) and e_dot(0), with both poles at -10 / s."""
    t = r["time"].values[None, :, None]
    e, rate = (r[name].values[:, :1] for name in ("task_error", "task_error_rate"))
    return (e + (rate + RATE * e) * t) * np.exp(-RATE * t)


def expected_rank(r: xr.Dataset) -> np.ndarray:
    t = r["time"].values[None, :]
    return ((t < r["off"].values[:, None]) | (t >= r["on"].values[:, None])).astype(float)


def figures(result: dict[str, xr.Dataset]) -> dict[str, Any]:
    figure = blank_figure(12, 5.6)
    (path, height, force), (error, slider, blank) = figure.subplots(2, 3)
    blank.remove()
    path.axhline(0, color="#000000", linestyle=":", linewidth=0.8)
    for i in range(3):
        r = result["arms"].isel(run=i)
        off, on = float(r["off"]), float(r["on"])
        name = f"rail off {off:.2f} to {on:.2f} s"
        look = {"color": f"C{i}", "linestyle": ("-", "--", ":")[i], "label": name}
        above = 100 * (r["tip"][:, 2] - HEIGHT)
        path.plot(100 * r["tip"][:, 0], above, **look)
        height.plot(r["time"], above, **look)
        force.plot(r["time"], r["multiplier"][:, 0], **look)
        error.semilogy(r["time"], np.linalg.norm(r["task_error"], axis=1), **look)
    error.semilogy(r["time"], np.linalg.norm(designed(result["arms"])[0], axis=1), ":", color="black", label="designed")
    error.set_ylim(1e-12, 1)
    path.set(xlabel="along the rail [cm]", ylabel="path of the tip, above the rail [cm]", title="dotted: the rail")
    height.set_ylabel("tip above the rail [cm]")
    force.set_ylabel("force of the rail [N]")
    error.set_ylabel("arms: norm of the error [m, rad]")
    for name, dashes in (("crank", "-"), ("never gone", "--")):
        c = result[name]
        label = {"crank": f"slider gone {GONE[0]} to {GONE[1]} s", "never gone": "slider there"}[name]
        slider.plot(c["time"], np.linalg.norm(c["u"], axis=1), dashes, label=label)
    slider.set_ylabel("slider-crank: norm of the torques [N m]")
    for axes in (height, force, error, slider):
        axes.set_xlabel("time [s]")
    return {"come and go": figure}


def claims(result: dict[str, xr.Dataset]) -> Iterator[Claim]:
    r = result["arms"]
    yield Claim("arms whose run ended early", float((r["status"] != 0).sum()), 0)
    off = np.abs(r["task_error"].values - designed(r)).max()
    yield Claim("arms: errors minus the designed ones [m, rad]", off, 0, 1e-6, "[aghili05 (44)]")
    yield Claim("arms: error at the start [m, rad]", np.abs(r["task_error"].values[:, 0]).max(), 0.09, 0, "setting", "at least")
    expected = expected_rank(r)
    yield Claim("instants at which the rank does not follow the contacts", float((r["rank"].values != expected).sum()), 0)
    gone = np.abs(r["multiplier"].values[:, :, 0] * (1 - expected)).max()
    yield Claim("force of an inactive rail [N]", gone, 0)
    high = np.abs((r["tip"].values[:, :, 2] - HEIGHT) * expected).max()
    yield Claim("distance of the tip from the active rail [m]", high, 0, 1e-9)
    yield Claim("largest height of the tip above the rail [m]", (r["tip"].values[:, :, 2] - HEIGHT).max(), ARC, 1e-4, "setting")
    spared = _spared(r)
    yield Claim("instants with arms on and off the rail, all moving along it", len(spared), 50, 0, "setting", "at least")
    yield Claim("smallest torque saved by the rail at these instants [N m]", spared.min(), 0, 0, "[aghili05 (46)]", "at least")
    c, whole = result["crank"], result["never gone"]
    for name, x in (("slider gone for a while", c), ("slider always there", whole)):
        yield Claim(f"slider-crank, {name}: runs that ended early", float(x["status"] != 0), 0)
        yield Claim(f"slider-crank, {name}: error [rad]", np.abs(x["task_error"].values).max(), 0, 1e-6, "[aghili05 (44)]")
    passed = int(np.sum(np.diff(np.sign(np.cos(whole["q"].values[:, 0]))) != 0))
    yield Claim("singular positions passed", passed, 2 * TURNS, 0, "geometry")
    apart = np.abs(c["q"].values - whole["q"].values).max()
    yield Claim("difference of the motions with and without absent slider [rad]", apart, 0, 1e-6, "[aghili05 (44)]")


def _spared(r: xr.Dataset) -> np.ndarray:
    """Smallest torque norm off the rail minus the largest on it, at instants where both kinds move along the rail [N m]."""
    on = expected_rank(r).astype(bool)
    along = np.abs(r["tip"].values[:, :, 2] - HEIGHT).max(axis=0) < 1e-9
    norm = np.linalg.norm(r["u"].values, axis=2)
    both = on.any(axis=0) & (~on).any(axis=0) & along
    least_off = np.where(on, np.inf, norm).min(axis=0)
    most_on = np.where(on, norm, -np.inf).max(axis=0)
    return (least_off - most_on)[both]
