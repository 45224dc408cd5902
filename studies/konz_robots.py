"""UR5, Panda and a SCARA by particle, body and energy approach, controlled by their joints and by their tools. [konz25 4.1-4.3]

The robots are those of example-robot-data; the SCARA, with four axes, is ours. Each follows one reference, from rest to rest
in 1.5 s while its tool turns by 90 degrees or more, from a start with a large error. For control by the joints the prototype
has an inertia, damping and stiffness about every axis, relative to the link before; for control by the tool it is one body on
springs and dampers between tool and world. Panda has one axis more than a tool can determine, so its third joint also gets
such a pair: without it the law stops and names the joints that move. All weights are chosen so that small errors decay by s^2
+ 4 s + 8 in every direction; the approaches differ in the paths of large errors and in the effort. The two spaces are two runs
of one law whose weights are parameters.

No paper has these runs. The claims follow from the equations of any machine: controlled by the tool with the body approach, the
errors of UR5 and Panda are that of a free body (4.22) for any reference; and the energy of the body and energy approaches
decreases.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import casadi as ca
import numpy as np
import xarray as xr
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation

import pfaffian as pf
from pfaffian import control
from pfaffian.study import Claim, blank_figure

D, K = 4.0, 8.0
"""Coefficients of the decay of small errors [1/s, 1/s^2]."""
INERTIA = 1.0
"""Inertia of the prototype about each revolute axis [kg m^2], or mass along a prismatic one [kg]."""
MASS, TURNING = 2.0, 0.05
"""Mass and inertia of the tool's prototype [kg, kg m^2]."""
TIME, DURATION, STEP, EVERY = 1.5, 3.0, 1e-3, 10
OFF = np.array([0.12, -0.1, 0.08]), np.array([0.6, -0.6, 0.7])
"""Initial error of the tool relative to its reference: position [m], rotation vector [rad]."""
SPACES = ("joints", "tool")


class Robot(NamedTuple):
    """A robot with its reference.

    tool: body that follows it.   start, end: (nv,) joints of the reference.   off: initial error of the tool.
    spare: joint that also has a pair when the tool is controlled.   limits: (nv,) of the motors [N m, N]."""

    m: pf.Mechanism
    tool: str
    start: tuple[float, ...]
    end: tuple[float, ...]
    off: tuple[np.ndarray, np.ndarray]
    limits: np.ndarray
    spare: str = ""

    @property
    def reference(self) -> control.Reference:
        return control.function_of_time(control.rest_to_rest(self.start, self.end, TIME), len(self.start))


def _read(file: str) -> pf.Mechanism:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pf.ModelWarning)
        return pf.formats.read_urdf(pf.formats.installed("example-robot-data", file, "konz-robots"))


JOINTS, TOOL, SPARE = pf.Parameter("joints", 1.0), pf.Parameter("tool", 0.0), pf.Parameter("spare", 1.0)
"""Weights of the pairs in each space: of the joints, of the tool, and of the redundant arm's extra joint."""


def with_weights(m: pf.Mechanism) -> pf.Mechanism:
    return m.with_(parameters=[JOINTS, TOOL, SPARE])


def ur5() -> Robot:
    m = _read("ur_description/urdf/ur5_robot.urdf")
    start, end = (0.2, -1.2, 1.4, -0.9, -1.2, 0.3), (1.4, -0.8, 1.0, 0.6, -1.9, 1.9)
    return Robot(with_weights(m), "tool0", start, end, OFF, m.u_limits[:, 1])


def panda() -> Robot:
    m = _read("panda_description/urdf/panda.urdf")
    limits = m.u_limits[:7, 1]
    joints = [pf.locked(j) if "finger" in j.name else j for j in m.joints]
    m = pf.actuate_all(m.with_(joints=joints, actuators=()))
    start, end = (0.0, -0.4, 0.3, -2.2, 0.2, 2.0, 0.7), (1.3, 0.1, -0.1, -1.6, -0.4, 2.6, 1.8)
    return Robot(with_weights(m), "panda_hand_tcp", start, end, OFF, limits, "panda_joint3")


