"""What the library decides about a machine does not depend on its size: twelve machines, lengths and masses of 1e-6 to 1e6.

A rank, a redundant row, a symmetry or an input that drives nothing is decided by what counts
as zero, at random states and beside the sizes that occur there. Each machine of the zoo is built again with all lengths or all
masses multiplied by a factor, as if it were given in other units, in which it moves the same. So everything that is decided
must be the same too, and no decision may become unclear.

Nor does it depend on ratios: the last body of each machine alone is made up to 1e12 times lighter and heavier. There an answer
may also be told as unclear.

The first figure shows, for each machine and each decision, the answer in the machine's own units, and whether it is the same
(green) at every factor of the lengths (across) and of the masses (upwards); the second, the same for factors of the last body's
mass (across), where an answer that differs and is told as unclear is yellow.

python -m tools.any_units FILE.png RATIOS.png
"""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

import casadi as ca
import numpy as np
import xarray as xr

import pfaffian as pf
from pfaffian.control.motors import independent_motors
from pfaffian.dynamics.loop_regularity import redundant
from pfaffian.errors import collected
from pfaffian.model.constraint import Closure
from pfaffian.model.pose import Pose
from pfaffian.study import blank_figure
from pfaffian.terms.generic_states import at_generic_states
from pfaffian.terms.terms import shared
from pfaffian.viewer import zoo

MACHINES = ("bennett", "goldberg", "schatz", "sarrus", "spatial_parallelograms", "four_bar", "jansen_leg", "delta", "five_bar",
            "gyroscope", "satellite", "two_arm_spacecraft")  # fmt: skip

FACTORS = (1e-6, 1e-3, 1.0, 1e3, 1e6)
"""Factors of lengths and of masses."""

RATIOS = (1e-12, 1e-9, 1e-6, 1e-3, 1.0, 1e3, 1e6, 1e9, 1e12)
"""Factors of the mass and the inertia of the last body."""

CELLS = tuple((i, j) for i in range(5) for j in range(5) if 2 in (i, j))
"""Indices of the factors of length and of mass, of which one is changed at a time."""

DECISIONS = ("rank of the\nconstraints", "redundant\nequations", "independent\nmotors", "without the\nfirst motor",
             "dimension of\nthe symmetry", "unclear\ndecisions")  # fmt: skip

SAME, TOLD, OTHER = "#009E73", "#F0E442", "#D55E00"


def mechanism(name: str = "bennett", length: float = 1.0, mass: float = 1.0, last: float = 1.0) -> pf.Mechanism:
    """A machine of the zoo without its forces, with a motor on each joint, its lengths and masses multiplied.

    last: a further factor of the last body's mass.
    """
    m = zoo.machine(name).m
    at = lambda X: Pose(X.R, X.p * length)  # noqa: E731
    masses = [*[mass] * (len(m.bodies) - 1), mass * last]
    bodies = [replace(b, mass=b.mass * of, com=b.com * length, inertia=b.inertia * of * length**2)
              for b, of in zip(m.bodies, masses, strict=True)]  # fmt: skip
    joints = [replace(j, placement=at(j.placement), child_placement=at(j.child_placement), armature=0 * j.armature)
              for j in m.joints]  # fmt: skip
    loops = [replace(c, placement_a=at(c.placement_a), placement_b=at(c.placement_b), number=c.number * length)
             for c in m.constraints if isinstance(c, Closure)]  # fmt: skip
    gravity = np.array(ca.DM(m.gravity)).ravel() * length
    return pf.actuate_all(m.with_(bodies=bodies, joints=joints, constraints=loops, forces=[], actuators=[], gravity=gravity))


def decided(m: pf.Mechanism) -> list[float]:
    """The answers of DECISIONS."""
    fewer = m.with_(actuators=m.actuators[1:])
    with collected() as told:
        symmetry, motion = pf.reduction.symmetry(m), pf.FORMULATIONS["gauss"](shared(m))
        rank = at_generic_states(m, {"rank": motion.rank}, on_constraints=True)["rank"].max()
        redundancy = sum(count for _, count in redundant(m)) if m.constraints else 0
        motors = independent_motors(m), independent_motors(fewer)
        groups = symmetry.basis.shape[1] + len(symmetry.further)
    return [float(rank), redundancy, *motors, groups, len(told) + len(symmetry.unclear)]


