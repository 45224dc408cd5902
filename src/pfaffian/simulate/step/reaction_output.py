"""Reaction wrenches of joints and closures as outputs of a run."""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca

from pfaffian.dynamics.motion import Motion
from pfaffian.dynamics.reaction import reaction_wrenches
from pfaffian.simulate.step.signals import MotionOutput
from pfaffian.states.signal import Signal
from pfaffian.terms.kinematics import check_frame
from pfaffian.terms.terms import Terms

COMPONENTS = ("fx", "fy", "fz", "nx", "ny", "nz")


@dataclass(frozen=True)
class _Column:
    """One field of the wrench of a joint or closure. Equal columns share a compiled run, hence a frozen dataclass."""

    name: str
    frame: str
    field: str

    def __call__(self, terms: Terms, motion: Motion) -> ca.SX:
        return getattr(reaction_wrenches(terms, motion, [self.name], self.frame)[self.name], self.field)


def reaction(name: str, frame: str = "LOCAL", *, unique: bool = False) -> MotionOutput:
    """The reaction wrench of a joint or closure as an output of a run: fx, fy, fz [N], nx, ny, nz [N m].

    The parent (body_a) exerts this wrench on the child (body_b). `reaction_wrench` computes it at a single state.

    Args:
        name: name of a joint (also a fixed one) or closure.
        frame: LOCAL (about the origin and along the axes of the joint's frame on the child, where z is the joint's axis),
            LOCAL_WORLD_ALIGNED (about the same origin, along the world's axes) or WORLD (along the world's axes, with the
            moment about the world's origin).
        unique: record instead, as 1 or 0, which components the motion determines. Where constraints are redundant, the
            multipliers of smallest norm distribute the load.
    Returns:
        An output for `outputs` of `run`.
    Raises ModelError: the frame is unknown; in the run, the name is unknown.

    Example:
        A bob of 1 kg on a rod of 1 m passes its lowest point at 1 m/s; the rod pulls with m (g + v^2 / l).

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
