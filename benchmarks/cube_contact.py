"""Contact of the measured cube, fitted to whole tosses, beside MuJoCo's: `python -m benchmarks.cube_contact`.

`pf.fit` fits five numbers to segments of 0.3 s of 24 tosses. From there Nelder and Mead's search goes on in the measure of the
study `measured-cube`, over every second toss, and searches the six numbers of MuJoCo's contact in the same way: time constant,
damping ratio, friction, impedance, width, height of the board. Both predict the other tosses from the same starts. It takes
some ten minutes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mujoco
import numpy as np
from scipy.optimize import minimize
from scipy.spatial.transform import Rotation

import pfaffian as pf
from studies import measured_cube as study

TOSSES, HORIZON, CALLS, SUBSTEPS = 24, 0.3, 200, 8
"""Tosses and horizon of `pf.fit`, evaluations of a search, steps of MuJoCo between two samples."""

MUJOCO_START = np.array([np.log(0.004), np.log(0.5), np.log(0.2), 2.0, np.log(3e-3), -2e-3])
"""From where the search begins; another start, of 10 ms and a ratio of 1, ended 1 % worse."""


def fitted(tosses: list[np.ndarray]) -> pf.identification.Fit:
    """The contact by `pf.fit`."""
    records = [{"time": np.arange(len(x)) / study.RATE, "q": x} for x in tosses[:TOSSES]]
    bounds = {"damping": (0.0, 20.0), "friction": (0.0, 1.0), "stiffness": (1e3, 1e6)}
    return pf.fit(study.on_board(), records, horizon=HORIZON, bounds=bounds, start=study.FITTED)


def ours(z: np.ndarray, starts: np.ndarray, count: int) -> np.ndarray:
    """Poses of our tosses, with the numbers FITTED times exp(z), the last two plus z in mm."""
    scale = [*np.exp(z[:3]), 1.0, 1.0]
    numbers = {n: x * f for (n, x), f in zip(study.FITTED.items(), scale, strict=True)}
    numbers["board"] += 1e-3 * z[3]
    numbers["side"] += 1e-3 * z[4]
    return study.predicted(starts, count, numbers)


def theirs(z: np.ndarray, starts: np.ndarray, count: int) -> np.ndarray:
    """Poses of MuJoCo's tosses."""
    step = 1 / study.RATE / SUBSTEPS
    constant, ratio, friction, width = np.exp(z[[0, 1, 2, 4]])
    impedance = min(1 / (1 + np.exp(-z[3])), 0.9899)
    contact = (
        f'friction="{friction} 0 0" solref="{max(constant, 2 * step)} {ratio}" solimp="{impedance} 0.99 {width}" condim="3"'
    )
    half = study.SIDE / 2
    m = mujoco.MjModel.from_xml_string(f"""
        <mujoco>
          <option timestep="{step}" integrator="implicitfast" cone="elliptic" impratio="10"/>
          <worldbody>
            <geom type="plane" size="5 5 1" pos="0 0 {z[5]}" {contact}/>
            <body>
              <freejoint/><inertial pos="0 0 0" mass="0.37" diaginertia="8.1e-4 8.1e-4 8.1e-4"/>
              <geom type="box" size="{half} {half} {half}" {contact}/>
            </body>
          </worldbody>
        </mujoco>""")
    found, d = np.zeros((count, len(starts), 7)), mujoco.MjData(m)
    for i, x in enumerate(starts):
        mujoco.mj_resetData(m, d)
        d.qpos[:3], d.qpos[3:], d.qvel[3:] = x[:3], x[[6, 3, 4, 5]], x[10:]
        d.qvel[:3] = Rotation.from_quat(x[3:7]).apply(x[7:10])
        for k in range(count):
            found[k, i] = d.qpos[[0, 1, 2, 4, 5, 6, 3]]
            mujoco.mj_step(m, d, SUBSTEPS)
    return found


def measure(poses: np.ndarray, tosses: list[np.ndarray]) -> tuple[float, float]:
    """Mean distance [mm] and angle [deg]."""
    distance, turn = study.errors(poses, tosses)
    return 1e3 * float(distance.mean()), float(np.degrees(turn.mean()))


def searched(
    poses: Callable[..., np.ndarray], start: np.ndarray, spread: list[float], starts: np.ndarray, tosses: list[np.ndarray]
) -> np.ndarray:
    """The numbers of least distance, in hundredths of the side, plus angle, in degrees."""

    def cost(z: np.ndarray) -> float:
        distance, angle = measure(poses(z, starts, max(map(len, tosses))), tosses)
        total = 0.1 * distance / study.SIDE + angle
        return total if np.isfinite(total) else 1e3

    simplex = np.vstack([start, start + np.diag(spread)])
    options: dict[str, Any] = {"maxfev": CALLS, "initial_simplex": simplex}
    return np.asarray(minimize(cost, start, method="Nelder-Mead", options=options).x)


def main() -> None:
    known = study.flights()
    options: dict[str, Any] = {"outputs": study.OUTPUTS, "unknown": {"velocity": "delay", "spin": "delay"}}
    starts = pf.fit(study.mechanism(), known, **options).solution.fitted.x
    tosses = [study.pose_of(study.tosses()[name]) for name in known]
    seen, unseen = (starts[::2], tosses[::2]), (starts[1::2], tosses[1::2])
    print(fitted(seen[1]))
    for name, poses, start, spread in (
        ("pf.fit, searched", ours, np.zeros(5), [0.4, 0.2, 0.05, 0.5, 1.0]),
        ("MuJoCo, searched", theirs, MUJOCO_START, [0.5, 0.4, 0.3, 0.7, 0.7, 1e-3]),
    ):
        z = searched(poses, start, spread, *seen)
        for when, numbers in (("before", start), ("after", z)):
            distance, angle = measure(poses(numbers, unseen[0], max(map(len, unseen[1]))), unseen[1])
            print(f"{name}: {distance:.2f} mm and {angle:.2f} deg on unseen tosses {when} the search")
        print(np.round(z, 5))


if __name__ == "__main__":
    main()
