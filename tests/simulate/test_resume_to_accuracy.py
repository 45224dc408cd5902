"""A run to an accuracy in two parts has the bits of one run, and the error since the first part began."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest

import pfaffian as pf
from pfaffian import control
from tests.simulate.machines import FOUR_BAR_START, ball_and_plane, four_bar, velocity
from tests.simulate.test_resume import cart, integral, law

ACCURACY = 1e-6
SIZED = 5.0
"""Errors are relative to the largest speeds so far, which in the first part may be several times smaller than in both."""

SWITCHED = pf.wrench(
    "push", "b", value=lambda k: ca.vertcat(ca.if_else(k.t > 0.5371, 3.0, 0) * ca.exp(-k.t), ca.SX.zeros(5, 1))
)
SAMPLES = np.random.default_rng(2).normal(size=(21, 1))
BAR = (FOUR_BAR_START, {"a": 4.0})
CASES = {  # mechanism, start, arguments, those of the second half
    "loop": (four_bar(), BAR, {}, {}),
    "another state": (pf.reduction.hamiltonian(four_bar()), BAR, {}, {}),
    "quaternion": (ball_and_plane(), (None, velocity(ball_and_plane())), {}, {}),
    "a law that integrates": (cart(), ({"x": 0.3}, None), {"control": control.Control(integral, z=(0.1,))}, {}),
    "a law in discrete time": (cart(), ({"x": 0.3}, None), {"control": law(0.02), "seed": 5}, {"seed": 0}),
    "a force that is switched on": (cart(forces=[SWITCHED]), ({"x": 0.3}, None), {}, {}),
    "a series": (
        cart(), ({"x": 0.3}, None), {"u": SAMPLES, "u_step": 0.05, "hold": "linear"}, {"u": lambda n: SAMPLES[n:]}
    ),
    "constant inputs": (cart(), ({"x": 0.3}, [-1.0]), {"u": [2.0]}, {}),
}  # fmt: skip


@pytest.mark.parametrize("end", [0.25, 0.5])
@pytest.mark.parametrize("case", CASES)
def test_two_parts_have_the_bits_of_one_run(case, end, tmp_path):
    m, (q, v), how, later = CASES[case]
    how = {"accuracy": ACCURACY, "backend": "interpreter", "start": 0.0 if "u" in how else 0.3} | how
    whole = pf.run(m, q, v, times=how["start"] + np.linspace(0, 1, 41), **how)
    t = whole.time.values
    n = int(np.argmin(np.abs(t - t[0] - end)))
    half = pf.run(m, q, v, times=t[: n + 1 : 5], **how)
    pf.results.write_netcdf(half, tmp_path / "half.nc")
    later = {name: x(round(end / 0.05)) if callable(x) else x for name, x in later.items()}
    rest = pf.run(m, start_from=pf.results.read_netcdf(tmp_path / "half.nc"), times=t[n:], **how | {"start": 0.0} | later)
    for name in ("q", "v", "energy", "u"):
        if name in whole:
            np.testing.assert_array_equal(rest[name].values, whole[name].values[n:], err_msg=name)
    np.testing.assert_array_equal(rest.end_state.values, whole.end_state.values)
    np.testing.assert_allclose(np.log(rest.error.values / whole.error.values[n:]), 0, atol=np.log(SIZED))
    assert 0 < half.steps < whole.steps and float(rest.tolerance) == float(whole.tolerance)


def test_a_batch_continues_in_three_parts():
    q = np.linspace(0.2, 0.5, 5)[:, None]
    how = {"accuracy": ACCURACY, "backend": "interpreter", "record": "all", "control": law(0.02)}
    t = np.linspace(0, 0.9, 10)
    whole = pf.run(cart(), q, times=t, seed=3, **how)
    part = pf.run(cart(), q, times=t[:4], seed=3, **how)
    for n in (3, 6):
        part = pf.run(cart(), start_from=part, times=t[n : n + 4], **how)
    np.testing.assert_array_equal(part.q.values, whole.q.values[:, 6:])
    np.testing.assert_array_equal(part.end_state.values, whole.end_state.values)
    some = pf.run(cart(), start_from=part.isel(run=[1, 4]), duration=0.3, **how)
    every = pf.run(cart(), start_from=part, duration=0.3, **how)
    np.testing.assert_array_equal(some.q.values, every.q.values[[1, 4]])


def test_other_inputs_act_from_the_end_on():
    """1 kg without friction, pushed by 2 N for 0.4 s, then by -1 N; the first run ends inside a step."""
    rail = pf.joint("x", "prismatic", "world", "b", axis=(1, 0, 0))
    m = pf.mechanism("cart", [pf.body("b", 1.0)], [rail], actuators=[pf.actuator("push", "x")], gravity=(0, 0, 0))
    half = pf.run(m, u=[2.0], duration=0.4, accuracy=1e-8)
    rest = pf.run(m, start_from=half, u=[-1.0], duration=0.6, accuracy=1e-8)
    t = rest.time.values
    np.testing.assert_allclose(rest.v.values[:, 0], 0.8 - (t - 0.4), atol=1e-13)
    assert t[0] == 0.4 and np.isfinite(rest.q.values).all()
    again = pf.run(m, start_from=rest, duration=0.5, accuracy=1e-8)
    np.testing.assert_allclose(again.v.values[:, 0], 0.2, atol=1e-13)


def result(**how):
    return pf.run(cart(), {"x": 0.3}, duration=0.1, backend="interpreter", **how)


REFUSED = {
    "steps of one length before": ({"step": 1e-3}, {"accuracy": 1e-6}, "steps of one length: take step=0.001"),
    "steps of one length after": ({"accuracy": 1e-6}, {"step": 1e-3}, "to an accuracy: give accuracy=1e-06"),
    "another accuracy": ({"accuracy": 1e-6}, {"accuracy": 1e-8}, "the accuracy 1e-06 and this run 1e-08"),
    "a start": ({"accuracy": 1e-6}, {"accuracy": 1e-6, "q": [0.1]}, "so leave out q"),
    "samples between": ({"accuracy": 1e-6}, {"accuracy": 1e-6, "u": SAMPLES, "u_step": 0.03}, "no multiple of u_step = 0.03"),
    "an error not told": ({"accuracy": 1e-6, "error": False}, {"accuracy": 1e-6, "error": True}, "run 0 continues one"),
    "earlier records": ({"accuracy": 1e-6}, {"accuracy": 1e-6, "times": [0.05], "duration": None}, "from the start 0.1 s on"),
    "another law": ({"accuracy": 1e-6}, {"accuracy": 1e-6, "control": law(0.02)}, "of another mechanism, state or law"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_does_not_continue_is_refused(case):
    first, second, words = REFUSED[case]
    with pytest.raises(pf.ModelError, match=words):
        pf.run(cart(), **{"start_from": result(**first), "duration": 0.1, "backend": "interpreter"} | second)


def test_a_run_that_was_not_estimated_continues():
    rest = pf.run(cart(), start_from=result(accuracy=1e-6, error=False), duration=0.1, accuracy=1e-6, backend="interpreter")
    assert np.isnan(rest.error.values).all() and np.isfinite(rest.q.values).all()
