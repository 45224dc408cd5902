"""Two Pandas carry one box: simultaneous control of its motion and of the force that squeezes it. [aghili05 (49)-(52)]

Two arms of example-robot-data (7 joints each, fingers fixed) face each other 1.3 m apart. The box, 2 kg and 20 cm long, is
fixed to the left hand and welded to the right one: 14 velocities, 6 rows, 8 degrees of freedom, 14 motors. The law is
`hybrid_force`: the task is the pose of the box, the controlled force is that of the weld along three directions. No paper has
this run; the claims follow from the paper's equations.

Ours: the box moves 10 cm sideways, 8 cm down and turns by 0.3 rad within 1 s, while the squeezing force rises from 10 N to 30 N
and the right hand takes half of the weight; G_P = 100, G_D = 20, G_F = 1, G_I = 20, self-motions of the two elbows damped at
5 / s. The box starts with an error of a centimetre, and the force loop with a wrong integral, so that both errors decay as
designed: e(0) (1 + 10 t) exp(-10 t) and e(0) exp(-10 t). In a third run the box weighs 3 kg and the law assumes 2 kg.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import casadi as ca
import numpy as np
import xarray as xr

import pfaffian as pf
from pfaffian import control
from pfaffian.study import Claim, blank_figure

READY = (-0.2164, -0.4031, 0.3095, -2.3173, 0.1982, 3.5, 0.7198)
"""Joint angles with the hand 0.45 m ahead and 0.68 m up, pointing forward [rad]."""
REACH, SIDE, LENGTH = 0.45, 0.05, 0.2
APART = (2 * (REACH + LENGTH), 2 * SIDE, 0.0)
"""Position of the right base relative to the left one, which it faces [m]: half a turn about the middle of the box's far
end."""
MASS = 2.0
G = 9.81
MOTION = {"stiffness": 100.0, "damping": 20.0, "rest_damping": 5.0}
FORCE = {"force_gain": 1.0, "integral_gain": 20.0}
RATE = 10.0
"""Rate of both designed decays [1/s]: sqrt(G_P), and G_I / (1 + G_F)."""
ROWS = ("right grip.vx", "right grip.vy", "right grip.vz")
INTEGRAL = (0.3, -0.2, 1.0)
MOVE = (0.0, 0.1, -0.08, 0.3, 0.0, 0.0)
"""Motion of the box: world position [m], body-fixed rotation vector [rad]."""


def arm(side: str, base: pf.Pose) -> tuple[list[pf.Body], list[pf.Joint]]:
    """Bodies and joints of a Panda with closed fingers; their names end in the side."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pf.ModelWarning)
        m = pf.formats.read_urdf(pf.formats.installed("example-robot-data", "panda_description/urdf/panda.urdf", "two-pandas"))
    bodies = [replace(b, name=f"{b.name} {side}") for b in m.bodies]
    joints = []
    for j in m.joints:
        j = pf.locked(j) if "finger" in j.name else j
        parent, place = (f"{j.parent} {side}", j.placement) if j.parent != "world" else ("world", base)
        ends = {"parent": parent, "child": f"{j.child} {side}", "placement": place}
        joints.append(replace(j, name=f"{j.name} {side}", damping=ca.SX(0), **ends))
    return bodies, joints


def mechanism(mass: float | None = None) -> pf.Mechanism:
    """The two arms with the box; mass: of the box [kg], or None for the parameter "mass"."""
    squeeze, weight = pf.Parameter("squeeze", 30.0, "N"), pf.Parameter("mass", MASS, "kg")
    box_mass = weight.symbol if mass is None else ca.SX(mass)
    a, b = LENGTH, 0.12
    box = pf.body(
        "box", box_mass, (0, 0, 0), [box_mass * (a * a + b * b) / 12, box_mass * (a * a + b * b) / 12, box_mass * b * b / 6]
    )
    left, right = arm("left", pf.pose()), arm("right", pf.pose(APART, rpy=(0, 0, np.pi)))
    grip = pf.joint("left grip", "fixed", "panda_hand left", "box", placement=pf.pose((0, 0, LENGTH)))
    tree = pf.mechanism("two Pandas", [*left[0], *right[0], box], [*left[1], *right[1], grip], parameters=[squeeze, weight])
    where = pf.compile_terms(tree, {"X": _grip}, lanes=1)(READY + READY)["X"]
    weld = pf.closure("right grip", "weld", "box", "panda_hand right", placement_a=pf.pose(where[:, 3], rotation=where[:, :3]))
    motors = [pf.actuator(j.name, j.name) for j in tree.joints if j.nv]
    return tree.with_(constraints=[weld], actuators=motors)


def _grip(T: pf.Terms) -> ca.SX:
    X = T.kinematics.pose("box").inverse() @ T.kinematics.pose("panda_hand right")
    return ca.horzcat(X.R, X.p)


