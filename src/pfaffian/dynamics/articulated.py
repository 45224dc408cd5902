"""Articulated bodies: O(n) forward dynamics of a tree without constraints."""

from __future__ import annotations

import casadi as ca

from pfaffian.dynamics.motion import Motion
from pfaffian.errors import ModelError
from pfaffian.terms.articulated import check_plain, solve_tree
from pfaffian.terms.terms import Terms


def motion(terms: Terms) -> Motion:
    """v_dot of a plain tree without constraints. Raises ModelError: the mechanism has constraints, or is not such a tree."""
    m, k = terms.mechanism, terms.kinematics
    check_plain(k, "articulated")
    if m.constraints:
        raise ModelError(f"mechanism {m.name!r} has constraints; articulated bodies serve trees only, use 'gauss'")
    bias, drift = [], []
    for i, link in enumerate(k.tree.links):
        bias.append(ca.vertcat(k.spin[i] @ link.h, ca.cross(k.omega[i], link.I @ k.omega[i])))
        drift.append(ca.vertcat(*k.velocity_product(i)))
    falling = ca.vertcat(-m.gravity, ca.SX.zeros(3, 1))
    found = solve_tree(k, terms.generalised_input, bias, drift, falling)
    return Motion(found.x, ca.SX.zeros(m.nv, 1), ca.SX(0))
