"""A hydraulic or pneumatic cylinder between two pins: seals, ends of the stroke, and chambers whose pressures are inputs."""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np

from pfaffian.errors import ModelError, brief
from pfaffian.model import reprs
from pfaffian.model.compound import Compound
from pfaffian.model.data import data
from pfaffian.model.force import Dissipation, Potential
from pfaffian.model.number import Scalar, at_defaults, interval, not_negative, positive, several, vector
from pfaffian.model.path import Path, path
from pfaffian.model.path_force import Winch
from pfaffian.model.ranges import Range
from pfaffian.parts.contact import CompoundEnergy, CompoundLoss, press_of
from pfaffian.parts.drives import energy_of_gaps, loss_of_gaps
from pfaffian.parts.two_ends import check_two_ends


@data
class Cylinder:
    """A cylinder: the arguments of `cylinder`, checked."""

    body_a: str
    body_b: str
    point_a: ca.SX
    point_b: ca.SX
    bore: ca.SX
    rod: ca.SX
    stroke: tuple[ca.SX, ca.SX]
    stiffness: ca.SX
    damping: ca.SX
    friction: ca.SX
    viscous: ca.SX
    smooth: ca.SX

    def __repr__(self) -> str:
        sizes = f"bore {reprs.number(self.bore, 'm')}", f"rod {reprs.number(self.rod, 'm')}"
        ends = " to ".join(reprs.number(x, "m") for x in self.stroke)
        return reprs.words(self, f"{self.body_a!r} to {self.body_b!r}", *sizes, f"from {ends}")

    @property
    def bodies(self) -> tuple[str, str]:
        return self.body_a, self.body_b

    @property
    def ranges(self) -> tuple[Range, ...]:
        """What its numbers must be."""
        (shortest, longest), above = self.stroke, (("bore", self.bore), ("stiffness", self.stiffness), ("smooth", self.smooth))
        orders = (("bore less rod", self.bore - self.rod), ("longest less shortest stroke", longest - shortest))
        below = (("rod", self.rod), ("friction", self.friction), ("viscous", self.viscous))
        rest = (*above, *orders, ("shortest stroke", shortest))
        return (*(Range(word, x, True) for word, x in rest), *(Range(word, x) for word, x in below))

    @property
    def exponent(self) -> ca.SX:
        """Of the force of the stops."""
        return ca.SX(1)

    @property
    def path(self) -> Path:
        """The line between the pins."""
        return path([(self.body_a, self.point_a), (self.body_b, self.point_b)])

    @property
    def areas(self) -> tuple[ca.SX, ca.SX]:
        """Areas of the piston in the chambers at the cap and at the rod [m^2]."""
        cap = ca.pi * self.bore**2 / 4
        return cap, cap - ca.pi * self.rod**2 / 4

    def gaps(self, k: Any) -> list[tuple[ca.SX, ca.SX]]:
        """The way left to each end of the stroke [m], and its rate."""
        l, l_dot = self.path.length(k), self.path.rate(k)
        return [(l - self.stroke[0], l_dot), (self.stroke[1] - l, -l_dot)]

    def energy(self, k: Any) -> ca.SX:
        return energy_of_gaps(self, k)

    def loss(self, k: Any) -> ca.SX:
        """The dissipation function of the stops and of the seals, whose friction is F v / sqrt(v^2 + v_s^2) + d v."""
        v, v_s = self.path.rate(k), self.smooth
        return loss_of_gaps(self, k) + self.friction * (ca.sqrt(v**2 + v_s**2) - v_s) + self.viscous * v**2 / 2


