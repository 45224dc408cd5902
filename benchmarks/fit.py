"""A fit of a measured double pendulum beside CasADi with IPOPT and MuJoCo's sysid, and a regressor beside Pinocchio's.

Both sides fit the same nine numbers and all starts of segments of 0.2 s to the same two records, with the same equations, steps
of 4 ms and weights; ours estimates the weights and the delay of the torques besides. IPOPT has exact first and second
derivatives from CasADi. Both begin from the same numbers and the same measured starts. MuJoCo's system identification, where
`pip install "mujoco[sysid]"` was done, fits the same numbers to the same segments from starts that it keeps. The whole set of
six records has a goal of its own, in processor time to convergence with compiled equations. The regressor is that of the seven
links of the Panda arm, 70 columns, at as many states as its longest published record has samples.

Coverage of intervals, on request only: `python -m benchmarks.fit DRAWS` fits a pendulum to that many draws of noise.
"""

from __future__ import annotations

import sys
import threading
import tracemalloc
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np

import pfaffian as pf
from benchmarks import robots
from benchmarks.by_sysid import by_sysid, is_installed
from benchmarks.check import CheckFailed, agree
from benchmarks.result import Comparison, Goal
from benchmarks.timing import Options, interleaved

STUDIES = Path(__file__).parents[1] / "studies"
SAMPLES, STEP = 50, 4e-3
WARM = 250
"""Calls of a regressor after which it is compiled."""

SAME_NUMBERS = 0.3
"""Largest difference of the numbers of the two sides, in half widths of our intervals: ours fits a delay besides."""


def run(o: Options) -> Iterator[Comparison]:
    study = import_module("studies.measured_double_pendulum")
    known = study.records()
    two = {name: known[name] for name in study.TRAIN[:2]}
    some = {name: {signal: x[:500] for signal, x in one.items()} for name, one in two.items()} if o.quick else two
    yield shooting(study.mechanism(), some, o)
    if not o.quick:
        if is_installed():
            yield sysid(study.mechanism(), two, o)
        yield whole(study.mechanism(), {name: known[name] for name in study.TRAIN}, o)
    if find_spec("pinocchio"):
        yield regressor(o)


def shooting(m: pf.Mechanism, records: dict[str, Any], o: Options) -> Comparison:
    """Ours beside multiple shooting, of the same records."""
    ours = pf.fit(m, records, unknown={}, robust=False)
    solve, answer = by_ipopt(m, ours)
    half = np.array(list(ours.half_widths.values()))
    off = float(np.abs((answer - ours.solution.theta) / half).max())
    if not off < SAME_NUMBERS:
        raise CheckFailed(f"fit: the two sides differ by {off:.2g} half widths")
    calls = {"pf.fit": partial(pf.fit, m, records, unknown={}, robust=False), "CasADi, IPOPT": solve}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pf.RunWarning)
        times = interleaved(calls, 1, o)
    runs = ours.problem.segments.runs
    notes = {"segments": runs, "differ by half widths": off, "iterations": ours.iterations}
    what = f"fit of a double pendulum, {runs} segments, 9 numbers"
    return Comparison(what, "fit", times["pf.fit"], times["CasADi, IPOPT"], Goal("ratio", ">=", 10.0), notes)


def sysid(m: pf.Mechanism, records: dict[str, Any], o: Options) -> Comparison:
    """Ours beside MuJoCo's system identification, of the same segments; once, as the other side takes minutes."""
    ours = partial(pf.fit, m, records, unknown={}, robust=False)
    solve, runs = by_sysid(ours())
    times = interleaved({"pf.fit": ours, "mujoco.sysid": solve}, 1, replace(o, repeat=1))
    what = f"fit of a double pendulum, {runs} segments, 9 numbers, starts of the other side as measured"
    return Comparison(what, "fit", times["pf.fit"], times["mujoco.sysid"], Goal("ratio", ">=", 10.0))


