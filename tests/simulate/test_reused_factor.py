"""The correction after a step reuses the factorisation of the last stage: as accurate as with a new factorisation, for less
work."""

import numpy as np
import pytest

import pfaffian as pf
from pfaffian.kernel.program.passes import optimise
from pfaffian.kernel.program.trace import trace
from pfaffian.states.system import as_system
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
def test_only_schemes_whose_last_stage_factorises_reuse_it(scheme, carries):
    _, after, with_new_factor = functions(**scheme)
    assert (after.size1_in(3) > 0) == carries
    fewer = optimise(trace(after)).n_ops / optimise(trace(with_new_factor)).n_ops
    assert fewer < 0.8 if carries else fewer == 1


def test_the_correction_equals_that_by_a_new_factorisation():
    """Evaluated at the state itself it agrees to rounding; evaluated at a stage that is off by 1e-6, to the square of that."""
    s, after, with_new_factor = functions()
    m = s.mechanism
    there = pf.assemble(m, FOUR_BAR_START, {"a": 0.3})
    x = np.concatenate([there.q, there.v]) + np.array([1e-6, -2e-6, 1e-6, 1e-6, 0, -1e-6])
    corrected = np.array(with_new_factor(x, m.p_defaults, 0)[0]).ravel()
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
