"""Errors in energy and momenta made by the steps, compared with closed forms and with the exact motion over each compared
step."""

from __future__ import annotations

import re
import warnings

import casadi as ca
import numpy as np
import pytest

import pfaffian as pf
from pfaffian import control
from pfaffian.simulate.error.accuracy import StepErrorMonitor
from pfaffian.simulate.error.half_steps import HalfSteps
from pfaffian.simulate.error.momenta import momenta_of
from pfaffian.simulate.step.step import Scheme
from pfaffian.states.system import as_system
from tests.simulate.machines import FOUR_BAR_START, four_bar, pendulum
from tests.simulate.test_accuracy import SPUN, block, coil
from tests.simulations import simulation
from tests.tolerance import close


def run(m, q=None, v=None, **how):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pf.run(m, q, v, **{"duration": 1.0, "backend": "interpreter", "error_bound": np.inf} | how)


@pytest.fixture
def compare_often(monkeypatch):
    """Compare several steps of a short run."""
    monkeypatch.setattr("pfaffian.simulate.error.accuracy.WORK_PER_COMPARISON", 10)
    monkeypatch.setattr("pfaffian.simulate.error.accuracy.STEPS_PER_COMPARISON", 10)


# -- energy less work ---------------------------------------------------------------------------------------------------


def test_energy_error_against_the_work_of_a_damper(compare_often):
    """For v_dot = -c v a step of RK4 multiplies v by R, the exact motion by exp(-c h); their differences sum to a geometric
    series."""
    c, h, n = 2.0, 0.0125, 80
    r = run(block(damping=c), None, [1.0], duration=n * h, step=h)
    x = -c * h
    R = 1 + x + x**2 / 2 + x**3 / 6 + x**4 / 24
    close(float(r.v[-1, 0]), R**n, 1e-12, "RK4")
    made = (R**2 - np.exp(2 * x)) / 2 * (1 - R ** (2 * n)) / (1 - R**2)
    close(float(r.energy_error), abs(made), 0.05, "the estimate from compared steps")


def test_a_law_that_cancels_a_damper_leaves_only_the_steps_energy_error(compare_often):
    """The swing is then free, and all energy that it loses is lost by the steps."""
    m = pf.actuate_all(block(coil(200.0**2), damping=30.0))
    r = run(m, [0.01], duration=0.4, control=control.Control(lambda T, z, w, y: control.Command(30.0 * T.v)))
    free = run(block(coil(200.0**2)), [0.01], duration=0.4)
    lost = abs(float(free.energy_error))
    close(float(r.energy[-1] - r.energy[0]), float(free.energy_error), 1e-6, "the same swing")
    assert lost < float(r.energy_error) < 30 * lost, "most of the energy that one step adds, the next removes"


def crane() -> pf.Mechanism:
    """A load on a hoist whose position on the rail a constraint prescribes."""
    cart, load = pf.body("cart", 3.0), pf.body("load", 1.5, com=(0, 0, -0.8), inertia=(0.02, 0.02, 0.01))
    joints = [pf.joint("rail", "prismatic", "world", "cart", axis=(1, 0, 0)),
              pf.joint("swing", "revolute", "cart", "load", axis=(0, 1, 0), damping=0.3)]  # fmt: skip
    drive = pf.holonomic("drive", lambda k: k.joint("rail") - 0.4 * ca.sin(4 * k.t))
    return pf.mechanism("crane", [cart, load], joints, constraints=(drive,))


def windmill() -> pf.Mechanism:
    """A flexible shaft between a wheel in the wind and a generator."""
    bodies = [pf.body("wheel", 4.0, inertia=(0.5, 0.5, 0.9)), pf.body("rotor", 1.0, inertia=(0.02, 0.02, 0.03))]
    joints = [pf.joint("hub", "revolute", "world", "wheel", axis=(0, 0, 1)),
              pf.joint("shaft", "revolute", "wheel", "rotor", axis=(0, 0, 1), stiffness=40.0, damping=0.05)]  # fmt: skip
    wind = pf.forces.generalised_force("wind", lambda k: 2.0 - 0.02 * k.v[0] ** 2, joint="hub")
    return pf.mechanism("windmill", bodies, joints, forces=[wind])


WORKED = {
    "a rail that moves, a damper": (crane, {"swing": 0.4}, {"rail": 1.6}, {}, 0.02),
    "a shaft in the wind": (windmill, {"shaft": 0.3}, {"hub": 2.0}, {}, 0.01),
    "a motor on a loop": (four_bar, FOUR_BAR_START, {"a": 2.0}, {"u": [3.0]}, 0.01),
    "a stepped torque": (pendulum, [1.0], [0.5], {"u": np.array([[1.0], [-2.0], [4.0]]), "u_step": 0.2}, 0.02),
}


