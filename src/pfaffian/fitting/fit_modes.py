"""`fit_modes`: from measured frequencies, dampings and eigenvalues to the numbers of a machine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from pfaffian.control.identified_parameters import QUANTILE
from pfaffian.errors import ModelError, RunError, RunWarning, brief, nearest, notice
from pfaffian.evaluate.arrays import as_batch, guessed_configurations, named, parameter_values, velocities
from pfaffian.fitting.determined import blind, typical
from pfaffian.fitting.determined import named as named_directions
from pfaffian.fitting.known_before import by_name, free_parameters, possibility, settings
from pfaffian.fitting.linear_step import Settings, bounded_step
from pfaffian.fitting.solve import CONVERGED, FIRST, REJECTED, SETTLED
from pfaffian.fitting.steady import EigenvalueSlope, modes, steady
from pfaffian.model.mechanism import Mechanism, as_mechanism
from pfaffian.model.number import named_float
from pfaffian.model.with_numbers import with_numbers
from pfaffian.terms.traced_now import present

KEYS = ("eigenvalues", "frequencies", "dampings", "q", "v", "u", "parameters")
"""What a measurement may say."""

KINDS = ("growth", "frequency", "damping")
"""Measured numbers of a mode: real part [1/s], imaginary part [rad/s], damping ratio. Each kind has a standard deviation."""

RELATIVE = 0.02
"""First standard deviation of each kind, as a fraction of its largest value."""


class MeasuredModes(NamedTuple):
    """Modes measured near one steady motion.

    q: (nq,).   v: (nv,).   given_rates: (nv,) of bool, velocities that are given.   u: (nu,).   p: (np,).
    fixed: (np,) of bool, parameters that the measurement gives.   y: (modes, 3) numbers of KINDS, nan where not measured.
    """

    q: np.ndarray
    v: np.ndarray
    given_rates: np.ndarray
    u: np.ndarray
    p: np.ndarray
    fixed: np.ndarray
    y: np.ndarray


def fit_modes(
    m: Mechanism,
    measured: Sequence[Mapping[str, Any]],
    *,
    parameters: Iterable[str] | None = None,
    start: Mapping[str, float] | None = None,
    bounds: Mapping[str, tuple[float, float]] | None = None,
    priors: Mapping[str, tuple[float, float]] | None = None,
) -> ModalFit:
    """Fit parameters to measured frequencies, dampings or eigenvalues of small motions near steady ones, by least squares.

    The eigenvalues are those of `linearise` at the steady motion nearest to the given state, an equilibrium if nothing moves,
    and each measured mode is compared with the nearest one. Derivatives are exact, with those of the steady motion. Growth,
    frequency and damping have standard deviations of their own, estimated from their residuals.

    Args:
        m: the mechanism.
        measured: a list of dicts, one for each state: "eigenvalues" [1/s], complex, or "frequencies" [Hz] of damped
            oscillations and, if known, their "dampings" [1], -Re / |eigenvalue|; one number or a list. "q" is the state near
            which to look, neutral by default; "v" velocities, which do not change; "u" inputs; "parameters" that differ
            from state to state.
        parameters: names of the parameters to fit; all by default that no measurement gives.
        start: {parameter: value} from which to start; defaults where left out.
        bounds: {parameter: (low, high)}.
        priors: {parameter: (value, standard deviation)}, known before.
    Returns:
        a `ModalFit`: values with intervals, measured beside fitted modes, what is not determined, the fitted mechanism.
    Warns RunWarning: parameters that the modes do not determine; a fit that did not converge.
    Raises ModelError: a measurement that cannot be read; unknown names.
    Raises RunError: there is no steady motion near a state, or fewer modes that oscillate than were measured.

    Example:
        >>> import pfaffian as pf
        >>> k = pf.Parameter("stiffness", 5.0, "N/m")
        >>> slide = pf.joint("x", "prismatic", "world", "box", axis=(1, 0, 0), stiffness=k)
        >>> m = pf.mechanism("oscillator", [pf.body("box", mass=2.0)], [slide], parameters=[k])
        >>> round(pf.identification.fit_modes(m, [{"frequencies": 0.3183}]).values["stiffness"], 2)
        8.0
    """
    m = present(as_mechanism(m))
    first = dict(zip(m.p_names, m.p_defaults, strict=True))
    for name, value in by_name(start, "start").items():
        if name not in first:
            raise ModelError(f"start: there is no parameter {brief(name)}; {nearest(name, m.p_names)}")
        first[name] = named_float(value, f"start[{name!r}]")
    points = tuple(_read(m, i, x, first) for i, x in enumerate(_as_list(measured)))
    given = np.any([x.fixed for x in points], axis=0)
    chosen = [n for n, x in zip(m.p_names, given, strict=True) if not x] if parameters is None else parameters
    free = free_parameters(m, chosen)
    possible, known = possibility(m), np.array(list(first.values()))

    def allowed(theta: np.ndarray) -> bool:
        p = known.copy()
        p[list(free)] = theta
        return possible(p)

    problem = ModalProblem(m, points, free)
    s = settings(problem.names, by_name(bounds, "bounds"), by_name(priors, "priors"), allowed)
    found = _solved(problem, known[list(free)], s)
    if not found.converged:
        notice("fit_modes: it has not converged; give start= values nearer to the truth", RunWarning)
    for sentence in found.undetermined:
        notice(f"fit_modes: {sentence}", RunWarning)
    return found


class ModalProblem(NamedTuple):
    """Measured modes of a mechanism, and the indices of the parameters that are fitted."""

    m: Mechanism
    points: tuple[MeasuredModes, ...]
    free: tuple[int, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.m.p_names[i] for i in self.free)

    @property
    def y(self) -> np.ndarray:
        """(modes, 3) measured numbers of all states."""
        return np.concatenate([x.y for x in self.points])


def _as_list(measured: Any) -> list[Any]:
    """A list of measurements. Raises ModelError: it is none."""
    found = [measured] if isinstance(measured, Mapping) else measured
    if not isinstance(found, Sequence) or isinstance(found, str) or not found or not all(isinstance(x, Mapping) for x in found):
        raise ModelError(f"measured: a list of dicts {{'frequencies': ...}} is needed, got {brief(measured)}")
    return list(found)


def _read(m: Mechanism, i: int, x: Mapping[str, Any], first: Mapping[str, float]) -> MeasuredModes:
    """A measurement as arrays. Raises ModelError: what is wrong, with its number."""
    for key in x:
        if key not in KEYS:
            raise ModelError(f"measured[{i}]: there is no {brief(key)}; {nearest(key, KEYS)}")
    if ("eigenvalues" in x) == ("frequencies" in x) or ("eigenvalues" in x and "dampings" in x):
        raise ModelError(f"measured[{i}]: either eigenvalues or frequencies, with or without dampings, are needed")
    try:
        main = np.atleast_1d(np.asarray(x.get("eigenvalues", x.get("frequencies")), complex))
        dampings = np.atleast_1d(np.asarray(x.get("dampings", np.full(len(main), np.nan)), float))
    except (TypeError, ValueError):
        raise ModelError(f"measured[{i}]: numbers are needed, got {brief(dict(x))}") from None
    if main.ndim != 1 or dampings.shape != main.shape or not np.isfinite(main).all():
        raise ModelError(f"measured[{i}]: one finite number for each mode is needed, and as many dampings as frequencies")
    if "eigenvalues" in x:
        y = np.column_stack([main.real, np.abs(main.imag), np.full(len(main), np.nan)])
    else:
        y = np.column_stack([np.full(len(main), np.nan), 2 * np.pi * main.real, dampings])
        if main.imag.any() or not (main.real > 0).all():
            raise ModelError(f"measured[{i}]: frequencies are positive numbers [Hz]")
    q, v = guessed_configurations(m, x.get("q"))[0], velocities(m, x.get("v"))[0]
    given_rates, fixed = named(x.get("v"), m.v_names, "v"), named(x.get("parameters"), m.p_names, "parameters")
    p = np.where(fixed, parameter_values(m, x.get("parameters"))[0], np.array(list(first.values())))
    return MeasuredModes(q, v, given_rates, as_batch(x.get("u"), m.u_names, np.zeros(m.nu), "u")[0], p, fixed, y)


def _predicted(problem: ModalProblem, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(modes, 3) numbers of the predicted modes, and their derivatives (modes, 3, n). Raises RunError: there are none."""
    values, slopes = list[np.ndarray](), list[np.ndarray]()
    for i, x in enumerate(problem.points):
        p, mine = x.p.copy(), ~x.fixed[list(problem.free)]
        p[np.array(problem.free)[mine]] = theta[mine]
        at = steady(problem.m, x.q, x.v, x.given_rates, x.u, p)
        for mode in modes(problem.m, at, x.u, p, lambda s, y=x.y, i=i: _matched(s, y, i)):
            value, slope = _numbers(mode)
            values.append(value)
            slopes.append(slope[:, list(problem.free)] * mine)
    return np.array(values), np.array(slopes)


