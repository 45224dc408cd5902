"""Tests of calls that are refused: each raises an error whose message names the fault."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

import pfaffian as pf


def refusals(cases: Mapping[str, tuple[Callable[[], Any], str]], error: Any = pf.ModelError) -> Callable[[str], None]:
    """A test for each case {name: (call, words)}: the call raises the error, and its message matches the words."""

    @pytest.mark.parametrize("case", cases)
    def test(case: str) -> None:
        call, words = cases[case]
        with pytest.raises(error, match=words):
            call()

    return test
