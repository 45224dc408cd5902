"""Precompiled objects in a binary wheel: found by their source text and flags, tested before use, otherwise ignored."""

import ctypes

import numpy as np
import pytest

from pfaffian.errors import BuildError
from pfaffian.kernel.build import library, toolchain
from pfaffian.kernel.build import object_store as store
from pfaffian.kernel.build import prebuilt as carried
from pfaffian.kernel.build.processor import Processor
from pfaffian.kernel.build.trial import Answers, Trial

TEXT = "void pfaffian_trial(double *numbers, double *in, double *out, double *work) { out[0] = 2 * in[0]; }\n"
TWICE = Trial(lambda: Answers(np.array([[3.0]]), np.array([[6.0]])), 0, True)
THRICE = Trial(lambda: Answers(np.array([[3.0]]), np.array([[9.0]])), 0, True)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(carried, "FOLDER", tmp_path / "carried")
    monkeypatch.setenv("PFAFFIAN_CACHE", str(tmp_path / "cache"))
    carried.FOLDER.mkdir()
    return carried.FOLDER


@pytest.fixture
def compiler():
    found = toolchain.find_compiler()
    assert found is not None
    return found


def test_an_object_is_found_by_its_text_and_flags(folder):
    level = carried.levels()[-1]
    (folder / carried.file_name(TEXT, "strict", level)).write_bytes(b"x")
    assert carried.carried(TEXT, "strict") is not None
    assert carried.carried(TEXT + " ", "strict") is None
    assert carried.carried(TEXT, "interpreter") is None


@pytest.mark.parametrize(
    ("architecture", "features", "expected"),
    [
        ("x86_64", {"sse2"}, ("x86-64",)),
        ("x86_64", {"avx2", "abm", "bmi1", "bmi2", "f16c", "fma", "movbe"}, ("x86-64-v3", "x86-64")),
        ("x86_64", {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}, ("x86-64",)),
        ("riscv64", {"v"}, ()),
    ],
)
def test_a_level_needs_all_its_features(architecture, features, expected, monkeypatch):
    monkeypatch.setattr(carried, "processor", lambda: Processor(architecture, "", tuple(features)))
    assert carried.levels() == expected


def test_a_carried_object_runs_without_a_compiler_and_enters_the_store(folder, compiler, tmp_path):
    source = tmp_path / "kernel.c"
    source.write_text(TEXT)
    toolchain.compile_source(compiler, source, folder / carried.file_name(TEXT, "strict", carried.levels()[-1]), "strict")
    found = library.ready(TEXT, "strict", TWICE, None)
    out = ctypes.c_double()
    found.pfaffian_trial(None, ctypes.byref(ctypes.c_double(5.0)), ctypes.byref(out), None)
    assert out.value == 10.0
    assert len(list(store.directory().glob("*.so"))) == 1
    library.ready(TEXT, "strict", Trial(lambda: pytest.fail("tried again"), 0, True), None)


def test_an_object_with_wrong_results_is_refused(folder, compiler, tmp_path):
    source = tmp_path / "kernel.c"
    source.write_text(TEXT)
    toolchain.compile_source(compiler, source, folder / carried.file_name(TEXT, "strict", carried.levels()[-1]), "strict")
    with pytest.raises(BuildError, match="miscompiles"):
        library.ready(TEXT, "strict", THRICE, None)


def test_an_object_that_does_not_load_is_compiled_instead(folder, compiler):
    (folder / carried.file_name(TEXT, "strict", carried.levels()[-1])).write_bytes(b"no object")
    with pytest.raises(BuildError, match="does not run"):
        library.ready(TEXT, "strict", TWICE, None)
    assert library.ready(TEXT, "strict", TWICE, compiler).pfaffian_trial


def test_without_object_and_compiler_the_error_names_the_way_out(folder):
    with pytest.raises(BuildError, match="no C compiler found: install gcc"):
        library.ready(TEXT, "strict", TWICE, None)
