"""Parts of drives: gears with backlash, elastic belts, cables that only pull, and gusts of wind."""

from __future__ import annotations

from typing import Any, Protocol

import casadi as ca
import numpy as np

from pfaffian.errors import ModelError, brief
from pfaffian.model import reprs
from pfaffian.model.compound import Compound
from pfaffian.model.data import data
from pfaffian.model.force import Dissipation, Potential
from pfaffian.model.number import Parameter, Scalar, floats, is_whole, not_negative, positive, scalar, vector
from pfaffian.model.ranges import Range
from pfaffian.parts.contact import CompoundEnergy, CompoundLoss, WithPress, press_law, press_of
from pfaffian.parts.two_ends import check_two_ends

COSINES = 24
"""Number of cosines in each component of a gust."""


@data
class Gear:
    """A gear whose deviation q_driven - ratio q_by is free within the backlash: the arguments of `gear`, checked."""

    driven: str
    by: str
    ratio: ca.SX
    stiffness: ca.SX
    backlash: ca.SX
    exponent: ca.SX
    damping: ca.SX

    @property
    def ranges(self) -> tuple[Range, ...]:
        """What its numbers must be."""
        return *press_law(self).ranges, Range("backlash", self.backlash)

    def __repr__(self) -> str:
        return reprs.words(self, f"{self.by!r} to {self.driven!r}", repr(press_law(self)))

    @property
    def joints(self) -> tuple[str, str]:
        return self.driven, self.by

    def gaps(self, k: Any) -> list[tuple[ca.SX, ca.SX]]:
        """The gap at each of the two flanks [rad], and its rate."""
        x = _single(k.joint(self.driven), self.driven) - self.ratio * _single(k.joint(self.by), self.by)
        x_dot = k.joint_rate(self.driven) - self.ratio * k.joint_rate(self.by)
        play = self.backlash / 2
        return [(play - x, -x_dot), (play + x, x_dot)]

    def energy(self, k: Any) -> ca.SX:
        return energy_of_gaps(self, k)

    def loss(self, k: Any) -> ca.SX:
        return loss_of_gaps(self, k)


@data
class Cable:
    """A cable between two points: the arguments of `cable`, checked."""

    body_a: str
    body_b: str
    length: ca.SX
    stiffness: ca.SX
    point_a: ca.SX
    point_b: ca.SX
    exponent: ca.SX
    damping: ca.SX

    @property
    def ranges(self) -> tuple[Range, ...]:
        """What its numbers must be."""
        return *press_law(self).ranges, Range("length", self.length, above=True)

    def __repr__(self) -> str:
        return reprs.words(self, f"{self.body_a!r} to {self.body_b!r}", repr(press_law(self)))

    @property
    def bodies(self) -> tuple[str, str]:
        return self.body_a, self.body_b

    def gaps(self, k: Any) -> list[tuple[ca.SX, ca.SX]]:
        """The slack of the cable [m], below zero where it is stretched, and its rate."""
        line = k.line(self.body_a, self.body_b, self.point_a, self.point_b)
        rate = k.velocity(self.body_b, self.point_b) - k.velocity(self.body_a, self.point_a)
        l = ca.sqrt(ca.sumsqr(line) + 1e-24)
        return [(self.length - l, -ca.dot(line, rate) / l)]

    def energy(self, k: Any) -> ca.SX:
        return energy_of_gaps(self, k)

    def loss(self, k: Any) -> ca.SX:
        return loss_of_gaps(self, k)


class WithGaps(WithPress, Protocol):
    """A part that presses elastically where a gap is below zero: its law, and its gaps with their rates."""

    def gaps(self, k: Any) -> list[tuple[ca.SX, ca.SX]]: ...


def energy_of_gaps(of: WithGaps, k: Any) -> ca.SX:
    """The elastic energy of the gaps that are below zero [J]."""
    # The rates of the gaps are left unused, since a potential must not depend on velocities.
    press = press_law(of)
    return sum((press.energy(gap) for gap, _ in of.gaps(k)), ca.SX(0))


def loss_of_gaps(of: WithGaps, k: Any) -> ca.SX:
    """The dissipation function R with -dR/d(gap rate) = k x^n max(-1, -c gap rate), x = -gap."""
    press, total = press_law(of), ca.SX(0)
    for gap, rate in of.gaps(k):
        y = press.damping * rate
        total += press.elastic(gap) * rate * ca.if_else(y < 1, y / 2, 1 - 1 / (2 * ca.fmax(y, 0.5)))
    return total


