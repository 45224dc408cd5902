"""Constraints that are not affine in v, and constraints on accelerations alone: closed forms, starts, corrections,
linearisation."""

import casadi as ca
import numpy as np
import pytest

import pfaffian as pf
from pfaffian.dynamics import passage
from pfaffian.dynamics.quasivelocity import projector_rate, quasi_velocity
from pfaffian.simulate.run.singular_start import AT_REST
from pfaffian.terms.equations_digest import digest
from tests.tolerance import ALGEBRA, INTEGRATED, SATISFIED, close

SPEED, G = 2.0, 9.81


def slide(constraints, **changes):
    """A particle in a vertical plane."""
    bodies = [pf.body("across", 0.0), pf.body("point", 1.5)]
    joints = [
        pf.joint("x", "prismatic", "world", "across", axis=(1, 0, 0)),
        pf.joint("z", "prismatic", "across", "point"),
    ]
    return pf.mechanism("slide", bodies, joints, constraints=constraints, **changes)


def speed(k):
    return ca.sumsqr(k.velocity("point")) - SPEED**2


CONSTANT = pf.nonholonomic("speed", speed)


def falling(t, angle):
    """(times, 2) velocity of a particle of constant speed under gravity, from an angle to the horizontal: only the
    component of gravity across v acts, angle_dot = -G cos(angle) / SPEED, so that tanh^-1 sin(angle) falls at a constant
    rate."""
    s = np.tanh(np.arctanh(np.sin(angle)) - G * t / SPEED)
    return SPEED * np.stack([np.sqrt(1 - s * s), s], axis=1)


@pytest.mark.parametrize("scale", [1.0, 1e-7, 1e7])
def test_constant_speed_to_its_closed_form(scale):
    """In any unit of the constraint, since the length of a row is judged relative to its typical length."""
    v0 = SPEED * np.array([np.cos(0.9), np.sin(0.9)])
    constant = pf.nonholonomic("speed", lambda k: scale * speed(k))
    r = pf.run(slide([constant]), [0, 0], v0, duration=1.0, backend="interpreter", step=1e-3, every=50)
    t = r["time"].values
    close(r["v"].values, falling(t, 0.9), INTEGRATED, "velocity at constant speed")
    close(r["velocity_violation"].values, 0 * t, SATISFIED, "constant speed", scale)
    # The reaction does work: it takes away the energy that gravity adds.
    close(r["kinetic_energy"].values, np.full(len(t), 0.75 * SPEED**2), ALGEBRA, "kinetic energy")
    power = np.sum(r["reaction"].values * r["v"].values, axis=1)
    close(power, 1.5 * G * r["v"].values[:, 1], SATISFIED, "power of the reaction")


@pytest.mark.parametrize("formulation", [n for n in pf.FORMULATIONS if n != "articulated"])
def test_appell_and_hamel(formulation):
    """z_dot = a |(x_dot, y_dot)|: the horizontal reaction is along the horizontal velocity, so the path is straight as seen
    from above, and u_dot = -a g / (1 + a^2), as in the textbook example of a nonlinear constraint."""
    a, v0 = 0.7, np.array([0.6, 0.8, 0.7])
    bodies = [pf.body("x", 0.0), pf.body("y", 0.0), pf.body("point", 1.5)]
    joints = [
        pf.joint("x", "prismatic", "world", "x", axis=(1, 0, 0)),
        pf.joint("y", "prismatic", "x", "y", axis=(0, 1, 0)),
        pf.joint("z", "prismatic", "y", "point"),
    ]
    cone = pf.nonholonomic("cone", lambda k: k.v[2] ** 2 - a**2 * ca.sumsqr(k.v[:2]))
    m = pf.mechanism("cone", bodies, joints, constraints=[cone])
    scheme = pf.Scheme(formulation=formulation)
    r = pf.run(m, None, v0, duration=0.1, step=0.01, backend="interpreter", scheme=scheme)
    u = 1 - a * G / (1 + a * a) * r["time"].values
    close(r["v"].values, u[:, None] * v0, SATISFIED, "velocity")


def test_start_is_put_onto_a_speed():
    with pytest.warns(pf.RunWarning, match=r"moved onto them"):
        r = pf.run(slide([CONSTANT]), [0, 0], [0.3, 0.4], duration=0.01, backend="interpreter")
    close(r["v"].values[0], [1.2, 1.6], SATISFIED, "along the guess")
    a = pf.assemble(slide([CONSTANT]), [0, 0], [5.0, -1e-3], backend="numpy")
    close(np.hypot(*a.v), SPEED, SATISFIED, "from far above")


def test_a_start_at_rest_has_no_direction():
    with pytest.raises(pf.RunError, match=r"'speed' is left.*not affine in v.*guess all of v"):
        pf.run(slide([CONSTANT]), duration=0.01, backend="interpreter")
    with pytest.raises(pf.RunError, match=r"rate 'x' = 1.*guess all of v"):
        pf.run(slide([CONSTANT]), None, {"x": 1.0}, duration=0.01, backend="interpreter")