def scara() -> Robot:
    """SCARA of two links and a quill that slides and turns."""
    bodies = [
        pf.body("arm", 4.0, com=(0.18, 0, 0), inertia=0.06),
        pf.body("forearm", 3.0, com=(0.12, 0, 0), inertia=0.04),
        pf.body("quill", 1.0, inertia=0.004),
        pf.body("tool", 0.5, com=(0.02, 0, 0), inertia=0.001),
    ]
    joints = [
        pf.joint("shoulder", "revolute", "world", "arm", placement=(0, 0, 0.3)),
        pf.joint("elbow", "revolute", "arm", "forearm", placement=(0.4, 0, 0)),
        pf.joint("lift", "prismatic", "forearm", "quill", placement=(0.3, 0, 0)),
        pf.joint("turn", "revolute", "quill", "tool"),
    ]
    start, end = (0.2, 0.8, 0.0, 0.1), (1.3, 1.5, -0.12, -1.4)
    off = OFF[0], OFF[1] * [0, 0, 1]
    m = pf.actuate_all(pf.mechanism("SCARA", bodies, joints))
    return Robot(with_weights(m), "tool", start, end, off, np.array([60.0, 30.0, 60.0, 5.0]))


ROBOTS = {"UR5": ur5, "Panda": panda, "SCARA": scara}


def mechanism() -> pf.Mechanism:
    return ur5().m


# -- laws ------------------------------------------------------------------------------------------------------------------


def pairs(robot: Robot) -> list[control.Pair]:
    """Prototype: pairs about the joints, and the tool as a body, each with its weight."""
    by_joints, by_tool, found = JOINTS.symbol, TOOL.symbol, []
    for j in robot.m.joints:
        if j.nv:
            weight = INERTIA * (by_joints + by_tool * (SPARE.symbol if j.name == robot.spare else 0))
            slides = j.kind.name == "prismatic"
            of = [
                pf.forces.pseudo_matrix(x * weight) if slides else pf.forces.pseudo_matrix(0, moments=x * weight)
                for x in (1, D, K)
            ]
            found.append(control.pair(j.child, seen_from=j.parent, inertia=of[0], damping=of[1], stiffness=of[2]))
    of = [pf.forces.pseudo_matrix(x * MASS * by_tool, moments=x * TURNING * by_tool) for x in (1, D, K)]
    return [*found, control.pair(robot.tool, inertia=of[0], damping=of[1], stiffness=of[2])]


def run() -> dict[str, Any]:
    results: dict[str, Any] = {}
    for name, make in ROBOTS.items():
        robot = make()
        q, place = start(robot), outputs(robot)
        for a in control.APPROACHES:
            law = control.prototype_tracking(pairs(robot), robot.reference, approach=a)
            for space in SPACES:
                share = {"joints": float(space == "joints"), "tool": float(space == "tool")}
                results[f"{name}, {space}, {a}"] = pf.run(
                    robot.m, q, duration=DURATION, step=STEP, every=EVERY, control=law, outputs=place, parameters=share
                )
    results["alone"] = alone(results["UR5, tool, body"].time.values)
    robot = panda()
    law = control.prototype_tracking(pairs(robot), robot.reference, approach="body")
    none = {"joints": 0.0, "tool": 1.0, "spare": 0.0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pf.RunWarning)
        r = pf.run(
            robot.m,
            robot.start,
            duration=EVERY * STEP,
            step=STEP,
            every=EVERY,
            control=law,
            outputs=outputs(robot),
            parameters=none,
        )
    return results | {"no spare": pf.results.causes(r)[0]}


def outputs(robot: Robot) -> dict[str, Any]:
    """Outputs: pose of the tool relative to its reference."""

    def error(k: pf.Kinematics) -> pf.Pose:
        q_R = robot.reference.at(k.t, ca.SX(0, 1)).value
        return pf.Kinematics(robot.m, q_R, k.v, k.t).pose(robot.tool).inverse() @ k.pose(robot.tool)

    return {"place": lambda k: error(k).p, "axes": lambda k: ca.vec(error(k).R)}


