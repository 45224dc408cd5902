"""Kernels found by key: traced only when the store does not contain them, and never stale."""

import json
import os
import subprocess
import sys

import casadi as ca
import numpy as np
import pytest

from pfaffian import kernel
from pfaffian.errors import BuildError, ModelError, ModelWarning, RunWarning, notice, notice_once
from pfaffian.kernel import remember
from pfaffian.kernel.build import toolchain
from pfaffian.kernel.call import cache_keys as keyed
from pfaffian.kernel.call.recipe import recipe
from pfaffian.kernel.text.source import kernel_source

X = np.linspace(0.1, 2.0, 30).reshape(10, 3)


class Build:
    """Builds a Function, and counts the calls."""

    def __init__(self, factor=7.0):
        self.factor, self.calls = factor, 0

    def __call__(self):
        self.calls += 1
        x = ca.SX.sym("x", 3)
        return ca.Function("f", [x], [ca.sin(x) * self.factor, x[0]])


class BuildRollout(Build):
    def __call__(self):
        self.calls += 1
        x, none, t, h = ca.SX.sym("x", 2), [ca.SX.sym(n, 0) for n in ("u", "w", "p")], ca.SX.sym("t"), ca.SX.sym("h")
        step = ca.Function("step", [x, *none, t, h], [x + self.factor * h * ca.cos(t), ca.SX(0, 1)])
        return step, ca.Function("observe", [x, *none[1:], t], [x * t])


class BuildSampled(BuildRollout):
    def __call__(self):
        x, none, t = ca.SX.sym("x", 2), [ca.SX.sym(n, 0) for n in ("u", "p")], ca.SX.sym("t")
        return *super().__call__(), ca.Function("law", [x, *none, t], [0.5 * x, ca.SX(0, 1)])


@pytest.fixture
def place(monkeypatch, tmp_path):
    monkeypatch.setenv("PFAFFIAN_CACHE", str(tmp_path / "store"))
    return tmp_path / "store" / f"pfaffian-{os.getuid()}"


def get(build, key="model", backend="c", **options):
    return kernel.compile(build, key=key, backend=backend, **options)


def values(k):
    return np.hstack(k(X))


@pytest.mark.parametrize("backend", ["c", "interpreter"])
def test_a_hit_does_not_build(place, backend):
    first, again = Build(), Build()
    fresh, known = get(first, backend=backend), get(again, backend=backend)
    assert (first.calls, again.calls) == (1, 0)
    assert known.provenance["backend"] == backend
    assert known.provenance["digest"] == fresh.provenance["digest"]
    assert np.array_equal(values(known), values(fresh))
    assert np.array_equal(known(X[0])[0], fresh(X[0])[0])
    with pytest.raises(ModelError, match=r"needs \(3,\)"):
        known(np.zeros(4))
    assert again.calls == 0
    assert known.source == fresh.source and known.program == fresh.program
    assert again.calls == 1


def test_a_compiled_kernel_is_loaded_and_not_interpreted(place):
    """The key leads to the object directly; the stored Program is not read."""
    get(Build())
    for programs in place.glob("*.programs"):
        programs.unlink()
    again = Build()
    assert get(again, backend="auto").provenance["backend"] == "c"
    assert again.calls == 0


@pytest.mark.parametrize("backend", ["auto", "c"])
def test_a_rollout_by_key(place, backend):
    """A rollout with a sampler, interpreted and compiled."""

    def run(r):
        span = kernel.Span(0.5, 0.25, 6, 2, last=True, sampling=((3, 1),))
        return r(np.ones((5, 2)), np.zeros((1, 0)), np.zeros(0), span)

    first, again = BuildSampled(), BuildSampled()
    fresh, known = (kernel.compile_rollout(b, key="model", backend=backend) for b in (first, again))
    assert (first.calls, again.calls) == (1, 0)
    for a, b in zip(run(fresh), run(known), strict=True):
        assert np.array_equal(a, b)
    assert again.calls == 0
    assert known.step == fresh.step and known.observe == fresh.observe and known.source == fresh.source


