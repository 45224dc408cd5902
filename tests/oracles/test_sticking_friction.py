"""Friction that sticks in several joints which share one motion, against statics by hand and against its own conditions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np
import pytest

import pfaffian as pf
from pfaffian import forces
from pfaffian.dynamics import load_equations
from tests.tolerance import PEER

G = 9.81
INTERPRETED: Any = {"backend": "interpreter"}
AT_REST = 1e-9
"""[m/s^2, rad/s^2] Acceleration that is rounding of forces of some 100 N."""

SCISSOR = Path(__file__).parents[2] / "examples" / "scissor_lift.yaml"


def wedge(flank: float, wall: float, slope: float, settle: float | None = 0.01) -> pf.Mechanism:
    """A wedge of 2 kg on a smooth floor, pushed under a block of 5 kg that slides along a wall.

    settle: of the friction at the flank; that at the wall sticks.
    """
    bodies = [pf.body("block", 5.0), pf.body("wedge", 2.0)]
    joints = [
        pf.joint("wall", "prismatic", "world", "block", axis=(0, 0, 1)),
        pf.joint("flank", "prismatic", "block", "wedge", axis=(np.cos(slope), 0, -np.sin(slope))),
    ]
    floor = pf.holonomic("floor", lambda k: k.pose("wedge").p[2])
    each = (("wall", wall, 0.01), ("flank", flank, settle))
    rub = [forces.guide_friction(f"at {n}", n, mu, settle=time) for n, mu, time in each]
    push = forces.thruster("push", "wedge", axis=(1, 0, 0))
    return pf.mechanism("wedge", bodies, joints, constraints=[floor], forces=rub, actuators=[push])


@pytest.mark.parametrize(("flank", "wall", "slope"), [(0.2, 0.1, 0.5), (0.05, 0.3, 0.7)])
def test_a_wedge_lifts_holds_and_slips(flank: float, wall: float, slope: float) -> None:
    """Newton's equations of wedge and block with both frictions at their limits, which also give the range that holds."""
    m, s, c = wedge(flank, wall, slope), np.sin(slope), np.cos(slope)

    def moving(sign: float, push: float) -> float:
        """The acceleration of the block if the wedge moves this way: unknown are flank force, wall force, wedge."""
        mu, across = sign * flank, sign * wall
        A = [[s + mu * c, 0, 2.0], [c - mu * s, -across, -5.0 * s / c], [s + mu * c, -1, 0]]
        return float(np.linalg.solve(A, [push, 5.0 * G, 0])[2] * s / c)

    def limit(sign: float) -> float:
        mu, across = sign * flank, sign * wall
        return 5 * G * (s + mu * c) / (c - mu * s - across * (s + mu * c))

    low, high = limit(-1), limit(1)
    pushes = np.array([low - 3, low + 0.01, (low + high) / 2, high - 0.01, high + 3])
    a = pf.forward_dynamics(m, np.zeros((5, 2)), np.zeros((5, 2)), pushes[:, None]).v_dot[:, 0]
    np.testing.assert_allclose(a[[0, 4]], [moving(-1, pushes[0]), moving(1, pushes[4])], rtol=PEER)
    np.testing.assert_allclose(a[1:4], 0, atol=AT_REST)


@pytest.mark.parametrize(("wall", "slope"), [(0.4, 0.7)])
def test_friction_that_holds_beside_friction_that_creeps(wall: float, slope: float) -> None:
    """At rest the flank has no friction yet. The wall holds the block by its own, up to the limit."""
    m, s, c = wedge(0.3, wall, slope, settle=None), np.sin(slope), np.cos(slope)
    low, high = (5 * G * s / (c + side * wall * s) for side in (1, -1))
    pushes = np.array([low + 0.01, (low + high) / 2, high - 0.01, high + 2])
    found = pf.forward_dynamics(m, np.zeros((4, 2)), np.zeros((4, 2)), pushes[:, None])
    np.testing.assert_allclose(found.v_dot[:3], 0, atol=AT_REST)
    across = np.linalg.solve([[s, 0, 2.0], [c, -wall, -5.0 * s / c], [s, -1, 0]], [pushes[3], 5.0 * G, 0])
    np.testing.assert_allclose(found.v_dot[3, 0], across[2] * s / c, rtol=PEER)


def test_a_scissor_lift_rests_on_the_friction_of_its_pins() -> None:
    """Four pins share one motion. Where they hold it, none carries more than its limit, and it is at rest; outside the range
    it moves, and then every pin is at its limit. The lift has a branch on which its arms lie along each other."""
    plain = pf.read(SCISSOR)[0]
    pins, mu, radius = ("a", "b", "platform", "cross"), 0.15, 0.03
    rub = [forces.pin_friction(f"pin {n}", n, mu, radius, settle=0.01) for n in pins]
    m = plain.with_(forces=[*plain.forces, *rub])
    q = pf.assemble(m, {"a": 0.6}, guess={"slide": 0.83, "b": 2.54, "platform": -2.54}, **INTERPRETED).q
    for push, rests in ((-742.0, True), (-752.0, True), (-400.0, False), (-1100.0, False)):
        found = pf.reaction_wrench(m, list(pins), q, None, [push])
        a = pf.forward_dynamics(m, q, None, [push]).v_dot
        for pin in pins:
            w = found[pin].wrench
            most = mu * radius * np.hypot(*w[:2])
            assert abs(w[5]) <= most * (1 + PEER)
            assert rests or abs(w[5]) == pytest.approx(most, rel=PEER)
        assert (np.abs(a) < AT_REST).all() == rests
    result = pf.run(m, q, u={"cylinder": -745.0}, v={"a": 0.05}, duration=0.3, step=1e-3, every=50, **INTERPRETED)
    assert (np.abs(result["v"].values[-1]) < AT_REST).all() and result["status"] == 0


