"""Checks of the state that a caller passes for one instant: it must be given, and satisfy the constraints."""

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
"""Largest |phi| and |eta| of a state that counts as on its constraints: the default tolerance of a run.

Both are relative to the scale of the row; for eta this includes the size of its terms.
"""


def check_given(value: Any, names: Sequence[str], what: str) -> None:
    """Raise ModelError if an argument is None: zero must be given explicitly."""
    if value is None:
        raise ModelError(
            f"{what} is missing: give ({len(names)},) or (runs, {len(names)}) numbers, or {{name: number}} with omitted names "
            f"zero; np.zeros({len(names)}) or {{}} if all are zero"
        )


def off_constraints(T: Terms) -> ca.SX:
    """(m, 4) residuals of each row: phi, eta, and both relative to the scale of the row.

    The scale of eta includes the size of its terms.
    """
    inverse, eta = T.inverse_scales(RESIDUAL), T.rows.eta
    return ca.densify(ca.horzcat(T.rows.phi, eta, T.rows.phi * inverse, eta / (1 / inverse + ca.sqrt((T.A**2) @ T.v**2))))


def check_on_constraints(m: Mechanism, off: np.ndarray) -> None:
    """Raise ModelError, naming the row of largest residual, if that exceeds RESIDUAL.   off: (runs, m, 4) `off_constraints`."""
    if not off.size:
        return
    largest = np.nan_to_num(np.abs(off[:, :, 2:]).max(axis=2), nan=np.inf)
    run, row = foremost(largest)
    if largest[run, row] > RESIDUAL:
        phi, eta = off[run, row, :2]
        raise ModelError(
            f"the state is off the constraints{f' in run {run}' if len(off) > 1 else ''}: row "
            f"{row_names(symbols(m).kinematics)[row]!r} has phi = {phi:.3g}, eta = {eta:.3g}; put it onto them with "
            "pfaffian.assemble, or take it from a run"
        )
