"""Coordinates without joints: a circle in x and y, a rotation in nine numbers or three angles. [konz25 1.2, 2.1, 2.2]

The equations are entered as the thesis writes them: coordinates q with phi(q) = 0, minimal velocities with q_dot = K(q) v, T,
V; and poses of a body as functions of q. Four systems:

* 1.2, a body on a ball at its mass centre under a torque that is constant in the body: roll, pitch and yaw compared with the
  rotation matrix with R^T R = 1. Both give the same motion, but only the matrix passes a pitch of 90 degrees; the run with the
  angles reports that it diverged.
* Example 1, a particle on a circle under gravity: a pendulum whose period is known.
* Examples 2 to 4, the rotation matrix as nine coordinates of which three are free, T = w^T Theta w / 2.
* Example 5, T = M_ij v^i v^j / 2 + b_i v^i + c with M, b and c functions of q and t: (2.44b) and Hamilton's (2.43b), corrected,
  compared with derivatives of T; and a charge that falls in a magnetic field along a cycloid.

The thesis gives no numbers; those here are ours.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import casadi as ca
import numpy as np
import xarray as xr
from scipy.special import ellipk

import pfaffian as pf
from pfaffian.maths import so3
from pfaffian.study import Claim, blank_figure

THETA = np.array([0.02, 0.05, 0.03])
"""Principal inertias of the body [kg m^2]."""
TORQUE = (0.01, -0.02, 0.015)
"""Torque along the body's axes [N m]."""
POLE_AT, DURATION = 0.5, 1.0
"""Time at which the pitch is 90 degrees, and duration of the motion [s]."""
STEP = 5e-4
MASS, RHO, G = 0.5, 2.0, 9.81
AMPLITUDE = np.radians(150)
FIELD = 3.0
"""Charge times magnetic field [kg/s]."""
ROTATION = ("xx", "xy", "xz", "yx", "yy", "yz", "zx", "zy", "zz")
"""Names of the entries of R, column by column."""
LEVI_CIVITA = np.array([[[(i - j) * (j - k) * (k - i) / 2 for k in range(3)] for j in range(3)] for i in range(3)])


def rotation() -> pf.Coordinates:
    """R by its columns, with the body-fixed angular velocity; the row det R = 1 is redundant. [konz25 (2.7)]"""

    def K(q: ca.SX) -> ca.SX:
        R = ca.reshape(q, 3, 3)
        return ca.horzcat(*[ca.vec(R @ so3.hat(axis)) for axis in np.eye(3)])

    def phi(q: ca.SX) -> ca.SX:
        R = ca.reshape(q, 3, 3)
        return ca.vertcat(*[ca.dot(R[:, i], R[:, j]) - (i == j) for i in range(3) for j in range(i + 1)], ca.det(R) - 1)

    return pf.coordinates("R", ROTATION, ("wx", "wy", "wz"), K, phi=phi, start=np.eye(3).ravel(), v_units="rad/s")


def angles() -> pf.Coordinates:
    """Roll, pitch and yaw, R = R_z(phi) R_y(beta) R_x(alpha), with their rates. [konz25 (1.6)]"""
    names = ("alpha", "beta", "phi")
    return pf.coordinates("angles", names, names, lambda q: ca.SX.eye(3), q_units="rad")


def turning(how: str) -> pf.Mechanism:
    """M1: a body on a ball, with its attitude given by the "matrix" or by the "angles"."""
    if how == "matrix":
        prototype, pose = rotation(), lambda k: pf.Pose(ca.reshape(k.q, 3, 3), ca.SX.zeros(3, 1))
    else:
        prototype, pose = angles(), lambda k: pf.pose(rpy=(k.q[0], k.q[1], k.q[2]))
    torque = pf.wrench("torque", "body", (0, 0, 0, *TORQUE), axes="LOCAL")
    return pf.mechanism(
        how,
        [pf.body("body", 1.0, inertia=THETA)],
        [pf.edge("pose", "world", "body", pose)],
        coordinates=[prototype],
        forces=[torque],
    )


def mechanism() -> pf.Mechanism:
    return turning("matrix")