@data
class Belt:
    """An elastic belt round two pulleys: the arguments of `belt`, checked."""

    driven: str
    by: str
    radii: tuple[ca.SX, ca.SX]
    stiffness: ca.SX
    damping: ca.SX

    @property
    def ranges(self) -> tuple[Range, ...]:
        """What its numbers must be."""
        radii = (Range("a radius", r, above=True) for r in self.radii)
        return *radii, Range("stiffness", self.stiffness, above=True), Range("damping", self.damping)

    def __repr__(self) -> str:
        numbers = f"stiffness {reprs.number(self.stiffness)}", f"damping {reprs.number(self.damping)}"
        return reprs.words(self, f"{self.by!r} to {self.driven!r}", *numbers)

    @property
    def joints(self) -> tuple[str, str]:
        return self.driven, self.by

    def energy(self, k: Any) -> ca.SX:
        return self._half_square(self.stiffness, k.joint(self.driven), k.joint(self.by))

    def loss(self, k: Any) -> ca.SX:
        return self._half_square(self.damping, k.joint_rate(self.driven), k.joint_rate(self.by))

    def _half_square(self, weight: ca.SX, x: ca.SX, y: ca.SX) -> ca.SX:
        """weight s^2 / 2, with s the stretch for coordinates x and y of the pulleys, or its rate for their rates."""
        return weight * (self.radii[0] * _single(x, self.driven) - self.radii[1] * _single(y, self.by)) ** 2 / 2


def _single(x: ca.SX, joint: str) -> ca.SX:
    """The coordinate or rate x of a joint. Raises ModelError: the joint has several."""
    if x.numel() != 1:
        raise ModelError(f"joint {joint!r} has {x.numel()} coordinates; gears and belts are for joints of one")
    return x


def _compound(name: str, of: Gear | Cable | Belt, elastic: str) -> Compound:
    """The energy, called "name elastic", and the loss of a part of a drive, as a whole."""
    return Compound(
        name, (Potential(f"{name} {elastic}", CompoundEnergy(of)), Dissipation(f"{name} loss", CompoundLoss(of))), of
    )


def gear(
    name: str, driven: str, by: str, *, ratio: Scalar, stiffness: Scalar, backlash: Scalar = 0.0, exponent: Scalar = 1.0,
    damping: Scalar = 0.0,
) -> Compound:  # fmt: skip
    """A gear with backlash between two joints: elastic teeth, with a play within which they do not touch.

    With x = |q_driven - ratio q_by| - backlash / 2 the torque between them is k x^n (1 + max(-1, c x_dot)), zero within the
    play. With an exponent above 1 the torque is smooth where contact begins. For a gear without play or elasticity, use
    `mimic`.

    Args:
        name: of the gear; its parts are called "name teeth" and "name loss".
        driven, by: names of two joints that have one coordinate each.
        ratio: turns of `driven` for one of `by`; negative for outer teeth.
        stiffness: k, as felt at `driven` [N m/rad^n].
        backlash: the total play, at `driven` [rad]; 0 by default.
        exponent: n, 1 or more; 1 by default.
        damping: c [s/rad]; 0 by default.
    Returns: a compound of a potential and a dissipation, for forces=[...].
    Raises ModelError: the same joint twice, a number out of its range.

    Example:
        A motor at 0.1 rad has taken up half of the play of 0.06 rad, and deflects the teeth by 0.1 / 2 - 0.03 rad:

        >>> import pfaffian as pf
        >>> wheels = [pf.body(n, 1.0, inertia=2.0) for n in ("motor", "wheel")]
        >>> joints = [pf.joint(n, "revolute", "world", n) for n in ("motor", "wheel")]
        >>> teeth = pf.forces.gear("gear", "wheel", "motor", ratio=0.5, stiffness=100.0, backlash=0.06)
        >>> m = pf.mechanism("drive", wheels, joints, forces=[teeth])
        >>> pf.forward_dynamics(m, {"motor": 0.1}).v_dot.round(9)
        array([-0.5,  1. ])
    """
    what = f"force {name!r}"
    check_two_ends(what, "joint", driven, by)
    free, turns = not_negative(backlash, f"{what}: backlash"), scalar(ratio, f"{what}: ratio")
    if turns.is_zero():
        raise ModelError(
            f"{what}: ratio must not be zero, or {driven!r} would not follow {by!r}; to hold it, use the joint's stiffness"
        )
    k, n, c = press_of(what, stiffness, exponent, damping)
    return _compound(name, Gear(driven, by, turns, k, free, n, c), "teeth")