def run() -> dict[str, xr.Dataset]:
    found = np.full((len(MACHINES), len(FACTORS), len(FACTORS), len(DECISIONS)), np.nan)
    for k, name in enumerate(MACHINES):
        for i, j in CELLS:
            found[k, i, j] = decided(mechanism(name, FACTORS[i], FACTORS[j]))
    ratios = np.array([[decided(mechanism(name, last=x)) for x in RATIOS] for name in MACHINES], float)
    values = {"answer": (("machine", "length", "mass", "decision"), found), "ratio": (("machine", "last", "decision"), ratios)}
    return {"answers": xr.Dataset(values, {"machine": [*MACHINES], "decision": [*DECISIONS]})}


def figures(result: dict[str, xr.Dataset]) -> dict[str, Any]:
    answers, ratios = (result["answers"][name].values for name in ("answer", "ratio"))
    scales, axes = _table(answers[:, 2, 2], "across: lengths times 1e-6 to 1e6; upwards: masses; green: the answer is the same")
    for (k, i, j, d), answer in np.ndenumerate(answers):
        if not np.isnan(answer):
            colour = SAME if answer == answers[k, 2, 2, d] else OTHER
            axes.add_patch(_square(d + (i + 0.5) / 5 * 0.5 + 0.42, k + 0.08 + (4 - j) / 5 * 0.84, 0.085, colour))
    words = "across: the last mass times 1e-12 to 1e12; green: the same; yellow: another, told as unclear"
    of_ratios, axes = _table(ratios[:, RATIOS.index(1.0)], words)
    for (k, i, d), silent in np.ndenumerate(_silent(ratios)):
        colour = OTHER if silent else SAME if ratios[k, i, d] == ratios[k, RATIOS.index(1.0), d] else TOLD
        axes.add_patch(_square(d + 0.38 + i / len(RATIOS) * 0.6, k + 0.42, 0.05, colour))
    return {"scales": scales, "ratios": of_ratios}


def _silent(ratios: np.ndarray) -> np.ndarray:
    """(machines, ratios, decisions) whether an answer differs from that for the machine as it is, without a word."""
    return (ratios != ratios[:, RATIOS.index(1.0), None]) & (ratios[..., -1:] == 0)


def _table(own: np.ndarray, words: str) -> tuple[Any, Any]:
    """A figure with the answers `own` (machines, decisions) in its cells, and its axes."""
    figure = blank_figure(9, 8)
    axes = figure.subplots()
    for (k, d), answer in np.ndenumerate(own):
        axes.text(d + 0.3, k + 0.5, f"{answer:g}", ha="right", va="center", fontsize=10)
    axes.set(xlim=(0, len(DECISIONS)), ylim=(len(MACHINES), 0))
    axes.set_xticks(np.arange(len(DECISIONS)) + 0.5, DECISIONS, fontsize=8)
    axes.set_yticks(np.arange(len(MACHINES)) + 0.5, [name.replace("_", " ") for name in MACHINES])
    axes.set_xlabel(words)
    axes.tick_params(length=0)
    axes.xaxis.tick_top()
    return figure, axes


def _square(x: float, y: float, width: float, colour: str) -> Any:
    """One factor."""
    from matplotlib.patches import Rectangle

    return Rectangle((x, y), width, 0.145, facecolor=colour, edgecolor="none")


def main(scales: str, ratios: str) -> int:
    """Draw the figures into two files; 1 if an answer differs from that in the machine's own units, or without a word."""
    result = run()
    for figure, place in zip(figures(result).values(), (scales, ratios), strict=True):
        figure.savefig(place, dpi=120)
    answers, silent = result["answers"]["answer"].values, _silent(result["answers"]["ratio"].values)
    tried = answers[:, [i for i, _ in CELLS], [j for _, j in CELLS]]
    for d, name in enumerate(DECISIONS):
        other = int((tried[..., d] != answers[:, None, 2, 2, d]).sum())
        print(f"{name.replace(chr(10), ' ')}: {other} of {tried[..., d].size} answers differ from those in other units, "
              f"{silent[..., d].sum()} of {silent[..., d].size} silently with a ratio")  # fmt: skip
    return int((tried != answers[:, None, 2, 2]).any() or silent.any())


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
