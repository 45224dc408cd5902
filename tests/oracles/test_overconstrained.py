"""Linkages that move although a count of their rows forbids it: rows depend on each other on the constraints, not near them.
Each has one motion, which its energy determines; frames, cuts and units are free and must not change the motion."""

from __future__ import annotations

import numpy as np
import pytest

import pfaffian as pf
from tests.linkages import Chain, bennett, bricard, goldberg, linkage, myard, sarrus, schatz, start, storeys
from tests.tolerance import close

FRAMES_AT = {"slide": [0.0, 0.9, -2.0, 0.3], "turn a": [0.0, 0.3, -1.2, 2.0], "turn b": [0.0, -0.5, 0.7, 2.5]}
"""Displacements [m] and turns [rad] of frames: four ways to write the same hinges."""

RECORDED = ("q", "energy", "kinetic_energy", "rank", "regularity", "violation")

CHAINS: dict[str, tuple[Chain, tuple[int, ...], int]] = {  # chain, the hinges to cut, rank of the five rows
    "Bennett": (bennett(1.0, 1.5, np.pi / 6), (0, 3), 2),
    "Bennett, obtuse": (bennett(1.0, 1.2, 0.9, obtuse=True), (0, 2), 2),
    "Bennett, long": (bennett(1.0, 2.5, 0.3), (1,), 2),
    "Goldberg": (goldberg(), (4,), 3),
    "Myard": (myard(), (2,), 3),
    "Schatz": (schatz(), (1,), 4),
    "Bricard": (bricard(), (3,), 4),
    "Sarrus": (sarrus(), (2,), 4),
}
EULER_ENERGY = 0.01
"""Largest change of energy, relative to the kinetic energy, over four steps of order one that turn a link by .1 rad. All of it
is lost where velocities are corrected by rows off the constraints."""

CASES = [(name, cut) for name, (_, cuts, _) in CHAINS.items() for cut in cuts]


@pytest.mark.parametrize(("name", "cut"), CASES)
def test_energy_rank_and_motion_of_a_linkage(name: str, cut: int) -> None:
    """With steps of 1 ms, and of 2 ms, at which a fixed order of rows lost all energy."""
    chain, _, rank = CHAINS[name]
    m = linkage(chain, cut)
    q, v = start(chain, m, 2.0)
    span = 0.4 if name == "Sarrus" else 5.0  # [s] later it reaches its flat configuration, where a second motion is open
    r = pf.run(m, q, v, duration=span, step=1e-3, every=25, parameters=FRAMES_AT, record=RECORDED)
    assert not r.status.values.any()
    assert (r["rank"].values == rank).all()
    E = r.energy.values
    close(E, np.broadcast_to(E[:, :1], E.shape), 1e-8, "energy", scale=np.ptp(r.kinetic_energy.values))
    close(r.q.values[1:], r.q.values[:1].repeat(3, 0), 1e-7, "angles, whatever the frames")
    assert r.violation.values.max() < 1e-13
    R = r.regularity.values
    close(R[1:], R[:1].repeat(3, 0), 1e-9, "regularity, whatever the frames")
    assert rank == 4 or R.min() > 0.05, "linkages of four and five hinges pass no singular configuration"
    coarse = pf.run(m, q, v, duration=min(span, 1.0), step=2e-3, every=50, parameters=FRAMES_AT, record=RECORDED)
    E = coarse.energy.values
    close(E, np.broadcast_to(E[:, :1], E.shape), 1e-6, "energy at 2 ms", scale=np.ptp(coarse.kinetic_energy.values))


@pytest.mark.parametrize("name", ["Goldberg", "Bricard"])
def test_velocities_are_corrected_by_the_rows_on_the_constraints(name: str) -> None:
    """A step of order one ends off the constraints, where all rows are independent and permit no motion."""
    chain, cuts, _ = CHAINS[name]
    m = linkage(chain, cuts[0])
    q, v = start(chain, m, 50.0)
    r = pf.run(m, q, v, duration=2e-3, step=5e-4, scheme=pf.Scheme(integrator="euler"), error_bound=1.0, record=RECORDED)
    assert not r.status.values.any() and r.violation.values.max() < 1e-9
    E = r.energy.values
    close(E, np.full(E.shape, E[0]), EULER_ENERGY, "energy", scale=r.kinetic_energy.values[0])


def test_storeys_of_parallelograms_whatever_the_cuts_and_the_order() -> None:
    """Ten rows of rank four, in a plane that no axis of the world lies in, leave one motion for each of two storeys.

    A parallelogram's legs swing together and its beam only slides, so the machine is a chain of rods in which each beam is a
    mass at the end of its storey: its angles are those of this chain.
    """
    R = np.linalg.qr(np.random.default_rng(4).normal(size=(3, 3)))[0]
    R *= np.sign(np.linalg.det(R))
    turned = np.array([0.4, -0.3])
    found, regular = [], []
    for cut, reverse in (("top", False), ("top", True), ("foot", False)):
        m = storeys(2, R, cut, reverse)
        angle = {f"left {i}": a for i, a in enumerate(turned)}
        angle |= {f"beam {i}": -a for i, a in enumerate(turned)}
        angle |= {f"right {i}": a if cut == "top" else 0.0 + a for i, a in enumerate(turned)}
        r = pf.run(m, angle, {"left 0": 1.0}, duration=2.0, every=50, record=RECORDED)
        assert (r["rank"].values == 4).all()
        close(r.energy.values, np.full(len(r.time), float(r.energy[0])), 1e-8, f"energy, cut at the {cut}")
        found.append(r.q.sel(coordinate=["left 0", "left 1"]).values)
        regular.append(r.regularity.values)
    close(regular[1:], [regular[0]] * 2, 1e-7, "regularity, whatever is cut and in whatever order")
    for other in found[1:]:
        close(other, found[0], 1e-8, "angles, whatever is cut and in whatever order")
