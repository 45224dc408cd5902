"""Bodies, and other elements, with impossible numbers at given parameter values."""

from __future__ import annotations

from functools import cache, partial
from typing import Any

import casadi as ca
import numpy as np

from pfaffian.errors import ModelError
from pfaffian.kernel.remember import once_for
from pfaffian.maths.inertia import PHYSICAL, are_physical, is_physical, least_spread, moments, pseudo
from pfaffian.model.check import impossible_bodies, moments_of
from pfaffian.model.mechanism import Mechanism, as_mechanism
from pfaffian.model.ranges import Range, ranges_of

SPREAD = "the least principal minor of its second moment of mass"
"""Words for `least_spread`."""

BLOCK = 2**14
"""Number of runs that are checked at once."""


def check_parameters(m: Mechanism, p: np.ndarray) -> None:
    """Raise ModelError if a body, or a number of another element, is impossible at parameter values p (runs, np).

    A lenient mechanism may have impossible bodies.
    """
    check_ranges(m, p)
    varied = [b for b in m.bodies if not all(x.is_constant() for x in (b.mass, b.com, b.inertia))]
    if m.lenient or not len(p):
        return
    for b in varied:
        f = ca.Function("body", [m.p_symbols], [pseudo(*moments(b.mass, b.com, b.inertia))])
        mapped = cache(f.map)
        for begin in range(0, len(p), BLOCK):
            block = p[begin : begin + BLOCK]
            P = np.array(mapped(len(block))(block.T)).reshape(4, len(block), 4).transpose(1, 0, 2)
            for run in np.flatnonzero(~are_physical(P))[:1]:
                raise ModelError(
                    f"body {b.name!r} in run {begin + run} ({_named(m, block[run])}): {is_physical(P[run])}; correct it, or "
                    "make the mechanism lenient"
                )


def check_ranges(m: Mechanism, p: np.ndarray) -> None:
    """Raise ModelError for a number of an element that is out of its range at parameter values p (runs, np)."""
    found, f = once_for(m, "ranges", lambda: _ranges(m))
    if not found:
        return
    for begin in range(0, len(p), BLOCK):
        block = p[begin : begin + BLOCK]
        values, good = (np.array(x).reshape(len(found), len(block)) for x in f(block.T))
        for i, run in np.argwhere(good == 0)[:1].tolist():
            what, r = found[i]
            raise ModelError(
                f"{what} in run {begin + run} ({_named(m, block[run])}): {r.what} {values[i, run]:g} {r.words}; correct "
                "parameters="
            )


def _ranges(m: Mechanism) -> tuple[list[tuple[str, Range]], ca.Function]:
    """The `element_ranges`, and p (np,) -> their numbers, and whether each holds."""
    found = element_ranges(m)
    columns = [ca.densify(ca.vertcat(ca.SX(0, 1), *x)) for x in ([r.x for _, r in found], [r.holds for _, r in found])]
    return found, ca.Function("ranges", [m.p_symbols], columns)


def element_ranges(m: Mechanism) -> list[tuple[str, Range]]:
    """The ranges of numbers that depend on parameters, each with the words for its element."""
    # Compounds first: their numbers are those that a user gave.
    kinds = {"compound": m.compounds, "force": m.all_forces, "actuator": m.actuators, "constraint": m.all_constraints}
    return [(f"{kind} {x.name!r}", r) for kind, elements in kinds.items() for x in elements for r in ranges_of(x)]


def body_ranges(m: Mechanism) -> list[tuple[str, Range]]:
    """Ranges outside which a body whose mass or inertia depends on parameters is impossible, as in `element_ranges`; none of a
    lenient mechanism."""
    bodies = [] if m.lenient else [b for b in m.bodies if not all(x.is_constant() for x in (b.mass, b.com, b.inertia))]
    return [
        (f"body {b.name!r}", r)
        for b in bodies
        for r in (Range("mass", b.mass), Range(SPREAD, least_spread(b.inertia) + PHYSICAL))
    ]


def _named(m: Mechanism, p: np.ndarray) -> str:
    """The values p (np,) of the parameters, for a message."""
    return ", ".join(f"{x.name} = {value:.6g}" for x, value in zip(m.parameters, p, strict=True))


def unphysical(m: Mechanism, p: Any = None) -> dict[str, str]:
    """The bodies with physically impossible mass and inertia: dict of name -> reason, empty if there are none.

    Args:
        m: the mechanism; only a `lenient` mechanism can have such bodies at the default parameter values.
        p: (np,) values of the parameters, their defaults if None.
    Raises ModelError: m is not a mechanism.

    Example:
        >>> import pfaffian as pf
        >>> rod, hinge = pf.body("rod", mass=2.0, inertia=(1, 1, 3)), pf.joint("hinge", "revolute", "world", "rod")
        >>> pf.formats.unphysical(pf.mechanism("pendulum", [rod], [hinge], lenient=True))
        {'rod': ...}
    """
    m = as_mechanism(m)
    return impossible_bodies(m.bodies, m.moments if p is None else moments_of(m.bodies, partial(m.values, p=p)))
