"""Constraints that draw the state back to themselves, against the exponentials of [konz25 (A.10)-(A.13)]."""

from __future__ import annotations

import warnings

import casadi as ca
import numpy as np
import pytest

import pfaffian as pf
from tests.tolerance import close

soft = pf.constraints.stabilised
HOW = {"duration": 1.0, "step": 2e-3, "every": 10, "backend": "interpreter"}


def returned(t: np.ndarray, start: float, rate: float, damping: float, stiffness: float) -> np.ndarray:
    """phi of phi'' + damping phi' + stiffness phi = 0 from its start: by the roots of its polynomial."""
    a, b = np.roots([1, damping, stiffness]) + np.array([0, 1e-7])  # a double root is two that are near
    second = (rate - a * start) / (b - a)
    return ((start - second) * np.exp(a * t) + second * np.exp(b * t)).real


def fork(*constraints) -> pf.Mechanism:
    """Two pendulums on one carriage, whose tips a rod could join."""
    bodies = [pf.body("cart", 2.0), *(pf.body(n, 0.7, com=(0, 0, -0.3), inertia=0.02) for n in ("left", "right"))]
    joints = [
        pf.joint("x", "prismatic", "world", "cart", axis=(1, 0, 0)),
        pf.joint("l", "revolute", "cart", "left", axis=(0, 1, 0)),
        pf.joint("r", "revolute", "cart", "right", axis=(0, 1, 0), placement=(0.5, 0, 0)),
    ]
    return pf.mechanism("fork", bodies, joints, constraints=constraints)


def rod(length: float):
    ends = {f"placement_{x}": (0, 0, -0.6) for x in "ab"}
    return pf.closure("rod", "distance", "left", "right", length=length, **ends)


def between(k: pf.Kinematics) -> ca.SX:
    return ca.norm_2(k.position("right", (0, 0, -0.6)) - k.position("left", (0, 0, -0.6)))


@pytest.mark.parametrize("rates", [{"damping": 6.0}, {"damping": 3.0, "stiffness": 40.0}])
def test_a_rod_of_the_wrong_length_settles(rates):
    """A closure that the start is off by 4 cm and as fast, on a machine that swings under it."""
    r = pf.run(fork(soft(rod(0.46), **rates)), [0.1, 0.2, 0.2], [0.3, 1.0, 1.5], outputs={"length": between}, **HOW)
    off = r.length.values**2 - 0.46**2  # the closure's residual but for a factor
    y = pf.compile_terms(fork(), {"J": lambda T: ca.jacobian(between(T.kinematics) ** 2, T.q)}, backend="numpy", lanes=1)
    first = (y(r.q.values[0])["J"] @ r.v.values[0]).item()
    damping, stiffness = rates["damping"], rates.get("stiffness", rates["damping"] ** 2 / 4)
    wanted = returned(r.time.values, off[0], first, damping, stiffness)
    assert abs(off[0]) > 0.03 and abs(first) > 0.1
    close(off, wanted, 1e-6, "the length", scale=[abs(off[0])])
    assert not r.moved.values.any() and int(r.status) == 0


def test_a_speed_and_a_moving_place_settle():
    """phi(q, t) of a place that moves, and eta(q, v, t) that is not linear in v."""
    place = pf.holonomic("place", lambda k: k.q[0] - 0.2 * ca.sin(3 * k.t))
    r = pf.run(fork(soft(place, damping=8.0, stiffness=25.0)), [0.05, 0.2, -0.1], [1.0, 0, 0], **HOW)
    t = r.time.values
    off = r.q.values[:, 0] - 0.2 * np.sin(3 * t)
    close(off, returned(t, 0.05, 1.0 - 0.6, 8.0, 25.0), 1e-6, "a place", scale=[0.05])
    speed = pf.nonholonomic("speed", lambda k: ca.sumsqr(k.v[1:]) - 4)
    r = pf.run(fork(soft(speed, damping=5.0)), [0.0, 0.2, -0.1], [0.4, 2.0, 1.0], **HOW)
    off = (r.v.values[:, 1:] ** 2).sum(axis=1) - 4
    close(off, 1.0 * np.exp(-5 * r.time.values), 1e-6, "a speed", scale=[1.0])


