"""Systems that integrate a mechanism in another state than [q; v]: with momenta, or with velocities that the caller chooses."""

from __future__ import annotations

from contextlib import suppress
from typing import NamedTuple

import casadi as ca

from pfaffian.dynamics.motion import RANK_TOLERANCE, Motion
from pfaffian.errors import ModelError, brief
from pfaffian.maths.linear import orthogonalise, smallest
from pfaffian.model.coordinates import Velocities
from pfaffian.model.joint import Joint
from pfaffian.model.mechanism import Mechanism, as_mechanism
from pfaffian.states.system import StatePart, System, made
from pfaffian.states.variables import normalise, q_dot
from pfaffian.terms.kinematics import Kinematics
from pfaffian.terms.momentum import Moving, momenta, moving, transport, weight
from pfaffian.terms.reduced_terms import Translation, first_joint, in_moving_frame, translation
from pfaffian.terms.terms import Terms, symbols


def hamiltonian(m: Mechanism) -> System:
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
    momentum, state = StatePart("momentum", m.v_names, units), _Momenta(m, _sliding(m))
    system = System(
        m,
        "[q; p]",
        _parts(m, momentum._replace(name="centred_momentum") if state.first else momentum),
        enter=state.enter,
        show=state.show,
        rate=state.rate,
        signals=(lambda T, motion, x: {"momentum": momenta(T)}) if state.first else None,
        named=(momentum,) if state.first else (),
        project=lambda x, t: ca.vertcat(normalise(m, x[: m.nq, 0]), x[m.nq :, 0]),
    )
    return made(system, "[q; p]")


class _Momenta(NamedTuple):
    """The functions of Hamilton's state.   first: joint whose slides move the frame of the mass centre, if there is one."""

    m: Mechanism
    first: Joint | None

    def frame(self, k: Kinematics) -> Translation | None:
        """The frame that moves with the mass centre; None without a `first` joint."""
        return translation(k, self.first) if self.first else None

    def enter(self, T: Terms) -> ca.SX:
        """x of (q, v), see `System`."""
        centre = self.frame(T.kinematics)
        p = ca.SX(momenta(in_moving_frame(T, centre)))
        if centre:
            p[centre.entries, 0] = centre.R @ momenta(T)[centre.entries, 0]
        return ca.vertcat(T.q, p)

    def show(self, x: ca.SX, t: ca.SX) -> tuple[ca.SX, ca.SX]:
        """(q, v) of x, see `System`."""
        T = self.at(x[: self.m.nq, 0], ca.SX(self.m.nv, 1), t)
        v, centre = ca.SX(self.relative_motion(T, x).v), self.frame(T.kinematics)
        if centre:
            v[centre.entries, 0] += centre.R.T @ x[self.m.nq :, 0][centre.entries, 0] / centre.mass
        return T.q, v

    def rate(self, T: Terms, motion: Motion, x: ca.SX) -> ca.SX:
        """x_dot, see `System`."""
        pushed, centre, inside = T.generalised_input + motion.reaction, self.frame(T.kinematics), self.relative_motion(T, x)
        if centre is None:
            return ca.vertcat(q_dot(T.kinematics), transport(T, inside.h) + weight(T.kinematics) + pushed)
        along, still = centre.along(pushed), self.at(T.q, inside.v, T.t)
        p_dot = transport(still, inside.h) + pushed + weight(T.kinematics, centre.effective_gravity(self.m.gravity, along))
        p_dot[centre.entries, 0] = centre.rate(self.m.gravity, along)
        return ca.vertcat(q_dot(T.kinematics), p_dot)

    def relative_motion(self, T: Terms, x: ca.SX) -> Moving:
        """The motion relative to the mass centre, by the momenta in x.   T: Terms at the q of x and any v."""
        p, centre = ca.SX(x[self.m.nq :, 0]), self.frame(T.kinematics)
        if centre:
            p[centre.entries, 0] = 0
        return moving(T, p)

    def at(self, q: ca.SX, v: ca.SX, t: ca.SX) -> Terms:
        """The Terms at a state without inputs."""
        return Terms(self.m, q, v, ca.SX(self.m.nu, 1), t)


def _sliding(m: Mechanism) -> Joint | None:
    """The first joint, if it slides, carries all bodies, and determines no other joint's pose; else None."""
    with suppress(ModelError):
        first = first_joint(m)
        if all(j.pose is None and not (j.mimic and first.name in j.mimic.joints) for j in m.joints):
            return first if translation(symbols(m).kinematics, first) else None
    return None


def chosen_velocities(m: Mechanism, choice: Velocities) -> System:
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
    other = m.with_(velocities=choice)

    def matrix(q: ca.SX, t: ca.SX) -> ca.SX:
        return Kinematics(other, q, ca.SX(m.nv, 1), t).maps[2]

    def solve(T: ca.SX, b: ca.SX) -> ca.SX:
        return smallest(orthogonalise(T, ca.SX(m.nv, 0), RANK_TOLERANCE), b)

    def show(x: ca.SX, t: ca.SX) -> tuple[ca.SX, ca.SX]:
        return x[: m.nq, 0], matrix(x[: m.nq, 0], t) @ x[m.nq :, 0]

    def rate(terms: Terms, motion: Motion, x: ca.SX) -> ca.SX:
        T, rate_of_q, y = matrix(terms.q, terms.t), q_dot(terms.kinematics), ca.SX.sym("y", m.nv)
        turning = ca.substitute(ca.densify(ca.jtimes(T @ y, terms.q, rate_of_q)), y, x[m.nq :, 0])
        return ca.vertcat(rate_of_q, solve(T, motion.v_dot - turning))

    return System(
        m,
        "[q; y]",
        _parts(m, StatePart("y", choice.names, choice.units)),
        enter=lambda terms: ca.vertcat(terms.q, solve(matrix(terms.q, terms.t), terms.v)),
        show=show,
        rate=rate,
        project=lambda x, t: ca.vertcat(normalise(m, x[: m.nq, 0]), x[m.nq :, 0]),
    )


def _parts(m: Mechanism, part: StatePart) -> tuple[StatePart, ...]:
    """The parts of a state [q; part]; none for a mechanism without coordinates."""
    return (StatePart("q", m.q_names, m.q_units), part) if m.nq else ()
