"""The stiff pair: its order, its limits for stiff parts, where a run takes it, and the bits of runs that change to it."""

from __future__ import annotations

from itertools import pairwise

import casadi as ca
import numpy as np
import pytest
from scipy.linalg import expm

import pfaffian as pf
from pfaffian.errors import RunWarning
from pfaffian.maths.shifted import Complex, shifted
from pfaffian.simulate.run.solver import EARLY, FAR
from pfaffian.simulate.step.choice_of_pair import DOUBTS, MOST_PATIENT, NEVER, PATIENCE, has_been_stiff, pair_of_next_step
from tests.simulate.machines import FOUR_BAR_START, ball_and_plane, four_bar, velocity

RADAU5 = pf.Scheme(integrator="radau5")
LEAST_ORDER = 4.3
"""Measured orders of a rule of order 5 at steps that are short but not yet at rounding."""
TOLD = 3.0
"""Largest ratio of the true error to the told one, as for the explicit pairs."""
FAR_ABOVE = 20.0
"""Largest ratio of the told error to the true one where a stiff direction turns; 27 if stiff steps were as unlike as others."""
EXACT = 1e-12
"""Rounding of an elimination of a few rows whose pivots are the largest of their columns."""
Y = (0, 1, 0)


def stiff_pendulum(k=1e8, c=2e4):
    """A bob that a spring of 1 m holds in a plane, without a joint: its stiff direction turns with it."""
    rail = pf.joint("x", "planar", "world", "bob", axis=Y)
    rod = pf.spring("rod", "world", "bob", stiffness=k, damping=c, rest=1.0)
    return pf.mechanism("stiff pendulum", [pf.body("bob", 1.0, inertia=0.01)], [rail], forces=[rod])


def two_masses(k=1e7, c=2e3):
    """Masses of 1 and 2 kg on a rail: a soft spring to the world, a stiff one with a damper between them."""
    bodies, along = [pf.body("a", 1.0), pf.body("b", 2.0)], {"kind": "prismatic", "axis": (1, 0, 0)}
    joints = [
        pf.joint("a", parent="world", child="a", stiffness=20.0, **along),
        pf.joint("b", parent="a", child="b", stiffness=k, damping=c, **along),
    ]
    return pf.mechanism("two masses", bodies, joints, gravity=(0, 0, 0))


def piston_on_spring(crank=0.15, rod=0.7, angle=0.5):
    """A crank that drives a piston by a stiff spring in place of a rod, at its rest length; with its start at 4 rad/s."""
    bodies = [pf.body("crank", 1.0, com=(crank / 2, 0, 0), inertia=0.03), pf.body("piston", 0.8, inertia=0.01)]
    joints = [
        pf.joint("crank", "revolute", "world", "crank", axis=(0, -1, 0)),
        pf.joint("slide", "prismatic", "world", "piston", axis=(1, 0, 0)),
    ]
    spring = pf.spring("rod", "crank", "piston", point_a=(crank, 0, 0), stiffness=2e7, damping=8e2, rest=rod)
    across, along = crank * np.sin(angle), crank * np.cos(angle)
    reach = np.sqrt(rod**2 - across**2)
    start = [angle, along + reach], 4 * np.array([1.0, -across - across * along / reach])
    return pf.mechanism("piston", bodies, joints, forces=[spring]), *start


def block_on_ground():
    """A block that falls 0.2 m, lands, and slides until friction stops it."""
    ground = pf.forces.contact("ground", "block", stiffness=1e7, exponent=1.0, damping=20.0, friction=0.3)
    base = pf.joint("x", "planar", "world", "block", axis=(0, -1, 0))
    return pf.mechanism("block", [pf.body("block", 1.0, inertia=0.1)], [base], forces=[ground])


def motion(r):
    return np.concatenate([r.q.values, r.v.values], axis=-1)


