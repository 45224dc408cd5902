"""Contact of the measured cube, fitted to whole tosses, beside MuJoCo's: `python -m benchmarks.cube_contact`.

Ours are seven numbers of `studies/measured_cube.py`, theirs the time constant, damping ratio, friction, impedance, width and
height of the board of MuJoCo's contact; both sides fall under the gravity of the measured flights. The tosses are in three
parts. On a quarter of them, to fit, Nelder and Mead's search goes from two starts on either side, ours from a plain guess and
from what `pf.fit` makes of it, in the measure of the study. Another quarter chooses which of the two results goes on, by a
second search over both quarters. The other half judges: it is looked at once, when everything stands. Both sides predict from
the same starts. It takes some ten minutes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import mujoco
import numpy as np
from scipy.optimize import minimize
from scipy.spatial.transform import Rotation

import pfaffian as pf
from studies import measured_cube as study

HORIZONS, CALLS, SUBSTEPS = (0.1, 0.3), 250, 8
"""Horizons of `pf.fit` [s], evaluations of a search, steps of MuJoCo between two samples."""

GUESS = {"stiffness": 1e5, "damping": 1.0, "friction": 0.2, "creep": 0.1, "board": 0.0, "radius": 2e-3, "side": study.SIDE}
"""A plain guess: the cube as it was measured, on corners that sink in by .01 mm at rest and touch for half a sample."""

MUJOCO = (
    np.array([np.log(0.004), np.log(0.5), np.log(0.2), 2.0, np.log(3e-3), -2e-3]),
    np.array([np.log(0.010), np.log(1.0), np.log(0.2), 2.0, np.log(3e-3), 0.0]),
)
"""From where the searches of MuJoCo's numbers begin: a soft contact that rebounds, and a contact that does not."""


Poses = Callable[[np.ndarray, np.ndarray, int], np.ndarray]
"""From numbers, starts and a count of samples to poses (samples, tosses, 7)."""

BOARD = list(GUESS).index("board")


def fitted(tosses: list[np.ndarray]) -> pf.identification.Fit:
    """The contact by `pf.fit`, of short segments first: over many impacts the derivatives at a poor guess grow beyond use."""
    records = [{"time": np.arange(len(x)) / study.RATE, "q": x} for x in tosses]
    bounds = {"damping": (0.0, 20.0), "friction": (0.0, 1.0), "stiffness": (1e3, 1e6), "creep": (0.03, 1.0)}
    numbers = GUESS
    for horizon in HORIZONS:
        fit = pf.fit(study.on_board(), records, horizon=horizon, bounds=bounds, start=numbers)
        numbers = fit.values
    return fit


def ours(z: np.ndarray, starts: np.ndarray, count: int) -> np.ndarray:
    """Poses of our tosses: GUESS times exp(z), but the height of the board, which is z in mm."""
    numbers = {n: x * float(f) for (n, x), f in zip(GUESS.items(), np.exp(z), strict=True)}
    return study.predicted(starts, count, numbers | {"board": 1e-3 * float(z[BOARD])})


def as_searched(numbers: Mapping[str, float]) -> np.ndarray:
    """z of numbers."""
    return np.array([1e3 * numbers[n] if n == "board" else np.log(numbers[n] / x) for n, x in GUESS.items()])


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
          <option timestep="{step}" gravity="0 0 {-study.GRAVITY}" integrator="implicitfast" cone="elliptic" impratio="10"/>
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


class Part(NamedTuple):
    """Some tosses.   starts: (tosses, 13).   tosses: measured poses (samples, 7) of each."""

    starts: np.ndarray
    tosses: list[np.ndarray]


def errors_of(poses: Poses, z: np.ndarray, of: Part) -> np.ndarray:
    """(2, tosses) mean distance [mm] and angle [deg] of the prediction of each toss."""
    distance, turn = study.errors(poses(z, of.starts, max(map(len, of.tosses))), of.tosses)
    return np.array([1e3 * distance, np.degrees(turn)])


def cost(poses: Poses, z: np.ndarray, of: Part) -> float:
    """Mean distance, in hundredths of the side, plus mean angle, in degrees."""
    distance, angle = errors_of(poses, z, of).mean(axis=1)
    total = float(0.1 * distance / study.SIDE + angle)
    return total if np.isfinite(total) else 1e3


def searched(poses: Poses, start: np.ndarray, spread: Sequence[float], of: Part) -> np.ndarray:
    """The numbers of least cost."""
    simplex = np.vstack([start, start + np.diag(spread)])
    options: dict[str, Any] = {"maxfev": CALLS, "initial_simplex": simplex}
    return np.asarray(minimize(lambda z: cost(poses, z, of), start, method="Nelder-Mead", options=options).x)


def parts() -> tuple[Part, Part, Part, Part]:
    """The tosses to fit, to choose, of both, and to judge."""
    known = study.flights()
    options: dict[str, Any] = {"outputs": study.OUTPUTS, "unknown": {"velocity": "delay", "spin": "delay"}}
    starts = pf.fit(study.mechanism(), known, **options).solution.fitted.x
    tosses = [study.pose_of(study.tosses()[name]) for name in known]
    fit, choose, both, judge = (Part(starts[s], tosses[s]) for s in np.s_[::4, 2::4, ::2, 1::2])
    return fit, choose, both, judge


def main() -> None:
    fit, choose, both, judge = parts()
    first, errors = fitted(fit.tosses), list[np.ndarray]()
    print(first)
    for name, poses, begin, spread in (
        ("pf.fit", ours, (np.zeros(len(GUESS)), as_searched(first.values)), (0.4, 0.2, 0.1, 0.3, 0.5, 0.5, 0.01)),
        ("MuJoCo", theirs, MUJOCO, (0.5, 0.4, 0.3, 0.7, 0.7, 1e-3)),
    ):
        found = [searched(poses, z, spread, fit) for z in begin]
        costs = [cost(poses, z, choose) for z in found]
        print(f"{name}: costs of the tosses that choose, {np.round(costs, 2)}")
        z = searched(poses, found[int(np.argmin(costs))], spread, both)
        errors.append(errors_of(poses, z, judge))
        distance, angle = errors[-1].mean(axis=1)
        print(f"{name}: {distance:.2f} mm and {angle:.2f} deg on the tosses that judge, with {z.round(5).tolist()}", flush=True)
    difference = errors[0] - errors[1]
    mean, chance = difference.mean(axis=1), difference.std(axis=1, ddof=1) / np.sqrt(len(judge.tosses))
    print(
        f"difference: {mean[0]:.2f} +- {chance[0]:.2f} mm, {mean[1]:.2f} +- {chance[1]:.2f} deg, standard errors toss by toss"
    )


if __name__ == "__main__":
    main()
