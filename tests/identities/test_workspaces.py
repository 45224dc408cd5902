"""Poses of parallel machines over their workspaces, each beside the closed form of the branch on which the machine starts.

`python -m tests.identities.test_workspaces 10000` prints the figures of so many poses of each machine; the tests take fewer.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest

import pfaffian as pf
from pfaffian.viewer import zoo
from tests.folded_quadrilaterals import draw, motion, parameters_of, quadrilateral
from tests.simulate.test_branches import CRANKS, cranks_at, platform, rockers, spatial
from tests.workspaces import delta_cranks, stewart_legs

SAME = 1e-6
"""Difference [rad, m] from a closed form above which a pose counts as one of another branch: far above the residual of 1e-9,
also near singular poses, and far below the distance of branches."""

COUNT, FOLDED = 300, 400
"""Poses of each machine, and folded quadrilaterals, in a test."""


class Poses(NamedTuple):
    """Poses of a machine: what is held, the guess of the rest, and the exact values of other coordinates."""

    m: pf.Mechanism
    held: dict[str, np.ndarray]
    guess: dict[str, float]
    exact: dict[str, np.ndarray]


def ankle(count: int, random: np.random.Generator) -> Poses:
    """A platform on a cardan joint, turned by two cranks with rods."""
    found = list[tuple[float, float, dict[str, float]]]()
    while len(found) < count:
        pitch, roll = random.uniform(-0.7, 0.45), random.uniform(-0.3, 0.3)
        cranks = cranks_at(pitch, roll)
        found += [] if cranks is None else [(pitch, roll, cranks)]
    held = {name: np.array([x[i] for x in found]) for i, name in enumerate(("pitch", "roll"))}
    return Poses(platform(), held, {}, {name: np.array([x[2][name] for x in found]) for name in CRANKS})


def rod_between_balls(count: int, random: np.random.Generator) -> Poses:
    """A crank about z that drives a rocker about x by a rod between two balls (RSSR)."""
    m, angles = spatial(), random.uniform(-np.pi, np.pi, count)
    begin = pf.assemble(m).q
    branch = int(np.argmin([abs(x - begin[1]) for x in rockers(float(begin[0]))]))
    return Poses(m, {"crank": angles}, {}, {"rocker": np.array([rockers(x)[branch] for x in angles])})


def delta(count: int, random: np.random.Generator) -> Poses:
    """A delta robot with its elbows outwards."""
    m, start = zoo.machine("delta").m, zoo.machine("delta")[3].start
    at = np.stack([random.uniform(a, b, 3 * count) for a, b in ((-0.25, 0.25), (-0.25, 0.25), (-0.55, -0.25))], axis=1)
    cranks = delta_cranks(at)
    within = np.flatnonzero(np.isfinite(cranks).all(axis=1))[:count]
    guess = {n: x for n, x in pf.assemble(m, start).named.items() if not n.startswith("plate")}
    held = dict(zip(("plate.x", "plate.y", "plate.z"), at[within].T, strict=True))
    return Poses(m, held, guess, {f"crank {i + 1}": x for i, x in enumerate(cranks[within].T)})


def gripper(count: int, random: np.random.Generator) -> Poses:
    """Two parallelograms that stay parallelograms."""
    drive = random.uniform(-1.5, 1.5, count)
    signs = {"left inner": 1, "left pad": -1, "right inner": 1, "right pad": -1}
    return Poses(zoo.machine("gripper").m, {"drive": drive}, {}, {name: sign * drive for name, sign in signs.items()})


def stewart(count: int, random: np.random.Generator) -> Poses:
    """A plate on six legs, at positions and attitudes."""
    m, start = zoo.machine("stewart").m, zoo.machine("stewart")[3].start
    at = np.stack([random.uniform(a, b, count) for a, b in ((-0.3, 0.3), (-0.3, 0.3), (0.6, 1.1))], axis=1)
    w = random.uniform(-0.35, 0.35, (count, 3))
    angle = np.linalg.norm(w, axis=1, keepdims=True)
    x, y, z, c = np.hstack([w / angle * np.sin(angle / 2), np.cos(angle / 2)]).T
    rotation = np.moveaxis(np.array([
        [1 - 2 * (y * y + z * z), 2 * (x * y - z * c), 2 * (x * z + y * c)],
        [2 * (x * y + z * c), 1 - 2 * (x * x + z * z), 2 * (y * z - x * c)],
        [2 * (x * z - y * c), 2 * (y * z + x * c), 1 - 2 * (x * x + y * y)],
    ]), -1, 0)  # fmt: skip
    held = dict(zip([f"plate.{n}" for n in ("x", "y", "z", "qx", "qy", "qz", "qw")], (*at.T, x, y, z, c), strict=True))
    guess = {n: x for n, x in pf.assemble(m, start).named.items() if n not in held}
    return Poses(m, held, guess, {f"leg {i + 1}": x for i, x in enumerate(stewart_legs(at, rotation).T)})


MACHINES: dict[str, Callable[[int, np.random.Generator], Poses]] = {
    "ankle": ankle, "RSSR": rod_between_balls, "delta": delta, "gripper": gripper, "Stewart": stewart,
}  # fmt: skip


class Found(NamedTuple):
    """Figures of poses.   elsewhere: on another branch than the closed form.   told: not continued.   largest: difference from
    the closed form on its branch."""

    elsewhere: int
    told: int
    largest: float

    @classmethod
    def of(cls, differences: np.ndarray, continued: np.ndarray) -> Found:
        off = np.where(np.isnan(differences), np.inf, differences)
        return cls(int((off > SAME).sum()), int((~continued).sum()), float(off[off <= SAME].max(initial=0.0)))


def compare(make: Callable[[int, np.random.Generator], Poses], count: int) -> Found:
    """Figures of the poses of a machine."""
    x = make(count, np.random.default_rng(5))
    a = pf.assemble(x.m, x.held, guess=x.guess)
    units = dict(zip(x.m.q_names, x.m.q_units, strict=True))
    off = [_apart(a.named[n] - exact, units[n]) for n, exact in x.exact.items()]
    return Found.of(np.max(off, axis=0), a.continued & (a.branch == a.branch[0]))


def _apart(x: np.ndarray, unit: str) -> np.ndarray:
    """Sizes of differences; those of angles without whole turns."""
    return np.abs(np.angle(np.exp(1j * x)) if unit == "rad" else x)


def folded(count: int, seed: int = 0) -> Found:
    """Figures of quadrilaterals whose crank moves past a configuration in which all links are almost in line."""
    x = draw(count, seed)
    coupler, _ = motion(x, x.way)
    a = pf.assemble(quadrilateral(), {"A": x.way}, parameters=parameters_of(x))
    return Found.of(_apart(a.named["B"] - coupler, "rad"), a.continued)


def folded_along(count: int, samples: int, seed: int = 0) -> Found:
    """Figures of the same motions in so many samples."""
    x, part = draw(count, seed), np.linspace(0, 1, samples)[:, None]
    coupler, _ = motion(x, x.way * part)
    a = pf.assemble(quadrilateral(), {"A": x.way * part}, parameters=parameters_of(x), t=part[:, 0], along=True)
    return Found.of(_apart(a.named["B"] - coupler, "rad").max(axis=0), a.reached.all(axis=0))


@pytest.mark.parametrize("name", MACHINES)
def test_workspaces(name):
    found = compare(MACHINES[name], COUNT)
    assert found.elsewhere == found.told == 0, found


def test_a_quadrilateral_stays_on_its_branch_past_a_fold():
    found = folded(FOLDED)
    assert found.elsewhere == 0 and found.told == 0, found


@pytest.mark.parametrize("samples", [15, 90])
@pytest.mark.filterwarnings("ignore:.*singular passage:pfaffian.errors.RunWarning")
def test_a_quadrilateral_stays_on_its_branch_along_a_motion(samples):
    found = folded_along(FOLDED // 2, samples)
    assert found.elsewhere == 0 and found.told == 0, found


def test_a_parallelogram_goes_straight_through_where_branches_cross():
    """Where all links are in line, it may become an antiparallelogram: the straight way is kept, and the result tells it."""
    m = zoo.machine("gripper").m
    with pytest.warns(pf.RunWarning, match="a singular configuration lies between"):
        a = pf.assemble(m, {"drive": 3.0})
    assert not a.continued and abs(a.named["left inner"] - 3.0) < SAME
    with pytest.warns(pf.RunWarning, match="singular passage"):
        way = pf.assemble(m, {"drive": np.linspace(0, 3.0, 61)}, along=True)
    assert way.reached.all() and np.abs(way.named["left inner"] - np.linspace(0, 3.0, 61)).max() < SAME


if __name__ == "__main__":
    number = int(sys.argv[1])
    for machine, of in MACHINES.items():
        print(f"{machine}, {number} poses: {compare(of, number)}")
    print(f"folded quadrilaterals, {number}: {folded(number)}")
    print(f"folded quadrilaterals along motions of 90 samples, {number // 4}: {folded_along(number // 4, 90)}")