def start(robot: Robot) -> np.ndarray:
    """Joints at which the tool has its initial error, the nearest by Newton iterations."""
    parts = {"G": lambda T: _pose(T.kinematics.pose(robot.tool)), "J": lambda T: T.kinematics.jacobian(robot.tool)}
    f, q = pf.compile_terms(robot.m, parts, backend="numpy", lanes=1), np.array(robot.start)
    (p, turn), there = robot.off, f(q)["G"]
    goal, axes = there[:, 3] + there[:, :3] @ p, there[:, :3] @ Rotation.from_rotvec(turn).as_matrix()
    for _ in range(20):
        x = f(q)
        R = x["G"][:, :3]
        left = np.concatenate([R.T @ (goal - x["G"][:, 3]), Rotation.from_matrix(R.T @ axes).as_rotvec()])
        q = q + np.linalg.lstsq(x["J"], left, rcond=None)[0]
    return q


def _pose(G: pf.Pose) -> ca.SX:
    return ca.horzcat(G.R, G.p)


def alone(times: np.ndarray) -> xr.Dataset:
    """Error of a free body from rest by SciPy: place' = R v, R' = R hat(w). [konz25 (4.22)]"""

    def rate(t: float, x: np.ndarray) -> np.ndarray:
        p, R, v, w = x[:3], x[3:12].reshape(3, 3), x[12:15], x[15:]
        turned = np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]]) / 2
        spin = np.stack([np.cross(row, w) for row in R])
        return np.concatenate([R @ v, spin.ravel(), -np.cross(w, v) - D * v - K * R.T @ p, -D * w - K * turned])

    x = np.concatenate([OFF[0], Rotation.from_rotvec(OFF[1]).as_matrix().ravel(), np.zeros(6)])
    found = solve_ivp(rate, (0, times[-1]), x, "DOP853", times, rtol=1e-11, atol=1e-13).y.T
    axes = found[:, 3:12].reshape(-1, 3, 3).swapaxes(1, 2).reshape(-1, 9)
    return xr.Dataset({"place": (("time", "axis"), found[:, :3]), "axes": (("time", "entry"), axes)}, {"time": times})


# -- figures and claims ----------------------------------------------------------------------------------------------------


def apart(r: xr.Dataset) -> np.ndarray:
    """Distance of the tool from its reference [mm]."""
    return 1e3 * np.linalg.norm(r.place, axis=1)


def turned(r: xr.Dataset) -> np.ndarray:
    """Angle between the tool and its reference [degrees]."""
    return np.degrees(Rotation.from_matrix(r["axes"].values.reshape(-1, 3, 3)).magnitude())


def decay(times: np.ndarray) -> np.ndarray:
    """Solution of x'' + D x' + K x = 0 from 1 at rest."""
    turn = np.sqrt(K - D**2 / 4)
    return np.exp(-D / 2 * times) * (np.cos(turn * times) + D / (2 * turn) * np.sin(turn * times))


def arrival(r: xr.Dataset) -> float:
    """Time from which the tool stays within 1 cm and 2 degrees of its reference [s]."""
    return float(r.time[np.maximum(apart(r) / 10, turned(r) / 2) > 1][-1])


def share(r: xr.Dataset, robot: Robot) -> np.ndarray:
    """Largest torque relative to the motors' limits at each instant."""
    return np.abs(r.u.values / robot.limits).max(axis=1)


def rms(x: np.ndarray) -> float:
    return float(np.sqrt(np.mean(x**2)))


def figures(result: dict[str, Any]) -> dict[str, Any]:
    figure = blank_figure(11, 8)
    for column, (name, make) in zip(figure.subplots(4, 3, sharex=True).T, ROBOTS.items(), strict=True):
        robot = make()
        for look, space in zip(("-", "--"), SPACES, strict=True):
            for i, a in enumerate(control.APPROACHES):
                r = result[f"{name}, {space}, {a}"]
                rows = (apart(r), turned(r), np.maximum(r.prototype_energy, 1e-12), share(r, robot))
                for ax, y in zip(column, rows, strict=True):
                    ax.plot(r.time, y, look, color=f"C{i}", label=f"{space}, {a}")
        column[2].set_yscale("log")
        column[0].set_title(name)
        column[3].set_xlabel("time [s]")
        for ax, words in zip(
            column, ("error of the tool [mm]", "angle error [deg]", "energy [J]", "share of limits [1]"), strict=True
        ):
            ax.set_ylabel(words)
        column[0].legend()
    return {"robots": figure, "robots table": compared(result)}


