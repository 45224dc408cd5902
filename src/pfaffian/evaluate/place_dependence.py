"""Whether the equations depend on where joints are: their parts at states that differ in the positions of joints alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

import casadi as ca
import numpy as np

from pfaffian.evaluate.effects import NONE, SOME, beside
from pfaffian.maths.values import values
from pfaffian.model.mechanism import Mechanism
from pfaffian.terms.applied_forces import named_forces
from pfaffian.terms.force_scale import force_sizes
from pfaffian.terms.generic_states import GenericState, length_at
from pfaffian.terms.momentum import weight
from pfaffian.terms.permitted_directions import Directions, in_body, labels, left_by
from pfaffian.terms.reduced_terms import others
from pfaffian.terms.terms import shared

KINEMATIC = ("the permitted motion", "kinetic energy")
"""Parts of the equations that are no forces."""


def place_dependence(
    m: Mechanism, group: tuple[int, ...] | Directions, at: Sequence[GenericState], elsewhere: Sequence[np.ndarray]
) -> dict[str, float]:
    """The parts of the equations that differ between states `at` and these states with q `elsewhere`, and how much.

    Differences are relative to the size of each number: entries of the kinetic energy to the inertias along their two motions,
    forces to `force_sizes`. A difference that is neither none nor clearly one counts.
    """
    causes, f = _parts(m, group)
    largest = dict.fromkeys(causes, 0.0)
    for (q, v, t, p), other in zip(at, elsewhere, strict=True):
        *here, inertia, sizes = values(f, q, v, t, p)
        there = values(f, other, v, t, p)
        root = np.sqrt(inertia)
        size_of_part = [1 + np.abs(here[0]), root @ root.T, *sizes.T[:, :, None]]
        for cause, a, b, size in zip(causes, here, there, size_of_part, strict=False):
            off = np.divide(np.abs(a - b), size, out=np.where(a == b, 0.0, np.inf), where=size > 0).max(initial=0.0)
            largest[cause] = max(largest[cause], float(off))
    return {cause: off for cause, off in largest.items() if off > NONE}


def first_in_words(differing: Mapping[str, float]) -> str:
    """The first part of `place_dependence` in words."""
    cause, off = next(iter(differing.items()))
    return cause if off >= SOME else f"{cause} ({beside(off)})"


@lru_cache(maxsize=64)
def _parts(m: Mechanism, group: tuple[int, ...] | Directions) -> tuple[list[str], ca.Function]:
    """The parts of the equations along the motions that constraints leave, in words, and the function of a state for their
    values.

    The function also returns, at the end, the inertia (ny, 1) and the sizes of forces (ny, forces) along these motions.
    """
    T, long = shared(m), length_at(m, m.p_defaults)
    X = left_by(T, group)
    sizes = force_sizes(T, X, long).by_cause
    forces = {"weight": weight(T.kinematics)} | named_forces(T.kinematics)
    along = group if isinstance(group, Directions) else None
    unit = np.array([long if name == "m/s" else 1.0 for name in labels(m, along)[1]])
    y = group.y if isinstance(group, Directions) else others(m, group)
    motions = (in_body(T.kinematics, along, X) if along else X) * ca.DM(unit[list(y)] / unit[:, None])
    parts = dict(zip(KINEMATIC, (motions, X.T @ T.M @ X), strict=True))
    parts |= {name if name != "weight" else "gravity": X.T @ F for name, F in forces.items()}
    inertia, of_forces = ca.diag(parts[KINEMATIC[1]]), ca.horzcat(*[sizes[name] for name in forces])
    out = [ca.densify(x) for x in (*parts.values(), inertia, of_forces)]
    return list(parts), ca.Function("parts", [T.q, T.v, T.t, m.p_symbols], out)
