"""Reaction wrenches of joints and closures: at states, and as an output of a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import casadi as ca

from pfaffian import kernel
from pfaffian.dynamics import formulation
from pfaffian.dynamics.motion import Motion
from pfaffian.dynamics.reaction import ReactionWrench, reaction_wrenches
from pfaffian.model.mechanism import Mechanism, as_mechanism, as_names
from pfaffian.simulate.evaluate import Compiled, function_of
from pfaffian.simulate.signals import MotionOutput, Signal
from pfaffian.simulate.state import check_on_constraints, off_constraints
from pfaffian.terms.digest import digest
from pfaffian.terms.kinematics import check_frame
from pfaffian.terms.pfaffian import row_names
from pfaffian.terms.present import remembered
from pfaffian.terms.terms import Terms, symbols

COMPONENTS = ("fx", "fy", "fz", "nx", "ny", "nz")


def reaction_wrench(
    m: Mechanism,
    name: str | Sequence[str],
    q: Any = None,
    v: Any = None,
    u: Any = None,
    *,
    t: float = 0.0,
    parameters: Any = None,
    frame: str = "LOCAL",
) -> ReactionWrench | dict[str, ReactionWrench]:
    """What a joint or closure carries: [force; moment] (..., 6) that the parent (body_a) exerts on the child (body_b). [N, N m]

    About the origin of the joint's frame on the child. `unique` (..., 6) says of each component whether the motion determines
    it: where constraints are redundant, multipliers of smallest norm share the load. See docs/notation.md.

    Args:
        m: the mechanism.   name: of a joint (fixed ones too) or a closure, or several names for a dict of answers.
        q, v, u: (n,) or (runs, n) arrays or {name: number}, None is neutral, at rest, without inputs; on the constraints.
        t: [s].   parameters: {name: value} or an array, defaults if None.
        frame: LOCAL (the joint's axes on the child, z the joint's axis), LOCAL_WORLD_ALIGNED (the world's axes) or WORLD
            (those, and the moment about the world's origin).
    Raises ModelError: an unknown name or frame, a state off the constraints, a constraint by a function of the caller's whose
    force on single bodies cannot be told.
    """
    as_mechanism(m)
    names = (name,) if isinstance(name, str) else as_names(name, "name")
    found = _compiled(m, names, frame).matrices(q, v, u, t=t, parameters=parameters)
    off = found["off"]
    check_on_constraints(m, off if off.ndim == 3 else off[None])
    answers = {n: ReactionWrench(found[n][..., 0], found[n][..., 1] > 0) for n in names}
    return answers[name] if isinstance(name, str) else answers


@remembered(64)
def _compiled(m: Mechanism, names: tuple[str, ...], frame: str) -> Compiled:
    def build() -> ca.Function:
        T = symbols(m)
        answers = reaction_wrenches(T, formulation("auto", T)(T), names, frame)
        return function_of(T, {"off": off_constraints(T)} | {n: ca.horzcat(*x) for n, x in answers.items()})

    key = f"reaction wrenches {names!r} {frame} {digest(m)}"
    rows = len(row_names(symbols(m).kinematics))
    return Compiled(m, kernel.compile(build, key=key), {"off": (rows, 4)} | dict.fromkeys(names, (6, 2)))


@dataclass(frozen=True)
class _Column:
    """One field of the wrench of a joint or closure; equal ones find the same compiled run."""

    name: str
    frame: str
    field: str

    def __call__(self, terms: Terms, motion: Motion) -> ca.SX:
        return getattr(reaction_wrenches(terms, motion, [self.name], self.frame)[self.name], self.field)


def reaction(name: str, frame: str = "LOCAL", *, unique: bool = False) -> MotionOutput:
    """The reaction wrench of a joint or closure as an output of a run: `outputs={"hinge": pf.reaction("hinge")}`.

    name, frame: as in `reaction_wrench`.   unique: record instead which components the motion determines, 1 or 0.
    Raises ModelError: an unknown frame.
    """
    signal = Signal("1" if unique else "N, N m", "wrench_component", COMPONENTS)
    return MotionOutput(_Column(name, check_frame(frame), "unique" if unique else "wrench"), signal)
