"""The state [q; y] with velocities y that the user chooses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import casadi as ca

from pfaffian.dynamics.motion import RANK_TOLERANCE, Motion
from pfaffian.errors import ModelError, brief
from pfaffian.maths.linear import orthogonalise, smallest
from pfaffian.model.coordinates import Velocities
from pfaffian.model.mechanism import Mechanism, as_mechanism
from pfaffian.states.abstract_system import AbstractSystem, StatePart
from pfaffian.states.variables import normalised, q_dot
from pfaffian.terms.kinematics import Kinematics
from pfaffian.terms.terms import Terms


def chosen_velocities(m: Mechanism, choice: Velocities) -> AbstractSystem:
    """The mechanism in the state [q; y] with velocities y of the caller's choice, v = T(q) y.

        y_dot = T^-1 (v_dot - T_dot y)

    The error of a step is smallest in velocities that change little along the motion. Starts and results remain in q and v, and
    `y` in the result contains the chosen velocities. To choose v itself, use `mechanism(..., velocities=choice)`.

    Args:
        m: the mechanism, without a choice of velocities.
        choice: T and the names of y, made by `velocities(T, names)`.
    Returns:
        A System that `run` takes in place of the mechanism.
    Raises ModelError: m is not a mechanism or already has a choice; `choice` was not made by `velocities`.

    Example:
        A speed in km/h, v = y / 3.6:

        >>> import pfaffian as pf
        >>> slide = pf.joint("x", "prismatic", "world", "box", axis=(1, 0, 0))
        >>> m = pf.mechanism("block", [pf.body("box", mass=2.0)], [slide])
        >>> system = pf.reduction.chosen_velocities(m, pf.velocities(lambda k: [[1 / 3.6]], ["speed"], "km/h"))
        >>> result = pf.run(system, v={"x": 10.0}, duration=0.1, step=0.01, backend="numpy")
        >>> result["y"].values[-1].round(9)
        array([36.])
    """
    as_mechanism(m)
    if not isinstance(choice, Velocities):
        raise ModelError(f"chosen_velocities: a choice made by pf.velocities(T, names) is needed, got {brief(choice)}")
    if m.velocities is not None:
        raise ModelError(f"chosen_velocities: {m.name!r} already has a choice of velocities; give the mechanism without it")
    parts = (StatePart("q", m.q_names, m.q_units), StatePart("y", choice.names, choice.units))
    return ChosenVelocities(mechanism=m, parts=parts if m.nq else (), chosen=m.with_(velocities=choice))


@final
@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ChosenVelocities(AbstractSystem):
    """[q; y].   chosen: the mechanism with y as its velocities."""

    chosen: Mechanism
    name: str = "[q; y]"

    def matrix(self, q: ca.SX, t: ca.SX) -> ca.SX:
        """T of v = T(q) y."""
        return Kinematics(self.chosen, q, ca.SX(self.mechanism.nv, 1), t).maps[2]

    def enter(self, T: Terms) -> ca.SX:
        """[q; y]."""
        return ca.vertcat(T.q, _solved(self.matrix(T.q, T.t), T.v))

    def show(self, x: ca.SX, t: ca.SX) -> tuple[ca.SX, ca.SX]:
        """(q, v) of x."""
        q, y = self.split(x)
        return q, self.matrix(q, t) @ y

    def rate(self, T: Terms, motion: Motion, x: ca.SX) -> ca.SX:
        """[q_dot; y_dot]."""
        T_q, rate_of_q, y = self.matrix(T.q, T.t), q_dot(T.kinematics), ca.SX.sym("y", self.mechanism.nv)
        turning = ca.substitute(ca.densify(ca.jtimes(T_q @ y, T.q, rate_of_q)), y, self.split(x)[1])
        return ca.vertcat(rate_of_q, _solved(T_q, motion.v_dot - turning))

    def project(self, x: ca.SX, t: ca.SX) -> ca.SX:
        """x with quaternions of unit length."""
        q, y = self.split(x)
        return ca.vertcat(normalised(self.mechanism, q), y)

    def split(self, x: ca.SX) -> tuple[ca.SX, ca.SX]:
        """(q, y) of x."""
        return x[: self.mechanism.nq, 0], x[self.mechanism.nq :, 0]


def _solved(T: ca.SX, b: ca.SX) -> ca.SX:
    """T^-1 b."""
    return smallest(orthogonalise(T, ca.SX(T.shape[0], 0), RANK_TOLERANCE), b)
