"""Prototypes with chosen poles: the closed loop of the whole machine has these poles.

The thesis's numbers are claims of `konz-underactuated` and `konz-bicopter`.
"""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest

import pfaffian as pf
from pfaffian import control
from pfaffian.control import hover_placement, matched_placement, quadcopter_pair, two_mass_placement
from tests.refused import refusals
from tests.tolerance import close

G = 9.81
POLES = [-4.0, -5.0, -3 + 2j, -3 - 2j]


def polynomial(m: pf.Mechanism, law: control.Control, q, v) -> np.ndarray:
    """Characteristic polynomial of the closed loop about a set point."""
    return np.poly(pf.linearise(m, q, v, control=law).eigenvalues).real


def quadcopter() -> pf.Mechanism:
    """Four propellers in a cross that turn left and right alternately."""
    body = pf.body("b", 1.2, inertia=(0.015, 0.018, 0.03))
    spins = [("front", (0.24, 0), 1), ("left", (0, 0.24), -1), ("back", (-0.24, 0), 1), ("right", (0, -0.24), -1)]
    motors = [pf.forces.thruster(n, "b", point=(*at, 0.0), torque=0.017 * s) for n, at, s in spins]
    return pf.mechanism("quadcopter", [body], [pf.joint("j", "free", "world", "b")], actuators=motors)


@pytest.mark.parametrize("approach", ["particle", "body", "energy"])
def test_a_quadcopter_has_its_poles_in_both_planes_and_about_its_axis(approach):
    pair = quadcopter_pair("b", POLES, heading=(3.0, 0.8), inertia_ratio=0.1)
    m, q = quadcopter(), [0, 0, 0, 0, 0, 0, 1.0]
    found = polynomial(m, control.prototype_tracking([pair], control.set_point(q), approach=approach), q, np.zeros(6))
    x, four = hover_placement(POLES), np.poly(POLES).real
    rest = np.polymul([1, x.damping, x.stiffness], [1, 2 * 0.8 * 3.0, 9.0])
    close(found, np.polymul(np.polymul(four, four), rest), 1e-8, "characteristic polynomial")


def test_a_tilted_quadcopter_returns_to_hover():
    pair = quadcopter_pair("b", POLES, heading=(3.0, 0.8), inertia_ratio=0.1)
    law = control.prototype_tracking([pair], control.set_point([0, 0, 0, 0, 0, 0, 1.0]), approach="body")
    turned = [1.0, -0.5, 0.3, 0.6, 0.0, 0.4, np.sqrt(1 - 0.52)]
    r = pf.run(quadcopter(), turned, np.zeros(6), duration=10.0, step=2e-3, every=1000, control=law)
    assert np.abs(r.q.values[-1, :6]).max() < 1e-3 and r.prototype_energy.values[-1] < 1e-6


def test_two_masses_on_a_spring_have_their_poles():
    """The damping between the world and the second mass is negative, the others are positive: no pair alone decides."""
    k, m1, m2 = 5.0, 1.0, 1.0
    bodies = [pf.body("a", m1), pf.body("b", m2)]
    joints = [pf.joint(n, "prismatic", "world", n, axis=(1, 0, 0)) for n in ("a", "b")]
    m = pf.mechanism("two", bodies, joints, gravity=(0, 0, 0), actuators=[pf.actuator("F", "a")],
                     forces=[pf.forces.potential("spring", lambda s: k / 2 * (s.q[0] - s.q[1]) ** 2)])  # fmt: skip
    poles = [-2.0, -1.0, -1 + 1j, -1 - 1j]
    x = two_mass_placement(poles, ratio=k / m2)

    def weight(value):
        return np.diag([0.0, 0, 0, value])

    pairs = [
        control.pair("a", inertia=weight(x.m01), damping=weight(x.d01), stiffness=weight(x.k01)),
        control.pair("b", seen_from="a", inertia=weight(x.m12), damping=weight(x.d12), stiffness=weight(x.k12)),
        control.pair("b", inertia=weight(x.m02), damping=weight(x.d02), stiffness=weight(x.k02)),
    ]
    # Along the reference z1 = z2 + z2'' / varpi there is no matching force. [konz25 (4.124), sign corrected]
    reference = control.function_of_time(lambda t: [(1 - 1.3**2 * m2 / k) * ca.sin(1.3 * t), ca.sin(1.3 * t)], 2)
    law = control.prototype_tracking(pairs, reference)
    r = pf.run(m, [0.3, -0.2], [0.1, 0.5], duration=2.0, step=1e-3, control=law)
    assert np.abs(r.matching_force.values).max() < 1e-9
    found = polynomial(m, control.prototype_tracking(pairs, control.set_point([0.0, 0.0])), [0, 0], [0, 0])
    close(found, np.poly(poles).real, 1e-9, "characteristic polynomial")


def in_a_plane(x, weight, at, moment) -> np.ndarray:
    """Matrix (2, 2) along (sideways, angle to the left) of a weight at the height `at` above the mass centre."""
    return np.array([[weight, -weight * at], [-weight * at, moment + weight * at**2]])


