"""Attitudes along a path, with any spin about the thrust, from functions and from samples. [konz25 (5.70)]"""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.interpolate import make_interp_spline
from scipy.spatial.transform import Rotation

import pfaffian as pf
from pfaffian import control
from pfaffian.control.attitude_path import spline
from tests.refused import refusals
from tests.tolerance import close

G, DRAG, T, H = 3.71, 0.3, 2.0, 0.01
"""Gravity of Mars [m/s^2], drag [1/s], duration [s] and step [s]."""


def position(t):
    """A climbing turn that tilts by up to 40 degrees and is never at rest."""
    return ca.vertcat(1.2 * ca.sin(1.5 * t), 0.8 * ca.cos(2 * t), 0.3 * t + 0.1 * ca.sin(2.5 * t))


def force(t: float, order: int) -> np.ndarray:
    """r'' + drag r' - a_G (order 0) or its derivative (order 1), written out."""
    a, b, c = 1.5, 2.0, 2.5
    d = lambda n: np.array([  # noqa: E731
        1.2 * a**n * np.sin(a * t + n * np.pi / 2), 0.8 * b**n * np.cos(b * t + n * np.pi / 2),
        0.3 * (n == 1) + 0.1 * c**n * np.sin(c * t + n * np.pi / 2),
    ])  # fmt: skip
    return d(2 + order) + DRAG * d(1 + order) + (np.array([0, 0, G]) if order == 0 else 0)


def spin(t):
    return 0.8 - 1.5 * t + ca.sin(3 * t) if isinstance(t, ca.SX) else 0.8 - 1.5 * t + np.sin(3 * t)


def tilted(z: np.ndarray, heading: float) -> np.ndarray:
    """The attitude (3, 3) of thrust along z whose x axis lies in the vertical plane of the heading."""
    x = np.cross([-np.sin(heading), np.cos(heading), 0.0], z)
    x /= np.linalg.norm(x)
    return np.stack([x, np.cross(z, x), z], axis=1)


def integrated(heading: float, w_z) -> tuple[np.ndarray, np.ndarray]:
    """Rotations (n, 3, 3) and w (n, 3) from (5.70), row by row as printed, by SciPy."""

    def rates(t, x):
        R_x, R_y = x.reshape(2, 3)
        f, f_dot = force(t, 0), force(t, 1)
        R_z = f / np.linalg.norm(f)
        R_z_dot = (f_dot - R_z * (f_dot @ R_z)) / np.linalg.norm(f)
        w_x, w_y = -R_y @ R_z_dot, R_x @ R_z_dot
        return np.r_[w_z(t) * R_y - w_y * R_z, w_x * R_z - w_z(t) * R_x]

    f = force(0.0, 0)
    start = tilted(f / np.linalg.norm(f), heading)
    times = H * np.arange(round(T / H) + 1)
    found = solve_ivp(rates, (0, T), start[:, :2].T.ravel(), t_eval=times, rtol=1e-11, atol=1e-11).y.T.reshape(-1, 2, 3)
    third = np.cross(found[:, 0], found[:, 1])
    R = np.stack([found[:, 0], found[:, 1], third], axis=2)
    z_dot = np.array([(lambda f, g: (g - f * (f @ g) / (f @ f)) / np.linalg.norm(f))(force(t, 0), force(t, 1)) for t in times])
    w = np.stack(
        [-np.einsum("ni,ni->n", R[:, :, 1], z_dot), np.einsum("ni,ni->n", R[:, :, 0], z_dot), w_z(times) + 0 * times], 1
    )
    return R, w


def body_rates(q: np.ndarray, q_dot: np.ndarray) -> np.ndarray:
    """w = 2 conj(q) q_dot."""
    return 2 * (q[:, 3:] * q_dot[:, :3] - q_dot[:, 3:] * q[:, :3] - np.cross(q[:, :3], q_dot[:, :3]))


@pytest.mark.parametrize("case", ["chosen", "a number", "none"])
def test_the_attitude_is_that_of_the_printed_equations(case):
    turning, w_z = {"chosen": (spin, spin), "a number": (-1.3, lambda t: -1.3), "none": (0.0, lambda t: 0.0)}[case]
    values = control.turning_series(position, T, H, heading=0.7, turning=turning, gravity=G, drag=DRAG)
    q, rate, bend = values[:, 3:7], values[:, 10:14], values[:, 17:21]
    R, w = integrated(0.7, w_z)
    close(Rotation.from_quat(q).as_matrix(), R, 1e-7, "attitude", 1.0)
    close(body_rates(q, rate), w, 1e-6, "angular velocity", 1.0)
    close((rate[2:] - rate[:-2]) / (2 * H), bend[1:-1], 2e-4, "acceleration", 10.0)


