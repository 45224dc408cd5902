"""Rows that the rank tolerance leaves out as dependent although they are not exactly dependent, with one warning.

Two hinges 1e-7 rad out of line block a motion that two hinges in line leave free. Below RANK_TOLERANCE they count as in line.
"""

from __future__ import annotations

from itertools import islice
from typing import NamedTuple

import casadi as ca
import numpy as np

from pfaffian.dynamics.motion import RANK_TOLERANCE
from pfaffian.errors import RunWarning, listed, notice
from pfaffian.kernel.call.recipe import Backend
from pfaffian.maths.linear import orthogonalise
from pfaffian.maths.values import values
from pfaffian.model.mechanism import Mechanism
from pfaffian.simulate.step.draft import Draft
from pfaffian.starts.newton import free_problem, rank_at
from pfaffian.starts.start import Start
from pfaffian.terms.pfaffian import row_names
from pfaffian.terms.terms import mass_weighted, shared, tell_rows_of_nothing, typical, typical_at
from pfaffian.terms.traced_now import remembered

EXACT = 1e-10
"""Fraction of a dependent row's length that rounding may leave."""

CHECKED = 8
"""Largest number of runs of a batch that are checked."""

NAMED = 4
"""Largest number of rows that a warning names."""


def record_undecided(result: Draft, m: Mechanism, begun: Start, t: float, backend: Backend) -> None:
    """Record the relative length left of rows that count as dependent at the start: attribute `left_out` [1], at best 0.

    t: [s] of the start. Warns RunWarning: more than rounding is left, so that motions are free that exact rows would block;
    rows depend on each other at the parameters of a run but not at the defaults. Warns ModelWarning: a row counts as zero.
    """
    if not m.ideal or not m.nv:
        return
    result.attrs["left_out"] = 0.0
    tell_rows_of_nothing(m)
    runs = list(islice((i for i, message in enumerate(begun.messages) if not message), CHECKED)) or [0]
    q, v, p = (np.broadcast_to(x, (len(begun.messages), x.shape[1]))[runs] for x in (begun.q, begun.v, begun.p))
    rank, written = rank_at(free_problem(m, p, t, backend), q, v)
    if not typical(m).dependent and (rank == written).all():
        return
    numbers = _numbers(m)
    _tell_unexpected(m, p[np.flatnonzero((rank < written) & (p != m.p_defaults).any(axis=1))[:1]])
    left = np.array([numbers.left(*state, t) for state in zip(q, v, p, rank, strict=True)])
    worst = np.sqrt(left.max(axis=1, initial=0.0))
    result.attrs["left_out"] = float(worst.max(initial=0.0))
    for i in np.flatnonzero(worst > EXACT)[:1]:
        names = [repr(n) for n, x in zip(numbers.names, left[i], strict=True) if x > EXACT**2]
        others = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
        notice(
            f"{m.name!r} begins where constraint rows depend on each other up to {worst[i]:.1e} of their length: less than "
            f"the rank tolerance of {RANK_TOLERANCE:.0e}, so {', '.join(names[:NAMED])}{others} constrain nothing here; make "
            "their dependence exact if it is meant, otherwise separate them further",
            RunWarning,
        )


def _tell_unexpected(m: Mechanism, p: np.ndarray) -> None:
    """Warn where rows depend on each other at parameters p (1 or 0, np) but not at the defaults.

    The defaults decide which rows are orthonormalised best first (`terms.dependence`).
    """
    known = [set(block) for block in typical(m).dependent]
    new = [block for block in (typical_at(m, p[0]).dependent if len(p) else ()) if not any(k >= set(block) for k in known)]
    if new:
        rows = row_names(shared(m).kinematics)
        given = [x.name for x, value in zip(m.parameters, p[0], strict=True) if value != x.default]
        notice(
            f"with the {listed(given)} of a run, rows {listed([rows[i] for i in new[0]])} depend on each other, which "
            "they do not with the defaults; they are orthonormalised in the order in which they are written. Where a row "
            "vanishes for a moment, as in overconstrained linkages, that may lose energy: make such numbers the defaults",
            RunWarning,
        )


class RowNumbers(NamedTuple):
    """The rows of a mechanism in numbers.   rows: function (q, v, t, p) -> A (m, nv), M (nv, nv) and `Terms.row_size` (m, 1).
    names: names of the rows.   groups, counted: see `Terms`.
    """

    rows: ca.Function
    names: tuple[str, ...]
    groups: list[list[int]] | None
    counted: ca.DM | None

    def left(self, q: np.ndarray, v: np.ndarray, p: np.ndarray, rank: int, t: float) -> np.ndarray:
        """(m,) squared lengths left of the dropped rows at a state, relative to their typical lengths; nan without inertia.

        rank: of the position rows there; where as few rows are not zero, none of these is dropped.
        """
        A, M, size = values(self.rows, q, v, t, p)
        if A.any(axis=1).sum() <= rank:
            return np.zeros(len(A))
        Lam = mass_weighted(A, M)
        if Lam is None:
            return np.full(len(A), np.nan)
        found = orthogonalise(ca.SX(Lam), ca.SX(len(A), 0), RANK_TOLERANCE, ca.SX(size), self.counted, groups=self.groups)
        return np.array(ca.DM((1 - found.independent) * found.left))[:, 0]


@remembered(64)
def _numbers(m: Mechanism) -> RowNumbers:
    """The function that gives a mechanism's constraint rows, with their names, groups and counted columns."""
    T = shared(m)
    rows = ca.Function("rows", [T.q, T.v, T.t, m.p_symbols], [ca.densify(x) for x in (T.A, T.M, T.row_size)])
    return RowNumbers(rows, row_names(T.kinematics), T.groups, T.counted)
