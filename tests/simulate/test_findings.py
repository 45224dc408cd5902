"""What is said about a run that has ended is a list, the same for every kind of run."""

from __future__ import annotations

import pytest

import pfaffian as pf
from pfaffian.simulate.run import findings
from tests.oracles.test_dependent_rows import between_planes
from tests.simulate.machines import pendulum

RUNS = {
    "run": lambda m, **more: pf.run(m, duration=0.02, step=0.01, backend="numpy", **more),
    "to an accuracy": lambda m, **more: pf.run(m, times=[0.0, 0.02], accuracy=1e-6, backend="numpy", **more),
}


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
def test_every_kind_of_run_has_all_findings_in_their_order(run, monkeypatch):
    found = []

    def called(name):
        return lambda result, runs: found.append((name, result, runs.simulation.mechanism.name))

    monkeypatch.setattr(findings, "FINDINGS", tuple(called(i) for i in range(5)))
    run(pendulum())
    assert [name for name, *_ in found] == [0, 1, 2, 3, 4]
    assert len({id(result) for _, result, _ in found}) == 1 and {name for *_, name in found} == {"pendulum"}


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
def test_rows_that_the_tolerance_leaves_out_are_told_of_every_kind_of_run(run):
    with pytest.warns(pf.RunWarning, match="constrain nothing here"):
        assert run(between_planes(1e-7)).attrs["left_out"] > 1e-9


@pytest.mark.parametrize("finding", findings.FINDINGS, ids=lambda f: f.__name__)
def test_no_finding_is_listed_twice_and_each_says_what_it_finds(finding):
    assert findings.FINDINGS.count(finding) == 1 and finding.__doc__