@pytest.mark.parametrize("case", WORKED)
def test_energy_error_equals_the_difference_from_the_exact_motion(monkeypatch, compare_often, case):
    """At each compared step. The exact motion over it includes the work of inputs, dampers and moving constraints."""
    monkeypatch.setattr("pfaffian.simulate.error.accuracy.MOST_COMPARISONS", 4)
    make, q, v, how, h = WORKED[case]
    m, looks, seen = make(), [], StepErrorMonitor.compare

    def look(self, k, x, ordinary):
        seen(self, k, x, ordinary)
        looks.append((self.comparisons[0 if k == self.loop.when.first else -1], x.copy()))

    monkeypatch.setattr(StepErrorMonitor, "compare", look)
    r = run(m, q, v, duration=0.8, step=h, **how)
    monkeypatch.setattr(StepErrorMonitor, "compare", seen)
    assert len(looks) == 4
    off, size = [], []
    for at, x in looks:
        k, how_now = at.k, how
        if "u_step" in how:
            how_now = {"u": how["u"][min(int(k * h / how["u_step"] + 1e-9), 2)]}
        state = x[0, : m.nq], x[0, m.nq : m.nq + m.nv]
        exact = run(m, *state, duration=h, step=h / 8, start=k * h, every=8, correct_start=False, **how_now)
        one = run(m, *state, duration=h, step=h, start=k * h, correct_start=False, **how_now)
        made = float(one.energy[-1] - exact.energy[-1])
        off.append(abs(at.balance_errors[0, 0] - made))
        size.append(abs(made))
    assert max(off) < 0.3 * max(size) and max(size) > 1e-12, (off, size)
    assert 0.1 * np.mean(size) < float(r.energy_error) / round(0.8 / h) < 10 * max(size)


def test_energy_error_is_absent_without_records_and_nan_after_a_stop():
    assert "energy_error" not in run(pendulum(), [1.0], record=["q"])
    r = run(block(damping=5e3), [0.1], [1.0])
    assert int(r.status) and np.isnan(float(r.energy_error)) and np.isfinite(float(r.error.max()))


# -- momenta ------------------------------------------------------------------------------------------------------------


def momenta_checked(m):
    return momenta_of(simulation(as_system(m), Scheme(), None, (), "all"))


def test_a_body_in_flight():
    """For the spin of a plate, conserved quantities keep their initial values; no closed form of the motion is needed."""
    m = SPUN.with_(gravity=(0, 0, -9.81))
    r = run(m, None, {"f.wx": 20.0, "f.wz": 30.0, "f.vx": 3.0}, duration=0.5, step=0.01)
    R = [pf.forward_kinematics(m, q)["b"].rotation for q in r.q.values[[0, -1]]]
    I = np.diag([0.02, 0.03, 0.04])
    L = [turn @ I @ v[3:] for turn, v in zip(R, r.v.values[[0, -1]], strict=True)]
    P = [turn @ v[:3] for turn, v in zip(R, r.v.values[[0, -1]], strict=True)]
    made = np.concatenate([P[1] - P[0] + [0, 0, 9.81 * 0.5], L[1] - L[0]])
    assert np.abs(made[3:]).max() > 1e-6
    close(r.momentum_error.values, made, 1e-9, "change of the momenta")
    assert list(r.momentum_error_entry.values) == list(m.v_names)
    assert list(r.momentum_error_unit.values) == ["N s"] * 3 + ["N m s"] * 3


def test_far_from_home_no_digit_is_lost():
    m = SPUN.with_(bodies=[pf.body("b", 1.0, com=(0.3, -0.2, 0.5), inertia=(0.02, 0.03, 0.04))])
    v, T = np.array([0, 0, 0, 2.0, 0, 3.0]), momenta_of(simulation(as_system(m), Scheme()))
    fast = np.array([7.5e9, 3e9, -1e9, 0, 0, 0])
    near, far = (T.at(np.concatenate([[x, 0, 0, 0, 0, 0, 1], v + way])[None], np.zeros((1, 0)), 0.0)[0][0]
                 for x, way in ((0.0, 0 * fast), (7e12, fast)))  # fmt: skip
    close(far[3:], near[3:], 1e-13, "angular momentum about the mass centre")
    close(far[:3] / 1e9, fast[:3] / 1e9 + near[:3] / 1e9, 1e-14, "momentum")


def satellite(*forces, **how) -> pf.Mechanism:
    """A hull with a tethered stone; only the given forces push it."""
    hull, stone = pf.body("hull", 8.0, com=(0.1, 0, 0), inertia=(1.0, 1.5, 2.0)), pf.body("stone", 0.5, inertia=(1e-3,) * 3)
    joints = [pf.joint("fly", "free", "world", "hull"),
              pf.joint("boom", "spherical", "hull", "stone", placement=pf.pose((0, 0, 1.0)), damping=0.01)]  # fmt: skip
    tether = pf.spring("tether", "hull", "stone", point_a=(0.5, 0, 0), point_b=(0, 0, 0.2), stiffness=30.0, damping=0.1)
    return pf.mechanism("satellite", [hull, stone], joints, **{"forces": [tether, *forces], "gravity": (0, 0, 0)} | how)


def choosing(k):
    """A force that acts only far from the states that are tried at random."""
    return ca.if_else(k.joint("fly")[0] > 50, ca.vertcat(1, 0, 0, 0, 0, 0), ca.SX.zeros(6, 1))


