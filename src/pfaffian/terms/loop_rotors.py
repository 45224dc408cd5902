"""Inertia of rotors in joints that close loops: the armature a of a closure, as that of a joint of the tree.

The velocities of a closure are s = J v, so its rotors add J^T diag(a) s_dot to M v_dot + c, with s_dot = J v_dot + h and h the
rate of J v at constant v. As in the tree, a is along the closure's own velocities, and the axes of the rotors turn with it.
"""

from __future__ import annotations

from typing import NamedTuple

import casadi as ca

from pfaffian.kernel.remember import once_for
from pfaffian.maths import so3
from pfaffian.model.constraint import Closure
from pfaffian.terms.applied_forces import loop_presence
from pfaffian.terms.connection import rate
from pfaffian.terms.kinematics import Kinematics
from pfaffian.terms.loop_joints import closing_joint, loop_rates
from pfaffian.terms.new_symbols import at_new_symbols, placed
from pfaffian.terms.recursions import Inertia


class LoopRotors(NamedTuple):
    """The rotors of one closure or of several.

    J: (n, nv) their velocities for v.   a: (n, 1) their inertias, zero while a closure is not active [kg m^2 or kg].
    """

    J: ca.SX
    a: ca.SX


def rotors_of(k: Kinematics, c: Closure) -> LoopRotors:
    """The rotors of one closure."""
    return LoopRotors(loop_rates(k, c), loop_presence(k, c) * closing_joint(c).armature)


def rotor_acceleration(k: Kinematics, c: Closure, v_dot: ca.SX | None = None) -> ca.SX:
    """(n, 1) acceleration of a closure along its velocities at v_dot (nv, 1), which is zero if not given."""
    bias = once_for(k, f"bias of closure {c.name!r}", lambda: _bias(k, c))
    return bias if v_dot is None else bias + loop_rates(k, c) @ v_dot


def _bias(k: Kinematics, c: Closure) -> ca.SX:
    """(n, 1) rate of J v at constant v."""
    s = at_new_symbols(k)
    return placed([rate(s, loop_rates(s, c) @ s.v)], s, k)[0]


def rotor_inertia(k: Kinematics) -> Inertia | None:
    """Inertia of the rotors of all closures; None if there are none."""
    m = k.mechanism
    if not m.loop_rotors:
        return None
    M, c, energy = ca.SX(m.nv, m.nv), ca.SX(m.nv, 1), ca.SX(0)
    for closure in m.loop_rotors:
        J, a = rotors_of(k, closure)
        M += J.T @ ca.diag(a) @ J
        c += J.T @ (a * rotor_acceleration(k, closure))
        energy += ca.dot(a, (J @ k.v) ** 2) / 2
    return Inertia(so3.symmetric(M), c, energy)


def acceleration_energy_of_rotors(k: Kinematics, v_dot: ca.SX) -> ca.SX:
    """(1, 1) part of the acceleration energy at v_dot (nv, 1) [N^2/kg]."""
    S = ca.SX(0)
    for c in k.mechanism.loop_rotors:
        S += ca.dot(rotors_of(k, c).a, rotor_acceleration(k, c, v_dot) ** 2) / 2
    return S


def rotor_coriolis(k: Kinematics) -> ca.SX:
    """C (nv, nv) of the rotors of all closures: C v is their part of c, and C + C^T is the rate of their part of M."""
    C, s = ca.SX(k.mechanism.nv, k.mechanism.nv), at_new_symbols(k)
    for closure in k.mechanism.loop_rotors:
        J, a = rotors_of(s, closure)
        C += J.T @ ca.diag(a) @ rate(s, J)
    return placed([C], s, k)[0]
