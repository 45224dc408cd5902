"""Derivatives of forward dynamics by q, v and u: ours for a batch compared with Pinocchio's, which are for one state per call
and are therefore looped in Python over states in contiguous arrays.

The UR5 is compared with `pin.computeABADerivatives`; the Panda with its hand welded to the world with `pin.constraintDynamics`
and `pin.computeConstraintDynamicsDerivatives`, where both also give the derivatives of the multipliers. Then the gradient of a
rollout by its start and all its inputs, in one backward sweep over 1000 steps, is compared with the rollout itself: the ratio
is its cost in rollouts, without the forward rollout that it needs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pinocchio as pin

import pfaffian as pf
from benchmarks.check import STATES, agree
from benchmarks.constrained_dynamics import SPREAD
from benchmarks.forward_dynamics import configuration_order, read_model, velocity_order
from benchmarks.ours import again
from benchmarks.peers import Twin, pinocchio_closures, pinocchio_model, twin
from benchmarks.result import Comparison, Goal
from benchmarks.robots import closed_states, random_states, ready, robot, welded
from benchmarks.timing import Options, interleaved

TREE, CLOSED, ADJOINT = Goal("ratio", ">=", 30), Goal("ratio", ">=", 10), Goal("rollouts", "<=", 6)
BY = ("q", "v", "u")
STEPS, RUNS = 1000, 64

Call = Callable[[np.ndarray, np.ndarray, np.ndarray], tuple[np.ndarray, ...]]


def run(o: Options) -> Iterator[Comparison]:
    yield tree(o)
    yield closed(o)
    yield sweep(o)


def tree(o: Options) -> Comparison:
    m = pf.actuate_all(robot("ur5"))
    model = read_model("ur5", m)
    order, q_order = velocity_order(m, model), configuration_order(m, model)
    states = random_states(m, o.runs)
    theirs = list(
        zip(*[np.ascontiguousarray(x[:, i]) for x, i in zip(states, (q_order, order, order), strict=True)], strict=True)
    )
    return compare("UR5, 6 dof", m, states, theirs, aba(model), order, TREE, ("v_dot",), o)


def closed(o: Options) -> Comparison:
    panda = pf.actuate_all(robot("panda"))
    m = welded(panda, "world", "panda_hand", ready(panda))
    states, w = closed_states(m, ready(panda), o.runs, SPREAD), twin(m)
    arrays = [np.ascontiguousarray(x[:, i]) for x, i in zip(states, (w.q_order, w.v_order, w.v_order), strict=True)]
    theirs = list(zip(*arrays, strict=True))
    which = ("v_dot", "multipliers")
    return compare("Panda, hand welded, 9 dof", m, states, theirs, constrained(w), w.v_order, CLOSED, which, o)


def compare(
    what: str,
    m: pf.Mechanism,
    states: tuple[np.ndarray, ...],
    theirs: list[tuple[np.ndarray, ...]],
    peer: Call,
    order: np.ndarray,
    goal: Goal,
    which: tuple[str, ...],
    o: Options,
) -> Comparison:
    """Our derivatives and Pinocchio's at the same states, both along the velocities."""
    kernel = compiled(m, which, o)
    rows = kernel.shape.outputs[0] // (3 * m.nv)
    ours, out = prepared(kernel, m, states)
    ours()
    mine = out[:STATES].reshape(-1, 3, m.nv, rows)[..., : m.nv].transpose(0, 1, 3, 2)[:, :, order][..., order]
    some = np.array([[np.array(x) for x in peer(*row)] for row in theirs[:STATES]])
    found = [agree(f"{what} by {BY[i]}", *(x[:, i].reshape(len(some), -1) for x in (mine, some))) for i in range(3)]
    times = interleaved({"": ours, "pin": lambda: [peer(*row) for row in theirs]}, o.runs, o)
    about = {"difference": max(found), "operations": kernel.program.n_ops}
    return Comparison(f"derivatives, {what}", "a state", times[""], times["pin"], goal, about)


def compiled(m: pf.Mechanism, which: tuple[str, ...], o: Options) -> Any:
    """Kernel (q, v, u, p, t) -> derivatives of `which` by q, v and u, column by column."""
    slopes = {"slopes": lambda T: pf.calculus.motion_derivatives(T, by=BY, of=which)}
    return pf.compile_terms(m, slopes, backend=o.backend).kernel


def prepared(kernel: Any, m: pf.Mechanism, states: tuple[np.ndarray, ...]) -> tuple[partial, np.ndarray]:
    """A call that fills the returned array (runs, numbers), in which the runs of each number are contiguous."""
    q, v, u = (np.array(x, order="F") for x in states)
    out = np.empty((len(q), kernel.shape.outputs[0]), order="F")
    return partial(kernel, q, v, u, m.p_defaults, np.zeros(1), out=(out,)), out


def aba(model: pin.Model) -> Call:
    data = model.createData()

    def call(q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> tuple[np.ndarray, ...]:
        pin.computeABADerivatives(model, data, q, v, tau)
        return data.ddq_dq, data.ddq_dv, _full(data.Minv)

    return call


def _full(Minv: np.ndarray) -> np.ndarray:
    """The full M^-1, of which Pinocchio fills only the upper half."""
    return np.triu(Minv) + np.triu(Minv, 1).T


def constrained(w: Twin) -> Call:
    model = pinocchio_model(w)
    data, (models, datas) = model.createData(), pinocchio_closures(w, model)
    pin.initConstraintDynamics(model, data, models, datas)
    settings = pin.ProximalSettings(1e-12, 1e-12, 0.0, 1)

    def call(q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> tuple[np.ndarray, ...]:
        pin.constraintDynamics(model, data, q, v, tau, models, datas, settings)
        pin.computeConstraintDynamicsDerivatives(model, data, models, datas, settings)
        return data.ddq_dq, data.ddq_dv, data.ddq_dtau

    return call


def sweep(o: Options) -> Comparison:
    """Gradient of a rollout of the welded Panda by its start and its inputs, compared with the rollout."""
    panda = pf.actuate_all(robot("panda"))
    m = welded(panda, "world", "panda_hand", ready(panda))
    q, v, _ = closed_states(m, ready(panda), RUNS, SPREAD)
    steps = 10 if o.quick else STEPS
    r = pf.calculus.rollout(m, q, v, steps=steps, backend=o.backend)
    weights = np.zeros(r.q.shape)
    weights[-1] = 1.0
    calls = {"": lambda: r.vjp(q=weights)}
    if not o.quick:
        calls["rollout"], _ = again(m, q, v, steps, backend=o.backend)
    times = interleaved(calls, RUNS * steps, o)
    peer = times.get("rollout", times[""])
    notes = {"rollouts": times[""].median / peer.median}
    return Comparison("gradient of a rollout, Panda welded", "a step", times[""], peer, ADJOINT, notes)
