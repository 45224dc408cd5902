"""Results with records that are not finite, or out of order: a picture of what is there, and a sentence on what is not."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import xarray as xr

import pfaffian as pf
from pfaffian.errors import ModelError, ModelWarning, RunError

RAIL = pf.mechanism("cart", [pf.body("cart", 2.0)], [pf.joint("x", "prismatic", "world", "cart", axis=(1, 0, 0))])


@pytest.fixture(scope="module")
def runs() -> xr.Dataset:
    """Three carts that roll for 0.1 s, recorded every 0.01 s."""
    return pf.run(RAIL, {"x": [0.0, 1.0, 2.0]}, {"x": 1.0}, duration=0.1, step=0.01, backend="numpy")


def without(result: xr.Dataset, kept: xr.DataArray) -> xr.Dataset:
    """The result with q only where it is kept."""
    return result.assign(q=result["q"].where(kept))


def warned(call) -> list[str]:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        call()
    return [str(w.message) for w in found]


def test_records_that_are_not_finite_are_told(runs):
    one = runs.isel(run=0)
    end, middle = one.time < 0.055, (one.time < 0.025) | (one.time > 0.055)
    assert warned(lambda: pf.animate(RAIL, one)) == []
    with pytest.warns(ModelWarning, match=r"^5 of 11 records are not finite and not drawn, the first at 0\.06 s"):
        pf.animate(RAIL, without(one, end))
    with pytest.warns(ModelWarning, match=r"^3 of 11 records .* the first at 0\.03 s"):
        pf.animate(RAIL, without(one, middle))


def test_a_run_that_stopped_has_told_of_its_end_but_not_of_gaps(runs):
    one = runs.isel(run=0)
    stopped = one.assign(status=one["status"] * 0 + 1)
    assert warned(lambda: pf.animate(RAIL, without(stopped, one.time < 0.055))) == []
    with pytest.warns(ModelWarning, match="the first at 0 s"):
        pf.animate(RAIL, without(stopped, one.time > 0.005))


def test_runs_without_a_state_are_told(runs):
    with pytest.warns(ModelWarning, match="^runs without a finite state are not drawn: 0, 2$"):
        film = pf.animate(RAIL, without(runs, runs.run == 1))
    assert film.data.startswith(b"<!doctype html>")
    with pytest.raises(RunError, match="no run has a state"):
        pf.animate(RAIL, without(runs, runs.run == 7))


@pytest.mark.parametrize(("given", "message"), [
    ({"plot": 3}, "plot: a list of names is needed, got 3"),
    ({"plot": ["q", 3]}, "plot: a list of names"),
    ({"show": 3}, "show: a list of names"),
    ({"hide": [None]}, "hide: a list of names"),
    ({"file": "film.gif", "size": (np.inf, 64)}, "size: "),
    ({"file": "film.gif", "speed": 1e-300}, r"the film would have 2e\+300 pictures"),
])  # fmt: skip
def test_arguments_of_a_film_that_make_no_sense_are_named(runs, given, message, tmp_path):
    given = {k: tmp_path / x if k == "file" else x for k, x in given.items()}
    with pytest.raises(ModelError, match=message):
        pf.animate(RAIL, runs.isel(run=0), **given)
    assert not list(tmp_path.iterdir())


def test_times_out_of_order_are_refused(runs):
    one = runs.isel(run=0)
    for order in (slice(None, None, -1), np.repeat(np.arange(11), 2)):
        with pytest.raises(ModelError, match="times of the result do not increase"):
            pf.animate(RAIL, one.isel(time=order))
