"""Concurrent control with undriven velocities eliminated, against the solution with the whole mass matrix."""

from importlib import import_module

import casadi as ca
import numpy as np
import pytest

import pfaffian as pf
from pfaffian import control
from pfaffian.control.undriven import driven, undriven
from pfaffian.kernel.program.passes import optimise
from pfaffian.kernel.program.trace import trace

ROUNDING = 1e-12
"""Tolerance of inputs, relative to the largest: two solutions with about a dozen velocities."""


def floating(pinned: bool = False) -> pf.Mechanism:
    """A hull with two arms of three joints that floats in the plane; `pinned` fixes a point of it."""
    bodies, joints = [pf.body("hull", 20.0, (0.02, 0.01, 0), 2.0)], [pf.joint("base", "planar", "world", "hull")]
    for side, y in (("left", 0.4), ("right", -0.3)):
        parent, at = "hull", (0.3, y, 0)
        for i in range(3):
            name = f"{side} {i}"
            bodies.append(pf.body(name, 3.0 - i, (0.2, 0.01 * i, 0), 0.1))
            joints.append(pf.joint(name, "revolute", parent, name, placement=pf.pose(at)))
            parent, at = name, (0.5, 0, 0)
    motors = [pf.actuator(j.name, j.name) for j in joints[1:]]
    pins = [pf.coincide("pin", "world", (0, 0, 0), "hull", (0, 0, 0))] if pinned else []
    return pf.mechanism("floating", bodies, joints, actuators=motors, constraints=pins, gravity=(0, 0, 0))


def outputs() -> list:
    how = {"stiffness": 4.0, "damping": 4.0, "at": (0.4, 0, 0), "axes": (0, 1)}
    return [control.output(f"{side} 2", "position", [1.0, y], **how) for side, y in (("left", 0.8), ("right", -0.7))]


def laws(m: pf.Mechanism, monkeypatch, **rest) -> tuple[list[ca.Function], list[int]]:
    """Inputs, faults and signals with and without elimination, and the operations of both."""
    law, T = control.concurrent(outputs(), **rest), pf.symbols(m)
    ask = lambda: law.law(T, ca.SX(0, 1), ca.SX(0, 1), ca.SX(0, 1))  # noqa: E731
    found = [ask()]
    monkeypatch.setattr(import_module("pfaffian.control.concurrent_law"), "driven", lambda T: None)
    found.append(ask())
    at = [T.q, T.v, T.u, m.p_symbols, T.t]
    fs = [ca.Function("law", at, [ca.densify(x) for x in (c.u, c.faults, c.signals["sigma_min"])]) for c in found]
    ops = [optimise(trace(ca.Function("u", at, [ca.densify(c.u), ca.densify(c.faults)]))).n_ops for c in found]
    return fs, ops


REST = {
    "inertia": {"rest_damping": 2.0},
    "weights": {"rest_damping": 2.0, "rest_weight": np.array([1.0, 2.0, 3.0, 0.5, 1.0, 0.1])},
}


@pytest.mark.parametrize("rest", REST)
def test_inputs_are_those_of_the_whole_mass_matrix(rest, monkeypatch):
    m, random = floating(), np.random.default_rng(3)
    fs, ops = laws(m, monkeypatch, **REST[rest])
    for _ in range(3):
        q, v = random.uniform(0.2, 0.8, m.nq), random.normal(size=m.nv)
        new, old = ([np.array(x) for x in f(q, v, np.zeros(m.nu), m.p_defaults, 0.3)] for f in fs)
        for x, y in zip(new, old, strict=True):
            assert np.abs(x - y).max() <= ROUNDING * max(np.abs(y).max(), 1e-3)
    assert ops[0] < 0.75 * ops[1]


def test_the_generalised_jacobian_keeps_the_momentum():
    """M_b (X r) + M_bs r = 0: motor rates carry the undriven velocities with them at constant momentum."""
    m, random = floating(), np.random.default_rng(4)
    T = pf.symbols(m)
    x = undriven(T, driven(T), ca.SX.eye(m.nv), ca.SX(m.nv, m.nv))
    f = ca.Function("x", [T.q, m.p_symbols], [T.M, x.G, x.share])
    M, G, share = (np.array(y) for y in f(random.normal(size=m.nq), m.p_defaults))
    assert np.abs(M[:3] @ G).max() <= ROUNDING * np.abs(M).max()
    assert np.abs(G[3:] - np.eye(6)).max() == 0
    assert (share[:3] > 0).all() and (share[:3] < 1).all() and np.abs(share[3:] - 1).max() <= ROUNDING


def test_constrained_machines_need_the_general_solution():
    assert driven(pf.symbols(floating())) == [3, 4, 5, 6, 7, 8]
    assert driven(pf.symbols(floating(pinned=True))) is None
