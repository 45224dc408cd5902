"""Fields of the user along which a momentum is conserved: a third step of reduction. [chhabra14 thm. 4.2.17]"""

from __future__ import annotations

import casadi as ca
import numpy as np

from pfaffian.errors import ModelError, brief, nearest
from pfaffian.evaluate.directions_at_states import states
from pfaffian.evaluate.effects import CONSTRAINTS, NONE, changes_of, changing, sampled
from pfaffian.evaluate.reduction_plan import (
    Plan,
    in_words,
)
from pfaffian.maths.margins import ZERO
from pfaffian.maths.values import values
from pfaffian.model.mechanism import Mechanism
from pfaffian.states.reduction_data import Fields, lifted
from pfaffian.terms.generic_states import speed_units
from pfaffian.terms.permitted_directions import Directions, labels, left_by
from pfaffian.terms.reduced_terms import (
    indices,
)
from pfaffian.terms.terms import shared


def conserved_entries(m: Mechanism, plan: Plan, along: Directions | None, fields: Fields) -> tuple[int, ...]:
    """The entries of v whose momenta are those of fields.

    Raises ModelError: a field is not valid, or its momentum is not conserved.
    """
    if not fields:
        return ()
    free = [i for i in plan.y if i not in indices(m, plan.spatial)]
    v_names = labels(m, along)[0]
    for name, _ in fields:
        if name not in v_names:
            raise ModelError(f"along: {m.name!r} has no velocity {brief(name)}: {nearest(name, v_names)}")
        entry = v_names.index(name)
        if entry not in free:
            raise ModelError(
                f"along {name!r}: that momentum is not among the free ones of {m.name!r}; choose one of "
                f"{', '.join(v_names[i] for i in free)}"
            )
    entries = tuple(v_names.index(name) for name, _ in fields)
    T, fixed, at = shared(m), along or plan.group, [plan.y.index(i) for i in entries]
    Y, X, unit = lifted(T, plan, fixed, fields)[:, at], left_by(T, fixed), speed_units(m, m.p_defaults)[:, None]
    if ca.depends_on(Y, ca.vertcat(T.v, T.t)):
        raise ModelError("along: a field depends on velocities or time; it must be a function of q alone")
    f = ca.Function("along", [T.q, T.v, T.t, m.p_symbols], [ca.densify(x) for x in (Y, X)])
    at_states, of_fields = states(m, along), changes_of(T, Y)
    across = sampled(of_fields, at_states).effects.get(CONSTRAINTS)
    for state in at_states:
        fields_at, allowed = (x / unit for x in values(f, *state))
        parts = np.linalg.pinv(allowed, rcond=ZERO) @ fields_at
        for i, (name, place) in enumerate(zip(dict(fields), at, strict=True)):
            if across and across.largest[i] > NONE:
                raise ModelError(f"along {name!r}: the constraints of {m.name!r} do not allow that motion")
            if not abs(parts[place, i]) > ZERO * np.linalg.norm(parts[:, i]):
                raise ModelError(f"along {name!r}: the field does not move {name!r}; name a velocity that it moves")
    for name, relative in zip(dict(fields), changing(of_fields, at_states), strict=True):
        by = [in_words(cause) for cause, x in zip(of_fields.causes, relative, strict=True) if x > NONE]
        if by:
            raise ModelError(
                f"along {name!r}: the momentum of that motion is no constant of {m.name!r}: {', '.join(by)} "
                "changes it; leave it out: the state then contains the momenta of the velocities"
            )
    return entries
