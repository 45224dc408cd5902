"""The error estimate of a run whose motion turns fast between compared steps, against the same run with an eighth of the
step."""

from __future__ import annotations

import warnings

import casadi as ca
import numpy as np
import pytest

import pfaffian as pf
from pfaffian.simulate.error.accuracy import StepErrorMonitor
from tests.wheeled_boards import blade, machine, snakeboard, trailer

FACTOR = 5
"""Factor between the estimate and the sum of all local errors: one compared step stands for many."""
STEP = 5e-3


def two_trailers() -> pf.Mechanism:
    """The car with a second trailer on a hitch behind the axle of the first."""
    m = trailer("planar")
    bodies = [*m.bodies, pf.body("last", 2.0, com=(-0.4, 0, 0), inertia=0.2)]
    joints = [*m.joints[1:], pf.joint("last", "revolute", "trailer", "last", placement=(-0.7, 0, 0))]
    return machine("two trailers", "planar", bodies, joints, [*m.constraints, blade("last", -0.5)], ("steer",))


def turning(m: pf.Mechanism, seed: int) -> dict:
    """A start in motion, and a torque under which wheels spin and now and then stand across the motion of their body."""
    random = np.random.default_rng(seed)
    shape = {j.name: random.uniform(-1, 1) for j in m.joints[-2:]}
    at = pf.assemble(m, shape, random.normal(size=m.nv) * 2)
    return {"q": at.q, "v": at.v, "u": random.normal(size=m.nu) * 0.3, "duration": 4.0, "backend": "interpreter"}


def difference(r, fine) -> float:
    """Largest difference of angles and places, or of speeds relative to the largest speed."""
    q, v = (np.abs(r[name].values - fine[name].values).max() for name in ("q", "v"))
    return float(max(q, v / np.abs(fine.v.values).max()))


@pytest.mark.parametrize(
    ("make", "seed"),
    [(two_trailers, 0), (two_trailers, 3), (lambda: snakeboard("slides and hinge"), 2), (lambda: trailer("planar"), 1)],
)
def test_steps_where_directions_turn_fast_are_in_the_estimate(make, seed):
    """Comparisons at evenly spaced instants miss these steps, whose errors are 500 to 10,000,000 times as large."""
    m = pf.reduce(make())
    how = turning(m.mechanism, seed)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        r = pf.run(m, step=STEP, **how)
        fine = pf.run(m, step=STEP / 8, every=8, **how, error_bound=np.inf)
    found, off = float(r.error.max()), difference(r, fine)
    assert 1 / FACTOR < found / off < FACTOR, f"estimate {found:.1e}, error {off:.1e}"
    assert bool(caught) == (found > 5e-5)


def test_the_estimate_of_a_reduced_run_is_independent_of_batch_and_bound():
    m = pf.reduce(trailer("planar"))
    one = turning(m.mechanism, 1)
    both = one | {"q": np.array([m.mechanism.neutral(), one["q"]]), "v": np.array([np.zeros(m.mechanism.nv), one["v"]])}
    a, b, c = (pf.run(m, step=STEP, error=True, **how) for how in (one, both, one | {"error_bound": np.inf}))
    assert float(a.error.max()) == float(b.error[1].max()) == float(c.error.max()) > 0


H, STEPS, AT_LOOK, LATER = 1e-3, 60, 30, 46
"""A run that is compared at its start, where it is at rest, and at its middle; and the steps in whose middle the push is
largest."""


def pushing(t, step: int):
    """A force that reaches 1 N against the motion, for some steps."""
    return -(ca if isinstance(t, ca.SX) else np).exp(-(((t / H - step - 0.5) / 2) ** 2))


def fifth_differences(step: int) -> np.ndarray:
    """Fifth differences of the position of 1 kg under that force: fourth differences of the speed, which RK4 integrates by
    Simpson's rule."""
    t = H * np.arange(STEPS)
    return np.diff(H / 6 * (pushing(t, step) + 4 * pushing(t + H / 2, step) + pushing(t + H, step)), 4)


@pytest.mark.parametrize(
    "largest",
    [1e-6 * np.array([(1, 3.01), (1, 2.99), (0.98, 0.98 * 3.01)]), np.array([(0, 3.01e-11), (0, 2.99e-11)])],
    ids=["relative to a compared step", "relative to rounding"],
)
def test_a_step_is_compared_where_differences_are_three_times_as_large_and_add_up_to_the_bound(monkeypatch, largest):
    """Only the first run of the batch qualifies: the differences of the second are too even, the error of the third is too
    small."""
    at = np.array([fifth_differences(AT_LOOK), fifth_differences(LATER)])
    forces = largest / np.abs(at).max(axis=1)
    total = STEPS * np.abs(forces @ at).mean(axis=1)  # relative to a largest speed of 1 m/s
    sizes = [pf.Parameter("look", 0.0, "N"), pf.Parameter("later", 0.0, "N")]
    force = pf.forces.generalised_force(
        "pushes", lambda k: sizes[0].symbol * pushing(k.t, AT_LOOK) + sizes[1].symbol * pushing(k.t, LATER)
    )
    rail = pf.joint("x", "prismatic", "world", "b", axis=(1, 0, 0))
    m = pf.mechanism("block", [pf.body("b", 1.0)], [rail], forces=[force], parameters=sizes, gravity=(0, 0, 0))
    compared, seen = StepErrorMonitor.compared, []

    def compared_recorded(self, k, x, some):
        seen.append((k, some.tolist()))
        return compared(self, k, x, some)

    monkeypatch.setattr(StepErrorMonitor, "compared", compared_recorded)
    pf.run(m, None, [1.0], parameters=dict(zip(("look", "later"), forces.T, strict=True)), duration=STEPS * H, step=H,
           error_bound=0.99 * total[0], backend="interpreter")  # fmt: skip
    assert seen == [(LATER, [0])]
