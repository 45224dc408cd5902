"""Reaction wrenches of joints and closures as outputs of a run."""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca

from pfaffian.dynamics.motion import Motion
from pfaffian.dynamics.reaction import reaction_wrenches
from pfaffian.simulate.signals import MotionOutput, Signal
from pfaffian.terms.kinematics import check_frame
from pfaffian.terms.terms import Terms

COMPONENTS = ("fx", "fy", "fz", "nx", "ny", "nz")


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
