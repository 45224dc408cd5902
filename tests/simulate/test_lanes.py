"""A run that fails reports when and why, and the other runs of its batch keep their bits."""

from __future__ import annotations

import numpy as np
import pytest

import pfaffian as pf
from tests.simulate.machines import FOUR_BAR_START, four_bar, pendulum

SETTINGS = {"duration": 0.5, "step": 1e-3, "every": 25}


def starts(n: int) -> np.ndarray:
    return np.random.default_rng(0).uniform(-2, 2, (n, 1))


@pytest.mark.parametrize("where", [0, 3, 10])
def test_a_diverging_run_leaves_the_others_alone(where):
    # Negative damping: the diverging run gains 1 J a rad/s, the others have none.
    gain = pf.Parameter("gain", 0.0)
    m = pf.mechanism(
        "unstable",
        [pf.body("bob", 1.0, com=(0, 0, -1))],
        [pf.joint("pivot", "revolute", "world", "bob", axis=(0, 1, 0), damping=-gain)],
        parameters=[gain],
    )
    v = starts(11)
    gains = np.zeros(11)
    gains[where] = 500.0
    alone = pf.run(m, None, v, parameters={"gain": 0.0}, **SETTINGS)
    mixed = pf.run(m, None, v, parameters={"gain": gains}, **SETTINGS)
    others = [i for i in range(11) if i != where]
    assert mixed.status.values[where] == 1
    assert 0 < mixed.stopped.values[where] < SETTINGS["duration"]
    assert "diverged" in pf.results.causes(mixed)[where]
    assert f"at t = {mixed.stopped.values[where]:.6g}" in pf.results.causes(mixed)[where]
    assert (mixed.status.values[others] == 0).all()
    assert np.isnan(mixed.stopped.values[others]).all()
    late = mixed.time.values > mixed.stopped.values[where]
    assert np.isnan(mixed.q.values[where, late]).all()
    assert np.isfinite(mixed.q.values[where, ~late]).all()
    for name in ("q", "v", "energy"):
        assert np.array_equal(mixed[name].values[others], alone[name].values[others])


def test_a_broken_loop_stops_with_its_cause():
    m = four_bar()
    v = np.array([[1.0, 0, 0], [1e5, 0, 0], [2.0, 0, 0]])
    r = pf.run(m, FOUR_BAR_START, v, duration=0.2, step=1e-3)
    assert r.status.values[1] > 0
    assert (r.status.values[[0, 2]] == 0).all()
    assert r.stopped.values[1] <= 0.2
    assert pf.results.causes(r)[0] == "finished"


@pytest.mark.parametrize("backend", ["auto", "numpy"])
def test_batch_and_single_run_have_the_same_bits(backend):
    m, v = four_bar(), np.random.default_rng(1).normal(size=(9, 3))
    settings = SETTINGS | {"duration": 0.1, "backend": backend, "record": "all"}
    batch = pf.run(m, FOUR_BAR_START, v, **settings)
    for i in (0, 7, 8):
        one = pf.run(m, FOUR_BAR_START, v[i], **settings)
        for name in ("q", "v", "energy", "reaction", "violation", "rank"):
            assert np.array_equal(one[name].values, batch[name].values[i]), name


def test_threads_do_not_change_bits():
    m, v = pendulum(), starts(300)
    one, two = (pf.run(m, None, v, threads=n, **SETTINGS) for n in (1, 2))
    assert np.array_equal(one.q.values, two.q.values)


def test_chunks_do_not_change_bits(monkeypatch):
    import pfaffian.simulate.run.roll as module

    m, v = pendulum(), starts(5)
    u = np.random.default_rng(2).normal(size=(50, 5, 1))
    settings = {"duration": 0.5, "step": 1e-3, "every": 7, "u": u, "u_step": 0.01, "hold": "linear"}
    whole = pf.run(m, None, v, **settings)
    monkeypatch.setattr(module, "FIRST_LANE_STEPS", 5 * 3)
    monkeypatch.setattr(module, "GROWTH", 2)
    parts = pf.run(m, None, v, **settings)
    assert np.array_equal(whole.time.values, parts.time.values)
    for name in ("q", "v", "energy", "u"):
        assert np.array_equal(whole[name].values, parts[name].values), name


def test_recording_every_kth_step():
    m, v = pendulum(), starts(3)
    all_ = pf.run(m, None, v, duration=0.3, step=1e-3)
    some = pf.run(m, None, v, duration=0.3, step=1e-3, every=6)
    assert len(all_.time) == 301
    assert np.array_equal(some.time.values, all_.time.values[::6])
    assert np.array_equal(some.q.values, all_.q.values[:, ::6])
