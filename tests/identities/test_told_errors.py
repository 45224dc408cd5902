"""The error that a run tells is the error that it has, on random machines with loops, laws, springs, spins, blows and events.

`python -m tests.identities.test_told_errors 200` prints the ratios of true to told errors of more machines.
"""

from __future__ import annotations

import sys
import warnings
from typing import NamedTuple

import casadi as ca
import numpy as np

import pfaffian as pf
from pfaffian import control
from pfaffian.simulate.error.global_error import SLOW
from tests.by_scipy import run_adaptive, true_error, with_instants_between
from tests.random_mechanisms import CLOSURES, constrained

COUNT, DURATION = 20, 2.0
KINDS = ("revolute", "prismatic", "spherical", "planar", "free", "helical", "cylindrical", "universal")
SMALL = 1e-11
"""Errors below this are rounding, of which no ratio is judged."""

CLOSE, FAR, OVER = 3.0, 30.0, 30.0
"""True errors are at most CLOSE times the told ones in nearly all machines and never FAR times without a warning; in most, the
told ones are at most OVER times the true ones."""


class Told(NamedTuple):
    """A machine.   what: in words.   true, told: largest errors.   warned: whether a warning said that the accuracy was missed.
    finished: whether the run and the oracle ended as they should."""

    what: str
    true: float
    told: float
    warned: bool
    finished: bool


def drawn(seed: int) -> Told:
    """A random machine, run at one of several accuracies or steps, beside SciPy's DOP853 at 1e-13."""
    random = np.random.default_rng([35, seed])
    n = int(random.integers(2, 5))
    kinds = [str(k) for k in random.choice(KINDS, n)]
    parents = [-1, *(int(random.integers(0, i)) for i in range(1, n))]
    closures = [str(random.choice(CLOSURES))] if seed % 3 == 0 else []
    extras = [str(random.choice(["duplicate", "reversed", "driven"]))] if closures else ["rolling"] if seed % 5 == 1 else []
    case = constrained(random, kinds, parents, closures, extras)
    m, v, law = case.m, case.v, None
    if seed % 4 == 1:  # a short blow, whose instant nothing else tells
        at, n_v = case.t + float(random.uniform(0.3, 1.5)), m.bodies[0].name
        blow = lambda k: ca.if_else(ca.logic_and(k.t > at, k.t < at + 1e-3), 20.0, 0.0) * ca.SX([1, 0.5, -0.3, 0, 0.1, 0])  # noqa: E731
        m = m.with_(forces=[*m.forces, pf.wrench("blow", n_v, axes="LOCAL", value=blow)])
    if seed % 4 == 2 and not closures and not extras:  # spins
        v = np.where([unit == "rad/s" for unit in m.v_units], 10 * v, v)
    if seed % 4 == 3 and m.nu:  # a law
        law = control.Control(lambda T, z, w, y: control.Command(-0.3 * ca.sin(T.u + ca.SX.ones(m.nu, 1) * T.t)))
    m, same, switches = gated(m, case.q, random) if seed % 7 == 5 else (m, m, {})
    if seed % 7 == 3:
        m = same = stopped(m, case.q, random)
    u = None if law else case.u
    times = case.t + np.linspace(0, DURATION, 21)
    accuracy = float(random.choice([1e-4, 1e-6, 1e-8]))
    stepped = seed % 5 == 0 and seed % 4 != 1
    how = {"duration": DURATION, "step": 2e-3, "every": 50, "error_bound": np.inf} if stepped else {}
    how = how or {"times": times, "accuracy": accuracy}
    abrupt = seed % 4 == 1 or seed % 7 in (3, 5)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        r = pf.run(m, case.q, v, u=u, start=case.t, control=law, backend="interpreter", **switches, **how)
        dense, longest = with_instants_between(times), 5e-4 if abrupt else 0.1
        exact = run_adaptive(same, case.q, v, u=u, times=dense, control=law, tolerance=1e-13, max_step=longest)
    true = true_error(m, r, exact)
    extras += ["a gate"] if seed % 7 == 5 else ["a stop"] if seed % 7 == 3 else []
    what = f"{seed}: {', '.join(kinds)}; {', '.join(closures + extras)}; {'steps of 2 ms' if stepped else accuracy}"
    missed = any("was not reached" in str(w.message) for w in said)
    finished = int(r.status) == 0 and int(exact.status) == 0
    return Told(what, float(np.nanmax(true)), float(np.nanmax(r.error.values)), missed, finished)


def gated(m: pf.Mechanism, q: np.ndarray, random: np.random.Generator) -> tuple[pf.Mechanism, pf.Mechanism, dict]:
    """A machine with a damper that acts on one side of a place only, by a parameter that switches; the same one by a force that
    jumps there; and the switches."""
    on, line = pf.Parameter("on", 0.0), float(np.ravel(q)[0] + random.uniform(-0.2, 0.2))
    beyond = lambda k: ca.if_else(k.q[0] > line, 1, 0)  # noqa: E731
    damper = lambda acts: pf.forces.dissipation("gate", lambda k: 0.4 * acts(k) * k.v[0] ** 2)  # noqa: E731
    switching = m.with_(forces=[*m.forces, damper(lambda k: on.symbol)], parameters=[*m.parameters, on])
    return switching, m.with_(forces=[*m.forces, damper(beyond)]), {"switches": {"on": beyond}}


def stopped(m: pf.Mechanism, q: np.ndarray, random: np.random.Generator) -> pf.Mechanism:
    """A machine whose first joint of one coordinate, if it has one, meets a stiff stop."""
    single = next((j for j in m.joints if j.nv == 1), None)
    if single is None:
        return m
    at = float(np.ravel(q)[m.q_names.index(single.name)]) + random.uniform(0.02, 0.2)
    return m.with_(forces=[*m.forces, pf.forces.stop("wall", single.name, high=at, stiffness=1e3, exponent=1.5, damping=0.3)])


def judge(found: list[Told]) -> dict[str, float]:
    """The parts of the machines in which the told error is close to the true one."""
    judged = [x for x in found if x.finished]
    ratio = np.array([x.true / max(x.told, SMALL) for x in judged])
    unwarned = np.array([x.true / max(x.told, SMALL) for x in judged if not x.warned])
    over = np.array([x.told / max(x.true, SMALL) for x in judged])
    return {
        "machines": len(judged), "close": float((ratio <= CLOSE).mean()), "worst": float(unwarned.max(initial=0.0)),
        "not far above": float((over <= OVER).mean()),
    }  # fmt: skip


def test_told_errors_are_true():
    found = judge([drawn(seed) for seed in range(COUNT)])
    assert found["machines"] >= 0.8 * COUNT and found["close"] >= 0.95, found
    assert found["worst"] <= FAR and found["not far above"] >= 0.9, found


def test_the_rounding_of_a_machine_that_cannot_move_is_told():
    """Its speeds are of 1e-16 rad/s and relative to a turn of 1e-6 rad in the run."""
    locked = drawn(390)
    assert locked.true <= CLOSE * locked.told and locked.told < 100 * np.finfo(float).eps / SLOW, locked


if __name__ == "__main__":
    machines = [drawn(seed) for seed in range(int(sys.argv[1]))]
    for x in machines:
        print(
            f"{x.what}: true {x.true:.2e}, told {x.told:.2e}{', warned' if x.warned else ''}{'' if x.finished else ', stopped'}"
        )
    print(judge(machines))
