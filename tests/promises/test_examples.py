"""Examples in the docstrings of public names: each runs alone and prints what it shows."""

from __future__ import annotations

import doctest
import inspect
from types import ModuleType

import pytest

from tests.public_names import PUBLIC

MODULES = {name: value for name, value in PUBLIC.items() if isinstance(value, ModuleType)}
INSIDE = {
    f"{name}.{n}": x
    for name, m in MODULES.items()
    for n, x in vars(m).items()
    if (inspect.isfunction(x) or (inspect.isclass(x) and ">>>" in (inspect.getdoc(x) or "")))
    if n[0] != "_" and x.__module__ == m.__name__
}
MADE = {name: value for name, value in PUBLIC.items() if inspect.isfunction(value) or inspect.isclass(value)}
"""Public functions and classes. Left out are constants, types for annotations, and modules, whose functions are in INSIDE."""


def test_every_function_and_class_is_included() -> None:
    assert len(MADE) > 200 and {n.split(".")[-1] for n in set(PUBLIC) - set(MADE) - set(MODULES)} == CONSTANTS
    assert len(INSIDE) > 100


CONSTANTS = {"FORMATS", "FORMULATIONS", "LAWS", "FACTORS", "APPROACHES", "QUADCOPTER", "TRICOPTER", "FLIGHT", "COLOURS", "Task"}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", MADE | INSIDE)
def test_the_example_of_a_docstring_prints_what_it_shows(name: str) -> None:
    text = inspect.getdoc((MADE | INSIDE)[name]) or ""
    example = doctest.DocTestParser().get_doctest(text, {}, name, None, None)
    output: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    failed, tried = runner.run(example, out=output.append)
    assert tried and not failed, "".join(output)
