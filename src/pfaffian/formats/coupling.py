"""Functions of the kinematics that files describe by names and numbers: lengths, couplings, weights that are held up."""

from __future__ import annotations

from typing import Any, Protocol

import casadi as ca

from pfaffian.model.data import data


class Length(Protocol):
    """A length or an angle as a function of the kinematics, with its rate."""

    def length(self, k: Any) -> ca.SX: ...

    def rate(self, k: Any) -> ca.SX: ...


@data
class Sum:
    """The length of a fixed tendon, or a coordinate: sum of coef q.   coefs: (n, 1)."""

    joints: tuple[str, ...]
    coefs: ca.SX

    def length(self, k: Any) -> ca.SX:
        return ca.dot(self.coefs, ca.vertcat(*[k.joint(n) for n in self.joints]))

    def rate(self, k: Any) -> ca.SX:
        return ca.dot(self.coefs, ca.vertcat(*[k.joint_rate(n) for n in self.joints]))


@data
class Coupling:
    """phi(k) = (a - a0) - sum of coef (b - b0)^n, a and b being lengths.

    coefs: (5, 1).   starts: (2, 1) a0 and b0.   b: None where a keeps its place.
    """

    a: Length
    b: Length | None
    coefs: ca.SX
    starts: ca.SX

    def __repr__(self) -> str:
        return "<Coupling>"

    def __call__(self, k: Any) -> ca.SX:
        x = ca.SX(0) if self.b is None else self.b.length(k) - self.starts[1]
        others, power = ca.SX(0), ca.SX(1)
        for n in range(5):
            others += self.coefs[n] * power
            power = power * x
        return self.a.length(k) - self.starts[0] - others


def one(name: str) -> Sum:
    """The coordinate of a joint as a length."""
    return Sum((name,), ca.SX.ones(1, 1))


@data
class Lifted:
    """V(k) of a weight that is held up: factor m g . x of the mass centre."""

    body: str
    com: ca.SX
    force: ca.SX

    @property
    def bodies(self) -> tuple[str]:
        return (self.body,)

    def __repr__(self) -> str:
        return f"<Lifted: {self.body!r}>"

    def __call__(self, k: Any) -> ca.SX:
        return -ca.dot(self.force, k.position(self.body, self.com))
