"""The mutation tool: mutants are valid Python and differ from the source."""

from __future__ import annotations

import ast

import pytest

from tools.mutants import mutants
from tools.mutate import ROOT, SOURCE, TESTS_OF, changes, covering_tests, draw, main

SMALL = b'''def f(a, b):
    """Words for people stay."""
    if a < b and not a:
        raise ValueError(f"no {a}")
    a += 2 * b
    return {"key": g(a, b), "other": -a @ b}
'''
KINDS = {
    "comparison", "condition", "and, or", "sign or not dropped", "statement dropped", "operator", "number", "name",
    "arguments exchanged", "order of a product",
}  # fmt: skip


def test_every_kind_of_fault_is_made():
    found = mutants(SMALL)
    assert {m.kind for m in found} == KINDS
    texts = {m.apply(SMALL) for m in found}
    assert len(texts) == len(found) and SMALL not in texts
    assert all(b"Words for people stay." in t for t in texts)
    assert any(b"a >= b" in t for t in texts) and any(b"a < b or not a" in t for t in texts)
    assert any(b"g(b, a)" in t for t in texts) and any(b"'key x': g" in t for t in texts)
    assert any(b"    pass\n    return" in t for t in texts) and any(b"3 * b" in t for t in texts)


@pytest.mark.parametrize("equal", ["max(a, b)", "ca.dot(a, b)", "ca.SX.sym('q')", "zip(a, strict=True)", "np.swapaxes(a, b)"])
def test_equivalent_mutants_are_left_out(equal):
    assert mutants(f"c = {equal}\n".encode()) == []


@pytest.mark.parametrize("other", ["max(a, b, c)", "f(a, b)", "f('q')", "f(a, strict=True)"])
def test_calls_that_only_look_equivalent_are_mutated(other):
    assert len(mutants(f"c = {other}\n".encode())) == 1


def test_mutants_of_the_source_are_python_with_correct_lines():
    every = changes(["control/reference.py", "control/task.py", "model/check.py"])
    assert len(every) > 500
    some = draw(every, 80, 1)
    assert len(set(some)) == 80 and some == sorted(some) == draw(every, 80, 1) != draw(every, 80, 2)
    for change in some:
        text = change.mutant.apply(change.source)
        ast.parse(text)
        assert change.diff().startswith("-") and "\n+" in change.diff()
        line = change.source.splitlines()[change.mutant.line - 1].decode()
        assert line.strip() in change.source.decode()


def test_every_module_has_an_entry_or_tests_that_name_it():
    for path in (ROOT / SOURCE).rglob("*.py"):
        name = path.relative_to(ROOT / SOURCE).as_posix()
        assert covering_tests(name) != ["tests"], f"{name}: add it to TESTS_OF of tools/mutate.py"
    missing = [t for tests in TESTS_OF.values() for t in tests if not (ROOT / "tests" / t).exists()]
    assert not missing


def test_a_file_without_an_entry_uses_tests_that_name_its_functions():
    assert "control/regulators.py" not in TESTS_OF
    assert covering_tests("control/regulators.py")[0] == "tests/control/test_regulators.py"


def test_list_runs_nothing(capsys):
    assert main(["--list", "--count", "3", "--only", "errors.py", "model/number.py", "--seed", "4"]) == 0
    assert capsys.readouterr().out.count("src/pfaffian/") == 3


def test_mutants_of_one_line_and_of_several_files():
    line = changes(["model/number.py"])[5].mutant.line
    some = changes([f"src/pfaffian/model/number.py:{line}"])
    assert some == [c for c in changes(["model/number.py"]) if c.mutant.line == line] != []
    both = changes(["errors.py", f"model/number.py:{line}"])
    assert {c.path for c in both} == {"errors.py", "model/number.py"} and set(some) < set(both)
