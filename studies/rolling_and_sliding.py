"""Four classical nonholonomic systems compared with closed forms: rolling disk, Chaplygin's sleigh, Suslov's body, turntable.

A homogeneous thin disk (m, a; A = m a^2/4 and C = m a^2/2 about a diameter and its axis) rolls on a plane, theta between axis
and normal. On a steady circle with the precession rate W it spins, about its axis, with

    w_3 = cos(theta) (A W^2 - m g a / sin(theta)) / ((C + m a^2) W),

and its centre moves on a circle of radius a |w_3 / W|. For an upright disk that rolls straight, a small lean e obeys
(A + m a^2) e_ddot = (m g a - C (C + m a^2) w_3^2 / A) e: it is stable for w_3^2 > A m g a / (C (C + m a^2)) = g / (3 a).

A sleigh has its blade at P and its mass centre at l in front of it: with b^2 = l^2 + I/m the speed along the blade and the
turning rate are u = U tanh(kt + c), w = (U/b) sech(kt + c), k = l U / b^2: finally it moves straight with the blade behind.

A body on a ball joint cannot turn about its axis e_3 (Suslov). With I_12 = 0, w_1 sqrt(I_1) = sqrt(2T) cos(alpha) and
w_2 sqrt(I_2) = sqrt(2T) sin(alpha): sin(alpha - beta) = tanh(kt + c), tan(beta) = (I_23 / sqrt(I_2)) / (I_13 / sqrt(I_1)),
k = sqrt(2T (I_13^2/I_1 + I_23^2/I_2) / (I_1 I_2)).

A homogeneous ball on a plane that turns at W moves on a circle at the rate 2/7 W for any start; on an inclined plane it also
drifts across the slope at 5/2 g sin(slope) / W.

Numbers are ours; the closed forms are in textbooks on analytical dynamics and derived again here. All four maintain their
constraints by reactions; energy is conserved except on the turntable, whose drive does work.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import casadi as ca
import numpy as np
import xarray as xr

import pfaffian as pf
from pfaffian.study import Claim, blank_figure

G, MASS, A = 9.81, 2.0, 0.3
DIAMETRAL, AXIAL = MASS * A**2 / 4, MASS * A**2 / 2
LEANS = np.radians([35, 50, 65, 80, 80])
PRECESSION = np.array([3.0, -2.5, 4.0, 0.5, 9.0])
CRITICAL = np.sqrt(G / (3 * A))
SPINS = CRITICAL * np.array([0.0, 0.5, 0.8, 0.95, 1.05, 1.5, 3.0])
NUDGE = 1e-6
"""Lean of the disks that roll straight [rad]."""

AHEAD, INERTIA = 0.2, 0.05
SUSLOV = np.array([[0.5, 0.0, 0.12], [0.0, 0.8, -0.2], [0.12, -0.2, 0.9]])
RADIUS, SLOPE, RATES = 0.1, 0.02, np.array([7.0, -7.0, 3.5])


def mechanism() -> pf.Mechanism:
    """The rolling disk with axis z, constrained only by its edge on the plane."""
    disk = pf.body("disk", MASS, inertia=(DIAMETRAL, DIAMETRAL, AXIAL))
    return pf.mechanism(
        "rolling disk",
        [disk],
        [pf.joint("j", "free", "world", "disk")],
        constraints=[pf.rolling.disk("roll", "disk", A)],
        gravity=(0, 0, -G),
    )


def sleigh() -> pf.Mechanism:
    """A body in the plane with a blade at its origin, along x."""
    body = pf.body("sleigh", MASS, (AHEAD, 0, 0), (INERTIA, INERTIA, INERTIA))
    joint = pf.joint("j", "planar", "world", "sleigh")
    return pf.mechanism("sleigh", [body], [joint], constraints=[pf.rolling.knife_edge("blade", "sleigh", (1, 0, 0))])


def suslov() -> pf.Mechanism:
    """Suslov's body: it turns about its mass centre, but not about its z axis."""
    joint = pf.joint("j", "spherical", "world", "body")
    return pf.mechanism(
        "Suslov's body",
        [pf.body("body", 1.0, inertia=SUSLOV.tolist())],
        [joint],
        constraints=[pf.nonholonomic("no spin", lambda k: k.joint_rate("j")[2])],
    )


