"""A disk that falls flat: the run that stops there says so, whatever plane and machine, and others do not."""

import numpy as np
import pytest

import pfaffian as pf

TILT = 1.2
"""Angle from the upright at which a falling disk starts [rad]: it lies flat soon after."""


def _hoop(plane: object = None, gravity: tuple[float, float, float] = (0, 0, -9.81)) -> pf.Mechanism:
    hoop, base = pf.body("hoop", 0.5, inertia=(0.02, 0.04, 0.02)), pf.joint("base", "free", "world", "hoop")
    where = {} if plane is None else {"plane": plane}
    edge = pf.rolling.disk("rim", "hoop", 0.3, axis=(0, 1, 0), **where)
    return pf.mechanism("hoop", [hoop], [base], constraints=[edge], gravity=gravity)


def _causes(m: pf.Mechanism, q: list[float], **how: float) -> list[str]:
    with pytest.warns(pf.RunWarning):
        return pf.results.causes(pf.run(m, q, step=2e-3, backend="interpreter", **how))


def test_a_hoop_that_falls_is_said_to_lie_flat():
    q = [0, 0, 0.3 * np.cos(TILT), np.sin(TILT / 2), 0, 0, np.cos(TILT / 2)]
    (cause,) = _causes(_hoop(), q, duration=1.0)
    assert "the disk of hoop lies flat" in cause and "shorter step" not in cause and "contradict" not in cause


def test_a_hoop_falls_flat_on_a_wall_too():
    wall = pf.rolling.plane(normal=(1, 0, 0))
    q = [0.3 * np.cos(TILT), 0, 0, 0, 0, -np.sin(TILT / 2), np.cos(TILT / 2)]
    (cause,) = _causes(_hoop(wall, (-9.81, 0, 0)), q, duration=1.0)
    assert "the disk of hoop lies flat" in cause


def test_a_start_that_lies_flat_is_said_to():
    (cause,) = _causes(_hoop(), [0, 0, 0, np.sin(np.pi / 4), 0, 0, np.cos(np.pi / 4)], duration=0.01)
    assert "lies flat" in cause


def test_an_upright_hoop_that_diverges_is_not_said_to_lie_flat():
    m = _hoop()
    (cause,) = _causes(m, [0, 0, 0.3, 0, 0, 0, 1], v=[0, 0, 0, 0, 0, 2e4], duration=1.0)
    assert "flat" not in cause
