"""A motion that has no inertia at some place is told by an error or a warning of the library."""

from __future__ import annotations

import casadi as ca
import pytest

import pfaffian as pf


def crank() -> pf.Mechanism:
    """A disc on a slide, where a crank puts it; at the dead centre, where it begins, the crank moves nothing."""
    angle = pf.coordinates("angle", ["a"], ["a_dot"], lambda q: [[1.0]])
    slide = pf.edge("slide", "world", "disc", lambda k: pf.pose((0.3 * ca.cos(k.q[0]), 0, 0)))
    return pf.mechanism("crank", [pf.body("disc", 2.0, inertia=0.1)], [slide], coordinates=[angle])


def two_ways() -> pf.Mechanism:
    """A block on a carriage without mass: both may move along x."""
    carriage = pf.joint("rail", "prismatic", "world", "carriage", axis=(1, 0, 0))
    table = pf.joint("table", "planar", "carriage", "block", placement=pf.pose(rpy=(0.3, 0, 0)))
    return pf.mechanism("two ways", [pf.body("carriage"), pf.body("block", 1.0, inertia=0.1)], [carriage, table])


@pytest.mark.parametrize("make", [crank, two_ways])
def test_an_equilibrium_needs_inertia(make):
    with pytest.raises(pf.ModelError, match=r"equilibrium: a motion of .* has no inertia"):
        pf.equilibrium(make())


def test_a_run_that_begins_without_inertia_stops_with_a_warning():
    with pytest.warns(pf.RunWarning, match="the state grew beyond bounds or became NaN"):
        r = pf.run(crank(), duration=0.1, step=0.01, backend="interpreter")
    assert r.status == 1