def convex(random: np.random.Generator, n: int, rank: int, gain: float) -> tuple[Any, ...]:
    """Rates r0 + H Q of n joints that share `rank` motions, of levers from 0.1 to 10, and loads |w + G Q| by `gain`."""
    J = random.normal(size=(n, rank)) * 10 ** random.uniform(-1, 1, size=(n, 1))
    B = random.normal(size=(rank, rank))
    H, r0 = J @ (B @ B.T + 0.1 * np.eye(rank)) @ J.T, J @ random.normal(size=rank)
    w, change = random.normal(size=(n, 2)), random.normal(size=(n, 2, n))
    mu = 10 ** random.uniform(-1.5, 1, size=n) * np.median(np.abs(r0) / np.diag(H)) / np.hypot(*w.T)
    change *= gain / np.abs(np.linalg.eigvals(mu[:, None] * np.linalg.norm(change, axis=1))).max()
    return H / np.diag(H)[:, None], r0 / np.diag(H), mu, w, change


@pytest.mark.parametrize(("n", "rank", "gain"), [(2, 1, 0.05), (3, 1, 0.05), (4, 1, 0.05), (4, 4, 0.05), (4, 2, 0.5)])
def test_friction_is_found_however_many_joints_share_a_motion(n: int, rank: int, gain: float) -> None:
    """With gain 0.5 limits follow the friction so strongly that rounds come back to the same Q in one case of fifty."""
    random = np.random.default_rng(5)
    H, r0, mu, w, change = ca.SX.sym("H", n, n), *(ca.SX.sym(x, n) for x in ("r", "mu")), ca.SX.sym("w", n, 2), [
        ca.SX.sym("G", 2, n) for _ in range(n)]  # fmt: skip
    equations = [load_equations.Equation(i, mu[i], (ca.SX(1),), (w[i, :].T,), (change[i],), (r0[i], H[i, :])) for i in range(n)]
    f = ca.Function("f", [H, r0, mu, w, *change], list(load_equations.friction(equations)))
    for _ in range(150):
        given = convex(random, n, rank, gain)
        Q, faults = (np.array(x).ravel() for x in f(*given[:4], *given[4]))
        assert not faults.any()
        left, most = given[1] + given[0] @ Q, given[2] * np.linalg.norm(given[3] + given[4] @ Q, axis=1)
        np.testing.assert_allclose(Q, np.clip(Q - left, -most, most), atol=2 * load_equations.RESIDUAL * most.max())


def test_a_driven_joint_slides() -> None:
    """Friction does not change the rate of a crank that is turned at 2 rad/s, nor does it stop the crank."""
    bodies = [pf.body(n, 1.0, com=(0.15, 0, 0), inertia=0.05) for n in ("crank", "rod")]
    joints = [
        pf.joint("crank", "revolute", "world", "crank", axis=(0, -1, 0)),
        pf.joint("rod", "revolute", "crank", "rod", axis=(0, -1, 0), placement=(0.2, 0, 0)),
    ]
    drive = pf.holonomic("drive", lambda k: k.q[0] - 2.0 * k.t)
    pins = [forces.pin_friction(f"pin {j.name}", j.name, 0.2, 0.02, settle=0.01) for j in joints]
    m = pf.mechanism("driven", bodies, joints, constraints=[drive], forces=pins)
    state = [0.0, -1.2], [2.0, 1.0]
    w = pf.reaction_wrench(m, ["crank"], *state)["crank"].wrench
    friction = pf.compile_terms(m, {"Q": lambda T: T.losses.values}, **INTERPRETED)(*state)["Q"]
    assert friction[0] == pytest.approx(-0.2 * 0.02 * np.hypot(*w[:2]), rel=PEER)
    assert pf.forward_dynamics(m, *state).v_dot[0] == pytest.approx(0, abs=AT_REST)


def test_derivatives_where_friction_holds_and_where_it_slides() -> None:
    m, h = wedge(0.2, 0.1, 0.5), 1e-4
    for push in (30.0, 50.0):
        by_u = pf.derivatives(m, [0, 0], [0, 0], [push]).v_dot.u[:, 0]
        ends = [pf.forward_dynamics(m, [0, 0], [0, 0], [push + d]).v_dot for d in (-h, h)]
        np.testing.assert_allclose(by_u, (ends[1] - ends[0]) / (2 * h), atol=1e-6)


@pytest.mark.parametrize("speed", [1e-4, 0.3, -1.6, 0.0])
def test_inputs_and_accelerations_agree_where_friction_sticks(speed: float) -> None:
    """Also below the speed at which smooth friction would grow with the speed; what stands still is held by the input."""
    m = wedge(0.2, 0.1, 0.5)
    v = pf.assemble(m, [0, 0], {"wall": speed}, hold=["wall"], **INTERPRETED).v
    for rate in (0.0, 0.4, -2.0):
        a = pf.constraints.complete_acceleration(m, [0, 0], v, {"wall": rate})
        u = pf.inverse_dynamics(m, [0, 0], v, a).u
        np.testing.assert_allclose(pf.forward_dynamics(m, [0, 0], v, u).v_dot, a, atol=AT_REST)
