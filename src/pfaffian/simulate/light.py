"""Inertias of a run so far from the parameters' defaults that rank was prepared for another machine."""

from __future__ import annotations

from functools import lru_cache

import casadi as ca
import numpy as np

from pfaffian.errors import RunWarning, notice
from pfaffian.model.mechanism import Mechanism
from pfaffian.terms.terms import LIGHT


def tell_light(m: Mechanism, p: np.ndarray) -> None:
    """Warn RunWarning where p (runs, np) has an inertia LIGHT^2 times above or below its default, so that rank is not sure.

    Which directions count for less where rows are compared is decided once, with the defaults (`terms.typical`).
    """
    if not m.ideal:
        return
    for i in _inertial(m):
        was, given = abs(m.parameters[i].default), np.abs(p[:, i])
        far = (given * LIGHT**2 < was) | (given > was * LIGHT**2)
        if was > 0 and far.any():
            run, parameter = int(np.flatnonzero(far)[0]), m.parameters[i]
            notice(
                f"parameter {parameter.name!r} is {p[run, i]:.3g} in run {run} and {parameter.default:.3g} by default: "
                "an inertia so far off may leave the rank of constraints undecided; make a default of that size",
                RunWarning,
            )


@lru_cache(maxsize=64)
def _inertial(m: Mechanism) -> tuple[int, ...]:
    """The parameters that masses, inertias and armatures depend on."""
    if not m.parameters:
        return ()
    numbers = [ca.veccat(b.mass, b.inertia) for b in m.bodies] + [ca.vec(j.armature) for j in m.joints]
    depends = ca.which_depends(ca.vertcat(*numbers), m.p_symbols, 1, False)
    return tuple(i for i, yes in enumerate(depends) if yes)
