"""A measured triple pendulum that swings freely: nine numbers up to their scale, which no free motion determines.

Three arms with encoders, let go from 22 positions. Lengths, masses and gravity are as published; fitted are first moments and
inertias about the joints and viscous friction of the three joints, from numbers that are a fifth off. Without a motor in the
records the scale of masses and forces is missing: the fit says so. Errors are those of records that the fit has not seen, over
1.5 s: only the start of each is fitted to it, for the published numbers as well. Origin and licence of the records:
measured.md.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import pfaffian as pf
from pfaffian.study import Claim, blank_figure

MASS, ARM = (0.258172, 0.279428, 0.118624), (0.16, 0.202939, 0.183709)
INERTIA, FRICTION = (1.00043e-4, 3.14160e-4, 1.68739e-4), (1.47710e-3, 2.59577e-4, 1.0e-5)
LENGTH, GRAVITY, PERIOD, HORIZON = (0.1727997, 0.2287), 9.80834, 0.002, 0.3
NAMES = ("h", "J", "k")


def published() -> dict[str, float]:
    """The published numbers: first moments, inertias about the joints, friction."""
    h = [m * a for m, a in zip(MASS, ARM, strict=True)]
    J = [I + m * a**2 for m, a, I in zip(MASS, ARM, INERTIA, strict=True)]
    return {f"{n}_{i + 1}": x for n, values in zip(NAMES, (h, J, FRICTION), strict=True) for i, x in enumerate(values)}


def mechanism() -> pf.Mechanism:
    units = {"h": "kg m", "J": "kg m^2", "k": "N m s"}
    p = {name: pf.Parameter(name, x, units[name[0]]) for name, x in published().items()}
    bodies, joints = list[pf.Body](), list[pf.Joint]()
    for i, m in enumerate(MASS, start=1):
        h, J = p[f"h_{i}"], p[f"J_{i}"]
        bodies.append(pf.body(f"arm {i}", m, (0, 0, -h / m), (1e-3, J - h**2 / m, 1e-3)))
        place = (0, 0, -LENGTH[i - 2]) if i > 1 else (0, 0, 0)
        parent = f"arm {i - 1}" if i > 1 else "world"
        joints.append(
            pf.joint(f"joint {i}", "revolute", parent, f"arm {i}", axis=(0, -1, 0), placement=place, damping=p[f"k_{i}"])
        )
    parameters, gravity = list(p.values()), (0, 0, -GRAVITY)
    return pf.mechanism("triple pendulum", bodies, joints, parameters=parameters, gravity=gravity, lenient=True)


class Measured(NamedTuple):
    """fit: its result.   warned: what it said.   errors: {numbers: (records, 3) of the absolute angles [rad]}."""

    fit: pf.identification.Fit
    warned: tuple[str, ...]
    errors: dict[str, np.ndarray]
    residuals: np.ndarray


def records(kind: str) -> dict[str, dict[str, np.ndarray]]:
    """The records for fitting, "id", or for validation, "vad", with angles from arm to arm."""
    with np.load(Path(__file__).with_suffix(".npz")) as file:
        angles = {name: file[name].astype(float) - np.pi for name in file.files if name.startswith(kind)}
    return {name: {"time": PERIOD * np.arange(len(x)), "q": np.diff(x, axis=1, prepend=0)} for name, x in angles.items()}


def unseen(values: dict[str, float]) -> np.ndarray:
    """(samples, 3) residuals of the absolute angles over the validation records, of which only the starts are fitted."""
    exact = {name: (x, x) for name, x in values.items()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pf.RunWarning)  # of numbers that cannot change
        fit = pf.fit(mechanism(), records("vad"), start=values, bounds=exact, horizon=1.6, robust=False)
    return np.cumsum(fit.residuals().filter(like="q ").to_numpy(), axis=1)


def run() -> Measured:
    first = {name: x * (1.2 if name[0] == "J" else 0.8) for name, x in published().items()}
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        fit = pf.fit(mechanism(), records("id"), start=first, horizon=HORIZON)
    errors = {"fitted": unseen(fit.values), "published": unseen(published())}
    rms = {name: np.sqrt((x**2).mean(axis=0)) for name, x in errors.items()}
    return Measured(fit, tuple(str(w.message) for w in told), rms, errors["fitted"])


def figures(result: Measured) -> dict[str, Any]:
    figure = blank_figure(8.5, 3.0)
    left, right = figure.subplots(1, 2)
    for i in range(3):
        left.plot(1e3 * result.residuals[:, i], linewidth=0.6, label=f"angle {i + 1}")
    left.set(xlabel="sample of the validation records", ylabel="measured - predicted [mrad]")
    place = np.arange(3)
    for shift, (name, rms) in zip((-0.2, 0.2), result.errors.items(), strict=True):
        right.bar(place + shift, 1e3 * rms, width=0.4, label=name)
    right.set_xticks(place, ["angle 1", "angle 2", "angle 3"])
    right.set(ylabel="rms over 1.5 s [mrad]")
    return {"triple-pendulum": figure}


def claims(result: Measured) -> Iterator[Claim]:
    said = " ".join(result.warned)
    yield Claim("the missing scale is named", float("the records do" in said and all(n in said for n in result.fit.values)), 1)
    for i, most in enumerate((2.2, 2.0, 3.3)):
        error = float(1e3 * result.errors["fitted"][i])
        yield Claim(f"rms of angle {i + 1} over 1.5 s [mrad]", error, most, source="a first fit by hand", relation="at most")
