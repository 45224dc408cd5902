"""Functions of the kinematics that files describe by names and numbers: lengths, couplings, weights that are held up."""

from __future__ import annotations

from typing import Any, Protocol

import casadi as ca

from pfaffian.maths import so3
from pfaffian.model.data import data


class Length(Protocol):
    """A length or an angle as a function of the kinematics, with its rate."""

    def length(self, k: Any) -> ca.SX: ...

    def rate(self, k: Any) -> ca.SX: ...


@data
class JointSum:
    """The length of a fixed tendon, or a coordinate: sum of coef q.   coefs: (n, 1)."""

    joints: tuple[str, ...]
    coefs: ca.SX

    def length(self, k: Any) -> ca.SX:
        return ca.dot(self.coefs, ca.vertcat(*[k.joint(n) for n in self.joints]))

    def rate(self, k: Any) -> ca.SX:
        return ca.dot(self.coefs, ca.vertcat(*[k.joint_rate(n) for n in self.joints]))


@data
class Path:
    """The length of a tendon through points, sum of |b - a| / divisor.

    bodies: of the points.   points: (3, n) in them.   spans: numbers of the points a and b.   divisors: (spans, 1).
    """

    bodies: tuple[str, ...]
    points: ca.SX
    spans: tuple[tuple[int, int], ...]
    divisors: ca.SX

    def length(self, k: Any) -> ca.SX:
        return sum((ca.norm_2(d) / self.divisors[i] for i, (d, _) in enumerate(self._spans(k))), ca.SX(0))

    def rate(self, k: Any) -> ca.SX:
        return sum((ca.dot(d, s) / ca.norm_2(d) / self.divisors[i] for i, (d, s) in enumerate(self._spans(k))), ca.SX(0))

    def _spans(self, k: Any) -> list[tuple[ca.SX, ca.SX]]:
        """Of each span b - a, and its rate."""
        x = [k.position(b, self.points[:, i]) for i, b in enumerate(self.bodies)]
        v = [k.velocity(b, self.points[:, i]) for i, b in enumerate(self.bodies)]
        return [(x[b] - x[a], v[b] - v[a]) for a, b in self.spans]


@data
class LengthCoupling:
    """phi(k) = (a - a0) - sum of coef (b - b0)^n, a and b being lengths.

    coefs: (5, 1).   starts: (2, 1) a0 and b0.   b: None where a keeps its place.
    """

    a: Length
    b: Length | None
    coefs: ca.SX
    starts: ca.SX

    def __repr__(self) -> str:
        return "<LengthCoupling>"

    def __call__(self, k: Any) -> ca.SX:
        x = ca.SX(0) if self.b is None else self.b.length(k) - self.starts[1]
        others, power = ca.SX(0), ca.SX(1)
        for n in range(5):
            others += self.coefs[n] * power
            power = power * x
        return self.a.length(k) - self.starts[0] - others


def one(name: str) -> JointSum:
    """The coordinate of a joint as a length."""
    return JointSum((name,), ca.SX.ones(1, 1))


@data
class GravityCompensation:
    """V(k) of a weight that is held up: factor m g . x of the mass centre."""

    body: str
    com: ca.SX
    force: ca.SX

    @property
    def bodies(self) -> tuple[str]:
        return (self.body,)

    def __repr__(self) -> str:
        return f"<GravityCompensation: {self.body!r}>"

    def __call__(self, k: Any) -> ca.SX:
        return -ca.dot(self.force, k.position(self.body, self.com))


# -- functions of a length --------------------------------------------------------------------------------------------


@data
class LengthSpring:
    """V(k) of a spring on a length, free from `low` to `high`: k x^2 / 2 beyond them."""

    along: Length
    stiffness: ca.SX
    low: ca.SX
    high: ca.SX

    def __repr__(self) -> str:
        return "<LengthSpring>"

    def __call__(self, k: Any) -> ca.SX:
        x = self.along.length(k)
        if (self.low.is_zero() and self.high.is_zero()) or ca.is_equal(self.low, self.high):
            return self.stiffness * (x - self.low) ** 2 / 2
        return self.stiffness * (ca.fmax(x - self.high, 0) ** 2 + ca.fmax(self.low - x, 0) ** 2) / 2


@data
class LengthDamper:
    """R(k) of a damper on a length, d rate^2 / 2."""

    along: Length
    damping: ca.SX

    def __repr__(self) -> str:
        return "<LengthDamper>"

    def __call__(self, k: Any) -> ca.SX:
        return self.damping * self.along.rate(k) ** 2 / 2


@data
class ActuatorBias:
    """V(k) of the part of an actuator's force that is affine in its length: -(constant x + slope x^2 / 2)."""

    along: Length
    constant: ca.SX
    slope: ca.SX

    def __repr__(self) -> str:
        return "<ActuatorBias>"

    def __call__(self, k: Any) -> ca.SX:
        x = self.along.length(k)
        return -(self.constant * x + self.slope * x**2 / 2)


@data
class LengthInertia:
    """T(k) of an inertia along a length, a rate^2 / 2."""

    along: Length
    inertia: ca.SX

    def __repr__(self) -> str:
        return "<LengthInertia>"

    def __call__(self, k: Any) -> ca.SX:
        return self.inertia * self.along.rate(k) ** 2 / 2


@data
class TurnSpring:
    """V(k) of a spring on the orientation of a joint, k angle^2 / 2 from rest; on a free joint also on its place.

    rest: quaternion (4, 1), or place and quaternion (7, 1).
    """

    joint: str
    stiffness: ca.SX
    rest: ca.SX

    def __repr__(self) -> str:
        return f"<TurnSpring: {self.joint!r}>"

    def __call__(self, k: Any) -> ca.SX:
        q = k.joint(self.joint)
        turn = so3.quat_log(so3.quat_mul(so3.quat_conj(self.rest[-4:]), q[-4:]))
        away = q[:-4] - self.rest[:-4]
        return self.stiffness * (ca.sumsqr(turn) + ca.sumsqr(away)) / 2


@data
class FreeArmature:
    """T(k) of an armature on a free joint, a (v^2 + w^2) / 2."""

    joint: str
    inertia: ca.SX

    def __repr__(self) -> str:
        return f"<FreeArmature: {self.joint!r}>"

    def __call__(self, k: Any) -> ca.SX:
        return ca.dot(self.inertia, k.joint_rate(self.joint) ** 2) / 2