def objects(place):
    return {path.name for path in place.glob("*.so")}


@pytest.mark.parametrize("options", [{}, {"lanes": 1}, {"strict": False}])
def test_changed_numbers_compile_nothing(place, options):
    """A function that differs in a number alone reuses the object of the same skeleton, with any key or none."""
    get(Build(), **options)
    once = objects(place)
    for factor, key in ((8.0, "heavier"), (-0.25, None), (8.0, "heavier"), (7.0, "model"), (1e-300, "tiny")):
        found = get(Build(factor), key=key, **options)
        expected = kernel.compile(Build(factor), backend="numpy")
        assert found.provenance["digest"] == expected.provenance["digest"]
        assert np.array_equal(values(found), values(expected)), factor
        assert np.array_equal(found(X[0])[0], expected(X[0])[0])
    assert objects(place) == once


def test_a_kernel_found_by_its_skeleton_is_found_by_its_key_next_time(place):
    get(Build())
    get(Build(8.0), key="heavier")
    for again in (Build(8.0), Build(8.0)):
        assert np.array_equal(values(get(again, key="heavier")), values(kernel.compile(Build(8.0), backend="numpy")))
        assert again.calls == 0


@pytest.mark.parametrize("factor", [1.0, -1.0])
def test_zero_and_one_are_structure(place, factor):
    """CasADi omits products with 0 and 1, and the compiler may omit them, so they belong to the skeleton."""
    get(Build())
    once = objects(place)
    assert np.array_equal(values(get(Build(factor), key="plain")), values(kernel.compile(Build(factor), backend="numpy")))
    assert objects(place) > once


def test_changed_numbers_of_a_rollout_compile_nothing(place):
    def run(r):
        return r(np.ones((5, 2)), np.zeros((1, 0)), np.zeros(0), kernel.Span(0.5, 0.25, 6, 2, last=True))

    kernel.compile_rollout(BuildRollout(), backend="c")
    once = objects(place)
    found, expected = (kernel.compile_rollout(BuildRollout(3.0), backend=backend) for backend in ("c", "numpy"))
    for a, b in zip(run(found)[:4], run(expected)[:4], strict=True):
        assert np.array_equal(a, b)
    assert objects(place) == once


def test_kernels_that_share_one_text(place):
    """Each kernel uses its own numbers, whichever is called first."""
    kernels = [get(Build(factor), key=None) for factor in (2.0, 3.0, 5.0)]
    for factor, k in [*zip((2.0, 3.0, 5.0), kernels, strict=True)] * 2:
        assert np.array_equal(values(k)[:, :3], factor * values(kernels[0])[:, :3] / 2)


def test_the_check_detects_a_skeleton_of_another_text(place, monkeypatch):
    get(Build())
    monkeypatch.setattr(remember, "CHECKING", True)
    get(Build(8.0), key=None)
    monkeypatch.setattr("pfaffian.kernel.call.recipe.skeleton", lambda programs: "the same")
    get(Build(), key=None)
    with pytest.raises(BuildError, match="the text of a skeleton"):
        kernel.compile(lambda: ca.Function("g", [x := ca.SX.sym("x", 3)], [ca.cos(x) * 7]), backend="c")


def test_only_another_key_builds_again(place):
    get(Build())
    for options, calls in (({"lanes": 1}, 0), ({"strict": False}, 0), ({"backend": "auto"}, 0), ({"key": "another"}, 1)):
        build = Build()
        get(build, **options)
        assert build.calls == calls, options
    # One alias for each of four keys, and one for each of three ways to compile.
    assert len(list(place.glob("*.alias"))) == 4 + 3 and len(list(place.glob("*.programs"))) == 2
    with pytest.raises(ModelError):  # a rollout does not share keys with functions
        kernel.compile_rollout(Build(), key="model")


def test_a_changed_library_compiles_again(place, monkeypatch):
    get(Build())
    monkeypatch.setattr(keyed, "sources", lambda: "changed")
    build = Build(8.0)
    assert np.array_equal(values(get(build)), values(kernel.compile(Build(8.0), backend="numpy")))
    assert build.calls == 1 and len(list(place.glob("*.alias"))) == 2 + 2


