"""Robot arms on a floating body: reduced by all six momenta they move as the full machines do."""

import warnings
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import numpy as np
import pytest

import pfaffian as pf
from tests.by_scipy import run_adaptive
from tests.simulate.machines import about_mass_centre
from tests.tolerance import close

try:
    _FILES = distribution("example-robot-data").files or []
except PackageNotFoundError:
    pytest.skip("example-robot-data is not installed", allow_module_level=True)

TIMES = np.linspace(0, 10, 11)
SAME, DRIFT = 1e-9, 1e-12
"""Bounds on states after 10 s, and on the drift of momenta [N s, N m s] by rounding. Joints move at some 0.1 rad/s, light
wrists faster: an initial error grows some thousand times in 10 s, and the state at one momentum loses two more digits."""
FULL_ERROR = 5e-11
"""Largest error of the full arm, judged by its change with smaller steps, of at most 0.02 s."""


def floating(name: str) -> pf.Mechanism:
    path = next(Path(str(f.locate())) for f in _FILES if f.name == f"{name}.urdf")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pf.ModelWarning)
        return pf.formats.read_urdf(path, base="free").with_(gravity=(0, 0, 0))


@pytest.mark.filterwarnings("ignore:limits are not enforced")
@pytest.mark.parametrize("name, seed", [("ur5_robot", 5), ("panda", 7)])
def test_a_floating_arm_with_all_six_momenta(name, seed):
    m = floating(name)
    assert m.joints[0].kind.name == "free" and m.nv >= 12
    random = np.random.default_rng(seed)
    q, v = pf.random_configuration(m, random), random.uniform(-0.1, 0.1, m.nv)
    mu = pf.reduction.momentum_map(m, q, v)
    assert (np.abs(mu) > 1e-3).all()
    keep = {"times": TIMES, "u": random.uniform(-0.005, 0.005, m.nu), "tolerance": 1e-13}
    plain, finer = run_adaptive(m, q, v, **keep), run_adaptive(m, q, v, **keep, max_step=0.02)
    other = run_adaptive(pf.reduce(m), q, v, **keep)
    at_mu = run_adaptive(pf.reduce(m, momentum=mu), q, v, **keep)
    for what in ("q", "v"):
        close(finer[what], plain[what], FULL_ERROR, f"{what} by smaller steps", scale=1.0)
        close(other[what], plain[what], SAME, what, scale=1.0)
        close(at_mu[what], plain[what], SAME, f"{what} at one momentum", scale=1.0)
    close(other["momentum"].values[0, :6], about_mass_centre(m, q, v), 1e-14, "momentum of the state")
    assert float(np.abs(other["momentum_drift"]).max()) < DRIFT
    # Motors change the other momenta.
    assert np.ptp(other["shape_momentum"].values, axis=0).max() > 1e-3