def turntable() -> pf.Mechanism:
    """A ball on a plane that turns at `rate`; gravity is inclined by `slope` to its normal."""
    rate, slope = pf.Parameter("rate", 7.0, "rad/s"), pf.Parameter("slope", 0.0, "rad")
    return pf.mechanism(
        "turntable",
        [pf.body("ball", MASS, inertia=0.4 * MASS * RADIUS**2)],
        [pf.joint("j", "free", "world", "ball")],
        constraints=[pf.rolling.sphere("roll", "ball", RADIUS, plane=pf.rolling.plane(rate=rate))],
        gravity=(G * np.sin(slope), 0, -G * np.cos(slope)),
        parameters=[rate, slope],
    )


def leaning(lean: np.ndarray, precession: np.ndarray, spin: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """q and v (disks, n) of disks that roll along x, with the axis at `lean` from the normal and e_2 of the disk upwards.

    w = precession sin(lean) e_2 + spin e_3, and the centre has the velocity -a spin along e_1.
    """
    # e_1 = x; the normal z = sin(lean) e_2 + cos(lean) e_3: the disk is turned about x by -lean.
    still = np.zeros_like(lean)
    q = np.column_stack([still, still, A * np.sin(lean), np.sin(lean / 2), still, still, np.cos(lean / 2)])
    v = np.column_stack([-A * spin, still, still, still, precession * np.sin(lean), spin])
    return q, v


def steady_spin(lean: np.ndarray, precession: np.ndarray) -> np.ndarray:
    """w_3 of a steady circle [rad/s]."""
    weight = MASS * G * A / np.sin(lean)
    return (DIAMETRAL * precession**2 - weight) * np.cos(lean) / ((AXIAL + MASS * A**2) * precession)


def axis(k: pf.Kinematics) -> ca.SX:
    return k.rotation("disk")[:, 2]


def run() -> dict[str, xr.Dataset]:
    common = {"record": "all", "outputs": {"axis": axis}}
    circles = leaning(LEANS, PRECESSION, steady_spin(LEANS, PRECESSION))
    # A leaning disk also turns, at C w_3 / A times the lean.
    straight = leaning(np.full(len(SPINS), np.pi / 2 + NUDGE), AXIAL / DIAMETRAL * NUDGE * SPINS, SPINS)
    u, w = np.array([[0.4, 3.0], [-1.0, 0.3]]).T
    sleighs = pf.run(sleigh(), np.zeros((2, 3)), np.column_stack([u, 0 * u, w]), duration=6.0, every=20, record="all")
    body = pf.run(suslov(), None, [1.5, -0.4, 0.0], duration=12.0, step=2e-3, every=20)
    start = {"j.x": [0.3, 0.0, 0.1], "j.y": 0.0, "j.z": RADIUS}
    ball = {"j.vx": [0.5, 0.4, -0.2], "j.vy": [0.0, 0.3, 0.5]}
    on = {"duration": 10.0, "step": 2e-3, "every": 20, "record": "all"}
    return {
        "circles": pf.run(mechanism(), *circles, duration=5.0, every=20, **common),
        "straight": pf.run(mechanism(), *straight, duration=1.5, every=10, **common),
        "sleigh": sleighs,
        "suslov": body,
        "level": pf.run(turntable(), start, ball, parameters={"rate": RATES}, **on),
        "sloping": pf.run(turntable(), start, ball, parameters={"rate": RATES, "slope": SLOPE}, **on),
    }


def small_leans(t: np.ndarray) -> np.ndarray:
    """(spins, times) lean of disks that roll straight, for small angles [rad]."""
    grows = (MASS * G * A - AXIAL * (AXIAL + MASS * A**2) * SPINS**2 / DIAMETRAL) / (DIAMETRAL + MASS * A**2)
    return NUDGE * np.cosh(np.sqrt(grows[:, None].astype(complex)) * t).real


def sleigh_motion(r: xr.Dataset) -> np.ndarray:
    """(runs, times, 2) speed along the blade [m/s] and turning rate [rad/s] in closed form."""
    u, w = r["v"].values[:, 0, 0], r["v"].values[:, 0, 2]
    b = np.sqrt(AHEAD**2 + INERTIA / MASS)
    U = np.hypot(u, b * w)
    phase = (AHEAD * U / b**2)[:, None] * r["time"].values + np.arctanh(u / U)[:, None]
    return np.stack([U[:, None] * np.tanh(phase), (U / b)[:, None] / np.cosh(phase)], axis=2)


def suslov_motion(r: xr.Dataset) -> np.ndarray:
    """(times, 2) angular velocity of Suslov's body across its axis, in closed form [rad/s]."""
    roots = np.sqrt(np.diag(SUSLOV)[:2])
    y = roots * r["v"].values[0, :2]
    size, coupling = np.linalg.norm(y), SUSLOV[2, :2] / roots
    k = size * np.linalg.norm(coupling) / np.prod(roots)
    beta = np.arctan2(coupling[1], coupling[0])
    apart = np.arctan2(y[1], y[0]) - beta
    alpha = beta + np.arcsin(np.tanh(k * r["time"].values + np.arctanh(np.sin(apart))))
    return size * np.column_stack([np.cos(alpha), np.sin(alpha)]) / roots


def ball_motion(r: xr.Dataset, slope: float) -> np.ndarray:
    """(runs, times) position of the ball on the table as a complex number [m], in closed form."""
    at, way = (x[:, 0, 0] + 1j * x[:, 0, 1] for x in (r["q"].values, r["v"].values))
    rate = 1j * 2 / 7 * RATES
    drift = -5 / 7 * G * np.sin(slope) / rate  # where w z x drift + 5/7 g = 0
    t = r["time"].values
    return at[:, None] + drift[:, None] * t + ((way - drift) / rate)[:, None] * (np.exp(rate[:, None] * t) - 1)


def figures(result: dict[str, xr.Dataset]) -> dict[str, Any]:
    figure = blank_figure(11, 6.4)
    (circles, lean, blade), (rates, level, sloping) = figure.subplots(2, 3)
    for i in range(len(LEANS)):
        q = result["circles"]["q"].values[i]
        look = {"color": f"C{i}", "linestyle": ("-", "--", ":", "-.", "-")[i]}
        circles.plot(q[:, 0], q[:, 1], label=f"{np.degrees(LEANS[i]):.0f}°, {PRECESSION[i]:g} rad/s", **look)
    circles.set(xlabel="x [m]", ylabel="y [m]", aspect="equal", title="disks: axis from the normal, precession")
    t, found = result["straight"]["time"].values, -np.arcsin(result["straight"]["axis"].values[:, :, 2])
    for i in (0, 2, 3, 4, 6):
        (line,) = lean.semilogy(t, np.abs(found[i]) + 1e-12, label=f"{SPINS[i] / CRITICAL:.2g}")
        lean.semilogy(t[::8], np.abs(small_leans(t)[i, ::8]) + 1e-12, ".", color=line.get_color())
    lean.set(
        xlabel="time [s]", ylabel="lean of disks rolling straight [rad]", title="spin over the critical one; dots: closed form"
    )
    for i in range(2):
        q, look = result["sleigh"]["q"].values[i], {"color": f"C{i}", "linestyle": ("-", "--")[i]}
        blade.plot(q[:, 0], q[:, 1], label=f"from {result['sleigh']['v'].values[i, 0, 0]:g} m/s", **look)
    blade.set(xlabel="x [m]", ylabel="y [m]", aspect="equal", title="sleighs: path of the blade")
    s = result["suslov"]
    for i in range(2):
        (line,) = rates.plot(s["time"], s["v"].values[:, i], label=f"about axis {i + 1}")
        rates.plot(s["time"][::15], suslov_motion(s)[::15, i], ".", color=line.get_color())
    rates.set(xlabel="time [s]", ylabel="rate [rad/s]", title="Suslov's body; dots: closed form")
    for axes, name in ((level, "level"), (sloping, "sloping")):
        for i, rate in enumerate(RATES):
            q, look = result[name]["q"].values[i], {"color": f"C{i}", "linestyle": ("-", "--", ":")[i]}
            axes.plot(q[:, 0], q[:, 1], label=f"{rate:g} rad/s", **look)
        axes.set(xlabel="x [m]", ylabel="y [m]", aspect="equal", title=f"ball on a turntable, {name}")
    return {"rolling and sliding": figure}


def claims(result: dict[str, xr.Dataset]) -> Iterator[Claim]:
    ended = sum(int((r["status"] != 0).sum()) for r in result.values())
    yield Claim("runs that ended early", ended, 0)
    yield from _disks(result["circles"], result["straight"])
    source = "sleigh, closed form"
    r = result["sleigh"]
    yield Claim(
        "sleigh: error of speed and turning rate [m/s, rad/s]",
        _most(r["v"].values[:, :, ::2] - sleigh_motion(r)),
        0,
        1e-8,
        source,
    )
    yield Claim("sleigh: rotation of the one that starts backwards [rad]", r["q"].values[1, -1, 2], 2.0, 0, source, "at least")
    yield Claim("sleigh: change of energy, relative", _drift(r), 0, 1e-9, source)
    s = result["suslov"]
    yield Claim(
        "Suslov: error of the rates [rad/s]", _most(s["v"].values[:, :2] - suslov_motion(s)), 0, 1e-9, "Suslov, closed form"
    )
    yield Claim("Suslov: change of energy, relative", _drift(s), 0, 1e-10, "Suslov, closed form")
    for name, slope in (("level", 0.0), ("sloping", SLOPE)):
        r = result[name]
        off = r["q"].values[:, :, 0] + 1j * r["q"].values[:, :, 1] - ball_motion(r, slope)
        yield Claim(f"turntable, {name}: error of position [m]", np.abs(off).max(), 0, 1e-8, "turntable, closed form")
    slip = max(_most(r["velocity_violation"]) for name, r in result.items())
    yield Claim("largest slip at any instant [m/s, rad/s]", slip, 0, 1e-9, "constraints")


def _disks(circles: xr.Dataset, straight: xr.Dataset) -> Iterator[Claim]:
    source = "rolling disk, closed form"
    spin = steady_spin(LEANS, PRECESSION)
    a, t = circles["axis"].values, circles["time"].values
    yield Claim("circles: error of the lean [rad]", _most(np.arccos(a[:, :, 2]) - LEANS[:, None]), 0, 1e-8, source)
    turned = np.unwrap(np.arctan2(a[:, :, 1], a[:, :, 0]), axis=1)
    turned -= turned[:, :1]
    yield Claim("circles: error of the precession angle [rad]", _most(turned - PRECESSION[:, None] * t), 0, 1e-7, source)
    # The disk's centre is at a |w_3 / W| from the centre of its path, which is perpendicular to the heading x.
    way = circles["q"].values[:, :, 0] + 1j * circles["q"].values[:, :, 1]
    expected = -A * (spin / PRECESSION)[:, None] * (np.exp(1j * PRECESSION[:, None] * t) - 1) / 1j
    yield Claim("circles: error of the centre [m]", np.abs(way - expected).max(), 0, 1e-7, source)
    yield Claim("circles: change of energy, relative", _drift(circles), 0, 1e-9, source)
    leans = -np.arcsin(straight["axis"].values[:, :, 2])
    small = small_leans(straight["time"].values)
    off = np.abs(leans - small).max(axis=1) / np.abs(small).max(axis=1)
    yield Claim("straight: lean minus the linear one, relative", off.max(), 0, 1e-4, source)
    grown = np.abs(leans).max(axis=1) / NUDGE
    yield Claim(
        "straight: smallest growth of the lean below sqrt(g / 3a)", grown[SPINS < CRITICAL].min(), 2.0, 0, source, "at least"
    )
    yield Claim(
        "straight: largest growth of the lean above sqrt(g / 3a)", grown[SPINS > CRITICAL].max(), 1.0, 1e-4, source, "at most"
    )


def _drift(r: xr.Dataset) -> float:
    e = np.atleast_2d(r["energy"].values)
    return _most((e - e[:, :1]) / np.abs(e[:, :1]))


def _most(x: np.ndarray | xr.DataArray) -> float:
    return float(np.abs(x).max())
