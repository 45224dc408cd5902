"""A two-dof Cartesian robot on a circle: reduced quasi-velocities in closed form, and their laws. [aghili08 section IV-E]

M = diag(m1, m2), Phi = q1^2 + q2^2 - R^2 = 0. W = diag(sqrt m1, sqrt m2), g = (m2 q1^2 + m1 q2^2)^(1/2), V = [V1 V2] =
[[sqrt(m2) q1, -sqrt(m1) q2], [sqrt(m1) q2, sqrt(m2) q1]] / g. Then |v_r| = g |q1_dot / q2|, Lam_r = 2 g / sqrt(m1 m2), and V
turns at omega = -sqrt(m1 m2) R^2 v_r / g^3; the paper prints g^2 (studies/errata.md). W is constant, so Gamma = 0, and with one
reduced dof Gamma_r = 0 too: vd_r = u_r, while Gamma_o = omega couples the motion into the force.

The paper gives no numbers and its only figure is the sketch; the responses drawn here are ours, with m1 = 2 kg, m2 = 1 kg,
R = 0.5 m; start at 20 degrees with v_r = 0.6; K_d = 4 1/s; regulation to 110 degrees with K_p = 30 N/m and 40 N against the
constraint; tracking of 40 + 60 sin(1.5 t) degrees with K_p = 6 1/s and of 40 + 20 sin(3 t) N. The sign of lambda is the
library's: the reaction is A^T lambda.

The study also goes beyond the paper: a planar arm of three links with its tip on a line has two reduced dofs, a nonzero
Gamma_r, and several different factors W (for a diagonal M they are all the same). Motion and forces under both laws do not
depend on the factor. In a basis that is transported along the motion vd_r + Gamma_r v_r = u_r; a basis by SVD at each sample
jumps.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import casadi as ca
import numpy as np
import xarray as xr

import pfaffian as pf
from pfaffian import control
from pfaffian.study import Claim, blank_figure

M1, M2, R = 2.0, 1.0, 0.5  # [kg] [kg] [m]
START = np.radians(20.0)
V_R = 0.6  # [sqrt(kg) m/s]
K_D = 4.0  # [1/s]
FORCE = 40.0  # [N], along the constraint: |A^T lambda| = 2 R |lambda|
DURATION, STEP = 4.0, 1e-3
FINE = 2.5e-4  # [s] between samples of the transported basis, whose error is of second order


def mechanism() -> pf.Mechanism:
    """A carriage of mass m1 - m2 along y, the hand of mass m2 along z on it; the hand on the circle about the origin."""
    return pf.mechanism(
        "Cartesian robot",
        [pf.body("carriage", M1 - M2), pf.body("hand", M2)],
        [
            pf.joint("q1", "prismatic", "world", "carriage", axis=(0, 1, 0)),
            pf.joint("q2", "prismatic", "carriage", "hand", axis=(0, 0, 1)),
        ],
        constraints=[pf.holonomic("circle", lambda k: ca.sumsqr(k.q) - R**2)],
        actuators=[pf.actuator("f1", "q1"), pf.actuator("f2", "q2")],
        gravity=(0, 0, 0),
    )


def arm() -> pf.Mechanism:
    """Three links of 1 m and 1 kg in a plane without gravity, the tip on the line y = 1 m."""
    rods = [pf.body(f"link{i}", 1.0, (0.5, 0, 0), (0, 1 / 12, 1 / 12)) for i in range(3)]
    joints = [
        pf.joint(f"theta{i}", "revolute", "world" if i == 0 else f"link{i - 1}", f"link{i}",
                 placement=pf.pose((1.0 if i else 0, 0, 0)))
        for i in range(3)
    ]  # fmt: skip
    on_line = pf.holonomic("line", lambda k: k.position("link2", (1, 0, 0))[1] - 1.0)
    return pf.actuate_all(pf.mechanism("arm on a line", rods, joints, constraints=[on_line], gravity=(0, 0, 0)))


def g_of(q: np.ndarray) -> np.ndarray:
    return np.sqrt(M2 * q[..., 0] ** 2 + M1 * q[..., 1] ** 2)


def V_of(q: np.ndarray) -> np.ndarray:
    """(..., 2, 2) columns V1, V2."""
    c, s = np.sqrt(M2) * q[..., 0] / g_of(q), np.sqrt(M1) * q[..., 1] / g_of(q)
    return np.stack([np.stack([c, -s], -1), np.stack([s, c], -1)], -2)


def initial() -> tuple[np.ndarray, np.ndarray]:
    q = R * np.array([np.cos(START), np.sin(START)])
    return q, V_of(q)[:, 1] * V_R / np.sqrt([M1, M2])


def goal(t: ca.SX) -> list[ca.SX]:
    angle = np.radians(40) + np.radians(60) * ca.sin(1.5 * t)
    return [R * ca.cos(angle), R * ca.sin(angle)]


def multiplier(t: ca.SX) -> ca.SX:
    """Multiplier of a reaction of 40 + 20 sin(3 t) N towards the centre, A^T lambda = 2 lambda q."""
    return -(FORCE + 20 * ca.sin(3 * t)) / (2 * R)


def regulator() -> control.Control:
    aim = R * np.array([np.cos(np.radians(110)), np.sin(np.radians(110))])
    force = control.set_point([-FORCE / (2 * R)])
    return control.regulation(control.set_point(aim), velocity_gain=K_D, position_gain=30.0, force=force, rows=("circle",))


def tracker() -> control.Control:
    force = control.function_of_time(multiplier, 1)
    path = control.function_of_time(goal, 2)
    return control.tracking(path, velocity_gain=K_D, position_gain=6.0, force=force, rows=("circle",))


def run() -> dict[str, xr.Dataset]:
    q, v = initial()
    result = {}
    for name, law in (("regulation", regulator()), ("tracking", tracker())):
        result[name] = pf.run(mechanism(), q, v, duration=DURATION, step=STEP, every=2, control=law)
    for factor in pf.constraints.FACTORS:
        for name, law in arm_laws(factor).items():
            r = pf.run(arm(), [1.2, -0.9, -0.9], duration=1.0, step=STEP, every=2, control=law)
            result[f"{name}, {factor}"] = r
    driven = pf.run(mechanism(), q, v, u=[3.0, 1.0], duration=1.0, step=STEP)
    return result | {"along": along(driven), "arm": arm_swings()}


def arm_laws(factor: str) -> dict[str, control.Control]:
    """Tracking and regulation of the arm, with a constant 10 N against its line."""
    path = control.function_of_time(lambda t: [1.2 + 0.2 * ca.sin(2 * t), -0.9 - 0.3 * t, -0.9 + 0.1 * t], 3)
    aim = control.set_point([1.0, -0.4, -0.8])
    rest = {"force": control.set_point([10.0]), "rows": ("line",), "factor": factor}
    return {
        "arm tracks": control.tracking(path, velocity_gain=K_D, position_gain=6.0, **rest),
        "arm regulates": control.regulation(aim, velocity_gain=K_D, position_gain=30.0, **rest),
    }


def along(r: xr.Dataset) -> xr.Dataset:
    """Controlled run, with W, Lam, P, y and the force W^-1 f of the library along it."""
    made: dict = {}
    desired = {
        "W": lambda T: made.setdefault("x", pf.constraints.quasi_velocity(T)).W,
        "Lam": lambda T: T.A @ made["x"].inverse.T,
        "y": lambda T: made["x"].y,
        "P": lambda T: pf.constraints.reduced_quasi_velocity(T, made["x"]).P,
        "Gamma": lambda T: made["x"].Gamma,
        "push": lambda T: made["x"].inverse @ (T.generalised_input - made["x"].g),
    }
    m = arm() if r.attrs["mechanism"] == "arm on a line" else mechanism()
    found = pf.compile_terms(m, desired)(r["q"].values, r["v"].values, r["u"].values)
    dims = {"y": ("i",), "push": ("i",), "Lam": ("row", "i")}
    return r.assign({n: (("time", *dims.get(n, ("i", "j"))), x) for n, x in found.items()})


def arm_swings() -> xr.Dataset:
    """Swing of the arm along its line under constant moments, with both bases along the motion."""
    r = along(pf.run(arm(), [1.2, -0.9, -0.9], [0.8, 0.3, -0.5], u=[1.0, -0.5, 0.3], duration=2.0, step=FINE))
    svd = np.linalg.svd(r["Lam"].values)[2][:, 1:, :].transpose(0, 2, 1)
    dims = ("time", "i", "k")
    return r.assign(carried=(dims, pf.constraints.transport_basis(r["P"].values)), by_svd=(dims, svd))


def figures(result: dict[str, xr.Dataset]) -> dict[str, Any]:
    drawn = {name: _response(result[name], name) for name in ("regulation", "tracking")}
    return drawn | {"paths": _paths(result), "bases": _bases(result["arm"])}


def _response(r: xr.Dataset, name: str) -> Any:
    figure = blank_figure(8.5, 8.0)
    axes = figure.subplots(4, 1, sharex=True)
    t = r["time"].values
    desired = r["q"].values - r["task_error"].values
    for i in range(2):
        axes[0].plot(t, r["q"].values[:, i], color=pf.study.COLOURS[i], label=f"q{i + 1}")
        axes[0].plot(t, desired[:, i], "--", color=pf.study.COLOURS[i], label=f"q{i + 1}, desired")
        axes[3].plot(t, r["u"].values[:, i], color=pf.study.COLOURS[i], label=f"f{i + 1}")
    axes[0].set_ylabel("position [m]")
    y = np.sqrt([M1, M2]) * r["v"].values
    v_r = np.einsum("ti,ti->t", V_of(r["q"].values)[:, :, 1], y)
    axes[1].plot(t, v_r, color=pf.study.COLOURS[0], label="v_r")
    if "eps" in r:
        axes[1].plot(t, np.linalg.norm(r["eps"].values, axis=1), color=pf.study.COLOURS[1], label="|eps|")
    axes[1].set_ylabel("quasi-velocity [√kg m/s]")
    lam = force_of(r)
    axes[2].plot(t, lam, color=pf.study.COLOURS[0], label="reaction towards the centre")
    axes[2].plot(t, desired_force(r, name), "--", color=pf.study.COLOURS[1], label="desired")
    axes[2].set_ylabel("force [N]")
    axes[3].set(ylabel="actuators [N]", xlabel="time [s]")
    for ax in axes:
        ax.grid(color="#E6E6E6")
    axes[0].set_title(f"{name} on the circle")
    return figure


def _paths(result: dict[str, xr.Dataset]) -> Any:
    """Path of the particle on the circle, and that of its reference."""
    figure = blank_figure(8.0, 4.4)
    for ax, name in zip(figure.subplots(1, 2), ("regulation", "tracking"), strict=True):
        r = result[name]
        q, desired = r["q"].values, r["q"].values - r["task_error"].values
        round_ = np.linspace(0, 2 * np.pi, 200)
        ax.plot(R * np.cos(round_), R * np.sin(round_), color="#BBBBBB", linewidth=0.8, label="circle")
        ax.plot(*q.T, color=pf.study.COLOURS[0], linewidth=2, label="path")
        ax.plot(*q[0], "o", color=pf.study.COLOURS[0], label="start")
        if name == "regulation":
            ax.plot(*desired[-1], "s", color=pf.study.COLOURS[1], label="desired")
        else:
            ax.plot(*desired.T, "--", color=pf.study.COLOURS[1], label="desired")
        ax.set(xlabel="q1 [m]", ylabel="q2 [m]", aspect="equal", title=name)
    return figure


def _bases(r: xr.Dataset) -> Any:
    figure = blank_figure(7.0, 4.8)
    axes = figure.subplots(2, 1, sharex=True)
    for ax, name, title in zip(axes, ("by_svd", "carried"), ("SVD at each sample", "carried along"), strict=True):
        v_r = np.einsum("tij,ti->tj", r[name].values, r["y"].values)
        for i in range(2):
            ax.plot(r["time"], v_r[:, i], color=pf.study.COLOURS[i], label=f"v_r, component {i + 1}")
        ax.set(ylabel="v_r [√kg m/s]", title=f"arm on a line, basis V2: {title}")
        ax.grid(color="#E6E6E6")
    axes[1].set_xlabel("time [s]")
    return figure


def force_of(r: xr.Dataset) -> np.ndarray:
    """Reaction towards the centre [N]."""
    return -2 * R * r["multiplier"].values[:, 0]


def desired_force(r: xr.Dataset, name: str) -> np.ndarray:
    return FORCE + (20 * np.sin(3 * r["time"].values) if name == "tracking" else 0 * r["time"].values)


def claims(result: dict[str, xr.Dataset]) -> Iterator[Claim]:
    yield from _closed_forms(result["along"])
    yield from _regulation(result["regulation"])
    yield from _tracking(result["tracking"])
    for name in ("arm tracks", "arm regulates"):
        first = result[f"{name}, {pf.constraints.FACTORS[0]}"]
        for factor in pf.constraints.FACTORS[1:]:
            off = max(_largest(first[x].values - result[f"{name}, {factor}"][x].values) for x in ("q", "u"))
            yield Claim(f"{name}: {pf.constraints.FACTORS[0]} minus {factor}, q and f", off, 0, 1e-9, "[aghili08 section V]")
        gone = _largest(first["q"].values - first["q"].values[0])
        yield Claim(f"{name}: largest motion of a joint [rad]", gone, 0.1, 0, "setting", "at least")
    W = result["arm"]["W"].values[0]
    squares, axes = np.linalg.eigh(W @ W.T)
    apart = _largest(W - axes @ np.diag(np.sqrt(squares)) @ axes.T)
    yield Claim("arm: Cholesky factor of M minus its symmetric root [sqrt(kg) m]", apart, 0.1, 0, "setting", "at least")
    yield from _basis(result["arm"])


def _closed_forms(s: xr.Dataset) -> Iterator[Claim]:
    q, v, y = (s[n].values for n in ("q", "v", "y"))
    g, V = g_of(q), V_of(q)
    V1, V2 = V[:, :, 0], V[:, :, 1]
    W = np.diag(np.sqrt([M1, M2]))
    yield Claim("|W - diag(sqrt m)|", _largest(s["W"].values - W), 0, 1e-15, "[aghili08 section IV-E]")
    P = V2[:, :, None] * V2[:, None, :]
    yield Claim("|V2 V2^T - P|", _largest(s["P"].values - P), 0, 1e-12, "[aghili08 section IV-E]")
    v_r = np.einsum("ti,ti->t", V2, y)
    off = _largest(np.abs(v_r) - g * np.abs(v[:, 0] / q[:, 1]))
    yield Claim("|v_r| minus g |q1_dot / q2| [sqrt(kg) m/s]", off, 0, 1e-12, "[aghili08 (52), errata]")
    yield Claim("|v_r|^2 minus 2 T [J]", _largest(v_r**2 - 2 * s["kinetic_energy"].values), 0, 1e-14, "[aghili08 (27)]")
    Lam_r = np.einsum("tri,ti->t", s["Lam"].values, V1)
    yield Claim("Lam_r minus 2 g / sqrt(m1 m2)", _largest(Lam_r - 2 * g / np.sqrt(M1 * M2)), 0, 1e-12, "[aghili08 (53)]")
    # Omega = -V_dot V^T = [[0, -omega], [omega, 0]].
    h = STEP
    V_dot = (8 * (V[3:-1] - V[1:-3]) - (V[4:] - V[:-4])) / (12 * h)
    omega = -np.einsum("ti,ti->t", V_dot[:, :, 0], V2[2:-2])
    derived = -np.sqrt(M1 * M2) * R**2 * v_r / g**3
    scale = _largest(derived)
    off = _largest(omega - derived[2:-2]) / scale
    yield Claim("omega minus -sqrt(m1 m2) R^2 v_r / g^3, relative", off, 0, 1e-8, "[aghili08 (10), section IV-E, errata]")
    off = _largest(np.abs(omega) - (np.abs(derived) * g)[2:-2]) / scale
    yield Claim("|omega| minus the printed one (g^2), relative", off, 0.1, 0, "[aghili08 section IV-E, errata]", "at least")
    rate = (8 * (v_r[3:-1] - v_r[1:-3]) - (v_r[4:] - v_r[:-4])) / (12 * h)
    u_r = np.einsum("ti,ti->t", V2, s["push"].values)
    yield Claim("vd_r minus u_r, Gamma_r = 0 [sqrt(kg) m/s^2]", _largest(rate - u_r[2:-2]), 0, 1e-7, "[aghili08 (31a)]")
    # The paper's lambda is minus ours.
    u_o = np.einsum("ti,ti->t", V1, s["push"].values)
    off = _largest(-s["multiplier"].values[:, 0] - (u_o - derived * v_r) / Lam_r)
    yield Claim("lambda minus (u_o - omega v_r) / Lam_r [N/m]", off, 0, 1e-9, "[aghili08 (31b) (33)]")


def _regulation(r: xr.Dataset) -> Iterator[Claim]:
    e, T = r["task_error"].values, r["kinetic_energy"].values
    yield Claim("regulation: |e| after 4 s [m]", np.linalg.norm(e[-1]), 1e-3, 0, "[aghili08 (48)]", "at most")
    V = T + 30.0 * (e**2).sum(axis=1) / 2
    lost = K_D * 2 * T
    h = 2 * STEP
    simpson = np.append(0, np.cumsum((lost[:-2:2] + 4 * lost[1:-1:2] + lost[2::2]) * h / 3))
    off = _largest(V[::2] - V[0] + simpson)
    yield Claim("regulation: V(t) minus V(0) plus the integral of v_r^T K_d v_r [J]", off, 0, 1e-8, "[aghili08 (50)]")
    q, v_r = r["q"].values, np.sqrt(2 * T)
    error = -r["multiplier"].values[:, 0] - FORCE / (2 * R)
    off = _largest(error - M1 * M2 * R**2 * v_r**2 / (2 * g_of(q) ** 4))
    yield Claim("regulation: lambda - lambda_d minus m1 m2 R^2 v_r^2 / (2 g^4) [N/m]", off, 0, 1e-9, "[aghili08 (51)]")
    yield Claim("regulation: largest force error [N]", _largest(2 * R * error), 0.1, 0, "[aghili08 (51)]", "at least")
    yield Claim("regulation: force error after 4 s [N]", abs(2 * R * error[-1]), 1e-3, 0, "[aghili08 (51)]", "at most")


def _tracking(r: xr.Dataset) -> Iterator[Claim]:
    eps = np.linalg.norm(r["eps"].values, axis=1)
    off = _largest(eps - eps[0] * np.exp(-K_D * r["time"].values)) / eps[0]
    yield Claim("tracking: |eps| minus |eps(0)| exp(-K_d t), relative", off, 0, 1e-8, "[aghili08 (42) (43)]")
    yield Claim(
        "tracking: |e| after 4 s [m]", np.linalg.norm(r["task_error"].values[-1]), 1e-6, 0, "[aghili08 (45)]", "at most"
    )
    off = _largest(force_of(r) - desired_force(r, "tracking"))
    yield Claim("tracking: error of the force while moving [N]", off, 0, 1e-10, "[aghili08 (47)]")
    yield Claim("tracking: |phi| [m^2]", _largest(r["violation"]), 0, 1e-10, "[aghili08 (16)]")


def _basis(s: xr.Dataset) -> Iterator[Claim]:
    V2, y = s["carried"].values, s["y"].values
    yield Claim("|V2 V2^T - P|", _largest(V2 @ V2.transpose(0, 2, 1) - s["P"].values), 0, 1e-12, "[aghili08 (26)]")
    steps = {n: np.abs(np.diff(s[n].values, axis=0)).max() for n in ("carried", "by_svd")}
    yield Claim("largest step of the transported basis", steps["carried"], 0.02, 0, "[aghili08 (10)]", "at most")
    yield Claim("largest step of the basis by SVD", steps["by_svd"], 1, 0, "[aghili08 (21)]", "at least")
    v_r, u_r = (np.einsum("tij,ti->tj", V2, s[n].values) for n in ("y", "push"))
    Gamma_r = V2.transpose(0, 2, 1) @ s["Gamma"].values @ V2
    off = _largest(Gamma_r + Gamma_r.transpose(0, 2, 1))
    yield Claim("Gamma_r + Gamma_r^T [1/s]", off, 0, 1e-12, "[aghili08 Remark 2]")
    coupling = np.einsum("tij,tj->ti", Gamma_r, v_r)
    yield Claim("largest |Gamma_r v_r| [sqrt(kg) m/s^2]", _largest(coupling), 0.1, 0, "[aghili08 (31a)]", "at least")
    rate = (8 * (v_r[3:-1] - v_r[1:-3]) - (v_r[4:] - v_r[:-4])) / (12 * FINE)
    yield Claim("vd_r + Gamma_r v_r minus u_r", _largest(rate + coupling[2:-2] - u_r[2:-2]), 0, 1e-4, "[aghili08 (31a)]")
    yield Claim("|v_r|^2 minus |y|^2 [J]", _largest((v_r**2).sum(1) - (y**2).sum(1)), 0, 1e-12, "[aghili08 (27)]")


def _largest(x: object) -> float:
    return float(np.abs(np.asarray(x)).max())
