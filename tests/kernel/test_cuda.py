"""Kernels for CUDA devices: NVRTC compiles their text, and on the CPU it gives the bits of the other backends."""

import contextlib
import re
import sys
import types

import numpy as np
import pytest

import pfaffian as pf
from pfaffian.errors import BuildError, ModelError
from tests.kernel.cuda_stand_in import cupy
from tests.oracles.test_known_answers import n_four_bar
from tests.simulate.machines import four_bar
from tests.simulate.test_entrance import ALONG, FLAT
from tests.simulate.test_stepper import SWITCHED, cart, noisy, regulating, sprung

RUNS, STEP, START = 130, 2e-3, 0.5
CASES = {
    "a loop": (four_bar(), {}),
    "noise and latency": (cart(), {"control": noisy(), "seed": 5}),
    "a law, and a switch": (sprung(), {"control": regulating(), "switches": SWITCHED}),
}


@pytest.fixture
def device(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "cupy", cupy(tmp_path))


def made(m, options):
    s = pf.stepper(m, step=STEP, runs=RUNS, **options)
    random = np.random.default_rng(3)
    s.reset(q=0.02 * random.normal(size=(RUNS, m.nq)) + m.neutral(), v=random.normal(size=(RUNS, m.nv)), t=START)
    return s


@pytest.mark.parametrize("name", CASES)
def test_bits_of_the_processor(name, device):
    """More runs than a block has threads. The inputs change on the way, and the stepper continues after the device."""
    here, there = made(*CASES[name]), made(*CASES[name])
    d = pf.cuda.on_device(there)
    assert d.x.strides[0] == d.status.strides[0] * 2 == 8, "neighbouring threads read neighbouring numbers"
    here.step(steps=3)
    d.step(3)
    u = np.linspace(-2, 2, RUNS)[:, None] * np.ones(len(here.u_names))
    here.step(u, steps=20)
    d.u[0] = u
    d.step(20)
    d.wait()
    assert sys.modules["cupy"].waited == [1]
    d.back()
    assert there.t == d.t == here.t == START + 23 * STEP
    for a, b in ((here, there), (here.save(), there.save())):
        assert np.array_equal(a.status, b.status)
        for part in ("q", "v") if a is here else ("x", "u", "p", "stopped"):
            assert np.array_equal(getattr(a, part), getattr(b, part)), part
    here.step(steps=5)
    there.step(steps=5)
    assert np.array_equal(here.q, there.q)


def test_huge_angles_and_runs_that_stop(device):
    """Angles whose reduction needs all digits of 2/pi, and one run that diverges."""
    here, there = made(cart(), {}), made(cart(), {})
    q, v = np.zeros((RUNS, 2)), np.zeros((RUNS, 2))
    q[:, 1], v[5, 0] = 10.0 ** np.linspace(0, 22, RUNS), 9e11
    q[5, 0] = 9.99999e11
    for s in (here, there):
        s.reset(q, v, correct_start=False)
    d = pf.cuda.on_device(there)
    here.step(steps=4)
    d.step(4)
    d.back()
    assert np.array_equal(here.save().x, there.save().x)
    assert list(np.flatnonzero(there.status)) == list(np.flatnonzero(here.status)) != []
    assert np.array_equal(here.save().stopped, there.save().stopped)


def test_nvrtc_compiles_the_text():
    s = pf.stepper(cart(), runs=2, control=noisy())
    found = pf.cuda.compiled(pf.cuda.text(s), "sm_90")
    assert found.binary[:4] == b"\x7fELF" and found.architecture == "sm_90"
    assert 32 <= found.registers <= 255 and found.stack > 0 and found.spilled >= 0
    assert "pfaffian_device_rollout" in found.log
    with pytest.raises(BuildError, match=r"NVRTC refuses the text for sm_80.*\n.*nothing_of_the_kind"):
        pf.cuda.compiled("nothing_of_the_kind x;", "sm_80")
    with pytest.raises(BuildError, match="'sm_90' is needed, got 'sm_x'"):
        pf.cuda.compiled("", "sm_x")
    with pytest.raises(BuildError, match=r"NVRTC refuses the text for sm_10"):
        pf.cuda.compiled("", "sm_10")