def test_an_elimination_exchanges_rows_where_it_must():
    J = np.array([[0.0, 2.0, 0.3], [1.0, 3.0, 0.1], [0.2, -1.0, 5.0]])
    b = np.array([1.0, -2.0, 0.5]) + 1j * np.array([0.3, 0.1, -0.7])
    for mu in (0.0, 1e-9, 3.0 + 1.0j):
        x = shifted(ca.SX(J), mu).solve(Complex(ca.SX(b.real), ca.SX(b.imag)))
        found = np.ravel(ca.evalf(x.re)) + 1j * np.ravel(ca.evalf(x.im))
        assert np.abs((mu * np.eye(3) - J) @ found - b).max() < EXACT


CASES = {  # machine, q, v, longest step
    "redundant rows": (four_bar, FOUR_BAR_START, {"a": 4.0}, 0.025),
    "quaternions": (ball_and_plane, None, velocity(ball_and_plane()), 0.025),
    "momenta": (lambda: pf.reduction.hamiltonian(ball_and_plane()), None, velocity(ball_and_plane()), 0.025),
    "turning spring": (stiff_pendulum, [0.6, 0.8, 0.0], None, 0.008),
}


@pytest.mark.parametrize("case", CASES)
def test_the_order(case):
    make, q, v, step = CASES[case]
    m, often = make(), {"record": ["q", "v"], "backend": "interpreter"}
    if case == "turning spring":  # its stiff motion has ended
        r = pf.run(m, q, v, times=[0.0, 0.05], accuracy=1e-9, **often)
        q, v = r.q.values[-1], r.v.values[-1]
    last = [
        pf.run(m, q, v, duration=0.2, step=step / n, scheme=RADAU5, error_bound=1, error=False, **often).q.values[-1]
        for n in (1, 2, 4)
    ]
    coarse, fine = (np.abs(a - b).max() for a, b in pairwise(last))
    assert np.log2(coarse / fine) > LEAST_ORDER, (coarse, fine)


