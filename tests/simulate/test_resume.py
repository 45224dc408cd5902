"""A run in two parts has the bits of one run: state, law, delays, modes, noise and times; otherwise it is refused."""

from __future__ import annotations

from functools import cache

import casadi as ca
import numpy as np
import pytest
import xarray as xr

import pfaffian as pf
from pfaffian import control
from pfaffian.control import Command
from tests.simulate.machines import FOUR_BAR_START, four_bar, pendulum

MODE = pf.Parameter("mode", 0.0)
MASS = pf.Parameter("mass", 1.0, "kg")
STEP = 1e-3


def cart(**more) -> pf.Mechanism:
    """A cart on a spring that a mode makes stiffer, under a force that depends on time."""
    pull = pf.forces.potential("pull", lambda k: (2 + 3 * MODE.symbol) * ca.sumsqr(k.q - 0.1 * ca.sin(7 * k.t)) / 2)
    body, rail = pf.body("b", MASS.symbol), pf.joint("x", "prismatic", "world", "b", axis=(1, 0, 0))
    given = {"actuators": [pf.actuator("motor", "x")], "forces": [pull], "parameters": [MODE, MASS], "gravity": (0, 0, 0)}
    return pf.mechanism("cart", [body], [rail], **given | more)


SWITCH = {"mode": lambda k: ca.if_else(k.q[0] < 0.1, 1, MODE.symbol)}


def integral(T, z, w, y):
    return Command(-2 * z, z_dot=T.q[0])


def law(period: float = 0.004) -> control.Control:
    """A delayed law with memory, first-order hold and a slow noisy sensor, and a continuous law that integrates beside it."""
    slow = control.discrete(
        lambda s: Command(-3 * s["place"] - s["sum"], d_next={"sum": s["sum"] + 0.1 * s["place"]}),
        period, phase=0.002, latency=2, hold="first", state={"sum": 0.2}, inputs=(),
        measure={"place": control.sensor(lambda k: k.q, 0.01, period=0.006, phase=0.001, latency=1)},
    )  # fmt: skip
    return control.several(slow=slow, flow=control.Control(integral, z=(0.1,)))


def same(rest: xr.Dataset, whole: xr.Dataset, after: int) -> None:
    """Check that all records and the final states are equal."""
    for name, x in whole.data_vars.items():
        if "time" in x.dims and name != "error":  # which counts from where each run began
            np.testing.assert_array_equal(rest[name].values, x.isel(time=slice(after, None)).values, err_msg=name)
    np.testing.assert_array_equal(rest.time.values, whole.time.values[after:])
    np.testing.assert_array_equal(rest.end_state.values, whole.end_state.values)


@pytest.mark.parametrize("backend", ["numpy", "c"])
@pytest.mark.parametrize("steps", [1, 37, 60])
def test_two_parts_have_the_bits_of_one_run(steps, backend):
    keep = {"control": law(), "switches": SWITCH, "step": STEP, "backend": backend}
    begin = {"q": {"x": 0.3}, "v": {"x": -8.0}, "parameters": {"mass": 1.7}, "seed": 5, "start": 0.3}
    whole = pf.run(cart(), **begin, duration=0.08, **keep)
    half = pf.run(cart(), **begin, duration=steps * STEP, **keep)
    assert whole.mode.values[0] == 0 and whole.mode.values[-1] == 1
    rest = pf.run(cart(), start_from=half, duration=(80 - steps) * STEP, **keep)
    same(rest, whole, steps)
    assert rest.attrs["seed"] == 5 and float(rest.parameters.sel(parameter="mass")) == 1.7


def test_a_batch_with_a_seed_for_each_run_equals_single_runs():
    keep = {"control": law(), "switches": SWITCH, "step": STEP, "backend": "interpreter", "duration": 0.02}
    seeds = [7, 2**40, 7]
    many = pf.run(cart(), {"x": 0.3}, seed=seeds, **keep, record="all")
    for i, seed in enumerate(seeds):
        np.testing.assert_array_equal(many.q[i], pf.run(cart(), {"x": 0.3}, seed=seed, **keep).q)
    assert (many.u[0] != many.u[1]).any()
    rest = pf.run(cart(), start_from=many, **keep, record="all")
    whole = pf.run(cart(), {"x": 0.3}, seed=seeds, **keep | {"duration": 0.04}, record="all")
    np.testing.assert_array_equal(rest.q, whole.q[:, 20:])
    for wrong in ([1, -1], [0.5, 1.0], [[1], [2]], [2**52, 1]):
        with pytest.raises(pf.ModelError, match="seed: \\(runs,\\) whole numbers"):
            pf.run(cart(), {"x": 0.3}, seed=wrong, **keep)


def test_a_batch_continues_in_three_parts_through_a_file(tmp_path):
    """With records further apart and the noise of each run; also some of the runs, chosen by isel."""
    keep, q = (
        {"control": law(), "switches": SWITCH, "step": STEP, "backend": "interpreter", "every": 4},
        np.linspace(0.2, 0.5, 5)[:, None],
    )
    whole = pf.run(cart(), q, duration=0.06, seed=3, record="all", **keep)
    part = pf.run(cart(), q, duration=0.02, seed=3, **keep)
    for seconds in (0.016, 0.024):
        pf.results.write_netcdf(part, tmp_path / "part.nc")
        part = pf.run(cart(), start_from=pf.results.read_netcdf(tmp_path / "part.nc"), duration=seconds, record="all", **keep)
    same(part, whole, 9)
    some = pf.run(cart(), start_from=part.isel(run=[1, 4]), duration=0.01, **keep | {"every": 1})
    every = pf.run(cart(), start_from=part, duration=0.01, **keep | {"every": 1})
    np.testing.assert_array_equal(some.q.values, every.q.values[[1, 4]])


