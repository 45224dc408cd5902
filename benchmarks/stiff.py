"""Time to a true error of 1e-6 on stiff machines: runs to an accuracy, beside TR-BDF2 with its best step, Radau and IDA.

The run itself chooses the pair of each step; its estimate of the error is included. The true error of each side is the largest
at eleven records, against a run to 1e-9: of angles in rad, of lengths in m, of speeds relative to the largest of their unit in
the run, as its own estimate has them: stiff parts that begin out of balance are fastest before the first record. TR-BDF2 takes
the longest of the steps T / (10 2^k) whose error is small enough, which a user does not know, and estimates nothing. Radau and
IDA (of SUNDIALS, by scikit-sundae) call the compiled right-hand side and its compiled Jacobian, with relative and absolute
tolerances of 1, 1/10, ... of the error, the first that is small enough; one that takes SLOW times as long as the run is ended,
and its row tells how much slower it is at least. The batch is of 4096 walkers from
different heights; beside it are walkers one by one by Radau, of which four are timed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import casadi as ca
import numpy as np
from scipy.integrate import solve_ivp

import pfaffian as pf
from benchmarks.check import CheckFailed
from benchmarks.result import Comparison, Goal
from benchmarks.robots import EXAMPLES
from benchmarks.timing import Options, interleaved

ERROR, EXACT, RECORDS = 1e-6, 1e-9, 11
BETWEEN = 400
"""Looks for the largest speed between two records."""

SHORTEST = 17
"""Largest power k of the steps T / (10 2^k) of TR-BDF2 that are tried."""

TOLD = 3.0
"""Largest ratio of the true error of a run to the accuracy, as its estimate promises."""

SLOW, LEAST_TIME = 100.0, 5.0
"""A solver that takes so many times the time of the run, and at least so much processor time [s], is ended."""

ONE_BY_ONE = 4
"""Number of walkers that are solved one by one."""


class Problem(NamedTuple):
    """A motion without inputs.   q, v: start, on the constraints.   duration: [s].   parameters: those that differ from their
    defaults."""

    m: pf.Mechanism
    q: np.ndarray
    v: np.ndarray
    duration: float
    parameters: dict[str, float] | None = None

    def times(self, between: int = 1) -> np.ndarray:
        """Instants of the records [s].   between: number of parts of the time from one to the next."""
        return np.linspace(0.0, self.duration, (RECORDS - 1) * between + 1)


class Exact(NamedTuple):
    """The solution of a problem.   q_v: (records, nq + nv).   sizes: (nq + nv,) of its entries, by which errors are divided."""

    q_v: np.ndarray
    sizes: np.ndarray

    @staticmethod
    def of(problem: Problem, o: Options) -> Exact:
        """The solution, by a run with records between."""
        m, motion = problem.m, to(problem, EXACT, o, BETWEEN)
        speeds = np.abs(motion[:, m.nq :]).max(axis=0)
        largest = [max(x for x, unit in zip(speeds, m.v_units, strict=True) if unit == mine) for mine in m.v_units]
        return Exact(motion[::BETWEEN], np.concatenate([np.ones(m.nq), largest]))

    def error(self, found: np.ndarray) -> float:
        """The largest error at the records."""
        return float(np.max(np.abs(found - self.q_v) / self.sizes)) if np.isfinite(found).all() else np.inf


def quarter_car() -> Problem:
    """The quarter car of the examples with bushings of steel, a hundred times as stiff."""
    m, _ = pf.formats.read_yaml(EXAMPLES / "quarter_car.yaml")
    steel = {p.name: 100 * p.default for p in m.parameters if p.name in ("radial", "axial")}
    at = pf.assemble(m, {"ride": 0.03}, parameters=steel)
    return Problem(m, np.ravel(at.q), np.ravel(at.v), 1.0, steel)


def slider_crank(stiffness: float = 1e8, damping: float = 2e3) -> Problem:
    """A crank of 0.2 m that turns, and a piston, joined by a spring of 0.6 m in place of a rod."""
    bodies = [pf.body("crank", 2.0, com=(0.1, 0, 0), inertia=0.05), pf.body("piston", 0.5, inertia=0.01)]
    joints = [
        pf.joint("crank", "revolute", "world", "crank", axis=(0, -1, 0)),
        pf.joint("slide", "prismatic", "world", "piston", axis=(1, 0, 0)),
    ]
    rod = pf.spring(
        "rod", "crank", "piston", point_a=(0.2, 0, 0), stiffness=stiffness, damping=damping, rest=0.6
    )  # fmt: skip
    across = 0.2 * np.sin(1.0)
    along = np.sqrt(0.36 - across**2)
    start = np.array([1.0, 0.2 * np.cos(1.0) + along])
    speeds = 5.0 * np.array([1.0, -across - 0.2 * np.cos(1.0) * across / along])
    return Problem(pf.mechanism("slider-crank", bodies, joints, forces=[rod]), start, speeds, 20.0)


def walker() -> Problem:
    """A trunk on two legs with springs in their joints, which hops on hard ground with friction."""
    limb = lambda name, mass, inertia: pf.body(name, mass, com=(0, 0, -0.225), inertia=inertia)  # noqa: E731
    bodies = [pf.body("trunk", 30.0, com=(0, 0, 0.3), inertia=2.0)]
    joints = [pf.joint("base", "planar", "world", "trunk", axis=(0, -1, 0))]
    forces = []
    for side, hip in (("left", 0.3), ("right", 0.6)):
        bodies += [limb(f"{side} thigh", 6.0, 0.1), limb(f"{side} shank", 4.0, 0.07)]
        hinge: dict[str, Any] = {"kind": "revolute", "axis": (0, -1, 0), "stiffness": 800.0, "damping": 10.0}
        joints.append(pf.joint(f"{side} hip", parent="trunk", child=f"{side} thigh", rest=hip, **hinge))
        knee = {"parent": f"{side} thigh", "child": f"{side} shank", "placement": (0, 0, -0.45), "rest": -0.6}
        joints.append(pf.joint(f"{side} knee", **knee, **hinge))
        ground = {"shape_a": (0, 0, -0.45), "stiffness": 1e6, "damping": 0.5, "friction": 0.8}
        forces.append(pf.forces.contact(f"{side} foot", f"{side} shank", **ground))
    m = pf.mechanism("walker on hard ground", bodies, joints, forces=forces)
    start = np.array([0, 0.87, 0, 0.3, -0.6, 0.6, -0.6])
    return Problem(m, start, np.zeros(m.nv), 3.0)


PROBLEMS = {"slider-crank, spring of 1e8 N/m": slider_crank, "walker on contacts": walker, "quarter car": quarter_car}


def run(o: Options) -> Iterator[Comparison]:
    for what, make in list(PROBLEMS.items())[: 1 if o.quick else None]:
        yield from compare(what, lasting(make(), o), o)
    yield from batch(o)


def lasting(of: Problem, o: Options) -> Problem:
    """The problem, or its first tenth in quick mode."""
    return of._replace(duration=of.duration / 10) if o.quick else of


def compare(what: str, of: Problem, o: Options) -> Iterator[Comparison]:
    """The rows of a problem."""
    off = Exact.of(of, o).error
    mine = off(to(of, ERROR, o))
    if not mine <= TOLD * ERROR:
        raise CheckFailed(f"{what}: a run to an accuracy of {ERROR:g} has an error of {mine:.2g}")
    steps = next((10 * 2**k for k in range(4, 7 if o.quick else SHORTEST) if off(fixed(of, 10 * 2**k, o)) <= ERROR), None)
    calls: dict[str, Callable[[], object]] = {"accuracy=1e-6": lambda: to(of, ERROR, o)}
    if steps:
        calls["TR-BDF2, best step"] = lambda: fixed(of, steps, o)
    begun = time.process_time()
    to(of, ERROR, o)
    most, ended = max(SLOW * (time.process_time() - begun), LEAST_TIME), {}
    equations = Equations.of(of)
    for name, solve in SOLVERS.items():
        for tolerance in ERROR / 10.0 ** np.arange(6):
            found = within(most, solve, equations, of, tolerance)
            if found is None or off(found) <= ERROR:
                calls[name], ended[name] = partial(within, most, solve, equations, of, tolerance), found is None
                break
    times = interleaved(calls, 1, o)
    ours, goals = times.pop("accuracy=1e-6"), {"TR-BDF2, best step": 5.0}
    for name, peer in times.items():
        notes = {"true error": mine, "steps of TR-BDF2": steps, "ended before its end": ended.get(name, False)}
        yield Comparison(f"{what}, beside {name}", "a run", ours, peer, Goal("ratio", ">=", goals.get(name, 10.0)), notes)


def batch(o: Options) -> Iterator[Comparison]:
    """Walkers from different heights at once, beside some of them one by one."""
    of, equations = lasting(walker(), o), Equations.of(walker())
    q = np.tile(of.q, (o.runs, 1))
    q[:, 1] += np.linspace(0.0, 0.03, o.runs)
    together = interleaved({"batch": lambda: to(of._replace(q=q), ERROR, o)}, o.runs, o)["batch"]
    some = [of._replace(q=x) for x in q[:: max(1, o.runs // ONE_BY_ONE)][: 1 if o.quick else ONE_BY_ONE]]
    calls = {"SciPy Radau, one by one": lambda: [radau(equations, one, ERROR) for one in some]}
    alone = interleaved(calls, len(some), o)["SciPy Radau, one by one"]
    yield Comparison(f"{o.runs} walkers", "a run", together, alone, Goal("ratio", ">=", 20.0))


def to(of: Problem, accuracy: float, o: Options, between: int = 1) -> np.ndarray:
    """[q; v] at the records of a run to an accuracy; of a batch (runs, records, nq + nv).   between: see `times`."""
    r = pf.run(of.m, of.q, of.v, times=of.times(between), accuracy=accuracy, parameters=of.parameters, record=["q", "v"],
               backend=o.backend)  # fmt: skip
    return np.concatenate([r.q.values, r.v.values], axis=-1)


def fixed(of: Problem, steps: int, o: Options) -> np.ndarray:
    """[q; v] at the records of a run of TR-BDF2, without an estimate."""
    r = pf.run(of.m, of.q, of.v, duration=of.duration, step=of.duration / steps, every=steps // (RECORDS - 1),
               parameters=of.parameters, scheme=pf.Scheme(integrator="tr-bdf2"), record=["q", "v"], error_bound=np.inf,
               error=False, backend=o.backend)  # fmt: skip
    return np.concatenate([r.q.values, r.v.values], axis=-1)


class TooSlow(Exception):
    """A solver was ended."""


def within(seconds: float, solve: Solve, equations: Equations, of: Problem, tolerance: float) -> np.ndarray | None:
    """What a solver finds, or None if it takes more processor time than this [s]."""
    limited = equations._replace(until=time.process_time() + seconds)
    try:
        return solve(limited, of, tolerance)
    except TooSlow:
        return None


class Equations(NamedTuple):
    """The compiled right-hand side of a machine and its Jacobian.

    rate, slopes: of (q, v, u, p, t).   others: u, p and t, which are constant.   until: processor time of the process at which
    a solver is ended [s].
    """

    rate: Any
    slopes: Any
    nq: int
    others: tuple[np.ndarray, ...]
    until: float = np.inf

    @staticmethod
    def of(problem: Problem) -> Equations:
        """The equations of a problem."""
        m, given = problem.m, problem.parameters or {}
        rate = lambda T: ca.vertcat(T.kinematics.q_dot, pf.FORMULATIONS["gauss"](T).v_dot)  # noqa: E731
        slopes = lambda T: ca.densify(ca.jacobian(rate(T), ca.vertcat(T.q, T.v)))  # noqa: E731
        of_one = (pf.compile_terms(m, {"found": f}, lanes=1).kernel for f in (rate, slopes))
        p = np.array([given.get(each.name, each.default) for each in m.parameters])
        return Equations(*of_one, m.nq, (np.zeros(m.nu), p, np.zeros(1)))

    def f(self, t: float, x: np.ndarray) -> np.ndarray:
        """The rate of [q; v].   Raises TooSlow."""
        if time.process_time() > self.until:
            raise TooSlow
        return np.ravel(self.rate(x[: self.nq], x[self.nq :], *self.others)[0])

    def jac(self, t: float, x: np.ndarray) -> np.ndarray:
        """(n, n) its derivatives."""
        return np.reshape(self.slopes(x[: self.nq], x[self.nq :], *self.others)[0], (len(x), len(x)), order="F")


Solve = Callable[[Equations, Problem, float], np.ndarray]
"""(equations, problem, tolerance) -> [q; v] at the records."""


def radau(e: Equations, of: Problem, tolerance: float) -> np.ndarray:
    """[q; v] at the records by SciPy's Radau."""
    begin, span = np.concatenate([of.q, of.v]), (0.0, of.duration)
    return solve_ivp(e.f, span, begin, "Radau", of.times(), rtol=tolerance, atol=tolerance, jac=e.jac).y.T


def ida(e: Equations, of: Problem, tolerance: float) -> np.ndarray:
    """[q; v] at the records by IDA: 0 = f(t, x) - x_dot."""
    from sksundae.ida import IDA  # type: ignore[import-not-found]

    def residual(t: float, x: np.ndarray, x_dot: np.ndarray, left: np.ndarray) -> None:
        left[:] = e.f(t, x) - x_dot

    def slopes(t: float, x: np.ndarray, x_dot: np.ndarray, left: np.ndarray, c: float, J: np.ndarray) -> None:
        J[:] = e.jac(t, x) - c * np.eye(len(x))

    begin = np.concatenate([of.q, of.v])
    solver = IDA(residual, rtol=tolerance, atol=tolerance, jacfn=slopes, max_num_steps=1_000_000)
    return np.asarray(solver.solve(of.times(), begin, e.f(0.0, begin)).y)


def _solvers() -> dict[str, Solve]:
    """The rivals that are installed."""
    try:
        import sksundae  # type: ignore[import-not-found] # noqa: F401
    except ImportError:
        return {"SciPy Radau": radau}
    return {"SciPy Radau": radau, "IDA": ida}


SOLVERS = _solvers()