def quaternion(**how) -> pf.Mechanism:
    """A top whose attitude is a quaternion of the caller's own, off unit length where it is `stabilised`."""

    def K(q: ca.SX) -> ca.SX:
        x, y, z, w = ca.vertsplit(q)
        return ca.blockcat([[w, -z, y], [z, w, -x], [-y, x, w], [-x, -y, -z]]) / 2

    c = pf.coordinates("a", ("x", "y", "z", "w"), ("p", "q", "r"), K, phi=lambda q: ca.sumsqr(q) - 1, start=(0, 0, 0, 1))
    T = pf.forces.kinetic_energy("T", lambda k: ca.dot(k.v, ca.DM([0.2, 0.5, 0.3]) * k.v) / 2)
    return pf.mechanism("top", [], [], coordinates=[soft(c, **how) if how else c], forces=[T])


@pytest.mark.parametrize("state", [lambda m: m, pf.reduction.hamiltonian])
def test_coordinates_return_to_their_condition(state):
    """|q|^2 - 1 falls as exp(-Lambda t), the direction of q and the velocities are those of the unit quaternion's run."""
    start = np.array([0.1, -0.3, 0.2, 0.9])
    unit = start / np.linalg.norm(start)
    v = [1.0, 3.0, -2.0]
    r = pf.run(state(quaternion(damping=4.0)), 1.1 * unit, v, **HOW)
    off = (r.q.values**2).sum(axis=1) - 1
    close(off, 0.21 * np.exp(-4 * r.time.values), 1e-7, "|q|^2 - 1", scale=[0.21])
    plain = pf.run(quaternion(), unit, v, **HOW)
    close(r.v.values, plain.v.values, 1e-9, "v")
    close(r.q.values / np.linalg.norm(r.q.values, axis=1, keepdims=True), plain.q.values, 1e-7, "the direction of q")
    with pytest.raises(pf.ModelError, match="coordinates that return to phi = 0"):
        pf.run(state(quaternion(damping=4.0)), unit, v, scheme=pf.Scheme(integrator="midpoint"), **HOW)


def test_what_steps_leave_off_does_not_add_up():
    """Rows that are only integrated drift away over a minute; stabilised ones stay where a step's error keeps them."""
    ring = pf.holonomic("ring", lambda k: ca.sumsqr(k.q) - 1)
    body, joint = pf.body("bead", 1.0), pf.joint("xy", "planar-translation", "world", "bead")
    bare = pf.constraints.acceleration_constraint("ring", lambda k: (2 * k.q.T, -2 * ca.sumsqr(k.v)))
    worst = {}
    for name, c in {"bare": bare, "soft": soft(ring, damping=10.0)}.items():
        m = pf.mechanism("bead", [body], [joint], constraints=[c], gravity=(0, -9.81, 0))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            r = pf.run(m, [1.0, 0.0], [0.0, 0.5], duration=40.0, step=0.02, every=100, backend="interpreter")
        worst[name] = np.abs((r.q.values**2).sum(axis=1) - 1)
    assert worst["bare"][-1] > 20 * worst["soft"].max() and worst["bare"][-1] > 1.5 * worst["bare"][10]


def test_wrong_ones_are_named():
    place = pf.holonomic("place", lambda k: k.q[0])
    speed = pf.nonholonomic("speed", lambda k: k.v[0])
    plain = pf.coordinates("c", ("a",), ("b",), lambda q: [[1.0]])
    for call, words in (
        (lambda: soft(place, damping=0.0), "stabilised 'place': damping must be above zero"),
        (lambda: soft(place, damping=-1.0), "stabilised 'place': damping"),
        (lambda: soft(place, damping=1.0, stiffness=0.0), "stabilised 'place': stiffness must be above zero"),
        (lambda: soft(speed, damping=1.0, stiffness=1.0), "stabilised 'speed'.*leave the stiffness out"),
        (lambda: soft(plain, damping=1.0), "stabilised 'c': these coordinates have no phi"),
        (lambda: soft(pf.servo(place, ["u"]), damping=1.0), "a closure, phi = 0, eta = 0 or coordinates are needed"),
        (lambda: soft(pf.constraints.active_while(place, lambda k: k.t < 1), damping=1.0), "stabilise it first"),
    ):
        with pytest.raises(pf.ModelError, match=words):
            call()
    late = pf.constraints.active_while(soft(place, damping=6.0), lambda k: k.t > 0.5)
    r = pf.run(fork(late), [0.1, 0, 0], [0, 0, 0], **HOW)
    off, t = r.q.values[:, 0], r.time.values
    assert np.abs(off[t <= 0.5] - 0.1).max() < 1e-12
    close(off[t >= 0.5], returned(t[t >= 0.5] - 0.5, 0.1, 0.0, 6.0, 9.0), 1e-2, "then it returns", scale=[0.1])
