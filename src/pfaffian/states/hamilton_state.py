"""Hamilton's state: the coordinates and their momenta."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import final

import casadi as ca

from pfaffian.dynamics.motion import Motion
from pfaffian.errors import ModelError
from pfaffian.model.joint import Joint
from pfaffian.model.mechanism import Mechanism, as_mechanism
from pfaffian.states.abstract_system import AbstractSystem, StatePart
from pfaffian.states.variables import normalised, q_dot
from pfaffian.terms.kinematics import Kinematics
from pfaffian.terms.momentum import MotionOfMomenta, momenta, moving, transport, weight
from pfaffian.terms.reduced_terms import Translation, first_joint, in_moving_frame, translation
from pfaffian.terms.terms import Terms, symbols


def hamiltonian(m: Mechanism) -> AbstractSystem:
    """The mechanism in Hamilton's state [q; p], p = M(q) v the momenta that belong to v. [konz25 (2.37)]

        q_dot = K v,   v = M^-1 p
        p_dot_i + gamma_ij^k v^j p_k + d_i H = f_i + (B u)_i + (A^T lambda)_i

    with H(q, p) = p^T M^-1 p / 2 + V, d_i = K_i^a d/dq^a, gamma the commutation coefficients of the d_i, and f the forces
    without potential; p_dot is summed over the bodies. Neither M_dot nor the bias force occurs in it, so that it is a second
    formulation of every mechanism; the reaction A^T lambda is that of the scheme's formulation.

    Where the first joint slides and carries all bodies, as a satellite's does, the state is [q; `centred_momentum`]:
    the total momentum along the slides, in the axes of the joint's parent, and the other momenta in a frame that moves with
    the mass centre. Then neither high speed nor a large distance costs accuracy.

    Args:
        m: the mechanism.
    Returns:
        A System that `run` takes in place of the mechanism; `momentum` in the result holds p [N s, N m s].
    Raises ModelError: m is not a mechanism.

    Example:
        A box of 2 kg that starts at 3 m/s has a momentum of 6 N s:

        >>> import pfaffian as pf
        >>> slide = pf.joint("x", "prismatic", "world", "box", axis=(1, 0, 0))
        >>> m = pf.mechanism("block", [pf.body("box", mass=2.0)], [slide])
        >>> result = pf.run(pf.reduction.hamiltonian(m), v={"x": 3.0}, duration=0.1, step=0.01, backend="numpy")
        >>> result["momentum"].values[-1].round(9)
        array([6.])
    """
    as_mechanism(m)
    units = tuple("N s" if unit == "m/s" else "N m s" for unit in m.v_units)
    momentum, first = StatePart("momentum", m.v_names, units), _sliding(m)
    parts = (StatePart("q", m.q_names, m.q_units), momentum._replace(name="centred_momentum") if first else momentum)
    return HamiltonState(mechanism=m, parts=parts if m.nq else (), named=(momentum,) if first else (), first=first)


@final
@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class HamiltonState(AbstractSystem):
    """[q; p].   first: joint whose slides move the frame of the mass centre, if there is one."""

    first: Joint | None
    name: str = "[q; p]"

    def enter(self, T: Terms) -> ca.SX:
        """[q; p]."""
        centre = self.frame(T.kinematics)
        p = ca.SX(momenta(in_moving_frame(T, centre)))
        if centre:
            p[centre.entries, 0] = centre.R @ momenta(T)[centre.entries, 0]
        return ca.vertcat(T.q, p)

    def show(self, x: ca.SX, t: ca.SX) -> tuple[ca.SX, ca.SX]:
        """(q, v) of x."""
        T = self.terms(x[: self.mechanism.nq, 0], ca.SX(self.mechanism.nv, 1), t)
        v, centre = ca.SX(self.relative_motion(T, x).v), self.frame(T.kinematics)
        if centre:
            v[centre.entries, 0] += centre.R.T @ x[self.mechanism.nq :, 0][centre.entries, 0] / centre.mass
        return T.q, v

    def rate(self, T: Terms, motion: Motion, x: ca.SX) -> ca.SX:
        """[q_dot; p_dot]."""
        pushed, centre, inside = T.generalised_input + motion.reaction, self.frame(T.kinematics), self.relative_motion(T, x)
        if centre is None:
            return ca.vertcat(q_dot(T.kinematics), transport(T, inside.h) + weight(T.kinematics) + pushed)
        along, still = centre.along(pushed), self.terms(T.q, inside.v, T.t)
        p_dot = (
            transport(still, inside.h) + pushed + weight(T.kinematics, centre.effective_gravity(self.mechanism.gravity, along))
        )
        p_dot[centre.entries, 0] = centre.rate(self.mechanism.gravity, along)
        return ca.vertcat(q_dot(T.kinematics), p_dot)

    def project(self, x: ca.SX, t: ca.SX) -> ca.SX:
        """x with quaternions of unit length."""
        nq = self.mechanism.nq
        return ca.vertcat(normalised(self.mechanism, x[:nq, 0]), x[nq:, 0])

    def signals(self, T: Terms, motion: Motion, x: ca.SX) -> dict[str, ca.SX]:
        """The momenta as they are, where the state contains those about the mass centre."""
        return {"momentum": momenta(T)} if self.first else {}

    def identity(self) -> str:
        """The moving frame."""
        return self.first.name if self.first else ""

    def frame(self, k: Kinematics) -> Translation | None:
        """The frame that moves with the mass centre; None without a `first` joint."""
        return translation(k, self.first) if self.first else None

    def relative_motion(self, T: Terms, x: ca.SX) -> MotionOfMomenta:
        """The motion relative to the mass centre, by the momenta in x.   T: Terms at the q of x and any v."""
        p, centre = ca.SX(x[self.mechanism.nq :, 0]), self.frame(T.kinematics)
        if centre:
            p[centre.entries, 0] = 0
        return moving(T, p)

    def terms(self, q: ca.SX, v: ca.SX, t: ca.SX) -> Terms:
        """The Terms at a state without inputs."""
        return Terms(self.mechanism, q, v, ca.SX(self.mechanism.nu, 1), t)


def _sliding(m: Mechanism) -> Joint | None:
    """The first joint, if it slides, carries all bodies, and determines no other joint's pose; else None."""
    with suppress(ModelError):
        first = first_joint(m)
        if all(j.pose is None and not (j.mimic and first.name in j.mimic.joints) for j in m.joints):
            return first if translation(symbols(m).kinematics, first) else None
    return None
