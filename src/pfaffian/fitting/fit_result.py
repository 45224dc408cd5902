"""The result of a fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from pfaffian.evaluate.single_values import as_number
from pfaffian.fitting.determined import Uncertainty, blind, named, uncertainty
from pfaffian.fitting.doubt import doubt
from pfaffian.fitting.linear_step import reduced
from pfaffian.fitting.problem import HUBER, FitProblem
from pfaffian.fitting.records import as_records, check
from pfaffian.fitting.solve import FitSolution
from pfaffian.fitting.unknowns import unit_of
from pfaffian.fitting.unseen import unseen
from pfaffian.model.mechanism import Mechanism
from pfaffian.model.with_numbers import with_numbers

HORIZONS = (0.25, 0.5, 1.0)
"""Horizons of the held-out table, as parts of the shortest record."""


@dataclass(frozen=True, eq=False)
class Fit:
    """The result of `pf.fit`.

    values, half_widths: {name: number}, of the parameters and of the unknowns of signals, and half the width of their 95 %
        intervals, infinite where the records do not determine them.
    undetermined: sentences that name what the records do not tell apart.
    doubt: a sentence where the residuals are so far above the noise that the minimum may be a false one; else empty.
    mechanism: the mechanism with the fitted values in place of the parameters, which `pf.write` writes.
    deviations: {measured number: standard deviation of its residuals}.
    converged, iterations: whether the search ended at a minimum, and its number of steps. That it is the right minimum, only an
        empty `doubt` says: values are good to use where `converged` and not `doubt`.

    Example:
        The speed of a cart of 2 kg falls by half in each second:

        >>> import numpy as np, pfaffian as pf
        >>> d, t = pf.Parameter("damping", 1.0, "N s/m"), np.linspace(0.0, 3.0, 61)
        >>> rail = pf.joint("rail", "prismatic", "world", "cart", axis=(1, 0, 0), damping=d)
        >>> m = pf.mechanism("cart", [pf.body("cart", mass=2.0)], [rail], parameters=[d])
        >>> fit = pf.fit(m, {"time": t, "v": 0.5**t})
        >>> fit.converged, round(fit.values["damping"], 3), fit.mechanism.p_names, fit.undetermined  # 2 log 2
        (True, 1.386, (), ())
    """

    problem: FitProblem = field(repr=False)
    solution: FitSolution = field(repr=False)
    first: np.ndarray = field(repr=False)
    prior: np.ndarray = field(repr=False)
    units: Mapping[str, str] = field(repr=False, default_factory=dict)

    def __repr__(self) -> str:
        lines = [f"<Fit of {self.problem.of.s.mechanism.name!r}: {self.problem.segments.runs} segments>"]
        return "\n".join([*lines, self.table.to_string(), *filter(None, (*self.undetermined, self.doubt))])

    def _repr_html_(self) -> str:
        return str(self.table.to_html())

    @property
    def names(self) -> tuple[str, ...]:
        return self.problem.names

    @property
    def converged(self) -> bool:
        return self.solution.converged

    @property
    def iterations(self) -> int:
        return self.solution.iterations

    @property
    def values(self) -> dict[str, float]:
        return dict(zip(self.names, map(float, self.solution.theta), strict=True))

    @property
    def half_widths(self) -> dict[str, float]:
        return dict(zip(self.names, map(float, self._known.half_width), strict=True))

    @property
    def covariance(self) -> np.ndarray:
        """(n, n) covariance of the values, with residuals that are correlated in time."""
        return self._known.covariance

    @property
    def deviations(self) -> dict[str, float]:
        return dict(zip(self.problem.layout.labels, map(float, self.solution.deviation), strict=True))

    @cached_property
    def mechanism(self) -> Mechanism:
        m = self.problem.of.s.mechanism
        return with_numbers(m, {n: x for n, x in self.values.items() if n in m.p_names})

    @cached_property
    def table(self) -> pd.DataFrame:
        """Value, 95 % interval, start value and unit of each number."""
        m, problem = self.problem.of.s.mechanism, self.problem
        of = {"q": m.q_units, "v": m.v_units} | ({"u": m.u_units} if problem.layout.u_names == m.u_names else {})
        units = {p.name: p.unit for p in m.parameters} | {x.name: unit_of(x, of) for x in problem.unknowns}
        unit = [units[n] for n in self.names]
        data = {"value": self.solution.theta, "half width": self._known.half_width, "start": self.first, "unit": unit}
        return pd.DataFrame(data, index=list(self.names))

    @cached_property
    def undetermined(self) -> tuple[str, ...]:
        part = reduced(self.solution.fitted.triangles, self._k)
        rows = np.vstack([part.R, np.diag(1 / self.prior[:, 1])])
        size = self.problem.typical(self.solution.theta)
        directions = blind(rows, self.solution.theta, size)
        driven = any((np.ptp(r.u, axis=0) > 0).any() for r in self.problem.records if r.u.size)
        return tuple(named(directions, self.names, size, driven))

    @cached_property
    def doubt(self) -> str:
        return doubt(self.problem, self.solution)

    @property
    def rejected(self) -> pd.DataFrame:
        """The samples beyond 3 standard deviations, which count less in a robust fit: record, time, signal, size."""
        r = self.solution.fitted.residual / self.solution.deviation
        segments, where = self.problem.segments, np.argwhere(np.abs(np.nan_to_num(r)) > HUBER)
        record = [self.problem.records[segments.record[i]].name for i, _, _ in where]
        time = [float(segments.begin[i] + segments.at[i, j]) for i, j, _ in where]
        signal = [self.problem.layout.labels[k] for _, _, k in where]
        size = [float(r[i, j, k]) for i, j, k in where]
        return pd.DataFrame({"record": record, "time": time, "signal": signal, "size": size})

    def residuals(self, record: str | None = None) -> pd.DataFrame:
        """Measured minus predicted by record, time and signal, nan where nothing was measured.

        Args:
            record: name of one record; all of them by default.
        """
        segments, labels = self.problem.segments, list(self.problem.layout.labels)
        frames = list[pd.DataFrame]()
        for i in range(segments.runs):
            name = self.problem.records[segments.record[i]].name
            seen = np.isfinite(segments.y[i]).any(axis=1)
            if record in (None, name):
                frame = pd.DataFrame(self.solution.fitted.residual[i][seen], columns=labels)
                frames.append(frame.assign(record=name, segment=i, time=segments.begin[i] + segments.at[i][seen]))
        return pd.concat(frames).set_index(["record", "time"]) if frames else pd.DataFrame(columns=labels)

    def unseen(self, records: Any, horizons: Sequence[float] | None = None, units: Any = None) -> pd.DataFrame:
        """Errors of predictions of records that the fit has not seen, at the end of each horizon.

        Each prediction starts from a state that is estimated from five samples before it.

        Args:
            records: as for `fit`.
            horizons: [s]; a quarter, a half and the whole of the shortest record up to 50 samples long by default.
            units: as for `fit`; those of the fitted records by default.
        Returns:
            root mean square errors by horizon and measured number: of the fit, of the last measured value (persistence), of a
            straight line through the last ones (constant speed), of the start values, and which of these beat the fit.
        Raises ModelError: wrong records; a horizon that is not a number above zero.
        Raises RunError: the records are shorter than the horizons.
        """
        read = as_records(records)
        checked = tuple(check(name, x, self.problem.layout, self.units if units is None else units) for name, x in read.items())
        shortest = min(float(r.time[-1] - r.time[0]) for r in checked)
        usual = [part * shortest / 4 for part in HORIZONS]
        steps = usual if horizons is None else [as_number(x, "unseen: a horizon", above=0) for x in horizons]
        return unseen(self.problem, self.solution, self.first, checked, steps)

    def stalled(self) -> str:
        """What stalls a fit that has not converged: the combination that the residuals determine least."""
        part = reduced(self.solution.fitted.triangles, self._k)
        _, s, Vt = np.linalg.svd(np.linalg.qr(part.R * self.problem.typical(self.solution.theta), mode="r"))
        weak = Vt[-1] / np.abs(Vt[-1]).max()
        terms = [f"{x:+.2g} {n}" for n, x in zip(self.names, weak, strict=True) if abs(x) > 0.2]
        return f"the records determine {' '.join(terms)} (relative changes) least, to {1 / max(s[-1], 1e-300):.2g}"

    @property
    def _k(self) -> int:
        return self.solution.fitted.basis.shape[2]

    @cached_property
    def _known(self) -> Uncertainty:
        part = reduced(self.solution.fitted.triangles, self._k)
        return uncertainty(part, self.solution.theta, self.problem.typical(self.solution.theta), self.prior)