def test_samples_of_a_path_are_as_good_as_the_path():
    """At half the spacing the error of the spline is less than an eighth."""
    exact = control.turning_series(position, T, H, turning=spin, gravity=G, drag=DRAG)
    errors = []
    for n in (41, 81):
        times = np.linspace(0, T, n)
        r = np.array(ca.Function("r", [t := ca.SX.sym("t")], [position(t)]).map(n)(times[None])).T
        errors.append(np.abs(control.turning_series(r, T, H, turning=spin, gravity=G, drag=DRAG) - exact)[:, :7].max())
    assert errors[1] < 1e-6 and errors[1] < errors[0] / 8, errors


@pytest.mark.parametrize("n", [6, 7, 9, 30])
def test_the_spline_is_that_of_scipy(n):
    y = np.random.default_rng(n).normal(size=(n, 2))
    at = np.linspace(0, n - 1, 97)
    known = make_interp_spline(np.arange(n), y, k=5)
    for order, found in enumerate(spline(y, at)):
        close(found, known(at, order), 1e-9, f"derivative {order}", np.abs(known(at, order)).max())


def test_samples_must_end_with_the_path():
    """A step whose last sample is not at the end of the path is refused; `path_end` gives the heading that resulted."""
    with pytest.raises(pf.ModelError, match=r"every 0.3 s would end at t = 2.1 s, but the path ends at 2 s; take .* 0.28571"):
        control.turning_series(position, T, 0.3, gravity=G)
    values = control.turning_series(position, T, H, heading=0.7, turning=spin, gravity=G, drag=DRAG)
    R, w = integrated(0.7, spin)
    end = control.path_end(values, H)
    assert end.time == pytest.approx(T) and end.heading == pytest.approx(np.arctan2(R[-1, 1, 0], R[-1, 0, 0]), abs=1e-6)
    assert end.tilt == pytest.approx(np.arccos(R[-1, 2, 2]), abs=1e-6) and end.rate == pytest.approx(
        np.linalg.norm(w[-1]), rel=1e-5
    )
    t = ca.SX.sym("t")
    v = np.array(ca.Function("v", [t], [ca.jacobian(position(t), t)])(T)).ravel()
    assert end.speed == pytest.approx(np.linalg.norm(v)) and end.position[2] == pytest.approx(0.3 * T + 0.1 * np.sin(2.5 * T))


@pytest.mark.parametrize("heading", [0.6, -2.4, 3.0])
@pytest.mark.parametrize("pull", [(4.0, -7.0, 3.0), (-6.0, 2.0, -15.0), (0.0, 9.0, -4.0), (0.0, 0.0, 0.0)])
def test_the_heading_is_that_of_a_quadcopter_reference(pull, heading):
    """Of a start that is tilted, upside down or level: `turning_series`, `quadcopter_reference` and `path_end` agree."""
    way = lambda t: [0.5 * a * t**2 + 0.1 * t**5 for a in pull]  # noqa: E731
    values = control.turning_series(way, 0.2, 0.01, heading=heading, gravity=G)
    f = np.array(pull) + [0, 0, G]
    close(Rotation.from_quat(values[0, 3:7]).as_matrix(), tilted(f / np.linalg.norm(f), heading), 1e-12, "attitude", 1.0)
    t = ca.SX.sym("t")
    other = control.quadcopter_reference(way, heading, gravity=G).at(t, ca.SX(0, 1)).value
    q = np.array(ca.Function("q", [t], [other])(0.0)).ravel()[3:7]
    assert abs(q @ values[0, 3:7]) == pytest.approx(1, abs=1e-12)
    assert control.path_end(values[:1], 0.01).heading == pytest.approx(heading, abs=1e-12)


DROP = -G / 2 * np.outer(np.linspace(0, T, 41) ** 2, [0, 0, 1])
WRONG = {
    "few samples": (lambda: control.turning_series(np.zeros((5, 3)), T, H), "samples .n, 3., 6 or more"),
    "samples of two": (lambda: control.turning_series(np.zeros((9, 2)), T, H), "samples .n, 3., 6 or more"),
    "falling samples": (lambda: control.turning_series(DROP, T, H, gravity=G), "free fall"),
    "two turnings": (lambda: control.turning_series(position, T, H, turning=lambda t: [t, t]), "must give 1 numbers"),
    **{f"no {name}": (lambda name=name: control.turning_series(position, **{"duration": T, "step": H, name: "x"}),
                     f"^turning_series: {name}: 'x' is not") for name in ("duration", "step", "gravity", "drag", "heading")},
    "no series": (lambda: control.path_end(np.zeros((3, 7)), H), "series .samples, 21."),
}  # fmt: skip


test_wrong_series_are_named = refusals(WRONG)
