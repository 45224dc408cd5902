"""Spaces of sweeps, the best runs of a sweep, and sweeps around them."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import xarray as xr
from scipy.stats import qmc

import pfaffian as pf
from pfaffian import statistics, sweeps
from pfaffian.errors import ModelError
from pfaffian.sweeps.planned import versions
from pfaffian.sweeps.space import as_space, unit_of

A, B = pf.Parameter("a", 1.0), pf.Parameter("b", 1.0)
SLIDE = pf.joint("x", "prismatic", "world", "box", axis=(1, 0, 0))
M = pf.mechanism("box", [pf.body("box", 1.0 + A * A + B * B)], [SLIDE], parameters=[A, B], gravity=(0, 0, 0))
HOW = {"duration": 0.2, "step": 0.1, "backend": "numpy"}


def test_shared_dimensions_zip_and_others_multiply():
    a, v = np.arange(3.0), np.arange(4.0)
    space = as_space({"a": a, "v:x": ("z", v), "b": xr.DataArray(-v, dims="z"), "q:x": ("a", a + 10)}, M)
    assert space.runs == 12 and dict(space.sizes) == {"a": 3, "z": 4}
    found = space.at(np.arange(12))
    first, second = (x.ravel() for x in np.meshgrid(a, v, indexing="ij"))
    for label, values in {"a": first, "v:x": second, "b": -second, "q:x": first + 10}.items():
        np.testing.assert_array_equal(found[label], values)
    np.testing.assert_array_equal(space.at(np.array([7]))["q:x"], [11.0])


def test_the_unit_of_each_kind_of_axis():
    units = {"a": "", "q:x": "m", "v:x": "m/s", "u:lift": "", "seed": "1"}
    assert {label: unit_of(label, M) for label in units} == units


@pytest.mark.parametrize("method", ["sobol", "halton", "latin"])
def test_samples_are_those_of_scipy_in_any_pieces(method):
    made = sweeps.samples({"a": (-1.0, 1.0), "q:x": (2.0, 6.0)}, 50, method=method, seed=3)
    space = as_space({**made, "b": [0.0, 1.0]}, M)
    engine = {"sobol": qmc.Sobol, "halton": qmc.Halton, "latin": qmc.LatinHypercube}[method](2, seed=np.random.default_rng(3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        whole = space.at(np.arange(100))
        parts = [space.at(np.arange(i, min(i + 17, 100))) for i in range(0, 100, 17)]
        some = space.at(np.array([4, 5, 60, 98]))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # SciPy warns about 50 points of Sobol
            np.testing.assert_array_equal(whole["a"][::2], -1 + 2 * engine.random(50)[:, 0])
    for label, values in whole.items():
        np.testing.assert_array_equal(np.concatenate([p[label] for p in parts]), values)
        np.testing.assert_array_equal(some[label], values[[4, 5, 60, 98]])
    assert 2 < whole["q:x"].min() < 2.2 and 5.8 < whole["q:x"].max() < 6
    others = [{"seed": 4}, {"method": "halton" if method == "sobol" else "sobol"}, {"dim": "other"}]
    digests = {as_space({**made}, M).digest, *(as_space(sweeps.samples({"a": (-1.0, 1.0), "q:x": (2.0, 6.0)}, 50, **{
        "method": method, "seed": 3, **other}), M).digest for other in others)}  # fmt: skip
    assert len(digests) == 4


@pytest.mark.parametrize("label", ["q:a", "v:y", "w:x", "x"])
def test_an_unknown_label_is_refused(label):
    with pytest.raises(ModelError, match=f"space: there is no '{label}': a parameter, q:NAME, v:NAME, u:NAME or seed"):
        as_space({label: [0.0, 1.0]}, M)


WRONG = {
    "a method": ({"method": "random"}, "samples: method 'random' is unknown; one of sobol, halton, latin"),
    "a range": ({"ranges": {"a": (1.0, 1.0)}}, r"samples: 'a': \(lowest, highest\)"),
    "a list": ({"ranges": {"a": [1.0, 2.0, 3.0]}}, r"samples: 'a': \(lowest, highest\)"),
    "seeds": ({"ranges": {"seed": (0, 9)}}, r"samples: 'seed': \(lowest, highest\)"),
    "no range": ({"ranges": {}}, "samples: {label: "),
    "a count": ({"count": 0}, "samples: count must be a whole number"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_samples_are_refused(case):
    changed, words = WRONG[case]
    with pytest.raises(ModelError, match=words):
        sweeps.samples(**{"ranges": {"a": (0.0, 1.0)}, "count": 4} | changed)


def off(k):
    """A number whose minimum is at a = 0.3, b = -0.7."""
    return (A.symbol - 0.3) ** 2 + (B.symbol + 0.7) ** 2


KEEP = {"end": statistics.final("off")}


def test_the_best_runs(tmp_path, monkeypatch):
    values = np.array([0.5, 0.1, 0.3, 0.9, 0.3])
    found = pf.sweep(M, {"a": values}, store=tmp_path / "a.zarr", keep={"end": statistics.final("a squared")}, block=2,
                     outputs={"a squared": lambda k: A.symbol**2}, **HOW)  # fmt: skip
    monkeypatch.setattr("pfaffian.sweeps.ranked.PIECE", 2)
    assert sweeps.best(found, "end", 3)["run"].values.tolist() == [1, 2, 4]
    largest = sweeps.best(found, "end", 2, largest=True)
    assert largest["run"].values.tolist() == [3, 0] and largest["space"].values.ravel().tolist() == [0.9, 0.5]
    stopped = found.load().assign(status=("run", np.array([0, 1, 0, 0, -1], dtype=np.int32)))
    assert sweeps.best(stopped, "end", 9)["run"].values.tolist() == [2, 0, 3]
    assert sweeps.best(found, "a", 1)["run"].values == [1]
    for by, words in {"ned": "did you mean 'end'", "space": "has no 'space'"}.items():
        with pytest.raises(ModelError, match=words):
            sweeps.best(found, by)
    with pytest.raises(ModelError, match="the Dataset of a sweep is needed"):
        sweeps.best(3, "end")


def test_an_entry_of_a_statistic_is_named(tmp_path):
    two = M.with_(bodies=[*M.bodies, pf.body("top", 1.0)], joints=[SLIDE, pf.joint("y", "prismatic", "box", "top")])
    keep = {"end": statistics.final("v"), "spent": statistics.histogram("v", [0, 1, 2]), "q": True}
    found = pf.sweep(two, {"v:y": [1.0, 2.0]}, store=tmp_path / "a.zarr", keep=keep, **HOW)
    assert sweeps.best(found, "end.y", 1, largest=True)["run"].values == [1]
    for by in ("end", "end.z", "q.y", "spent", "spent.y"):
        with pytest.raises(ModelError, match="one number of each run is needed"):
            sweeps.best(found, by)


def test_refinement_finds_the_best_run_and_continues_where_it_stopped(tmp_path, monkeypatch):
    ranges = {"a": (0.0, 1.0), "b": (-1.0, 1.0)}
    how = {"keep": KEEP, "by": "end", "count": 16, "outputs": {"off": off}, **HOW}
    found = sweeps.refine(M, ranges, store=tmp_path / "a", rounds=5, **how)
    np.testing.assert_allclose(found["space"].values[0], [0.3, -0.7], atol=0.05)
    assert (np.diff(found["end"].values.ravel()) >= 0).all() and sorted(found["round"].values) == [*range(5)]
    sweeps.refine(M, ranges, store=tmp_path / "b", rounds=2, **how)
    again = sweeps.refine(M, ranges, store=tmp_path / "b", rounds=5, **how)
    xr.testing.assert_identical(again, found)
    every = np.concatenate([sweeps.open_store(tmp_path / "a" / f"round{k}.zarr")["space"].values for k in range(5)])
    assert (every >= [0.0, -1.0]).all() and (every <= [1.0, 1.0]).all(), "no box leaves the ranges"
    top = sweeps.refine(M, ranges, store=tmp_path / "c", rounds=2, largest=True, **how)
    assert top["round"].values.tolist() == [1, 0] and top["end"].values[0] > top["end"].values[1] > 2
    with pytest.raises(ModelError, match="shrink must be below 1"):
        sweeps.refine(M, ranges, store=tmp_path / "d", shrink=1.0, **how)


def test_scipys_version_counts_if_it_draws_samples():
    drawn, listed = as_space(sweeps.samples({"a": (0.0, 1.0)}, 4), M), as_space({"a": [0.0, 1.0]}, M)
    assert set(versions(drawn)) - set(versions(listed)) == {"version of scipy"} and len(versions(listed)) == 4