def test_a_speed_that_becomes_impossible_stops_the_run():
    """The square of the speed falls to zero at t = 1 s and would have to be negative afterwards."""
    slower = pf.nonholonomic("slower", lambda k: ca.sumsqr(k.v) - 1 + k.t)
    with pytest.warns(pf.RunWarning, match=r"constraint violation"):
        r = pf.run(slide([slower], gravity=(0, 0, 0)), [0, 0], [1.0, 0.0], duration=1.5, backend="interpreter")
    assert 0.9 < float(r["stopped"]) <= 1.01


def test_correction_is_newton_and_not_a_projection_of_v():
    """Steps of 0.05 s have errors of 1e-4, which two corrections remove."""
    m, v0 = slide([CONSTANT]), SPEED * np.array([np.cos(1.2), np.sin(1.2)])
    long = {"duration": 0.5, "step": 0.05, "backend": "interpreter"}
    off = [float(np.abs(pf.run(m, [0, 0], v0, scheme=pf.Scheme(corrections=n, violation_limit=1.0), **long)
                        ["velocity_violation"]).max()) for n in (0, 1, 2)]  # fmt: skip
    assert off[0] > 1e-6 and off[1] < 1e-2 * off[0] and off[2] < 1e-12


def push(k):
    return [[1.0, 2.0]], ca.sin(3 * k.t) - k.v[0]


PUSHED = pf.constraints.acceleration_constraint("push", push)


def test_an_acceleration_constraint_to_its_closed_form():
    """x_ddot + 2 z_ddot = sin 3t - x_dot without gravity: the reaction is along (1, 2), so that 2 x_dot - z_dot is
    constant."""
    m = slide([PUSHED], gravity=(0, 0, 0))
    r = pf.run(m, [0, 0], [0.4, -0.3], duration=2.0, backend="interpreter", step=1e-2, every=10)
    t, w = r["time"].values, 3.0
    # With s = x_dot: 5 s_dot = sin(w t) - s, since z_ddot = 2 x_ddot.
    a, b = 0.2, 0.2
    forced = b * (a * np.sin(w * t) - w * np.cos(w * t)) / (a * a + w * w)
    s = forced + (0.4 - forced[0]) * np.exp(-a * t)
    close(r["v"].values, np.stack([s, 2 * s - 1.1], axis=1), INTEGRATED, "velocity")
    assert (r["rank"].values == 1).all() and not r["phi"].values.any()


def test_starts_and_corrections_ignore_rows_of_accelerations():
    """A row of accelerations does not replace later rows that imply the same for velocities."""
    tie = pf.holonomic("tie", lambda k: k.q[0] + 2 * k.q[1] - ca.sin(k.t))
    law = pf.constraints.acceleration_constraint("law", lambda k: ([[1.0, 2.0]], -ca.sin(k.t)))
    m = slide([law, tie])
    with pytest.warns(pf.RunWarning, match=r"moved"):
        r = pf.run(m, [0.3, 0.1], [1.0, 1.0], duration=1.0, step=0.02, backend="interpreter")
    assert float(r["status"]) == 0 and (r["rank"].values == 1).all()
    close(r["violation"].values, 0 * r["violation"].values, SATISFIED, "phi")
    close(r["velocity_violation"].values, 0 * r["violation"].values, SATISFIED, "eta")


@pytest.mark.parametrize("constraint", [CONSTANT, PUSHED], ids=["speed", "push"])
def test_linearised_against_differences(constraint):
    m = slide([constraint], forces=[pf.spring("s", "world", "point", point_a=(0.2, 0, 0.7), stiffness=4.0, rest=0.1)])
    q0, v0, h = np.array([0.1, -0.2]), SPEED * np.array([np.cos(0.4), np.sin(0.4)]), 1e-6
    L = pf.linearise(m, q0, v0, t=0.3)
    x_dim = L.A.shape[0]
    assert x_dim == (3 if constraint is CONSTANT else 4)
    M = np.diag([1.5, 1.5])

    def rate(dq, dv):
        v = v0 + dv
        if constraint is CONSTANT:  # along the change that satisfies the constraint to second order
            v *= SPEED / np.linalg.norm(v)
        return v, pf.forward_dynamics(m, q0 + dq, v, t=0.3).v_dot.ravel()

    base = rate(0 * q0, 0 * v0)
    for i in range(x_dim):
        up, down = (rate(sign * h * L.dq[:, i], sign * h * L.dv[:, i]) for sign in (1, -1))
        change = [(u - d) / (2 * h) for u, d in zip(up, down, strict=True)]
        displaced = L.dq[:, :2].T @ M @ change[0]
        speeds = L.dv[:, 2:].T @ M @ change[1]
        close(L.A[:2, i], displaced, 1e-6, f"displacements by state {i}", 10)
        close(L.A[2:, i], speeds, 1e-6, f"speeds by state {i}", 10)
    close(L.drift[2:], L.dv[:, 2:].T @ M @ base[1], SATISFIED, "drift", 10)


