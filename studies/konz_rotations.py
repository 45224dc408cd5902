"""V(R) = -tr(P R) on rotations: its critical points, Wahba's problem, a navigation function, a set of springs. [konz25 2.4]

One function of a rotation answers four questions: which attitude fits measured directions best (Wahba), which rotation is
nearest to a matrix, where a set of springs comes to rest, and what potential turns a body to a goal from almost anywhere
(Koditschek's navigation function). The thesis gives formulas, no numbers; all numbers here are ours.

The navigation function V = tr(K (1 - R)) acts with damping on a body that turns about its mass centre: from 400 random
attitudes and rates it comes to rest at the goal. A start 1e-6 rad from a half turn about x, a saddle, moves away at the rate
that the Hessian predicts.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import casadi as ca
import numpy as np
import xarray as xr

import pfaffian as pf
from pfaffian.maths import se3, so3
from pfaffian.study import Claim, blank_figure

MOMENTS = np.array([1.0, 1.5, 2.0])
"""l1, l2, l3: eigenvalues of Vee(K), the stiffness at the goal [N m]."""
INERTIA, DAMPING = 0.1, 0.4
DURATION = 16.0
STARTS = 400
OFF = 1e-6
SIGMAS = np.array([1e-4, 1e-3, 1e-2, 3e-2])
"""Noise of the measured directions [rad]."""
TRIALS = 1000
DIRECTIONS = np.array([[1.0, 0, 0], [0.6, 0.8, 0], [0.7, 0.1, np.sqrt(0.5)]])

TABLE = {
    (1.0, 2.0, 2.5): ((-2.75, "minimum"), (-0.75, "saddle"), (1.25, "saddle"), (2.25, "maximum")),
    (1.0, 2.0, 4.0): ((-3.5, "minimum"), (-1.5, "saddle"), (0.5, "saddle"), (4.5, "maximum")),
    (2.0, 2.0, 3.0): ((-3.5, "minimum"), (0.5, "saddle"), (2.5, "maximum")),
    (1.0, 3.0, 3.0): ((-3.5, "minimum"), (-1.5, "saddle"), (2.5, "maximum")),
    (2.0, 2.0, 2.0): ((-3.0, "minimum"), (1.0, "maximum")),
    (0.0, 1.0, 3.0): ((-2.0, "minimum"), (0.0, "saddle"), (4.0, "maximum")),
    (0.0, 2.0, 2.0): ((-2.0, "minimum"), (2.0, "maximum")),
    (0.0, 0.0, 3.0): ((-1.5, "minimum"), (4.5, "maximum")),
    (0.0, 0.0, 0.0): ((0.0, "constant"),),
}
"""By (l1, l2, l3): critical values by the formulas of the thesis's table, with their kinds."""


def mechanism() -> pf.Mechanism:
    """A body on a ball joint at its mass centre, with the navigation function as spring, and a damper."""
    return pf.mechanism(
        "attitude",
        [pf.body("body", 1.0, inertia=INERTIA)],
        [pf.joint("ball", "spherical", "world", "body")],
        forces=[
            pf.forces.pose_spring("goal", "world", "body", pf.forces.pseudo_matrix(0, moments=MOMENTS)),
            pf.forces.pose_damper("damper", "world", "body", pf.forces.pseudo_matrix(0, moments=DAMPING)),
        ],
    )


