"""Inputs of smallest weighted norm that give a wanted motion, with whatever joints are actuated.

A generalised force tau and inputs u give the same motion if P_y W^-1 (B u - tau) = 0, P_y the projector onto the null space of
the constraints in mass-weighted coordinates; what is left free goes to the smallest u^T R u. [aghili05 (45) (46) (53)-(62)]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from pfaffian.dynamics.motion import RANK_TOLERANCE, weighted_rows
from pfaffian.errors import ModelError
from pfaffian.maths.linear import Orthogonal, orthogonalise, solve_W
from pfaffian.model.mechanism import Mechanism
from pfaffian.model.number import vector
from pfaffian.terms.pfaffian import row_names
from pfaffian.terms.terms import Terms

STRUCTURAL = 1e-9
"""A constraint row counts for controllability down to this part of its length: passing a singular configuration, where a row
is set aside for a moment, is no loss of actuators."""

UNCONTROLLABLE = (
    "uncontrollable with these actuators at this configuration: some motion that the constraints leave free has no actuator; "
    "actuate another joint or keep away from this configuration"
)
FORCE_UNREACHABLE = "the wanted constraint force is out of reach of these actuators: actuate more joints or control fewer rows"


class Allocation(NamedTuple):
    """u: (nu, 1).   uncontrollable, unreachable: (1, 1) nonzero where the motion, the reaction cannot be had."""

    u: ca.SX
    uncontrollable: ca.SX
    unreachable: ca.SX


def weights(m: Mechanism, weight: Any = None) -> ca.SX:
    """(nu, 1) positive weights R of the inputs, u^T R u; ones if None."""
    if weight is None:
        return ca.SX.ones(m.nu, 1)
    R = vector(weight, m.nu, "weight")
    if not (m.value(R) > 0).all():
        raise ModelError("weight: every input needs a weight above zero")
    return R


def length_weights(m: Mechanism, length: float) -> np.ndarray:
    """(nu,) weights that make forces [N] and moments [N m] comparable by a characteristic length [m]. [aghili05 (47) (48)]"""
    if not length > 0:
        raise ModelError(f"the characteristic length must be positive, got {length!r}")
    return np.array([1.0 if unit == "N" else length**-2 for unit in m.u_units])


def allocate(
    terms: Terms, tau: ca.SX, weight: ca.SX, reaction_rows: ca.SX | None = None, reaction: ca.SX | float = 0.0
) -> Allocation:
    """Smallest u^T R u whose motion is that of the generalised force tau (nv, 1).

    With `reaction_rows` Q (m, nv), orthonormal in y, also Q W^-1 (B u - tau) = reaction (m, 1), as far as it goes: motion first.
    Raises ModelError: there are no inputs at all.
    """
    m = terms.mechanism
    if m.nu == 0:
        raise ModelError(f"mechanism {m.name!r} has no actuators; add some, or use actuate_all")
    F, scale = terms.factor, 1 / ca.sqrt(weight)
    rows = weighted_rows(terms, ca.SX(terms.A.shape[0], 0))
    B, wanted = solve_W(F, terms.B) @ ca.diag(scale), solve_W(F, tau)
    G, rhs = ca.densify(_free(rows, B)), ca.densify(_free(rows, wanted))
    n_motion = G.shape[0]
    if reaction_rows is not None:
        G, rhs = ca.vertcat(G, reaction_rows @ B), ca.vertcat(rhs, reaction_rows @ wanted + reaction)
    reach = ca.sumsqr(B) / B.shape[0]
    solved = orthogonalise(G, rhs, RANK_TOLERANCE, ca.sum2(G * G) / reach)
    u = scale * (solved.Q.T @ solved.D)
    structural = ca.sum1(rows.left > STRUCTURAL**2) if rows.left.numel() else ca.SX(0)
    missing = terms.M.shape[0] - structural - ca.sum1(solved.kept[:n_motion])
    unreachable = ca.SX(0)
    if reaction_rows is not None:
        miss = (G @ (solved.Q.T @ solved.D) - rhs)[n_motion:]
        unreachable = ca.sumsqr(miss) > 1e-12 * ca.sumsqr(rhs)
    return Allocation(u, missing > 0.5, unreachable)


def _free(rows: Orthogonal, X: ca.SX) -> ca.SX:
    return X - rows.Q.T @ (rows.Q @ X)


def chosen_rows(terms: Terms, rows: Sequence[str]) -> list[int]:
    """Indices of named rows. Raises ModelError: an unknown name."""
    names = row_names(terms.kinematics)
    for name in rows:
        if name not in names:
            raise ModelError(f"there is no constraint row {name!r}; there are {', '.join(names) or 'none'}")
    return [names.index(name) for name in rows]


def controlled_directions(terms: Terms, chosen: list[int]) -> tuple[ca.SX, ca.SX]:
    """Orthonormal rows, in y, of the chosen constraint rows less what the other rows span, and those rows A W^-T themselves."""
    others = [i for i in range(terms.A.shape[0]) if i not in chosen]
    Lam = solve_W(terms.factor, terms.A.T).T
    order = others + chosen
    all_rows = orthogonalise(Lam[order, :], ca.SX(len(order), 0), RANK_TOLERANCE, terms.row_size[order])
    return all_rows.Q[len(others) :, :], Lam[chosen, :]
