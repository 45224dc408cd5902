"""Check FMUs of ten machines of the zoo and three robots, of four kinds each, with fmpy, CasADi and this library.

    python -m tools.fmu_check [--seconds 10] [--only NAME ...] [--hour] [--long]

valid        findings of fmpy's validation, which should be none
run          co-simulation by fmpy for so many seconds: largest difference from `pf.run`, which should be 0
controlled   the same with steps under error control, beside `pf.stepper(m, accuracy=...)`, which should be 0 as well
exchange     model exchange by fmpy's CVODE: largest difference from a run to an accuracy, and violation after each step
derivatives  directional and adjoint derivatives through CasADi's DaeBuilder, beside `pf.derivatives`, relative to the largest

--long       model exchange for 12 s by SciPy's DOP853, of order 8: beside a run to an accuracy, what fmpy's CVODE adds left out
--hour       model exchange of the four-bar for an hour of simulated time: violation
"""

from __future__ import annotations

import argparse
import ctypes
import sys
import tempfile
import warnings
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import casadi as ca
import fmpy
import numpy as np
from fmpy.fmi1 import FMICallException
from fmpy.simulation import instantiate_fmu
from fmpy.validation import validate_fmu
from scipy.integrate import DOP853

import pfaffian as pf
from benchmarks.robots import ready, robot, undamped, urdf, welded

ZOO = ("slider_crank", "four_bar", "bennett", "crane", "cardan", "peaucellier", "gyroscope", "coin", "jansen_leg", "segway")

STEP, DERIVATIVE, EXCHANGE, VIOLATION = 1e-3, 1e-12, 1e-7, 1e-9
"""Length of steps [s]; the largest differences and violations that pass."""

TOLERANCE = 1e-11
"""Relative tolerance of CVODE."""

ACCURACY, CALL = 1e-8, 1 / 64
"""Of steps under error control; communication step [s]."""

SHORT = 0.5
"""Time over which model exchange is compared [s]: motions that are chaotic part from each other later."""

LONG, RECORDS, FINEST = 12.0, 0.05, 1e-13
"""Duration [s] of a long integration, time between its records [s], its tolerance."""

MOST_STEPS = 20_000
"""Steps after which a long integration is given up."""


def machines() -> Iterator[tuple[str, pf.Mechanism, dict[str, Any]]]:
    """Name, machine and start of each."""
    for name in ZOO:
        m, settings = pf.read(f"zoo:{name}")
        values = {"q": settings.q, "guess": settings.guess, "v": settings.v, "parameters": settings.parameters}
        yield name, m, {k: dict(x) for k, x in values.items() if x}
    arm = pf.actuate_all(robot("panda"))
    yield "panda", arm, {"q": ready(arm)}
    yield "panda welded", welded(arm, "world", "panda_hand", ready(arm)), {"q": ready(arm)}
    yield "ur5", undamped(pf.formats.read_urdf(urdf("ur5"))), {}


def written(m: pf.Mechanism, folder: Path, kind: str, version: str, start: dict[str, Any]) -> Path:
    """The FMU of a machine, validated."""
    file = pf.fmu(
        m,
        folder / f"{kind} {version}.fmu",
        kind=kind,
        version=version,
        step=STEP,
        record=["violation"] if m.ideal else "lean",
        **start,
    ).file
    if findings := validate_fmu(str(file)):
        raise SystemExit(f"fmpy finds in {file.name}: {findings}")
    return file


def simulated(file: Path, seconds: float, interval: float, names: list[str]) -> tuple[np.ndarray, np.ndarray, float]:
    """Times and outputs of a simulation by fmpy, the last row of each instant, and the largest violation in these."""
    how: dict[str, Any] = {"stop_time": seconds, "step_size": STEP, "output_interval": interval}
    with zipfile.ZipFile(file) as archive:
        has = b'"violation"' in archive.read("modelDescription.xml")
    requested = [*names, *(["violation"] if has else [])]
    found = fmpy.simulate_fmu(str(file), output=requested, relative_tolerance=TOLERANCE, **how)
    rows = np.flatnonzero(np.diff(np.append(found["time"], np.inf)) > interval / 2)
    values = np.stack([found[n][rows] for n in names], axis=1)
    return found["time"][rows], values, float(found["violation"][rows].max()) if has else 0.0


