"""Articulated bodies: O(n) forward dynamics of a tree without constraints."""

from __future__ import annotations

import casadi as ca

from pfaffian.dynamics.motion import Motion
from pfaffian.errors import ModelError
from pfaffian.maths.repeated import repeated
from pfaffian.terms.articulated_inertia import check_plain, solve_tree
from pfaffian.terms.terms import Terms


def motion(terms: Terms) -> Motion:
    """Acceleration of a plain tree of joints without constraints, by articulated bodies; its reaction and rank are zero.

    Raises ModelError: the mechanism has constraints, or is not a plain tree.
    """
    m, k = terms.mechanism, terms.kinematics
    check_plain(k, "articulated")
    if m.constraints:
        raise ModelError(f"mechanism {m.name!r} has constraints; articulated bodies are for trees only, use 'gauss'")
    bias, drift = [], []
    for i, link in enumerate(k.tree.links):
        bias += _bias()(k.spin[i], k.omega[i], link.h, link.I)
        drift.append(ca.vertcat(*k.velocity_product(i)))
    base_acceleration = ca.vertcat(-m.gravity, ca.SX.zeros(3, 1))
    solution = solve_tree(k, terms.generalised_input, bias, drift, base_acceleration)
    return Motion(solution.x, ca.SX.zeros(m.nv, 1), ca.SX(0))


@repeated
def _bias(spin: ca.SX, omega: ca.SX, h: ca.SX, I: ca.SX) -> tuple[ca.SX]:
    """(6, 1) the wrench that a link needs because of its angular velocity, but for its mass."""
    return (ca.vertcat(spin @ h, ca.cross(omega, I @ omega)),)
