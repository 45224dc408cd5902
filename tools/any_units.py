"""What the library decides about a machine does not depend on its size: twelve machines, lengths and masses of 1e-6 to 1e6.

A rank, a redundant row, a symmetry or an input that drives nothing is decided by what counts
as zero, at random states and beside the sizes that occur there. Each machine of the zoo is built again with all lengths or all
masses multiplied by a factor, as if it were given in other units, in which it moves the same. So everything that is decided
must be the same too, and no decision may become unclear.

The figure shows, for each machine and each decision, the answer in the machine's own units, and whether it is the same (green)
at every factor of the lengths (across) and of the masses (upwards).

python -m tools.any_units FILE.png
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

CELLS = tuple((i, j) for i in range(5) for j in range(5) if 2 in (i, j))
"""Indices of the factors of length and of mass, of which one is changed at a time."""

DECISIONS = ("rank of the\nconstraints", "redundant\nequations", "independent\nmotors", "without the\nfirst motor",
             "dimension of\nthe symmetry", "unclear\ndecisions")  # fmt: skip

SAME, OTHER = "#009E73", "#D55E00"


def mechanism(name: str = "bennett", length: float = 1.0, mass: float = 1.0) -> pf.Mechanism:
    """A machine of the zoo without its forces, with a motor on each joint, its lengths and masses multiplied."""
    m = zoo.machine(name).m
    at = lambda X: Pose(X.R, X.p * length)  # noqa: E731
    bodies = [replace(b, mass=b.mass * mass, com=b.com * length, inertia=b.inertia * mass * length**2) for b in m.bodies]
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
    dims = "machine", "length", "mass", "decision"
    return {"answers": xr.Dataset({"answer": (dims, found)}, {"machine": [*MACHINES], "decision": [*DECISIONS]})}


def figures(result: dict[str, xr.Dataset]) -> dict[str, Any]:
    answers = result["answers"]["answer"].values
    figure = blank_figure(9, 8)
    axes = figure.subplots()
    for (k, i, j, d), answer in np.ndenumerate(answers):
        if not np.isnan(answer):
            x, y = d + (i + 0.5) / 5 * 0.5 + 0.42, k + 0.08 + (4 - j) / 5 * 0.84
            colour = SAME if answer == answers[k, 2, 2, d] else OTHER
            axes.add_patch(_square(x, y, colour))
    for (k, d), answer in np.ndenumerate(answers[:, 2, 2]):
        axes.text(d + 0.3, k + 0.5, f"{answer:g}", ha="right", va="center", fontsize=10)
    axes.set(xlim=(0, len(DECISIONS)), ylim=(len(MACHINES), 0))
    axes.set_xticks(np.arange(len(DECISIONS)) + 0.5, DECISIONS, fontsize=8)
    axes.set_yticks(np.arange(len(MACHINES)) + 0.5, [name.replace("_", " ") for name in MACHINES])
    axes.set_xlabel("across: lengths times 1e-6 to 1e6; upwards: masses; green: the answer is the same")
    axes.tick_params(length=0)
    axes.xaxis.tick_top()
    return {"scales": figure}


def _square(x: float, y: float, colour: str) -> Any:
    """One factor of length and of mass."""
    from matplotlib.patches import Rectangle

    return Rectangle((x, y), 0.085, 0.145, facecolor=colour, edgecolor="none")


def main(place: str) -> int:
    """Draw the figure into a file; 1 if an answer differs from that in the machine's own units."""
    result = run()
    next(iter(figures(result).values())).savefig(place, dpi=120)
    answers = result["answers"]["answer"].values
    tried = answers[:, [i for i, _ in CELLS], [j for _, j in CELLS]]
    for d, name in enumerate(DECISIONS):
        other = int((tried[..., d] != answers[:, None, 2, 2, d]).sum())
        print(f"{name.replace(chr(10), ' ')}: {other} of {tried[..., d].size} answers differ from those in other units")
    return int((tried != answers[:, None, 2, 2]).any())


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
