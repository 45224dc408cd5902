"""Where the sticks and frames of the 3D view are."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from unittest.mock import MagicMock

import numpy as np
import pytest

import pfaffian as pf
from pfaffian.viewer import scene
from pfaffian.viewer.scene import motion


def test_sticks_and_frames_follow_the_run(pendulum: pf.Mechanism) -> None:
    result = pf.run(pendulum, {"$x_1$": 0.3}, duration=0.05, step=0.01)
    found = motion(pendulum, result)
    q = result["q"].values
    np.testing.assert_allclose(found.origins[:, 0], q[:, :3], atol=1e-14)
    turn = np.abs(np.sum(found.axes[:, 0] * q[:, [6, 3, 4, 5]], axis=1))
    np.testing.assert_allclose(turn, 1, atol=1e-12)
    half = 0.15
    np.testing.assert_allclose(found.axes[0, 1], [np.cos(half), 0, np.sin(half), 0], atol=1e-12)
    np.testing.assert_allclose(found.sticks[0, -1, 1], [0.5 * np.cos(0.3), 0, -0.5 * np.sin(0.3)], atol=1e-12)
    assert found.loops == 0


def test_sticks_of_a_loop_end_where_it_closes() -> None:
    """Two for each closure, the last of all: from the origin of either body to its own frame of the closure, which meet."""
    bodies = [pf.body(n, 1.0, com=(0.1, 0, 0), inertia=0.1) for n in ("a", "b")]
    joints = [pf.joint(n, "revolute", "world", n, axis=(0, -1, 0), placement=(x, 0, 0)) for n, x in (("a", 0.0), ("b", 1.0))]
    tie = pf.closure("tie", "spherical", "a", "b", placement_a=(0.6, 0, 0), placement_b=(0.8, 0, 0))
    post = pf.closure("post", "point-on-plane", "world", "a", axis=(0, 1, 0), placement_a=(0.3, 0, 0.2), placement_b=(0, 0, 0))
    m = pf.mechanism("triangle", bodies, joints, constraints=[tie, post])
    a, b = np.arccos((0.6**2 + 1 - 0.8**2) / 1.2), np.pi - np.arccos((0.8**2 + 1 - 0.6**2) / 1.6)
    found = motion(m, pf.run(m, [a, b], duration=0.0, backend="numpy"))
    top = 0.6 * np.array([np.cos(a), 0, np.sin(a)])
    wanted = [[[0, 0, 0], top], [[1, 0, 0], top], [[0, 0, 0], [0.3, 0, 0.2]], [[0, 0, 0], [0, 0, 0]]]
    assert found.loops == 4
    np.testing.assert_allclose(found.sticks[0, -4:], wanted, atol=1e-12)


def test_the_view_plays_on_this_machine_only_until_it_is_stopped(pendulum, monkeypatch) -> None:
    result = pf.run(pendulum, {"$x_1$": 0.3}, duration=0.05, step=0.01)
    slider, sticks, shown = SimpleNamespace(value=0.0), SimpleNamespace(points=None), []
    viser = MagicMock()
    server = viser.ViserServer.return_value
    server.gui.add_slider.return_value, server.scene.add_line_segments.return_value = slider, sticks

    def tick(seconds: float) -> None:
        shown.append(np.array(sticks.points))
        if len(shown) == 2:
            raise KeyboardInterrupt

    monkeypatch.setitem(sys.modules, "viser", viser)
    monkeypatch.setattr(scene.time, "sleep", tick)
    pf.view(pendulum, result)
    assert viser.ViserServer.call_args.kwargs["host"] == "127.0.0.1" and server.stop.called
    times = result["time"].values
    for i, now in enumerate((1 / 30, 0.0)):  # the second tick is past the end, so it starts again
        at = int(np.searchsorted(times, now))
        assert np.array_equal(shown[i], motion(pendulum, result).sticks[at].astype(np.float32))


def test_the_view_takes_the_lengths_that_ran() -> None:
    l = pf.Parameter("l", 1.0, "m")
    hinges = [
        pf.joint(n, "revolute", p, c, axis=(0, 1, 0), placement=(x, 0, 0))
        for n, p, c, x in (("A", "world", "a", 0.0), ("B", "a", "b", l))
    ]
    m = pf.mechanism("m", [pf.body(n, 1.0, com=(0.5, 0, 0)) for n in "ab"], hinges, parameters=[l])
    result = pf.run(m, duration=0.0, backend="numpy", parameters={"l": 3.0})
    assert motion(m, result, {"l": 2.0}).origins[0, 1].tolist() == [2.0, 0.0, 0.0]
    assert motion(m, result).origins[0, 1].tolist() == [3.0, 0.0, 0.0]


def test_the_view_says_what_it_needs(pendulum, monkeypatch) -> None:
    result = pf.run(pendulum, duration=0.01, step=0.01, backend="numpy")
    monkeypatch.setitem(sys.modules, "viser", None)
    with pytest.raises(pf.ModelError, match="viser: run `pip install viser`"):
        pf.view(pendulum, result)
    monkeypatch.setitem(sys.modules, "viser", MagicMock())
    other = pf.mechanism("other", [pf.body("b", 1.0, inertia=1.0)], [pf.joint("j", "free", "world", "b")])
    batch = pf.run(pendulum, {"$x_1$": [0.1, 0.2]}, duration=0.01, step=0.01, backend="numpy")
    for m, shown, words in (
        (result, pendulum, "a Mechanism is needed"),
        (pendulum, pendulum, "no result of a run"),
        (other, result, "the result is of another mechanism"),
        (pendulum, batch, r"isel\(run=...\)"),
    ):
        with pytest.raises(pf.ModelError, match=words):
            pf.view(m, shown)