def circle() -> pf.Mechanism:
    """M2: a particle on a circle, with its angular velocity as v. [konz25 (2.5)]"""
    x = pf.coordinates(
        "x", ("1", "2"), ("rate",), lambda q: ca.vertcat(-q[1], q[0]), phi=lambda q: ca.sumsqr(q) - RHO**2, start=(RHO, 0),
        q_units="m", v_units="rad/s",
    )  # fmt: skip
    T = pf.forces.kinetic_energy("T", lambda k: MASS * ca.sumsqr(k.q_dot) / 2)
    return pf.mechanism(
        "circle", [], [], coordinates=[x], forces=[T, pf.forces.potential("weight", lambda k: MASS * G * k.q[1])]
    )


def top() -> pf.Mechanism:
    """M3: only T = w^T Theta w / 2. [konz25 (2.33)]"""
    T = pf.forces.kinetic_energy("T", lambda k: ca.dot(k.v, ca.DM(THETA) * k.v) / 2)
    return pf.mechanism("top", [], [], coordinates=[rotation()], forces=[T])


def parts(k: pf.Kinematics) -> tuple[ca.SX, ca.SX, ca.SX]:
    """M4: arbitrary functions M (3, 3), b (3, 1) and c of the rotation matrix and time."""
    R = ca.reshape(k.q, 3, 3)
    M = ca.diag(ca.vertcat(2, 3, 4) + 0.3 * ca.sin(k.t)) + 0.3 * (R + R.T) @ ca.diag(R[:, 0]) @ (R + R.T)
    b = R @ ca.vertcat(ca.sin(k.t), R[0, 1], R[2, 0] * R[1, 1]) + ca.vertcat(0, R[1, 2] ** 2, ca.cos(2 * k.t))
    return M, b, R[0, 0] * R[2, 1] + R[1, 0] * ca.sin(k.t)


def quadratic() -> pf.Mechanism:
    """M4: T = M_ij v^i v^j / 2 + b_i v^i + c. [konz25 (2.40)]"""

    def T(k: pf.Kinematics) -> ca.SX:
        M, b, c = parts(k)
        return ca.dot(k.v, M @ k.v) / 2 + ca.dot(b, k.v) + c

    return pf.mechanism("quadratic", [], [], coordinates=[rotation()], forces=[pf.forces.kinetic_energy("T", T)])


def charge() -> pf.Mechanism:
    """M4: a charge in a magnetic field, b = field / 2 (-y, x), under gravity."""
    x = pf.coordinates("r", ("x", "y"), ("x", "y"), lambda q: ca.SX.eye(2), q_units="m")
    T = pf.forces.kinetic_energy("T", lambda k: MASS * ca.sumsqr(k.v) / 2 + FIELD / 2 * (k.q[0] * k.v[1] - k.q[1] * k.v[0]))
    return pf.mechanism(
        "charge", [], [], coordinates=[x], forces=[T, pf.forces.potential("weight", lambda k: MASS * G * k.q[1])]
    )


def Y(a: np.ndarray) -> np.ndarray:
    """(..., 3, 3) matrix Y of w = Y (alpha, beta, phi)_dot. [konz25 (1.6b)]"""
    (c_a, c_b), (s_a, s_b) = np.cos(a[..., :2]).T, np.sin(a[..., :2]).T
    one, zero = np.ones_like(c_a), np.zeros_like(c_a)
    return np.moveaxis(np.array([[one, zero, -s_b], [zero, c_a, c_b * s_a], [zero, -s_a, c_b * c_a]]), (0, 1), (-2, -1))


def matrix_of(a: np.ndarray) -> np.ndarray:
    """(..., 3, 3) rotation R_z(phi) R_y(beta) R_x(alpha)."""
    from scipy.spatial.transform import Rotation

    return Rotation.from_euler("ZYX", a[..., ::-1].reshape(-1, 3)).as_matrix().reshape(*a.shape[:-1], 3, 3)


def attitude(r: xr.Dataset) -> np.ndarray:
    """(time, 3, 3) R from the coordinates of a run."""
    return r["q"].values.reshape(-1, 3, 3).swapaxes(-1, -2)


