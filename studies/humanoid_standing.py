"""Talos stands on both feet and moves its mass centre and its arms with least torque. [aghili05 (43)-(46), (53)-(62)]

The robot is talos_reduced of example-robot-data in the stance "half_sitting" of its SRDF file: 38 velocities, of which the six
of the floating base have no motor; the soles are welded to the ground, 12 rows. The law is `projected` with stacked tasks that
determine the whole motion: mass centre (3), rotation of the trunk (3), every joint above the legs (20). No paper has this run;
the claims are what the paper's equations imply for it.

Ours: G_P = 100, G_D = 20, so that every error is e(0) (1 + 10 t) exp(-10 t). The mass centre moves 6 cm to the left and 5 cm
down within half a second while the trunk stays upright and both elbows and shoulders turn. At the start the arms have errors of
up to 0.05 rad, which also displace the mass centre. A second run, "swaying", moves the mass centre 18 cm to the left in the
same time. A welded sole can pull and a real one cannot; the result reports when a real sole would lift off.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import casadi as ca
import numpy as np
import xarray as xr

import pfaffian as pf
from pfaffian import control
from pfaffian.maths import so3
from pfaffian.study import Claim, blank_figure

SOLES = ("left_sole_link", "right_sole_link")
LEGS = {3: -0.411354, 4: 0.859395, 5: -0.448041, 6: -0.001708}
ARMS = {1: 0.25847, 2: 0.173046, 3: -0.0002}
"""Joint angles of the stance "half_sitting" [rad]; the right arm has the opposite signs."""
STANCE = (
    {f"leg_{side}_{i}_joint": angle for side in ("left", "right") for i, angle in LEGS.items()}
    | {f"arm_{side}_{i}_joint": sign * angle for side, sign in (("left", 1), ("right", -1)) for i, angle in ARMS.items()}
    | {f"arm_{side}_{i}_joint": angle for side in ("left", "right") for i, angle in ((4, -0.525366), (7, 0.1))}
    | {"torso_2_joint": 0.006761}
)
TURNS = {"arm_left_1_joint": -0.4, "arm_right_1_joint": 0.4, "arm_left_4_joint": -0.6, "arm_right_4_joint": -0.6}
"""Rotations of the arm joints [rad]."""
HEIGHT = 1.01927
DURATION = 0.5
STIFFNESS, DAMPING = 100.0, 20.0
G = 9.81
MOTIONS = {"standing": (0.06, 0.05), "swaying": (0.18, 0.05)}
"""Motion of the mass centre to the left and down [m]."""
SAMPLES, STEP, EVERY = 12, 1e-3, 2


def robot() -> pf.Mechanism:
    """Talos with its soles welded where they are in the stance."""
    path = pf.formats.installed("example-robot-data", "talos_data/robots/talos_reduced.urdf", "humanoid-standing")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pf.ModelWarning)
        m = pf.formats.read_urdf(path, base="free")
    where = pf.compile_terms(m, {sole: lambda T, sole=sole: _frame(T.kinematics, sole) for sole in SOLES}, lanes=1)(stance(m))
    welds = [pf.closure(s, "weld", "world", s, placement_a=pf.pose(x[:, 3], rotation=x[:, :3])) for s, x in where.items()]
    return m.with_(constraints=welds, parameters=[pf.Parameter("left", 0.06, "m"), pf.Parameter("down", 0.05, "m")])


def mechanism() -> pf.Mechanism:
    return robot()


def _frame(k: pf.Kinematics, body: str) -> ca.SX:
    return ca.horzcat(k.rotation(body), k.position(body))


def stance(m: pf.Mechanism) -> np.ndarray:
    q = m.neutral()
    q[2] = HEIGHT
    for name, angle in STANCE.items():
        q[m.q_slices[name]] = angle
    return q


def law(m: pf.Mechanism) -> control.Control:
    """Law for mass centre, trunk and all joints above the legs, whose references are polynomials in time."""
    upper = [j.name for j in m.joints if j.nv == 1 and not j.name.startswith("leg")]
    task = control.stack(control.centre_of_mass(), lambda k: so3.log(k.rotation("torso_2_link")), control.joints(*upper))
    start = pf.compile_terms(m, {"theta": lambda T: task(T.kinematics)}, lanes=1)(stance(m))["theta"]
    start[3:6] = 0
    left, down = (p.symbol for p in m.parameters)
    end = list(start + np.concatenate([np.zeros(6), [TURNS.get(name, 0.0) for name in upper]]))
    end[1], end[2] = start[1] + left, start[2] - down
    return control.projected(task, control.polynomial(list(start), end, DURATION), stiffness=STIFFNESS, damping=DAMPING)


def run() -> dict[str, xr.Dataset]:
    m = mechanism()
    q = stance(m)
    random = np.random.default_rng(5)
    for j in m.joints:
        if j.name.startswith("arm"):
            q[m.q_slices[j.name]] += random.uniform(-0.05, 0.05)
    left, down = (np.array(x) for x in zip(*MOTIONS.values(), strict=True))
    both = pf.run(
        m, np.tile(q, (2, 1)), control=law(m), duration=1.5, step=STEP, every=EVERY, parameters={"left": left, "down": down},
        outputs={"mass_centre": control.centre_of_mass()}, record="all",
    )  # fmt: skip
    results = {name: both.isel(run=i) for i, name in enumerate(MOTIONS)}
    results["oracle"] = oracle(m, results["standing"])
    return results


def oracle(m: pf.Mechanism, r: xr.Dataset, others: int = 200) -> xr.Dataset:
    """Checks at some instants that use M, c, f, A, b and B alone.

    least: the smallest inputs for the motion, by a QP solver.   excess: how much larger the norm of other inputs is.
    base: force on the base in the executed motion, M a + c - f - reaction, with a by differences of the recorded v.
    """
    at, v = np.linspace(2, r.sizes["time"] - 3, SAMPLES).astype(int), r["v"].values
    a = (8 * (v[at + 1] - v[at - 1]) - (v[at + 2] - v[at - 2])) / (12 * EVERY * STEP)
    r = r.isel(time=at)
    q, v, u, reaction = (r[x].values for x in ("q", "v", "u", "reaction"))
    parts = {
        "M": lambda T: T.M,
        "c": lambda T: T.c,
        "f": lambda T: T.f,
        "A": lambda T: T.A,
        "b": lambda T: T.b,
        "B": lambda T: T.B,
    }
    T = pf.compile_terms(m, parts)(q, v)
    random = np.random.default_rng(6)
    found: dict[str, list] = {name: [] for name in ("least", "excess", "apart", "base", "v_dot")}
    for i in range(SAMPLES):
        M, c, f, A, b, B = (T[name][i] for name in parts)
        N = np.linalg.svd(A)[2][12:].T
        motion = N.T @ B
        # The acceleration under u: A v_dot = b, and the equations of motion projected onto N(A).
        a0 = np.linalg.lstsq(A, b, rcond=1e-9)[0]
        v_dot = a0 + N @ np.linalg.solve(N.T @ M @ N, N.T @ (f + B @ u[i] - c - M @ a0))
        tau = M @ v_dot + c - f
        least = least_inputs(B, A, tau)
        Z = np.linalg.svd(motion)[2][N.shape[1] :]
        more = u[i] + random.normal(size=(others, len(Z))) * 10 @ Z
        found["least"].append(least)
        found["excess"].append((np.linalg.norm(more, axis=1) - np.linalg.norm(u[i])).min())
        found["apart"].append(np.abs((more - least) @ motion.T).max())
        found["base"].append(np.abs((M @ a[i] + c - f - reaction[i])[:6]).max())
        found["v_dot"].append(v_dot)
    inverse = pf.inverse_dynamics(m, q, v, np.array(found["v_dot"]))
    data = {name: (("time", "input") if name == "least" else "time", x) for name, x in found.items() if name != "v_dot"}
    return xr.Dataset(
        data | {"u": (("time", "input"), u), "inverse": (("time", "input"), inverse.u)}, {"time": r["time"].values}
    )


def least_inputs(B: np.ndarray, A: np.ndarray, tau: np.ndarray) -> np.ndarray:
    """u that minimises |u|^2 / 2 subject to B u + A^T lambda = tau with free lambda, by the active-set method of CasADi."""
    n, m = B.shape[1], len(A)
    H, rows = np.diag([1.0] * n + [0.0] * m), np.hstack([B, A.T])
    quiet = {"print_iter": False, "print_header": False, "print_info": False}
    solver = ca.conic("least", "qrqp", {"h": ca.DM(H).sparsity(), "a": ca.Sparsity.dense(*rows.shape)}, quiet)
    return np.array(solver(h=H, a=rows, lba=tau, uba=tau)["x"]).ravel()[:n]


def normal(r: xr.Dataset, sole: str) -> np.ndarray:
    """Force of the ground on a sole, along the sole's normal [N]."""
    return r["multiplier"].sel(row=f"{sole}.vz").values


