"""Which signals a run records, and what readers of results advise where one is missing."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

import pfaffian as pf
import pfaffian.simulate.step.time_loop as module
from pfaffian.simulate.record.record_memory import available
from pfaffian.simulate.step.signals import as_record
from pfaffian.states.system import as_system
from pfaffian.viewer.scene import states_of
from pfaffian.viewer.summary import summary
from tests.by_scipy import run_adaptive
from tests.simulate.machines import FOUR_BAR_START, four_bar, pendulum
from tests.simulations import simulation

RUN = {"duration": 0.02, "backend": "interpreter"}


def signals(r) -> set[str]:
    """Names of the recorded variables over time."""
    return {str(name) for name, x in r.data_vars.items() if "time" in x.dims and name != "error"}


def test_one_run_records_all_and_a_batch_only_the_lean_part():
    one = signals(pf.run(four_bar(), FOUR_BAR_START, **RUN))
    batch = signals(pf.run(four_bar(), np.tile(FOUR_BAR_START, (2, 1)), **RUN))
    assert one - batch == {"phi", "reaction", "multiplier"}
    assert batch >= {"q", "v", "u", "energy", "violation", "velocity_violation", "rank", "regularity"}
    assert signals(pf.run(four_bar(), np.tile(FOUR_BAR_START, (2, 1)), record="all", **RUN)) == one
    assert signals(pf.run(four_bar(), FOUR_BAR_START, record="lean", **RUN)) == batch


UNITS = {
    "q": "per coordinate", "v": "per velocity", "u": "per input", "energy": "J", "kinetic_energy": "J", "phi": "per row",
    "violation": "unit of phi", "velocity_violation": "unit of phi / s", "rank": "1", "regularity": "1",
    "reaction": "per velocity", "multiplier": "per row", "stopped": "s", "moved": "per coordinate",
    "moved_rate": "per velocity", "start_residual": "per row", "inputs": "per input", "error": "1", "energy_error": "J",
    "time": "s", "sample_time": "s",
}  # fmt: skip
WITH_MEANING = {
    "status",
    "stopped",
    "end_state",
    "moved",
    "moved_rate",
    "start_residual",
    "inputs",
    "error",
    "energy_error",
}


def test_every_variable_has_a_unit_or_a_meaning():
    r = pf.run(four_bar(), FOUR_BAR_START, u=np.zeros((3, 1)), u_step=0.01, **RUN)
    every = {str(name): x.attrs for name, x in r.variables.items()}
    assert {name: x["units"] for name, x in every.items() if "units" in x} == UNITS
    assert {name for name, x in every.items() if "meaning" in x} == WITH_MEANING
    assert set().union(*every.values()) == {"units", "meaning"}
    assert r.inputs.dims == ("sample", "given") and r.end_state.dims == ("state_entry",)
    assert r.moved.dims == ("coordinate",) and r.moved_rate.dims == ("velocity",)


def test_chosen_signals_have_the_same_bits_in_any_order():
    tip = {"tip": lambda k: k.position("coupler")}
    whole = pf.run(four_bar(), FOUR_BAR_START, outputs=tip, **RUN)
    for outputs, names in ((None, ["multiplier", "q"]), (tip, ["tip", "rank"])):
        few = pf.run(four_bar(), FOUR_BAR_START, outputs=outputs, record=names, **RUN)
        assert signals(few) == set(names)
        for name in names:
            assert np.array_equal(few[name].values, whole[name].values), name


def test_the_record_is_part_of_the_kernels_key():
    key = lambda record: simulation(as_system(four_bar()), pf.Scheme(), record=as_record(record, 1)).key  # noqa: E731
    assert key(["q", "rank"]) == key(["rank", "q", "rank"])
    assert len({key("all"), key("lean"), key(["q"]), key(["q", "rank"])}) == 4


def test_adaptive_run_records_what_is_chosen():
    few = run_adaptive(four_bar(), FOUR_BAR_START, times=[0, 0.01], record=["energy", "reaction"])
    assert signals(few) == {"energy", "reaction"}


@pytest.mark.parametrize(
    "record, message",
    [
        (["reactoin"], "no signal 'reactoin'; did you mean 'reaction'"),
        ("energy", r"write record=\['energy'\]"),
        ([], "at least one name"),
        (3, "got 3"),
        ([7], "no signal 7"),
    ],
)
def test_wrong_record_is_named(record, message):
    with pytest.raises(pf.ModelError, match=message):
        pf.run(four_bar(), FOUR_BAR_START, record=record, **RUN)


def test_readers_advise_what_to_record():
    r = pf.run(four_bar(), FOUR_BAR_START, record=["rank", "energy"], **RUN)
    assert pf.overview(r).axes
    with pytest.raises(pf.ModelError, match=r"no 'regularity': run with record=\['regularity', 'rank'\]"):
        pf.results.singular_passages(r)
    with pytest.raises(pf.RunError, match=r"no 'multiplier': run with record=\['multiplier'\]"):
        pf.results.sign_changes(r, "multiplier")
    with pytest.raises(pf.ModelError, match=r"no 'q': run with record=\['q'\]"):
        states_of(four_bar(), r)
    assert "not recorded; record=['energy']" in summary(
        four_bar(), pf.run(four_bar(), FOUR_BAR_START, record=["q"], **RUN), 0.0, []
    )
    with pytest.raises(pf.ModelError, match=r"run with record=\['q', 'v', 'energy'\]"):
        pf.overview(pf.run(four_bar(), FOUR_BAR_START, record=["rank"], **RUN))


# -- the arguments of a run in its result -----------------------------------------------------------------------


def weighed() -> pf.Mechanism:
    """A pendulum with a mass and a length as parameters, driven by a motor."""
    mass, length = pf.Parameter("mass", 1.0, "kg"), pf.Parameter("length", 0.5, "m")
    bob = pf.body("bob", mass, com=(0, 0, -length))
    return pendulum().with_(bodies=[bob], parameters=[mass, length])


def test_parameters_of_every_run_are_in_the_result_and_the_file(tmp_path):
    masses = np.array([1.0, 2.0, 3.0])
    r = pf.run(weighed(), parameters={"mass": masses}, **RUN)
    assert r.parameters.dims == ("run", "parameter")
    np.testing.assert_array_equal(r.parameters.sel(parameter="mass"), masses)
    np.testing.assert_array_equal(r.parameters.sel(parameter="length"), 0.5)
    assert list(r.p_unit.values) == ["kg", "m"]
    pf.results.write_netcdf(r, tmp_path / "r.nc")
    xr.testing.assert_identical(pf.results.read_netcdf(tmp_path / "r.nc"), r)
    assert pf.run(weighed(), **RUN).parameters.values.tolist() == [1.0, 0.5]
    assert run_adaptive(weighed(), times=[0, 0.01], parameters={"mass": 2.0}).parameters.values.tolist() == [2.0, 0.5]
    assert "parameters" not in pf.run(pendulum(), **RUN)


def test_inputs_of_every_run_are_in_the_result_and_the_file(tmp_path):
    r = pf.run(weighed(), u={"motor": 2.0}, parameters={"mass": [1.0, 2.0]}, **RUN)
    np.testing.assert_array_equal(r.inputs.values, [[2.0], [2.0]])
    assert (list(r.given.values), list(r.given_unit.values)) == (["motor"], ["N m"])
    series = np.arange(12.0).reshape(6, 2, 1)
    r = pf.run(weighed(), u=series, u_step=0.004, start=1.0, parameters={"mass": [1.0, 2.0]}, **RUN)
    assert r.inputs.dims == ("sample", "run", "given")
    np.testing.assert_array_equal(r.inputs.values, series)
    np.testing.assert_allclose(r.sample_time.values, 1 + 0.004 * np.arange(6))
    assert r.sample_time.attrs["units"] == "s"
    pf.results.write_netcdf(r, tmp_path / "r.nc")
    xr.testing.assert_identical(pf.results.read_netcdf(tmp_path / "r.nc"), r)
    one = pf.run(weighed(), u=series[:, 0], u_step=0.004, **RUN)
    np.testing.assert_array_equal(one.inputs.values, series[:, 0])
    again = pf.run(weighed(), u=one.inputs.values, u_step=0.004, **RUN)
    np.testing.assert_array_equal(again.q.values, one.q.values)
    assert run_adaptive(weighed(), u=[3.0], times=[0, 0.01]).inputs.values == 3.0
    assert "inputs" not in pf.run(pendulum(motor=False), **RUN)


# -- records larger than memory ---------------------------------------------------------------------------------


def test_a_record_larger_than_memory_is_refused_before_anything_is_compiled(monkeypatch):
    def never(*_, **__):
        raise AssertionError("compiled in vain")

    module.compiled.cache_clear()
    monkeypatch.setattr("pfaffian.kernel.compile_rollout", never)
    monkeypatch.setattr("pfaffian.simulate.record.record_memory.available", lambda: 10**9)
    runs, records, numbers, states = 1000, 100_001, 5, 2  # q, v, energy, kinetic_energy, u
    needed = 8 * runs * (records * numbers + 4 * states)
    with pytest.raises(
        pf.ModelError, match=rf"needs {needed} bytes .* {records} records .* 1000 run.*every=.*record="
    ) as error:
        pf.run(pendulum(), np.zeros((runs, 1)), duration=100.0)
    assert "1000000000 bytes (1 GB) are available" in str(error.value)
    for less in ({"every": 1000}, {"record": ["energy"], "every": 10}):
        with pytest.raises(AssertionError, match="in vain"):
            pf.run(pendulum(), np.zeros((runs, 1)), duration=100.0, **less)


def test_available_memory_is_plausible():
    assert 10**7 < available() < 10**15


def test_an_output_that_is_given_is_recorded():
    r = pf.run(four_bar(), FOUR_BAR_START, outputs={"tip": lambda k: k.position("crank", (0.3, 0, 0))}, record=["q"], **RUN)
    assert {"q", "tip"} <= set(r) and "v" not in r
    assert r["tip"].sizes["tip_component"] == 3
