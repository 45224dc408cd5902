"""Mechanisms whose motion is known in closed form."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest
from scipy.special import ellipk

import pfaffian as pf
from pfaffian.dynamics.projection import projector
from tests.by_scipy import run_adaptive
from tests.random_mechanisms import Case, matrices
from tests.tolerance import ALGEBRA, INTEGRATED, close


@pytest.mark.parametrize("amplitude", [0.1, 1.0, 3.0])
def test_period_of_a_pendulum(amplitude):
    m = pf.mechanism(
        "pendulum",
        [pf.body("bob", 1.0, com=(0, 0, -1))],
        [pf.joint("pivot", "revolute", "world", "bob", axis=(0, 1, 0))],
    )
    period = 4 * np.sqrt(1 / 9.81) * ellipk(np.sin(amplitude / 2) ** 2)
    r = run_adaptive(m, [amplitude], times=[0, period / 4, period / 2, period], tolerance=1e-12)
    close(r.q.values[:, 0], [amplitude, 0, -amplitude, amplitude], INTEGRATED, "pendulum at quarters of its period")


def test_torque_free_top_keeps_energy_and_momentum():
    inertia = np.array([0.3, 0.5, 0.7])
    body = pf.body("top", 1.5, com=(0.1, -0.2, 0.05), inertia=inertia)
    m = pf.mechanism("top", [body], [pf.joint("flight", "free", "world", "top")], gravity=(0, 0, 0))
    v = np.array([0.1, 0.2, -0.1, 0.02, 4.0, 0.03])  # near the unstable axis, so that the top tumbles
    out = {
        "R": lambda k: k.rotation("top"),
        "w": lambda k: k.twist("top")[3:],
        "com": lambda k: k.position("top", body.com),
    }
    r = pf.run(m, None, v, duration=10.0, step=1e-3, every=50, outputs=out)
    R = r.R.values.reshape(len(r.time), 3, 3).transpose(0, 2, 1)
    L = np.einsum("tij,tj->ti", R, inertia * r.w.values)
    assert r.w.values[:, 1].min() < -3.9  # it has turned over
    close(L, np.broadcast_to(L[0], L.shape), INTEGRATED, "angular momentum of the top")
    close(r.energy, np.full(len(r.time), r.energy[0]), INTEGRATED, "energy of the top")
    rate = (r.com.values[-1] - r.com.values[0]) / 10
    straight = r.com.values[0] + np.outer(r.time.values, rate)
    close(r.com.values, straight, INTEGRATED, "straight motion of the mass centre")


def test_knife_edge_on_an_incline():
    """A skate on a slope spins evenly and drifts sideways on a cycloid; it never slides down for good."""
    g, spin = 3.0, 1.3
    m = pf.mechanism(
        "skate",
        [pf.body("skate", 2.0, inertia=0.4)],
        [pf.joint("ice", "planar", "world", "skate")],
        constraints=[pf.nonholonomic("blade", lambda k: k.twist("skate")[1])],
        gravity=(g, 0, -9.0),
    )
    r = pf.run(m, None, {"ice.wz": spin}, duration=6.0, step=1e-3, every=100)
    t = r.time.values
    x = g / (2 * spin**2) * np.sin(spin * t) ** 2
    y = g / (2 * spin**2) * (spin * t - np.sin(2 * spin * t) / 2)
    close(r.q.values, np.column_stack([x, y, spin * t]), INTEGRATED, "skate on a slope")
    assert (r["rank"] == 1).all()


def test_rolling_disc_runs_in_a_circle():
    """An upright disc rolls and turns at constant rates: its contact draws a circle of radius R roll / turn."""
    radius, turn, roll = 0.5, 0.7, 2.0
    bodies = [pf.body("frame"), pf.body("disc", 2.0, inertia=(0.125, 0.25, 0.125))]
    joints = [
        pf.joint("floor", "planar", "world", "frame", placement=pf.pose((0, 0, radius))),
        pf.joint("axle", "revolute", "frame", "disc", axis=(0, 1, 0)),
    ]
    # The lowest point of the disc is at rest: its velocity as a point of the disc, in the frame's axes.
    no_slip = pf.nonholonomic(
        "no slip",
        lambda k: (
            k.rotation("frame").T @ (k.velocity("disc") + ca.cross(k.twist("disc", "WORLD")[3:], ca.vertcat(0, 0, -radius)))
        )[:2],
    )
    m = pf.mechanism("disc", bodies, joints, constraints=[no_slip])
    r = pf.run(m, None, {"floor.vx": radius * roll, "floor.wz": turn, "axle": roll}, duration=5.0, step=1e-3, every=50)
    t, R = r.time.values, radius * roll / turn
    expected = np.column_stack([R * np.sin(turn * t), R * (1 - np.cos(turn * t)), turn * t, roll * t])
    close(r.q.values, expected, INTEGRATED, "rolling disc")


@pytest.mark.parametrize("angle", [0.0, 0.7, 2.5])
def test_particle_on_a_circle(angle):
    """[aghili05 (33)]: P and the centripetal acceleration A^+ b in closed form."""
    radius, speed = 1.7, 0.9
    bodies = [pf.body("slide"), pf.body("bead", 2.0)]
    joints = [
        pf.joint("x", "prismatic", "world", "slide", axis=(1, 0, 0)),
        pf.joint("y", "prismatic", "slide", "bead", axis=(0, 1, 0)),
    ]
    wire = pf.holonomic("wire", lambda k: (ca.sumsqr(k.position("bead")) - radius**2) / 2)
    m = pf.mechanism("bead", bodies, joints, constraints=[wire])
    c, s = np.cos(angle), np.sin(angle)
    case = Case(m, radius * np.array([c, s]), speed * np.array([-s, c]), np.zeros(0), 0.0)
    r = matrices(case, {
        "P": lambda T: projector(T).P,
        "particular": lambda T: projector(T).particular,
        "reaction": lambda T: pf.FORMULATIONS["projection"](T).reaction,
    })  # fmt: skip
    close(r["P"], np.array([[s * s, -s * c], [-s * c, c * c]]), ALGEBRA, "projector of the circle")
    inward = -(speed**2) / radius * np.array([[c], [s]])
    close(r["particular"], inward, ALGEBRA, "centripetal acceleration")
    close(r["reaction"], 2.0 * inward, ALGEBRA, "the wire pulls inward")