def designed(r: xr.Dataset) -> np.ndarray:
    t = r["time"].values[:, None]
    return r["task_error"].values[0] * (1 + 10 * t) * np.exp(-10 * t)


def figures(result: dict[str, xr.Dataset]) -> dict[str, Any]:
    figure = blank_figure(8.5, 5.6)
    (centre, error), (torque, force) = figure.subplots(2, 2)
    for name, dashes in (("standing", "-"), ("swaying", "--")):
        r = result[name]
        t = r["time"]
        for axis, i, colour in (("left (y)", 1, "C0"), ("up (z)", 2, "C1")):
            moved = r["mass_centre"].values[:, i] - r["mass_centre"].values[0, i]
            centre.plot(t, 100 * moved, dashes, color=colour, label=f"{axis}, {name}")
        torque.plot(t, np.linalg.norm(r["u"], axis=1), dashes, color="C0", label=name)
        for sole, colour in zip(SOLES, ("C2", "C3"), strict=True):
            force.plot(t, normal(r, sole), dashes, color=colour, label=f"{sole.split('_')[0]} sole, {name}")
    r = result["standing"]
    size = np.linalg.norm(r["task_error"], axis=1)
    error.semilogy(r["time"], size, color="C0", label="simulated")
    error.semilogy(r["time"], np.linalg.norm(designed(r), axis=1), ":", color="black", label="designed")
    o = result["oracle"]
    torque.plot(o["time"], np.linalg.norm(o["least"], axis=1), "o", color="black", markersize=4, label="minimum by a QP solver")
    force.axhline(0, color="black", linewidth=0.8)
    centre.set_ylabel("motion of the mass centre [cm]")
    error.set_ylabel("norm of the task error [m, rad]")
    torque.set_ylabel("norm of the motor torques [N m]")
    force.set_ylabel("normal force on a sole [N]")
    for axes in (centre, error, torque, force):
        axes.set_xlabel("time [s]")
    return {"standing": figure}


