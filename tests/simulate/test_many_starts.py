"""Many starts at once: computed in blocks with the bits of single runs; starts out of reach are recognised early."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import numpy as np
import pytest

import pfaffian as pf
from pfaffian.model import unphysical
from pfaffian.simulate.error import accuracy
from pfaffian.simulate.run import controlled, roll
from pfaffian.starts import assemble, newton, start_search
from tests.simulate.machines import four_bar
from tests.simulate.test_start import arm_to_a_place, places

QUICK = {"backend": "interpreter"}
COUNT = 24
BLOCKS = 5
"""Runs of a block; no divisor of COUNT."""

BYTES = 450
"""Largest memory for each run in addition to its record."""

MORE = 200
"""What a run to an accuracy may need in addition: its error, and what continues it."""


@pytest.fixture
def small_blocks(monkeypatch):
    for room in (assemble, newton, roll, accuracy):
        monkeypatch.setattr(room, "BLOCK", BLOCKS)


def placed(count: int) -> dict[str, np.ndarray]:
    return places(count)[0]


def same(a, b) -> None:
    for x, y in zip(a, b, strict=True):
        np.testing.assert_array_equal(x, y)


def many_runs() -> dict:
    """Arguments of runs, some of whose starts do not close and some of whose steps exceed the error bound."""
    a = np.linspace(-3, 3, COUNT)
    return {"q": {"d": a}, "v": {"d": a}, "duration": 0.05, "step": 0.01, "every": 2, "error_bound": 1e-9, **QUICK}


def test_blocks_change_no_bit_of_assemblies(small_blocks, monkeypatch):
    found = pf.assemble(arm_to_a_place(), placed(COUNT), **QUICK)
    monkeypatch.setattr(assemble, "BLOCK", 10 * COUNT)
    same(found, pf.assemble(arm_to_a_place(), placed(COUNT), **QUICK))


@pytest.mark.filterwarnings("ignore::pfaffian.RunWarning")
def test_blocks_change_no_bit_of_a_run(small_blocks, monkeypatch):
    found = pf.run(four_bar(), **many_runs(), error=True)
    for room in (assemble, newton, roll, accuracy):
        monkeypatch.setattr(room, "BLOCK", 10 * COUNT)
    whole = pf.run(four_bar(), **many_runs(), error=True)
    assert (whole.status != 0).any() and (whole.status == 0).any()
    assert np.isfinite(whole.error.values).any()
    assert found.identical(whole)


@pytest.mark.filterwarnings("ignore::pfaffian.RunWarning")
def test_warnings_do_not_depend_on_blocks(monkeypatch):
    messages = []
    for size in (BLOCKS, 10 * COUNT):
        for room in (assemble, newton, roll, accuracy):
            monkeypatch.setattr(room, "BLOCK", size)
        with pytest.warns(pf.RunWarning) as seen:
            pf.run(four_bar(), **many_runs())
        messages.append([str(w.message) for w in seen])
    assert messages[0] == messages[1]


def test_an_impossible_body_is_named_in_any_block(monkeypatch):
    monkeypatch.setattr(unphysical, "BLOCK", BLOCKS)
    mass = pf.Parameter("mass", 1.0, "kg")
    m = pf.mechanism("block", [pf.body("box", mass)], [pf.joint("x", "prismatic", "world", "box", axis=(1, 0, 0))],
                     parameters=[mass])  # fmt: skip
    values = np.ones(COUNT)
    values[[13, 20]] = -1.0
    with pytest.raises(pf.ModelError, match=r"body 'box' in run 13 \(mass = -1\): the mass is negative"):
        pf.run(m, parameters={"mass": values}, duration=0.1, **QUICK)


# -- starts out of reach -----------------------------------------------------------------------------------------


def test_early_recognition_of_starts_out_of_reach_changes_no_bit(monkeypatch):
    """The kernel for fixed coordinates recognises them, so that few full iterations remain."""
    m, batches, one = arm_to_a_place(), [], newton.newton_step
    slow = pf.assemble(m, placed(COUNT), **QUICK)
    monkeypatch.setattr(newton, "newton_step", lambda problem, q, v: batches.append(len(q)) or one(problem, q, v))
    pf.assemble(m, placed(COUNT), **QUICK)
    before = sum(batches)
    batches.clear()
    monkeypatch.setattr(start_search, "MANY", 1)
    same(slow, pf.assemble(m, placed(COUNT), **QUICK))
    assert sum(batches) < 0.5 * before


@pytest.mark.parametrize("hold", [["a"], ["a", "d"], []])
def test_the_kernel_for_fixed_coordinates_makes_the_same_iterations(hold):
    """The bits of q after each iteration are equal, from states far off and at any v."""
    m, random = four_bar(), np.random.default_rng(4)
    q, v, is_fixed = random.uniform(-3, 3, (20, 3)), random.normal(size=(20, 3)), np.isin(m.v_names, hold)
    free = newton.free_problem(m, np.zeros((20, 0)), 0.0, "interpreter")
    problem = free._replace(fixed=free.fixed._replace(q=np.tile(is_fixed, (20, 1))))
    positions = newton._positions(m, "interpreter", tuple(is_fixed.tolist()))
    for _ in range(4):
        found, (there, phi) = newton.newton_step(problem, q, v), positions(q, np.ones(3), np.zeros((20, 0)), np.zeros(1))
        np.testing.assert_array_equal(there, found.q)
        np.testing.assert_array_equal(phi, found.parts[0])
        q, v = found.q, found.v


def test_starts_whose_iterations_converge_count_as_hopeful():
    m, random = four_bar(), np.random.default_rng(5)
    q, v = random.uniform(-3, 3, (200, 3)), 5 * random.normal(size=(200, 3))
    free = newton.free_problem(m, np.zeros((200, 0)), 0.0, "interpreter")
    for hold in ([True, False, False], [False, False, True]):
        problem = free._replace(fixed=free.fixed._replace(q=np.tile(hold, (200, 1))))
        closed, hope = newton.newton(problem, q, v).closed, newton.may_converge(problem, q, v)
        assert closed.any() and not closed.all()
        np.testing.assert_array_equal(hope, closed)


# -- memory ------------------------------------------------------------------------------------------------------


FIXED = {"duration": 2e-3, "every": 2}
TO_AN_ACCURACY = {"times": [0.0, 2e-3], "accuracy": 1e-6}


@pytest.mark.parametrize(("how", "limit"), [(FIXED, BYTES), (TO_AN_ACCURACY, BYTES + MORE)])
def test_a_run_of_a_batch_takes_some_hundred_bytes_in_addition_to_its_record(monkeypatch, how, limit):
    for room in (unphysical, assemble, newton, accuracy, roll, controlled):
        monkeypatch.setattr(room, "BLOCK", 128)
    m, _ = pf.formats.read_yaml(Path(__file__).parents[2] / "examples" / "slider_crank.yaml")

    def most(count: int) -> int:
        q1 = np.linspace(0.3, 2.8, count)
        q, p = np.column_stack([q1, -2 * q1 + 0.01]), np.column_stack([np.linspace(0.9, 1.1, count)] * 2)
        tracemalloc.start()
        r = pf.run(m, q, np.zeros((count, 2)), parameters=p, record=["q"], threads=1, **how)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return peak - r["q"].nbytes

    few, many = 512, 2560
    most(few)  # what a first call keeps
    assert (most(many) - most(few)) / (many - few) < limit