PUSHED = {
    "nothing": (lambda: satellite(), []),
    "weight": (lambda: satellite(gravity=(0, 0, -1.6)), []),
    "a tether to the world": (lambda: satellite(pf.spring("s", "world", "hull", stiffness=1.0)), [0, 1, 2, 3, 4, 5]),
    "an arm on it": (lambda: satellite(pf.wrench("w", "stone", (0, 2, 1, 0, 0, 1), by="hull")), []),
    "a push along z": (lambda: satellite(pf.wrench("w", "stone", (0, 0, 1, 0, 0, 0))), [2, 3, 4]),
    "a twist about z": (lambda: satellite(pf.wrench("w", "stone", (0, 0, 0, 0, 0, 1))), [5]),
    "a wrench as an input": (lambda: satellite(pf.wrench("w", "hull")), [0, 1, 2, 3, 4, 5]),
    "a force far away": (lambda: satellite(pf.forces.generalised_force("w", choosing, joint="fly")), [0, 1, 2, 3, 4, 5]),
    "a damper on the joint": (lambda: satellite(pf.forces.generalised_force("w", lambda k: -k.v[6:9], joint="boom")), []),
    "a weld between its bodies": (lambda: satellite(constraints=[pf.closure("c", "weld", "hull", "stone")]), []),
    "a hinge between its bodies": (
        lambda: satellite(constraints=[pf.closure("c", "revolute", "hull", "stone", axis=(0, 1, 0))]),
        [],
    ),
    "a plane of the world": (
        lambda: satellite(constraints=[pf.closure("c", "point-on-plane", "world", "stone", axis=(1, 0, 0))]),
        [0, 4, 5],
    ),
    "a table": (lambda: satellite(constraints=[pf.holonomic("table", lambda k: k.joint("fly")[2])]), [2, 3, 4]),
}


@pytest.mark.parametrize("case", PUSHED)
def test_momenta_that_outside_forces_change_are_detected(case):
    make, pushed = PUSHED[case]
    assert list(momenta_checked(make()).pushed) == pushed


def test_a_machine_on_a_rail_conserves_the_momentum_along_it():
    rail = block()
    assert list(momenta_checked(rail).conserved) == [True] and list(run(rail, None, [2.0]).momentum_error.values) == [0.0]
    for m in (pendulum(), four_bar(), block(damping=1.0), block(armature=0.5), pf.actuate_all(block())):
        assert momenta_checked(m) is None, m.name
    assert momenta_checked(pf.reduce(SPUN).mechanism) and momenta_of(simulation(pf.reduce(SPUN), Scheme())) is None


def test_a_push_that_varies_is_no_momentum_error():
    """Changes of a momentum that is pushed from outside do not count as its error."""
    m = satellite(pf.wrench("w", "hull", lambda k: ca.vertcat(ca.sin(3 * k.t), 0, 0, 0, 0, 0)))
    r = run(m, None, {"fly.wx": 2.0, "fly.vx": 1.0}, step=2e-3)
    change = (r.energy[-1] - r.energy[0]).values
    assert abs(float(change)) > 1e-3 and np.abs(r.momentum_error.values).max() < 1e-6


def test_eulers_momentum_error_is_reported():
    """With a tether between the bodies Euler's rule conserves the linear momentum, but not the angular one."""
    v = {"fly.wx": 2.0, "fly.wz": 1.0, "boom.wx": 1.0}
    r = run(satellite(), None, v, duration=0.3, scheme=pf.Scheme(integrator="euler"))
    fine = run(satellite(), None, v, duration=0.3)
    assert np.abs(r.momentum_error.values[3:]).max() > 1e-4 > 1e4 * np.abs(fine.momentum_error.values).max()


def test_lost_momentum_warns_although_comparisons_show_no_error(monkeypatch):
    monkeypatch.setattr(HalfSteps, "_error", lambda self, apart, size: np.zeros_like(apart))
    v, euler = {"f.vx": 1.0, "f.wx": 2.0, "f.wz": 3.0}, pf.Scheme(integrator="euler")
    with pytest.warns(pf.RunWarning, match="an error of") as caught:
        r = pf.run(SPUN.with_(gravity=(0, 0, -9.81)), None, v, duration=0.3, backend="interpreter", scheme=euler,
                   record=["q", "v"])  # fmt: skip
    assert len(caught) == 1 and float(r.error.max()) > 1e-3
    spin = {"f.wx": 2.0, "f.wz": 3.0}
    with pytest.warns(pf.RunWarning, match="an error of") as caught:
        r = pf.run(SPUN, None, spin, duration=0.3, backend="interpreter", scheme=euler, error=False, every=1)
    of_spin = np.abs(r.momentum_error.values[3:]).max() / 0.09 / np.abs(r.v.values[:, 3:]).max()
    told = float(re.search(r"an error of ([0-9.e-]+)", str(caught[0].message))[1])
    close(told, of_spin, 0.05, "relative to the trace of the inertia and the largest spin")
