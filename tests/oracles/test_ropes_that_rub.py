"""Capstan, band brake and worm: chains of joints whose friction follows their loads, beside closed forms."""

from __future__ import annotations

import numpy as np
import pytest

import pfaffian as pf
from tests.tolerance import ALGEBRA, close

F = pf.forces
CREEP = 1e-9
"""Speed below which friction is smooth [rad/s]; at 1 rad/s its coefficient is 5e-19 off."""
R = 0.15


def band(mu: float, angle: float, shoes: int, drum_turns: bool) -> pf.Mechanism:
    """A band of shoes on a drum, joined by rods; they turn about its axis, and press on its rim.

    A pin of radius R carries N across and the friction D along the rim; with D = c hypot(N, D), D = mu N for c = sin(atan mu).
    """
    c, places = np.sin(np.arctan(mu)), np.linspace(0, angle, shoes)
    bodies, joints, losses, rods = [pf.body("drum", 5.0, inertia=0.2)], [], [], []
    kind = "revolute" if drum_turns else "fixed"
    joints.append(pf.joint("drum", kind, "world", "drum", axis=(0, 0, 1)))
    for i, place in enumerate(places):
        bodies.append(pf.body(f"s{i}", 0.0, inertia=1e-9))
        joints.append(pf.joint(f"s{i}", "revolute", "drum", f"s{i}", axis=(0, 0, 1)))
        losses.append(F.pin_friction(f"rub{i}", f"s{i}", c, R, smooth=CREEP))
        if i:
            ends = [R * np.array([np.cos(x), np.sin(x), 0]) for x in (places[i - 1], place)]
            length = float(np.linalg.norm(ends[1] - ends[0]))
            rods.append(pf.closure(f"rod{i}", "distance", f"s{i - 1}", f"s{i}", placement_a=ends[0], placement_b=ends[1],
                                   length=length))  # fmt: skip
    return pf.mechanism("band", bodies, joints, constraints=rods, forces=losses, gravity=(0, 0, 0))


def ratio(mu: float, angle: float, shoes: int) -> float:
    """Of the tensions at both ends: at each shoe (cos h + mu sin h) / (cos h - mu sin h), half of it at the first and last,
    where the ends are tangents; h is half the angle between two shoes. It tends to exp(mu angle)."""
    h = angle / (shoes - 1) / 2
    return float(((np.cos(h) + mu * np.sin(h)) / (np.cos(h) - mu * np.sin(h))) ** (shoes - 1))


def tangent(i: int, at: float, size: float, sign: float) -> pf.Wrench:
    """A pull of the given size at shoe i along the rim, in the direction of growing angles if the sign is 1."""
    pull = sign * size * np.array([-np.sin(at), np.cos(at), 0])
    return pf.wrench(f"end{i}", f"s{i}", [*pull, 0, 0, 0], point=(R * np.cos(at), R * np.sin(at), 0))


@pytest.mark.parametrize(("mu", "angle"), [(0.3, np.pi), (0.12, 5 * np.pi)])
def test_a_capstan_holds_by_the_angle_of_its_rope(mu: float, angle: float) -> None:
    """A load of 70 N at the far end needs the ratio of tensions when it is hauled, and its inverse when it is lowered."""
    shoes = 9
    m, load = band(mu, angle, shoes, False), 70.0
    for w in (1.0, -1.0):
        hauled = load * ratio(mu, angle, shoes) ** w
        ends = [tangent(0, 0.0, load, -1), tangent(shoes - 1, angle, hauled, 1)]
        loaded = m.with_(forces=[*m.forces, *ends])
        v = np.full(shoes, w)
        moved = pf.mass_matrix(loaded) @ pf.forward_dynamics(loaded, np.zeros(shoes), v).v_dot
        close(moved.sum() / R, 0.0, 1e4 * ALGEBRA, "force left over", load)
    many = [ratio(mu, angle, n) for n in (9, 90, 900)]
    assert abs(many[2] / np.exp(mu * angle) - 1) < 1e-3 * abs(many[0] / np.exp(mu * angle) - 1) + 1e-12


@pytest.mark.parametrize("sense", [1.0, -1.0])
def test_a_band_brake_brakes_by_the_difference_of_its_tensions(sense: float) -> None:
    """One end of the band is anchored, the other one pulled by 40 N; it brakes more where the drum pulls away from this end."""
    mu, angle, shoes, pull = 0.25, 1.3 * np.pi, 7, 40.0
    m = band(mu, angle, shoes, True)
    post = R * np.array([np.cos(angle) - np.sin(angle), np.sin(angle) + np.cos(angle), 0])
    rim = R * np.array([np.cos(angle), np.sin(angle), 0])
    anchor = pf.closure(
        "anchor", "distance", "world", f"s{shoes - 1}", placement_a=tuple(post), placement_b=tuple(rim), length=R
    )
    m = m.with_(constraints=[*m.constraints, anchor], forces=[*m.forces, tangent(0, 0.0, pull, -1)])
    w = 20.0 * sense
    v = np.r_[w, np.full(shoes, -w)]  # the shoes stand still
    a = pf.forward_dynamics(m, np.zeros(shoes + 1), v).v_dot
    torque = 0.2 * a[0]
    far = pull * ratio(mu, angle, shoes) ** -sense
    close(torque, (far - pull) * R, 1e5 * ALGEBRA, "torque of the brake", pull * R)
    assert np.sign(torque) == -sense


@pytest.mark.parametrize("mu", [0.04, 0.15])
def test_efficiency_of_a_worm(mu: float) -> None:
    """A worm between thrust bearings moves the rim of a wheel, which it meets as a nut that only slides.

    eta = tan l / tan(l + phi) forwards; backwards tan(l - phi) / tan l, below zero where it locks itself.
    """
    r, pitch, rim, load = 0.012, 0.0015, 0.05, 12.0
    bodies = [pf.body("rack", 0.3), pf.body("worm", 0.4, inertia=2e-4), pf.body("wheel", 2.0, inertia=4e-3)]
    joints = [
        pf.joint("rack", "prismatic", "world", "rack", axis=(1, 0, 0)),
        pf.joint("thread", "helical", "rack", "worm", axis=(-1, 0, 0), pitch=pitch),
        pf.joint("wheel", "revolute", "world", "wheel", axis=(0, 0, 1)),
    ]
    bearing = pf.closure("bearing", "revolute", "world", "worm", axis=(1, 0, 0))
    mesh = pf.holonomic("mesh", lambda k: k.joint("rack") - rim * k.joint("wheel"))
    thread = F.screw_friction("flank", "thread", mu, r, smooth=CREEP)
    m = pf.mechanism("worm gear", bodies, joints, constraints=[bearing, mesh], forces=[thread], gravity=(0, 0, 0),
                     actuators=[pf.actuator("motor", "thread"), pf.actuator("drag", "wheel")])  # fmt: skip
    l, phi = np.arctan(pitch / r), np.arctan(mu)
    for w, factor in ((3.0, np.tan(l + phi)), (-3.0, np.tan(l - phi))):
        v = np.array([pitch * w, w, pitch * w / rim])
        driving = load / rim * r * factor
        a = pf.forward_dynamics(m, np.zeros(3), v, [driving, -load]).v_dot
        close(a, np.zeros(3), 1e5 * ALGEBRA, "acceleration at constant speed", load / 4e-3)
        if w > 0:
            power = load * v[2] / (driving * w)
            assert power == pytest.approx(np.tan(l) / np.tan(l + phi), rel=1e-9)
    assert (np.tan(l - phi) < 0) == (mu > pitch / r), "the worm locks itself by its lead angle"
