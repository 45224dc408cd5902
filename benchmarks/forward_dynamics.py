"""Forward dynamics of trees: our articulated-body kernel compared with `pin.abaInParallel` on one thread.

The input is a generalised force on every velocity. Both read the same URDF file; ours has its joint damping set to zero, which
Pinocchio's aba ignores. Memory: in ours the runs of each number are contiguous (structure of arrays) and, for information, also
the numbers of each run; Pinocchio's matrices have one column per run, which is its native layout. "fast" is strict=False:
multiply-adds may be fused, so the bits depend on the compiler.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
import pinocchio as pin

import pfaffian as pf
from benchmarks.check import STATES, agree
from benchmarks.ours import acceleration, prepared
from benchmarks.result import Comparison, Goal
from benchmarks.robots import random_states, robot, urdf
from benchmarks.timing import Options, interleaved

GOAL = Goal("ratio", ">=", 25)


def run(o: Options) -> Iterator[Comparison]:
    yield from compare("panda", "Panda, 9 dof", GOAL, o)
    yield from compare("talos_reduced", "Talos, 38 dof", GOAL, o)
    if not o.quick:
        yield from compare("talos_full_v2", "Talos with its hands, 50 dof", None, o)


def compare(name: str, what: str, goal: Goal | None, o: Options) -> Iterator[Comparison]:
    """Our kernel in three variants and Pinocchio, timed together."""
    m = pf.actuate_all(robot(name))
    model = read_model(name, m)
    order, q_order = velocity_order(m, model), configuration_order(m, model)
    states = random_states(m, o.runs)
    theirs, a = pinocchio_call(model, *(x[:, i].T for x, i in zip(states, (q_order, order, order), strict=True)))
    kernel, fast = acceleration(m, "articulated"), acceleration(m, "articulated", strict=False)
    ours, v_dot = prepared(kernel, m, *states)
    by_run, v_dot_by_run = prepared(kernel, m, *states, order="C")
    fused, v_dot_fused = prepared(fast, m, *states)
    calls = {"": ours, "by run": by_run, "fast": fused, "pin.abaInParallel": theirs}
    for call in calls.values():
        call()
    found = [agree(what, x[:STATES, order], a.T[:STATES]) for x in (v_dot, v_dot_by_run, v_dot_fused)]
    times = interleaved(calls, o.runs, o)
    peer, unit = times["pin.abaInParallel"], "an evaluation"
    about = {"difference": max(found), "operations": kernel.program.n_ops}
    yield Comparison(what, unit, times[""], peer, goal, about)
    yield Comparison(f"{what}, memory by run", unit, times["by run"], peer)
    yield Comparison(f"{what}, fast", unit, times["fast"], peer)


def read_model(name: str, m: pf.Mechanism) -> pin.Model:
    """The robot as Pinocchio reads it, with the joints locked that ours locks because they move no mass."""
    free = [pin.JointModelFreeFlyer()] if name.startswith("talos") else []
    model = pin.buildModelFromUrdf(str(urdf(name)), *free)
    moving = {j.name for j in m.joints if j.nv} | {"universe"}
    still = [model.getJointId(n) for n in model.names if n not in moving]
    return pin.buildReducedModel(model, still, pin.neutral(model)) if still else model


def velocity_order(m: pf.Mechanism, model: pin.Model) -> np.ndarray:
    """Column of our v for each entry of Pinocchio's."""
    return np.concatenate([np.r_[m.v_slices[n]] for n in list(model.names)[1:]])


def configuration_order(m: pf.Mechanism, model: pin.Model) -> np.ndarray:
    """Column of our q for each entry of Pinocchio's."""
    return np.concatenate([np.r_[m.q_slices[n]] for n in list(model.names)[1:]])


def pinocchio_call(model: pin.Model, q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> tuple[partial, np.ndarray]:
    """A call that fills the returned accelerations (nv, runs), from matrices with one column per run."""
    pool = pin.ModelPool(model, 1)
    q, v, tau = (np.asfortranarray(x) for x in (q, v, tau))
    a = np.empty(v.shape, order="F")
    return partial(pin.abaInParallel, 1, pool, q, v, tau, a), a
