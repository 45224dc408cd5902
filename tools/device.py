"""Where a device of NVIDIA and CuPy are at hand: are its bits those of the processor, and how long does a step take there?

    python -m tools.device [runs]

For a slider-crank, a UR5 and a Panda whose hand is welded to the world: some runs step by step beside the processor, then many.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np

import pfaffian as pf
from benchmarks.robots import closed_states, panda_arm, random_states, ready, robot, welded

STEP, COMPARED, RUNS, STEPS = 1e-3, 1000, 1 << 20, 100


def machines() -> dict[str, tuple[pf.Mechanism, np.ndarray, np.ndarray]]:
    """Machine, q and v of some runs."""
    crank, _ = pf.read(Path(__file__).parents[1] / "examples" / "slider_crank.yaml")
    at = pf.assemble(crank, {crank.q_names[0]: np.linspace(0.1, 1.4, COMPARED)})
    arm = robot("ur5")
    held = welded(panda_arm(), "world", "panda_hand", ready(panda_arm()))
    return {
        "slider-crank": (crank, at.q, at.v),
        "UR5": (arm, *random_states(arm, COMPARED)[:2]),
        "Panda, hand welded": (held, *closed_states(held, ready(held), COMPARED, 0.1)[:2]),
    }


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else RUNS
    for name, (m, q, v) in machines().items():
        here, there = (pf.stepper(m, step=STEP, runs=COMPARED) for _ in range(2))
        for s in (here, there):
            s.reset(q, v)
        d = pf.cuda.on_device(there)
        here.step(steps=STEPS)
        d.step(STEPS)
        d.back()
        same = np.array_equal(here.save().x.view(np.int64), there.save().x.view(np.int64))
        many = pf.stepper(m, step=STEP, runs=runs)
        many.reset(np.resize(q, (runs, m.nq)), np.resize(v, (runs, m.nv)), correct_start=False)
        d = pf.cuda.on_device(many)
        d.step(1)
        d.wait()
        begun = time.perf_counter()
        d.step(STEPS)
        d.wait()
        rate = runs * STEPS / (time.perf_counter() - begun)
        print(f"{name:20} {'same bits' if same else 'OTHER BITS'}   {rate:.3g} steps a second, {runs} runs at once")


if __name__ == "__main__":
    main()
