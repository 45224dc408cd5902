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
from functools import partial
from typing import Any, NamedTuple

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
from pfaffian.states.system import StatePart, System, made
from pfaffian.states.variables import normalise
from pfaffian.terms.equations_digest import digest
from pfaffian.terms.momentum import Moving, momenta, moving, transport, weight
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


def reduced_space(m: Mechanism, momentum: Any) -> System:
    """The mechanism at one spatial momentum, with the state [q; orbit; momentum]. Raises ModelError: see `reduce`."""
    first = first_joint(m)
    mu = floats(momentum, f"momentum of joint {first.name!r}")
    if mu.shape != (first.nv,):
        raise ModelError(f"momentum: {first.nv} numbers are needed for joint {first.name!r}, got {mu.size}")
    return _at_momentum(m, tuple(mu.tolist()))


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


class _Space(NamedTuple):
    """The reduced space of one momentum.

    joint, group: the first joint and its group.   momentum: (k,) of that joint.   dimension: dimension of its orbit; if 0 the
    momentum is the same in the axes of the body.   base, rest: entries of v of the first joint and of the others.
    """

    m: Mechanism
    joint: Joint
    group: Subgroup
    momentum: tuple[float, ...]
    dimension: int
    base: list[int]
    rest: list[int]

    def split(self, x: ca.SX) -> tuple[ca.SX, ca.SX, ca.SX]:
        """q, the momentum mu_b in the axes of the body and the momenta p_s of the other joints, from a state."""
        nq, k = self.m.nq, len(self.base) if self.dimension else 0
        return x[:nq, 0], x[nq : nq + k, 0] if k else ca.SX(ca.DM(self.momentum)), x[nq + k :, 0]


def _space(m: Mechanism, momentum: tuple[float, ...]) -> _Space:
    """The reduced space of one momentum."""
    joint = first_joint(m)
    group = group_of(joint)
    assert group is not None
    base = indices(m, (joint.name,))
    return _Space(m, joint, group, momentum, len(orbit_of(group, np.array(momentum)).names), base, others(m, base))


def _at_momentum(m: Mechanism, momentum: tuple[float, ...]) -> System:
    """The System of the reduced space of one momentum. Raises ModelError: see `_check`."""
    _check(m, first_joint(m))
    r = _space(m, momentum)
    system = System(
        m,
        "[q; orbit; momentum]",
        _parts(r),
        enter=partial(_enter, r),
        show=partial(_show, r),
        rate=partial(_rate, r),
        project=partial(_settled, r),
        signals=partial(_signals, r),
        named=tuple(x for x in (_part(m, "momentum_drift", r.base), _part(m, "shape_momentum", r.rest)) if x.names),
        about=_about(r),
        check=partial(_check_values, m),
        inertia=lambda T: ca.diag(blocks(T, r.joint.name).K11),
    )
    return made(system, f"[q; orbit; momentum] {momentum}", lambda: digest(m))


# -- the state: its parts, and the equations of motion in it ---------------------------------------------------------------


def _parts(r: _Space) -> tuple[StatePart, ...]:
    """The parts of the state that have entries."""
    m = r.m
    named = [
        StatePart("q", m.q_names, m.q_units),
        _part(m, "orbit", r.base if r.dimension else []),
        _part(m, "momentum", r.rest),
    ]
    return tuple(part for part in named if part.names)


def _part(m: Mechanism, name: str, entries: Sequence[int]) -> StatePart:
    """A part of the state with the momenta along entries of v."""
    return StatePart(name, tuple(m.v_names[i] for i in entries), tuple(f"{force_unit(m.v_units[i])} s" for i in entries))


def _enter(r: _Space, T: Terms) -> ca.SX:
    """The state at the Terms of q and v."""
    mu_b = to_body(r.joint, T.q[r.m.q_slices[r.joint.name], 0], ca.SX(ca.DM(r.momentum)))
    return ca.vertcat(T.q, mu_b if r.dimension else ca.SX(0, 1), momenta(T)[r.rest])