def controlled(m: pf.Mechanism, folder: Path, start: dict[str, Any], seconds: float) -> float:
    """Largest difference of an FMU that steps under error control from the stepper."""
    file = pf.fmu(m, folder / "controlled.fmu", accuracy=ACCURACY, step=CALL, **start).file
    if findings := validate_fmu(str(file)):
        raise SystemExit(f"fmpy finds in {file.name}: {findings}")
    names = [f"{part}.{n}" for part, of in (("q", m.q_names), ("v", m.v_names)) for n in of]
    found = fmpy.simulate_fmu(str(file), stop_time=seconds, step_size=CALL, output_interval=CALL, output=names)
    s, worst = pf.stepper(m, accuracy=ACCURACY), 0.0
    rows = np.stack([found[n] for n in names], axis=1)
    s.reset(rows[0, : m.nq], rows[0, m.nq :], parameters=start.get("parameters"), correct_start=False)
    for row in rows:
        worst = max(worst, float(np.abs(row - np.concatenate([s.q, s.v])).max()))
        s.advance(CALL)
    return worst


def free_motions(m: pf.Mechanism, q: np.ndarray) -> np.ndarray:
    """(nv, n) directions in which derivatives by q are unique: all, or with redundant rows those that the rows allow, since off
    the constraints it matters which rows count as dependent."""
    A = np.atleast_2d(pf.compile_terms(m, {"A": lambda T: T.A}, lanes=1)(q)["A"])
    _, s, V = np.linalg.svd(A)
    rank = int((s > 1e-8 * s.max(initial=0.0)).sum())
    return np.eye(m.nv) if rank == len(A) else V[rank:].T


def derivatives(file: Path, folder: Path, m: pf.Mechanism, start: dict[str, Any]) -> float:
    """Largest difference of the directional and adjoint derivatives of an FMU, as CasADi imports them, from
    `pf.derivatives`, relative to the largest."""
    with zipfile.ZipFile(file) as archive:
        archive.extractall(folder)
    dae = ca.DaeBuilder("machine", str(folder))
    x = np.array(dae.start(dae.x()), dtype=float)
    u = np.linspace(-1.0, 1.0, len(dae.u()))
    d = pf.derivatives(m, x[: m.nq], x[m.nq : m.nq + m.nv], u, parameters=start.get("parameters"))
    f = dae.create("f", ["x", "u"], ["ode"])
    by_x, by_u = (np.array(J) for J in f.jacobian()(x, u, 0))
    seeds = np.vstack([np.zeros((m.nq, m.nv)), np.eye(m.nv)])
    adjoint = [[np.array(a).ravel() for a in f.reverse(1)(x, u, 0, seed)] for seed in seeds.T]
    along = free_motions(m, x[: m.nq])
    turned = by_x[: m.nq, m.nq :] @ along  # q_dot = K v, by which derivatives with respect to q become those along v
    worst = 0.0
    for of_x, of_u in ((by_x[m.nq :], by_u[m.nq :]), tuple(np.array(a) for a in zip(*adjoint, strict=True))):
        for found, exact in ((of_x[:, : m.nq] @ turned, d.v_dot.q @ along), (of_x[:, m.nq :], d.v_dot.v), (of_u, d.v_dot.u)):
            worst = max(worst, np.abs(found - exact).max(initial=0.0))
    return worst / max(np.abs(x).max(initial=0.0) for x in (d.v_dot.q, d.v_dot.v, d.v_dot.u))


def checked(name: str, m: pf.Mechanism, start: dict[str, Any], seconds: float) -> bool:
    """Check one machine and print what was found; returns whether it passes."""
    names, passes, words = [f"q.{n}" for n in m.q_names], True, []
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        result = pf.run(m, **start, duration=seconds, step=STEP, record=["q"], error=False)
        if result["status"]:  # a singular configuration, where runs stop as well
            seconds = STEP * round(float(result["stopped"]) / STEP)
            words.append(f"stops at {seconds:.3g} s")
            result = result.isel(time=slice(round(seconds / STEP) + 1))
        for version in ("3.0", "2.0"):
            _, q, _ = simulated(written(m, folder, "co-simulation", version, start), seconds, STEP, names)
            n = min(len(q), result.sizes["time"])
            off = np.abs(q[:n] - result["q"].values[:n]).max()
            passes &= off == 0 and n == result.sizes["time"]
            words.append(f"run {off:g}")
        off = controlled(m, folder, start, seconds)
        passes &= off == 0
        words.append(f"controlled {off:g}")
        short = min(seconds, SHORT)
        for version in ("3.0", "2.0"):
            file = written(m, folder, "model exchange", version, start)
            t, q, violation = simulated(file, short, 0.002, names)
            exact = pf.run(m, **start, times=np.round(t, 9), accuracy=1e-9, record=["q"], error=False)["q"].values
            off = np.abs(q - exact).max()
            passes &= off < EXCHANGE and violation < VIOLATION
            words.append(f"exchange {off:.1g} (violation {violation:.1g})")
            if version == "3.0":
                off = derivatives(file, folder / "at", m, start)
                passes &= off < DERIVATIVE
                words.append(f"derivatives {off:.1g}")
    print(f"{'ok ' if passes else 'NO '} {name:14}", ", ".join(words), flush=True)
    return passes


