"""A machine of the same structure with other numbers runs on the code that was compiled before."""

import numpy as np
import pytest

import pfaffian as pf
from pfaffian import control
from pfaffian.kernel.build import library

FIRST = {
    "mass": 2.1,
    "length": 0.7,
    "spin": 0.17,
    "damping": 0.31,
    "gravity": 9.1,
    "gain": 11.0,
    "goal": 0.45,
    "limit": 4.3,
}
"""The program has equal constants once: in both sets of numbers the same of its constants are equal to the last digit."""
OTHER = {
    "mass": 2.3,
    "length": 0.6,
    "spin": 0.19,
    "damping": 0.37,
    "gravity": 1.6,
    "gain": 13.0,
    "goal": 0.33,
    "limit": 4.1,
}


def run(numbers, backend):
    """Two links whose end stays at a constant height, driven to a goal by motors that are too weak for it."""
    n = dict(numbers)
    hinge = {"kind": "revolute", "axis": (0, 1, 0), "damping": n["damping"]}
    joints = [
        pf.joint("A", parent="world", child="a", **hinge),
        pf.joint("B", parent="a", child="b", placement=pf.pose((n["length"], 0, 0)), **hinge),
    ]
    at = {"com": (0.3 * n["length"], 0.0, 0.0), "inertia": n["spin"]}
    bodies = [pf.body("a", mass=n["mass"], **at), pf.body("b", mass=0.81 * n["mass"], **at)]
    end = (1.13 * n["length"], 0.0, 0.0)
    line = pf.holonomic("line", lambda K: K.position("b", end)[2] + 0.61)
    motors = [pf.actuator(f"motor {j}", j, limits=(-n["limit"], n["limit"])) for j in "AB"]
    m = pf.mechanism("arm", bodies, joints, constraints=[line], actuators=motors, gravity=(0, 0, -n["gravity"]))
    goal = control.set_point([n["goal"]])
    law = control.projected(control.joints("A"), goal, stiffness=n["gain"], damping=7.0, limits="actuators")
    return pf.run(m, {"A": 0.4}, duration=0.004, step=1e-3, control=law, backend=backend)


@pytest.fixture(scope="module")
def first():
    run(FIRST, "interpreter")  # which is itself compiled once
    return run(FIRST, "c")


@pytest.mark.parametrize("name", FIRST)
def test_another_number_compiles_nothing(first, name, monkeypatch):
    def build(*_):
        raise AssertionError(f"{name} was compiled")

    monkeypatch.setattr(library, "_build", build)
    numbers = FIRST | {name: OTHER[name]}
    found, expected = (run(numbers, backend) for backend in ("c", "interpreter"))
    assert (found.attrs["kernel_backend"], expected.attrs["kernel_backend"]) == ("c", "interpreter")
    for signal in ("q", "v", "u", "reaction"):
        assert np.array_equal(found[signal], expected[signal], equal_nan=True), signal
    assert any(not np.array_equal(found[signal], first[signal], equal_nan=True) for signal in ("q", "u")), (
        "the number has no effect"
    )