def cylinder(
    name: str, body_a: str, body_b: str, *, bore: Scalar, stroke: tuple[Scalar, Scalar], stiffness: Scalar,
    rod: Scalar = 0.0, point_a: Any = (0, 0, 0), point_b: Any = (0, 0, 0), damping: Scalar = 0.0, friction: Scalar = 0.0,
    viscous: Scalar = 0.0, smooth: Scalar = 1e-3,
) -> Compound:  # fmt: skip
    """A hydraulic or pneumatic cylinder between two pins: the friction of its seals and the ends of its stroke.

    The barrel is on body_a and the rod on body_b. Both are without mass. Pressures act by `pressures`, a force by
    `winch(..., gear=-1)` along the same line. Pictures show it as a barrel and a rod that slides out of it.

    Args:
        name: of the cylinder; its parts are called "name stops" and "name loss".
        body_a, body_b: names of the bodies, "world" for the fixed frame.
        bore: diameter of the piston [m].
        stroke: (shortest, longest) distance between the pins [m].
        stiffness: of the stops at both ends of the stroke [N/m].
        rod: diameter of the rod [m]; 0 by default.
        point_a, point_b: (3,) the pins of barrel and rod, each in the frame of its body [m]; the origins by default.
        damping: c of the stops, whose force is k x (1 + max(-1, c x_dot)) at the depth x [s/m]; 0 by default.
        friction: of the seals [N]; 0 by default.
        viscous: friction of the seals per speed [N s/m]; 0 by default.
        smooth: speed v_s below which the friction of the seals is smooth, as v / sqrt(v^2 + v_s^2) [m/s]; 1e-3 by default.
    Returns: a compound of a potential and a dissipation, for forces=[...].
    Raises ModelError: the same body twice, a rod that is not thinner than the bore, a stroke whose ends are the wrong way round
    or not above zero, another number out of its range.

    Example:
        A load of 400 kg on a cylinder of 4 cm bore, which 40 bar would lift:

        >>> import pfaffian as pf
        >>> ram = pf.forces.cylinder("ram", "world", "load", bore=0.04, rod=0.02, stroke=(0.5, 0.8), stiffness=1e7)
        >>> lift = pf.joint("lift", "prismatic", "world", "load")
        >>> cap, rod = pf.forces.pressures(ram)
        >>> m = pf.mechanism("press", [pf.body("load", 400.0)], [lift], forces=[ram], actuators=[cap, rod])
        >>> m.u_names, m.u_units
        (('ram cap', 'ram rod'), ('Pa', 'Pa'))
        >>> (pf.forward_dynamics(m, [0.6], u={"ram cap": 40e5}).v_dot + 9.81).round(4)  # 40 bar on 12.566 cm^2, on 400 kg
        array([12.5664])
    """
    what = f"force {name!r}"
    check_two_ends(what, "body", body_a, body_b)
    if not several(stroke) or len(stroke) != 2:
        raise ModelError(f"{what}: stroke must be (shortest, longest) distance between the pins, got {brief(stroke)}")
    a, b = (vector(x, 3, f"{what}: {word}") for word, x in (("point_a", point_a), ("point_b", point_b)))
    sizes = positive(bore, f"{what}: bore"), not_negative(rod, f"{what}: rod")
    way = positive(stroke[0], f"{what}: stroke"), positive(stroke[1], f"{what}: stroke")
    _check_order(f"{what}: the rod must be thinner than the bore", sizes[1], sizes[0])
    _check_order(f"{what}: stroke must be (shortest, longest)", *way)
    k, _, c = press_of(what, stiffness, 1.0, damping)
    dry, wet = not_negative(friction, f"{what}: friction"), not_negative(viscous, f"{what}: viscous")
    of = Cylinder(body_a, body_b, a, b, *sizes, way, k, c, dry, wet, positive(smooth, f"{what}: smooth"))
    return Compound(name, (Potential(f"{name} stops", CompoundEnergy(of)), Dissipation(f"{name} loss", CompoundLoss(of))), of)


def _check_order(what: str, less: ca.SX, more: ca.SX) -> None:
    """Raise ModelError unless less < more at the parameters' defaults."""
    room = at_defaults(more - less)
    if room is not None and not room.item() > 0:
        raise ModelError(f"{what}, got {reprs.number(less)} and {reprs.number(more)}")


def pressures(of: Compound, *, limits: tuple[float, float] = (0.0, np.inf)) -> tuple[Winch, Winch]:
    """The pressures in both chambers of a cylinder as actuators: "name cap" pushes the rod out, "name rod" pulls it in.

    The force on the rod is p_cap A_cap - p_rod A_rod, with the areas pi bore^2 / 4 and pi (bore^2 - rod^2) / 4.

    Args:
        of: made by `cylinder`.
        limits: (low, high) of both pressures above that of the surroundings [Pa]; (0, inf) by default.
    Returns: two actuators, for actuators=[...].
    Raises ModelError: a compound of another kind, limits that are the wrong way round.

    Example:
        >>> import pfaffian as pf
        >>> ram = pf.forces.cylinder("ram", "world", "load", bore=0.04, rod=0.02, stroke=(0.5, 0.8), stiffness=1e7)
        >>> [a.name for a in pf.forces.pressures(ram, limits=(0, 2e7))]
        ['ram cap', 'ram rod']
    """
    made = of.of if isinstance(of, Compound) else None
    if not isinstance(made, Cylinder):
        raise ModelError(f"pressures: a cylinder made by pf.forces.cylinder(...) is needed, got {brief(of)}")
    bounds, (cap, ring) = interval(limits, f"pressures of {of.name!r}: limits"), made.areas
    line = made.path
    return Winch(f"{of.name} cap", line, -cap, bounds, "Pa"), Winch(f"{of.name} rod", line, ring, bounds, "Pa")
