"""A five-bar and a delta robot track circles with passive joints. [aghili05 (53)-(62)]

Five-bar: two cranks of 0.3 m on a base 0.2 m wide, two forearms of 0.4 m joined at the tip, in a vertical plane with gravity;
the joint at the tip is a revolute closure in space, with five rows of which the plane needs two. Delta: three cranks of 0.2 m
on a circle of 0.15 m, rods of 0.45 m, a platform of 0.05 m. As usual, each parallelogram is modelled as one rod with the mass
of both, connected by a universal joint to the crank and by a ball joint to the platform, which keeps its orientation and moves
along three axes. 12 velocities, 9 rows, 3 motors. All dimensions and masses are ours.

The law is `projected` with motors at the base only. No paper has these runs; the claims are those of [aghili05] for passive
joints: the motion is the designed one; the executed motion, with accelerations by differences, requires no force on a passive
joint and the motors' forces on the others; the inputs are those that NumPy computes from the whole system of accelerations and
multipliers; and motors on the wrong joints are detected. On the five-bar these are one crank alone; on the delta the three
joints by which the rods swing sideways, which do not move while the platform moves vertically in the middle.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import casadi as ca
import numpy as np
import xarray as xr

import pfaffian as pf
from pfaffian import control
from pfaffian.study import Claim, blank_figure

STIFFNESS, DAMPING = 400.0, 40.0
RATE = 20.0
"""Double pole of the designed error, with the opposite sign [1/s]."""
BASE, CRANK, FOREARM = 0.2, 0.3, 0.4
HUB, UPPER, ROD, PLATE = 0.15, 0.2, 0.45, 0.05
SAMPLES, STEP = 8, 1e-3
CIRCLE = 1.5
"""Angular velocity along the circles [rad/s]."""


def slender(name: str, mass: float, length: float) -> pf.Body:
    """A thin rod along x with a small inertia about its axis."""
    I = mass * length**2 / 12
    return pf.body(name, mass, (length / 2, 0, 0), (mass * 0.01**2, I, I))


def five_bar(motors: Sequence[str] = ("left crank", "right crank")) -> pf.Mechanism:
    """The five-bar in the x-z plane, with z up and angles from x towards z."""
    y = (0, -1, 0)
    joints, bodies = [], []
    for side, x in (("left", -BASE / 2), ("right", BASE / 2)):
        bodies += [slender(f"{side} crank", 0.6, CRANK), slender(f"{side} forearm", 0.4, FOREARM)]
        joints += [
            pf.joint(f"{side} crank", "revolute", "world", f"{side} crank", axis=y, placement=pf.pose((x, 0, 0))),
            pf.joint(f"{side} elbow", "revolute", f"{side} crank", f"{side} forearm", axis=y, placement=pf.pose((CRANK, 0, 0))),
        ]
    end = pf.pose((FOREARM, 0, 0))
    tip = pf.closure("tip", "revolute", "left forearm", "right forearm", placement_a=end, placement_b=end, axis=y)
    return pf.mechanism("five-bar", bodies, joints, constraints=[tip], actuators=[pf.actuator(f"{n} motor", n) for n in motors])


OPEN = 2.3
BEND = OPEN - np.arccos((BASE / 2 - CRANK * np.cos(OPEN)) / FOREARM)
"""Angles of the cranks from the x axis, and of the elbows, with the tip above the middle of the base [rad]."""
FIVE_BAR_START = {"left crank": OPEN, "left elbow": -BEND, "right crank": np.pi - OPEN, "right elbow": BEND}


def delta(motors: Sequence[str] = ("crank 0", "crank 1", "crank 2")) -> pf.Mechanism:
    """The delta robot, with its base above and platform below; the cranks turn about tangents of the base circle."""
    bodies, joints, rods = [pf.body("platform", 0.5, inertia=1e-3)], [], []
    carriers = (("x", (1, 0, 0)), ("y", (0, 1, 0)), ("z", (0, 0, 1)))
    before = "world"
    for name, axis in carriers:
        after = "platform" if name == "z" else f"carrier {name}"
        bodies += [] if name == "z" else [pf.body(after)]
        joints.append(pf.joint(name, "prismatic", before, after, axis=axis))
        before = after
    for i in range(3):
        turned = pf.pose(rpy=(0, 0, 2 * np.pi * i / 3))
        hip, knee = turned @ pf.pose((HUB, 0, 0)), pf.pose((UPPER, 0, 0))
        # A universal joint as two revolute joints with crossing axes; its cross has no mass but a small inertia.
        bodies += [slender(f"crank {i}", 0.3, UPPER), pf.body(f"cross {i}", 0.01, inertia=1e-6), slender(f"rod {i}", 0.2, ROD)]
        joints += [
            pf.joint(f"crank {i}", "revolute", "world", f"crank {i}", axis=(0, 1, 0), placement=hip),
            pf.joint(f"swing {i}", "revolute", f"crank {i}", f"cross {i}", axis=(0, 1, 0), placement=knee),
            pf.joint(f"sway {i}", "revolute", f"cross {i}", f"rod {i}", axis=(0, 0, 1)),
        ]
        corner = np.array(ca.DM((turned @ pf.pose((PLATE, 0, 0))).p)).ravel()
        rods.append(pf.coincide(f"ball {i}", f"rod {i}", (ROD, 0, 0), "platform", corner))
    return pf.mechanism("delta", bodies, joints, constraints=rods, actuators=[pf.actuator(f"{n} motor", n) for n in motors])


# The cranks are level, the rods point inwards and down: HUB + UPPER - ROD cos(swing) = PLATE.
SWING = np.pi - np.arccos((HUB + UPPER - PLATE) / ROD)
DELTA_START = {"z": -ROD * np.sin(SWING)} | {f"swing {i}": SWING for i in range(3)}


def mechanism() -> pf.Mechanism:
    return delta()


def circle(centre: Sequence[float], radius: float, axes: tuple[int, int]) -> control.Reference:
    def at(t: ca.SX) -> list:
        x = list(centre)
        x[axes[0]] += radius * ca.sin(CIRCLE * t)
        x[axes[1]] += radius * (1 - ca.cos(CIRCLE * t))
        return x

    return control.function_of_time(at, len(centre))


def cases() -> dict[str, tuple[pf.Mechanism, dict, control.Control]]:
    """Machine, start and law by name. Both start a few millimetres away from their circles."""
    gains = {"stiffness": STIFFNESS, "damping": DAMPING}
    height = CRANK * np.sin(OPEN) + FOREARM * np.sin(OPEN - BEND)
    tip = control.point("left forearm", (FOREARM, 0, 0), (0, 2))
    flat = control.projected(tip, circle((0.005, height - 0.005), 0.06, (0, 1)), **gains)
    low = DELTA_START["z"]
    space = control.projected(control.joints("x", "y", "z"), circle((0.005, 0.0, low - 0.005), 0.06, (0, 1)), **gains)
    return {"five-bar": (five_bar(), FIVE_BAR_START, flat), "delta": (delta(), DELTA_START, space)}


def run() -> dict[str, xr.Dataset]:
    results = {}
    for name, (m, start, law) in cases().items():
        results[name] = pf.run(m, start, control=law, duration=2 * np.pi / CIRCLE, step=STEP)
        results[f"{name}, oracle"] = oracle(m, results[name])
    wrong = five_bar(("left crank",)), delta(("sway 0", "sway 1", "sway 2"))
    for (name, (_, start, law)), m in zip(cases().items(), wrong, strict=True):
        results[f"{name}, wrong motors"] = pf.run(m, start, control=law, duration=0.1, step=1e-3)
    return results


def oracle(m: pf.Mechanism, r: xr.Dataset) -> xr.Dataset:
    """Inverse dynamics by NumPy: [B A^T] [u; lambda] = M v_dot + c, at the accelerations that NumPy computes from u; and M a +
    c - A^T lambda of the executed motion, with a by differences of the recorded v and the recorded lambda."""
    at = np.linspace(2, r.sizes["time"] - 3, SAMPLES).astype(int)
    v = r["v"].values
    a = (8 * (v[at + 1] - v[at - 1]) - (v[at + 2] - v[at - 2])) / (12 * STEP)
    r = r.isel(time=at)
    q, v, u, lam = (r[x].values for x in ("q", "v", "u", "multiplier"))
    parts = {"M": lambda T: T.M, "c": lambda T: T.c, "A": lambda T: T.A, "b": lambda T: T.b, "B": lambda T: T.B}
    T = pf.compile_terms(m, parts)(q, v)
    v_dot, found, executed = [], [], []
    for i in range(SAMPLES):
        M, c, A, b, B = (T[name][i] for name in parts)
        whole = np.block([[M, -A.T], [A, np.zeros((len(A), len(A)))]])
        v_dot.append(np.linalg.lstsq(whole, np.concatenate([B @ u[i] - c, b]), rcond=1e-12)[0][: m.nv])
        found.append(np.linalg.lstsq(np.hstack([B, A.T]), M @ v_dot[-1] + c, rcond=1e-12)[0][: m.nu])
        executed.append(M @ a[i] + c - A.T @ lam[i])
    driven = [x.joint for x in m.actuators]
    inverse = pf.inverse_dynamics(m.with_(actuators=()), q, v, np.array(v_dot), actuated=driven)
    work = [free(A).T @ F for A, F in zip(T["A"], inverse.reaction, strict=True)]
    columns = {"u": u, "numpy": np.array(found), "inverse": inverse.u}
    data = {name: (("time", "input"), x) for name, x in columns.items()}
    data |= {"executed": (("time", "velocity"), np.array(executed)), "work": (("time", "free"), np.array(work))}
    return xr.Dataset(data, {"time": r["time"].values, "velocity": list(m.v_names)})


def free(A: np.ndarray) -> np.ndarray:
    """Orthonormal basis of the null space of A."""
    _, s, Vt = np.linalg.svd(A)
    return Vt[int((s > 1e-9 * s[0]).sum()) :].T


def complaint(m: pf.Mechanism, start: dict, actuated: Sequence[str]) -> str:
    """Error message of pf.inverse_dynamics at rest with these joints actuated, or an empty text."""
    q, v = pf.assemble(m, start)[:2]
    try:
        pf.inverse_dynamics(m.with_(actuators=()), q, v, np.zeros(m.nv), actuated=actuated)
    except pf.RunError as error:
        return str(error)
    return ""


def designed(r: xr.Dataset) -> np.ndarray:
    """Designed errors from e(0) and e_dot(0), with both poles at -20 / s."""
    t = r["time"].values[:, None]
    e, rate = r["task_error"].values[0], r["task_error_rate"].values[0]
    return (e + (rate + RATE * e) * t) * np.exp(-RATE * t)


def figures(result: dict[str, xr.Dataset]) -> dict[str, Any]:
    figure = blank_figure(8.5, 5.6)
    for row, name in zip(figure.subplots(2, 2), ("five-bar", "delta"), strict=True):
        r, o = result[name], result[f"{name}, oracle"]
        error, torque = row
        error.semilogy(r["time"], np.linalg.norm(r["task_error"], axis=1), label="simulated")
        error.semilogy(r["time"], np.linalg.norm(designed(r), axis=1), ":", color="black", label="designed")
        error.set_ylim(1e-12, 1e-1)
        for i, motor in enumerate(r["input"].values):
            torque.plot(r["time"], r["u"][:, i], color=f"C{i}", label=str(motor))
            torque.plot(o["time"], o["numpy"][:, i], "o", color=f"C{i}", markersize=4)
        error.set_ylabel(f"{name}: norm of the error [m]")
        torque.set_ylabel(f"{name}: motor torque [N m]")
        for axes in row:
            axes.set_xlabel("time [s]")
    figure.axes[1].set_title("dots: NumPy's inverse dynamics")
    return {"parallel robots": figure}


def claims(result: dict[str, xr.Dataset]) -> Iterator[Claim]:
    for name in ("five-bar", "delta"):
        r, o = result[name], result[f"{name}, oracle"]
        yield Claim(f"{name}: runs that ended early", float(r["status"] != 0), 0)
        off = np.abs(r["task_error"].values - designed(r)).max()
        yield Claim(f"{name}: tracking error minus the designed one [m]", off, 0, 1e-7, "[aghili05 (44)]")
        yield Claim(f"{name}: error at the start [m]", np.abs(r["task_error"].values[0]).max(), 0.005, 1e-3, "setting")
        driven = [x.joint for x in cases()[name][0].actuators]
        off = np.abs(o["executed"].drop_sel(velocity=driven)).max()
        yield Claim(f"{name}: force on passive joints in the executed motion [N, N m]", off, 0, 1e-6, "[aghili05 (53)]")
        off = np.abs(o["executed"].sel(velocity=driven).values - o["u"].values).max()
        yield Claim(f"{name}: force on driven joints in the executed motion minus the motors' [N m]", off, 0, 1e-6, "Newton")
        off = np.abs(o["work"]).max()
        yield Claim(f"{name}: reaction of pf.inverse_dynamics on free motions [N]", off, 0, 1e-8, "[aghili05 (53)]")
        scale = np.abs(o["u"].values).max()
        for what in ("numpy", "inverse"):
            off = np.abs(o["u"].values - o[what].values).max() / scale
            called = {"numpy": "NumPy's", "inverse": "those of pf.inverse_dynamics"}[what]
            yield Claim(f"{name}: torques minus {called}, relative", off, 0, 1e-8, "[aghili05 (57)-(60)]")
        yield Claim(f"{name}: |phi| [m]", float(r["violation"].max()), 0, 1e-10)
        cause = pf.results.causes(result[f"{name}, wrong motors"])[0]
        yield Claim(
            f"{name}: wrong motors end the run as uncontrollable", float("uncontrollable" in cause), 1, 0, "[aghili05 (62)]"
        )
        wrong = {"five-bar": (["left crank"], "right crank"), "delta": (["sway 0", "sway 1", "sway 2"], "crank 0")}[name]
        m, start, _ = cases()[name]
        message = complaint(m, start, wrong[0])
        moves = message.split("moves ")[-1].split(";")[0].split(", ")
        holds = "uncontrollable" in message and wrong[1] in moves
        yield Claim(f"{name}: pf.inverse_dynamics refuses the wrong motors", float(holds), 1, 0, "[aghili05 (62)]")
        right = complaint(m, start, [a.joint for a in m.actuators])
        yield Claim(f"{name}: pf.inverse_dynamics accepts the right motors", float(right == ""), 1, 0, "[aghili05 (62)]")
