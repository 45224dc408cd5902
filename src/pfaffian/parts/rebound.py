"""Rigid impacts: surfaces that touch, and joints that reach a stop, rebound at once with a coefficient of restitution.

    J v+ = -e J v-,   v+ = v- + (the shortest change in the metric of M along which the constraints stay satisfied)

J v is the rate of the gap. Between impacts the surfaces exert no force. [Brogliato 2016, section 4.3]
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import casadi as ca

from pfaffian.errors import ModelError, brief
from pfaffian.model import reprs
from pfaffian.model.compound import Compound
from pfaffian.model.data import data
from pfaffian.model.force import Dissipation
from pfaffian.model.number import Scalar, at_defaults, column, scalar
from pfaffian.model.ranges import Range
from pfaffian.model.user_functions import call_for_value


@data
class Rebound:
    """Surfaces that rebound: the arguments of `rebound`, checked."""

    gap: Callable[[Any], Any]
    impact: ca.SX

    def __repr__(self) -> str:
        return reprs.words(self, f"restitution {reprs.number(self.impact)}")

    @property
    def ranges(self) -> tuple[Range, ...]:
        """What its number must be."""
        return (restitution_range(self.impact),)

    def gap_values(self, k: Any) -> ca.SX:
        """What the function of the caller returns."""
        return self.gap(k)


class Impacts(NamedTuple):
    """Impacts of a part.   of: its record, whose method `gap_values` gives the gaps.   restitution: (1, 1)."""

    of: Any
    restitution: ca.SX

    def gaps(self, name: str, k: Any) -> list[ca.SX]:
        """The gaps (1, 1). Raises ModelError: a function of a caller fails, or returns no numbers.   name: of the part."""
        what = f"force {name!r}: gap"
        return ca.vertsplit(column(call_for_value(self.of.gap_values, what, k), what))


@data
class NoForce:
    """A dissipation that exerts no force, since it does not depend on velocities: the gaps of a part that rebounds. By it they
    belong to the equations from which keys are made."""

    name: str
    of: Any

    def __call__(self, k: Any) -> ca.SX:
        total = sum(Impacts(self.of, ca.SX(0)).gaps(self.name, k), ca.SX(0))
        if ca.depends_on(total, k.v):
            raise ModelError(f"force {self.name!r}: gap: the distance of two surfaces depends on no velocity")
        return total


def rebound(name: str, gap: Callable[[Any], Any], impact: Scalar) -> Compound:
    """Impacts at the instants at which a gap closes, with a coefficient of restitution.

        d gap / dt after = -e d gap / dt before

    Runs locate the impacts: those with steps of one length divide the step there. They act without friction. Where several gaps
    close at once the velocities change by the shortest way in the metric of M after which each opens at least so fast, so that
    a box that falls flat does not turn. [Moreau 1988] A body that comes to rest on a surface has impacts without end, and the
    run stops at that instant with a message that names them; a constraint that switches on (`active_while`) then carries it.

    Args:
        name: of the part.
        gap: function of Kinematics that returns one or more gaps, positive while apart [m or rad].
        impact: e, the coefficient of restitution, from 0 (no rebound) to 1 (no loss of energy).
    Returns: a compound for forces=[...]. `contact` and `stop` make the same for their surfaces by `impact=`.
    Raises ModelError: the gap is no function, or e is not between 0 and 1.

    Example:
        A ball falls from 1 m and rebounds with 0.8 of its speed, so it rises to 0.64 m:

        >>> import pfaffian as pf
        >>> slide = pf.joint("z", "prismatic", "world", "ball", axis=(0, 0, 1))
        >>> floor = pf.forces.rebound("floor", lambda k: k.joint("z"), impact=0.8)
        >>> m = pf.mechanism("bounce", [pf.body("ball", mass=1.0)], [slide], forces=[floor])
        >>> result = pf.run(m, {"z": 1.0}, times=[0.0, (2 / 9.81) ** 0.5 * 1.8], accuracy=1e-9, backend="numpy")
        >>> print(f"{float(result.q[-1, 0]):.6f} m")
        0.640000 m
    """
    what = f"force {name!r}"
    if not callable(gap):
        raise ModelError(f"{what}: gap must be a function of the kinematics, got {brief(gap)}")
    return rebounding(name, Rebound(gap, as_restitution(what, impact)))


def as_restitution(what: str, impact: Any) -> ca.SX:
    """(1, 1) the coefficient of restitution. Raises ModelError: it is not from 0 to 1."""
    e = scalar(impact, f"{what}: impact")
    value = at_defaults(e)
    if value is not None and not 0 <= value.item() <= 1:
        raise ModelError(f"{what}: impact, the coefficient of restitution, must be from 0 to 1, got {value.item():g}")
    return e


def restitution_range(e: ca.SX) -> Range:
    """What a coefficient of restitution must be."""
    return Range("impact, the coefficient of restitution,", e, to_one=True)


def rebounding(name: str, of: Any) -> Compound:
    """The compound of a part that rebounds.   of: its record."""
    return Compound(name, (Dissipation(f"{name} rebound", NoForce(name, of)),), of)


def impacts_of(m: Any) -> dict[str, Impacts]:
    """The impacts of a mechanism, by the names of their parts."""
    records = {c.name: c.of for c in m.compounds if getattr(c.of, "impact", None) is not None}
    return {name: Impacts(of, of.impact) for name, of in records.items()}


class Gap(NamedTuple):
    """A gap at symbols.   value: [m or rad].   J: (1, nv) its derivatives along the velocities.   rate: J v and the derivative
    with time.   restitution: (1, 1)."""

    value: ca.SX
    J: ca.SX
    rate: ca.SX
    restitution: ca.SX


def gaps_of(k: Any) -> dict[str, Gap]:
    """The gaps of all parts of a mechanism that rebound, by name; those of a part with several have numbers.

    k: Kinematics.
    """
    found = dict[str, Gap]()
    for name, part in impacts_of(k.mechanism).items():
        values = part.gaps(name, k)
        for i, value in enumerate(values):
            J = ca.jacobian(value, k.q) @ k.kinematic_matrix
            rate = J @ k.v + ca.jacobian(value, k.t)
            found[name if len(values) == 1 else f"{name} {i}"] = Gap(value, J, rate, part.restitution)
    return found
