"""One run started from Python: `pf.run` compared with MuJoCo and Pinocchio, time per step, with the kernel already in memory.

The slider-crank (examples/slider_crank.yaml, 10 000 steps of 1 ms of RK4, through its singular configuration) and Baxter
with a bar in both hands (examples/baxter_bar.yaml, 1000 steps), both without joint damping. All record q and v; ours also
energy, reactions, rank and violations, every 10 steps, and corrects the drift every step.

MuJoCo: `mj_step` with RK4 in a Python loop that records q and v every 10 steps, and `mujoco.rollout`, a compiled loop that
records every step. Pinocchio: `constraintDynamics` in an RK4 written in Python, Baumgarte gains 1e4 and 200, regularisation
1e-10 since rows may be redundant. Differences: neither has a constraint of a point to a line, so their slider is a third body
of 1 g on a prismatic joint, connected to the rod's tip; the links, point masses here, have 1e-9 kg m^2 there, as MuJoCo
requires; their Baxter has its fingers fixed, while ours fixes two by constraints and two follow; MuJoCo's closures are soft.
All are compared with ours after 100 steps: q within 1e-4, before any time is measured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import mujoco
import numpy as np
import pinocchio as pin
from mujoco import rollout

import pfaffian as pf
from benchmarks.check import CheckFailed
from benchmarks.peers import Twin, mjcf, pinocchio_closures, pinocchio_model, twin
from benchmarks.result import Comparison
from benchmarks.robots import EXAMPLES, locked, undamped
from benchmarks.timing import Options, interleaved

SLIDER = 1e-3
"""Mass of the slider for the peers [kg]; with less mass MuJoCo's closure is softer, since its stiffness follows the lightest
body."""
STEP, EVERY, CHECKED = 1e-3, 10, 100
SAME_Q = 1e-4
"""Tolerance of q after CHECKED steps [rad, m]; the slider's mass alone changes the slider-crank's q by about a tenth of it."""


@dataclass(frozen=True)
class Case:
    """A run and its model for the peers.

    q, v: start.   u: our inputs.   tau: (nv,) force in the peers' order.
    place: index of our coordinate for each of the peers', -1 where we have none."""

    what: str
    mechanism: pf.Mechanism
    twin: Twin
    q: np.ndarray
    u: np.ndarray
    start: np.ndarray
    tau: np.ndarray
    place: np.ndarray
    steps: int


def run(o: Options) -> Iterator[Comparison]:
    for case in (slider_crank(500 if o.quick else 10_000), baxter(100 if o.quick else 1000)):
        yield from compare(case, o)


def compare(c: Case, o: Options) -> Iterator[Comparison]:
    peers = {"mujoco mj_step": stepped(c), "mujoco rollout": rolled(c), "pin loop": by_hand(c)}
    reference = ours(c, CHECKED, o.backend)
    found = {name: check(c, name, reference, call(CHECKED)) for name, call in peers.items()}
    calls = {"": lambda: ours(c, c.steps, o.backend)} | {name: lambda f=call: f(c.steps) for name, call in peers.items()}
    times = interleaved(calls, c.steps, o)
    for name in peers:
        notes = {f"difference of q after {CHECKED} steps": found[name]}
        yield Comparison(f"{c.what}, beside {name}", "a step", times[""], times[name], None, notes)


def check(c: Case, name: str, reference: np.ndarray, got: np.ndarray) -> float:
    shared = c.place >= 0
    found = float(np.abs(got[shared] - reference[c.place[shared]]).max())
    if not found <= SAME_Q:
        raise CheckFailed(f"{c.what}, {name}: q differs by {found:.3g} after {CHECKED} steps")
    return found


# -- the two runs -------------------------------------------------------------------------------------------------------


def slider_crank(steps: int) -> Case:
    m, settings = pf.formats.read_yaml(EXAMPLES / "slider_crank.yaml")
    q, v, u, p = settings.arrays(m)
    length = p[[x.name for x in m.parameters].index("l")]
    q = pf.assemble(m, q, v, parameters=p).q
    w = twin(with_slider(m, length))
    start = np.append(q, length * (np.cos(q[0]) + np.cos(q[0] + q[1])))
    return Case("slider-crank", m, w, q, u, start, np.array([u[0], 0.0, 0.0]), np.array([0, 1, -1]), steps)


