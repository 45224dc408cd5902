"""Runs to an accuracy pass singular configurations in ordinary steps, and tell the error that they have there."""

from __future__ import annotations

import numpy as np
import scipy.integrate

import pfaffian as pf
from pfaffian import kernel
from pfaffian.kernel.program.program import callees_first
from pfaffian.simulate.step import attempt as trying
from pfaffian.states.system import as_system
from tests.simulations import simulation

G = 9.81
ROD = {"mass": 1.0, "com": (0.5, 0, 0), "inertia": 1 / 12}
HINGE = {"kind": "revolute", "axis": (0, -1, 0)}


def parallelogram() -> pf.Mechanism:
    """Two rods on the ground and one on top, all of 1 m."""
    bodies = [pf.body(name, **ROD) for name in ("left", "top", "right")]
    joints = [
        pf.joint("A", parent="world", child="left", **HINGE),
        pf.joint("B", parent="left", child="top", placement=(1, 0, 0), **HINGE),
        pf.joint("D", parent="world", child="right", placement=(1, 0, 0), **HINGE),
    ]
    ends = {"placement_a": (1, 0, 0), "placement_b": (1, 0, 0)}
    loop = pf.closure("C", body_a="top", body_b="right", **HINGE, **ends)
    return pf.mechanism("parallelogram", bodies, joints, constraints=[loop])


def slider_crank() -> pf.Mechanism:
    """Crank and coupler of 1 m, so that the slider passes below the hinge, where the coupler may also turn about it."""
    bodies = [pf.body("crank", **ROD), pf.body("coupler", **ROD), pf.body("slider", 2.0)]
    joints = [
        pf.joint("A", parent="world", child="crank", **HINGE),
        pf.joint("B", parent="crank", child="coupler", placement=(1, 0, 0), **HINGE),
        pf.joint("x", "prismatic", "world", "slider", axis=(1, 0, 0)),
    ]
    loop = pf.closure("C", body_a="coupler", body_b="slider", placement_a=(1, 0, 0), **HINGE)
    return pf.mechanism("slider-crank", bodies, joints, constraints=[loop])


def angle(f, q: float, v: float, times: np.ndarray) -> np.ndarray:
    """(2, times) an angle and its rate by SciPy.   f: (q, v) -> acceleration."""
    rate = lambda t, y: [y[1], f(*y)]  # noqa: E731
    return scipy.integrate.solve_ivp(rate, times[[0, -1]], [q, v], "DOP853", times, rtol=1e-13, atol=1e-13).y


def of_crank(q: float, v: float) -> float:
    """The acceleration of the crank of the slider-crank, whose slider is at 2 cos q."""
    s, c = np.sin(q), np.cos(q)
    inertia, slope = 1 / 3 + 1 / 12 + 10.25 * s**2 + 0.25 * c**2, 20 * s * c
    return (-G * c - slope * v**2 / 2) / inertia


def test_parallelograms_fall_through_the_flat_configuration_in_ordinary_steps():
    """Their closure loses a row there. Steps that began nearby became as short as the distance from there, and three times as
    many."""
    times, begins = np.linspace(0, 1.0, 11), np.linspace(1.05, 1.3, 12)
    exact = np.array([angle(lambda q, v: -2 * G * np.cos(q) / (5 / 3), a, 0.0, times)[0] for a in begins])
    m = parallelogram()
    r = pf.run(m, {"A": begins}, times=times, accuracy=1e-9, error=True, record=["q", "v"])
    off = np.abs(r.q.transpose("run", "time", ...).values[:, :, 0] - exact)
    told = r.error.transpose("run", ...).values.max(axis=(1, 2))
    assert (exact[:, -1] < 0).all(), "they pass the configuration"
    assert r.steps.values.max() < 2 * r.steps.values.min(), r.steps.values
    true = off.max(axis=1)
    assert (true <= 3 * told).mean() > 0.9 and (true <= 30 * told).all() and max(*true, *told) <= 1e-9, (true, told)


def test_the_error_of_passages_is_told():
    """A record within 1e-4 rad of such a configuration would be as uncertain as rounding there."""
    random, times = np.random.default_rng(5), np.linspace(0, 1.2, 7)
    q, v = random.uniform(-0.9, 0.9, 24), random.uniform(4, 9, 24)
    start = np.stack([q, -2 * q, 2 * np.cos(q)], axis=1), np.stack([v, -2 * v, -2 * np.sin(q) * v], axis=1)
    exact = np.array([angle(of_crank, *one, times) for one in zip(q, v, strict=True)])
    passages = np.diff(np.floor((exact[:, 0] - np.pi / 2) / np.pi), axis=1) != 0
    assert passages.any(axis=1).sum() > 12, "most runs pass such a configuration"
    for accuracy in (1e-5, 1e-7):
        r = pf.run(slider_crank(), *start, times=times, accuracy=accuracy, error=True, record=["q", "v"])
        q_found = r.q.transpose("run", "time", ...).values[:, :, 0]
        true, told = np.abs(q_found - exact[:, 0]).max(axis=1), r.error.transpose("run", ...).values.max(axis=(1, 2))
        assert (true <= accuracy).all() and (true <= 3 * told).mean() > 0.9 and (true <= 30 * told).all(), true / told


def test_the_error_of_passages_adds_a_seventh_to_the_text_of_a_step(monkeypatch):
    """What a correction leaves of both differences of dop853 is written once: it was a fifth when written for each."""
    s = simulation(as_system(parallelogram()), pf.Scheme(integrator="dop853"))
    operations = list[int]()
    for _ in range(2):
        step = kernel.compile_rollout(lambda: trying.attempt(s), backend="numpy").step
        operations.append(sum(len(program.steps) for program in callees_first((step,))))
        monkeypatch.setattr(trying, "_corrected_error", lambda s, error, *_: error)
    assert operations[1] < operations[0] < 1.15 * operations[1], operations
