"""Mechanisms at rest in configurations where rows lose rank, and machines whose redundancy is structural."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import pfaffian as pf
from tests.oracles.test_known_answers import n_four_bar
from tests.random_mechanisms import Case, matrices
from tests.simulate.machines import FOUR_BAR_START, four_bar
from tests.tolerance import ALGEBRA, INTEGRATED, close

CONSTRAINED = [n for n in pf.FORMULATIONS if n not in ("articulated", "quasi-velocity-symmetric")]


def slider_crank() -> pf.Mechanism:
    """Crank and rod of equal length: at 90 degrees the slider may stay while both turn together."""
    bodies = [pf.body("crank", 1.0, (0.5, 0, 0), 0.1), pf.body("rod", 1.0, (0.5, 0, 0), 0.1)]
    joints = [
        pf.joint("a", "revolute", "world", "crank", axis=(0, -1, 0)),
        pf.joint("b", "revolute", "crank", "rod", axis=(0, -1, 0), placement=pf.pose((1, 0, 0))),
    ]
    slide = pf.holonomic("slide", lambda k: k.position("rod", (1, 0, 0))[2])
    return pf.mechanism("slider-crank", bodies, joints, constraints=[slide])


FOLDED = {  # mechanism, its configuration per angle, which is pi / 2 at the fold, rank there, rank elsewhere
    "four-bars, flat": (n_four_bar(2, False), np.array([1, -1, 1, -1, 1]), 2, 4),
    "four-bars in space, flat": (n_four_bar(2, True), np.array([1, -1, 1, -1, 1]), 2, 4),
    "slider-crank, upright": (slider_crank(), np.array([1, -2]), 0, 1),
}


@pytest.mark.parametrize("name", FOLDED)
def test_formulations_agree_at_rest_in_singular_configurations(name):
    m, q, rank, _ = FOLDED[name]
    case = Case(m, np.pi / 2 * q, np.zeros(m.nv), np.zeros(m.nu), 0.0)
    made: dict = {}
    parts = {
        f"{n} {i}": lambda T, n=n, i=i: made.setdefault(n, pf.FORMULATIONS[n](T))[i] for n in CONSTRAINED for i in range(3)
    }
    r = matrices(case, parts | {"M": lambda T: T.M, "A": lambda T: T.A})
    assert np.linalg.matrix_rank(r["A"], tol=1e-9) == rank
    allowed = ALGEBRA * np.linalg.cond(r["M"]) * (1 + np.linalg.norm(r["A"], 2)) ** 2
    for one, other in itertools.combinations(CONSTRAINED, 2):
        close(r[f"{other} 0"], r[f"{one} 0"], allowed, f"{name}: v_dot by {one} and {other}", np.abs(r["M"]).max() * 9.81)
        assert r[f"{one} 2"] == r[f"{other} 2"] == rank


def test_rank_away_from_the_fold():
    for name, (m, q, _, rank) in FOLDED.items():
        assert pf.forward_dynamics(m, (np.pi / 2 - 0.05) * q, np.zeros(m.nv)).rank == rank, name


def test_slider_crank_runs_through_its_dead_centre():
    """Energy is conserved and the branch is kept: the crank turns round and round."""
    m = slider_crank()
    r = pf.run(m, [0.3, -0.6], [8.0, -16.0], duration=5.0, step=1e-3, every=10)
    assert r.status == 0
    assert np.ptp(r.q.values[:, 0]) > 4 * np.pi
    close(r.energy, np.full(len(r.time), r.energy[0]), INTEGRATED, "energy through dead centres")


def test_spatial_loop_equals_planar_loop():
    """A revolute closure has five rows of rank two, a ball closure three; the motion is the same."""
    runs = [pf.run(four_bar(kind), FOUR_BAR_START, {"a": 3.0}, duration=1.0, every=50) for kind in ("revolute", "spherical")]
    close(runs[1].q, runs[0].q.values, INTEGRATED, "redundant and plain rows")
