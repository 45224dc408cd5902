"""Checks of the state that a caller passes for one instant: that it is given, and on the constraints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import casadi as ca
import numpy as np

from pfaffian.control.reason import foremost
from pfaffian.errors import ModelError
from pfaffian.model.mechanism import Mechanism
from pfaffian.terms.pfaffian import row_names
from pfaffian.terms.terms import Terms, symbols

RESIDUAL = 1e-6
"""Largest |phi| and |eta| of a state on its constraints, relative to the scale of the row and, for eta, to the size of its
terms: as much as a run may leave by default.
"""


def check_given(value: Any, names: Sequence[str], what: str) -> None:
    """Raise ModelError where nothing is given: a caller who means zero must say so."""
    if value is None:
        raise ModelError(
            f"{what} is missing: give ({len(names)},) or (runs, {len(names)}) numbers, or {{name: number}} with zero for all "
            f"that it leaves out; np.zeros({len(names)}) or {{}} if all are zero"
        )


def off_constraints(T: Terms) -> ca.SX:
    """(m, 4) for each row: phi, eta, and both relative to the scale of the row; that of eta includes the size of its terms."""
    inverse, eta = T.inverse_scales(RESIDUAL), T.rows.eta
    return ca.densify(ca.horzcat(T.rows.phi, eta, T.rows.phi * inverse, eta / (1 / inverse + ca.sqrt((T.A**2) @ T.v**2))))


def check_on_constraints(m: Mechanism, off: np.ndarray) -> None:
    """Raise ModelError naming the row of largest residual.   off: (runs, m, 4), from `off_constraints`."""
    if not off.size:
        return
    missed = np.nan_to_num(np.abs(off[:, :, 2:]).max(axis=2), nan=np.inf)
    run, row = foremost(missed)
    if missed[run, row] > RESIDUAL:
        phi, eta = off[run, row, :2]
        raise ModelError(
            f"the state is off the constraints{f' in run {run}' if len(off) > 1 else ''}: row "
            f"{row_names(symbols(m).kinematics)[row]!r} has phi = {phi:.3g}, eta = {eta:.3g}; put it onto them with "
            "pfaffian.assemble, or take it from a run"
        )
