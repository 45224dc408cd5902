"""A fit as one HTML page: numbers with intervals, measured beside fitted motion, residuals, held-out errors."""

from __future__ import annotations

from base64 import b64encode
from html import escape
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from pfaffian.fitting.fit_result import Fit
from pfaffian.formats.text.file import as_path
from pfaffian.output.whole_file import write_whole
from pfaffian.viewer.drawing import COLOURS, blank_figure, finish, plain, style

MOST = 12
"""Most measured numbers that are drawn."""

HORIZONS = "<p>Root mean square errors at the end of each horizon, in s, each in the unit of its signal.</p>"

STYLE = "body{font:15px sans-serif;max-width:60em;margin:2em auto;color:#222}td,th{padding:2px 10px;text-align:right}"
STYLE += "table{border-collapse:collapse}tr:nth-child(even){background:#f2f2f2}img{max-width:100%}"


def fit_report(fit: Fit, path: str | Path, *, unseen: pd.DataFrame | None = None, record: str | None = None) -> Path:
    """Write a page that shows a fit: every number with its interval, motion, residuals and what the records do not determine.

    Args:
        fit: the result of `pf.fit`.
        path: of the page, ending in .html; it needs no other file.
        unseen: the table that `fit.unseen(...)` returned, to be shown too.
        record: whose motion is drawn; the first one by default.
    Returns: the path.
    Raises ModelError: the path is none; matplotlib is missing.

    Example:
        >>> import tempfile
        >>> import numpy as np, pfaffian as pf
        >>> k = pf.Parameter("stiffness", 5.0, "N/m")
        >>> slide = pf.joint("x", "prismatic", "world", "box", axis=(1, 0, 0), stiffness=k)
        >>> m = pf.mechanism("oscillator", [pf.body("box", mass=2.0)], [slide], parameters=[k])
        >>> t = np.arange(0.0, 4.0, 0.02)
        >>> fit = pf.fit(m, {"time": t, "q": np.cos(2.0 * t) + 1e-3 * np.sin(1e3 * t)})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     pf.identification.fit_report(fit, f"{folder}/fit.html").name
        'fit.html'
    """
    place = as_path(path)
    name = record or fit.problem.records[0].name
    title = f"Fit of {fit.problem.of.s.mechanism.name}"
    parts = [f"<h1>{escape(title)}</h1>", _summary(fit), _table(fit.table)]
    parts += [f"<h2>Measured and fitted, {escape(name)}</h2>", _picture(_motion(fit, name))]
    parts += ["<h2>Residuals</h2>", _table(_residuals(fit))]
    if unseen is not None:
        parts += ["<h2>Predictions of records that the fit has not seen</h2>", _table(unseen), HORIZONS, _losses(unseen)]
    head = f"<!doctype html><html><head><meta charset='utf-8'><title>{escape(title)}</title><style>{STYLE}</style></head><body>"
    write_whole(place, f"{head}{''.join(parts)}</body></html>\n".encode())
    return place


def _summary(fit: Fit) -> str:
    """How the fit ended, and what is not determined."""
    segments, rejected = fit.problem.segments, len(fit.rejected)
    end = "converged" if fit.converged else f"has not converged; {fit.stalled()}"
    words = [
        f"{segments.runs} segments of up to {segments.at.max():.4g} s; {fit.iterations} iterations, {end}. "
        f"{rejected} of {int(np.isfinite(segments.y).sum())} measured numbers are beyond 3 standard deviations. "
        "Half widths are those of 95 % intervals."
    ]
    return "".join(f"<p>{escape(x)}</p>" for x in filter(None, (*words, *fit.undetermined, fit.doubt)))


def _table(table: pd.DataFrame) -> str:
    """A table, with all its texts escaped."""
    return str(table.to_html(float_format=lambda x: f"{x:.5g}", border=0))


def _residuals(fit: Fit) -> pd.DataFrame:
    """Standard deviation, mean and correlation with the next sample of the residuals of each measured number."""
    r, units = fit.solution.fitted.residual, _units(fit)
    rows = []
    for i, (label, deviation) in enumerate(fit.deviations.items()):
        x = r[:, :, i]
        pairs = np.isfinite(x[:, 1:]) & np.isfinite(x[:, :-1])
        after = _correlation(x[:, :-1][pairs], x[:, 1:][pairs])
        mean = float(np.nanmean(x)) if np.isfinite(x).any() else np.nan
        row = {"signal": label, "standard deviation": deviation, "mean": mean, "unit": units.get(label, "")}
        rows.append(row | {"correlation with the next": after})
    return pd.DataFrame(rows).set_index("signal")


def _units(fit: Fit) -> dict[str, str]:
    """SI units of the measured coordinates and rates by label."""
    m = fit.problem.of.s.mechanism
    known = (("q", m.q_names, m.q_units), ("v", m.v_names, m.v_units))
    return {f"{signal} {name}": unit for signal, names, of in known for name, unit in zip(names, of, strict=True)}


def _correlation(a: np.ndarray, b: np.ndarray) -> float:
    """The correlation of residuals, whose mean is about zero; nan where there are none."""
    size = np.sqrt((a**2).sum() * (b**2).sum())
    return float((a * b).sum() / size) if size > 0 else np.nan


def _losses(table: pd.DataFrame) -> str:
    """A sentence for each row in which something simpler predicts better."""
    rows = table["loses to"].reset_index().astype(str).to_numpy()
    words = [f"For {', '.join(index)} the fit loses to {rival}." for *index, rival in rows if rival]
    return "".join(f"<p>{escape(x)}</p>" for x in words)


def _motion(fit: Fit, record: str) -> Any:
    """A figure with measured and fitted values of a record above each other, and their difference beside them."""
    labels, units = fit.problem.layout.labels[:MOST], _units(fit)
    segments = fit.problem.segments
    mine = [i for i in range(segments.runs) if fit.problem.records[segments.record[i]].name == record]
    with style():
        figure = blank_figure(10, 1.9 * len(labels))
        axes = figure.subplots(len(labels), 2, squeeze=False, sharex=True)
        for row, (label, (left, right)) in enumerate(zip(labels, axes, strict=True)):
            for i in mine:
                seen = np.isfinite(segments.y[i, :, row])
                t = segments.begin[i] + segments.at[i][seen]
                y, r = segments.y[i, :, row][seen], fit.solution.fitted.residual[i, :, row][seen]
                left.plot(
                    t, y, marker=".", color=COLOURS[0], markersize=3, linestyle="", label="measured" if i == mine[0] else None
                )
                left.plot(t, y - r, linestyle="-", color=COLOURS[1], linewidth=1, label="fitted" if i == mine[0] else None)
                right.plot(t, r, linestyle="-", color=COLOURS[2], linewidth=0.7)
            unit = f" [{units[label]}]" if units.get(label) else ""
            left.set(ylabel=f"{plain(label)}{unit}")
            right.set(ylabel=f"difference{unit}")
        axes[0, 0].legend(loc="best")
        for ax in axes[-1]:
            ax.set(xlabel="time [s]")
    return finish(figure)


def _picture(figure: Any) -> str:
    """A figure inside the page."""
    data = BytesIO()
    figure.savefig(data, format="png", dpi=110)
    return f"<img alt='measured and fitted values over time' src='data:image/png;base64,{b64encode(data.getvalue()).decode()}'>"
