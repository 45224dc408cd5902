"""The mutation tool: mutants are valid Python and differ from the source."""

from __future__ import annotations

import ast
from collections import Counter
from dataclasses import replace

import pytest

from tools.covering import Covering, by_function, name_of, read, updated, write
from tools.mutants import differs, mutants
from tools.mutate import ALWAYS, EACH, changes, covering_tests, draw, draw_each, main, score

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


SAMPLE = Covering(
    {"tests/maths/test_qp.py::test_a": 1.0, "tests/maths/test_qp.py::test_b": 50.0, "tests/maths/test_so3.py::test_c": 30.0,
     "tests/simulate/test_bits.py::test_d": 1.0, "tests/no/such.py::test_e": 1.0},
    {"maths/qp.py": {"f": {"tests/maths/test_qp.py::test_b", "tests/maths/test_so3.py::test_c",
                           "tests/simulate/test_bits.py::test_d"},
                     "g": {"tests/maths/test_qp.py::test_a", "tests/no/such.py::test_e"}},
     "maths/so3.py": {"h": {"tests/maths/test_so3.py::test_c"}}},
)  # fmt: skip


def test_a_mutant_meets_the_tests_that_run_its_function():
    """Few functions before many, within a budget; where nothing runs it, tests of what leads to it, or of its file; or none."""
    a, b, c, *_ = SAMPLE.tests
    of = lambda around, reached=(), path="maths/qp.py": covering_tests(SAMPLE, path, [set(around), {*around, *reached}])  # noqa: E731
    assert of({"f"}) == [b, ALWAYS], "the second would exceed the budget, the others are left out or gone"
    assert of({"g"}) == of({"LIMIT"}, {"g"}) == [a, ALWAYS]
    assert of({"LIMIT"}) == [a, b, ALWAYS], "of the whole file"
    assert of({"h"}, path="maths/so3.py") == [c, ALWAYS] and of({"f"}, path="errors.py") == []


def test_a_test_file_that_names_the_function_comes_first(monkeypatch):
    monkeypatch.setattr("tools.mutate.BUDGET", 100.0)
    table = replace(
        SAMPLE,
        functions={"maths/so3.py": {"quaternions": {"tests/maths/test_qp.py::test_a", "tests/maths/test_so3.py::test_c"}}},
    )
    assert covering_tests(table, "maths/so3.py", [{"quaternions"}, {"quaternions"}])[0] == "tests/maths/test_so3.py::test_c"


def test_tests_belong_to_the_functions_around_their_lines():
    lines = SMALL.decode() + "\n\nclass C:\n    x = 1\n\n    def f(self):\n        return 2\n"
    found = by_function(lines, {1: {""}, 3: {"one", ""}, 6: {"two"}, 10: {""}, 13: {"three"}})
    assert found == {"f": {"one", "two", "three"}, "C": {"three"}}
    assert name_of("tests/x.py::test_a[b::c[d]]") == "tests/x.py::test_a"


def test_a_table_is_kept_and_updated(tmp_path):
    write(SAMPLE, tmp_path / "t.json")
    assert read(tmp_path / "t.json") == SAMPLE
    new = Covering({"tests/maths/test_qp.py::test_z": 2.0}, {"maths/qp.py": {"f": {"tests/maths/test_qp.py::test_z"}}})
    after = updated(SAMPLE, new)
    assert set(after.tests) == {t for t in SAMPLE.tests if "test_qp" not in t} | set(new.tests)
    assert after.functions["maths/qp.py"]["g"] == {"tests/no/such.py::test_e"}
    assert after.functions["maths/qp.py"]["f"] == {*SAMPLE.functions["maths/qp.py"]["f"], *new.tests} - set(
        list(SAMPLE.tests)[:2]
    )
    with pytest.raises(SystemExit, match=r"run `python -m tools.covering` first"):
        read(tmp_path / "none.json")


def test_unknown_mutants_count_as_survivors(monkeypatch, capsys):
    assert score(Counter(killed=9, survived=1)) == score(Counter(killed=9, unknown=1)) == 0.9
    monkeypatch.setattr("tools.mutate.read", lambda: SAMPLE)
    for counts, status in (
        ({"killed": 19, "unknown": 2}, 0),
        ({"killed": 17, "unknown": 2}, 1),
        ({"killed": 8, "survived": 1}, 1),
    ):
        monkeypatch.setattr("tools.mutate.run_mutants", lambda *_, counts=counts: Counter(counts))
        assert main(["--only", "viewer/chart.py", "--count", "2"]) == status
        assert ("is below 0.9" in capsys.readouterr().out) == bool(status)


def test_each_touched_file_has_its_share():
    files = ["control/task.py", "errors.py", "model/number.py"]
    some = draw_each(changes(files), EACH, 3)
    assert Counter(c.path for c in some) == dict.fromkeys(files, EACH) and EACH >= 20
    assert [c.path for c in some] == sorted(c.path for c in some)
    assert draw_each(changes(files[1:2]), 5, 3) == draw_each(changes(files[1:2]), 5, 3) != draw_each(changes(files[1:2]), 5, 4)
    short = changes(["viewer/chart.py"])
    assert len(draw_each(short, 1000, 1)) == len([c for c in short if differs(c.source, c.mutant)])


def test_list_runs_nothing(capsys):
    assert main(["--list", "--count", "3", "--only", "errors.py", "model/number.py", "--seed", "4"]) == 0
    assert capsys.readouterr().out.count("src/pfaffian/") == 3


def test_mutants_of_one_line_and_of_several_files():
    line = changes(["model/number.py"])[5].mutant.line
    some = changes([f"src/pfaffian/model/number.py:{line}"])
    assert some == [c for c in changes(["model/number.py"]) if c.mutant.line == line] != []
    both = changes(["errors.py", f"model/number.py:{line}"])
    assert {c.path for c in both} == {"errors.py", "model/number.py"} and set(some) < set(both)
