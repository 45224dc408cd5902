"""Position gain that tracking needs: (46) in closed form on the circle, and rates on random mechanisms. [aghili08]"""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest
from hypothesis import given, settings

import pfaffian as pf
from pfaffian import control
from pfaffian.dynamics.quasivelocity import FACTORS, quasi_velocity, reduced_quasi_velocity
from studies.cartesian_circle import M1, M2, R
from studies.cartesian_circle import mechanism as circle
from tests.control.test_quasivelocity import arms, tip_on_plane
from tests.tolerance import ALGEBRA, DERIVATIVE, close

SMALL = 1e-4
"""Size of errors: on a constraint the bound holds to first order in them."""

STEP = 1e-4
RATE = 1e-3
"""Tolerance of a rate [1/s]: terms of second order in such errors, and those of a straight reference that leaves the plane."""


def test_constants_on_the_circle():
    """W_r^T = (-m1 q2, m2 q1) / g in closed form: c1 is m2, c2 its slope along the circle, c4 the speed. (37) (39)"""
    angle = np.linspace(0, 2 * np.pi, 13)[:-1]
    q = R * np.column_stack([np.cos(angle), np.sin(angle)])
    speed = np.linspace(0.2, 1.0, 12)
    v = speed[:, None] * np.column_stack([-np.sin(angle), np.cos(angle)])
    found = pf.analysis.position_gain_bound(circle(), q, v)
    g = np.sqrt(M2 * np.cos(angle) ** 2 + M1 * np.sin(angle) ** 2)
    g_slope = (M1 - M2) * np.sin(angle) * np.cos(angle) / g
    slope = [
        -M1 * (np.cos(angle) / g - np.sin(angle) * g_slope / g**2),
        M2 * (-np.sin(angle) / g - np.cos(angle) * g_slope / g**2),
    ]
    close(found.c1, M2, ALGEBRA, "c1")
    close(found.c2, np.linalg.norm(slope, axis=0).max() / R, 1e-12, "c2")
    close(found.c4, 1.0, ALGEBRA, "c4")
    close(found.bound, found.c2 / np.sqrt(M2), ALGEBRA, "c2 c4 / sqrt(c1)")
    close(found.local, np.zeros(12), DERIVATIVE, "a constant M lets every gain do", scale=found.bound)
    twice = pf.analysis.position_gain_bound(circle(), q, 2 * v)
    close(twice.bound, 2 * found.bound, ALGEBRA, "twice as fast")
    one = pf.analysis.position_gain_bound(circle(), q[3], v[3])
    assert np.ndim(one.local) == 0 and one.bound <= found.bound


def telescope(*constraints) -> pf.Mechanism:
    """A turning rod on which a mass slides; the inertia of the turn is 1 + mass r^2."""
    mass = pf.Parameter("mass", 1.0, "kg")
    return pf.mechanism(
        "telescope",
        [pf.body("rod", 1.0, inertia=1.0), pf.body("mass", mass)],
        [pf.joint("turn", "revolute", "world", "rod"), pf.joint("r", "prismatic", "rod", "mass", axis=(1, 0, 0))],
        constraints=constraints,
        parameters=[mass],
        gravity=(0, 0, 0),
    )


def test_growing_inertia_needs_gain_and_shrinking_inertia_none():
    """In the metric of kinetic energy the error of the turn grows at r r_dot / (1 + r^2), half the relative rate of M."""
    for rate in (0.7, -0.7):
        found = pf.analysis.position_gain_bound(telescope(), {"r": 0.8}, {"r": rate})
        close(found.local, max(0.8 * rate / 1.64, 0.0), DERIVATIVE, "half of M_dot over M", scale=1)
        assert found.bound > abs(found.local)


def test_the_bound_depends_on_parameters_and_time():
    """A heavier mass raises the bound; a row that changes from the turn to the slide with time first leaves the slide free."""
    masses = np.array([0.5, 2.0])
    found = pf.analysis.position_gain_bound(telescope(), {"r": 0.8}, {"r": 0.7}, parameters={"mass": masses})
    close(found.local, masses * 0.8 * 0.7 / (1 + masses * 0.64), DERIVATIVE, "of each mass", scale=1)
    m = telescope(pf.nonholonomic("row", lambda k: ca.cos(k.t) * k.v[0] + ca.sin(k.t) * (k.v[1] - 0.7)))
    for t, expected in ((0.0, 0.0), (np.pi / 2, 0.8 * 0.7 / 1.64)):
        found = pf.analysis.position_gain_bound(m, {"r": 0.8}, {"r": 0.7}, t=t)
        close(found.local, expected, DERIVATIVE, f"at t = {t:.2g}", scale=1)