def before_the_pole(away: float, w: tuple[float, float, float]) -> tuple[np.ndarray, np.ndarray]:
    """Roll, pitch and yaw, and angular velocity, at a time POLE_AT before the pitch is 90 degrees minus `away` [rad] with
    velocity w.

    Run backwards in time: a torque that is constant in the body acts in the same way, with the velocity reversed.
    """
    a = np.array([0.2, np.pi / 2 - away, 0.3])
    r = pf.run(turning("matrix"), matrix_of(a).T.ravel(), -np.array(w), duration=POLE_AT)
    R = attitude(r)[-1]
    return np.array([np.arctan2(R[2, 1], R[2, 2]), -np.arcsin(R[2, 0]), np.arctan2(R[1, 0], R[0, 0])]), -r["v"].values[-1]


def run() -> dict[str, xr.Dataset]:
    results = {"states": states(), "quadratic states": quadratic_states()}
    for name, away, velocity in (("beside", 0.3, (0.7, -0.9, -4.5)), ("through", 0.0, (0.7, 2.0, -0.4))):
        a, w = before_the_pole(away, velocity)
        rates = np.linalg.solve(Y(a), w)
        results[f"{name}, matrix"] = pf.run(turning("matrix"), matrix_of(a).T.ravel(), w, duration=DURATION, step=STEP)
        results[f"{name}, angles"] = pf.run(turning("angles"), a, rates, duration=DURATION, step=STEP)
    start = -np.pi / 2 + AMPLITUDE
    results["circle"] = pf.run(circle(), RHO * np.array([np.cos(start), np.sin(start)]), duration=20.0)
    results["charge"] = pf.run(charge(), duration=2.0)
    return results


def states() -> xr.Dataset:
    """At random states: M and c in the angles; K, Phi, M, c and gamma in the rotation matrix and on the circle."""
    random = np.random.default_rng(12)
    a = random.uniform(-1.4, 1.4, (50, 3))
    rates, w, R = random.normal(size=(50, 3)), random.normal(size=(50, 3)), matrix_of(a)
    q = R.swapaxes(-1, -2).reshape(-1, 9)
    m, o, p = turning("angles"), top(), circle()
    angle = random.uniform(-np.pi, np.pi, 50)
    x = RHO * np.column_stack([np.cos(angle), np.sin(angle)])
    columns = {}
    for name, machine, at in (("R", o, q), ("x", p, x)):
        phi = machine.coordinates[0].phi
        terms = {"K": lambda T: T.kinematics.kinematic_matrix, "Phi": lambda T, phi=phi: ca.jacobian(phi(T.q), T.q)}
        for part, found in pf.compile_terms(machine, terms).matrices(at).items():
            columns[f"{name} {part}"] = (("state", f"rows of {name} {part}", f"columns of {name} {part}"), found)
    square = ("state", "row", "axis")
    return xr.Dataset(
        {
            "angles": (("state", "axis"), a),
            "rates": (("state", "axis"), rates),
            "M": (square, pf.mass_matrix(m, a)),
            "c": (("state", "axis"), pf.bias_force(m, a, rates)),
            "w": (("state", "axis"), w),
            "top M": (square, pf.mass_matrix(o, q)),
            "top c": (("state", "axis"), pf.bias_force(o, q, w)),
            "gamma": (("state", "i", "j", "k"), pf.calculus.commutation_coefficients(o, q)),
            **columns,
        }
    )


