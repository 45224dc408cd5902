"""Overhead of a call from Python: one step of `pf.run`, of a stepper, and one forward dynamics.

A UR5 and a Panda arm whose hand is welded to the world, both without joint damping, steps of 1 ms of RK4. One step of ours is
compared with `mujoco.mj_step` with RK4, also called from Python, and forward dynamics with `mj_forward`. `pf.run` also checks
its arguments, estimates the error of its step and labels its result. Accelerations of the UR5 and one step of it are checked
before any time is measured; MuJoCo's weld is a stiff spring, so its Panda computes a different motion.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import mujoco
import numpy as np

import pfaffian as pf
from benchmarks.check import agree
from benchmarks.peers import Twin, mjcf, twin
from benchmarks.result import Comparison
from benchmarks.robots import panda_arm, ready, robot, welded
from benchmarks.timing import Options, interleaved

STEP = 1e-3
BENT = (0.3, -1.2, 1.5, -0.8, 0.5, 0.2)
"""A configuration of the UR5 [rad]."""
SAME_STEP = 1e-9
"""Tolerance of the state after one step, relative to its largest entry."""


@dataclass(frozen=True)
class Case:
    """A machine at q, v (n,), and its model for MuJoCo.   exact: whether both sides compute the same."""

    what: str
    mechanism: pf.Mechanism
    twin: Twin
    q: np.ndarray
    v: np.ndarray
    exact: bool


def run(o: Options) -> Iterator[Comparison]:
    ur5, panda = robot("ur5"), panda_arm()
    yield from compare(case("UR5", ur5, np.array(BENT), True), o)
    yield from compare(
        case("Panda arm, hand welded", welded(panda, "world", "panda_hand", ready(panda)), ready(panda), False), o
    )


def case(what: str, m: pf.Mechanism, q: np.ndarray, exact: bool) -> Case:
    m = m.with_(actuators=())
    return Case(what, m, twin(m), q, np.zeros(m.nv), exact)


def compare(c: Case, o: Options) -> Iterator[Comparison]:
    m, peer = c.mechanism, Peer(c)
    ours = {"pf.run": whole_run(c), "stepper": stepped(c), "forward dynamics": lambda: pf.forward_dynamics(m, c.q, c.v).v_dot}
    if c.exact:
        agree(f"{c.what}, acceleration", ours["forward dynamics"]()[None], peer.forward()[None])
        for name in ("pf.run", "stepper"):
            agree(f"{c.what}, {name}", ours[name]()[None], peer.step()[None], SAME_STEP)
    alone = {"stepper": going(c), "mujoco mj_step": peer.go, "mujoco mj_forward": peer.forward}
    times = interleaved(ours | alone, 1, o)
    for name, beside in (("pf.run", "mj_step"), ("stepper", "mj_step"), ("forward dynamics", "mj_forward")):
        yield Comparison(f"{c.what}, {name}", "a call", times[name], times[f"mujoco {beside}"])


def whole_run(c: Case) -> Callable[[], np.ndarray]:
    """A call of `pf.run` for one step; returns the last [q, v]."""

    def call() -> np.ndarray:
        r = pf.run(c.mechanism, c.q, c.v, duration=STEP, step=STEP, correct_start=False, backend="c")
        return np.hstack([r["q"].values[-1], r["v"].values[-1]])

    return call


def stepped(c: Case) -> Callable[[], np.ndarray]:
    """A call of a stepper for one step, always from the same state; returns [q, v] after it."""
    s = pf.stepper(c.mechanism, step=STEP, backend="c")
    s.reset(c.q, c.v, correct_start=False)
    start = s.save()

    def call() -> np.ndarray:
        s.restore(start)
        s.step()
        return np.hstack([s.q, s.v])

    return call


def going(c: Case) -> Callable[[], object]:
    """A call of a stepper for the next step."""
    s = pf.stepper(c.mechanism, step=STEP, backend="c")
    s.reset(c.q, c.v, correct_start=False)
    return s.step


class Peer:
    """MuJoCo's machine, with results in our order."""

    def __init__(self, c: Case) -> None:
        self.model = mujoco.MjModel.from_xml_string(mjcf(c.twin, step=STEP))
        self.data, self.case = mujoco.MjData(self.model), c

    def start(self) -> None:
        w = self.case.twin
        self.data.qpos[:], self.data.qvel[:] = self.case.q[w.q_order], self.case.v[w.v_order]

    def go(self) -> None:
        """Make the next step."""
        mujoco.mj_step(self.model, self.data)

    def step(self) -> np.ndarray:
        """[q, v] after a step from the start."""
        w, x = self.case.twin, np.empty(self.model.nq + self.model.nv)
        self.start()
        mujoco.mj_step(self.model, self.data)
        x[w.q_order], x[self.model.nq + w.v_order] = self.data.qpos, self.data.qvel
        return x

    def forward(self) -> np.ndarray:
        """The accelerations at the start."""
        found = np.empty(self.model.nv)
        self.start()
        mujoco.mj_forward(self.model, self.data)
        found[self.case.twin.v_order] = self.data.qacc
        return found