def law(m: pf.Mechanism, squeeze: ca.SX) -> control.Control:
    """Law that moves the box along its path while the weld carries the desired force; squeeze: final squeezing force [N]."""
    box = lambda T: ca.horzcat(T.kinematics.rotation("box"), T.kinematics.position("box"))  # noqa: E731
    X = pf.compile_terms(m, {"X": box}, lanes=1)(READY + READY)["X"]
    start = np.concatenate([X[:, 3], np.zeros(3)])
    path = control.polynomial(list(start), list(start + np.array(MOVE)), 1.0)
    force = control.polynomial([0.0, 0.0, -10.0], [-MASS * G / 2, 0.0, -squeeze], 1.0)
    return control.hybrid_force(control.pose("box", X[:, :3]), path, force, ROWS, **MOTION, **FORCE, integral_start=INTEGRAL)


def believing(model: pf.Mechanism, given: control.Control) -> control.Control:
    """The law computed with a model that differs from the machine."""

    def answer(terms: pf.Terms, z: ca.SX, w: ca.SX, y: ca.SX) -> control.Command:
        return given.law(pf.Terms(model, terms.q, terms.v, terms.u, terms.t), z, w, y)

    return replace(given, law=answer)


def off_start(m: pf.Mechanism) -> np.ndarray:
    """A start about a centimetre away from the path."""
    return np.array(READY + READY) + np.random.default_rng(3).uniform(-0.02, 0.02, m.nq)


def run() -> dict[str, xr.Dataset]:
    m = mechanism()
    squeeze = m.parameters[0].symbol
    # The law always assumes a box of 2 kg.
    given = believing(mechanism(MASS), law(m, squeeze))
    parameters = {"squeeze": np.array([30.0, 0.0, 30.0]), "mass": np.array([MASS, MASS, 3.0])}
    q = np.tile(off_start(m), (3, 1))
    all_runs = pf.run(m, q, control=given, duration=3.0, step=1e-3, every=10, parameters=parameters, record="all",
                      outputs={"box": lambda k: k.position("box")})  # fmt: skip
    results = {name: all_runs.isel(run=i) for i, name in enumerate(("squeezed", "not squeezed", "3 kg, assumed 2 kg"))}
    results["oracle"] = oracle(m, results["squeezed"])
    results["weight"] = missing_weight(m, results["3 kg, assumed 2 kg"])
    return results


def oracle(m: pf.Mechanism, r: xr.Dataset) -> xr.Dataset:
    """Multipliers from M, c, A, b, B alone, by NumPy from the whole system of accelerations and multipliers."""
    r = r.isel(time=slice(None, None, 10))
    parts = {"M": lambda T: T.M, "c": lambda T: T.c, "A": lambda T: T.A, "b": lambda T: T.b, "B": lambda T: T.B}
    T = pf.compile_terms(m, parts)(r["q"].values, r["v"].values)
    n, found = m.nv, []
    for M, c, A, b, B, u in zip(*T.values(), r["u"].values, strict=True):
        whole = np.block([[M, -A.T], [A, np.zeros((len(A), len(A)))]])
        found.append(np.linalg.solve(whole, np.concatenate([B @ u - c, b]))[n:])
    return xr.Dataset({"multiplier": (("time", "row"), np.array(found))}, {"time": r["time"].values, "row": r["row"].values})


def missing_weight(m: pf.Mechanism, r: xr.Dataset) -> xr.Dataset:
    """Acceleration of a box of the assumed mass under the final inputs, divided by G_P: the expected constant pose error."""
    rate = lambda T: control.task.task_terms(T, control.pose("box", X)).J  # noqa: E731
    rotation = {"R": lambda T: T.kinematics.rotation("box")}
    X = pf.compile_terms(m, rotation, lanes=1)(READY + READY)["R"]
    q, u = r["q"].values[-1], r["u"].values[-1]
    light = {"squeeze": 30.0, "mass": MASS}
    v_dot = pf.forward_dynamics(m, q, np.zeros(m.nv), u, parameters=light).v_dot
    J = pf.compile_terms(m, {"J": rate}, lanes=1)(q)["J"]
    return xr.Dataset(
        {"offset": ("component", J @ v_dot / MOTION["stiffness"]), "error": ("component", r["task_error"].values[-1])}
    )


def designed(r: xr.Dataset) -> np.ndarray:
    t = r["time"].values[:, None]
    return r["task_error"].values[0] * (1 + RATE * t) * np.exp(-RATE * t)


def designed_force(r: xr.Dataset) -> np.ndarray:
    start = -np.array(INTEGRAL) * FORCE["integral_gain"] / (1 + FORCE["force_gain"])
    return start * np.exp(-RATE * r["time"].values[:, None])