@pytest.mark.parametrize("backend", ["c", "interpreter"])
def test_what_is_stored_belongs_to_the_sources_after_it_was_made(place, monkeypatch, backend):
    """Tracing imports modules, perhaps from files that were changed since the key was looked up."""
    change = lambda name: monkeypatch.setattr(keyed, "sources", lambda: name)  # noqa: E731

    class Importing(Build):
        def __call__(self):
            change("after")
            return super().__call__()

    change("before")
    get(Importing(), backend=backend)
    for sources, calls in (("before", 1), ("after", 0)):
        change(sources)
        build = Build()
        get(build, backend=backend)
        assert build.calls == calls, sources
    change("before")
    assert kernel.noted("note", lambda: change("after") or {"of": "after"}) == {"of": "after"}
    change("before")
    assert kernel.noted("note", lambda: {"of": "before"}) == {"of": "before"}


def test_another_compiler_does_not_share(place, monkeypatch):
    get(Build())
    found = toolchain.find_compiler()
    other = toolchain.Compiler(found.argv, found.kind, found.version, "other")
    monkeypatch.setattr(toolchain, "find_compiler", lambda: other)
    build = Build()
    get(build)
    assert build.calls == 0 and len(list(place.glob("*.alias"))) == 2 + 2


def note_of(place, key="model"):
    """The alias file that leads from the key to an object."""
    plan = recipe(Build(), kernel_source, "c", 8, "strict")
    return place / f"{keyed._name(key, plan)}.alias"


def damages(text):
    entries = json.loads(text)
    yield from ("", "{", "[]", "null", "{}", text[:-20], text.replace('"doubles": ', '"doubles": 9'))
    for name, value in [("doubles", 1), ("shapes", []), ("object", "../x"), ("name", "0" * 64), ("check", 3)]:
        yield json.dumps(entries | {name: value})


def test_a_damaged_alias_is_repaired(place):
    expected = values(get(Build()))
    note = note_of(place)
    whole = note.read_text()
    for text in damages(whole):
        note.write_text(text)
        build = Build()
        assert np.array_equal(values(get(build)), expected)
        assert note.read_text() == whole, text
    note.write_bytes(b"\xff\xfe")
    assert np.array_equal(values(get(Build())), expected)


def test_an_alias_of_another_key_is_ignored(place):
    get(Build())
    get(Build(9.0), key="another")
    note_of(place, "another").write_text(note_of(place).read_text())
    build = Build(9.0)
    assert values(get(build, key="another"))[0, 0] == values(get(Build(9.0), key=None))[0, 0]


def test_damaged_programs_are_traced_again(place):
    expected = values(get(Build(), backend="interpreter"))
    (note,) = place.glob("*.programs")
    get(Build(9.0), key="another", backend="interpreter")
    (another,) = set(place.glob("*.programs")) - {note}
    whole, other = note.read_bytes(), another.read_bytes()
    flipped = whole[:-1] + bytes([whole[-1] ^ 1])
    for damaged in (b"", b"\n", whole[:-1], flipped, whole[65:], b"0" * 64 + whole[64:], other):
        note.write_bytes(damaged)
        build = Build()
        assert np.array_equal(values(get(build, backend="interpreter")), expected)
        assert build.calls == 1 and note.read_bytes() == whole


@pytest.mark.parametrize("damage", ["absent", "empty", "flipped", "no sidecar"])
def test_a_damaged_object_is_repaired(place, damage):
    expected = values(get(Build()))
    (target,), (sidecar,) = place.glob("*.so"), place.glob("*.json")
    whole = target.read_bytes()
    (sidecar if damage == "no sidecar" else target).unlink()
    if damage in ("empty", "flipped"):
        target.write_bytes(b"" if damage == "empty" else whole[:-1] + bytes([whole[-1] ^ 1]))
    build = Build()
    assert np.array_equal(values(get(build)), expected) and target.read_bytes() == whole
    again = Build()
    get(again)
    assert again.calls == 0