@pytest.mark.parametrize("hold", ["zero", "linear"])
def test_a_series_of_inputs_continues(hold):
    u = np.random.default_rng(2).normal(size=(21, 1))
    keep = {"step": STEP, "u_step": 4 * STEP, "hold": hold, "backend": "interpreter"}
    whole = pf.run(cart(), duration=0.08, u=u, **keep)
    half = pf.run(cart(), duration=0.04, u=u[:11], **keep)
    same(pf.run(cart(), start_from=half, duration=0.04, u=u[10:], **keep), whole, 40)


@pytest.mark.parametrize("make", [four_bar, lambda: pf.reduction.hamiltonian(four_bar())], ids=["[q; v]", "[q; p]"])
def test_constraints_and_other_states_continue(make):
    keep = {"step": 0.01, "backend": "interpreter"}
    whole = pf.run(make(), FOUR_BAR_START, {"a": 1.0}, duration=0.2, **keep)
    half = pf.run(make(), FOUR_BAR_START, {"a": 1.0}, duration=0.1, **keep)
    same(pf.run(make(), start_from=half, duration=0.1, **keep), whole, 10)


def test_a_law_in_python_continues_at_its_instants():
    times_called = []

    def steer(t, q, v):
        times_called.append(t)
        return -3 * q

    keep = {"control": control.python_law(steer, 0.007, latency=1), "step": STEP, "backend": "interpreter"}
    whole = pf.run(cart(), {"x": 0.3}, duration=0.05, **keep)
    instants = list(dict.fromkeys(times_called))
    times_called.clear()
    half = pf.run(cart(), {"x": 0.3}, duration=0.02, **keep)
    same(pf.run(cart(), start_from=half, duration=0.03, **keep), whole, 20)
    assert list(dict.fromkeys(times_called)) == instants


def test_a_new_start_of_a_law_with_memory_warns():
    """It is another run, since delayed, remembered and integrated values are lost."""
    keep = {"control": law(), "step": STEP, "backend": "interpreter"}
    whole, half = (pf.run(cart(), {"x": 0.3}, duration=T, **keep) for T in (0.08, 0.04))
    with pytest.warns(pf.RunWarning, match=r"starts anew; start_from=result continues with the complete"):
        again = pf.run(cart(), half.q.values[-1], half.v.values[-1], start=0.04, duration=0.04, correct_start=False, **keep)
    assert abs(again.q.values[-1] - whole.q.values[-1]) > 1e-6


@cache
def result() -> xr.Dataset:
    return pf.run(cart(), {"x": 0.3}, duration=0.01, step=STEP, backend="interpreter")


REFUSED = {
    "what the result contains": ({"q": {"x": 0.1}, "seed": 3}, "so leave out q, seed"),
    "a start": ({"start": 1.0}, "so leave out start"),
    "another step": ({"step": 2e-3}, r"steps of 0\.001 s and this run of 0\.002 s: take step=0\.001"),
    "records between": ({"every": 3}, "ends after 10 steps, which is no multiple of every = 3"),
    "samples between": ({"u": np.zeros((9, 1)), "u_step": 3e-3}, "no multiple of u_step / step = 3"),
    "another law": ({"control": law()}, "of another mechanism, state, law or switches"),
    "other switches": ({"switches": SWITCH}, "of another mechanism, state, law or switches"),
    "another mechanism": ({"m": pendulum()}, "of another mechanism, state, law or switches"),
    "another state": ({"m": pf.reduction.hamiltonian(cart())}, "of another mechanism, state, law or switches"),
    "runs by u": ({"u": np.zeros((2, 3, 1)), "u_step": STEP}, "different numbers of runs|has 1 runs and u 3"),
    "no result": ({"start_from": 3}, "this is not the result of a run"),
    "no end": ({"start_from": lambda: result().drop_vars("end_state")}, "does not contain its end state"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_arguments_that_do_not_continue_the_result_are_refused(case):
    how, words = REFUSED[case]
    how = {"m": cart(), "start_from": result, "duration": 0.01, "step": STEP, "backend": "interpreter"} | how
    if callable(how["start_from"]):
        how["start_from"] = how["start_from"]()
    with pytest.raises(pf.ModelError, match=words):
        pf.run(**how)


def test_stopped_runs_do_not_continue():
    m = cart(forces=[pf.forces.generalised_force("wild", lambda k: 1e8 * MODE.symbol * k.v)])
    with pytest.warns(pf.RunWarning):
        r = pf.run(m, None, [1.0], parameters={"mode": [0, 1]}, duration=0.02, step=STEP, backend="interpreter")
    with pytest.raises(pf.ModelError, match=r"run 1 of the result stopped before its end.*isel"):
        pf.run(m, start_from=r, duration=0.01, step=STEP, backend="interpreter")
    assert float(pf.run(m, start_from=r.isel(run=[0]), duration=0.01, step=STEP, backend="interpreter").status) == 0