def _matched(s: np.ndarray, y: np.ndarray, i: int) -> list[int]:
    """The index of the eigenvalue s nearest to each measured mode (modes, 3), each used once.

    Raises RunError: fewer eigenvalues oscillate than were measured.
    """
    slow = np.nan_to_num(y[:, 1]) == 0
    real, imag = s.real[:, None] - y[:, 0], s.imag[:, None] - y[:, 1]
    distance = np.hypot(np.nan_to_num(real), imag)
    distance[(s.imag < 0) | (s == 0)] = np.inf
    distance[(s.imag == 0)[:, None] & ~slow & np.isnan(y[:, 0])] = np.inf  # a measured frequency is that of an oscillation
    found = np.full(len(y), -1)
    for _ in range(len(y)):
        mode, measured = np.unravel_index(np.argmin(distance), distance.shape)
        if not np.isfinite(distance[mode, measured]):
            raise RunError(f"fit_modes: measured[{i}] has {len(y)} modes, and the machine has fewer that oscillate")
        found[measured] = mode
        distance[mode], distance[:, measured] = np.inf, np.inf
    return [int(x) for x in found]


def _numbers(mode: EigenvalueSlope) -> tuple[np.ndarray, np.ndarray]:
    """(3,) growth, frequency and damping of an eigenvalue, and their derivatives (3, np)."""
    s, ds, size = mode.s, mode.by_p, abs(mode.s)
    by_size = (np.conj(s) * ds).real / size
    damping = -ds.real / size + s.real * by_size / size**2
    return np.array([s.real, s.imag, -s.real / size]), np.array([ds.real, ds.imag, damping])


