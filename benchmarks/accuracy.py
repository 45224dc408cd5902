"""Time to a true error: runs to an accuracy, beside runs with steps of one length and SciPy's integrators around our equations.

The true error of each side is measured against a run to 1e-11 at the end of the motion: of angles in rad, of lengths and speeds
relative to the largest. `accuracy=` gets the asked error itself, so its true error is smaller; its estimate is included. RK4
takes the longest of the steps T / 2^k whose true error is small enough, which a user does not know, and estimates nothing.
SciPy's DOP853 and Radau call the compiled right-hand side, with relative and absolute tolerances of 1/10, 1/100, ... of the
error, the first that is small enough; the time inside the callback is told apart.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy.integrate import solve_ivp

import pfaffian as pf
from benchmarks.check import CheckFailed
from benchmarks.result import Comparison
from benchmarks.robots import EXAMPLES
from benchmarks.timing import Options, interleaved

ERRORS = (1e-6, 1e-9)
EXACT = 1e-11
LONGEST, SHORTEST = 4, 20
"""Powers k of the steps T / 2^k of RK4 that are tried."""


class Problem(NamedTuple):
    """A motion without inputs.   q, v: start.   duration: [s]."""

    m: pf.Mechanism
    q: Any
    v: Any
    duration: float


def problems() -> dict[str, Problem]:
    """The problems by name."""
    rod = lambda name: pf.body(name, 1.0, com=(0, 0, -0.5), inertia=1 / 12)  # noqa: E731
    hinge = {"kind": "revolute", "axis": (0, 1, 0)}
    joints = [
        pf.joint("h", parent="world", child="a", **hinge),
        pf.joint("k", parent="a", child="b", placement=(0, 0, -1), **hinge),
    ]
    double = pf.mechanism("double pendulum", [rod("a"), rod("b")], joints)
    top = pf.mechanism(
        "heavy top",
        [pf.body("top", 15.0, com=(0, 0, 1.0), inertia=(0.234375, 0.234375, 0.46875))],
        [pf.joint("tip", "spherical", "world", "top")],
    )
    found = {"double pendulum, 4 s": Problem(double, {"h": 2.5, "k": 0.5}, None, 4.0)}
    tilt = np.array([np.sin(0.2), 0.0, 0.0, np.cos(0.2)])
    found["heavy top at 150 rad/s, 2 s"] = Problem(top, tilt, [0.0, 0.0, 150.0], 2.0)
    for name, duration in {"four_bar": 10.0, "slider_crank": 5.0, "coin": 5.0, "scissor_lift": 2.0, "walker": 1.0}.items():
        m, settings = pf.formats.read_yaml(EXAMPLES / f"{name}.yaml")
        found[f"{name.replace('_', ' ')}, {duration:g} s"] = Problem(m, settings.arrays(m).q, settings.arrays(m).v, duration)
    return found


def run(o: Options) -> Iterator[Comparison]:
    for what, of in list(problems().items())[: 2 if o.quick else None]:
        exact = to(of, EXACT, o)
        size = np.maximum(1.0, np.abs(exact))
        off = lambda r, exact=exact, size=size: float(np.max(np.abs(r - exact) / size))  # noqa: E731
        for error in ERRORS[: 1 if o.quick else None]:
            yield from compare(f"{what}, error {error:g}", of, error, off, o)


def compare(what: str, of: Problem, error: float, off: Callable[[np.ndarray], float], o: Options) -> Iterator[Comparison]:
    mine = off(to(of, error, o))
    if not mine <= error:
        raise CheckFailed(f"{what}: a run to an accuracy of {error:g} has an error of {mine:.2g}")
    steps = next((2**k for k in range(LONGEST, SHORTEST) if off(fixed(of, 2**k, o)) <= error), None)
    tolerance = next((error / 10**k for k in range(1, 6) if off(by_scipy(of, "DOP853", error / 10**k)[0]) <= error), None)
    calls: dict[str, Callable[[], object]] = {"": lambda: to(of, error, o)}
    if steps:
        calls["RK4, best step"] = lambda: fixed(of, steps, o)
    if tolerance:
        calls["SciPy DOP853"] = lambda: by_scipy(of, "DOP853", tolerance)
        calls["SciPy Radau"] = lambda: by_scipy(of, "Radau", tolerance)
    times = interleaved(calls, 1, o)
    for name in list(calls)[1:]:
        notes: dict[str, Any] = {"true error": mine, "steps of RK4": steps}
        if name.startswith("SciPy"):
            notes["its time inside the callback [s]"] = by_scipy(of, name.split()[1], tolerance or error)[1]
        yield Comparison(f"{what}, beside {name}", "a run", times[""], times[name], None, notes)


def to(of: Problem, accuracy: float, o: Options) -> np.ndarray:
    """[q; v] at the end of a run to an accuracy."""
    r = pf.run(of.m, of.q, of.v, times=[0.0, of.duration], accuracy=accuracy, record=["q", "v"], backend=o.backend)
    return np.concatenate([r.q.values[-1], r.v.values[-1]])


def fixed(of: Problem, steps: int, o: Options) -> np.ndarray:
    """[q; v] at the end of a run of RK4, without an estimate."""
    r = pf.run(of.m, of.q, of.v, duration=of.duration, step=of.duration / steps, every=steps, record=["q", "v"],
               error_bound=np.inf, error=False, backend=o.backend)  # fmt: skip
    return np.concatenate([r.q.values[-1], r.v.values[-1]])


def by_scipy(of: Problem, method: str, tolerance: float) -> tuple[np.ndarray, float]:
    """[q; v] at the end by SciPy, and the time spent inside our right-hand side [s]."""
    m, inside = of.m, 0.0
    rate = pf.compile_terms(m, {"q": lambda T: T.kinematics.q_dot, "v": lambda T: pf.FORMULATIONS["gauss"](T).v_dot}, lanes=1)
    at = pf.assemble(m, of.q, of.v)

    def f(t: float, x: np.ndarray) -> np.ndarray:
        nonlocal inside
        begun = time.perf_counter()
        found = rate(x[: m.nq], x[m.nq :])
        inside += time.perf_counter() - begun
        return np.concatenate([found["q"].ravel(), found["v"].ravel()])

    begin = np.concatenate([np.ravel(at.q), np.ravel(at.v)])
    end = solve_ivp(f, (0.0, of.duration), begin, method, rtol=tolerance, atol=tolerance).y[:, -1]
    return end, inside
