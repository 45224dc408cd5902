"""Measured tosses of a cube: its flights before the first contact, and what follows on the board.

An acrylic cube of 0.1048 m is thrown onto a board; cameras give pose, velocity and angular velocity 148 times a second. The
tosses that fly for at least 81 ms are used, every second one for the fit. Fitted are gravity, two ratios of the moments of
inertia and the delays of the velocities. These were made as backward differences, so that they are half a step, 3.4 ms, late:
the fit finds it. Residuals are those of the flights that the fit has not seen, of which only the starts are fitted.

Lengths in the records are some 2 % short: gravity and the height at which the cube comes to rest both say so.

Then the cube tumbles on the board, on eight compliant round corners with friction. Their seven numbers, CONTACT, predict the
unseen tosses from the starts of their flights to the end, under the gravity of the flights: means over each toss of the
distance and the angle to the measured pose, and of these over the tosses. A search without derivatives found them in this very
measure on the half that fits; the other half judges. Friction goes with the whole normal force, of which damping is the greater
part in an impact. `python -m benchmarks.cube_contact` makes such a search for both sides; MUJOCO is what six numbers of
MuJoCo's contact reach from the same starts, and ours are .7 +- .6 mm and .6 +- 2.1 deg nearer, by standard errors toss by toss.
A toss is predicted well until a corner decides on which side the cube falls; the median angle is half of the mean or less.
Origin and licence of the records: measured.md.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import casadi as ca
import numpy as np
from scipy.spatial.transform import Rotation

import pfaffian as pf
from pfaffian.study import Claim, blank_figure

SIDE, RATE, SAMPLES, CLEAR = 0.1048, 148.0, 12, 0.004
"""Side of the cube [m], samples in a second, samples of a flight, height of the lowest corner that counts as a contact [m]."""

GRAVITY = 9.612
"""That of the flights, in the lengths of the records [m/s^2]."""

CONTACT = {
    "stiffness": 5.674e5, "damping": 3.914, "friction": 0.1808, "creep": 0.09522,
    "board": -6.55e-5, "radius": 5.25e-3, "side": 0.1027,
}  # fmt: skip
"""Of each corner [N/m], [s/m], [1], [m/s]; height of the board, radius of the corners, side of the cube [m]."""

MUJOCO = (12.06, 17.07)
"""Mean distance [mm] and angle [deg] of MuJoCo's predictions of the same tosses, its contact fitted under GRAVITY too."""

SUBSTEPS = 32
"""Steps between two samples: a contact lasts for about one."""

CORNERS = np.array([[i, j, k] for i in (-1, 1) for j in (-1, 1) for k in (-1, 1)]) * SIDE / 2
OUTPUTS = {"velocity": lambda k: k.velocity("cube"), "spin": lambda k: k.twist("cube")[3:]}


def mechanism() -> pf.Mechanism:
    g = pf.Parameter("g", 9.81, "m/s^2")
    y, z = pf.Parameter("Iy_by_Ix", 1.05), pf.Parameter("Iz_by_Ix", 0.95)
    cube = pf.body("cube", 0.37, inertia=(8.1e-4, 8.1e-4 * y, 8.1e-4 * z))
    return pf.mechanism("cube", [cube], [pf.joint("pose", "free", "world", "cube")], gravity=(0, 0, -g), parameters=[g, y, z])


def on_board() -> pf.Mechanism:
    """The cube above the board, with the numbers of the contact as parameters."""
    units = {"stiffness": "N/m", "damping": "s/m", "friction": "1", "creep": "m/s", "board": "m", "radius": "m", "side": "m"}
    p = {name: pf.Parameter(name, value, units[name]) for name, value in CONTACT.items()}
    board = pf.wrench("board", "cube", lambda k: of_board(k, p))
    cube, pose = pf.body("cube", 0.37, inertia=8.1e-4), pf.joint("pose", "free", "world", "cube")
    gravity, parameters = (0, 0, -GRAVITY), list(p.values())
    return pf.mechanism("cube on a board", [cube], [pose], forces=[board], gravity=gravity, parameters=parameters)


def of_board(k: Any, p: dict[str, Any]) -> ca.SX:
    """(6, 1) wrench of the board on the balls in the corners: N = k x max(0, 1 + c x_dot) of each, and friction mu N."""
    V, total = k.twist("cube", "LOCAL_WORLD_ALIGNED"), ca.SX.zeros(6, 1)
    for signs in np.sign(CORNERS):
        arm = k.rotation("cube") @ ca.SX(ca.DM(signs)) * (p["side"] / 2 - p["radius"]) - ca.vertcat(0, 0, p["radius"])
        depth, s = p["board"] - k.position("cube")[2] - arm[2], V[:3] + ca.cross(V[3:], arm)
        N = p["stiffness"] * ca.fmax(0, depth) * ca.fmax(0, 1 - p["damping"] * s[2])
        F = ca.vertcat(-p["friction"] * N * s[:2] / ca.sqrt(ca.sumsqr(s[:2]) + p["creep"] ** 2), N)
        total += ca.vertcat(F, ca.cross(arm, F))
    return total


def tosses() -> dict[str, np.ndarray]:
    """All tosses by name, as columns of measured.md."""
    with np.load(Path(__file__).with_suffix(".npz")) as file:
        return {name: file[name].astype(float) for name in file.files}


