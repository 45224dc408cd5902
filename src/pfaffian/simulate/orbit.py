"""The reduced space of one momentum mu: the shape, its momentum, and where mu_b is on its orbit. [chhabra14 section 3.3]

    H = p^T M^^-1 p / 2 + mu_b^T K11^-1 mu_b / 2 + V,    mu_b = Ad_chi^T mu at the coordinates o of the orbit,
    theta = <mu_b, chi^-1 d chi> + <mu_b, A(q) y>,       Y = d theta over (o, shape),

    Y11 o_dot = d_o H - Y12 y,    p_i_dot = -d_i H + Y21 o_dot + Y22 y - gamma_ij^k y^j p_k + forces,    y = M^^-1 p

[(3.3.44); Y is Xi_mu, and the connection of the isotropy group is not in it]. It is the second formulation of the reduction, by
curvature instead of by momenta of bodies. Nothing in it depends on the pose, which is integrated beside it by the twist
tau = K11^-1 mu_b - A y.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from pfaffian.dynamics.motion import Motion
from pfaffian.errors import ModelError
from pfaffian.evaluate.reduction_plan import Changes, changes_of, changing, other_values
from pfaffian.evaluate.symmetry import symmetry
from pfaffian.maths.linear import orthogonalise, smallest, solve_symmetric
from pfaffian.maths.subgroups import Subgroup
from pfaffian.model.joint import Joint
from pfaffian.model.mechanism import Mechanism, force_unit
from pfaffian.model.number import floats
from pfaffian.simulate.system import StatePart, System, made
from pfaffian.simulate.variables import normalise
from pfaffian.terms.connection import commutation_coefficients, directional_derivative
from pfaffian.terms.digest import digest
from pfaffian.terms.momentum import rotors, weight
from pfaffian.terms.orbit import Orbit, body_momentum, orbit_of, two_form
from pfaffian.terms.present import remembered
from pfaffian.terms.reduction import adjoint_inverse, blocks, first_joint, group_of, in_first_joint, indices, others
from pfaffian.terms.terms import Terms, symbols

RANK = 1e-12


def reduced_space(m: Mechanism, momentum: Any) -> System:
    """The mechanism at one spatial momentum, state [q; orbit; shape_momentum]. Raises ModelError: see `reduce`."""
    first = first_joint(m)
    mu = floats(momentum, f"momentum of joint {first.name!r}")
    if mu.shape != (first.nv,):
        raise ModelError(f"momentum: {first.nv} numbers are needed for joint {first.name!r}, got {mu.size}")
    return _at_momentum(m, tuple(mu.tolist()))


def _check(m: Mechanism, first: Joint) -> None:
    if m.constraints or first.distribution is not None:
        raise ModelError(
            f"reduce: {m.name!r} has constraints; the space of one momentum is that of an open chain: leave momentum out"
        )
    found = symmetry(m)
    whole = found.basis.shape[1] == first.nv
    pushing = [name for name, along in found.driven.items() if any(x.joint == first.name for x in along)]
    if not whole or pushing:
        broken = "; ".join(f"{x.label}: {', '.join(why)}" for x, why in found.broken if x.joint == first.name)
        why = f"input {pushing[0]!r} changes it" if pushing else broken
        raise ModelError(
            f"reduce: the momentum of joint {first.name!r} of {m.name!r} is not conserved ({why}); leave momentum out: the "
            "state then holds it as it changes"
        )


class _Space(NamedTuple):
    """The reduced space of one momentum.

    joint, group: the first joint and its group.   momentum: (k,) of that joint.   orbit: the chart of the momentum's orbit.
    base, rest: entries of v of the first joint and of the others.
    """

    m: Mechanism
    joint: Joint
    group: Subgroup
    momentum: tuple[float, ...]
    orbit: Orbit
    base: list[int]
    rest: list[int]

    @property
    def dimension(self) -> int:
        """Of the orbit."""
        return len(self.orbit.names)

    def split(self, x: ca.SX) -> tuple[ca.SX, ca.SX, ca.SX]:
        """q, the coordinates o of the orbit and the momentum p of the shape at a state."""
        nq, d = self.m.nq, self.dimension
        return x[:nq, 0], x[nq : nq + d, 0], x[nq + d :, 0]

    def terms(self, q: ca.SX, t: ca.SX) -> Terms:
        return Terms(self.m, q, ca.SX(self.m.nv, 1), ca.SX(self.m.nu, 1), t)


def _space(m: Mechanism, momentum: tuple[float, ...]) -> _Space:
    joint = first_joint(m)
    group = group_of(joint)
    assert group is not None
    base = indices(m, (joint.name,))
    return _Space(m, joint, group, momentum, orbit_of(group, np.array(momentum)), base, others(m, base))


def _at_momentum(m: Mechanism, momentum: tuple[float, ...]) -> System:
    _check(m, first_joint(m))
    r = _space(m, momentum)
    system = System(
        m,
        "[q; orbit; shape momentum]",
        _parts(r),
        enter=partial(_enter, r),
        show=partial(_show, r),
        rate=partial(_rate, r),
        project=lambda x, t: ca.vertcat(normalise(m, x[: m.nq, 0]), x[m.nq :, 0]),
        signals=lambda T, motion, x: {"momentum_drift": in_first_joint(T, r.joint.name) - ca.DM(momentum)},
        named=(StatePart("momentum_drift", tuple(m.v_names[i] for i in r.base), _units(m, r.base)),),
        about=_about(r),
        limit=_limit(r),
        check=partial(_check_values, m),
        inertia=lambda T: ca.diag(blocks(T, r.joint.name).K11),
    )
    return made(system, f"[q; orbit; shape momentum] {momentum}", lambda: digest(m))


# -- the state: its parts, and the equations of motion in it ---------------------------------------------------------------


def _parts(r: _Space) -> tuple[StatePart, ...]:
    m = r.m
    named = [
        StatePart("q", m.q_names, m.q_units),
        StatePart("orbit", r.orbit.names, r.orbit.units),
        StatePart("shape_momentum", tuple(m.v_names[i] for i in r.rest), _units(m, r.rest)),
    ]
    return tuple(part for part in named if part.names)


def _units(m: Mechanism, entries: Sequence[int]) -> tuple[str, ...]:
    """Units of momenta along entries of v."""
    return tuple(f"{force_unit(m.v_units[i])} s" for i in entries)


def _enter(r: _Space, T: Terms) -> ca.SX:
    o = r.orbit.coordinates(*r.group.motion(T.q[r.m.q_slices[r.joint.name], 0]))
    return ca.vertcat(T.q, o, blocks(T, r.joint.name).shape @ T.v[r.rest])


def _show(r: _Space, x: ca.SX, t: ca.SX) -> tuple[ca.SX, ca.SX]:
    q, o, p = r.split(x)
    K = blocks(r.terms(q, t), r.joint.name)
    y = solve_symmetric(K.shape, p)
    v = ca.SX(r.m.nv, 1)
    v[r.base, 0], v[r.rest, 0] = solve_symmetric(K.K11, body_momentum(r.group, r.orbit, o)) - K.A @ y, y
    return q, v


def _rate(r: _Space, T: Terms, motion: Motion, x: ca.SX) -> ca.SX:
    at_symbols = [ca.SX.sym("q", r.m.nq), ca.SX.sym("o", r.dimension), ca.SX.sym("p", len(r.rest))]
    moving = ca.substitute(_flow(r, *at_symbols), at_symbols, list(r.split(x)))
    return ca.vertcat(T.kinematics.q_dot, moving[0], moving[1] + (weight(T.kinematics) + T.generalised_input)[r.rest])


def _flow(r: _Space, q: ca.SX, o: ca.SX, p: ca.SX) -> list[ca.SX]:
    """o_dot and p_dot without forces, at symbols."""
    T, d, rest = r.terms(q, ca.SX(0)), r.dimension, r.rest
    k, K, mu_b = T.kinematics, blocks(T, r.joint.name), body_momentum(r.group, r.orbit, o)
    y = solve_symmetric(K.shape, p)
    H = (ca.dot(p, y) + ca.dot(mu_b, solve_symmetric(K.K11, mu_b))) / 2
    gamma = [g[rest, rest] for i, g in enumerate(commutation_coefficients(k)) if i in rest]
    # The axes of rotors that joints drive do not turn with them, see `terms.momentum`. Where gamma is not zero each
    # velocity is the rate of one link.
    spun = k.along_v(rotors(k))[rest]
    turned = ca.vertcat(ca.SX(0, 1), *[y.T @ g @ (p - spun * y) for g in gamma])
    Y = two_form(T, r.joint.name, r.orbit, o)
    slope = ca.gradient(H, o) - Y[:d, d:] @ y
    o_dot = smallest(orthogonalise(Y[:d, :d], ca.SX(d, 0), RANK), slope) if d else ca.SX(0, 1)
    p_dot = Y[d:, d:] @ y + Y[d:, :d] @ o_dot - directional_derivative(k, H)[:, rest].T - turned
    return [ca.densify(o_dot), ca.densify(p_dot)]


# -- what is told of the state, and where it ends --------------------------------------------------------------------------


def _about(r: _Space) -> tuple[str, ...]:
    """The momentum and its orbit in words, line by line."""
    return (
        f"the momentum of joint {r.joint.name!r} is {', '.join(f'{x:.6g}' for x in r.momentum)} in every run: start with it or "
        "run reduce(m)",
        f"seen from the body it moves on an orbit of dimension {r.dimension}: {', '.join(r.orbit.names) or 'a point'}",
    )


def _limit(r: _Space) -> tuple[str, Callable[[ca.SX, ca.SX], ca.SX]] | None:
    """Where the chart of the orbit ends, in words and as a function of the state; None where it does not."""
    edge = r.orbit.edge
    if edge is None:
        return None
    ends = (
        "the chart of the momentum's orbit ends here, nearly a quarter of a turn about y from the axis of the momentum; run "
        "reduce(m) without momentum, which needs no chart"
    )
    return ends, lambda x, t: edge(r.split(x)[1])


def _check_values(m: Mechanism, p: np.ndarray) -> None:
    """Raise ModelError where something changes the momentum at parameters (runs, np) of a run."""
    first = first_joint(m)
    for words, at, _ in other_values(m, p):
        pushes = _pushes(m)
        by = [cause for cause, some in zip(pushes.causes, changing(pushes, at).T, strict=True) if some.any()]
        if by:
            raise ModelError(
                f"{words}the momentum of joint {first.name!r} of {m.name!r} is not conserved: {', '.join(by)} changes it, "
                "which near the defaults it does not; run reduce(m) without momentum"
            )


@remembered(64)
def _pushes(m: Mechanism) -> Changes:
    """What changes the spatial momentum of the first joint."""
    T, first = symbols(m), first_joint(m)
    Y = ca.SX(m.nv, first.nv)
    Y[indices(m, (first.name,)), :] = adjoint_inverse(first, T.kinematics.joint(first.name))
    return changes_of(T, Y)