def weighted() -> dict:
    """P and W, traced once."""
    made: dict = {}
    return {"P": lambda T: reduced_quasi_velocity(T, made.setdefault("x", quasi_velocity(T))).P, "W": lambda T: made["x"].W}


def drawn(random: np.random.Generator, m: pf.Mechanism, parts: dict) -> dict:
    """Values of the parts at a random state on the constraints, and that state."""
    x = pf.assemble(m, random.normal(size=m.nq), random.normal(size=m.nv), backend="numpy")
    return pf.compile_terms(m, parts, backend="numpy", lanes=1)(x.q, x.v) | {"q": x.q, "v": x.v}


@given(arm=arms(least=2, most=3))
@settings(max_examples=10)
def test_local_bound_is_half_the_rate_of_inertia(arm):
    """Largest eigenvalue of M_dot / 2 relative to M within the null space of A; the choice of factor does not matter."""
    random, m = arm
    m = tip_on_plane(m)
    x = drawn(random, m, weighted() | {
        "M": lambda T: T.M,
        "M_dot": lambda T: ca.reshape(ca.jtimes(ca.vec(ca.densify(T.M)), T.q, T.v), m.nv, m.nv),
    })  # fmt: skip
    N = np.linalg.solve(x["W"].T, np.linalg.eigh(x["P"])[1][:, -round(np.trace(x["P"])) :])  # N^T M N = 1
    expected = np.linalg.eigvalsh(N.T @ x["M_dot"] @ N / 2)[-1]
    for factor in FACTORS:
        found = pf.analysis.position_gain_bound(m, x["q"], x["v"], factor=factor)
        size = found.bound + np.linalg.cond(x["M"])
        close(found.local, expected, DERIVATIVE * np.linalg.cond(x["M"]), f"local, {factor}", scale=size)
        assert found.local <= found.bound * (1 + 1e-9)


@given(arm=arms(least=2, most=3))
@settings(max_examples=6)
@pytest.mark.parametrize("on_plane", [False, True], ids=["free", "on a plane"])
def test_error_falls_as_the_gain_less_the_bound(on_plane, arm):
    """On a motion with eps = 0, d ln |W_r^T e| / dt lies within -K_p +- c, whatever the mechanism. (45) (46)"""
    random, m = arm
    m = tip_on_plane(m) if on_plane else m
    x = drawn(random, m, weighted())
    gain, N = 3.0, np.linalg.solve(x["W"].T, x["P"])
    e = N @ random.normal(size=m.nv)
    e *= SMALL / np.linalg.norm(e)
    # The reference starts at q - e with the velocity x["v"] and has no acceleration; v is the velocity that eps = 0 requires.
    path = control.function_of_time(lambda t: [float(a) + float(b) * t for a, b in zip(x["q"] - e, x["v"], strict=True)], m.nq)
    law = control.tracking(path, velocity_gain=5.0, position_gain=gain)
    v = N @ x["W"].T @ (x["v"] - gain * e)
    r = pf.run(m, x["q"], v, duration=4 * STEP, step=STEP, control=law, backend="interpreter", correct_start=False)
    assert r.status == 0 and np.abs(r.eps).max() < 1e-9
    at = pf.compile_terms(m, weighted(), backend="numpy", lanes=1)(r.q.values, r.v.values)
    size = np.linalg.norm(np.einsum("tij,tkj,tk->ti", at["P"], at["W"], r.task_error.values), axis=1)
    fall = -np.log(size[3] / size[1]) / (2 * STEP)
    c = pf.analysis.position_gain_bound(m, r.q.values[2], r.v.values[2])
    allowed = RATE * (1 + c.bound) ** 2
    assert gain - c.local - allowed <= fall <= gain + c.bound + allowed
