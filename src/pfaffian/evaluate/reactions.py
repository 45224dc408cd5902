"""Reaction wrenches of joints and closures at given states."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import casadi as ca

from pfaffian import kernel
from pfaffian.dynamics import check_unchanged, formulation, identity
from pfaffian.dynamics.reaction import ReactionWrench, reaction_wrenches
from pfaffian.evaluate.compiled import Compiled, function_of
from pfaffian.evaluate.given_state import check_on_constraints, off_constraints
from pfaffian.model.mechanism import Mechanism, as_mechanism, as_names
from pfaffian.terms.equations_digest import digest
from pfaffian.terms.pfaffian import row_names
from pfaffian.terms.terms import symbols
from pfaffian.terms.traced_now import remembered


def reaction_wrench(
    m: Mechanism,
    name: str | Sequence[str],
    q: Any = None,
    v: Any = None,
    u: Any = None,
    *,
    t: Any = 0.0,
    parameters: Any = None,
    frame: str = "LOCAL",
) -> ReactionWrench | dict[str, ReactionWrench]:
    """Wrench [force; moment] that the parent (body_a) exerts on the child (body_b) through a joint or closure.

    The moment is about the origin of the joint's frame on the child. Along the motion of a joint, the wrench is the force of
    the joint's actuator, spring, damper and armature. If constraints are redundant, the multipliers of smallest norm distribute
    the load. See docs/notation.md.

    Args:
        m: the mechanism.
        name: name of a joint (also a fixed one) or of a closure; or several names, for a dict of results.
        q: (nq,) or (runs, nq) array, or {coordinate: number}; omitted coordinates are neutral; it must satisfy the constraints.
        v: (nv,) or (runs, nv) array, or {velocity: number}; omitted velocities are zero; it must satisfy the constraints.
        u: (nu,) or (runs, nu) array, or {input: number} [N, N m]; omitted inputs are zero.
        t: time [s], or (runs,) times.
        parameters: {name: value or (runs,)} or a (np,) or (runs, np) array; defaults where left out.
        frame: LOCAL (the joint's axes on the child, z the joint's axis), LOCAL_WORLD_ALIGNED (the world's axes) or WORLD (the
            world's axes, and the moment about the world's origin).
    Returns:
        a named tuple: wrench (..., 6) [N, N m] and unique (..., 6), whether the motion determines each component; a dict of
        name -> tuple for several names.
    Raises ModelError: an unknown name or frame; a state off the constraints; a constraint given by a function, whose force on
    single bodies is not known.

    Example:
        >>> import pfaffian as pf
        >>> bob = pf.body("bob", mass=2.0, com=(0, 0, -1))
        >>> m = pf.mechanism("pendulum", [bob], [pf.joint("hinge", "revolute", "world", "bob", axis=(0, 1, 0))])
        >>> float(pf.reaction_wrench(m, "hinge", frame="LOCAL_WORLD_ALIGNED").wrench[2].round(2))  # the hinge carries 2 kg
        19.62
    """
    as_mechanism(m)
    names = (name,) if isinstance(name, str) else as_names(name, "name")
    values = compiled_wrenches(m, names, frame).matrices(q, v, u, t=t, parameters=parameters)
    off = values["off"]
    check_on_constraints(m, off if off.ndim == 3 else off[None])
    wrenches = {n: ReactionWrench(values[through(n)][..., 0], values[through(n)][..., 1] > 0) for n in names}
    return wrenches[name] if isinstance(name, str) else wrenches


def compiled_wrenches(m: Mechanism, names: tuple[str, ...], frame: str, by: str = "auto") -> Compiled:
    """The residuals "off" of the state, and `through` each name its wrench and uniqueness (6, 2).   by: a formulation."""
    return _wrenches(m, names, frame, by, identity(by, m))


@remembered(64)
def _wrenches(m: Mechanism, names: tuple[str, ...], frame: str, by: str, known: str) -> Compiled:
    """`compiled_wrenches`.   known: the `identity` of the formulation."""

    def build() -> ca.Function:
        T = symbols(m)
        check_unchanged(by, m, known)
        wrenches = reaction_wrenches(T, formulation(by, T)(T), names, frame)
        return function_of(T, {"off": off_constraints(T)} | {through(n): ca.horzcat(*x) for n, x in wrenches.items()})

    key = f"reaction wrenches {names!r} {frame} {known} {digest(m)}"
    rows = len(row_names(symbols(m).kinematics))
    return Compiled(m, kernel.compile(build, key=key), {"off": (rows, 4)} | dict.fromkeys(map(through, names), (6, 2)))


def through(name: str) -> str:
    """The name of the wrench through a joint or closure, which may itself be called "off"."""
    return f"through {name}"
