"""Springs, dampers and winches along a path, and a cable of fixed length."""

from __future__ import annotations

from typing import Any

import casadi as ca

from pfaffian.errors import ModelError, brief
from pfaffian.model import reprs
from pfaffian.model.constraint import Holonomic
from pfaffian.model.data import data
from pfaffian.model.number import Scalar, interval, not_negative, positive, scalar
from pfaffian.model.path import Path
from pfaffian.model.ranges import Range


@data
class PathSpring:
    """A spring and damper along a path, of tension k (l - rest) + d l_dot.

    pulls_only: whether it is a cable, whose tension is never below zero and is zero where it is not stretched.
    """

    name: str
    path: Path
    stiffness: ca.SX
    rest: ca.SX
    damping: ca.SX
    pulls_only: bool

    def __repr__(self) -> str:
        parts = [repr(self.path), f"stiffness {reprs.number(self.stiffness, 'N/m')}", f"rest {reprs.number(self.rest, 'm')}"]
        parts += [f"damping {reprs.number(self.damping, 'N s/m')}", *(["only pulls"] if self.pulls_only else [])]
        return reprs.words(self, *parts, name=self.name)

    @property
    def ranges(self) -> tuple[Range, ...]:
        """What its numbers must be."""
        given = (("stiffness", self.stiffness), ("rest", self.rest), ("damping", self.damping))
        return (*(Range(word, x) for word, x in given), *self.path.ranges)

    def stretch(self, length: ca.SX) -> ca.SX:
        """(1, 1) length beyond the rest length, zero where a cable is slack [m]."""
        x = length - self.rest
        return ca.fmax(x, 0) if self.pulls_only else x

    def tension_at(self, length: ca.SX, rate: ca.SX) -> ca.SX:
        """(1, 1) tension at a length and its rate [N]."""
        T = self.stiffness * self.stretch(length)
        if self.damping.is_zero():
            return T
        T += self.damping * rate
        return ca.if_else(length > self.rest, ca.fmax(T, 0), 0) if self.pulls_only else T

    def tension(self, k: Any) -> ca.SX:
        """(1, 1) tension at the kinematics k, negative where it pushes [N]."""
        return self.tension_at(self.path.length(k), ca.SX(0) if self.damping.is_zero() else self.path.rate(k))


@data
class Winch:
    """An actuator with one input u along a path, of tension gear * u, or gear * u * l_dot if it is a damper.

    unit: of the input, "N", "N m" on a drum, "N s/m" of a damper.   damps: whether it is a damper.
    """

    name: str
    path: Path
    gear: ca.SX
    limits: tuple[float, float]
    unit: str = "N"
    damps: bool = False

    @property
    def ends(self) -> tuple[tuple[str, int], ...]:
        """The velocities of joints on which it acts directly: none."""
        return ()

    @property
    def ranges(self) -> tuple[Range, ...]:
        """What its numbers must be."""
        return self.path.ranges

    def __repr__(self) -> str:
        low, high = self.limits
        return reprs.words(
            self, repr(self.path), f"gear {reprs.number(self.gear)}", f"from {low:g} to {high:g} {self.unit}", name=self.name
        )


@data
class FixedLength:
    """The residual phi(k) = l - length of a path of fixed length."""

    path: Path
    length: ca.SX

    __repr__ = reprs.kind

    @property
    def bodies(self) -> tuple[str, ...]:
        return self.path.bodies

    @property
    def joints(self) -> tuple[str, ...]:
        return self.path.joints

    @property
    def ranges(self) -> tuple[Range, ...]:
        """What its numbers must be."""
        return (Range("length", self.length, True), *self.path.ranges)

    def __call__(self, k: Any) -> ca.SX:
        return self.path.length(k) - self.length


def path_spring(
    name: str, path: Path, *, stiffness: Scalar = 0.0, rest: Scalar = 0.0, damping: Scalar = 0.0, pulls_only: bool = False
) -> PathSpring:
    """A massless spring and damper along a path: its tension is k (l - rest) + d l_dot.

    Args:
        name: unique among the forces.
        path: made by `path`.
        stiffness: k [N/m], zero by default.
        rest: free length, at which the spring exerts no force [m], zero by default.
        damping: d [N s/m], zero by default.
        pulls_only: True for a cable, whose tension is never below zero, and zero where it is shorter than its free length;
            False, the default, for a spring that also pushes.
    Raises ModelError: a path of another kind, a free length, stiffness or damping below zero.

    Example:
        A cable from a beam over a sheave to a load 1.5 m below, 1 cm longer than its free length:

        >>> import pfaffian as pf
        >>> sheave = pf.forces.pulley("world", 0.1, axis=(0, 1, 0), centre=(0, 0, 2))
        >>> line = pf.forces.path([("world", (-0.1, 0, 0)), sheave, ("load", (0.1, 0, 0))])
        >>> cable = pf.forces.path_spring("cable", line, stiffness=5e3, rest=3.804159, pulls_only=True)
        >>> lift = pf.joint("lift", "prismatic", "world", "load")
        >>> m = pf.mechanism("load", [pf.body("load", 2.0)], [lift], forces=[cable], gravity=(0, 0, 0))
        >>> pf.forward_dynamics(m, [0.5]).v_dot.round(2)  # 5e3 * 0.01 / 2
        array([25.])
    """
    what = f"force {name!r}"
    if not isinstance(pulls_only, bool):
        raise ModelError(f"{what}: pulls_only must be True or False, got {brief(pulls_only)}")
    k, l, d = (
        not_negative(x, f"{what}: {word}") for word, x in (("stiffness", stiffness), ("rest", rest), ("damping", damping))
    )
    return PathSpring(name, as_path(path, what), k, l, d, pulls_only)