def compared(result: dict[str, Any]) -> Any:
    """Table of the errors and efforts of all laws."""
    rows, names = [], []
    for name, make in ROBOTS.items():
        robot = make()
        for space in SPACES:
            for a in control.APPROACHES:
                r = result[f"{name}, {space}, {a}"]
                names.append(f"{name} by its {space}, {a}")
                numbers = (
                    rms(apart(r)),
                    rms(turned(r)),
                    arrival(r),
                    rms(share(r, robot)),
                    share(r, robot).max(),
                )
                rows.append([f"{x:.3g}" for x in numbers])
    figure = blank_figure(8.5, 4.6)
    ax = figure.subplots()
    ax.set_axis_off()
    head = [
        "error of the tool,\nrms [mm]",
        "angle error,\nrms [deg]",
        "within 1 cm and\n2 deg from [s]",
        "share of limits,\nrms",
        "largest",
    ]
    table = ax.table(rows, rowLabels=names, colLabels=head, loc="center", cellLoc="right", edges="horizontal")
    table.auto_set_font_size(False)
    table.set_fontsize(8)
    for (row, _), cell in table.get_celld().items():
        cell.set_height(0.09 if row == 0 else 0.048)
    return figure


def claims(result: dict[str, Any]) -> Iterator[Claim]:
    free = result["alone"]
    for name in ("UR5", "Panda"):
        r = result[f"{name}, tool, body"]
        off = float(np.abs(r.place.values - free.place.values).max())
        yield Claim(f"{name} by its tool, body: error minus that of a free body [m]", off, 0, 1e-8, "[konz25 (4.22)]")
        off = float(np.abs(r["axes"].values - free["axes"].values).max())
        yield Claim(f"{name} by its tool, body: axes minus those of a free body [1]", off, 0, 1e-8, "[konz25 (4.22)]")
    for name, make in ROBOTS.items():
        robot = make()
        for space in SPACES:
            runs = {a: result[f"{name}, {space}, {a}"] for a in control.APPROACHES}
            yield Claim(f"{name} by its {space}: runs that stopped", sum(int(r.status) for r in runs.values()), 0)
            rise = max(float(runs[a].prototype_power.max()) for a in ("body", "energy"))
            yield Claim(
                f"{name} by its {space}: largest rate of the energy by body and energy [W]",
                rise,
                0,
                1e-10,
                "[konz25 (4.23), (4.32)]",
                "at most",
            )
            last = max(float(apart(r)[-1]) for r in runs.values())
            yield Claim(f"{name} by its {space}: error of the tool at the end [mm]", last, 0, 5.0, "ours", "at most")
            most = max(float(share(r, robot).max()) for r in runs.values())
            yield Claim(f"{name} by its {space}: largest share of a motor's limit", most, 1, 0, "ours", "at most")
        for a in ("particle", "body"):
            r = result[f"{name}, tool, {a}"]
            off = float(np.abs(apart(r) - apart(r)[0] * np.abs(decay(r.time.values))).max())
            yield Claim(
                f"{name} by its tool, {a}: distance minus the decay by s^2 + 4 s + 8 [mm]", off, 0, 1e-6, "[konz25 (4.98)]"
            )
        off = float(np.abs(result[f"{name}, tool, energy"].transport_error).max())
        yield Claim(f"{name}: map of the tool's twists, error in (4.30)", off, 0, 1e-10, "[konz25 (4.46)]")
        both = [result[f"{name}, joints, {a}"].q.values for a in ("body", "energy")]
        off = float(np.abs(both[0] - both[1]).max())
        yield Claim(f"{name} by its joints: body minus energy [rad]", off, 0, 1e-9, "[konz25 (4.106)]")
    named = set(result["no spare"].partition("against a motion of ")[2].partition(";")[0].split(", "))
    yield Claim(
        "Panda by its tool alone: the reason names joint 4, the elbow, which is at rest",
        float("panda_joint4" in named),
        0,
        0,
        "geometry",
    )
    yield Claim(
        "Panda by its tool alone: number of joints that the reason names",
        len(named & {f"panda_joint{i}" for i in range(1, 8)}),
        3,
        0,
        "ours",
        "at least",
    )
