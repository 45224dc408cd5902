"""A measured double pendulum with two motors: nine numbers and the delay of its torques, from six records.

Links of 0.3 and 0.2 m on quasi-direct drives with gears of 6:1, one motor at the shoulder, one beside it that drives the elbow
by a belt. The model is that of the published identification (design A.0, model 2.0): first moments and inertias about the
joints, the rotors' inertia, viscous friction, and dry friction that grows as arctan(100 v). The mass of the lower link cannot
be told apart from first moment and inertia of the upper one and is left as published.

The fit starts from the published numbers. It finds that the record of the torques is about 4 ms late. Its predictions of three
records that it has not seen are compared with those of the published numbers: errors at the end of windows of 0.5 s (swing-up,
record 11) and 1 s (records 12 and 13), which start from a state estimated from the five samples before them. A second fit, from
the numbers of the first, has segments of 1 s, as long as the predictions: what the equations lack, of which it warns, then
weighs as much as it does there. It predicts all joints of all three records better than the published numbers. Origin and
licence of the records: measured.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import casadi as ca
import numpy as np
import pandas as pd

import pfaffian as pf
from pfaffian.study import Claim, blank_figure

PUBLISHED = {
    "m_r_1": (0.55938 * 0.3, "kg m"), "I_1": (0.053471, "kg m^2"), "m_r_2": (0.604346 * 0.183777, "kg m"),
    "I_2": (0.0239237, "kg m^2"), "I_r": (7.6593e-5, "kg m^2"), "b_1": (0.001, "N m s"), "b_2": (0.001, "N m s"),
    "c_1": (0.093, "N m"), "c_2": (0.078, "N m"),
}  # fmt: skip
GEAR, UPPER, LOWER_MASS, PERIOD = 6, 0.3, 0.604346, 0.004
TRAIN = ("A00", "A01", "A02", "A03", "A04", "A05")
PREDICTED = 1.0
UNSEEN = {"A11": 0.5, "A12": PREDICTED, "A13": PREDICTED}
"""Records that the fit has not seen, with the length of the predictions [s]."""


def mechanism() -> pf.Mechanism:
    p = {name: pf.Parameter(name, value, unit) for name, (value, unit) in PUBLISHED.items()}
    h1, h2 = p["m_r_1"], p["m_r_2"]
    bodies = [
        pf.body("upper", 1.0, (0, 0, -h1), (0.05, p["I_1"] - h1**2, 0.05)),
        pf.body("lower", LOWER_MASS, (0, 0, -h2 / LOWER_MASS), (0.05, p["I_2"] - h2**2 / LOWER_MASS, 0.05)),
    ]
    joints = [
        pf.joint("shoulder", "revolute", "world", "upper", axis=(0, -1, 0), damping=p["b_1"]),
        pf.joint("elbow", "revolute", "upper", "lower", axis=(0, -1, 0), placement=(0, 0, -UPPER), damping=p["b_2"]),
    ]

    def rotors(k: pf.Kinematics) -> ca.SX:
        first, second = k.joint_rate("shoulder"), k.joint_rate("elbow")
        return p["I_r"] * ((1 + GEAR**2) * first**2 - 2 * GEAR * first * second + GEAR**2 * second**2) / 2

    forces = [pf.forces.kinetic_energy("rotors", rotors), dry("shoulder", p["c_1"]), dry("elbow", p["c_2"])]
    motors = [pf.actuator("motor 1", "shoulder"), pf.actuator("motor 2", "elbow")]
    return pf.mechanism(
        "double pendulum", bodies, joints, forces=forces, actuators=motors, parameters=list(p.values()), lenient=True
    )


def dry(joint: str, c: pf.Parameter) -> Any:
    """Dry friction as published, -c arctan(100 v)."""
    return pf.forces.generalised_force(f"dry {joint}", lambda k: -c * ca.atan(100 * k.joint_rate(joint)), joint=joint)


class Measured(NamedTuple):
    """fit: of the records TRAIN.   table: errors on the records UNSEEN, of the published numbers, the fit, and one over longer
    segments."""

    fit: pf.identification.Fit
    table: pd.DataFrame


ERRORS = {"published": ("first", "start values"), "fit": ("first", "fit"), "fit over 1 s": ("long", "fit")}
"""Columns of the table -> fit and column of its table of unseen records."""


def records() -> dict[str, dict[str, np.ndarray]]:
    """All records by name."""
    with np.load(Path(__file__).with_suffix(".npz")) as file:
        columns = {name: file[name].astype(float) for name in file.files}
    return {
        name: {"time": PERIOD * np.arange(len(x)), "q": x[:, :2], "v": x[:, 2:4], "u": x[:, 4:6]} for name, x in columns.items()
    }


def run() -> Measured:
    known, m = records(), mechanism()
    seen = {name: known[name] for name in TRAIN}
    fits = {"first": pf.fit(m, seen)}
    fits["long"] = pf.fit(m, seen, horizon=PREDICTED, start=fits["first"])
    tables = {
        name: pd.concat({record: fit.unseen({record: known[record]}, [horizon]) for record, horizon in UNSEEN.items()})
        for name, fit in fits.items()
    }
    return Measured(fits["first"], pd.DataFrame({name: tables[fit][column] for name, (fit, column) in ERRORS.items()}))


def figures(result: Measured) -> dict[str, Any]:
    figure = blank_figure(8.5, 3.2)
    left, right = figure.subplots(1, 2)
    residuals = result.fit.residuals("A00").reset_index()
    for name in ("q shoulder", "q elbow"):
        left.plot(residuals["time"], 1e3 * residuals[name], linewidth=0.7, label=name)
    left.set(xlabel="time [s]", ylabel="measured - predicted [mrad]", title="residuals of record A00")
    names = [f"{record[0]} {record[2].split()[1]}" for record in result.table.index if record[2].startswith("q")]
    rows = result.table[[index[2].startswith("q") for index in result.table.index]]
    place = np.arange(len(names))
    for shift, column in zip((-0.27, 0, 0.27), ERRORS, strict=True):
        right.bar(place + shift, rows[column], width=0.27, label=column)
    right.set(yscale="log", ylabel="error [rad]", title="predictions of unseen records")
    right.set_xticks(place, names, rotation=30, ha="right")
    return {"double-pendulum": figure}


def claims(result: Measured) -> Iterator[Claim]:
    fit = result.fit
    yield Claim("delay of the torques [s]", fit.values["delay of u"], 0.004, 0.001, "alignment by hand")
    yield Claim("numbers that the records do not determine", len(fit.undetermined), 0)
    table = result.table
    angles = table[[index[2].startswith("q") for index in table.index]]
    better = (angles.drop(columns="published").lt(angles["published"], axis=0)).sum()
    for column, least in (("fit", 5), ("fit over 1 s", 6)):
        what = f"{column}: of six errors of unseen angles, below those of the published numbers"
        yield Claim(what, int(better[column]), least, relation="at least")
    for record, expected in (("A12", (0.0183, 0.0360)), ("A13", (0.0301, 0.0376))):
        for name, most in zip(("q shoulder", "q elbow"), expected, strict=True):
            error = table.at[(record, UNSEEN[record], name), "fit over 1 s"]
            yield Claim(f"error of {name} after 1 s, record {record} [rad]", error, most, relation="at most")
