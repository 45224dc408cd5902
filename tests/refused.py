"""Tests of calls that are refused: each raises an error whose message names the fault."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any

import pytest

import pfaffian as pf
from pfaffian.errors import ModelWarning


def refusals(cases: Mapping[str, tuple[Callable[[], Any], str]], error: Any = pf.ModelError) -> Callable[[str], None]:
    """A test for each case {name: (call, words)}: the call raises the error, and its message matches the words."""

    @pytest.mark.parametrize("case", cases)
    def test(case: str) -> None:
        call, words = cases[case]
        with pytest.raises(error, match=words):
            call()

    return test


def refused_texts(cases: Mapping[str, tuple[str, str]], parse: Callable[[str], Any]) -> Callable[[str], None]:
    """A test for each case {name: (text, words)}: parse(text) raises ModelError with these words, whatever it warns of."""

    @pytest.mark.parametrize("case", cases)
    def test(case: str) -> None:
        text, words = cases[case]
        with warnings.catch_warnings(), pytest.raises(pf.ModelError) as error:
            warnings.simplefilter("ignore", ModelWarning)
            parse(text)
        assert words in str(error.value)

    return test
