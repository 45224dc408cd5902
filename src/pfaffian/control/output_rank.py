"""The check before a run that outputs can move independently of each other at some configuration."""

from __future__ import annotations

from collections.abc import Sequence

import casadi as ca
import numpy as np

from pfaffian.control.law import at_values
from pfaffian.control.outputs import Output, check_moves, moving
from pfaffian.control.reason import mainly, participation
from pfaffian.errors import ModelError, plural
from pfaffian.maths.margins import ROUNDING, ZERO, free, rank, unit_rows
from pfaffian.maths.span import complement
from pfaffian.model.constraint import Nonholonomic
from pfaffian.model.mechanism import Mechanism
from pfaffian.terms.generic_states import at_generic_states, speed_units, tell
from pfaffian.terms.pfaffian import target_rows
from pfaffian.terms.terms import shared
from pfaffian.terms.traced_now import remembered


def check_reach(m: Mechanism, outputs: Sequence[Output], p: np.ndarray) -> None:
    """Raise ModelError if the outputs do not move independently of each other at any configuration, at parameters (runs, np).

    Closures are ignored, since random configurations do not satisfy them; dependences that they cause are found by the run.
    """
    J, A = _rows(m, tuple(outputs))
    for words, values in at_values(m, p):
        unit = speed_units(m, values)
        at = at_generic_states(m, {"J": J, "A": A}, parameters=values)
        for constrained in (False, True) if A.shape[0] else (False,):
            rows = at["A"] * unit if constrained else at["A"][:, :0]
            left = [_along(m, j * unit, a) for j, a in zip(at["J"], rows, strict=True)]
            size = np.linalg.norm(at["J"] * unit, axis=2, keepdims=True)
            independent = tell(m, "whether the coordinates of the outputs move independently", rank(np.array(left), size))
            if independent < J.shape[0]:
                real = np.where(np.abs(left) > ROUNDING * size, left, 0.0)
                still = np.hstack([complement(unit_rows(x).T, ZERO) for x in real])
                raise ModelError(f"{words}{_message(m, outputs, int(independent), still, constrained)}")


@remembered(16)
def _rows(m: Mechanism, outputs: tuple[Output, ...]) -> tuple[ca.SX, ca.SX]:
    """J of all outputs and the rows of the constraints on velocities, at the symbols of `shared(m)`."""
    k = shared(m).kinematics
    parts = [moving(k, o).J for o in outputs]
    for o, part in zip(outputs, parts, strict=True):
        check_moves(o, part)
    A = [target_rows(k, c).A for c in m.ideal if isinstance(c, Nonholonomic)]
    return ca.vertcat(*parts), ca.vertcat(ca.SX(0, m.nv), *A)


def _along(m: Mechanism, J: np.ndarray, A: np.ndarray) -> np.ndarray:
    """J (k, nv) on the motions that rows A (a, nv) leave, as (k, nv) again."""
    N = tell(m, "which motions the constraints on velocities leave", free(A))
    return J @ N @ N.T


def _message(m: Mechanism, outputs: Sequence[Output], independent: int, still: np.ndarray, constrained: bool) -> str:
    """The message about outputs of which only some are independent.

    still: (k, d) combinations of them that do not move, at several states.   constrained: because of constraints on velocities.
    """
    names = [f"{name} ({o.kind})" for o in outputs for name in o.names]
    by = ", ".join(repr(c.name) for c in m.ideal if isinstance(c, Nonholonomic))
    return (
        f"concurrent: of the {plural(len(names), 'coordinate')} of the outputs only {independent} move "
        f"independently, at any configuration of {m.name!r}{f', because of {by}' if constrained else ''}; leave out one of "
        f"{mainly(participation(still), names, len(names))}: two outputs may name one motion, the joints may be too few, or "
        "there may be a point on an axle, which does not move across its wheels (take a point off the axle by at=...)"
    )