def figures(result: dict[str, xr.Dataset]) -> dict[str, Any]:
    figure = blank_figure(12, 5.6)
    (path, force, force_error), (error, torque, blank) = figure.subplots(2, 3)
    blank.remove()
    r, heavy = result["squeezed"], result["3 kg, assumed 2 kg"]
    t = r["time"]
    along = ("up, vx", "across, vy", "squeeze, vz")
    for i, (row, name) in enumerate(zip(ROWS, along, strict=True)):
        force.plot(t, r["multiplier"].sel(row=row), color=f"C{i}", label=name)
        force.plot(t, heavy["multiplier"].sel(row=row), "--", color=f"C{i}")
    for x, colour, name in ((r, "C0", "model right"), (heavy, "C1", "3 kg, assumed 2 kg")):
        force_error.semilogy(t, np.linalg.norm(x["force_error"], axis=1), color=colour, label=name)
        error.semilogy(t, np.linalg.norm(x["task_error"], axis=1), color=colour, label=name)
    force_error.semilogy(t, np.linalg.norm(designed_force(r), axis=1), ":", color="black", label="designed")
    error.semilogy(t, np.linalg.norm(designed(r), axis=1), ":", color="black", label="designed")
    for x, look, name in ((r, "-", "model right"), (heavy, "--", "3 kg, assumed 2 kg")):
        path.plot(x["box"][:, 1], x["box"][:, 2], look, label=name)
    path.plot(*r["box"].values[0, 1:], "o", color="C0", label="start")
    path.set(xlabel="y [m]", ylabel="path of the box, up [m]", aspect="equal")
    for name, dashes in (("squeezed", "-"), ("not squeezed", "--")):
        torque.plot(t, np.linalg.norm(result[name]["u"], axis=1), dashes, label=name)
    force.set_ylabel("force on the right hand [N]")
    force.set_title("solid: 2 kg, dashed: 3 kg, assumed 2 kg")
    force_error.set_ylabel("norm of the force error [N]")
    error.set_ylabel("norm of the pose error [m, rad]")
    torque.set_ylabel("norm of the motor torques [N m]")
    for axes in (force, force_error, error, torque):
        axes.set_xlabel("time [s]")
    for axes in (force_error, error):
        axes.set_ylim(1e-11, 1e2)
    return {"two pandas": figure}


def claims(result: dict[str, xr.Dataset]) -> Iterator[Claim]:
    r, loose, heavy, o = (result[n] for n in ("squeezed", "not squeezed", "3 kg, assumed 2 kg", "oracle"))
    yield Claim("runs that ended early", sum(int(x["status"]) != 0 for x in (r, loose, heavy)), 0)
    yield Claim(
        "largest pose error at the start [m, rad]", np.abs(r["task_error"].values[0]).max(), 0.005, 0, "setting", "at least"
    )
    off = np.abs(r["task_error"].values - designed(r)).max()
    yield Claim("pose errors minus e(0) (1 + 10 t) exp(-10 t) [m, rad]", off, 0, 1e-7, "[aghili05 (44)]")
    off = np.abs(r["force_error"].values - designed_force(r)).max()
    yield Claim("force errors minus e(0) exp(-10 t) [N]", off, 0, 1e-6, "[aghili05 (51)]")
    off = np.abs(r["multiplier"].values[::10] - o["multiplier"].values).max()
    yield Claim("multipliers minus those of NumPy's whole system [N, N m]", off, 0, 1e-8, "[aghili05 (11) (18)]")
    end = r["multiplier"].sel(row=list(ROWS)).values[-1]
    yield Claim("squeeze at the end [N]", -end[2], 30, 1e-6, "setting")
    yield Claim("share of the weight on the right hand [1]", -end[0] / (MASS * G), 0.5, 1e-6, "setting")
    apart = np.abs(r["q"].values - loose["q"].values).max()
    yield Claim("difference of the motions with and without squeeze [rad]", apart, 0, 1e-9, "[aghili05 (52)]")
    yield Claim("|phi| of the welds [m, rad]", max(float(x["violation"].max()) for x in (r, loose, heavy)), 0, 1e-9)
    late = np.abs(heavy["force_error"].values[-1]).max()
    yield Claim("force error 3 s after the start, box 1 kg too heavy [N]", late, 0, 1e-3, "[aghili05 (51)]")
    early = np.abs(heavy["force_error"].values[:10] - designed_force(heavy)[:10]).max()
    yield Claim("initial disturbance of the force by the heavier box [N]", early, 0.1, 0, "setting", "at least")
    w = result["weight"]
    off = np.abs(w["offset"].values - w["error"].values).max()
    yield Claim("constant pose error minus acceleration of the missing weight / G_P [m, rad]", off, 0, 1e-4, "[aghili05 (44)]")
    yield Claim("constant position error [m]", np.linalg.norm(w["error"].values[:3]), 0.005, 0.0, "setting", "at least")
