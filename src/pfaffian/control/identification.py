"""Numbers of a machine from measurements, by least squares, with how sure they are. [konz25 5.2.3]

Equations of motion are linear in masses, inertias and coefficients: A x = b, a row a sample. What is measured is noisy; where
that noise is in A too, an estimate is biased by it, and intervals do not say so.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pfaffian.errors import ModelError
from pfaffian.model.number import floats, named_float

SURE = 1.959963984540054
"""Standard deviations to either side that hold 95 in 100 of normal errors."""

APART = 1e-10
"""Singular values below this part of the largest, columns of length one, are none."""


class Estimate(NamedTuple):
    """x (k,), half the width of its 95 % interval (k,), its covariance (k, k), and the deviation of what is left (of b)."""

    value: np.ndarray
    half_width: np.ndarray
    covariance: np.ndarray
    deviation: float


def least_squares(A: Any, b: Any, names: Any = None) -> Estimate:
    """x with the least |A x - b|^2, and its 95 % interval for independent errors of b of one size.

        covariance = s^2 (A^T A)^-1,   s^2 = |A x - b|^2 / (n - k)

    A: (n, k), n > k.   b: (n,).   names: of the k numbers, for errors.
    Raises ModelError: other shapes; too few rows; numbers that the rows do not tell apart, and which.
    """
    A, b = floats(A, "least_squares: A"), floats(b, "least_squares: b")
    if A.ndim != 2 or b.shape != A.shape[:1] or not A.shape[1]:
        raise ModelError(f"least_squares: A (n, k) and b (n,) are needed, got {A.shape} and {b.shape}")
    n, k = A.shape
    words = [f"x[{i}]" for i in range(k)] if names is None else [str(name) for name in names]
    if len(words) != k:
        raise ModelError(f"least_squares: {k} names are needed, got {len(words)}")
    if n <= k:
        raise ModelError(f"least_squares: more than {k} rows are needed for {k} numbers, got {n}")
    length = np.linalg.norm(A, axis=0)
    length[length == 0] = 1.0
    U, s, V = np.linalg.svd(A / length, full_matrices=False)
    if s[-1] <= APART * s[0]:
        mixed = [w for w, part in zip(words, np.abs(V[-1]), strict=True) if part > 0.1 * np.abs(V[-1]).max()]
        raise ModelError(f"least_squares: the rows do not tell {', '.join(mixed)} apart; excite the machine in other ways")
    x = V.T @ (U.T @ b / s) / length
    left = A @ x - b
    variance = left @ left / (n - k)
    root = V.T / s / length[:, None]
    covariance = variance * root @ root.T
    return Estimate(x, SURE * np.sqrt(np.diag(covariance)), covariance, float(np.sqrt(variance)))


def propeller_bench(speed: Any, speed_rate: Any, current: Any) -> Estimate:
    """(p1, p2, p3) of varpi_dot + p1 varpi^2 = p2 i - p3, from a bench. [konz25 (5.13)]

    speed: varpi (n,) [rad/s].   speed_rate: (n,) [rad/s^2], as of a Savitzky-Golay filter.   current: i (n,) [A].
    Raises ModelError: as `least_squares`.
    """
    w, w_dot, i = (
        floats(x, f"propeller_bench: {n}") for n, x in (("speed", speed), ("rate", speed_rate), ("current", current))
    )
    return least_squares(np.column_stack([-(w**2), i, -np.ones_like(w)]), w_dot, ("p1", "p2", "p3"))


def bifilar_pendulum(
    angle: Any, rate: Any, acceleration: Any, *, mass: float, distance: float, length: float, gravity: float = 9.81
) -> Estimate:
    """(Theta, Upsilon) of a body that turns on two strings about the vertical. [konz25 (5.15)]

        Theta a'' + Upsilon a' + m g d^2 sin a / (4 sqrt(h^2 - d^2 / 2 (1 - cos a))) = 0

    angle, rate, acceleration: a (n,) [rad] and its derivatives.   mass: m [kg].   distance, length: d of and h along the
    strings [m].   gravity: g [m/s^2].
    Raises ModelError: strings that are not long enough for the angle; as `least_squares`.
    """
    a, a1, a2 = (
        floats(x, f"bifilar_pendulum: {n}") for n, x in (("angle", angle), ("rate", rate), ("acceleration", acceleration))
    )
    m, d, h, g = (
        named_float(x, f"bifilar_pendulum: {n}")
        for n, x in (("mass", mass), ("distance", distance), ("length", length), ("gravity", gravity))
    )
    under = h**2 - d**2 / 2 * (1 - np.cos(a))
    if not (under > 0).all():
        raise ModelError("bifilar_pendulum: strings of that length cannot turn so far; check angle, distance and length")
    return least_squares(np.column_stack([a2, a1]), -m * g * d**2 * np.sin(a) / (4 * np.sqrt(under)), ("Theta", "Upsilon"))


FLIGHT = ("com x", "com y", "com z", "Ixx", "Iyy", "Izz", "Ixy", "Ixz", "Iyz", "d_x", "d_z", "d_x l_z", "Ups_x",
          "Ups_z", "F_x", "F_y", "F_z", "tau_x", "tau_y", "tau_z")  # fmt: skip
"""What `flight` finds; the first three are m s [kg m]."""


def flight(v: Any, w: Any, v_dot: Any, w_dot: Any, up: Any, wrench: Any, *, mass: float, gravity: float = 9.81) -> Estimate:
    """Mass centre, inertia, drag and biases of a multicopter from a flight, the numbers `FLIGHT`. [konz25 5.2.3]

    The first six rows of (5.5) are linear in m s, Theta, d_x, d_z, d_x l_z, Upsilon_x, Upsilon_z and the biases; Upsilon is the
    whole lower right block of (5.4), as `linear_drag_matrix` has it.

    v, w: (n, 3) velocity [m/s] and angular velocity [rad/s], along the body's axes.   v_dot, w_dot: (n, 3) their rates.
    up: (n, 3) the vertical in the body, R^T e_z.   wrench: (n, 6) of the propellers on the body, with what their speeding up
    takes [N, N m].   mass: [kg].   gravity: [m/s^2].
    Raises ModelError: other shapes; as `least_squares`, with the numbers that the flight does not tell.
    """
    named = (("v", v), ("w", w), ("v_dot", v_dot), ("w_dot", w_dot), ("up", up))
    v, w, v1, w1, z = (floats(x, f"flight: {n}") for n, x in named)
    f, m = floats(wrench, "flight: wrench"), named_float(mass, "flight: mass")
    n = len(v)
    if not all(x.shape == (n, 3) for x in (v, w, v1, w1, z)) or f.shape != (n, 6):
        raise ModelError(f"flight: five arrays (n, 3) and a wrench (n, 6) are needed, got {v.shape} and {f.shape}")
    a = v1 + np.cross(w, v) + named_float(gravity, "flight: gravity") * z  # of the origin, without its weight
    A = np.zeros((n, 6, len(FLIGHT)))
    for i, e in enumerate(np.eye(3)):  # m s
        A[:, :3, i] = np.cross(w1, e) + np.cross(w, np.cross(w, e))
        A[:, 3:, i] = np.cross(e, a)
        A[:, i, 14 + i] = A[:, 3 + i, 17 + i] = -1.0
    for i, (j, k) in enumerate(((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))):  # Theta
        E = np.zeros((3, 3))
        E[j, k] = E[k, j] = 1.0
        A[:, 3:, 3 + i] = w1 @ E + np.cross(w, w @ E)
    A[:, 0, 9], A[:, 1, 9], A[:, 2, 10] = v[:, 0], v[:, 1], v[:, 2]
    A[:, 0, 11], A[:, 1, 11], A[:, 3, 11], A[:, 4, 11] = w[:, 1], -w[:, 0], -v[:, 1], v[:, 0]
    A[:, 3, 12], A[:, 4, 12], A[:, 5, 13] = w[:, 0], w[:, 1], w[:, 2]
    b = f.copy()
    b[:, :3] -= m * a
    return least_squares(A.reshape(-1, len(FLIGHT)), b.ravel(), FLIGHT)
