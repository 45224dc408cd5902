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
    """The reaction wrench of a joint or closure as an output of a run: fx, fy, fz [N], nx, ny, nz [N m].

    It is the wrench that the parent (body_a) exerts on the child (body_b); `reaction_wrench` gives it at a single state.

    Args:
        name: of a joint (fixed ones too) or closure.
        frame: LOCAL (about the origin and along the axes of the joint's frame on the child, z the joint's axis),
            LOCAL_WORLD_ALIGNED (the world's axes) or WORLD (these, with the moment about the world's origin).
        unique: record instead which components the motion determines, 1 or 0: where constraints are redundant, multipliers of
            smallest norm share the load.
    Returns:
        An output for `outputs` of `run` and `run_adaptive`.
    Raises ModelError: an unknown frame; in the run, an unknown name.

    Example:
        A bob of 1 kg on a rod of 1 m passes its lowest point with 1 m/s: the rod pulls with m (g + v^2 / l).

        >>> import pfaffian as pf
        >>> plane = pf.joint("bob", "planar-translation", "world", "bob", axis=(0, -1, 0))
        >>> rod = pf.closure("rod", "distance", "world", "bob", length=1.0)
        >>> m = pf.mechanism("pendulum", [pf.body("bob", mass=1.0)], [plane], constraints=[rod])
        >>> outputs = {"rod": pf.reaction("rod")}
        >>> result = pf.run(m, [0.0, -1.0], [1.0, 0.0], duration=0.1, step=0.01, outputs=outputs, backend="numpy")
        >>> round(float(abs(result["rod"][0]).max()), 6)
        10.81
    """
    signal = Signal("1" if unique else "N, N m", "wrench_component", COMPONENTS)
    return MotionOutput(_Column(name, check_frame(frame), "unique" if unique else "wrench"), signal)
