"""Steppers to an accuracy: calls that advance by any time, with the motion, the error and the laws of a run."""

from __future__ import annotations

import copy
import pickle

import casadi as ca
import numpy as np
import pytest

import pfaffian as pf
from pfaffian.simulate.run.accurate_stepper import AccurateStepper
from tests.simulate.machines import FOUR_BAR_START, four_bar, pendulum
from tests.simulate.test_run_to_accuracy import pushed

HOW = {"accuracy": 1e-8, "backend": "interpreter"}
CLOSE = 1e-7
"""Difference of two motions with other steps, both to an accuracy of 1e-8, from each other."""


@pytest.mark.parametrize("make", [four_bar, lambda: pf.reduction.hamiltonian(four_bar())], ids=["[q; v]", "[q; p]"])
def test_calls_of_any_length_give_the_motion_of_a_run(make):
    s = pf.stepper(make(), record=["energy"], **HOW)
    assert isinstance(s, AccurateStepper)
    s.reset(FOUR_BAR_START, {"a": 4.0}, t=0.5)
    q, t = [s.q], [s.t]
    for seconds in (0.3, 1e-3, 0.1234, 0.6):
        s.advance(seconds)
        q, t = [*q, s.q], [*t, s.t]
    r = pf.run(make(), FOUR_BAR_START, {"a": 4.0}, times=t, start=0.5, **HOW)
    np.testing.assert_allclose(q, r.q.values, atol=CLOSE)
    assert s.observe()["energy"][0] == pytest.approx(float(r.energy[-1]), abs=CLOSE)
    assert 0 < s.error.max() < 1e-8 and s.status == 0


def test_inputs_are_those_of_a_series():
    u = np.random.default_rng(0).normal(size=(8, 1))
    s = pf.stepper(pendulum(), step=0.1, runs=3, **HOW)
    s.reset([[0.1], [0.5], [1.0]])
    for row in u:
        s.advance(u=row)
    r = pf.run(pendulum(), [[0.1], [0.5], [1.0]], u=u, u_step=0.1, duration=0.8, **HOW)
    np.testing.assert_allclose(s.q, r.q.values[:, -1], atol=CLOSE)
    assert s.error.shape == (3, 3) and s.status.tolist() == [0, 0, 0]


def test_a_law_acts_at_its_instants_whatever_the_calls():
    """Noise included: an instant at the end of a call is taken once, in the next call, and shows in its observation."""
    law = pf.control.discrete(
        lambda s: pf.control.Command(-3 * s["angle"]), 0.1, measure={"angle": pf.control.sensor(lambda k: k.q, 0.05)}
    )
    r = pf.run(pendulum(), {"pivot": 1.0}, times=[0, 0.3, 1.0], control=law, seed=3, **HOW)
    ends = []
    for calls in ([0.3] + [0.1] * 7, [0.3, 0.7], [0.07, 0.23, 0.351, 0.349]):
        s = pf.stepper(pendulum(), control=law, seed=3, record=["u"], **HOW)
        s.reset({"pivot": 1.0})
        for seconds in calls:
            s.advance(seconds)
        ends.append([*s.q, *s.observe()["u"]])
    np.testing.assert_allclose(ends, np.tile([r.q.values[-1, 0], r.u.values[-1, 0]], (3, 1)), atol=10 * CLOSE)


def test_a_blow_within_a_long_call_is_met():
    s = pf.stepper(pushed(lambda t: ca.if_else(ca.logic_and(t > 3.0001, t < 3.0003), 1e4, 0)), **HOW)
    for seconds in (1.0, 3.0, 0.5):
        s.advance(seconds)
    assert s.v[0] == pytest.approx(2.0, abs=1e-9) and s.q[0] == pytest.approx(2 * (4.5 - 3.0002), abs=1e-9)


def test_saved_states_continue_with_the_same_bits():
    s = pf.stepper(pendulum(), runs=2, **HOW)
    s.reset([[0.1], [0.5]])
    s.advance(0.3, u=[0.2])
    there = s.save()
    s.advance(0.2)
    q, error = s.q, s.error
    other = pf.stepper(pendulum(), runs=2, **HOW)
    other.restore(there)
    other.advance(0.2)
    np.testing.assert_array_equal(other.q, q)
    np.testing.assert_array_equal(other.error, error)
    assert other.t == 0.5


