"""The reduced space of one momentum mu: the shape, its momentum, and mu in the axes of the body. [chhabra14 section 3.3]

    p = M v = [mu_b; p_s],    mu_b = Ad_g^T mu,    mu_b_dot = ad_tau^T mu_b,    p_s_dot = momenta of bodies + weight + forces

with tau the twist of the first joint, v computed from p by articulated bodies, and p_s_dot as in `terms.momentum`. In terms of
p_s the two-form of this space is the sum of those of the shape and of the orbit. In terms of the momentum along the shape
alone, p_s - A^T mu_b, its part on the shape contains <mu_b, curvature of A>: Xi_mu of (3.3.44). Both describe the same motion.
The form with the connection takes about 2.5 times as many operations; tests compare the two.

The orbit of mu is a surface in the space of mu_b, and the state contains mu_b itself as the point on that surface. A chart of
the surface would end where the axis of the momentum passes its pole; mu_b serves every mu at every attitude. These equations
do not depend on the pose, which is integrated with them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import casadi as ca
import numpy as np

from pfaffian.dynamics.motion import Motion
from pfaffian.errors import ModelError
from pfaffian.evaluate.candidates import JointMotion
from pfaffian.evaluate.effects import NONE, Changes, changes_of, changing
from pfaffian.evaluate.reduction_plan import in_words, other_values
from pfaffian.evaluate.symmetry import symmetries
from pfaffian.maths import se3
from pfaffian.maths.reflection import NOTHING
from pfaffian.maths.subgroups import Subgroup
from pfaffian.model.joint import Joint
from pfaffian.model.mechanism import Mechanism, force_unit
from pfaffian.model.number import floats
from pfaffian.states.abstract_system import AbstractSystem, StatePart
from pfaffian.states.variables import normalised
from pfaffian.terms.equations_digest import digest
from pfaffian.terms.momentum import MotionOfMomenta, momenta, moving, transport, weight
from pfaffian.terms.orbit_chart import NO_MOMENTUM, orbit_of
from pfaffian.terms.reduced_terms import (
    adjoint_inverse,
    blocks,
    first_joint,
    group_of,
    in_first_joint,
    indices,
    others,
    to_body,
)
from pfaffian.terms.terms import Terms, symbols
from pfaffian.terms.traced_now import remembered


def reduced_space(m: Mechanism, momentum: Any) -> AbstractSystem:
    """The mechanism at one spatial momentum, with the state [q; orbit; momentum]. Raises ModelError: see `reduce`."""
    first = first_joint(m)
    mu = floats(momentum, f"momentum of joint {first.name!r}")
    if mu.shape != (first.nv,):
        raise ModelError(f"momentum: {first.nv} numbers are needed for joint {first.name!r}, got {mu.size}")
    _check(m, first)
    group = group_of(first)
    assert group is not None
    base = indices(m, (first.name,))
    rest, dimension = others(m, base), len(orbit_of(group, mu).names)
    parts = (StatePart("q", m.q_names, m.q_units), _part(m, "orbit", base if dimension else []), _part(m, "momentum", rest))
    named = (_part(m, "momentum_drift", base), _part(m, "shape_momentum", rest))
    return MomentumOrbit(
        mechanism=m,
        parts=tuple(part for part in parts if part.names),
        named=tuple(part for part in named if part.names),
        about=_about(first, mu, dimension),
        joint=first,
        group=group,
        momentum=tuple(mu.tolist()),
        dimension=dimension,
        base=base,
        rest=rest,
        made_from=digest(m),
    )


def _check(m: Mechanism, first: Joint) -> None:
    """Raise ModelError if the mechanism has constraints, or the momentum of its first joint is not conserved."""
    if m.constraints or first.distribution is not None:
        raise ModelError(
            f"reduce: {m.name!r} has constraints; the space of one momentum is that of an open chain: leave momentum out"
        )
    found = symmetries(m)
    whole = found.basis.shape[1] == first.nv

    def of_first_joint(x: JointMotion) -> bool:
        """Whether a motion is that of the first joint; other motions move parts of the machine."""
        return x.joint == first.name and x.side == "left"

    pushing = [name for name, along in found.driven.items() if any(of_first_joint(x) for x in along)]
    if not whole or pushing:
        broken = "; ".join(f"{x.label}: {', '.join(why)}" for x, why in found.broken if of_first_joint(x))
        why = f"input {pushing[0]!r} changes it" if pushing else broken
        raise ModelError(
            f"reduce: the momentum of joint {first.name!r} of {m.name!r} is not conserved ({why}); leave momentum out: the "
            "state then contains it as it changes"
        )


@final
@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class MomentumOrbit(AbstractSystem):
    """[q; mu_b; p_s], without mu_b where it is the same in the axes of the body.

    joint, group: the first joint and its group.   momentum: (k,) of that joint.   dimension: dimension of its orbit; if 0 the
    momentum is the same in the axes of the body.   base, rest: entries of v of the first joint and of the others.
    made_from: digest of the mechanism.
    """

    joint: Joint
    group: Subgroup
    momentum: tuple[float, ...]
    dimension: int
    base: list[int]
    rest: list[int]
    made_from: str
    name: str = "[q; orbit; momentum]"

    def enter(self, T: Terms) -> ca.SX:
        """[q; mu_b; p_s]."""
        mu_b = to_body(self.joint, T.q[self.mechanism.q_slices[self.joint.name], 0], ca.SX(ca.DM(self.momentum)))
        return ca.vertcat(T.q, mu_b if self.dimension else ca.SX(0, 1), momenta(T)[self.rest])

    def show(self, x: ca.SX, t: ca.SX) -> tuple[ca.SX, ca.SX]:
        """(q, v) of x."""
        q, mu_b, p = self.split(x)
        return q, ca.SX(self.moving(q, t, mu_b, p).v)

    def rate(self, T: Terms, motion: Motion, x: ca.SX) -> ca.SX:
        """[q_dot; mu_b_dot; p_s_dot]."""
        _, mu_b, p = self.split(x)
        S = self.group.S
        turning = (se3.ad(S @ T.v[self.base, 0]) @ S)[list(self.group.axes), :]
        pushed = transport(T, self.moving(T.q, T.t, mu_b, p).h) + weight(T.kinematics) + T.generalised_input
        return ca.vertcat(T.kinematics.q_dot, turning.T @ mu_b if self.dimension else ca.SX(0, 1), pushed[self.rest, 0])

    def project(self, x: ca.SX, t: ca.SX) -> ca.SX:
        """x with mu_b on its orbit.

        The linear part of mu_b gets the length of that of mu, and for motions in space the same moment about its line. Where mu
        has no linear part, the angular part gets the length of that of mu.
        """
        q, mu_b, p = self.split(x)
        if not self.dimension:
            return ca.vertcat(normalised(self.mechanism, q), p)
        n, mu = len(self.group.along), np.array(self.momentum)
        size = np.abs(mu).max()
        f, turn = mu_b[:n, 0], mu_b[n:, 0]
        if n and np.linalg.norm(mu[:n]) > NO_MOMENTUM * size:
            f = f * (float(np.linalg.norm(mu[:n])) / ca.norm_2(f))
            if n == turn.numel():
                turn = turn + f * ((float(mu[:n] @ mu[n:]) - ca.dot(f, turn)) / ca.dot(f, f))
        else:
            turn = turn * (float(np.linalg.norm(mu[n:])) / ca.fmax(ca.norm_2(turn), NOTHING))
        return ca.vertcat(normalised(self.mechanism, q), f, turn, p)

    def signals(self, T: Terms, motion: Motion, x: ca.SX) -> dict[str, ca.SX]:
        """The drift of the momentum, and the momentum along the shape alone."""
        _, mu_b, p = self.split(x)
        drift = in_first_joint(T, self.joint.name) - ca.DM(self.momentum)
        along = {"shape_momentum": p - blocks(T, self.joint.name).A.T @ mu_b} if self.rest else {}
        return {"momentum_drift": drift} | along

    def inertia(self, T: Terms) -> ca.SX:
        """(k, 1) the inertia along each entry of `momentum_drift`."""
        return ca.diag(blocks(T, self.joint.name).K11)

    def check(self, p: np.ndarray) -> None:
        """Raise ModelError if anything changes the momentum at parameters (runs, np) of a run."""
        m, name = self.mechanism, self.joint.name
        for words, at, _ in other_values(m, p):
            pushes = _pushes(m)
            by = [in_words(cause) for cause, x in zip(pushes.causes, changing(pushes, at).T, strict=True) if (x > NONE).any()]
            if by:
                raise ModelError(
                    f"{words}the momentum of joint {name!r} of {m.name!r} is not conserved: {', '.join(by)} changes it, "
                    "although it does not near the defaults; run reduce(m) without momentum"
                )

    def identity(self) -> str:
        """The momentum."""
        return repr(self.momentum)

    def changed(self) -> bool:
        """Whether a function of the mechanism gives another result now."""
        return digest(self.mechanism) != self.made_from

    def split(self, x: ca.SX) -> tuple[ca.SX, ca.SX, ca.SX]:
        """q, the momentum mu_b in the axes of the body and the momenta p_s of the other joints, from a state."""
        nq, k = self.mechanism.nq, len(self.base) if self.dimension else 0
        return x[:nq, 0], x[nq : nq + k, 0] if k else ca.SX(ca.DM(self.momentum)), x[nq + k :, 0]

    def moving(self, q: ca.SX, t: ca.SX, mu_b: ca.SX, p: ca.SX) -> MotionOfMomenta:
        """v and the momenta of the links at a state."""
        m = self.mechanism
        whole = ca.SX(m.nv, 1)
        whole[self.base, 0], whole[self.rest, 0] = mu_b, p
        return moving(Terms(m, q, ca.SX(m.nv, 1), ca.SX(m.nu, 1), t), whole)


def _part(m: Mechanism, name: str, entries: Sequence[int]) -> StatePart:
    """A part of the state with the momenta along entries of v."""
    return StatePart(name, tuple(m.v_names[i] for i in entries), tuple(f"{force_unit(m.v_units[i])} s" for i in entries))


def _about(first: Joint, momentum: np.ndarray, dimension: int) -> tuple[str, ...]:
    """The description of the momentum and its orbit, line by line."""
    return (
        f"the momentum of joint {first.name!r} is {', '.join(f'{x:.6g}' for x in momentum)} in every run: start with it or "
        "run reduce(m)",
        f"seen from the body it moves on an orbit of dimension {dimension}" + ("" if dimension else ", a point"),
    )


@remembered(64)
def _pushes(m: Mechanism) -> Changes:
    """The forces and constraints that may change the spatial momentum of the first joint."""
    T, first = symbols(m), first_joint(m)
    Y = ca.SX(m.nv, first.nv)
    Y[indices(m, (first.name,)), :] = adjoint_inverse(first, T.kinematics.joint(first.name))
    return changes_of(T, Y)