def _settled(r: _Space, x: ca.SX, t: ca.SX) -> ca.SX:
    """x with mu_b on its orbit.

    The linear part of mu_b gets the length of that of mu, and for motions in space the same moment about its line. Where mu has
    no linear part, the angular part gets the length of that of mu.
    """
    q, mu_b, p = r.split(x)
    if not r.dimension:
        return ca.vertcat(normalise(r.m, q), p)
    n, mu = len(r.group.along), np.array(r.momentum)
    size = np.abs(mu).max()
    f, turn = mu_b[:n, 0], mu_b[n:, 0]
    if n and np.linalg.norm(mu[:n]) > NO_MOMENTUM * size:
        f = f * (float(np.linalg.norm(mu[:n])) / ca.norm_2(f))
        if n == turn.numel():
            turn = turn + f * ((float(mu[:n] @ mu[n:]) - ca.dot(f, turn)) / ca.dot(f, f))
    else:
        turn = turn * (float(np.linalg.norm(mu[n:])) / ca.fmax(ca.norm_2(turn), NOTHING))
    return ca.vertcat(normalise(r.m, q), f, turn, p)


def _moving(r: _Space, q: ca.SX, t: ca.SX, mu_b: ca.SX, p: ca.SX) -> Moving:
    """v and the momenta of the links at a state."""
    whole = ca.SX(r.m.nv, 1)
    whole[r.base, 0], whole[r.rest, 0] = mu_b, p
    return moving(Terms(r.m, q, ca.SX(r.m.nv, 1), ca.SX(r.m.nu, 1), t), whole)


def _show(r: _Space, x: ca.SX, t: ca.SX) -> tuple[ca.SX, ca.SX]:
    """q and v of a state."""
    q, mu_b, p = r.split(x)
    return q, ca.SX(_moving(r, q, t, mu_b, p).v)


def _rate(r: _Space, T: Terms, motion: Motion, x: ca.SX) -> ca.SX:
    """The rate of a state."""
    _, mu_b, p = r.split(x)
    S = r.group.S
    turning = (se3.ad(S @ T.v[r.base, 0]) @ S)[list(r.group.axes), :]
    pushed = transport(T, _moving(r, T.q, T.t, mu_b, p).h) + weight(T.kinematics) + T.generalised_input
    return ca.vertcat(T.kinematics.q_dot, turning.T @ mu_b if r.dimension else ca.SX(0, 1), pushed[r.rest, 0])


def _signals(r: _Space, T: Terms, motion: Motion, x: ca.SX) -> dict[str, ca.SX]:
    """The signals beyond the state: the drift of the momentum, and the momentum along the shape alone."""
    _, mu_b, p = r.split(x)
    drift = in_first_joint(T, r.joint.name) - ca.DM(r.momentum)
    along = {"shape_momentum": p - blocks(T, r.joint.name).A.T @ mu_b} if r.rest else {}
    return {"momentum_drift": drift} | along


# -- the description of the state, and where it is not valid ------------------------------------------------------------


def _about(r: _Space) -> tuple[str, ...]:
    """The description of the momentum and its orbit, line by line."""
    return (
        f"the momentum of joint {r.joint.name!r} is {', '.join(f'{x:.6g}' for x in r.momentum)} in every run: start with it or "
        "run reduce(m)",
        f"seen from the body it moves on an orbit of dimension {r.dimension}" + ("" if r.dimension else ", a point"),
    )


def _check_values(m: Mechanism, p: np.ndarray) -> None:
    """Raise ModelError if anything changes the momentum at parameters (runs, np) of a run."""
    first = first_joint(m)
    for words, at, _ in other_values(m, p):
        pushes = _pushes(m)
        by = [in_words(cause) for cause, x in zip(pushes.causes, changing(pushes, at).T, strict=True) if (x > NONE).any()]
        if by:
            raise ModelError(
                f"{words}the momentum of joint {first.name!r} of {m.name!r} is not conserved: {', '.join(by)} changes it, "
                "although it does not near the defaults; run reduce(m) without momentum"
            )


@remembered(64)
def _pushes(m: Mechanism) -> Changes:
    """The forces and constraints that may change the spatial momentum of the first joint."""
    T, first = symbols(m), first_joint(m)
    Y = ca.SX(m.nv, first.nv)
    Y[indices(m, (first.name,)), :] = adjoint_inverse(first, T.kinematics.joint(first.name))
    return changes_of(T, Y)
