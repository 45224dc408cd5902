"""Every study runs, draws its figures, and satisfies its claims."""

from __future__ import annotations

from pathlib import Path

import pytest

from pfaffian.viewer.run_study import report, run_study, studies
from tests.viewer.figure_faults import complaints

PLACE = Path(__file__).parents[1] / "studies"


@pytest.mark.parametrize("name", studies(PLACE))
def test_study(name):
    outcome = run_study(name, PLACE)
    assert outcome.claims, "a study without claims proves nothing"
    assert outcome.holds, report(c for c in outcome.claims if not c.holds)
    assert outcome.figures, "a study shows its results in figures"
    for name_of_figure, figure in outcome.figures.items():
        assert complaints(figure) == [], name_of_figure