def quadratic_states() -> xr.Dataset:
    """M4: the force c of (2.44b), and p_dot, each from T and by the formulas, at one time."""
    random, m, t = np.random.default_rng(13), quadratic(), 0.7
    q = matrix_of(random.uniform(-1.4, 1.4, (30, 3))).reshape(-1, 9)
    v = random.normal(size=(30, 3))
    found = pf.compile_terms(
        m,
        {
            "M": lambda T: T.M, "c": lambda T: T.c, "b": lambda T: parts(T.kinematics)[1], "energy": lambda T: T.T,
            "c0": lambda T: parts(T.kinematics)[2], "M t": lambda T: _by_time(T, 0), "b t": lambda T: _by_time(T, 1),
        },
    )(q, v, t=t)  # fmt: skip
    M, b, gamma = found["M"], found["b"], pf.calculus.commutation_coefficients(m, q)
    dM, db, dc = (
        pf.calculus.directional_derivative(m, q, f=lambda k, i=i: ca.vec(parts(k)[i]), t=t) for i in range(3)
    )  # of entry and direction
    dM, dc = dM.reshape(-1, 3, 3, 3), dc[:, 0, :]
    second = np.einsum("nijk,nj,nk->ni", dM, v, v) - np.einsum("njki,nj,nk->ni", dM, v, v) / 2
    second += np.einsum("nijl,nlk,nj,nk->ni", gamma, M, v, v)
    linear = np.einsum("nij,nj->ni", found["M t"] + np.einsum("nijk,nk->nij", gamma, b), v)
    curl = np.einsum("nij,nj->ni", db - db.swapaxes(1, 2), v)
    p = np.einsum("nij,nj->ni", M, v) + b
    v_dot = -np.linalg.solve(M, found["c"][..., None])[..., 0]
    M_dot = np.einsum("nijk,nk->nij", dM, v) + found["M t"]
    p_dot = np.einsum("nij,nj->ni", M, v_dot) + np.einsum("nij,nj->ni", M_dot, v)
    p_dot += np.einsum("nij,nj->ni", db, v) + found["b t"]
    inverse = np.linalg.inv(M)
    d_inverse = -np.einsum("nab,nbci,ncd->nadi", inverse, dM, inverse)
    bracket = np.einsum("nilk,nlj,nk->nij", gamma, inverse, p) + np.einsum("nkji,nk->nij", d_inverse, p - b) / 2
    bracket -= np.einsum("nkj,nki->nij", inverse, db)
    hamilton = np.einsum("nij,nj->ni", bracket, p - b)
    H = np.einsum("nij,ni,nj->n", inverse, p - b, p - b) / 2 - found["c0"]
    columns = {
        "c": found["c"],
        "corrected": second + linear + curl + found["b t"] - dc,
        "printed": second + linear + found["b t"] + dc,
        "p_dot": p_dot,
        "hamilton": -hamilton + dc,
        "hamilton printed": -hamilton - dc,
    }
    energies = {"H": ("state", H), "energy": ("state", found["energy"])}
    return xr.Dataset({name: (("state", "axis"), x) for name, x in columns.items()} | energies)


def _by_time(T: pf.Terms, i: int) -> ca.SX:
    x = parts(T.kinematics)[i]
    return ca.reshape(ca.jacobian(ca.vec(x), T.t), *x.shape)


def figures(result: dict[str, xr.Dataset]) -> dict[str, Any]:
    figure = blank_figure(8.5, 5.4)
    (pitch, rate), (apart, path) = figure.subplots(2, 2)
    for name, dashes in (("beside", "-"), ("through", "--")):
        r, e = result[f"{name}, matrix"], result[f"{name}, angles"]
        pitch.plot(r["time"], np.degrees(-np.arcsin(attitude(r)[:, 2, 0])), "C0" + dashes, label=f"{name} 90 degrees")
        rate.semilogy(e["time"], np.abs(e["v"].values).max(1), "C1" + dashes, label=f"{name}: largest rate of an angle")
        rate.semilogy(r["time"], np.abs(r["v"].values).max(1), "C0" + dashes, label=f"{name}: of the body")
        apart.semilogy(e["time"], distance(r, e) + 1e-17, "C1" + dashes, label=name)
    pitch.set(xlabel="time [s]", ylabel="pitch [deg]")
    rate.set(xlabel="time [s]", ylabel="angular velocity [rad/s]")
    apart.set(xlabel="time [s]", ylabel="angles minus matrix [rad]")
    r = result["charge"]
    path.plot(*r["q"].values.T, label="charge")
    at = r["time"].values[::100]
    path.plot(*cycloid(at).T, "k.", markersize=4, label="cycloid")
    path.set(xlabel="x [m]", ylabel="y [m]")
    for axes in (pitch, rate, apart, path):
        axes.legend(loc="best")
    return {"coordinates": figure}


def distance(r: xr.Dataset, e: xr.Dataset) -> np.ndarray:
    """(time,) angle between the attitude of the matrix and that of the angles [rad]."""
    off = attitude(r).swapaxes(-1, -2) @ matrix_of(e["q"].values)
    return np.linalg.norm(off - np.eye(3), axis=(1, 2)) / np.sqrt(2)


