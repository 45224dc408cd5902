"""Whether outputs can move independently of each other at all: what no configuration gives is found before a run."""

from __future__ import annotations

from collections.abc import Sequence

import casadi as ca
import numpy as np

from pfaffian.control.law import at_values
from pfaffian.control.output import Output, check_moves, moving
from pfaffian.control.reason import mainly, participation
from pfaffian.errors import ModelError, plural
from pfaffian.maths.span import complement
from pfaffian.model.constraint import Nonholonomic
from pfaffian.model.mechanism import Mechanism, random_configuration
from pfaffian.terms.pfaffian import target_rows
from pfaffian.terms.present import remembered
from pfaffian.terms.terms import symbols

STATES = 2
"""Random configurations at which the outputs are examined."""

DEPENDENT = 1e-9
"""Part of the largest singular value of their unit rows below which a combination of outputs does not move."""


def check_reach(m: Mechanism, outputs: Sequence[Output], p: np.ndarray) -> None:
    """Raise ModelError where at no configuration, with parameters (runs, np), the outputs move independently of each other.

    Closures are left out, since they hold at few configurations only: what they take away is found by the run.
    """
    random = np.random.default_rng(61)
    states = [(random_configuration(m, random), random.normal(size=m.nv), random.uniform()) for _ in range(STATES)]
    rows = _rows(m, tuple(outputs))
    for words, values in at_values(m, p):
        at = [[np.array(x) for x in rows(*state, values)] for state in states]
        for constrained in (False, True):
            lost = [_still(J @ complement(A, DEPENDENT) if constrained and len(A) else J) for J, A in at]
            if all(x.shape[1] for x in lost):
                raise ModelError(f"{words}{_message(m, outputs, lost[0], constrained)}")


@remembered(16)
def _rows(m: Mechanism, outputs: tuple[Output, ...]) -> ca.Function:
    """(q, v, t, p) -> J of all outputs, and the rows of constraints on velocities."""
    T = symbols(m)
    parts = [moving(T.kinematics, o).J for o in outputs]
    for o, part in zip(outputs, parts, strict=True):
        check_moves(o, part)
    A = [target_rows(T.kinematics, c).A for c in m.ideal if isinstance(c, Nonholonomic)]
    found = [ca.densify(x) for x in (ca.vertcat(*parts), ca.vertcat(ca.SX(0, m.nv), *A))]
    return ca.Function("reach", [T.q, T.v, T.t, m.p_symbols], found)


def _still(J: np.ndarray) -> np.ndarray:
    """(k, d) orthonormal combinations of rows, each of unit length, that do not move."""
    sizes = np.linalg.norm(J, axis=1, keepdims=True)
    return complement(np.divide(J, sizes, out=np.zeros_like(J), where=sizes > DEPENDENT * sizes.max(initial=0.0)).T, DEPENDENT)


def _message(m: Mechanism, outputs: Sequence[Output], still: np.ndarray, constrained: bool) -> str:
    names = [f"{name} ({o.kind})" for o in outputs for name in o.names]
    by = ", ".join(repr(c.name) for c in m.ideal if isinstance(c, Nonholonomic))
    return (
        f"concurrent: of the {plural(len(names), 'coordinate')} of the outputs only {len(names) - still.shape[1]} move "
        f"independently, at any configuration of {m.name!r}{f', because of {by}' if constrained else ''}; take one away of "
        f"{mainly(participation(still), names, len(names))}: two outputs that name one motion, joints too few, or a point on "
        "an axle, which does not move across its wheels (take a point off the axle by at=...)"
    )
