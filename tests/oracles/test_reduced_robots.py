"""Robot arms on a body that floats: reduced by all six of their momenta they are the same machines."""

import warnings
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import numpy as np
import pytest

import pfaffian as pf
from tests.tolerance import close

try:
    _FILES = distribution("example-robot-data").files or []
except PackageNotFoundError:
    pytest.skip("example-robot-data is not installed", allow_module_level=True)

SAME = 1e-9
"""Two states of one machine after 0.2 s of RK4 at 0.5 ms, beside each other (the issue's bound)."""


def floating(name: str) -> pf.Mechanism:
    path = next(Path(str(f.locate())) for f in _FILES if f.name == f"{name}.urdf")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pf.ModelWarning)
        return pf.read_urdf(path, base="free").with_(gravity=(0, 0, 0))


@pytest.mark.filterwarnings("ignore:limits are not enforced")
@pytest.mark.parametrize("name", ["ur5_robot", "panda"])
def test_an_arm_that_floats_with_all_six_momenta(name):
    m = floating(name)
    assert m.joints[0].kind.name == "free" and m.nv >= 12
    random = np.random.default_rng(5)
    q, v = pf.random_configuration(m, random), random.uniform(-0.5, 0.5, m.nv)
    mu = pf.momentum_map(m, q, v)
    assert (np.abs(mu) > 1e-3).all()
    u = random.uniform(-0.2, 0.2, len(m.actuators))
    keep = {"u": u, "duration": 0.2, "step": 5e-4, "every": 20, "backend": "c"}
    plain, other = pf.run(m, q, v, **keep), pf.run(pf.reduce(m), q, v, **keep)
    for what in ("q", "v"):
        close(other[what], plain[what], SAME, what)
    kept = other["momentum"].values[:, :6]
    assert (kept == kept[0]).all()
    close(kept[0], mu, 1e-14, "momentum of the state")
    assert float(np.abs(other["momentum_drift"]).max()) < 1e-12
    # Motors move what is not kept.
    assert np.ptp(other["shape_momentum"].values, axis=0).max() > 1e-3