def cycloid(t: np.ndarray) -> np.ndarray:
    """(time, 2) path of a charge that starts at rest at the origin: v_dot = g + (field / mass) J v."""
    turn = FIELD / MASS
    return G / turn**2 * np.column_stack([np.sin(turn * t) - turn * t, np.cos(turn * t) - 1])


def claims(result: dict[str, xr.Dataset]) -> Iterator[Claim]:
    s = result["states"]
    yield from _angles(s)
    r, e = result["beside, matrix"], result["beside, angles"]
    yield Claim("M1: least distance of the pitch from 90 degrees [rad]", pole_distance(r), 0.3, 1e-6, "setting")
    yield Claim("M1: angle between R(t) by angles and R(t) by the matrix [rad]", distance(r, e).max(), 0, 1e-9, "[konz25 1.2]")
    r, e = result["through, matrix"], result["through, angles"]
    yield Claim("M1: least distance of the pitch from 90 degrees by the matrix [rad]", pole_distance(r), 0, 1e-7, "setting")
    yield Claim("M1: the run by the matrix ended early", float(r["status"] != 0), 0)
    power = np.trapezoid(r["v"].values @ TORQUE, r["time"].values)
    kinetic = r["energy"].values[-1] - r["energy"].values[0]
    yield Claim("M1: energy minus the work of the torque [J]", kinetic - power, 0, 1e-7, "energy")
    yield Claim("M1: |R^T R - 1|", _largest(np.einsum("nji,njk->nik", *[attitude(r)] * 2) - np.eye(3)), 0, 1e-12)
    reason = pf.results.causes(e)[0]
    yield Claim("M1: the run by angles reports that it diverged", float("diverged" in reason), 1, 0, "[konz25 1.2]")
    yield Claim("M1: time at which it diverged [s]", float(e["stopped"]), POLE_AT, 0.002, "[konz25 1.2]")
    yield from _circle(s, result["circle"])
    yield from _matrix(s)
    yield from _quadratic(result["quadratic states"], result["charge"])


def _angles(s: xr.Dataset) -> Iterator[Claim]:
    a, rates, M, c = (s[name].values for name in ("angles", "rates", "M", "c"))
    x, y, z = THETA
    (c_a, c_b), (s_a, s_b) = np.cos(a[:, :2]).T, np.sin(a[:, :2]).T
    printed = np.zeros_like(M)
    printed[:, 0, 0], printed[:, 0, 2], printed[:, 1, 1] = x, -x * s_b, y * c_a**2 + z * s_a**2
    printed[:, 1, 2] = (y - z) * c_a * s_a * c_b
    printed[:, 2, 2] = x * s_b**2 + (y * s_a**2 + z * c_a**2) * c_b**2
    upper = np.triu(np.ones((3, 3)))
    yield Claim("M1: M minus the printed one [kg m^2]", _largest(M * upper - printed), 0, 1e-15, "[konz25 (1.7)]")
    yield Claim(
        "M1: det M minus Th_x Th_y Th_z cos^2 beta", _largest(np.linalg.det(M) - x * y * z * c_b**2), 0, 1e-18, "[konz25 1.2]"
    )
    yield Claim("M1: det Y minus cos beta", _largest(np.linalg.det(Y(a)) - c_b), 0, 1e-14, "[konz25 1.2]")
    h = 1e-6
    Y_dot = (Y(a + h * rates) - Y(a - h * rates)) / (2 * h)
    w = np.einsum("nij,nj->ni", Y(a), rates)
    euler = THETA * np.einsum("nij,nj->ni", Y_dot, rates) + np.cross(w, THETA * w)
    off = _largest(c - np.einsum("nji,nj->ni", Y(a), euler))
    yield Claim("M1: Lagrange's force minus Y^T times Euler's [N m]", off, 0, 1e-10, "[konz25 (1.8)]")


def _circle(s: xr.Dataset, r: xr.Dataset) -> Iterator[Claim]:
    yield from _spanned(s, "x", "circle", 1)
    period = 4 * np.sqrt(RHO / G) * ellipk(np.sin(AMPLITUDE / 2) ** 2)
    yield Claim("M2: period of the pendulum [s]", _period(r), period, 1e-8, "closed form")
    drift = _largest(r["energy"] - r["energy"][0]) / (2 * MASS * G * RHO)
    yield Claim("M2: energy over 20 s, relative to 2 m g rho", drift, 0, 1e-9, "energy")
    yield Claim("M2: |x| minus rho [m]", _largest(np.linalg.norm(r["q"].values, axis=1) - RHO), 0, 1e-12, "[konz25 (2.5)]")