def test_a_stiff_spring_has_the_errors_of_the_slow_motion_only():
    """Two masses: with steps 300 times as long as the fastest motion takes, the slow one is exact to the rule, and the stiff
    spring does not ring."""
    m = two_masses()
    M, k = np.array([[3.0, 2.0], [2.0, 2.0]]), np.diag([20.0, 1e7])
    system = np.block([[np.zeros((2, 2)), np.eye(2)], [-np.linalg.solve(M, k), -np.linalg.solve(M, np.diag([0.0, 2e3]))]])
    start = np.array([0.1, 0.0, 0.0, 0.0])
    often = {"error_bound": 1, "error": False, "backend": "interpreter"}
    r = pf.run(m, start[:2], start[2:], duration=2.0, step=0.05, scheme=RADAU5, **often)
    exact = expm(system * 2.0) @ start
    assert np.abs(motion(r)[-1] - exact).max() < SLOW
    b = r.v.values[:, 1]
    assert np.abs(b[len(b) // 2 :]).max() < SLOW


SLOW = 1e-6
"""Error of the rule of order 5 on a motion of 2.6 rad/s at steps of 0.05 s: (0.13)^5 / 7200 for each of 40 steps is 2e-7."""


@pytest.mark.parametrize("accuracy", [1e-4, 1e-6])
def test_the_error_is_as_told(accuracy):
    m, q = stiff_pendulum(), [0.6, 0.8, 0.0]
    times = np.linspace(0.0, 1.0, 21)
    exact, r = (
        pf.run(m, q, times=times, accuracy=a, scheme=scheme, record=["q", "v"])
        for a, scheme in ((1e-10, pf.Scheme(integrator="dop853")), (accuracy, RADAU5))
    )
    true = np.abs(r.q.values - exact.q.values).max()
    assert true <= TOLD * float(r.error.max()) and float(r.error.max()) <= accuracy
    assert (r.stiff == 1).all() and int(r.stiff_steps) == int(r.steps) < int(exact.steps) / 20
    assert not exact.stiff.any() and int(exact.stiff_steps) == 0


def landing(heights, end=2.0, **more):
    """Blocks that fall from heights (n,) with a speed along the ground, each to an accuracy of 1e-6."""
    q, v = np.zeros((len(heights), 3)), np.zeros((len(heights), 3))
    q[:, 1], v[:, 0] = heights, 1.0
    return pf.run(block_on_ground(), q, v, times=np.linspace(0, end, 41), accuracy=1e-6, record=["q", "v"], **more)


def test_the_pair_changes_where_the_motion_is_stiff():
    r = landing([0.2])
    flight = r.time.values < np.sqrt(2 * 0.2 / 9.81)
    assert not r.stiff.values[flight].any() and r.stiff.values[-5:].all()
    assert 0 < int(r.stiff_steps) < int(r.steps)
    one = landing([0.2], scheme=pf.Scheme(integrator="dop853"))
    assert np.abs(one.q.values - r.q.values).max() < 1e-6 and int(r.steps) < int(one.steps) / 2


def test_the_bits_do_not_depend_on_other_runs_threads_or_backends():
    heights = np.array([0.2, 0.001, 0.1, 0.3, 0.05])
    together = motion(landing(heights, backend="c", threads=2))
    backends = ("c", "interpreter") * 3
    alone = [motion(landing([h], backend=backend)) for h, backend in zip(heights, backends, strict=False)]
    assert np.array_equal(together, np.array(alone))


def test_numpy_has_the_same_bits():
    how = {"times": np.linspace(0, 2e-4, 3), "accuracy": 1e-3, "scheme": RADAU5, "record": ["q", "v"]}
    numpy, c = (motion(pf.run(two_masses(), [0.1, 0.01], backend=backend, **how)) for backend in ("numpy", "interpreter"))
    assert np.array_equal(numpy, c)


def test_a_run_goes_on_through_a_change_of_pair():
    how = {"accuracy": 1e-6, "record": ["q", "v"]}
    m, q, v, times = block_on_ground(), [0, 0.2, 0], [1.0, 0, 0], np.linspace(0, 2.0, 9)
    whole = pf.run(m, q, v, times=times, **how)
    half = pf.run(m, q, v, times=times[:5], **how)
    rest = pf.run(m, start_from=half, times=times[4:], **how)
    assert float(half.stiff[0]) == 0 and float(rest.stiff[-1]) == 1
    assert np.array_equal(motion(rest)[1:], motion(whole)[5:])


@pytest.mark.parametrize("width", [1e-7, 1e-9])
def test_friction_narrower_than_the_tolerance_brings_a_wheel_to_rest(width):
    """The stages of an explicit step lie on both sides of the steep part, so none shows its rate: the stiff pair is tried."""
    brake = pf.forces.generalised_force("brake", lambda k: -3 * ca.tanh(k.v[0] / width))
    m = pf.mechanism("wheel", [pf.body("w", 1.0, inertia=2.0)], [pf.joint("axle", "revolute", "world", "w")], forces=[brake])
    r = pf.run(m, [0.0], [1.0], times=[0, 0.5, 2.0], accuracy=1e-8, backend="interpreter")
    assert r.status == 0 and r.stiff.values[-1] == 1 and 0 < int(r.stiff_steps) < 100
    assert np.abs(r.q.values[:, 0] - [0, 0.5 - 0.75 / 4, 1 / 3]).max() < 1e-8 and abs(r.v.values[-1, 0]) < width


def test_a_force_that_no_step_resolves_ends_the_run_with_its_name(monkeypatch):
    """A force that always pushes back to a line has no motion that a rule could follow: the run ends, and says so."""
    monkeypatch.setattr("pfaffian.simulate.run.solver.ATTEMPTS", 5000)
    side = lambda k: ca.if_else(k.pose("box").p[0] > 0.1, -1e3, 1e3)  # noqa: E731
    back = pf.wrench("back", "box", value=lambda k: ca.vertcat(side(k), ca.SX.zeros(5, 1)))
    rail = pf.joint("rail", "prismatic", "world", "box", axis=(1, 0, 0), damping=1e3)
    m = pf.mechanism("chatter", [pf.body("box", 1.0)], [rail], forces=[back])
    with pytest.warns(RunWarning, match="rail.*soften it, or smooth a force that jumps"):
        r = pf.run(m, [0.0], duration=1.0, accuracy=1e-6, scheme=RADAU5)
    assert r.status != 0


def test_a_run_that_gets_nowhere_ends_early_and_tells_the_greatest_number_of_steps(monkeypatch):
    """Whatever is beside it, it ends after the same number of steps, an eighth of the greatest; others reach their end."""
    monkeypatch.setattr("pfaffian.simulate.run.solver.ATTEMPTS", 4000)
    steep = pf.Parameter("steep", 1.0)
    ripple = pf.forces.generalised_force("ripple", lambda k: -1e6 * ca.cos(steep.symbol * k.q[0]), joint="axle")
    axle = pf.joint("axle", "revolute", "world", "w")
    m = pf.mechanism("wheel", [pf.body("w", 1.0, inertia=2.0)], [axle], forces=[ripple], parameters=[steep])
    how = {"duration": 0.1, "accuracy": 1e-3, "error": False, "squeeze": False, "backend": "interpreter"}
    with pytest.warns(RunWarning, match="or for 1,000,000 of them to reach the end.*the fastest part there is .*'ripple'"):
        alone = pf.run(m, [0.2], [1.0], parameters={"steep": 3e8}, **how)
    with pytest.warns(RunWarning, match="2 of 3 runs stopped"):
        beside = pf.run(m, [0.2], [1.0], parameters={"steep": [1.0, 3e8, 2e8]}, **how)
    assert int(alone.status[0]) != 0 and 0 < float(alone.stopped[0]) < 0.1 / FAR and int(alone.steps[0]) <= 4000 / EARLY
    assert beside.status.values[0] == 0 and float(beside.stopped[1]) == float(alone.stopped[0])
    assert int(beside.steps[1]) == int(alone.steps[0])


def test_the_told_error_is_near_the_true_one_where_a_stiff_direction_turns():
    m, q, v = piston_on_spring()
    asked = {"times": np.linspace(0, 5, 11), "record": ["q"]}
    exact = pf.run(m, q, v, accuracy=1e-9, error=False, **asked).q.values
    r, s = pf.run(m, q, v, accuracy=1e-5, **asked), pf.stepper(m, accuracy=1e-5)
    s.reset(q, v)
    s.advance(5.0)
    true = np.abs(r.q.values - exact)[:, 0].max()
    for told in (r.error.values[:, 0].max(), s.error[0]):
        assert told < FAR_ABOVE * true < FAR_ABOVE * TOLD * told


def test_a_lane_knows_that_the_stiff_pair_has_made_steps():
    implicit, patience = np.array([1, 0, 0, 0]), np.array([PATIENCE, DOUBTS * PATIENCE, PATIENCE, NEVER])
    assert has_been_stiff(implicit, patience).tolist() == [True, True, False, False]


def test_each_return_makes_the_explicit_pair_more_patient():
    """Up to a bound; steps that are worth the stiff pair make it less patient again, down to where it began."""
    calm, slow = ca.SX(9.0), ca.SX(0.1)
    patience = [PATIENCE]
    for _ in range(6):
        now = ca.vertcat(1.0, PATIENCE, patience[-1], 9.0)
        implicit, evidence, longer, spent = np.array(ca.evalf(pair_of_next_step(1.0, True, now, slow))).ravel()
        assert [implicit, evidence, spent] == [0, 0, 0]
        patience.append(longer)
    assert patience[1] > 2 * patience[0] and patience[2] > 2 * patience[1] and patience[-1] == patience[-2] == MOST_PATIENT
    for _ in range(200):
        now = np.array(ca.evalf(pair_of_next_step(1.0, True, ca.vertcat(1.0, 0.0, patience[-1], 9.0), calm))).ravel()
        assert now[0] == 1 and PATIENCE <= now[2] <= patience[-1]
        patience.append(now[2])
    assert patience[-1] == PATIENCE
