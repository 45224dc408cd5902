"""Rollouts: our compiled RK4 loop compared with MuJoCo 4 `Batch.step` with its RK4, on one thread.

The seven-joint Panda arm (hand and fingers are one body with the last link), no damping, no contacts, 100 steps of 1 ms, each
run from a different state. Ours is timed as the compiled loop alone and as `pf.run`, which also checks its arguments and
labels its result; both record only the first and last state, MuJoCo keeps the last. The final states are compared first. For
information: the same arm with its hand welded to the world. MuJoCo's weld is a stiff spring (solref of two steps, the stiffest
it allows), ours is exact and corrected every step, so final states differ; the largest violation of the weld is given for
both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import mujoco
import numpy as np
from mujoco.batch import Batch

import pfaffian as pf
from benchmarks.check import STATES, agree
from benchmarks.ours import acceleration, again
from benchmarks.peers import Twin, mjcf, twin
from benchmarks.result import Comparison, Goal
from benchmarks.robots import closed_states, panda_arm, random_states, ready, welded
from benchmarks.timing import Options, interleaved

GOAL = Goal("ratio", ">=", 20)
STEP, STEPS = 1e-3, 100
SAME_END = 1e-6
SPREAD = 0.2


def run(o: Options) -> Iterator[Comparison]:
    yield from tree(panda_arm(), "Panda arm, 7 dof, RK4", o)
    if not o.quick:
        arm = panda_arm()
        yield closed(welded(arm, "world", "panda_hand", ready(arm)), "Panda arm, hand welded, RK4", o)


def tree(m: pf.Mechanism, what: str, o: Options) -> Iterator[Comparison]:
    """The free arm: the same mathematics on both sides."""
    m = m.with_(actuators=())
    w, (q, v, _) = twin(m), random_states(m, o.runs)
    model = mujoco.MjModel.from_xml_string(mjcf(w, step=STEP))
    off = agree(what, *accelerations(w, model, q[:STATES], v[:STATES]))
    theirs, end = mujoco_call(w, model, q, v)
    ours = {"": loop(m, q, v), "pf.run": whole_run(m, q, v)}
    theirs()
    ends = {name: agree(f"{what} {name}, final states", call(), end(), SAME_END) for name, call in ours.items()}
    times = interleaved(ours | {"mujoco Batch.step": theirs}, o.runs * STEPS, o)
    peer, notes = times["mujoco Batch.step"], {"difference of accelerations": off, "of final states": ends[""]}
    yield Comparison(what, "a step", times[""], peer, GOAL, notes)
    yield Comparison(f"{what}, labelled", "a step", times["pf.run"], peer)


def closed(m: pf.Mechanism, what: str, o: Options) -> Comparison:
    """The welded arm: ours exact, MuJoCo's soft."""
    m = m.with_(actuators=())
    w, (q, v, _) = twin(m), closed_states(m, ready(m), o.runs, SPREAD)
    theirs, end = mujoco_call(w, mujoco.MjModel.from_xml_string(mjcf(w, step=STEP)), q, v)
    ours = loop(m, q, v)
    theirs()
    distance = pf.compile_terms(m, {"phi": lambda T: T.rows.phi})
    found = {f"violation, {name} [m, rad]": float(np.abs(distance(x[:, : m.nq])["phi"]).max())
             for name, x in (("ours", ours()), ("MuJoCo", end()))}  # fmt: skip
    times = interleaved({"": ours, "mujoco Batch.step": theirs}, o.runs * STEPS, o)
    return Comparison(what, "a step", times[""], times["mujoco Batch.step"], None, found)


def accelerations(w: Twin, model: mujoco.MjModel, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Our accelerations and MuJoCo's (states, nv), in MuJoCo's order."""
    v_dot = acceleration(w.mechanism, "articulated")(q, v, np.zeros(0), np.zeros(0), np.zeros(1))[0]
    data, a = mujoco.MjData(model), []
    for i in range(len(q)):
        data.qpos[:], data.qvel[:] = q[i, w.q_order], v[i, w.v_order]
        mujoco.mj_forward(model, data)
        a.append(data.qacc.copy())
    return v_dot[:, w.v_order], np.array(a)


def mujoco_call(
    w: Twin, model: mujoco.MjModel, q: np.ndarray, v: np.ndarray
) -> tuple[Callable[[], None], Callable[[], np.ndarray]]:
    """A call that runs all states for STEPS steps from the start, and one that gives the last [q, v] in our order."""
    batch = Batch(model, nsim=len(q), nthread=1)
    qpos, qvel, time, warm = (batch.bind(name) for name in ("qpos", "qvel", "time", "qacc_warmstart"))
    start_q, start_v = q[:, w.q_order].copy(), v[:, w.v_order].copy()

    def call() -> None:
        qpos[:], qvel[:], time[:], warm[:] = start_q, start_v, 0.0, 0.0
        batch.step(nstep=STEPS)

    def end() -> np.ndarray:
        x = np.empty((len(q), w.mechanism.nq + w.mechanism.nv))
        x[:, w.q_order], x[:, w.mechanism.nq + w.v_order] = qpos, qvel
        return x

    return call, end


def loop(m: pf.Mechanism, q: np.ndarray, v: np.ndarray) -> Callable[[], np.ndarray]:
    """A call of the compiled steps alone; returns the last [q, v]."""
    return again(m, q, v, STEPS, step=STEP)[0]


def whole_run(m: pf.Mechanism, q: np.ndarray, v: np.ndarray) -> Callable[[], np.ndarray]:
    """A call of pf.run as a user would make it; returns the last [q, v]."""

    def call() -> np.ndarray:
        r = pf.run(m, q, v, duration=STEP * STEPS, step=STEP, every=STEPS, threads=1, backend="c")
        return np.hstack([r["q"].values[:, -1], r["v"].values[:, -1]])

    return call