def _solved(problem: ModalProblem, theta: np.ndarray, s: Settings) -> ModalFit:
    """The solution, with standard deviations of each kind that are estimated from its residuals."""
    y, first = problem.y, theta
    deviation = np.maximum(RELATIVE * np.nan_to_num(np.abs(y)).max(axis=0), RELATIVE)
    here, damping, decrement, settled = _predicted(problem, theta), FIRST, np.inf, False
    for iteration in range(1, s.most + 1):
        step = _next(problem, theta, here, deviation, damping, s)
        if step is not None:
            theta, here, damping, decrement = step
        if settled and (step is None or decrement < CONVERGED):
            return ModalFit(problem, theta, first, here[0], here[1], deviation, s.prior, step is not None, iteration)
        if step is None or decrement < 1:
            now = _deviations(y - here[0], len(theta), deviation)
            settled, deviation = bool((np.abs(now / deviation - 1) < SETTLED).all()), now
    return ModalFit(problem, theta, first, here[0], here[1], deviation, s.prior, False, s.most)


def _next(
    problem: ModalProblem, theta: np.ndarray, here: tuple[np.ndarray, np.ndarray], deviation: np.ndarray, damping: float,
    s: Settings,
) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray], float, float] | None:  # fmt: skip
    """The next numbers, what they predict, the damping, and the squared length of the step without it; None: no better one."""
    R, rhs = _rows(problem.y, *here, deviation)
    before, decrement = _cost(rhs, theta, s), bounded_step(R, rhs, theta, 0.0, s)[1]
    for _ in range(REJECTED):
        step, _ = bounded_step(R, rhs, theta, damping, s)
        trial = np.clip(theta + step, s.bounds[:, 0], s.bounds[:, 1])
        try:
            there = _predicted(problem, trial) if s.allowed(trial) else None
        except (ModelError, RunError):  # numbers of a step may be impossible
            there = None
        if there and _cost(_rows(problem.y, *there, deviation)[1], trial, s) <= before * (1 + CONVERGED**2):
            return trial, there, damping / 10, decrement
        damping = max(damping * 10, FIRST)
    return None


