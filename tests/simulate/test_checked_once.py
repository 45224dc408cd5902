"""A caller's arguments are checked once, at the public door; below it they are a System and arrays."""

from __future__ import annotations

import sys
from collections import Counter
from types import FrameType
from typing import Any

import numpy as np
import pytest

import pfaffian as pf
from pfaffian.evaluate import arrays
from pfaffian.kernel import remember
from pfaffian.model import mechanism
from pfaffian.states.variables import normalise
from tests.simulate.machines import four_bar, pendulum
from tests.wheeled_boards import snakeboard

CHECKS_OF_A_MECHANISM = {"as_mechanism", "as_names"}
"""Functions of `model/mechanism` that check what a caller gave."""


def entered(call: Any) -> Counter[str]:
    """How often a call enters the checks of arrays and of mechanisms from another file."""
    found: Counter[str] = Counter()

    def see(frame: FrameType, event: str, _: Any) -> None:
        code, caller = frame.f_code, frame.f_back
        if event != "call" or caller is None or caller.f_code.co_filename == code.co_filename:
            return
        found["arrays"] += code.co_filename == arrays.__file__
        found["mechanism"] += code.co_filename == mechanism.__file__ and code.co_name in CHECKS_OF_A_MECHANISM

    before = sys.getprofile()
    sys.setprofile(see)
    try:
        call()
    finally:
        sys.setprofile(before)
    return found


@pytest.mark.parametrize(
    "make, start",
    [
        (lambda: four_bar(ground=0.8937), {"q": {"a": 0.4}}),
        (lambda: pendulum(1.0371), {"q": [0.3], "v": [0.1], "u": [1.0]}),
        (lambda: snakeboard("planar"), {}),
        (lambda: pf.reduction.hamiltonian(pendulum(1.0372)), {"q": [[0.3], [0.2]], "u": {"motor": [1.0, 2.0]}}),
    ],
    ids=["four-bar", "pendulum", "snakeboard", "momenta"],
)  # fmt: skip
def test_a_first_run_checks_its_arguments_once(make, start, tmp_path, monkeypatch):
    monkeypatch.setenv("PFAFFIAN_CACHE", str(tmp_path))
    monkeypatch.setattr(remember, "CHECKING", False)
    m = make()  # of numbers that no other test has, so that nothing of it is known
    found = entered(lambda: pf.run(m, **start, duration=2e-3, backend="interpreter"))
    assert found["arrays"] == 1
    assert 1 <= found["mechanism"] <= 3


@pytest.mark.parametrize(
    "call",
    [
        pf.symbols,
        pf.assemble,
        lambda m: normalise(m, 0),
        lambda m: pf.run(m, duration=0.1),
        lambda m: pf.impact(m, None, None),
    ],
    ids=["symbols", "assemble", "normalise", "run", "impact"],
)
def test_the_door_still_checks(call):
    with pytest.raises(pf.ModelError, match="a Mechanism is needed"):
        call("four-bar")


def test_the_flags_of_a_start_say_what_was_a_guess():
    m = four_bar()
    angles = pf.assemble(m, {"a": 0.4}).q
    named, alone, off = (pf.run(m, q, duration=0.0) for q in ({"a": 0.4}, angles, angles))
    assert np.array_equal(named.q.values[0], alone.q.values[0]) and np.array_equal(alone.q, off.q)
    with pytest.warns(pf.RunWarning, match="^q was off the constraints"):
        pf.run(m, angles + [0.1, 0, 0], duration=0.0)
    with pytest.warns(pf.RunWarning, match="^v was off the constraints"):
        pf.run(m, {"a": 0.4}, [1.0, 0, 0], duration=0.0)
