"""Where the sticks and frames of the 3D view are."""

from __future__ import annotations

import numpy as np

import pfaffian as pf
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
