"""Real machines give the same bits by NumPy, scalar C and 8 lanes, by gcc and clang (zig), in any batch size, on one thread
or two."""

import warnings
from pathlib import Path

import numpy as np
import pytest

import pfaffian as pf
from pfaffian import kernel
from pfaffian.states.system import as_system
from tests.simulations import simulation

BATCHES = (1, 2, 7, 8, 9, 64, 65, 4097)


@pytest.fixture(scope="module", params=("slider_crank", "four_bar", "panda_welded", "baxter_bar"))
def machine(request):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pf.read(Path(__file__).parents[2] / "examples" / f"{request.param}.yaml")


def states(m, settings, runs):
    """Initial states that differ a little, since bits must not depend on a run's position in the batch."""
    random = np.random.default_rng(5)
    q = np.tile(m.neutral(), (runs, 1))
    for name, value in settings.start.items():
        q[:, m.q_names.index(name)] = value
    q += 1e-3 * random.normal(size=q.shape)
    return np.hstack([q, 0.1 * random.normal(size=(runs, m.nv))])


@pytest.mark.parametrize("compiler", ["gcc", "zig"])
def test_right_hand_side(machine, compiler, monkeypatch):
    m, settings = machine
    monkeypatch.setenv("PFAFFIAN_CC", compiler)
    rhs = simulation(as_system(m), pf.Scheme()).traced.rhs
    x, u = states(m, settings, max(BATCHES)), np.linspace(-1, 1, m.nu)
    reference = kernel.compile(rhs, backend="numpy")(x, u, m.p_defaults, np.array([0.1]))[0]
    assert np.isfinite(reference).all()
    for lanes in (1, 4, 8):
        compiled = kernel.compile(rhs, backend="c", lanes=lanes)
        for runs in BATCHES:
            for threads in (1, 2):
                result = compiled(x[:runs], u, m.p_defaults, np.array([0.1]), threads=threads)[0]
                assert np.array_equal(result, reference[:runs]), (lanes, runs, threads)


def test_rollout(machine):
    m, settings = machine
    small = m.nv < 10  # NumPy takes a second for each step of a large robot, and the estimate of the error takes more steps
    x, keep = states(m, settings, 17), dict(duration=0.02 if small else 0.003, step=1e-3, error=None if small else False)
    keep |= dict(u=np.linspace(-1, 1, m.nu), correct_start=False)
    keep["record"] = ["q", "v", "energy", "reaction", "rank"]
    q, v = x[:, : m.nq], x[:, m.nq :]
    reference = pf.run(m, q, v, backend="numpy", **keep)
    batch, threaded, alone = pf.run(m, q, v, **keep), pf.run(m, q, v, threads=2, **keep), pf.run(m, q[3], v[3], **keep)
    for name in ("q", "v", "energy", "reaction", "rank"):
        assert np.array_equal(batch[name], reference[name]), name
        assert np.array_equal(threaded[name], reference[name]), name
        assert np.array_equal(alone[name], reference[name][3]), name