def warp(monkeypatch) -> list[str]:
    """Stand-ins for mujoco_warp and warp on a device that records graphs; returns the list of calls made to them."""
    called: list[str] = []
    array = types.SimpleNamespace(assign=lambda x: called.append(f"{x.shape} {x.dtype}"))
    mujoco_warp = types.ModuleType("mujoco_warp")
    mujoco_warp.put_model = lambda model: model
    mujoco_warp.make_data = lambda model, nworld: types.SimpleNamespace(qpos=array, qvel=array)
    mujoco_warp.step = lambda model, data: called.append("step")
    module = types.ModuleType("warp")
    module.get_device = lambda: types.SimpleNamespace(is_cuda=True)
    module.ScopedCapture = lambda: contextlib.nullcontext(types.SimpleNamespace(graph="graph"))
    module.capture_launch = called.append
    module.synchronize = lambda: called.append("wait")
    monkeypatch.setitem(sys.modules, "mujoco_warp", mujoco_warp)
    monkeypatch.setitem(sys.modules, "warp", module)
    return called


def test_the_check_on_a_device(device, capsys, monkeypatch):
    """The script tools/device.py: it compares bits and rates, and the rate of mujoco_warp where that is installed."""
    from tools import device as tool

    monkeypatch.setattr(sys, "argv", ["device", "40"])
    monkeypatch.setattr(tool, "COMPARED", 20)
    monkeypatch.setattr(tool, "STEPS", 3)
    of = {name: tool.machines()[name] for name in ("slider-crank", "UR5")}
    monkeypatch.setattr(tool, "machines", lambda: of)
    called = warp(monkeypatch)
    tool.main()
    crank, arm = capsys.readouterr().out.splitlines()
    for line, name in ((crank, "slider-crank"), (arm, "UR5")):
        assert line.startswith(name) and "same bits" in line and "40 runs at once" in line
    assert "mujoco_warp" not in crank and re.search(r"; mujoco_warp \S+ in single precision", arm)
    assert called == [*["(40, 6) float32"] * 2, "step", "step", *["graph"] * 3, "wait", *["graph"] * 3, "wait"]
    monkeypatch.setitem(sys.modules, "mujoco_warp", None)
    monkeypatch.setattr(tool, "machines", lambda: {"UR5": of["UR5"]})
    monkeypatch.setattr(tool, "same_bits", lambda *machine: False)
    tool.main()
    printed = capsys.readouterr().out
    assert "OTHER BITS" in printed and "mujoco_warp" not in printed


def test_refusals(monkeypatch, device):
    with pytest.raises(ModelError, match=r"a stepper with steps of one length is needed.*got 3"):
        pf.cuda.text(3)
    flat = pf.stepper(n_four_bar(2, False), backend="interpreter")
    flat.reset(FLAT, ALONG)
    with pytest.raises(ModelError, match=r"singular configuration; take the first step with s\.step\(\)"):
        pf.cuda.on_device(flat)
    flat.step()
    assert pf.cuda.on_device(flat).t == 1e-3
    for found in (None, cupy_without_a_driver()):
        monkeypatch.setitem(sys.modules, "cupy", found)
        with pytest.raises(BuildError, match="pip install cupy"):
            pf.cuda.on_device(made(cart(), {}))


def cupy_without_a_driver() -> types.ModuleType:
    """CuPy on a machine without a driver: the import succeeds, and the first call fails."""

    def fails():
        raise RuntimeError("cudaErrorInsufficientDriver")

    module = types.ModuleType("cupy")
    module.cuda = types.SimpleNamespace(runtime=types.SimpleNamespace(getDeviceCount=fails))
    return module