def cable(
    name: str, body_a: str, body_b: str, *, length: Scalar, stiffness: Scalar, point_a: Any = (0, 0, 0),
    point_b: Any = (0, 0, 0), exponent: Scalar = 1.0, damping: Scalar = 0.0,
) -> Compound:  # fmt: skip
    """A massless cable between two points, which pulls where it is stretched and exerts no force where it is slack.

    The tension is k x^n (1 + max(-1, c x_dot)), with x the distance in excess of the free length. An inextensible
    cable is a closure of kind distance with `active_while`.

    Args:
        name: of the cable; its parts are called "name stretch" and "name loss".
        body_a, body_b: names of the bodies, "world" for the fixed frame.
        length: free length [m].
        stiffness: k [N/m^n].
        point_a, point_b: (3,) ends of the cable, each in the frame of its body [m]; the origins by default.
        exponent: n, 1 or more; 1 by default.
        damping: c [s/m]; 0 by default.
    Returns: a compound of a potential and a dissipation, for forces=[...].
    Raises ModelError: the same body twice, a number out of its range.

    Example:
        >>> import pfaffian as pf
        >>> fall = pf.joint("fall", "prismatic", "world", "load")
        >>> rope = pf.forces.cable("rope", "world", "load", length=1.0, stiffness=1000.0)
        >>> m = pf.mechanism("load", [pf.body("load", 2.0)], [fall], forces=[rope], gravity=(0, 0, 0))
        >>> pf.forward_dynamics(m, [[-0.9], [-1.1]]).v_dot.round(6).ravel()  # slack; stretched by 0.1 m
        array([ 0., 50.])
    """
    what = f"force {name!r}"
    check_two_ends(what, "body", body_a, body_b)
    first, last = (vector(x, 3, f"{what}: {word}") for word, x in (("point_a", point_a), ("point_b", point_b)))
    l, (k, n, c) = positive(length, f"{what}: length"), press_of(what, stiffness, exponent, damping)
    return _compound(name, Cable(body_a, body_b, l, k, first, last, n, c), "stretch")


def belt(
    name: str, driven: str, by: str, *, radii: tuple[Scalar, Scalar], stiffness: Scalar, damping: Scalar = 0.0
) -> Compound:
    """An elastic toothed belt round two pulleys, tight on both sides: V = k (r q_driven - r' q_by)^2 / 2.

    Args:
        name: of the belt; its parts are called "name stretch" and "name loss".
        driven, by: names of the joints of the two pulleys.
        radii: (r, r') of the pulleys of `driven` and of `by` [m].
        stiffness: k, of both sides of the belt together [N/m].
        damping: [N s/m]; 0 by default.
    Returns: a compound of a potential and a dissipation, for forces=[...].
    Raises ModelError: the same joint twice, a radius that is not above zero, a number below zero.

    Example:
        >>> import pfaffian as pf
        >>> wheels = [pf.body(n, 1.0, inertia=0.1) for n in ("motor", "wheel")]
        >>> joints = [pf.joint(n, "revolute", "world", n) for n in ("motor", "wheel")]
        >>> tooth = pf.forces.belt("belt", "wheel", "motor", radii=(0.2, 0.1), stiffness=1000.0)
        >>> m = pf.mechanism("drive", wheels, joints, forces=[tooth])
        >>> pf.forward_dynamics(m, {"motor": 0.1}).v_dot.round(9)  # 10 N at 0.1 m and 0.2 m
        array([-10.,  20.])
    """
    what = f"force {name!r}"
    check_two_ends(what, "joint", driven, by)
    if not isinstance(radii, (tuple, list)) or len(radii) != 2:
        raise ModelError(f"{what}: radii must be two, of `driven` and of `by`, got {brief(radii)}")
    r = (positive(radii[0], f"{what}: radii"), positive(radii[1], f"{what}: radii"))
    k, d = positive(stiffness, f"{what}: stiffness"), not_negative(damping, f"{what}: damping")
    return _compound(name, Belt(driven, by, r, k, d), "stretch")


@data
class Gust:
    """The function wind(k) of a gust: a mean velocity plus cosines of time, along the world's axes.

    mean: (3, 1) [m/s].
    amplitude, omega, phase: (3, 24) of the cosines [m/s, rad/s, rad].   seed: (1, 1) from which omega and phase follow.
    """

    mean: ca.SX
    amplitude: ca.SX
    omega: ca.SX
    phase: ca.SX
    seed: ca.SX

    @property
    def ranges(self) -> tuple[Range, ...]:
        """What its numbers must be."""
        return (Range("seed of the gust", self.seed, whole=True),)

    def __call__(self, k: Any) -> ca.SX:
        return self.mean + ca.sum2(self.amplitude * ca.cos(self.omega * k.t + self.phase))

    def __repr__(self) -> str:
        return reprs.words(self, f"mean {reprs.number(self.mean, 'm/s')}")