def winch(
    name: str,
    path: Path,
    *,
    gear: Scalar = 1.0,
    drum: Scalar | None = None,
    limits: tuple[float, float] = (0.0, float("inf")),
) -> Winch:
    """An actuator along a path: a winch, a tendon or a cylinder, whose input pulls with the tension u [N].

    Args:
        name: unique among the actuators; also the name of its input.
        path: made by `path`.
        gear: tension per unit of the input, one by default; -1 for a cylinder that pushes for u > 0.
        drum: radius of the drum on which the line is wound [m]; then the input is the torque on the drum [N m], and the tension
            is gear * u / drum. None, the default, if the input is the tension.
        limits: (low, high) of u; (0, inf) by default, since a line only pulls. A result reports when and by how much u exceeded
            its limits; `Scheme(saturate=True)` clips u to them.
    Raises ModelError: a path of another kind, a drum whose radius is not above zero, limits that are the wrong way round.

    Example:
        >>> import pfaffian as pf
        >>> rope = pf.forces.path([("world", (0, 0, 2)), ("load", (0, 0, 0))])
        >>> lift = pf.joint("lift", "prismatic", "world", "load")
        >>> hoist = pf.forces.winch("hoist", rope, drum=0.05)
        >>> m = pf.mechanism("load", [pf.body("load", 2.0)], [lift], actuators=[hoist])
        >>> m.u_units, pf.inverse_dynamics(m, [0.0], [0.0], [0.0]).u.round(6)  # 2 * 9.81 N at 0.05 m
        (('N m',), array([0.981]))
    """
    what = f"actuator {name!r}"
    g, unit = scalar(gear, f"{what}: gear"), "N"
    if drum is not None:
        g, unit = g / positive(drum, f"{what}: radius of the drum"), "N m"
    return Winch(name, as_path(path, what), g, interval(limits, f"{what}: limits"), unit)


def adjustable_damper(name: str, path: Path, *, limits: tuple[float, float] = (0.0, float("inf"))) -> Winch:
    """An actuator whose input u is the coefficient of a damper along a path: its tension is u l_dot.

    Args:
        name: unique among the actuators; also the name of its input.
        path: made by `path`.
        limits: (low, high) of u [N s/m]; (0, inf) by default, so that it never drives. A result reports when and by how much u
            exceeded its limits; `Scheme(saturate=True)` clips u to them.
    Raises ModelError: a path of another kind, limits that are the wrong way round.

    Example:
        >>> import pfaffian as pf
        >>> strut = pf.forces.path([("world", (0, 0, 2)), ("load", (0, 0, 0))])
        >>> lift = pf.joint("lift", "prismatic", "world", "load")
        >>> m = pf.mechanism("load", [pf.body("load", 2.0)], [lift], actuators=[pf.forces.adjustable_damper("d", strut)])
        >>> pf.forward_dynamics(m.with_(gravity=(0, 0, 0)), [0.0], [0.5], u={"d": 8.0}).v_dot.round(9)  # -8 * 0.5 / 2
        array([-2.])
    """
    what = f"actuator {name!r}"
    return Winch(name, as_path(path, what), ca.SX(1), interval(limits, f"{what}: limits"), "N s/m", damps=True)


def taut_cable(name: str, path: Path, *, length: Scalar) -> Holonomic:
    """A massless cable of fixed length along a path, always taut: l(q) = length.

    Its tension is the constraint's multiplier, negative where it would have to push; `active_while` lets it go slack. On a
    drum it is wound up as the joint of the drum turns: l is then the sum of the free line and the line on the drum.

    Args:
        name: unique among the constraints.
        path: made by `forces.path`.
        length: [m], above zero.
    Returns: a holonomic constraint.
    Raises ModelError: a path of another kind, a length that is not above zero.

    Example:
        A load on a rope whose drum, with an inertia of 0.02 kg m^2, is free to turn:

        >>> import pfaffian as pf
        >>> rope = pf.forces.path([("world", (0, 0, 2)), ("load", (0, 0, 0))], drums={"drum": 0.1})
        >>> bodies = [pf.body("load", 2.0), pf.body("drum", 1.0, inertia=0.02)]
        >>> joints = [pf.joint("lift", "prismatic", "world", "load"), pf.joint("drum", "revolute", "world", "drum")]
        >>> m = pf.mechanism("hoist", bodies, joints, constraints=[pf.constraints.taut_cable("rope", rope, length=2.0)])
        >>> pf.forward_dynamics(m, [0.0, 0.0]).v_dot.round(4)  # -m g / (m + J / r^2), and as the drum turns
        array([ -4.905, -49.05 ])
    """
    what = f"constraint {name!r}"
    return Holonomic(name, FixedLength(as_path(path, what), positive(length, f"{what}: length")))


def as_path(path: Any, what: str) -> Path:
    """The path unchanged. Raises ModelError: something else.   what: the label of its owner in the message."""
    if not isinstance(path, Path):
        raise ModelError(f"{what}: path must be made by pf.forces.path([...]), got {brief(path)}")
    return path
