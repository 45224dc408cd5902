"""Cost of each law relative to its plant: a UR5 in the air and on a table, and a quadcopter.

RK4 with steps of 1 ms, 4096 runs from different starts, one thread. "Ours" evaluates the law at every stage of every step, the
peer is the same machine and step with constant inputs; the notes give the time as a multiple of the plant's, also for the law
evaluated 200 times per second, every fifth step. All sides of a machine are timed alternately.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

import pfaffian as pf
from benchmarks.check import CheckFailed
from benchmarks.closed_loop import PERIOD, STEPS, loop
from benchmarks.result import Comparison
from benchmarks.robots import robot
from benchmarks.timing import Options, interleaved
from pfaffian import control
from pfaffian.control import Control

READY = np.array([0.4, -1.2, 1.4, -0.5, 0.6, 0.3])
TOOL = "wrist_3_link"
MOTION = {"stiffness": 100.0, "damping": 20.0}
SPREAD = 0.02
LEVEL = np.array([0, 0, 1.0, 0, 0, 0, 1])
POLES = (-8.0, -8.0, -8.0 + 3.0j, -8.0 - 3.0j)


def run(o: Options) -> Iterator[Comparison]:
    arm = pf.actuate_all(robot("ur5"))
    random = np.random.default_rng(7)
    q = READY + SPREAD * random.uniform(-1, 1, (o.runs, arm.nq))
    yield from machine("UR5", arm, in_the_air(arm), q, o)
    height = float(pf.forward_kinematics(arm, READY)[TOOL].position[2])
    resting = arm.with_(constraints=[pf.holonomic("table", lambda k: k.position(TOOL)[2] - height)])
    yield from machine("UR5 on a table", resting, on_a_table(), pf.assemble(resting, q).q, o)
    x = pf.multicopters.QUADCOPTER
    flying = pf.multicopters.thrust_multicopter(
        "quadcopter", x["azimuths"], x["spins"], mass=x["mass"], inertia=(17.9e-3, 17.9e-3, 30.7e-3), arm=x["arm"],
        thrust=x["thrust"], torque=x["torque"], limits=(0.0, 7.85),
    )  # fmt: skip
    q = LEVEL + np.pad(0.1 * random.normal(size=(o.runs, 3)), [(0, 0), (0, 4)])
    yield from machine("quadcopter", flying, in_flight(), q, o)


def in_the_air(arm: pf.Mechanism) -> dict[str, Control]:
    joints, goal = control.joints(*(j.name for j in arm.joints if j.nv)), control.set_point(READY)
    X = pf.forward_kinematics(arm, READY)[TOOL]
    hand = control.pose(TOOL, X.rotation)
    there = control.set_point([*X.position, 0, 0, 0])
    return {
        "computed torque": control.computed_torque(joints, goal, **MOTION),
        "operational space": control.operational_space(hand, there, **MOTION),
        "projected": control.projected(joints, goal, **MOTION),
        **prototypes(
            control.pair(
                TOOL,
                inertia=pf.forces.pseudo_matrix(1.0, (0, 0, 0.1), (0.1, 0.1, 0.1)),
                damping=pf.forces.pseudo_matrix(20.0, (0, 0, 0.1), (2.0, 2.0, 2.0)),
                stiffness=pf.forces.pseudo_matrix(100.0, (0, 0, 0.1), (10.0, 10.0, 10.0)),
            ),
            READY,
        ),
    }


def on_a_table() -> dict[str, Control]:
    along, ahead = control.joints("shoulder_pan_joint"), control.set_point(READY[:1])
    gains = {"velocity_gain": 20.0, "position_gain": 5.0}
    push = control.set_point([10.0])
    return {
        "projected": control.projected(along, ahead, **MOTION),
        "hybrid force": control.hybrid_force(along, ahead, push, ["table"], **MOTION, force_gain=1.0, integral_gain=10.0),
        "quasi-velocities": control.regulation(control.set_point(READY), **gains),
    }


def in_flight() -> dict[str, Control]:
    return prototypes(control.quadcopter_pair("body", POLES, heading=(5.0, 0.8), inertia_ratio=0.1), LEVEL)


def prototypes(pair: control.Pair, goal: np.ndarray) -> dict[str, Control]:
    there = control.set_point(goal)
    laws = {name: control.prototype_tracking([pair], there, approach=name) for name in ("particle", "body", "energy")}
    return laws | {"body, within limits": control.prototype_tracking([pair], there, approach="body", limits="actuators")}


def machine(name: str, m: pf.Mechanism, laws: Mapping[str, Control], q: np.ndarray, o: Options) -> Iterator[Comparison]:
    if o.quick:  # the other laws are covered by tests
        laws = dict([*laws.items()][:: len(laws) - 1])
    v, operations = np.zeros((len(q), m.nv)), dict[str, int]()
    calls: dict[str, Callable[[], Any]] = {}
    calls["plant"], plant = loop(m, None, q, v, backend=o.backend)
    for title, law in laws.items():
        calls[title], operations[title] = loop(m, law, q, v, backend=o.backend)
        calls[f"{title}, at a rate"], _ = loop(m, control.discrete(law, PERIOD), q, v, backend=o.backend)
    for title, call in calls.items():
        if not np.isfinite(call()).all():
            raise CheckFailed(f"{name}, {title}: not all numbers are finite")
    times = interleaved(calls, len(q) * STEPS, o)
    for title in laws:
        always, seldom = times[title].median, times[f"{title}, at a rate"].median
        notes = {"operations of a right-hand side": operations[title], "of the plant's": plant}
        notes |= {"times the plant": always / times["plant"].median, "at 200 Hz [ns]": seldom}
        notes["at 200 Hz times the plant"] = seldom / times["plant"].median
        yield Comparison(f"{name}, {title}", "a step", replace(times[title], name=""), times["plant"], None, notes)
