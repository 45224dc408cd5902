"""Measured tosses of a cube: its flights before the first contact, with velocities whose record is half a step late.

An acrylic cube of 0.1048 m is thrown onto a board; cameras give pose, velocity and angular velocity 148 times a second. The
tosses that fly for at least 81 ms are used, every second one for the fit. Fitted are gravity, two ratios of the moments of
inertia and the delays of the velocities. These were made as backward differences, so that they are half a step, 3.4 ms, late:
the fit finds it. Residuals are those of the flights that the fit has not seen, of which only the starts are fitted. Contact
with the board is not part of this study. Origin and licence of the records: measured.md.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial.transform import Rotation

import pfaffian as pf
from pfaffian.study import Claim, blank_figure

SIDE, RATE, SAMPLES, CLEAR = 0.1048, 148.0, 12, 0.004
"""Side of the cube [m], samples in a second, samples of a flight, height of the lowest corner that counts as a contact [m]."""

CORNERS = np.array([[i, j, k] for i in (-1, 1) for j in (-1, 1) for k in (-1, 1)]) * SIDE / 2
OUTPUTS = {"velocity": lambda k: k.velocity("cube"), "spin": lambda k: k.twist("cube")[3:]}


def mechanism() -> pf.Mechanism:
    g = pf.Parameter("g", 9.81, "m/s^2")
    y, z = pf.Parameter("Iy_by_Ix", 1.05), pf.Parameter("Iz_by_Ix", 0.95)
    cube = pf.body("cube", 0.37, inertia=(8.1e-4, 8.1e-4 * y, 8.1e-4 * z))
    return pf.mechanism("cube", [cube], [pf.joint("pose", "free", "world", "cube")], gravity=(0, 0, -g), parameters=[g, y, z])


def flights() -> dict[str, dict[str, np.ndarray]]:
    """The flights of 12 samples by name."""
    with np.load(Path(__file__).with_suffix(".npz")) as file:
        tosses = {name: file[name].astype(float) for name in file.files}
    found = {}
    for name, x in tosses.items():
        turn = Rotation.from_quat(x[:, [1, 2, 3, 0]])
        lowest = x[:, 6] + (turn.as_matrix() @ CORNERS.T)[:, 2].min(axis=1)
        if (lowest[:SAMPLES] > CLEAR).all():
            x = x[:SAMPLES]
            pose = np.column_stack([x[:, 4:7], x[:, [1, 2, 3, 0]]])
            found[name] = {"time": np.arange(SAMPLES) / RATE, "q": pose, "velocity": x[:, 10:13], "spin": x[:, 7:10]}
    return found


class Measured(NamedTuple):
    """fit: of every second flight.   position, angle: rms residuals of the others [m, rad].   residuals: (samples, 7)."""

    fit: pf.identification.Fit
    position: float
    angle: float
    residuals: np.ndarray


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
    return Measured(fit, position, 2 * quaternion, r)


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
    yield Claim("gravity [m/s^2]", result.fit.values["g"], 9.81, 0.25)