SCRIPT = """
import casadi as ca, numpy as np
from pfaffian import kernel
def build():
    x = ca.SX.sym("x", 3)
    return ca.Function("f", [x], [ca.sin(x) * 7])
k = kernel.compile(build, backend="c", key="shared")
assert abs(k(np.ones(3))[0] - 7 * np.sin(1)).max() < 1e-12
"""


def test_processes_at_once(place):
    children = [subprocess.Popen([sys.executable, "-c", SCRIPT]) for _ in range(4)]
    assert [c.wait(60) for c in children] == [0] * 4
    counts = {"so": 3, "json": 3, "alias": 2, "programs": 1}  # two of the objects are the interpreter and the passes
    assert {kind: len(list(place.glob(f"*.{kind}"))) for kind in counts} == counts
    assert not list(place.glob("tmp*"))


def test_numpy_kernels_are_not_stored_by_key(place, monkeypatch):
    for _ in range(2):
        build = Build()
        assert get(build, backend="numpy").provenance["backend"] == "numpy"
        assert build.calls == 1
    monkeypatch.setenv("PFAFFIAN_CC", str(place / "absent"))
    notice_once.cache_clear()
    for _ in range(2):
        build = Build()
        with pytest.raises(BuildError, match="no C compiler"):
            get(build, backend="c")
    with pytest.warns(RuntimeWarning, match="in NumPy"):
        assert get(build, backend="auto").provenance["backend"] == "numpy"
    assert not list(place.glob("*.alias"))


def test_a_key_used_for_two_functions_is_detected(place):
    get(Build(2.0))
    known = get(Build(3.0))
    with pytest.raises(BuildError, match="key"):
        _ = known.program


@pytest.mark.parametrize("key", ["", 3, b"x", ("a",), 1.5])
def test_wrong_keys(place, key):
    with pytest.raises(ModelError, match="key"):
        get(Build(), key=key)
    with pytest.raises(ModelError, match="key"):
        kernel.compile_rollout(BuildRollout(), key=key)


def test_wrong_functions(place):
    for wrong in (3, None, lambda: 3, lambda: None):
        for key in (None, "k"):
            with pytest.raises(ModelError):
                kernel.compile(wrong, key=key)
            with pytest.raises(ModelError):
                kernel.compile_rollout(wrong, key=key)
    with pytest.raises(ModelError):
        kernel.compile_rollout(Build()(), key="k")


def test_any_text_is_a_valid_key(place):
    for key in ("../../x", "a\x00b", "\ud800", "k" * 100000, "'; rm"):
        first, again = Build(), Build()
        get(first, key=key)
        get(again, key=key)
        assert (first.calls, again.calls) == (1, 0)
    assert all(p.parent == place for p in place.rglob("*.alias"))


def test_a_plain_function_may_have_a_key(place):
    f = Build()()
    assert (
        np.array_equal(values(get(f)), values(get(f))) and len(list(place.glob("*.alias"))) == 2
    )  # the aliases of the key and of the skeleton
    assert np.array_equal(values(kernel.compile(Build(), backend="c")), values(get(f)))


def test_a_store_that_cannot_be_written_builds_again(place, monkeypatch):
    def full(path, text):
        raise OSError("disk full")

    get(Build(), key="other")
    monkeypatch.setattr("pfaffian.kernel.build.private_files.write", full)
    for _ in range(2):
        build = Build()
        assert get(build).provenance["backend"] == "c" and build.calls == 1


@pytest.mark.parametrize("backend", ["c", "interpreter"])
def test_what_was_told_while_equations_were_traced_is_told_where_they_are_found_in_the_store(place, backend):
    class Telling(Build):
        def __call__(self):
            notice("a close decision", ModelWarning)
            return super().__call__()

    build = Telling()
    for _ in range(3):
        with pytest.warns(ModelWarning, match="a close decision"):
            get(build, backend=backend)
    assert build.calls == 1
    made = []
    for _ in range(2):
        with pytest.warns(RunWarning, match="close, too"):
            kernel.noted("size", lambda: made.append(notice("close, too", RunWarning)) or {"n": 3})
    assert len(made) == 1