def gust(
    mean: Any = (0, 0, 0),
    *,
    intensity: Any,
    length: Any = (200.0, 200.0, 50.0),
    speed: float = 10.0,
    seed: int | Scalar = 0,
) -> Gust:
    """Wind with gusts of Dryden's spectrum, as cosines of time, for `drag(..., wind=gust(...))`. [MIL-F-8785C; Shinozuka 1972]

    The power spectral density of each component is S(w) = 2 sigma^2 T / (pi (1 + (T w)^2)), T = length / speed. This is
    Dryden's spectrum of longitudinal gusts, used for all three axes. Each of 24 cosines has an equal part of the power, so the
    variance is sigma^2. The same seed always gives the same wind.

    Args:
        mean: (3,) mean velocity of the wind [m/s], world axes; zero by default.
        intensity: sigma, one number or (3,) [m/s].
        length: length scale of the turbulence, one number or (3,) [m]; (200, 200, 50) by default.
        speed: airspeed at which the machine passes through the turbulence [m/s]; 10 by default.
        seed: of the random phases and frequencies, a whole number from 0; 0 by default. Or a Parameter with whole numbers,
            whose runs have winds of their own: `parameters={"wind": range(4096)}` of a batch, or an axis of a sweep.
    Returns: a function of the mechanism's Kinematics that gives the wind velocity (3, 1) [m/s].
    Raises ModelError: an intensity below zero, a length or speed that is not above zero, a seed that is not a whole number.

    Example:
        >>> import pfaffian as pf
        >>> fall = pf.joint("fall", "free", "world", "ball")
        >>> air = pf.forces.drag("air", "ball", area=0.1, wind=pf.forces.gust((5, 0, 0), intensity=1.5))
        >>> m = pf.mechanism("ball", [pf.body("ball", 0.2, inertia=0.01)], [fall], forces=[air])
        >>> bool(pf.run(m, duration=0.02, backend="numpy").v[-1, 0] > 0)
        True

        Three winds in one call:

        >>> wind = pf.Parameter("wind", 0)
        >>> air = pf.forces.drag("air", "ball", area=0.1, wind=pf.forces.gust((5, 0, 0), intensity=1.5, seed=wind))
        >>> m = pf.mechanism("ball", [pf.body("ball", 0.2, inertia=0.01)], [fall], forces=[air], parameters=[wind])
        >>> len(set(pf.run(m, duration=0.02, parameters={"wind": [0, 1, 2]}, backend="numpy").v[:, -1, 0].values.tolist()))
        3
    """
    if not isinstance(seed, (Parameter, ca.SX)) and (not is_whole(seed) or seed < 0):
        raise ModelError(f"gust: seed must be a whole number from 0 or a Parameter, got {brief(seed)}")
    sigma, L = (_three_floats(x, f"gust: {word}") for word, x in (("intensity", intensity), ("length", length)))
    (V,) = _three_floats(speed, "gust: speed")[:1]
    if (sigma < 0).any():
        raise ModelError(f"gust: intensity must not be below zero, got {brief(intensity)}")
    for word, x, given in (("length", L, length), ("speed", V, speed)):
        if not np.all(x > 0):
            raise ModelError(f"gust: {word} must be above zero, got {brief(given)}")
    # The power up to the frequency w is sigma^2 2/pi atan(T w). It is cut into equal parts, one for each cosine, and the
    # frequency of a cosine is drawn at random within its part.
    random, number = np.random.default_rng(0), scalar(seed, "gust: seed")
    within, phase = (_turned(random.uniform(0, 1, (3, COSINES)), number, random) for _ in range(2))
    quantile = np.pi / 2 / COSINES * (ca.repmat(ca.SX(ca.DM(np.arange(COSINES))).T, 3, 1) + 0.02 + 0.96 * within)
    omega = ca.sin(quantile) / ca.cos(quantile) * ca.repmat(ca.SX(ca.DM(V / L)), 1, COSINES)
    amplitude = np.broadcast_to(sigma[:, None] * np.sqrt(2 / COSINES), (3, COSINES))
    return Gust(vector(mean, 3, "gust: mean"), ca.SX(ca.DM(np.array(amplitude))), omega, 2 * np.pi * phase, number)


def _turned(draws: np.ndarray, number: ca.SX, random: np.random.Generator) -> ca.SX:
    """Numbers from 0 to 1 for each whole number: these draws, each moved on by a random part of one a number."""
    moved = ca.SX(ca.DM(draws)) + number * ca.SX(ca.DM(random.uniform(0, 1, draws.shape)))
    return moved - ca.floor(moved)


def _three_floats(x: Any, what: str) -> np.ndarray:
    """(3,) finite floats, from one number for all three or three numbers."""
    try:
        values = floats(x, what).ravel()
    except ModelError:
        values = np.zeros(0)
    if values.size not in (1, 3):
        raise ModelError(f"{what}: one number or three are needed, got {brief(x)}")
    return np.broadcast_to(values, (3,))
