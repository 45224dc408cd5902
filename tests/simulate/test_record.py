"""Which signals a run records, and what a reader of results says about those it does not find."""

from __future__ import annotations

import numpy as np
import pytest

import pfaffian as pf
from pfaffian.viewer.scene import motion
from pfaffian.viewer.summary import summary
from tests.simulate.machines import FOUR_BAR_START, four_bar

RUN = {"duration": 0.02, "backend": "numpy"}


def signals(r) -> set[str]:
    """Variables over time."""
    return {str(name) for name, x in r.data_vars.items() if "time" in x.dims}


def test_one_run_records_all_and_a_batch_the_lean_part():
    one = signals(pf.run(four_bar(), FOUR_BAR_START, **RUN))
    batch = signals(pf.run(four_bar(), np.tile(FOUR_BAR_START, (2, 1)), **RUN))
    assert one - batch == {"phi", "reaction", "multiplier"}
    assert batch >= {"q", "v", "u", "energy", "violation", "velocity_violation", "rank", "regularity"}
    assert signals(pf.run(four_bar(), np.tile(FOUR_BAR_START, (2, 1)), record="all", **RUN)) == one
    assert signals(pf.run(four_bar(), FOUR_BAR_START, record="lean", **RUN)) == batch


def test_chosen_signals_have_the_same_bits_in_any_order():
    tip = {"tip": lambda k: k.position("coupler")}
    whole = pf.run(four_bar(), FOUR_BAR_START, outputs=tip, **RUN)
    for outputs, names in ((None, ["multiplier", "q"]), (tip, ["tip", "rank"])):
        few = pf.run(four_bar(), FOUR_BAR_START, outputs=outputs, record=names, **RUN)
        assert signals(few) == set(names)
        for name in names:
            assert np.array_equal(few[name].values, whole[name].values), name


def test_adaptive_run_records_what_is_chosen():
    few = pf.run_accurately(four_bar(), FOUR_BAR_START, times=[0, 0.01], record=["energy", "reaction"])
    assert signals(few) == {"energy", "reaction"}


@pytest.mark.parametrize(
    "record, message",
    [
        (["reactoin"], "no signal 'reactoin'; did you mean 'reaction'"),
        ("energy", r"write record=\['energy'\]"),
        ([], "at least one name"),
        (3, "got 3"),
        ([7], "no signal 7"),
    ],
)
def test_wrong_record_is_named(record, message):
    with pytest.raises(pf.ModelError, match=message):
        pf.run(four_bar(), FOUR_BAR_START, record=record, **RUN)


def test_readers_say_what_to_record():
    r = pf.run(four_bar(), FOUR_BAR_START, record=["rank", "energy"], **RUN)
    assert pf.overview(r).axes
    with pytest.raises(pf.ModelError, match=r"no 'regularity': run with record=\['regularity', 'rank'\]"):
        pf.singular_passages(r)
    with pytest.raises(pf.RunError, match=r"no 'multiplier': run with record=\['multiplier'\]"):
        pf.sign_changes(r, "multiplier")
    with pytest.raises(pf.ModelError, match=r"no 'q': run with record=\['q'\]"):
        motion(four_bar(), r)
    assert "not recorded; record=['energy']" in summary(
        four_bar(), pf.run(four_bar(), FOUR_BAR_START, record=["q"], **RUN), 0.0, []
    )
    with pytest.raises(pf.ModelError, match=r"run with record=\['q', 'v', 'energy'\]"):
        pf.overview(pf.run(four_bar(), FOUR_BAR_START, record=["rank"], **RUN))