def pose_of(x: np.ndarray) -> np.ndarray:
    """(samples, 7) position and quaternion x, y, z, w of the columns of a toss."""
    return np.column_stack([x[:, 4:7], x[:, [1, 2, 3, 0]]])


def flights() -> dict[str, dict[str, np.ndarray]]:
    """The flights of 12 samples by name."""
    found = {}
    for name, x in tosses().items():
        turn = Rotation.from_quat(x[:, [1, 2, 3, 0]])
        lowest = x[:, 6] + (turn.as_matrix() @ CORNERS.T)[:, 2].min(axis=1)
        if (lowest[:SAMPLES] > CLEAR).all():
            x = x[:SAMPLES]
            found[name] = {"time": np.arange(SAMPLES) / RATE, "q": pose_of(x), "velocity": x[:, 10:13], "spin": x[:, 7:10]}
    return found


class Measured(NamedTuple):
    """fit: of every second flight.   position, angle: rms residuals of the others [m, rad].   residuals: (samples, 7).
    distance, turn: (tosses,) means over each of the other tosses of the distance and the angle to its prediction [m, rad]."""

    fit: pf.identification.Fit
    position: float
    angle: float
    residuals: np.ndarray
    distance: np.ndarray
    turn: np.ndarray


def predicted(starts: np.ndarray, count: int, numbers: dict[str, float], substeps: int = SUBSTEPS) -> np.ndarray:
    """(samples, tosses, 7) poses from starts (tosses, 13).

    Four times as many steps change the mean distance and the mean angle by less than 1 %.
    """
    every: dict[str, Any] = {"step": 1 / RATE / substeps, "every": substeps, "error_bound": np.inf}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "the (damper|spring) of (contact|wrench)", pf.RunWarning)
        q = pf.run(on_board(), starts[:, :7], starts[:, 7:], duration=(count - 1) / RATE, parameters=numbers, **every).q
    return np.asarray(q.transpose("time", "run", ...))


def errors(poses: np.ndarray, measured: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """The means over each toss of distance [m] and angle [rad] between poses (samples, tosses, 7) and measured ones."""
    distance, turn = list[float](), list[float]()
    for i, x in enumerate(measured):
        y = poses[: len(x), i]
        between = Rotation.from_quat(x[:, 3:]).inv() * Rotation.from_quat(y[:, 3:])
        distance.append(float(np.linalg.norm(x[:, :3] - y[:, :3], axis=1).mean()))
        turn.append(float(between.magnitude().mean()))
    return np.array(distance), np.array(turn)


def run() -> Measured:
    known = flights()
    names = list(known)
    options: dict[str, Any] = {"outputs": OUTPUTS, "unknown": {"velocity": "delay", "spin": "delay"}}
    fit = pf.fit(mechanism(), {name: known[name] for name in names[::2]}, **options)
    exact = {name: (x, x) for name, x in fit.values.items()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pf.RunWarning)  # of numbers that cannot change
        unseen = pf.fit(mechanism(), {name: known[name] for name in names[1::2]}, start=fit.values, bounds=exact, **options)
    r = unseen.residuals().filter(like="q ").to_numpy()
    position, quaternion = (float(np.sqrt((x**2).sum(axis=1).mean())) for x in (r[:, :3], r[:, 3:]))
    whole = [pose_of(tosses()[name]) for name in names[1::2]]
    poses = predicted(unseen.solution.fitted.x, max(map(len, whole)), CONTACT)
    return Measured(fit, position, 2 * quaternion, r, *errors(poses, whole))


def figures(result: Measured) -> dict[str, Any]:
    figure = blank_figure(8.0, 3.0)
    left, right = figure.subplots(1, 2)
    left.plot(1e3 * result.residuals[:, :3], ".", markersize=2, label=("x", "y", "z"))
    left.set(xlabel="sample of the unseen flights", ylabel="measured - predicted [mm]")
    right.plot(np.degrees(2 * result.residuals[:, 3:6]), ".", markersize=2, label=("about x", "about y", "about z"))
    right.set(xlabel="sample of the unseen flights", ylabel="measured - predicted [deg]")
    return {"cube": figure}


def claims(result: Measured) -> Iterator[Claim]:
    yield Claim("delay of the velocities, half a step [s]", result.fit.values["delay of velocity"], 0.5 / RATE, 3e-4)
    yield Claim("rms position of unseen flights [mm]", 1e3 * result.position, 1.26, relation="at most")
    yield Claim("rms angle of unseen flights [deg]", float(np.degrees(result.angle)), 2.5, relation="at most")
    whole = (("distance", "mm", 1e3 * result.distance), ("angle", "deg", np.degrees(result.turn)))
    for (what, unit, x), other in zip(whole, MUJOCO, strict=True):
        yield Claim(f"mean {what} of unseen tosses to their end, MuJoCo's [{unit}]", float(x.mean()), other, relation="at most")
    yield Claim("gravity [m/s^2]", result.fit.values["g"], 9.81, 0.25)
    yield Claim("gravity under which tosses are predicted [m/s^2]", GRAVITY, result.fit.values["g"], 0.01)
