"""Constrained forward dynamics: our "gauss" kernel compared with `pin.constraintDynamics`.

Pinocchio offers the latter only for one state per call, so it is looped in Python over states in contiguous arrays.

The Panda with its hand welded to the world, as in its file (9 dof, 6 rows) and with the fingers fixed (7 dof), then with every
row written twice in ours, compared with the same call of Pinocchio. Pinocchio gets its fastest settings that are exact here:
one factorisation, no regularisation, no Baumgarte gains. All states satisfy the closure. For information: Baxter with its hands
welded to each other, also compared with `pin.lcaba` with its usual regularisation (1e-6, three iterations; the difference is
printed). With a closure to the world pin.lcaba 4.1 gives wrong accelerations or crashes, so it is not used for the Panda.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pinocchio as pin

import pfaffian as pf
from benchmarks.check import SAME, STATES, agree
from benchmarks.ours import acceleration, prepared
from benchmarks.peers import Twin, pinocchio_closures, pinocchio_model, twin
from benchmarks.result import Comparison, Goal
from benchmarks.robots import baxter_ready, closed_states, panda_arm, ready, robot, welded
from benchmarks.timing import Options, interleaved

SINGLE, DOUBLE = Goal("ratio", ">=", 25), Goal("ratio", ">=", 12)
SPREAD = 0.2
LCABA_SAME = 1e-6


def run(o: Options) -> Iterator[Comparison]:
    panda, arm = pf.actuate_all(robot("panda")), pf.actuate_all(panda_arm())
    yield from compare(panda, "world", "panda_hand", ready(panda), "Panda, hand welded, 9 dof", (SINGLE, DOUBLE), o)
    yield from compare(arm, "world", "panda_hand", ready(arm), "Panda arm, hand welded, 7 dof", (SINGLE, DOUBLE), o)
    if not o.quick:
        baxter = pf.actuate_all(robot("baxter"))
        hands = "left_hand_link", "right_hand_link"
        yield from compare(baxter, *hands, baxter_ready(baxter), "Baxter, hands welded, 19 dof", (None, None), o)


def compare(
    m: pf.Mechanism, a: str, b: str, q: np.ndarray, what: str, goals: tuple[Goal | None, Goal | None], o: Options
) -> Iterator[Comparison]:
    """Body b welded to body a, with rows once and twice, compared with Pinocchio's two algorithms."""
    once = welded(m, a, b, q)
    states = closed_states(once, q, o.runs, SPREAD)
    w = twin(once)
    theirs = [np.ascontiguousarray(x[:, i]) for x, i in zip(states, (w.q_order, w.v_order, w.v_order), strict=True)]
    exact = constraint_dynamics(w)
    ours = {"": prepared(acceleration(once, "gauss"), m, *states)}
    ours["rows twice"] = prepared(acceleration(welded(m, a, b, q, copies=2), "gauss"), m, *states)
    found = check(what, ours, w, theirs, exact)
    rows = list(zip(*theirs, strict=True))
    calls: dict[str, Callable] = {name: call for name, (call, _) in ours.items()}
    calls["pin.constraintDynamics"] = lambda: [exact(*row) for row in rows]
    if a != "world":
        lcaba = loop_constrained(w)
        found["pin.lcaba"] = check(f"{what}, pin.lcaba", {"": ours[""]}, w, theirs, lcaba, LCABA_SAME)[""]
        calls["pin.lcaba"] = lambda: [lcaba(*row) for row in rows]
    times = interleaved(calls, o.runs, o)
    peer, unit = times["pin.constraintDynamics"], "an evaluation"
    yield Comparison(what, unit, times[""], peer, goals[0], {"difference": found[""]})
    yield Comparison(f"{what}, rows twice", unit, times["rows twice"], peer, goals[1], {"difference": found["rows twice"]})
    if "pin.lcaba" in times:
        yield Comparison(f"{what}, lcaba", unit, times[""], times["pin.lcaba"], None, {"difference": found["pin.lcaba"]})


def check(
    what: str,
    ours: dict[str, tuple[Callable, np.ndarray]],
    w: Twin,
    states: list[np.ndarray],
    peer: Callable,
    tolerance: float = SAME,
) -> dict[str, float]:
    """Largest relative difference of each of our kernels at the first states."""
    some = np.array([np.array(peer(*row)) for row in list(zip(*states, strict=True))[:STATES]])
    found = {}
    for name, (call, out) in ours.items():
        call()
        found[name] = agree(f"{what} {name}", out[:STATES, w.v_order], some, tolerance)
    return found


def constraint_dynamics(w: Twin) -> Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]:
    """(q, v, tau) -> acceleration by pin.constraintDynamics."""
    model = pinocchio_model(w)
    data, (models, datas) = model.createData(), pinocchio_closures(w, model)
    pin.initConstraintDynamics(model, data, models, datas)
    settings = pin.ProximalSettings(1e-12, 1e-12, 0.0, 1)

    def call(q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> np.ndarray:
        return pin.constraintDynamics(model, data, q, v, tau, models, datas, settings)

    return call


def loop_constrained(w: Twin) -> Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]:
    """(q, v, tau) -> acceleration by pin.lcaba."""
    model = pinocchio_model(w)
    data, (models, datas) = model.createData(), pinocchio_closures(w, model)
    pin.computeJointMinimalOrdering(model, data, models)
    settings = pin.ProximalSettings(1e-12, 1e-12, 1e-6, 3)

    def call(q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> np.ndarray:
        return pin.lcaba(model, data, q, v, tau, models, datas, settings)

    return call
