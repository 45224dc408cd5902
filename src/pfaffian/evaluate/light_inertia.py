"""A check for parameters whose inertias are so far from their defaults that the rank decision no longer suits the machine."""

from __future__ import annotations

import casadi as ca
import numpy as np

from pfaffian.errors import ModelError
from pfaffian.model.mechanism import Mechanism
from pfaffian.terms.terms import LIGHT, typical, typical_at
from pfaffian.terms.traced_now import remembered

ALIKE = 30.0
"""Largest ratio of a direction's weight to its weight at the defaults. The rank decision leaves a margin of LIGHT."""


def check_light(m: Mechanism, p: np.ndarray) -> None:
    """Raise ModelError if p (runs, np) has an inertia so far from its default that rows need other weights.

    The weights of directions of small inertia, by which rows are compared, are chosen once, at the defaults (`terms.typical`).
    """
    if not m.ideal:
        return
    for i in _inertial(m):
        was, given = abs(m.parameters[i].default), np.abs(p[:, i])
        far = (given * LIGHT < was) | (given > was * LIGHT)
        # The smallest and the largest value bound all the others, so checking these two is enough.
        for run in {int(r) for r in (given.argmin(), given.argmax()) if was > 0 and far[r]}:
            if _weights_differ(m, p[run]):
                parameter = m.parameters[i]
                raise ModelError(
                    f"parameter {parameter.name!r} is {p[run, i]:.3g} in run {run} and {parameter.default:.3g} by default: "
                    "with inertias so far off, the rank of the constraints would be misjudged; choose a default of that size"
                )


def _weights_differ(m: Mechanism, p: np.ndarray) -> bool:
    """Whether a direction's weight at parameters p (np,) differs from that at the defaults by more than the factor ALIKE."""
    ones = np.ones((1, m.nv))
    here, by_default = (ones if x.counted is None else np.array(x.counted) for x in (typical_at(m, p), typical(m)))
    return bool((np.maximum(here, by_default) > ALIKE * np.minimum(here, by_default)).any())


@remembered(64)
def _inertial(m: Mechanism) -> tuple[int, ...]:
    """Indices of the parameters that masses, inertias and armatures depend on."""
    if not m.parameters:
        return ()
    numbers = [ca.veccat(b.mass, b.inertia) for b in m.bodies] + [ca.vec(j.armature) for j in m.joints]
    numbers += [ca.vec(c.armature) for c in m.loop_rotors if c.armature is not None]
    depends = ca.which_depends(ca.vertcat(*numbers), m.p_symbols, 1, False)
    return tuple(i for i, yes in enumerate(depends) if yes)
