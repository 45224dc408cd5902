"""A robot from a file under a law at 200 Hz with a latency of one period, against Pinocchio's dynamics in RK4 by hand."""

import warnings
from importlib.metadata import PackageNotFoundError, distribution

import casadi as ca
import numpy as np
import pytest

import pfaffian as pf
from benchmarks.robots import undamped
from pfaffian import control
from pfaffian.errors import ModelWarning
from tests.tolerance import INTEGRATED

pin = pytest.importorskip("pinocchio")
try:
    _FILES = distribution("example-robot-data").files or []
except PackageNotFoundError:
    pytest.skip("example-robot-data is not installed", allow_module_level=True)
UR5 = next(f.locate() for f in _FILES if f.name == "ur5_robot.urdf")
STEP, STRIDE = 1e-3, 5
GOAL = np.array([0.3, -0.8, 0.9, -0.2, 0.5, 0.1])
STIFF = np.array([150.0, 150.0, 40.0, 1.5, 0.8, 0.01])
DAMP = STIFF / 5
"""Gains by the inertia that each joint moves: at this rate a wrist of 1e-4 kg m^2 allows no more."""


def by_hand(model, q, v, steps):
    """States by steps of RK4 with Pinocchio's ABA, under inputs that are held and one period late."""
    data, waiting, u, out = model.createData(), np.zeros(6), np.zeros(6), []

    def rate(x):
        return np.concatenate([x[6:], pin.aba(model, data, x[:6], x[6:], u)])

    x = np.concatenate([q, v])
    for k in range(steps + 1):
        out.append(x)
        if k % STRIDE == 0:
            weight = pin.computeGeneralizedGravity(model, data, x[:6])
            u, waiting = waiting, weight + STIFF * (GOAL - x[:6]) - DAMP * x[6:]
        k1 = rate(x)
        k2 = rate(x + STEP / 2 * k1)
        k3 = rate(x + STEP / 2 * k2)
        x = x + STEP / 6 * (k1 + 2 * k2 + 2 * k3 + rate(x + STEP * k3))
    return np.array(out)


def test_a_robot_at_200_hz():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        m = pf.actuate_all(undamped(pf.formats.read_urdf(UR5)))
    model = pin.buildModelFromUrdf(str(UR5))
    assert [*model.names[1:]] == [j.name for j in m.joints if j.nv]

    def law(s):
        k = s.terms
        weight = -ca.substitute(k.f - k.c, k.v, ca.SX.zeros(6, 1))
        return control.Command(weight + ca.DM(STIFF) * (s["goal"] - k.q) - ca.DM(DAMP) * k.v, d_next={"goal": s["goal"]})

    sampled = control.discrete(law, STRIDE * STEP, latency=1, state={"goal": GOAL})
    q, v = 0.5 * GOAL, np.array([0.1, 0.2, -0.1, 0.3, 0.0, -0.2])
    r = pf.run(m, q, v, duration=0.25, step=STEP, control=sampled, backend="interpreter")
    ends = by_hand(model, q, v, 250)
    np.testing.assert_allclose(np.hstack([r.q.values, r.v.values]), ends, rtol=0, atol=INTEGRATED * np.abs(ends).max())
    assert np.abs(r.q.values[-1] - GOAL).max() < 0.9 * np.abs(q - GOAL).max()
