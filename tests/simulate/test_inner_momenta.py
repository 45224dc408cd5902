"""Symmetries on the child's side of the first joint: the spin of a top, and all rotations of a symmetric body, by closed
forms."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation

import pfaffian as pf
from tests.simulate.test_reduction import further, machine
from tests.tolerance import close

MASS, ARM, ACROSS, SPIN, G = 0.9, 0.25, 0.013, 0.021, 9.81


def top(base="spherical", gravity=(0, 0, -G), **more):
    """A top whose symmetry axis is no axis of its frame, and this axis."""
    R = Rotation.from_euler("xyz", (0.4, 0.3, -0.2)).as_matrix()
    axis, I = R[:, 2], R @ np.diag([ACROSS, ACROSS, SPIN]) @ R.T
    com = ARM * axis if base == "spherical" else np.array([0.3, -0.2, 0.5])
    return machine(
        [pf.body("top", MASS, com=com, inertia=I)], [pf.joint("peg", base, "world", "top")], gravity=gravity, **more
    ), axis


def by_angles(nutation, rates, times):
    """Nutation angle of Lagrange's top by the equation of its energy, from the rates of precession, nutation and spin; and
    p_psi, p_phi.

    A = ACROSS + m l^2:   A nutation'' = (p_psi cos - p_phi)(p_psi - p_phi cos) / (A sin^3) + m g l sin.
    """
    A, C = ACROSS + MASS * ARM**2, SPIN
    phi, theta, psi = rates
    p_psi = C * (psi + phi * np.cos(nutation))
    p_phi = A * phi * np.sin(nutation) ** 2 + p_psi * np.cos(nutation)

    def f(_, x):
        s, c = np.sin(x[0]), np.cos(x[0])
        return [x[1], (p_psi * c - p_phi) * (p_psi - p_phi * c) / (A**2 * s**3) + MASS * G * ARM * s / A]

    return solve_ivp(f, (0, times[-1]), [nutation, theta], "DOP853", times, rtol=1e-12, atol=1e-13).y[0], p_psi, p_phi


def test_lagranges_top_conserves_its_spin_and_its_momentum_about_the_vertical():
    m, axis = top()
    assert pf.reduction.symmetry(m).group == "SO(2)" and len(pf.reduction.symmetry(m).further) == 1
    assert [x.side for _, x in pf.reduction.symmetry(m).further[0]] == ["right"] * 3
    body = Rotation.align_vectors([axis, [1, 0, 0]], [[0, 0, 1], [1, 0, 0]], weights=[np.inf, 1])[
        0
    ]  # z of the top along its axis
    there = Rotation.from_euler("ZXZ", [0.3, 0.7, -0.4]) * body.inv()
    at = there.as_matrix()
    phi, theta, psi = 2.0, 0.3, 40.0
    line = Rotation.from_euler("Z", 0.3).as_matrix()[:, 0]
    w = at.T @ (phi * np.array([0, 0, 1]) + theta * line + psi * (at @ axis))
    r = pf.run(pf.reduce(m), there.as_quat(), w, duration=2.0, step=2e-3, every=50, error_bound=1.0)
    R = Rotation.from_quat(r.q.values).as_matrix()
    want, p_psi, p_phi = by_angles(0.7, (phi, theta, psi), r.time.values)
    close(np.arccos(R[:, 2, :] @ axis), want, 1e-5, "nutation")
    I = np.array(pf.mass_matrix(m))
    L = np.einsum("tij,tj->ti", R, r.v.values @ I)
    # The steps have an error of 1e-5; the conserved momenta have none.
    close(np.einsum("ti,tij,j->t", L, R, axis), np.full(len(L), p_psi), 1e-12, "spin")
    close(L[:, 2], np.full(len(L), p_phi), 1e-12, "about the vertical")
    close(
        r.inner_momentum.values[:, 0] * np.linalg.norm(axis) / _along(pf.reduction.symmetry(m), axis),
        np.full(len(L), p_psi),
        1e-12,
        "inner momentum",
    )
    assert r.inner_momentum_entry.values.tolist() == ["peg.wx within"]
    assert r.momentum_drift_entry.values.tolist()[-1] == "peg.wx within" and float(np.abs(r.momentum_drift).max()) < 1e-12


def _along(s, axis):
    """Component about the axis of a symmetry's twist."""
    turn = sum(w * np.array(x.twist[3:]) for w, x in s.further[0])
    close(np.cross(turn, axis), np.zeros(3), 1e-9, "axis", scale=1.0)
    return turn @ axis


@pytest.mark.parametrize("alike", [True, False], ids=["all axes alike", "one axis"])
def test_a_symmetric_body_in_flight_conserves_its_inner_momenta(alike):
    """At any step a body with three equal inertias conserves its angular velocity in its own axes, one with two the rate
    about its axis."""
    if alike:
        m = machine([pf.body("ball", 2.0, com=(0.1, 0.2, -0.1), inertia=0.3)], [pf.joint("f", "free", "world", "ball")])
        axes = np.eye(3)
    else:
        m, axis = top("free", gravity=(0, 1.0, -9.0))
        axes = axis[None]
    assert len(further(pf.reduction.symmetry(m))) == len(axes)
    v = np.r_[0.1, 7.5, -3.0, 0.4, -1.1, 2.0]
    r = pf.run(pf.reduce(m), v=v, duration=3.0, step=2e-2, every=15, error_bound=1.0)
    w = r.v.values[:, 3:] @ axes.T
    close(w, np.tile(w[0], (len(w), 1)), 1e-12, "rates about the axes")
    assert float(np.abs(r.momentum_drift).max()) < 1e-12 and np.ptp(r.inner_momentum.values, axis=0).max() == 0


