"""What a result contains, on disk as in memory; and runs by the adaptive method."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

import pfaffian as pf
from tests.by_scipy import run_adaptive
from tests.simulate.machines import FOUR_BAR_START, ball_and_plane, flying_pair, four_bar, pendulum, velocity
from tests.tolerance import INTEGRATED, close


def test_result_has_names_units_and_provenance():
    m = four_bar()
    tip = {"tip": lambda k: k.position("coupler", (0.8, 0, 0))}
    r = pf.run(m, FOUR_BAR_START, np.zeros((2, 3)), duration=0.05, outputs=tip, record="all")
    assert r.q.dims == ("run", "time", "coordinate")
    assert list(r.coordinate.values) == ["a", "b", "d"]
    assert list(r.q_unit.values) == ["rad"] * 3
    assert list(r.velocity.values) == ["a", "b", "d"]
    assert list(r.v_unit.values) == ["rad/s"] * 3
    assert list(r.row.values) == ["c.vx", "c.vy", "c.vz", "c.wx", "c.wy"]
    assert list(r.input.values) == ["motor"]
    assert list(r.u_unit.values) == ["N m"]
    assert r.time.attrs["units"] == "s"
    assert r.energy.attrs["units"] == "J"
    assert r.tip.shape == (2, 51, 3)
    assert (r["rank"] == 2).all()
    known = {"mechanism", "pfaffian", "casadi", "numpy", "python", "kernel_digest", "kernel_backend", "kernel_strict",
             "formulation", "integrator", "corrections", "step", "duration"}  # fmt: skip
    assert known <= set(r.attrs)
    assert r.attrs["mechanism"] == "four-bar"
    assert r.attrs["step"] == 1e-3
    assert set(r.data_vars) >= {"q", "v", "u", "energy", "kinetic_energy", "phi", "reaction", "status", "stopped"}


def test_single_run_loses_the_run_axis():
    assert "run" not in pf.run(pendulum(), duration=0.01).q.dims
    assert "run" in pf.run(pendulum(), duration=0.01, squeeze=False).q.dims


def test_netcdf_round_trip(tmp_path):
    r = pf.run(four_bar(), FOUR_BAR_START, np.zeros((2, 3)), duration=0.05, record="all")
    path = tmp_path / "run.nc"
    pf.results.write_netcdf(r, path)
    xr.testing.assert_identical(pf.results.read_netcdf(path), r)
    assert [p.name for p in tmp_path.iterdir()] == ["run.nc"]


def test_damaged_and_missing_files_are_refused(tmp_path):
    broken = tmp_path / "broken.nc"
    broken.write_bytes(b"\x89HDF\r\n not so")
    for path in (broken, tmp_path / "absent.nc"):
        with pytest.raises(pf.RunError, match=path.name):
            pf.results.read_netcdf(path)
    with pytest.raises((pf.RunError, OSError)):
        pf.results.write_netcdf(pf.run(pendulum(), duration=0.01), tmp_path / "no folder" / "run.nc")


@pytest.mark.parametrize("make, q", [(four_bar, FOUR_BAR_START), (ball_and_plane, None)])
def test_adaptive_run_agrees_with_small_steps(make, q):
    m = make()
    v = velocity(m, 2)
    times = np.linspace(0, 1, 11)
    exact = run_adaptive(m, q, v, times=times)
    steps = pf.run(m, q, v, duration=1.0, step=5e-4, every=200)
    close(steps.q.values, exact.q.values, INTEGRATED, "q by steps and by DOP853")
    close(steps.v.values, exact.v.values, INTEGRATED, "v by steps and by DOP853")
    assert np.array_equal(exact.coordinate.values, steps.coordinate.values)


def test_an_adaptive_run_is_on_its_constraints_at_each_record_and_after_each_step():
    """Otherwise records at a tolerance of 1e-6 would be off by 2e-7, and velocities by 6e-6 m/s after 20 s of drift."""
    r = run_adaptive(four_bar(), FOUR_BAR_START, {"a": 6.0}, times=np.linspace(0, 20, 21), tolerance=1e-6)
    assert float(r.violation.max()) < 1e-12 and float(r.velocity_violation.max()) < 1e-10
    m = flying_pair()
    r = run_adaptive(m, None, velocity(m, 2), times=np.linspace(0, 3, 10), tolerance=1e-6)
    for i in (3, 7):  # quaternions of hull and arm
        close(np.linalg.norm(r.q.values[:, i : i + 4], axis=1), np.ones(10), 1e-13, "length")


@pytest.mark.filterwarnings("ignore:.*encountered in dot:RuntimeWarning")
def test_adaptive_run_reports_divergence():
    m = pendulum(damping=-50.0)
    r = run_adaptive(m, [0.1], [1.0], times=np.linspace(0, 100, 11))
    assert r.status == 1
    assert 0 < float(r.stopped) < 100
    assert np.isnan(r.q.values[-1]).all()
    assert "diverged" in pf.results.causes(r)[0]