def test_a_machine_that_stops_keeps_its_last_state():
    push = pf.wrench("push", "b", value=lambda k: ca.vertcat(k.v[0] ** 2, ca.SX.zeros(5, 1)))
    rail = pf.joint("x", "prismatic", "world", "b", axis=(1, 0, 0))
    m = pf.mechanism("escaping", [pf.body("b", 1.0)], [rail], forces=[push], gravity=(0, 0, 0))
    s = pf.stepper(m, runs=2, **HOW)
    s.reset(v=[[1.0], [0.1]])
    s.advance(0.5)
    s.advance(0.7)
    assert s.status[0] != 0 and s.status[1] == 0 and s.v[1, 0] == pytest.approx(0.1 / (1 - 0.12), abs=CLOSE)
    assert s.v[0, 0] == pytest.approx(2.0, abs=CLOSE) and np.isnan(s.error[0]).all() and np.isfinite(s.error[1]).all()


def test_no_error_is_told_where_the_coarser_solution_has_stopped():
    s = started()
    assert np.isfinite(s.error).all()
    saved = s.save()
    saved.status[3] = 1
    s.restore(saved)
    assert s.status.tolist() == [0, 0] and np.isfinite(s.error[0]).all() and np.isnan(s.error[1]).all()


@pytest.mark.parametrize(
    "wrong, words",
    [
        (lambda: pf.stepper(pendulum(), accuracy=0.0), "accuracy"),
        (lambda: pf.stepper(pendulum(), accuracy=1e-6).advance(0.0), "seconds"),
        (lambda: pf.stepper(pendulum(), accuracy=1e-6).advance(1e12), "a run lasts at most 5e.10 s"),
        (lambda: pf.stepper(pendulum(), accuracy=1e-6).advance(0.1, u=[1.0, 2.0]), "u"),
        (lambda: pf.stepper(pendulum(), accuracy=1e-6, runs=2).advance(0.1, u=np.zeros((3, 1))), "3 runs; the stepper has 2"),
        (lambda: pf.stepper(pendulum(), accuracy=1e-6).restore(3), "what save"),
        (lambda: pf.stepper(pendulum(), accuracy=1e-6).restore(pf.stepper(four_bar(), accuracy=1e-6).save()), "another mech"),
        (lambda: pf.stepper(pendulum(), accuracy=1e-6, scheme=pf.Scheme(integrator="midpoint")).advance(0.1), "dopri5, dop853"),
    ],
)  # fmt: skip
def test_bad_arguments(wrong, words):
    with pytest.raises(pf.ModelError, match=words):
        wrong()


def started():
    s = pf.stepper(pendulum(), runs=2, **HOW)
    s.reset([[0.1], [0.5]])
    s.advance(0.1)
    return s


@pytest.mark.parametrize("made", [copy.copy, copy.deepcopy])
def test_a_copy_moves_on_its_own(made):
    s = started()
    twin, q = made(s), s.q
    twin.advance(0.2, u=[0.3])
    assert s.t == 0.1 and twin.t == pytest.approx(0.3) and np.array_equal(s.q, q)
    s.advance(0.2, u=[0.3])
    np.testing.assert_array_equal(s.q, twin.q)


def test_what_is_saved_is_its_own_copy_and_no_stepper_is_pickled():
    s = started()
    saved, q = s.save(), s.q
    for array in (saved.lane, saved.q_v, saved.u):
        array[...] = 7.0
    np.testing.assert_array_equal(s.q, q)
    saved = s.save()
    s.restore(saved)
    saved.q_v[...] = 7.0
    np.testing.assert_array_equal(s.q, q)
    with pytest.raises(pf.ModelError, match=r"cannot be pickled.*save\(\) returns"):
        pickle.dumps(s)


TAMPERED = {
    "lane": (lambda x: x * 1j, lambda x: x[:, :1], lambda x: x * np.nan, lambda x: x.tolist()),
    "p": (lambda x: None, lambda x: np.ones((2, 3))),
    "u": (lambda x: x.astype(str), lambda x: x * np.nan, lambda x: x[:1]),
    "records": (lambda x: None, lambda x: x[:1]),
    "q_v": (lambda x: x[:1], lambda x: x > 0),
    "status": (lambda x: x + 99, lambda x: x - 1, lambda x: x.astype(float), lambda x: x[:2], lambda x: "0"),
    "start": (lambda x: np.nan, lambda x: "0"),
    "elapsed": (lambda x: -1.0, lambda x: "0", lambda x: True),
    "identity": (lambda x: None, lambda x: np.zeros(2)),
}
"""Field of a saved state -> what may stand there in its place."""


@pytest.mark.parametrize("field", TAMPERED)
def test_a_saved_state_that_was_changed_is_refused_by_name(field):
    s = started()
    saved, q = s.save(), s.q
    for change in TAMPERED[field]:
        with pytest.raises(pf.ModelError, match=rf"restore: (saved\.{field}|.*another mechanism)"):
            s.restore(saved._replace(**{field: change(getattr(saved, field))}))
    np.testing.assert_array_equal(s.q, q)