def test_a_sleeping_top_keeps_its_attitude():
    """With the momentum along its axis, the spin does not determine the attitude, and nothing is corrected."""
    m, axis = top()
    upright = Rotation.align_vectors([[0, 0, 1]], [axis])[0]
    r = pf.run(pf.reduce(m), upright.as_quat(), 60.0 * axis, duration=0.5, step=5e-4, every=50, error_bound=1.0)
    R = Rotation.from_quat(r.q.values).as_matrix()
    close(R @ axis, np.tile([0.0, 0, 1], (len(R), 1)), 1e-8, "axis")


def test_counter_rotating_parts_do_not_determine_the_attitude():
    """A symmetric hull and a rotor on its axis, without momentum in total, turn in place."""
    place = pf.pose((0.1, 0.2, 0.3), rpy=(0.4, 0.3, -0.2))
    turned = Rotation.from_euler("xyz", (0.4, 0.3, -0.2)).as_matrix()
    hull = pf.body("hull", 5.0, com=(0.1, 0.2, 0.3), inertia=turned @ np.diag([0.3, 0.3, 0.5]) @ turned.T)
    rotor = pf.body("rotor", 0.5, com=(0, 0, 0.05), inertia=(0.01, 0.01, 0.02))
    joints = [pf.joint("f", "free", "world", "hull"), pf.joint("s", "revolute", "hull", "rotor", placement=place)]
    m = machine([hull, rotor], joints, actuators=[pf.actuator("motor", "s")])
    axis, q = turned[:, 2], np.r_[0.1, 0.2, 0.3, Rotation.from_rotvec([0.3, 0.5, -0.4]).as_quat(), 0]
    against = -0.02 / 0.52 * 3.0 * axis
    spin = np.r_[np.cross((0.1, 0.2, 0.3), against), against, 3.0]
    r = pf.run(pf.reduce(m), q, spin, u=[0.01], duration=0.3, step=2e-3, every=10, backend="interpreter")
    along = Rotation.from_quat(r.q.values[:, 3:7]).as_matrix() @ axis
    close(along, np.tile(along[0], (len(along), 1)), 1e-10, "axis")
    assert len(r.inner_momentum_entry) == 1 and np.ptp(r.q.values[:, 7]) > 0.5


def test_implicit_steps_conserve_inner_momenta():
    """They may correct the attitude several times within a step."""
    m, axis = top()
    scheme = pf.Scheme(integrator="midpoint")
    r = pf.run(pf.reduce(m), v=10.0 * axis + [0.3, 0, 0], duration=0.02, step=2e-3, scheme=scheme, error_bound=1.0)
    assert float(np.abs(r.momentum_drift).max()) < 1e-14


def test_a_jet_about_the_axis_changes_the_inner_momentum():
    """The change is the jet's impulse."""
    m, axis = top("free", gravity=(0, 0, 0))
    pushed = m.with_(forces=[pf.wrench("jet", "top", point=(0.3, -0.2, 0.5), axes="LOCAL")])
    u = {f"jet.n{x}": 0.05 * a for x, a in zip("xyz", axis, strict=True)}
    r = pf.run(pf.reduce(pushed), v=np.r_[0, 0, 0, 0.4, -1.1, 2.0], u=u, duration=0.5, step=5e-3, every=50, error_bound=1.0)
    w = r.v.values[:, 3:] @ axis
    close(w[-1] - w[0], 0.05 * 0.5 / SPIN, 1e-11, "spin")


def test_parameters_that_break_an_inner_symmetry_are_refused():
    uneven = pf.Parameter("uneven", 1e-13, "kg m^2")
    body = pf.body("top", 1.0, com=(0, 0, 0.2), inertia=[[0.02 + uneven.symbol, 0, 0], [0, 0.02, 0], [0, 0, 0.03]])
    m = machine([body], [pf.joint("peg", "spherical", "world", "top")], parameters=[uneven], gravity=(0, 0, -9.81))
    system = pf.reduce(m)
    keep = {"v": [0.1, 0.2, 9.0], "duration": 0.01, "step": 1e-3, "backend": "interpreter"}
    pf.run(system, **keep)
    with pytest.raises(
        pf.ModelError, match=r"\(uneven = 0.005\): the momentum of 'peg.wz within' of 'machine' is not conserved"
    ):
        pf.run(system, parameters={"uneven": 5e-3}, **keep)


@pytest.mark.parametrize("kind", ["free", "spherical"])
def test_balls_in_series_conserve_inner_momenta_that_turn_with_the_shape(kind):
    """A ball turns from its child's side together with the joint beyond it, so that the next ball keeps its attitude: a field
    that depends on the coordinates."""
    place = pf.pose((0.3, 0.1, 0.2), rpy=(0.3, 0.2, 0.1))
    bodies = [pf.body(f"b{i}", 1.0 + i, inertia=0.1 + 0.1 * i) for i in range(3)]
    joints = [pf.joint(f"j{i}", kind, f"b{i - 1}" if i else "world", f"b{i}", placement=place) for i in range(3)]
    m = machine(bodies, joints, gravity=(0, 0, 0))
    system, random = pf.reduce(m), np.random.default_rng(3)
    q, v = pf.random_configuration(m, random), 0.3 * random.normal(size=m.nv)
    how = {"duration": 0.5, "step": 2e-3, "every": 50, "backend": "interpreter", "error_bound": 1.0}
    r = pf.run(system, q, v, **how)
    assert len(r.inner_momentum_entry) == (3 if kind == "free" else 1)
    assert np.ptp(r.inner_momentum.values, axis=0).max() == 0
    close(r.q, pf.run(m, q, v, **how).q, 1e-8, "q", scale=1.0)