def hour() -> bool:
    """An hour of the four-bar by an importer."""
    m, settings = pf.read("zoo:four_bar")
    with tempfile.TemporaryDirectory() as place:
        start = {k: dict(x) for k, x in {"q": settings.q, "guess": settings.guess, "v": settings.v}.items() if x}
        file = written(m, Path(place), "model exchange", "3.0", start)
        _, _, violation = simulated(file, 3600.0, 0.05, [f"q.{n}" for n in m.q_names])
    print(f"an hour of the four-bar: violation {violation:.2g}")
    return violation < VIOLATION


class Rates:
    """The rates of an FMU for model exchange, for an integrator in Python.   count: how often the state was put back."""

    def __init__(self, file: Path, folder: Path) -> None:
        described = fmpy.read_model_description(str(file))
        self.calls = instantiate_fmu(fmpy.extract(str(file), str(folder)), described, "ModelExchange")
        self.calls.enterInitializationMode()
        self.calls.exitInitializationMode()
        self.n, self.count = described.numberOfContinuousStates, 0
        self.now, self.rate = ((ctypes.c_double * self.n)() for _ in range(2))
        self.settle()

    def settle(self) -> np.ndarray:
        """The state after an event."""
        self.calls.updateDiscreteStates()
        self.calls.enterContinuousTimeMode()
        self.calls.getContinuousStates(self.now, self.n)
        return np.array(self.now)

    def at(self, t: float, x: np.ndarray) -> np.ndarray:
        """The rates at a time and a state; huge where the FMU refuses them, so that a step is made anew."""
        self.calls.setTime(t)
        self.now[:] = x
        self.calls.setContinuousStates(self.now, self.n)
        try:
            self.calls.getContinuousStateDerivatives(self.rate, self.n)
        except FMICallException:
            return np.full(self.n, 1e30)
        return np.array(self.rate)

    def states(self, times: np.ndarray) -> Iterator[np.ndarray]:
        """The states at these times."""
        s, k = DOP853(self.at, times[0], np.array(self.now), times[-1], rtol=FINEST, atol=FINEST), 0
        for _ in range(MOST_STEPS):
            s.step()
            path = s.dense_output()
            while k < len(times) and times[k] <= s.t:
                yield path(times[k])
                k += 1
            if k == len(times):
                return
            self.at(s.t, s.y)
            if self.calls.completedIntegratorStep()[0]:
                self.calls.enterEventMode()
                s.y, self.count = self.settle(), self.count + 1
                s.f = self.at(s.t, s.y)


def long(name: str, m: pf.Mechanism, start: dict[str, Any]) -> bool:
    """A long integration of one machine; printed with the error that the run tells of itself, beyond which nothing is known."""
    times = np.arange(0.0, LONG + RECORDS / 2, RECORDS)
    exact = pf.run(m, **start, times=times, accuracy=1e-10, record=["q"])
    with tempfile.TemporaryDirectory() as place:
        rates = Rates(written(m, Path(place), "model exchange", "3.0", start), Path(place) / "at")
        q = np.array(list(rates.states(times)))[:, : m.nq]
    off, told = np.abs(q - exact["q"].values[: len(q)]).max(), float(exact["error"].max())
    passes = off < max(EXCHANGE, told) and len(q) == len(times)
    words = f"{off:.1e}, put back {rates.count} times; the run tells {told:.1e}"
    print("ok " if passes else "NO ", f"{name:14}", words, flush=True)
    return passes


def main() -> int:
    """See the text of this file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--hour", action="store_true")
    parser.add_argument("--long", action="store_true")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    if given.hour:
        return 0 if hour() else 1
    chosen = [one for one in machines() if not given.only or one[0] in given.only]
    passed = [long(*one) if given.long else checked(*one, given.seconds) for one in chosen]
    return 0 if passed and all(passed) else 1


if __name__ == "__main__":
    sys.exit(main())
