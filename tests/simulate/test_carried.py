"""The correction after a step moves along what the last stage had at hand: as good as a factorisation of its own, for less."""

import numpy as np
import pytest

import pfaffian as pf
from pfaffian.kernel.program.passes import optimise
from pfaffian.kernel.program.trace import trace
from pfaffian.simulate.system import as_system
from tests.simulate.machines import FOUR_BAR_START, four_bar
from tests.simulations import simulation

ROUNDING = 1e-14


def functions(**scheme):
    s = simulation(as_system(four_bar()), pf.Scheme(**scheme))
    return s, s.traced.project, s.project


@pytest.mark.parametrize(
    ("scheme", "carries"),
    [
        ({}, True),
        ({"formulation": "gauss"}, True),
        ({"formulation": "projection"}, False),
        ({"integrator": "euler"}, False),
        ({"corrections": 0}, False),
    ],
)
def test_only_a_stage_that_has_it_carries_it(scheme, carries):
    _, after, own = functions(**scheme)
    assert (after.size1_in(3) > 0) == carries
    fewer = optimise(trace(after)).n_ops / optimise(trace(own)).n_ops
    assert fewer < 0.8 if carries else fewer == 1


def test_the_move_is_that_of_a_factorisation_of_its_own():
    """At the state itself, to rounding; with one of a stage that is off by 1e-6, by its square."""
    s, after, own = functions()
    m = s.mechanism
    there = pf.assemble(m, FOUR_BAR_START, {"a": 0.3})
    x = np.concatenate([there.q, there.v]) + np.array([1e-6, -2e-6, 1e-6, 1e-6, 0, -1e-6])
    corrected = np.array(own(x, m.p_defaults, 0)[0]).ravel()
    for away, off in ((0.0, ROUNDING), (1e-6, 1e-11)):
        carried = s.traced.rhs(x + away, [], m.p_defaults, 0)[3]
        found, violation = after(x, m.p_defaults, 0, carried)
        assert np.abs(np.array(found).ravel() - corrected).max() <= off
        assert float(violation) <= ROUNDING
    assert np.abs(corrected - x).max() > 1e-7


def test_a_step_ends_on_the_constraints():
    r = pf.run(four_bar(), FOUR_BAR_START, [0.0, 0.0, 0.0], duration=0.2, step=2e-3, backend="interpreter")
    assert float(r["violation"].max()) <= 1e-14
    assert float(r["velocity_violation"].max()) <= 1e-12
