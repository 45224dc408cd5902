"""Friction, contacts, stops and switches have the same bits in runs, steppers, environments, co-simulation and CUDA text."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import casadi as ca
import numpy as np
import pytest

import pfaffian as pf
from pfaffian.learning import vector_environment
from tests.interchange.importer import OK, Importer
from tests.kernel.cuda_stand_in import cupy

STEP, STEPS, PUSH = 0.005, 120, 1.5


class Machine(NamedTuple):
    """A mechanism with one motor, what a run needs beside it, and how many events it meets at least."""

    m: pf.Mechanism
    q: dict[str, float]
    v: dict[str, float]
    events: int
    switches: dict[str, Any] = {}  # noqa: RUF012


def crate() -> Machine:
    """A crate that dry friction brakes, between a soft buffer and a hard one that gives half of its speed back."""
    slide = pf.joint("slide", "prismatic", "world", "crate", axis=(1, 0, 0))
    dry = pf.forces.generalised_force("dry", lambda k: -2 * ca.fmin(1, ca.fmax(-1, 5 * k.v[0])), joint="slide")
    ends = [pf.forces.stop("buffer", "slide", high=0.3, stiffness=4e3, damping=0.2)]
    ends += [pf.forces.stop("block", "slide", low=-0.05, impact=0.5)]
    m = pf.mechanism("crate", [pf.body("crate", 2.0)], [slide], forces=[dry, *ends],
                     actuators=[pf.actuator("motor", "slide", limits=(-9, 9))])  # fmt: skip
    return Machine(m, {"slide": 0.0}, {"slide": 2.5}, 5)


def hopper() -> Machine:
    """A hopper whose foot meets soft ground with friction, and whose spring lets go at a height."""
    loose = pf.Parameter("loose", 0.0)
    bodies = [pf.body("sledge", 0.2), pf.body("hip", 1.5), pf.body("foot", 0.3)]
    joints = [
        pf.joint("along", "prismatic", "world", "sledge", axis=(1, 0, 0)),
        pf.joint("up", "prismatic", "sledge", "hip", axis=(0, 0, 1)),
        pf.joint("leg", "prismatic", "hip", "foot", axis=(0, 0, -1)),
    ]
    spring = pf.forces.generalised_force("spring", lambda k: ca.vertcat(0, 0, -(1 - loose) * 90 * (k.q[2] - 0.3)))
    ground = pf.forces.contact(
        "ground", "foot", shape_a=pf.shape("sphere", radius=0.05), stiffness=2e4, damping=0.01, friction=0.6, creep=0.1
    )
    m = pf.mechanism("hopper", bodies, joints, forces=[spring, ground], parameters=[loose],
                     actuators=[pf.actuator("motor", "along", limits=(-9, 9))])  # fmt: skip
    low = {"loose": lambda k: ca.if_else(k.q[1] > 0.42, 1, ca.if_else(k.q[1] < 0.33, 0, loose))}
    return Machine(m, {"up": 0.45, "leg": 0.3}, {"along": 0.4}, 4, low)


def latch() -> Machine:
    """Two flaps: a ratchet couples them from an angle on, the second strikes a sill, a drag jumps with its rate."""
    drags = pf.Parameter("drags", 0.0)
    bodies = [pf.body("flap", 1.0, com=(0.2, 0, 0), inertia=0.02), pf.body("door", 2.0, com=(0.1, 0, -0.1), inertia=0.03)]
    joints = [pf.joint(f"{b.name} hinge", "revolute", "world", b.name, axis=(0, 1, 0)) for b in bodies]
    ratchet = pf.nonholonomic("ratchet", lambda k: k.v[0] - 2 * k.v[1])
    ratchet = pf.constraints.active_while(ratchet, lambda k: k.q[0] > 0.35)
    drag = pf.forces.generalised_force("drag", lambda k: ca.vertcat(0, -drags * ca.sign(k.v[1])))
    sill = pf.forces.rebound("sill", lambda k: 0.6 - k.q[1], 0.9)
    m = pf.mechanism("latch", bodies, joints, constraints=[ratchet], forces=[drag, sill], parameters=[drags],
                     actuators=[pf.actuator("motor", "door hinge", limits=(-9, 9))])  # fmt: skip
    fast = {"drags": lambda k: ca.if_else(k.v[1] > 1.1, 1, ca.if_else(k.v[1] < 0.9, 0, drags))}
    return Machine(m, {}, {"door hinge": 0.2}, 6, fast)


def by_run(a: Machine, backend: str, **_: Any) -> np.ndarray:
    r = pf.run(a.m, a.q, a.v, u={"motor": PUSH}, duration=STEPS * STEP, step=STEP, every=STEPS, switches=a.switches,
               backend=backend, error_bound=np.inf)  # fmt: skip
    assert int(r.status) == 0 and len(pf.events(r).time) >= a.events
    return np.r_[r.q.values[-1], r.v.values[-1]]


def by_stepper(a: Machine, **_: Any) -> np.ndarray:
    s = pf.stepper(a.m, step=STEP, switches=a.switches, backend="interpreter")
    s.reset(a.q, a.v)
    for k in (1, 2, 17, STEPS - 20):
        s.step([PUSH], steps=k)
    return np.r_[np.ravel(s.q), np.ravel(s.v)]


def by_environment(a: Machine, **_: Any) -> np.ndarray:
    env = vector_environment(a.m, 3, q=a.q, v=a.v, step=STEP, steps=STEPS // 4, reward=lambda q, v, u: q[:, 0],
                             switches=a.switches, backend="interpreter", error_bound=np.inf)  # fmt: skip
    env.reset(seed=0)
    for _ in range(4):
        seen = env.step(np.full((3, 1), PUSH))[0]
    assert (seen == seen[0]).all()
    return seen[0]


def by_device(a: Machine, folder: Path, monkeypatch: Any) -> np.ndarray:
    monkeypatch.setitem(sys.modules, "cupy", cupy(folder))
    s = pf.stepper(a.m, step=STEP, runs=2, switches=a.switches, backend="interpreter")
    s.reset(np.tile(list(map(a.q.get, a.m.q_names, [0.0] * a.m.nq)), (2, 1)),
            np.tile(list(map(a.v.get, a.m.v_names, [0.0] * a.m.nv)), (2, 1)))  # fmt: skip
    d = pf.cuda.on_device(s)
    d.u[0] = np.full((2, 1), PUSH)
    d.step(STEPS)
    d.wait()
    d.back()
    return np.r_[s.q[1], s.v[1]]


def by_fmu(a: Machine, folder: Path, **_: Any) -> np.ndarray:
    it = Importer(pf.fmu(a.m, folder / "a.fmu", step=STEP, q=a.q, v=a.v, switches=a.switches).file, folder / "at")
    assert it.start(**{"input.motor": PUSH}) == OK
    for k in range(4):
        assert it.step(k * STEPS / 4 * STEP, STEPS / 4 * STEP) == OK, it.messages
    return it.get(*[f"q.{n}" for n in a.m.q_names], *[f"v.{n}" for n in a.m.v_names])


DOORS: dict[str, Callable[..., np.ndarray]] = {"stepper": by_stepper, "environment": by_environment}
SLOW: dict[str, Callable[..., np.ndarray]] = {
    "numpy": partial(by_run, backend="numpy"),
    "co-simulation": by_fmu,
    "CUDA text": by_device,
}
"""Those that NumPy runs or a compiler reads first: for the crate alone, whose program is the shortest."""


@pytest.mark.parametrize("make", [crate, hopper, latch])
def test_events_have_the_same_bits_at_every_door(make: Callable[[], Machine], tmp_path: Path, monkeypatch: Any) -> None:
    a = make()
    found = by_run(a, "interpreter")
    for name, door in (DOORS | (SLOW if make is crate else {})).items():
        np.testing.assert_array_equal(door(a, folder=tmp_path, monkeypatch=monkeypatch), found, name)