def springs() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Five springs whose points in space are not congruent to those on the body, so that some energy remains at rest."""
    random = np.random.default_rng(24)
    h = random.uniform(-1, 1, (5, 3))
    R = np.array(so3.exp([0.2, 0.7, -0.3]))
    return random.uniform(1, 4, 5), h @ R.T + random.uniform(-0.5, 0.5, (5, 3)) + (2.5, 0, 0.5), h


def run() -> dict[str, xr.Dataset]:
    m, random = mechanism(), np.random.default_rng(5)
    q = random.normal(size=(STARTS, 4))
    q /= np.linalg.norm(q, axis=1)[:, None]
    record = ["q", "v", "energy"]
    many = pf.run(m, q, random.normal(size=(STARTS, 3)) * 3, duration=DURATION, step=8e-3, every=10, record=record)
    # Half a turn about x is a saddle; the motion leaves it by turning about x, where the Hessian has the eigenvalue -l1.
    on = (np.pi + OFF) / 2
    one = pf.run(m, [np.sin(on), 0, 0, np.cos(on)], duration=DURATION, step=8e-3, every=10, record=record)
    return {"many": many, "saddle": one, "wahba": wahba(), "springs": at_rest()}


def wahba() -> xr.Dataset:
    """Errors of the attitude from three noisy directions, and their prediction by the inverse of the Hessian."""
    random = np.random.default_rng(6)
    true = np.array(so3.exp([0.3, -1.2, 2.0]))
    error, predicted = np.zeros((len(SIGMAS), TRIALS)), np.zeros(len(SIGMAS))
    kabsch = 0.0
    for i, sigma in enumerate(SIGMAS):
        for j in range(TRIALS):
            u = DIRECTIONS @ true.T + sigma * random.normal(size=DIRECTIONS.shape)
            found = pf.rotations.wahba(u, DIRECTIONS, np.full(len(u), sigma**-2))
            error[i, j] = np.linalg.norm(np.array(so3.log(true.T @ found.R)))
            X, _, Yt = np.linalg.svd(u.T @ DIRECTIONS)
            kabsch = max(kabsch, np.abs(found.R - X @ np.diag([1, 1, np.linalg.det(X @ Yt)]) @ Yt).max())
        exact = pf.rotations.wahba(DIRECTIONS @ true.T, DIRECTIONS, np.full(len(DIRECTIONS), sigma**-2))
        predicted[i] = np.sqrt(np.trace(np.linalg.inv(exact.information)))
    rms = np.sqrt(np.square(error).mean(axis=1))
    return xr.Dataset({"error": (("sigma", "trial"), error), "rms": ("sigma", rms), "predicted": ("sigma", predicted),
                       "kabsch": kabsch}, coords={"sigma": SIGMAS})  # fmt: skip


def at_rest() -> xr.Dataset:
    """Energy at random poses of the individual springs, of their equivalent stiffness, and of the four springs equivalent to
    that stiffness."""
    (k, p, h), random = springs(), np.random.default_rng(7)
    found = pf.forces.spring_constellation(k, p, h)
    back = pf.forces.point_springs(found.stiffness, found.rest, found.energy)
    G_R = np.array(ca.DM(se3.homogeneous(found.rest.R, found.rest.p)))
    single, one, four = (np.zeros(500) for _ in range(3))
    for i in range(500):
        R, r = (np.array(x) for x in se3.exp(random.normal(size=6) * 2))
        X = np.array(ca.DM(se3.homogeneous(R, r))) - G_R
        single[i], four[i] = (energy_of(s, R, r.ravel()) for s in ((k, p, h), back))
        one[i] = np.trace(X @ found.stiffness @ X.T) / 2 + found.energy
    return xr.Dataset(
        {
            "single": ("pose", single), "one": ("pose", one), "four": ("pose", four), "least": found.energy,
            "G_R": (("row", "column"), G_R), "K": (("row", "column"), found.stiffness),
        }
    )  # fmt: skip


def energy_of(springs: tuple[np.ndarray, np.ndarray, np.ndarray], R: np.ndarray, r: np.ndarray) -> float:
    k, p, h = springs
    return float(k @ np.square(h @ R.T + r - p).sum(axis=1)) / 2


def angle(r: xr.Dataset) -> np.ndarray:
    """Angle to the goal [rad]."""
    q = r["q"].values
    return 2 * np.arctan2(np.linalg.norm(q[..., :3], axis=-1), np.abs(q[..., 3]))


# -- figures ----------------------------------------------------------------------------------------------------------


def figures(result: dict[str, xr.Dataset]) -> dict[str, Any]:
    return {
        "critical": critical(),
        "navigation": navigation(result["many"], result["saddle"]),
        "wahba": noise(result["wahba"]),
        "springs": drawn(result["springs"]),
    }


def critical() -> Any:
    """V along rotations from the minimum about each axis of K, and the critical values."""
    figure = blank_figure(9, 3.4)
    turn = np.linspace(0, 2 * np.pi, 200)
    chosen = {"four points": (1.0, 2.0, 2.5), "a sphere of maxima": (2.0, 2.0, 2.0), "a circle of minima": (0.0, 1.0, 3.0)}
    for ax, (name, l) in zip(figure.subplots(1, 3), chosen.items(), strict=True):
        P = np.diag(sum(l) / 2 - np.array(l))
        for axis, dashes in zip(np.eye(3), ("-", "--", ":"), strict=True):
            V = [-np.trace(P @ np.array(so3.exp(axis * x))) for x in turn]
            ax.plot(np.degrees(turn), V, dashes, label=f"about {'xyz'[int(np.argmax(axis))]}")
        for c in pf.rotations.critical_rotations(P):
            ax.axhline(c.value, color="#999999", linewidth=0.7)
            ax.annotate(
                f"{c.kind}, {c.shape}", (130 if c.kind == "minimum" else 5, c.value), fontsize=6.5, va="bottom", color="#555555"
            )
        ax.set(title=f"{name}: l = {', '.join(f'{x:g}' for x in l)}", xlabel="angle [deg]", ylabel="-tr(P R) [J]")
        ax.margins(y=0.1)
    return figure


def navigation(many: xr.Dataset, one: xr.Dataset) -> Any:
    figure = blank_figure(8.5, 3.2)
    turned, energy = figure.subplots(1, 2)
    t, every = many["time"].values, np.degrees(angle(many))
    turned.plot(t, every[::8].T, color="#BBBBBB", linestyle="-", linewidth=0.5)
    turned.plot(t, np.median(every, axis=0), color="#0072B2", linestyle="-", label=f"median of {STARTS} starts")
    turned.plot(t, np.degrees(angle(one)), "--", color="#D55E00", label="from 1e-6 rad off a saddle")
    turned.set(xlabel="time [s]", ylabel="angle to the goal [deg]")
    low = many["energy"].values - many["energy"].values.min()
    low = np.where(low > 1e-10, low, np.nan)
    energy.plot(t, low[::8].T, color="#BBBBBB", linestyle="-", linewidth=0.5)
    energy.plot(t, np.median(low, axis=0), color="#0072B2", linestyle="-", label=f"median of {STARTS} starts")
    energy.set(xlabel="time [s]", ylabel="energy above that of the goal [J]", yscale="log")
    return figure


def noise(w: xr.Dataset) -> Any:
    figure = blank_figure(4.5, 3.2)
    ax = figure.subplots()
    low, high = np.quantile(w["error"], (0.05, 0.95), axis=1)
    ax.fill_between(SIGMAS, low, high, alpha=0.2, linewidth=0)
    ax.plot(SIGMAS, w["rms"], "o", label="root mean square")
    ax.plot(SIGMAS, w["predicted"], "--", label="from the Hessian")
    ax.set(xscale="log", yscale="log", xlabel="noise of the directions [rad]", ylabel="error of the attitude [rad]")
    ax.set_title(f"band: 90 % of {TRIALS} trials")
    return figure


def drawn(s: xr.Dataset) -> Any:
    """The springs at rest, from the side, and V along motions from there."""
    figure = blank_figure(8.5, 3.4)
    side, way = figure.subplots(1, 2)
    k, p, h = springs()
    G = s["G_R"].values
    at = h @ G[:3, :3].T + G[:3, 3]
    for a, b in zip(at, p, strict=True):
        side.plot([a[0], b[0]], [a[2], b[2]], color="#999999", linewidth=0.8)
    side.plot(at[:, 0], at[:, 2], "o", color="#0072B2", label="on the body, at rest")
    side.plot(p[:, 0], p[:, 2], "s", color="#D55E00", markersize=4, label="in space")
    side.plot(*G[[0, 2], 3], "+", color="#000000", markersize=9, label="the body's origin")
    side.set(xlabel="x [m]", ylabel="z [m]", aspect="equal")
    part = np.linspace(-1, 1, 81)
    for axis, dashes in zip(np.eye(6)[[0, 3, 4, 5]], ("-", "--", ":", "-."), strict=True):
        V = []
        for x in part:
            R, r = se3.compose(G[:3, :3], G[:3, 3], *se3.exp(x * np.pi * axis))
            V.append(energy_of((k, p, h), np.array(ca.DM(R)), np.array(ca.DM(r)).ravel()))
        way.plot(part, V, dashes, label=("along x [pi m]", "about x [half turns]", "about y", "about z")[
            [0, 3, 4, 5].index(int(np.argmax(axis)))])  # fmt: skip
    way.axhline(float(s["least"]), color="#999999", linewidth=0.7)
    way.set(xlabel="displacement from rest", ylabel="energy of the springs [J]", ylim=(0, None))
    return figure


# -- claims -----------------------------------------------------------------------------------------------------------


def claims(result: dict[str, xr.Dataset]) -> Iterator[Claim]:
    yield from _table()
    yield from _polar()
    s, w = result["springs"], result["wahba"]
    off = float(np.abs(s["one"] / s["single"] - 1).max())
    yield Claim("springs: V by K', G_R and V0, relative", off, 0, 1e-14, "[konz25 (3.61)-(3.72)]")
    off = float(np.abs(s["four"] / s["single"] - 1).max())
    yield Claim("springs: V of the four equivalent springs, relative", off, 0, 1e-14, "[konz25 2.4]")
    least = float(s["single"].min() / s["least"])
    yield Claim("springs: least V of 500 poses over V0", least, 9, 0, "[konz25 (3.61)-(3.72)]", "at least")
    yield Claim("Wahba: difference from Kabsch's rotation", float(w["kabsch"]), 0, 3e-14, "[konz25 2.4], Wahba")
    for sigma, ratio in zip(SIGMAS, (w["rms"] / w["predicted"]).values, strict=True):
        yield Claim(f"Wahba: error relative to that of the Hessian, noise {sigma:g} rad", ratio, 1, 0.05, "[konz25 2.4]")
    yield from _navigation(result["many"], result["saddle"])


def _table() -> Iterator[Claim]:
    random = np.random.default_rng(1)
    P, R, x = ca.SX.sym("P", 3, 3), ca.SX.sym("R", 3, 3), ca.SX.sym("x", 3)
    H, g = ca.hessian(-ca.trace(P @ R @ so3.exp(x)), x)
    differentiated = ca.Function("V", [P, R, x], [g, H])
    for l, expected in TABLE.items():
        left, right = (np.array(so3.exp(random.normal(size=3))) for _ in range(2))
        M = left @ np.diag(sum(l) / 2 - np.array(l)) @ right.T
        found, case = pf.rotations.critical_rotations(M), f"l = {', '.join(f'{x:g}' for x in l)}"
        same = [c.kind for c in found] == [kind for _, kind in expected]
        yield Claim(
            f"critical points, {case}: number of sets, kinds as printed", len(found) * same, len(expected), 0, "[konz25 2.4]"
        )
        off = max(abs(c.value - value) for c, (value, _) in zip(found, expected, strict=True))
        yield Claim(f"critical points, {case}: error of the values", off, 0, 2e-14, "[konz25 2.4]")
        gradient = hessian = 0.0
        for c in found:
            for _ in range(5):
                g0, H0 = (np.array(y) for y in differentiated(M, c.at(random.normal(size=len(c.quaternions))), [0, 0, 0]))
                gradient = max(gradient, np.abs(g0).max())
                hessian = max(hessian, np.abs(np.linalg.eigvalsh(H0) - c.eigenvalues).max())
        yield Claim(f"critical points, {case}: gradient on the sets", gradient, 0, 2e-14, "[konz25 (2.64)]")
        yield Claim(f"critical points, {case}: error of the eigenvalues", hessian, 0, 3e-14, "[konz25 (2.65)]")


def _polar() -> Iterator[Claim]:
    random, worst, lowest, negative = np.random.default_rng(2), 0.0, np.inf, 0
    for M in random.normal(size=(1000, 3, 3)):
        R, K, _ = pf.rotations.special_polar(M)
        worst = max(worst, np.abs(R @ (np.trace(K) / 2 * np.eye(3) - K) - M).max() / np.abs(M).max())
        lowest = min(lowest, np.linalg.eigvalsh(K)[0])
        negative += np.linalg.det(M) < 0
    yield Claim("special polar: R Wed(K) minus M, 1000 matrices, relative", worst, 0, 3e-14, "[konz25 2.4]")
    yield Claim("special polar: lowest eigenvalue of K", lowest, 0.05, 0, "[konz25 2.4]", "at least")
    yield Claim(
        "special polar: number of these matrices with det M < 0", negative, 470, 0, "half of random matrices", "at least"
    )


def _navigation(many: xr.Dataset, one: xr.Dataset) -> Iterator[Claim]:
    source = "[konz25 (2.68)], Koditschek"
    final = angle(many)[:, -1]
    yield Claim("navigation: share of starts that arrive", float(np.mean(final < 1e-3)), 1, 0, source)
    rise = float(np.diff(many["energy"].values, axis=1).max())
    yield Claim("navigation: largest rise of the energy [J]", rise, 0, 1e-12, source, "at most")
    left, t = np.pi - angle(one), one["time"].values
    slow = (left > 1e-5) & (left < 1e-2)
    rate = np.polyfit(t[slow], np.log(left[slow]), 1)[0]
    expected = (-DAMPING + np.sqrt(DAMPING**2 + 4 * INERTIA * MOMENTS[0])) / (2 * INERTIA)
    yield Claim("navigation: rate of departure from a saddle [1/s]", rate, expected, 1e-5, "eigenvalue -l1 of the Hessian")
    yield Claim("navigation: final angle from the saddle [rad]", float(angle(one)[-1]), 3e-6, 0, source, "at most")