def test_matched_placement_contains_both_placements_of_the_thesis():
    """A PVTOL and two masses by the rule for any machine with one input."""
    lean, m, Theta = 0.05, 1.3, 0.02
    b = [m * lean / Theta, 1.0]
    found = matched_placement(np.diag([m, Theta]), [[0, m * G], [0, 0]], b, POLES, scale=0.8)
    x = hover_placement(POLES, coupling_length=lean, mass=0.8)
    close(found.inertia, in_a_plane(x, x.mass, x.s, x.inertia), 1e-9, "inertia")
    close(found.damping, in_a_plane(x, x.damping, x.h, 0.0), 1e-9, "damping")
    close(found.stiffness, in_a_plane(x, x.stiffness, x.h, x.moment), 1e-9, "stiffness")
    k, m1, m2 = 5.0, 0.7, 1.6
    poles = [-2.0, -1.0, -1 + 1j, -1 - 1j]
    x = two_mass_placement(poles, ratio=k / m2)
    found = matched_placement(np.diag([m1, m2]), k * np.array([[1, -1], [-1, 1]]), [1, 0], poles, scale=x.m01 + x.m12)
    for have, (a, c, e) in zip(found, ((x.m01, x.m12, x.m02), (x.d01, x.d12, x.d02), (x.k01, x.k12, x.k02)), strict=True):
        close(have, [[a + c, -c], [-c, c + e]], 1e-9, "two masses")


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_any_machine_with_one_input_has_the_poles_and_no_matching_force(n):
    """Mbar x'' + Dbar x' + Kbar x = 0 has the poles, no matrix is negative, and the rest is along b. [konz25 (4.62)]"""
    random = np.random.default_rng(n)
    A = random.normal(size=(n, n))
    M, K, b = A @ A.T + np.eye(n), random.normal(size=(n, n)), random.normal(size=n)
    pairs = [complex(-x, y) for x, y in zip(random.uniform(0.5, 2, n), random.uniform(0, 2, n), strict=True)]
    poles = pairs + [x.conjugate() for x in pairs]
    x = matched_placement(M, K, b, poles)
    N = np.linalg.inv(x.inertia)
    closed = np.block([[np.zeros((n, n)), np.eye(n)], [-N @ x.stiffness, -N @ x.damping]])
    close(np.poly(closed).real, np.poly(poles).real, 1e-7, "characteristic polynomial")
    for have, least in ((x.inertia, 0), (x.stiffness, 0), (x.damping, -1e-9)):
        close(have, have.T, 1e-12, "symmetric")
        assert np.linalg.eigvalsh(have)[0] > least * np.abs(have).max()
    free = np.linalg.svd(b[None])[2][1:]
    close(free @ (M @ N @ x.stiffness), free @ K, 1e-7, "Lambda_K", scale=[np.abs(K).max()])
    close(free @ (M @ N @ x.damping), 0 * free, 1e-7, "Lambda_D", scale=[np.abs(M @ N @ x.damping).max()])


WRONG = {
    "no poles at rest": (lambda: matched_placement([[1.0]], [[0.0]], [1.0], [0.5, -1]), "they are stable"),
    "poles of two": (lambda: matched_placement([[1.0]], [[0.0]], [1.0], [-1.0]), "2 poles are needed"),
    "a frequency of its own": (
        lambda: matched_placement([[1.0]], [[2.0]], [1.0], [-1.0, -2.0]),
        "differs from the natural frequencies",
    ),
    "out of reach": (
        lambda: matched_placement(np.eye(2), np.diag([0, 9.0]), [1.0, 0], [-1, -2, -3, -4]),
        "reaches every motion",
    ),
    "matrices": (lambda: matched_placement(np.eye(3), np.eye(2), [1.0, 0], [-1, -2, -3, -4]), "are needed"),
    "three poles": (lambda: hover_placement([-1, -2, -3]), "four poles"),
    "half a pair": (lambda: hover_placement([-1, -2, -3, -3 + 1j]), "four poles"),
    "unstable": (lambda: hover_placement([1, -2, -3, -4]), "coefficient of their polynomial"),
    "matched, unstable": (lambda: matched_placement([[1.0]], [[0.0]], [1.0], poles=[0.1 + 3j, 0.1 - 3j]), "they are stable$"),
    "matched, hardly stable": (
        lambda: matched_placement(np.eye(2), np.diag([1.0, 4.0]), [1.0, 1.0], [0.1 + 3j, 0.1 - 3j, -8, -9]),
        "they are stable$",
    ),
    "no gravity": (lambda: hover_placement(POLES, gravity=0), "gravity must be above zero"),
    "a length that is none": (lambda: hover_placement(POLES, coupling_length="much"), "^hover_placement: coupling_length"),
    "a mass that is none": (lambda: hover_placement(POLES, mass="heavy"), "^hover_placement: mass"),
    "hardly stable": (lambda: hover_placement([0.1 + 3j, 0.1 - 3j, -8, -9]), "cannot be placed unless"),
    "a wrong coupling": (lambda: two_mass_placement([-2] * 4, ratio=5.0, coupling=-1.0), "coupling has the sign"),
    "of two masses, unstable": (lambda: two_mass_placement([1, -2, -3, -4], ratio=5.0), "coefficient of their polynomial"),
    "of two masses, hardly stable": (lambda: two_mass_placement([0.1 + 3j, 0.1 - 3j, -8, -9], ratio=9.0), r"p1 p2 p3 - p1\^2"),
    "no spring": (lambda: two_mass_placement([-2] * 4, ratio=0.0), "ratio > 0"),
    "a heading": (lambda: quadcopter_pair("b", POLES, heading=(0.0, 1.0)), "w0, zeta and inertia_ratio"),
    "a bicopter": (lambda: quadcopter_pair("b", POLES, heading=(1.0, 1.0), coupling_length=(5.0, 0.0)), "s > eps_x"),
}


test_poles_that_cannot_be_placed_are_refused = refusals(WRONG)