def test_redundant_rows_of_accelerations_linearise():
    twice = pf.constraints.acceleration_constraint("twice", lambda k: ([[2.0, 4.0]], 2 * push(k)[1]))
    one, two = (pf.linearise(slide(c), [0, 0], [0.1, 0.2]) for c in ([PUSHED], [PUSHED, twice]))
    close(two.A, one.A, ALGEBRA, "A", 1)


def test_a_servo_constraint_maintains_an_acceleration():
    m = slide([pf.servo(PUSHED, ["motor"])], actuators=[pf.actuator("motor", "z")])
    r = pf.run(m, [0, 0], [0.4, 0.0], duration=0.5, backend="interpreter")
    found = pf.forward_dynamics(m, [0, 0], [0.4, 0.0], t=0.2).v_dot.ravel()
    close(found @ [1, 2], np.sin(0.6) - 0.4, ALGEBRA, "acceleration held", 1)
    close(found[0], 0.0, ALGEBRA, "by the motor alone", 1)
    assert float(r["status"]) == 0


def test_body_forces_are_known_for_a_speed_but_not_for_accelerations():
    m = slide([CONSTANT])
    # The joint transmits no force along its motion: the constraint moves the point there.
    wrench = pf.reaction_wrench(m, "x", [0, 0], [1.2, 1.6]).wrench
    assert abs(pf.forward_dynamics(m, [0, 0], [1.2, 1.6]).v_dot[0]) > 1
    close(wrench, np.zeros(6), SATISFIED, "wrench through x", G)
    with pytest.raises(pf.ModelError, match=r"'push'.*bodies on which its force acts"):
        pf.reaction_wrench(slide([PUSHED]), "x", [0, 0], [1.2, 1.6])


def test_rates_of_projectors_are_refused():
    T = pf.symbols(slide([CONSTANT]))
    with pytest.raises(pf.ModelError, match=r"not affine in v.*needs the acceleration"):
        projector_rate(T, quasi_velocity(T))


def test_rows_that_turn_with_v_recover_no_lost_row():
    """Where (1 + z) v . v = 4 and x_dot = 2 meet, their combination vanishes, and its rate contains v_dot twice."""
    both = [pf.nonholonomic("speed", lambda k: (1 + k.q[1]) * ca.sumsqr(k.v) - 4), pf.nonholonomic("x", lambda k: k.v[0] - 2)]
    state = [0.0, 0.0], [2.0, 0.0]
    rank = pf.compile_terms(slide(both), {"rank": lambda T: passage.motion(T).rank}, backend="numpy")(*state)["rank"]
    assert rank == 1 == pf.forward_dynamics(slide(both), *state).rank


def test_a_singular_start_that_such_a_row_shares():
    """The same speed twice: the combination that vanishes contains rows that turn with v, so it recovers no row."""
    m = slide([CONSTANT, pf.nonholonomic("twice", lambda k: 2 * speed(k))])
    r = pf.run(m, [0, 0], [1.2, 1.6], duration=0.1, backend="interpreter")
    assert (float(r["status"]) == 0 and "entrance" not in r) or AT_REST not in np.atleast_1d(r["entrance"])
    close(r["v"].values[-1], falling(np.array([0.1]), np.arctan2(1.6, 1.2))[0], INTEGRATED, "velocity")


def test_results_of_other_functions_are_not_reused():
    one = pf.constraints.acceleration_constraint("a", lambda k: ([[1.0, 2.0]], 0))
    for other in (lambda k: ([[1.0, 3.0]], 0), lambda k: ([[1.0, 2.0]], 1), lambda k: ([[1.0, 2.0]], k.t)):
        assert digest(slide([one])) != digest(slide([pf.constraints.acceleration_constraint("a", other)]))
    assert digest(slide([one])) == digest(slide([pf.constraints.acceleration_constraint("a", lambda k: ([[1.0, 2.0]], 0))]))
    assert digest(slide([one])) != digest(slide([pf.constraints.active_while(one, lambda k: k.t < 1)]))


def test_numbers_of_closures_are_in_the_digest():
    def screw(kind="helical", **given):
        return digest(slide([pf.closure("c", kind, "world", "point", **given)]))

    axes = {"axis": (0, 0, 1)}
    found = [screw(pitch=0.1), screw(pitch=0.2), screw("planar-helical", pitch=0.1), screw("distance", length=0.1),
             screw("universal", axis_b=(1, 0, 0), **axes), screw("universal", axis_b=(0, 1, 0), **axes)]  # fmt: skip
    assert len(set(found)) == len(found) and screw(pitch=0.1) == found[0]


@pytest.mark.parametrize("constraint", [CONSTANT, PUSHED], ids=["speed", "push"])
def test_active_while(constraint):
    m = slide([pf.constraints.active_while(constraint, lambda k: k.t < 0.2)])
    r = pf.run(m, [0, 0], [1.2, 1.6], duration=0.4, step=1e-2, backend="interpreter")
    free = r["time"].values >= 0.2
    close(r["reaction"].values[free], 0 * r["reaction"].values[free], ALGEBRA, "nothing holds")
    assert np.abs(r["reaction"].values[~free]).max() > 1
