"""The quarter car of the zoo against NumPy: rest and vibration, from energy and constraints of four bodies in space."""

from __future__ import annotations

import numpy as np
from scipy.linalg import eigh, null_space

import pfaffian as pf
from tests.tolerance import close

G, ARM, TALL, LOW = 9.81, 0.4, 0.3, 0.15
RUBBER = np.array([8e5, 8e6, 8e6, 120.0, 3000 + 8e6 * 0.12**2, 3000 + 8e6 * 0.12**2])
"""Stiffness of two bushings as one: translations [N/m], turns [N m/rad]."""

BODIES = {"lower": (4.0, (0, ARM / 2, 0), (4 * ARM**2 / 12, 0.02, 4 * ARM**2 / 12)),
          "upper": (3.0, (0, ARM / 2, 0), (3 * ARM**2 / 12, 0.02, 3 * ARM**2 / 12)),
          "upright": (12.0, (0, 0, TALL / 2), (0.2, 0.2, 0.2)),
          "wheel": (16.0, (0, 0.12, TALL / 2), (0.5, 0.0, 0.5))}  # fmt: skip
"""Masses, mass centres and moments of inertia. The wheel moves with the upright, except that it spins freely about y."""

DIFFERENCE = 1e-6
"""Relative error of a frequency from second differences of step 1e-6 of the energy's slopes."""


def turned(r):
    """Rotation by a vector r, which may be complex."""
    W = np.array([[0, -r[2], r[1]], [r[2], 0, -r[0]], [-r[1], r[0], 0]])
    a = np.sqrt(r @ r + 1e-40)
    return np.eye(3) + np.sin(a) / a * W + (1 - np.cos(a)) / a**2 * W @ W


def frames(x, at):
    """Ride height, and position and rotation of each body, after small displacements x (19,) from the state `at`."""
    ride, found = at["ride"] + x[0], {}
    for i, name in enumerate(("lower", "upper", "upright")):
        p, R = at[name]
        d = x[1 + 6 * i : 7 + 6 * i]
        found[name] = p + d[:3], R @ turned(d[3:])
    found["wheel"] = found["upright"]
    return ride, found


def energy(x, at):
    ride, found = frames(x, at)
    low = np.array([0, 0, LOW + ride])
    V = 300 * G * ride + sum(mass * G * (found[n][0] + found[n][1] @ np.array(c))[2] for n, (mass, c, _) in BODIES.items())
    for name, up in (("lower", 0.0), ("upper", TALL)):
        p, R = found[name]
        d, c = p - low - [0, 0, up], RUBBER[3:]
        V += RUBBER[:3] @ d**2 / 2 + (c.sum() / 2 - c) @ (1 - np.diag(R))
    p, R = found["lower"]
    coil = low + [0, 0.25, 0.5] - p - R @ [0, 0.25, 0]
    p, R = found["upright"]
    sunk = p + R @ [0, 0.12, TALL / 2] - [0, ARM + 0.12, 0.3]
    return V + 45000 / 2 * (np.sqrt(coil @ coil) - 0.5 - 4700 / 45000) ** 2 + np.array([1e5, 1e5, 2e5]) @ sunk**2 / 2


def closed(x, at):
    """Residuals of both balls and of the tie rod."""
    ride, found = frames(x, at)
    (p1, R1), (p2, R2), (p3, R3) = (found[n] for n in ("lower", "upper", "upright"))
    rod = p3 + R3 @ [-0.12, 0, TALL / 2] - [-0.12, 0, LOW + ride + TALL / 2]
    return np.concatenate([p1 + R1 @ [0, ARM, 0] - p3, p2 + R2 @ [0, ARM, 0] - p3 - R3 @ [0, 0, TALL], [rod @ rod - ARM**2]])


def slope(f, x, *more):
    """Derivative of f by complex steps, exact up to rounding."""
    return np.array([np.imag(f(x + 1e-30j * way, *more)) / 1e-30 for way in np.eye(len(x))]).T


def inertia(at):
    """Mass matrix (19, 19) of the displacements x at rest."""
    M = np.zeros((19, 19))
    M[0, 0] = 300
    for name, (mass, c, J) in BODIES.items():
        Jp = slope(lambda x, n=name, c=c: frames(x, at)[1][n][0] + frames(x, at)[1][n][1] @ np.array(c), np.zeros(19))
        i = 4 + 6 * ("lower", "upper", "upright", "wheel").index(name if name != "wheel" else "upright")
        M += mass * Jp.T @ Jp
        M[i : i + 3, i : i + 3] += np.diag(J)
    return M


def test_rest_and_vibration_follow_from_energy_and_constraints():
    m, _ = pf.read("zoo:quarter_car")
    found = pf.equilibrium(m)
    bodies = pf.forward_kinematics(m, found.q)
    at = {n: (bodies[n].position, bodies[n].rotation) for n in ("lower", "upper", "upright")} | {"ride": found.named["ride"]}
    still = np.zeros(19)
    assert np.abs(closed(still, at)).max() < 1e-11
    A, g = slope(closed, still, at), slope(energy, still, at)
    multipliers = np.linalg.lstsq(A.T, -g, rcond=None)[0]
    assert np.abs(g + A.T @ multipliers).max() < 1e-6 * 300 * G, "the forces are in balance"
    whole = lambda x: slope(energy, x, at) + slope(closed, x, at).T @ multipliers  # noqa: E731
    H = np.array([(whole(1e-6 * way) - whole(-1e-6 * way)) / 2e-6 for way in np.eye(19)])
    Z = null_space(A)
    squares = eigh(Z.T @ (H + H.T) @ Z / 2, Z.T @ inertia(at) @ Z, eigvals_only=True)
    assert found.stiffness.shape == (13,) and abs(found.stiffness[0]) < 1e-3, "the wheel spins freely"
    close(found.hertz[1:], np.sqrt(squares) / (2 * np.pi), DIFFERENCE, "frequencies", np.sqrt(squares) / (2 * np.pi))
    assert 1.0 < found.hertz[1] < 1.5 and 10 < found.hertz[2] < 15, "body and wheel hop of a car"
