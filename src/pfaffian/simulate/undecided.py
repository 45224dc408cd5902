"""Rows that are left out as dependent although they are not exactly so: what the rank tolerance decides, with one warning.

Two hinges 1e-7 rad out of line block a motion that two hinges in line leave free. Below RANK_TOLERANCE they count as in line.
"""

from __future__ import annotations

from itertools import islice

import casadi as ca
import numpy as np
import xarray as xr

from pfaffian.dynamics.motion import RANK_TOLERANCE, weighted_rows
from pfaffian.errors import RunWarning, listed, notice
from pfaffian.evaluate.compiled import Compiled, compile_terms
from pfaffian.kernel.call.kernel import Backend
from pfaffian.model.mechanism import Mechanism
from pfaffian.simulate.newton import free_problem, rank_at
from pfaffian.simulate.start import Start
from pfaffian.terms.pfaffian import POSITION, row_names
from pfaffian.terms.present import remembered
from pfaffian.terms.terms import symbols, typical, typical_at

EXACT = 1e-10
"""Part of a dependent row's length that rounding may leave."""

CHECKED = 8
"""Runs of a batch that are checked."""

NAMED = 4
"""Rows that a warning names."""


def tell_undecided(result: xr.Dataset, m: Mechanism, begun: Start, t: float, backend: Backend) -> None:
    """Record how much is left of rows that count as dependent at the start: attribute `left_out` [1], at best 0.

    t: [s] of the start. Warns RunWarning: more than rounding is left, so that motions are free that exact rows would block;
    rows depend on each other at the parameters of a run but not at the defaults.
    """
    if not m.ideal or not m.nv:
        return
    result.attrs["left_out"] = 0.0
    runs = list(islice((i for i, message in enumerate(begun.messages) if not message), CHECKED)) or [0]
    q, v, p = (np.broadcast_to(x, (len(begun.messages), x.shape[1]))[runs] for x in (begun.q, begun.v, begun.p))
    rank, _ = rank_at(free_problem(m, p, t, backend), q, v)
    if not typical(m).dependent and (rank == _written(m)).all():
        return
    _tell_unprepared(m, p[np.flatnonzero((rank < _written(m)) & (p != m.p_defaults).any(axis=1))[:1]])
    found = _left_out(m).matrices(q, v, t=t, parameters=p if p.shape[1] else None)["left"][..., 0].reshape(len(runs), -1)
    worst = np.sqrt(found.max(axis=1, initial=0.0))
    result.attrs["left_out"] = float(worst.max(initial=0.0))
    for i in np.flatnonzero(worst > EXACT)[:1]:
        names = [repr(n) for n, x in zip(row_names(symbols(m).kinematics), found[i], strict=True) if x > EXACT**2]
        others = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
        notice(
            f"{m.name!r} begins where constraint rows depend on each other up to {worst[i]:.1e} of their length: less than "
            f"the rank tolerance of {RANK_TOLERANCE:.0e}, so {', '.join(names[:NAMED])}{others} constrain nothing here; write "
            "them exactly alike if they are meant to be, or further apart",
            RunWarning,
        )


def _tell_unprepared(m: Mechanism, p: np.ndarray) -> None:
    """Warn where rows depend on each other at parameters p (1 or 0, np) but not at the defaults.

    The defaults decide which rows are orthonormalised best first (`terms.dependence`).
    """
    known = [set(block) for block in typical(m).dependent]
    new = [block for block in (typical_at(m, p[0]).dependent if len(p) else ()) if not any(k >= set(block) for k in known)]
    if new:
        rows = row_names(symbols(m).kinematics)
        given = [x.name for x, value in zip(m.parameters, p[0], strict=True) if value != x.default]
        notice(
            f"with {listed(given)} as a run has them, rows {listed([rows[i] for i in new[0]])} depend on each other, which "
            "they do not with the defaults; they are orthonormalised in the order in which they are written. Where a row "
            "vanishes for a moment, as in overconstrained linkages, that may lose energy: make such numbers the defaults",
            RunWarning,
        )


@remembered(64)
def _written(m: Mechanism) -> int:
    """Number of position rows with an entry: a hinge that closes a plane loop has three without."""
    T = symbols(m)
    return sum(T.A[i, :].nnz() > 0 for i in T.rows.at(POSITION))


@remembered(64)
def _left_out(m: Mechanism) -> Compiled:
    """Squared lengths left of the dropped rows, relative to their typical ones."""

    def left(T):
        rows = weighted_rows(T, ca.SX(T.A.shape[0], 0))
        return (1 - rows.kept) * rows.left

    return compile_terms(m, {"left": left}, lanes=1)