def by_ipopt(m: pf.Mechanism, fit: pf.identification.Fit) -> tuple[Any, np.ndarray]:
    """A call that solves the problem of a fit by multiple shooting, and its numbers."""
    T = pf.symbols(m)
    rate = ca.vertcat(T.v, pf.FORMULATIONS["gauss"](T).v_dot)
    f = ca.Function("f", [ca.vertcat(T.q, T.v), T.u, m.p_symbols], [rate])
    x, u, p, h = ca.SX.sym("x", 4), ca.SX.sym("u", 2), ca.SX.sym("p", len(m.p_names)), STEP
    k1 = f(x, u, p)
    k2 = f(x + h / 2 * k1, u, p)
    k3 = f(x + h / 2 * k2, u, p)
    k4 = f(x + h * k3, u, p)
    step = ca.Function("step", [x, u, p], [x + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)])
    s, scale = fit.problem.segments, np.abs(fit.first)
    X, P = ca.MX.sym("X", 4, s.runs), ca.MX.sym("P", len(scale))
    now, cost, weight = X, 0, 1 / fit.solution.deviation[:, None]
    each = step.map(s.runs)
    first = [round(b / STEP) for b in s.begin]
    torques = [r.u for r in fit.problem.records]
    options = {"ipopt.print_level": 0, "print_time": False}
    for k in range(s.y.shape[1]):
        y = s.y[:, k, :].T
        seen = np.isfinite(y)
        cost += ca.sumsqr((now - np.where(seen, y, 0.0)) * (weight * seen))
        u_now = np.array([torques[r][min(b + k, len(torques[r]) - 1)] for r, b in zip(s.record, first, strict=True)]).T
        now = each(now, u_now, ca.repmat(P * scale, 1, s.runs))
    solver = ca.nlpsol("fit", "ipopt", {"x": ca.vertcat(P, ca.vec(X)), "f": cost}, options)
    start = np.concatenate([fit.first / scale, s.y[:, 0, :].ravel()])

    def solve() -> np.ndarray:
        return np.array(solver(x0=start)["x"]).ravel()[: len(scale)] * scale

    return solve, solve()


def whole(m: pf.Mechanism, records: dict[str, Any], o: Options) -> Comparison:
    """All six records, with weights, delays and rejected samples, and the memory that a fit takes beyond its result."""
    fit = pf.fit(m, records, unknown={"u": "delay"})
    at = fit.problem
    tracemalloc.start()
    pf.fit(m, records, unknown={"u": "delay"}, start=fit)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    times = interleaved({"pf.fit": partial(pf.fit, m, records, unknown={"u": "delay"})}, 1, o)
    notes = {"iterations": fit.iterations, "bytes a sample and signal": peak / float(np.isfinite(at.segments.y).sum())}
    what = f"fit of a double pendulum, {at.segments.runs} segments, 9 numbers and a delay"
    return Comparison(what, "fit", times["pf.fit"], None, Goal("median", "<=", 1.5e9), notes)


def regressor(o: Options) -> Comparison:
    """The regressor of the Panda arm beside Pinocchio's."""
    import pinocchio as pin

    arm = robots.robot("panda")
    fingers = [n for n in arm.q_names if "finger" in n]
    m = robots.locked(arm, dict.fromkeys(fingers, 0.0))
    n, rng = 64 if o.quick else 20544, np.random.default_rng(0)
    q, v, a = (rng.normal(size=(n, m.nv)) for _ in range(3))
    whole_arm = pin.buildModelFromUrdf(str(robots.urdf("panda")))
    model = pin.buildReducedModel(whole_arm, [whole_arm.getJointId(x) for x in fingers], pin.neutral(whole_arm))
    data, links = model.createData(), [f"panda_link{i}" for i in range(1, 8)]

    def theirs() -> None:
        for i in range(n):
            pin.computeJointTorqueRegressor(model, data, q[i], v[i], a[i])

    some = pf.identification.regressor(m, q[:50], v[:50], a[:50])
    torque = np.array([pin.computeJointTorqueRegressor(model, data, *x) for x in zip(q[:50], v[:50], a[:50], strict=True)])
    phi = np.concatenate([model.inertias[i].toDynamicParameters() for i in range(1, 8)])
    agree("regressor", some.Y @ some.phi, torque @ phi)
    ours = partial(pf.identification.regressor, m, q, v, a, bodies=links)
    compile_it(ours)
    times = interleaved({"regressor": ours, "pinocchio": theirs}, n, o)
    return Comparison(
        f"regressor of a Panda arm, {n} samples", "sample", times["regressor"], times["pinocchio"], Goal("ratio", ">=", 5)
    )


def compile_it(call: Callable[[], Any]) -> None:
    """Call until the compiler has taken over from the interpreter, as it does after some four million samples."""
    for _ in range(WARM):
        call()
    for thread in threading.enumerate():
        if thread.name == "pfaffian compiles":
            thread.join()


def coverage(draws: int) -> float:
    """Fraction of true values within the 95 % intervals, over draws of noise of a pendulum."""
    from tests.fitting.machines import PENDULUM, pendulum, record

    m, inside = pendulum(), list[bool]()
    clean = record(m, PENDULUM, ("hinge",), q={"hinge": 1.0}, noise=0.0)
    for seed in range(draws):
        noise = 1e-3 * np.random.default_rng(seed).normal(size=len(clean["time"]))
        fit = pf.fit(m, clean | {"q": clean["q"]["hinge"] + noise})
        inside += [abs(fit.values[name] - value) <= fit.half_widths[name] for name, value in PENDULUM.items()]
    return float(np.mean(inside))


if __name__ == "__main__":
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    print(f"95 % intervals of a pendulum contain {100 * coverage(count):.1f} % of the true values, {count} draws of noise")
