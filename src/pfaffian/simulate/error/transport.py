"""The check of a run that tracks a prototype by energy: how much energy its transport map moved. [konz25 (4.30)]"""

from __future__ import annotations

import numpy as np

from pfaffian.errors import RunWarning, notice
from pfaffian.simulate.step.draft import Draft

BEYOND_ROUNDING = 1e-6
"""Fraction of the prototype's largest energy above which the energy that the map moved is more than rounding."""

NOTHING = 1e-12
"""Energy [J] that counts as zero, since a machine follows its reference only up to rounding."""


def warn_of_transport(result: Draft) -> None:
    """Warn where a transport map moved energy into or out of a prototype, whose energy only dampers should change.

    Under (4.30) the rate of the energy does not contain `transport_power` = v_R . (grad_R Vbar + Q^T grad Vbar), which is zero
    for any reference at rest. Adds nothing to the result.   Warns RunWarning.
    """
    if "transport_power" not in result or "prototype_energy" not in result:
        return
    power, energy = (np.nan_to_num(result[n]) for n in ("transport_power", "prototype_energy"))
    time = result["time"]
    moved = np.trapezoid(np.abs(power), time, axis=1)
    most = np.abs(energy).max(axis=1)
    off = np.where(moved > np.maximum(BEYOND_ROUNDING * most, NOTHING), moved, 0.0)
    if not off.any():
        return
    i = int(np.argmax(off / np.maximum(most, NOTHING)))
    which = f", in run {i} of {len(off)} the most" if len(off) > 1 else ""
    notice(
        "the transport map does not satisfy (4.30), so the prototype's energy need not fall along a moving reference: the map "
        f"moved {off[i]:.2g} J into or out of it, of at most {most[i]:.2g} J{which}; give `transport` a map of errors that the "
        "prototype's stiffness is a function of (control.error_coordinates), or stiffness on fewer pairs; see transport_error",
        RunWarning,
    )
