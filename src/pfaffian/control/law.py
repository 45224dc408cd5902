"""What a control law is to the step that runs it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import casadi as ca

from pfaffian.terms.terms import Terms


class Command(NamedTuple):
    """What a law answers at one instant.

    u: (nu, 1) inputs of the mechanism [N, N m].   z_dot: (nz, 1) rates of what it integrates.
    faults: (nf, 1) nonzero where it cannot go on; Control.faults says what each means.   signals: recorded columns.
    """

    u: ca.SX
    z_dot: ca.SX = ca.SX(0, 1)
    faults: ca.SX = ca.SX(0, 1)
    signals: Mapping[str, ca.SX] = {}


@dataclass(frozen=True, eq=False)
class Control:
    """A control law in the loop.

    law(terms, z, w, reaction) -> Command: terms at the measured state with zero inputs, z (nz, 1) what it integrates, w (nw, 1)
    the run's inputs under this law (references, say), reaction (nv, 1) the measured generalised reaction. A law that uses the
    measured reaction closes an algebraic loop, which the step solves exactly: both are affine in u.
    z: start values.   w_names: of the run's inputs.   faults: what each fault means and what to do.
    """

    law: Callable[[Terms, ca.SX, ca.SX, ca.SX], Command]
    z: tuple[float, ...] = ()
    w_names: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()
