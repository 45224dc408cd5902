"""On an NVIDIA device with CuPy: are its results equal to the processor's to the bit, and how long does a step take?

    python -m tools.device [runs]

For a slider-crank, a UR5 and a Panda whose hand is welded to the world: a few runs are compared step by step with the
processor, then many are timed. Where the package mujoco-warp is installed, the robots are also timed with it: its steps are in
single precision, also by RK4, and its weld is a stiff spring.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import pfaffian as pf
from benchmarks.peers import mjcf, twin
from benchmarks.robots import closed_states, panda_arm, random_states, ready, robot, welded

STEP, COMPARED, RUNS, STEPS = 1e-3, 1000, 1 << 20, 100
BESIDE = ("UR5", "Panda, hand welded")
"""Machines that are also timed with mujoco_warp."""


def machines() -> dict[str, tuple[pf.Mechanism, np.ndarray, np.ndarray]]:
    """Machine, q and v of several runs, by name."""
    crank, _ = pf.read(Path(__file__).parents[1] / "examples" / "slider_crank.yaml")
    at = pf.assemble(crank, {crank.q_names[0]: np.linspace(0.1, 1.4, COMPARED)})
    arm = robot("ur5")
    panda = welded(panda_arm(), "world", "panda_hand", ready(panda_arm()))
    return {
        "slider-crank": (crank, at.q, at.v),
        "UR5": (arm, *random_states(arm, COMPARED)[:2]),
        "Panda, hand welded": (panda, *closed_states(panda, ready(panda), COMPARED, 0.1)[:2]),
    }


def rate(step: Callable[[], Any], wait: Callable[[], Any], runs: int) -> float:
    """Steps per second of all runs together.   step: function that makes STEPS steps."""
    step()  # work that is done only once
    wait()
    begun = time.perf_counter()
    step()
    wait()
    return runs * STEPS / (time.perf_counter() - begun)


def warp_rate(m: pf.Mechanism, q: np.ndarray, v: np.ndarray) -> float | None:
    """Steps per second of mujoco_warp from these states (runs, n), or None if it is not installed."""
    try:
        import mujoco_warp
        import warp
    except ImportError:
        return None
    import mujoco

    there = twin(m.with_(actuators=()))
    model = mujoco.MjModel.from_xml_string(mjcf(there, step=STEP))
    gpu_model, data = mujoco_warp.put_model(model), mujoco_warp.make_data(model, nworld=len(q))
    data.qpos.assign(q[:, there.q_order].astype(np.float32))
    data.qvel.assign(v[:, there.v_order].astype(np.float32))

    def plain() -> None:
        for _ in range(STEPS):
            mujoco_warp.step(gpu_model, data)

    if not warp.get_device().is_cuda:
        return rate(plain, warp.synchronize, len(q))
    mujoco_warp.step(gpu_model, data)  # compile before recording
    with warp.ScopedCapture() as recorded:
        mujoco_warp.step(gpu_model, data)
    return rate(lambda: [warp.capture_launch(recorded.graph) for _ in range(STEPS)], warp.synchronize, len(q))


def same_bits(m: pf.Mechanism, q: np.ndarray, v: np.ndarray) -> bool:
    """Whether STEPS steps on the device equal those of the processor to the bit."""
    here, there = (pf.stepper(m, step=STEP, runs=len(q)) for _ in range(2))
    for s in (here, there):
        s.reset(q, v)
    d = pf.cuda.on_device(there)
    here.step(steps=STEPS)
    d.step(STEPS)
    d.back()
    return np.array_equal(here.save().x.view(np.int64), there.save().x.view(np.int64))


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else RUNS
    for name, (m, q, v) in machines().items():
        many_q, many_v = np.resize(q, (runs, m.nq)), np.resize(v, (runs, m.nv))
        many = pf.stepper(m, step=STEP, runs=runs)
        many.reset(many_q, many_v, correct_start=False)
        d = pf.cuda.on_device(many)
        ours = rate(lambda d=d: d.step(STEPS), d.wait, runs)
        bits = "same bits" if same_bits(m, q, v) else "OTHER BITS"
        print(f"{name:20} {bits}   {ours:.3g} steps a second, {runs} runs at once", end="")
        theirs = warp_rate(m, many_q, many_v) if name in BESIDE else None
        print("" if theirs is None else f"; mujoco_warp {theirs:.3g} in single precision", flush=True)


if __name__ == "__main__":
    main()
