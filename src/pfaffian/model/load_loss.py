"""Friction of a joint in proportion to the load that it carries: the data."""

from __future__ import annotations

import casadi as ca

from pfaffian.model import reprs
from pfaffian.model.data import data
from pfaffian.model.ranges import Range

GUIDE, PIN, SCREW, GEAR = "guide", "pin", "screw", "gear"

CARRIERS = {GUIDE: ("prismatic",), PIN: ("revolute",), SCREW: ("helical",), GEAR: ("revolute", "prismatic", "helical")}
"""What carries the load -> the kinds of joints that have it."""


@data
class LoadLoss:
    """The friction -mu(s) L sigma(s) along a joint with the rate s, L being the load that the joint carries.

    carrier: "guide", "pin", "screw" or "gear": a row of CARRIERS, which says how L follows from the joint's reaction.
    sliding, static, stribeck: mu = sliding + (static - sliding) exp(-(s / stribeck)^2) [1]. Of a gear, the efficiencies
        while the motor drives, and while the load does.
    lengths: (2, 1) [m] guide: its length, zero where moments cause no friction; pin: the radii of bearing and collar; screw:
        the radius.
    smooth: sigma = s / sqrt(s^2 + smooth^2) [rad/s, m/s].
    settle: time in which the joint comes to rest where friction can hold it [s], in place of `smooth`; None: it creeps.
    """

    name: str
    joint: str
    carrier: str
    sliding: ca.SX
    static: ca.SX
    stribeck: ca.SX
    lengths: ca.SX
    smooth: ca.SX
    settle: ca.SX | None

    def __repr__(self) -> str:
        parts = [f"of the {self.carrier} {self.joint!r}", f"coefficient {reprs.number(self.sliding)}"]
        return reprs.words(self, *parts, name=self.name)

    @property
    def ranges(self) -> tuple[Range, ...]:
        """What its numbers must be."""
        if self.carrier == GEAR:
            both = (("efficiency", self.sliding), ("efficiency backward", self.static))
            return tuple(Range(word, e, above=True, to_one=True) for word, e in both)
        excess = Range("static friction less sliding friction", self.static - self.sliding)
        sizes = (Range("a length", x) for x in ca.vertsplit(self.lengths))
        return Range("coefficient", self.sliding), excess, *sizes