def _rows(y: np.ndarray, predicted: np.ndarray, slopes: np.ndarray, deviation: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The weighted derivatives (numbers, n) and differences (numbers,) of all measured numbers."""
    seen = np.isfinite(y)
    return (slopes / deviation[:, None])[seen], ((y - predicted) / deviation)[seen]


def _cost(rhs: np.ndarray, theta: np.ndarray, s: Settings) -> float:
    """The sum of squares, of residuals and of the distance from the prior."""
    return float((rhs**2).sum() + (((theta - s.prior[:, 0]) / s.prior[:, 1]) ** 2).sum())


def _deviations(r: np.ndarray, n: int, before: np.ndarray) -> np.ndarray:
    """(3,) standard deviations of the residuals r of each kind, with the share of n fitted numbers in them."""
    counts, total = np.isfinite(r).sum(axis=0), int(np.isfinite(r).sum())
    left = max(total - n, 1) / total
    size = np.sqrt(np.nan_to_num(r**2).sum(axis=0) / np.maximum(counts * left, 1))
    return np.where(counts > 0, np.maximum(size, 1e-9), before)


@dataclass(frozen=True, eq=False)
class ModalFit:
    """The result of `fit_modes`.

    values, half_widths: {name: number} and half the width of its 95 % interval, infinite where the modes do not determine it.
    undetermined: sentences that name what the modes do not tell apart.
    modes: measured beside fitted numbers of every mode.   deviations: {kind: standard deviation of its residuals}.
    mechanism: the mechanism with the fitted values in place of the parameters.
    converged, iterations: whether the last step was small, and their number.

    Example:
        >>> import pfaffian as pf
        >>> k = pf.Parameter("stiffness", 5.0, "N/m")
        >>> slide = pf.joint("x", "prismatic", "world", "box", axis=(1, 0, 0), stiffness=k)
        >>> m = pf.mechanism("oscillator", [pf.body("box", mass=2.0)], [slide], parameters=[k])
        >>> fit = pf.identification.fit_modes(m, [{"eigenvalues": 2j}])
        >>> fit.modes["fitted"].round(4).tolist(), fit.mechanism.p_names
        ([0.0, 2.0], ())
    """

    problem: ModalProblem = field(repr=False)
    theta: np.ndarray = field(repr=False)
    first: np.ndarray = field(repr=False)
    predicted: np.ndarray = field(repr=False)
    slopes: np.ndarray = field(repr=False)
    deviation: np.ndarray = field(repr=False)
    prior: np.ndarray = field(repr=False)
    converged: bool
    iterations: int

    def __repr__(self) -> str:
        return "\n".join([f"<ModalFit of {self.problem.m.name!r}>", self.table.to_string(), *self.undetermined])

    @property
    def values(self) -> dict[str, float]:
        return dict(zip(self.problem.names, map(float, self.theta), strict=True))

    @property
    def half_widths(self) -> dict[str, float]:
        return dict(zip(self.problem.names, map(float, self._half_width), strict=True))

    @property
    def deviations(self) -> dict[str, float]:
        return dict(zip(KINDS, map(float, self.deviation), strict=True))

    @cached_property
    def mechanism(self) -> Mechanism:
        return with_numbers(self.problem.m, self.values)

    @cached_property
    def table(self) -> pd.DataFrame:
        """Value, 95 % interval, start value and unit of each number."""
        units = {p.name: p.unit for p in self.problem.m.parameters}
        unit = [units[n] for n in self.problem.names]
        data = {"value": self.theta, "half width": self._half_width, "start": self.first, "unit": unit}
        return pd.DataFrame(data, index=list(self.problem.names))

    @cached_property
    def modes(self) -> pd.DataFrame:
        """Measured and fitted number of each kind, one row for each measured number, by the number of its state."""
        state = np.repeat(np.arange(len(self.problem.points)), [len(x.y) for x in self.problem.points])
        where = np.argwhere(np.isfinite(self.problem.y))
        y, fitted = (x[tuple(where.T)] for x in (self.problem.y, self.predicted))
        kind = [KINDS[j] for _, j in where]
        data = {"kind": kind, "measured": y, "fitted": fitted, "difference": y - fitted}
        return pd.DataFrame(data, index=pd.Index(state[where[:, 0]], name="state"))

    @cached_property
    def undetermined(self) -> tuple[str, ...]:
        return tuple(named_directions(blind(self._R, self.theta, self._size), self.problem.names, self._size, driven=False))

    @property
    def _size(self) -> np.ndarray:
        return typical(self.theta, self.problem.m.p_defaults[list(self.problem.free)])

    @property
    def _R(self) -> np.ndarray:
        rows = _rows(self.problem.y, self.predicted, self.slopes, self.deviation)[0]
        return np.vstack([rows, np.diag(1 / self.prior[:, 1])])

    @cached_property
    def _half_width(self) -> np.ndarray:
        lost = (np.abs(blind(self._R, self.theta, self._size)) > 0.05).any(axis=1)
        root = np.linalg.pinv(self._R * self._size, rcond=1e-9)
        return np.where(lost, np.inf, QUANTILE * self._size * np.sqrt((root**2).sum(axis=1)))