def claims(result: dict[str, xr.Dataset]) -> Iterator[Claim]:
    r, lean, o = result["standing"], result["swaying"], result["oracle"]
    yield Claim("runs that ended early", sum(int(x["status"]) != 0 for x in (r, lean)), 0)
    off = np.abs(r["task_error"].values - designed(r)).max()
    yield Claim("task errors minus e(0) (1 + 10 t) exp(-10 t) [m, rad]", off, 0, 1e-7, "[aghili05 (44)]")
    yield Claim(
        "largest task error at the start [m, rad]", np.abs(r["task_error"].values[0]).max(), 0.04, 0, "setting", "at least"
    )
    yield Claim("displacement of the feet [m, rad]", np.abs(r["phi"].values).max(), 0, 1e-10)
    scale = np.abs(o["u"].values).max()
    apart = np.abs(o["u"].values - o["least"].values).max() / scale
    yield Claim("torques minus those of a QP solver, relative", apart, 0, 1e-8, "[aghili05 (46) (60)]")
    yield Claim(
        "least excess of 200 other torques with the same motion [N m]",
        float(o["excess"].min()),
        0,
        0,
        "[aghili05 (46)]",
        "at least",
    )
    yield Claim(
        "the same torques: difference of the force on the free motion [N, N m]", float(o["apart"].max()), 0, 1e-9, "check"
    )
    apart = np.abs(o["u"].values - o["inverse"].values).max() / scale
    yield Claim("torques minus those of pf.inverse_dynamics, relative", apart, 0, 1e-8, "[aghili05 (45)]")
    off = float(o["base"].max())
    yield Claim("force on the floating base in the executed motion [N, N m]", off, 0, 1e-4, "[aghili05 (53)]")
    mass = sum(float(b.mass) for b in mechanism().bodies)
    ground = sum(normal(r, sole)[-1] for sole in SOLES)
    yield Claim("sum of the normal forces at the end, relative to the weight", ground / (mass * G), 1, 1e-4, "Newton")
    least = min(normal(r, sole).min() for sole in SOLES)
    yield Claim("least normal force, standing [N]", least, 0, 0, "unilateral contact", "at least")
    changes = sum(len(pf.results.sign_changes(r, "multiplier", f"{sole}.vz").times) for sole in SOLES)
    yield Claim("sign changes of the normal forces, standing", changes, 0, 0, "unilateral contact")
    for sole in SOLES:
        pulls = pf.results.sign_changes(lean, "multiplier", f"{sole}.vz")
        side = sole.split("_")[0]
        yield Claim(f"how often the {side} sole starts to pull, swaying", int((~pulls.rising).sum()), 1, 0, "sign_changes")
        forces = lean["multiplier"].sel(row=f"{sole}.vz").interp(time=pulls.times).values
        yield Claim(f"force on the {side} sole at its sign changes [N]", np.abs(forces).max(initial=0), 0, 1e-9, "sign_changes")
    least = min(normal(lean, sole).min() for sole in SOLES)
    yield Claim("least normal force, swaying [N]", least, -10, 0, "a weld can pull", "at most")
