"""The examples in the docstrings of public names: each stands alone and gives what it prints."""

from __future__ import annotations

import doctest
import inspect
from types import ModuleType

import pytest

import pfaffian as pf

ROOMS = [name for name in pf.__all__ if isinstance(getattr(pf, name), ModuleType)]
PUBLIC = {name: getattr(pf, name) for name in pf.__all__ if name not in ROOMS} | {
    f"{room}.{name}": getattr(getattr(pf, room), name) for room in ROOMS for name in getattr(pf, room).__all__
}
WITH_EXAMPLE = {name: value for name, value in PUBLIC.items() if ">>>" in (inspect.getdoc(value) or "")}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", WITH_EXAMPLE)
def test_the_example_of_a_docstring_gives_what_it_prints(name: str) -> None:
    text = inspect.getdoc(WITH_EXAMPLE[name]) or ""
    example = doctest.DocTestParser().get_doctest(text, {}, name, None, None)
    said: list[str] = []
    failed, tried = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE).run(
        example, out=said.append
    )
    assert tried and not failed, "".join(said)