def with_slider(m: pf.Mechanism, length: float) -> pf.Mechanism:
    """The slider-crank with a sliding body; its prismatic axis is x."""
    bodies = [pf.body(b.name, m.value(b.mass).item(), m.value(b.com).ravel(), 1e-9) for b in m.bodies]
    crank, rod = (("world", (0, 0, 0)), ("crank", (length, 0, 0)))
    joints = [
        pf.joint(name, "revolute", parent, child, axis=(0, -1, 0), placement=pf.pose(xyz))
        for name, child, (parent, xyz) in (("q1", "crank", crank), ("q2", "rod", rod))
    ]
    joints.append(pf.joint("slide", "prismatic", "world", "slider", axis=(1, 0, 0)))
    tip = pf.coincide("tip", "slider", (0, 0, 0), "rod", (length, 0, 0))
    return pf.mechanism("slider-crank", [*bodies, pf.body("slider", SLIDER, inertia=1e-9)], joints, constraints=[tip])


def baxter(steps: int) -> Case:
    m, settings = pf.formats.read_yaml(EXAMPLES / "baxter_bar.yaml")
    m = undamped(m)
    q, v, u, p = settings.arrays(m)
    q = pf.assemble(m, q, v, parameters=p).q
    fingers = [j.name for j in m.joints if "finger" in j.name and j.moves]
    shut = pf.compile_terms(m, {n: lambda T, n=n: T.kinematics.joint(n) for n in fingers}, backend="numpy", lanes=1)(
        q, parameters=p
    )
    weld = [c for c in m.constraints if getattr(c, "kind", "") == "weld"]
    w = twin(locked(m.with_(constraints=weld), {n: float(shut[n]) for n in fingers}))
    names = np.array([w.mechanism.q_names[i] for i in w.q_order])
    place = np.array([m.q_names.index(n) for n in names])
    return Case("Baxter with a bar", m, w, q, u, q[place], np.zeros(len(place)), place, steps)


# -- the four sides: steps -> last q ------------------------------------------------------------------------------------


def ours(c: Case, steps: int, backend: str) -> np.ndarray:
    how = {"duration": steps * STEP, "step": STEP, "every": EVERY, "correct_start": False, "backend": backend}
    r = pf.run(c.mechanism, c.q, u=c.u, **how)
    return r["q"].values[-1]


def stepped(c: Case) -> Callable[[int], np.ndarray]:
    model = mujoco.MjModel.from_xml_string(mjcf(c.twin, step=STEP))
    data = mujoco.MjData(model)

    def call(steps: int) -> np.ndarray:
        mujoco.mj_resetData(model, data)
        data.qpos[:], data.qfrc_applied[:] = c.start, c.tau
        records = []
        for k in range(steps):
            if k % EVERY == 0:
                records.append((data.qpos.copy(), data.qvel.copy()))
            mujoco.mj_step(model, data)
        return data.qpos.copy()

    return call


def rolled(c: Case) -> Callable[[int], np.ndarray]:
    model = mujoco.MjModel.from_xml_string(mjcf(c.twin, step=STEP))
    data, full = mujoco.MjData(model), mujoco.mjtState.mjSTATE_FULLPHYSICS
    data.qpos[:] = c.start
    first = np.empty(mujoco.mj_stateSize(model, full))
    mujoco.mj_getState(model, data, first, full)
    force = mujoco.mjtState.mjSTATE_QFRC_APPLIED

    def call(steps: int) -> np.ndarray:
        control = np.broadcast_to(c.tau, (1, steps, model.nv))
        states, _ = rollout.rollout(model, data, first, control, control_spec=force.value, nstep=steps)
        return states[0, -1, 1 : 1 + model.nq]

    return call


def by_hand(c: Case) -> Callable[[int], np.ndarray]:
    model = pinocchio_model(c.twin)
    data, (models, datas) = model.createData(), pinocchio_closures(c.twin, model)
    for one in models:
        one.m_baumgarte_parameters.Kp, one.m_baumgarte_parameters.Kd = 1e4, 200.0
    pin.initConstraintDynamics(model, data, models, datas)
    settings = pin.ProximalSettings(1e-10, 1e-10, 1e-10, 1)

    def f(q: np.ndarray, v: np.ndarray) -> np.ndarray:
        return np.array(pin.constraintDynamics(model, data, q, v, c.tau, models, datas, settings))

    def call(steps: int) -> np.ndarray:
        q, v, h, records = c.start.copy(), np.zeros(model.nv), STEP, []
        for k in range(steps):
            if k % EVERY == 0:
                records.append((q, v))
            a1 = f(q, v)
            v2 = v + h / 2 * a1
            a2 = f(q + h / 2 * v, v2)
            v3 = v + h / 2 * a2
            a3 = f(q + h / 2 * v2, v3)
            v4 = v + h * a3
            a4 = f(q + h * v3, v4)
            q = q + h / 6 * (v + 2 * (v2 + v3) + v4)
            v = v + h / 6 * (a1 + 2 * (a2 + a3) + a4)
        return q

    return call