def _matrix(s: xr.Dataset) -> Iterator[Claim]:
    yield from _spanned(s, "R", "rotation matrix", 6)
    yield Claim("M3: gamma minus the Levi-Civita symbol", _largest(s["gamma"] - LEVI_CIVITA), 0, 1e-14, "[konz25 (2.20)]")
    yield Claim("M3: M minus Theta", _largest(s["top M"] - np.diag(THETA)), 0, 1e-16, "[konz25 (2.33)]")
    w = s["w"].values
    yield Claim("M3: c minus w x Theta w", _largest(s["top c"] - np.cross(w, THETA * w)), 0, 1e-16, "[konz25 (2.33)]")


def _spanned(s: xr.Dataset, name: str, which: str, rank: int) -> Iterator[Claim]:
    K, rows = s[f"{name} K"].values, s[f"{name} Phi"].values
    yield Claim(f"{which}: |Phi K|", _largest(rows @ K), 0, 1e-14, "[konz25 (2.4)]")
    ranks = np.linalg.matrix_rank(rows, tol=1e-9)
    yield Claim(f"{which}: rank of Phi", _largest(ranks), rank, 0, "[konz25 (2.2)]")
    whole = K @ np.linalg.pinv(K) + np.linalg.pinv(rows, rcond=1e-9) @ rows
    yield Claim(f"{which}: K Y + Psi Phi minus 1", _largest(whole - np.eye(K.shape[1])), 0, 1e-14, "[konz25 (2.10)]")


def _quadratic(s: xr.Dataset, r: xr.Dataset) -> Iterator[Claim]:
    scale = _largest(s["c"])
    yield Claim(
        "M4: force minus (2.44b) as corrected, relative",
        _largest(s["c"] - s["corrected"]) / scale,
        0,
        1e-13,
        "[konz25 (2.44b)]",
    )
    off = _largest(s["c"] - s["printed"]) / scale
    yield Claim("M4: force minus (2.44b) as printed, relative", off, 0.1, 0, "[konz25 (2.44b)]", "at least")
    scale = _largest(s["p_dot"])
    off = _largest(s["p_dot"] - s["hamilton"]) / scale
    yield Claim("M4: p_dot minus (2.43b) as corrected, relative", off, 0, 1e-13, "[konz25 (2.43b)]")
    off = _largest(s["p_dot"] - s["hamilton printed"]) / scale
    yield Claim("M4: p_dot minus (2.43b) as printed, relative", off, 0.1, 0, "[konz25 (2.43b)]", "at least")
    yield Claim("M4: energy minus H [J]", _largest(s["energy"] - s["H"]), 0, 1e-13, "[konz25 (2.42)]")
    off = _largest(r["q"].values - cycloid(r["time"].values))
    yield Claim("M4: charge, distance from its cycloid [m]", off, 0, 1e-9, "closed form")
    yield Claim("M4: charge, change of H [J]", _largest(r["energy"] - r["energy"][0]), 0, 1e-9, "[konz25 (2.39)]")


def _period(r: xr.Dataset) -> float:
    """Mean time between passages through the lowest point in the same direction [s], by cubic interpolation."""
    from scipy.interpolate import CubicHermiteSpline

    t, x = r["time"].values, r["q"].values
    roots = CubicHermiteSpline(t, x[:, 0], -x[:, 1] * r["v"].values[:, 0]).roots(extrapolate=False)
    low = roots[np.interp(roots, t, x[:, 1]) < 0]
    return float(np.mean(low[2:] - low[:-2]))


def pole_distance(r: xr.Dataset) -> float:
    """Smallest distance of the recorded pitch from 90 degrees [rad]."""
    return float(np.arccos(np.clip(np.abs(attitude(r)[:, 2, 0]), 0, 1)).min())


def _largest(x: xr.DataArray | np.ndarray) -> float:
    return float(np.abs(x).max())
