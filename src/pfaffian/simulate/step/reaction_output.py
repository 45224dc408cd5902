"""Reaction wrenches of joints and closures as outputs of a run."""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca

from pfaffian.dynamics.motion import Motion
from pfaffian.dynamics.reaction import reaction_wrenches
from pfaffian.evaluate.single_values import as_flag
from pfaffian.simulate.step.signals import MotionOutput
from pfaffian.states.signal import Signal
from pfaffian.terms.kinematics import check_frame
from pfaffian.terms.terms import Terms

COMPONENTS = ("fx", "fy", "fz", "nx", "ny", "nz")
MAGNITUDES = ("force", "moment")


@dataclass(frozen=True)
class _Column:
    """One field of the wrench of a joint or closure. Equal columns share a compiled run, hence a frozen dataclass."""

    name: str
    frame: str
    field: str

    def __call__(self, terms: Terms, motion: Motion) -> ca.SX:
        return getattr(reaction_wrenches(terms, motion, [self.name], self.frame)[self.name], self.field)


@dataclass(frozen=True)
class _Sizes:
    """Force and moment of the wrench of a joint or closure, or whether the motion determines them."""

    name: str
    field: str

    def __call__(self, terms: Terms, motion: Motion) -> ca.SX:
        return magnitudes(getattr(reaction_wrenches(terms, motion, [self.name])[self.name], self.field), self.field)


def magnitudes(x: ca.SX, field: str) -> ca.SX:
    """(2, 1) force and moment of a wrench (6, 1); of its field "unique", whether all three components of each are unique."""
    parts = x[:3], x[3:]
    if field == "unique":
        return ca.vertcat(*[ca.sum1(part) > 2.5 for part in parts])
    return ca.vertcat(*[ca.sqrt(ca.sumsqr(part)) for part in parts])


def reaction(name: str, frame: str = "LOCAL", *, unique: bool = False, magnitude: bool = False) -> MotionOutput:
    """The reaction wrench of a joint or closure as an output of a run: fx, fy, fz [N], nx, ny, nz [N m].

    The parent (body_a) exerts this wrench on the child (body_b). `reaction_wrench` computes it at a single state.

    Args:
        name: name of a joint (also a fixed one) or closure.
        frame: LOCAL (about the origin and along the axes of the joint's frame on the child, where z is the joint's axis),
            LOCAL_WORLD_ALIGNED (about the same origin, along the world's axes) or WORLD (along the world's axes, with the
            moment about the world's origin).
        unique: record instead, as 1 or 0, which components the motion determines. Where constraints are redundant, the
            multipliers of smallest norm distribute the load.
        magnitude: record the size of the force [N] and of the moment about the joint's origin [N m] instead of their
            components; with `unique`, whether the motion determines them. False by default.
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
    unit, field = ("1", "unique") if as_flag(unique, "unique") else ("N, N m", "wrench")
    check_frame(frame)
    if as_flag(magnitude, "magnitude"):
        return MotionOutput(_Sizes(name, field), Signal(unit, "wrench_magnitude", MAGNITUDES))
    return MotionOutput(_Column(name, frame, field), Signal(unit, "wrench_component", COMPONENTS))
