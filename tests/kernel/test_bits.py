"""The same bits from the interpreter, scalar C and 8 lanes, for any batch, position, thread count and compiler."""

import ctypes
import importlib.util
import itertools
import platform
import shutil

import numpy as np
import pytest

from pfaffian.kernel.build import toolchain
from pfaffian.kernel.functions.elementary import FUNCTIONS
from pfaffian.kernel.program.program import Program, Step
from tests.programs import from_program

COMPILERS = [
    pytest.param("gcc", marks=pytest.mark.skipif(not shutil.which("gcc"), reason="no gcc")),
    pytest.param("zig", marks=pytest.mark.skipif(not importlib.util.find_spec("ziglang"), reason="no ziglang")),
]


def equal(a, b):
    return all(np.array_equal(x, y, equal_nan=True) and _signs(x, y) for x, y in zip(a, b, strict=True))


def _signs(x, y):
    return np.array_equal(np.signbit(x) & ~np.isnan(x), np.signbit(y) & ~np.isnan(y))


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("seed", range(3))
def test_random_programs(compiler, seed, random_program, awkward, monkeypatch):
    monkeypatch.setenv("PFAFFIAN_CC", compiler)
    inner = random_program(seed + 100, 12)
    program = random_program(seed, 80, (inner,))
    interpreted = from_program(program, backend="numpy")
    for lanes, backend in itertools.product((8, 4, 1), ("c", "interpreter")):
        kernel = from_program(program, backend=backend, lanes=lanes)
        assert kernel.provenance["backend"] == backend
        for batch in (1, 2, 7, 8, 9, 63, 64, 65):
            inputs = awkward(batch, 3), awkward(batch, 2)
            expected = interpreted(*inputs)
            for threads in (1, 2):
                assert equal(kernel(*inputs, threads=threads), expected), (lanes, backend, batch, threads)


@pytest.mark.parametrize("compiler", COMPILERS)
def test_an_object_does_not_depend_on_its_source_folder(compiler, monkeypatch, tmp_path):
    """Otherwise, rebuilding a lost object would give a different file, and the store would contain both."""
    monkeypatch.setenv("PFAFFIAN_CC", compiler)
    made = []
    for folder in (tmp_path / "here", tmp_path / "there"):
        folder.mkdir()
        (folder / "a.c").write_text("double twice(double x) { return x + x; }")
        toolchain.compile_source(toolchain.needed_compiler(), folder / "a.c", folder / "a.so", "strict")
        made.append((folder / "a.so").read_bytes())
    assert made[0] == made[1]


def test_every_operation_on_many_runs(random_program, awkward):
    program = random_program(5, 300)
    inputs = awkward(4097, 3), awkward(4097, 2)
    kernel = from_program(program, backend="c")
    assert equal(kernel(*inputs, threads=2), from_program(program, backend="numpy")(*inputs))


def test_position_in_the_batch_does_not_matter(random_program, awkward):
    kernel = from_program(random_program(6), backend="c")
    a, b = awkward(41, 3), awkward(41, 2)
    whole = kernel(a, b)
    for start in range(0, 41, 5):
        assert equal(kernel(a[start:], b[start:]), [w[start:] for w in whole])
    assert equal(kernel(a[7], b[7]), [w[7] for w in whole])


def test_contraction_is_optional_and_functions_stay_accurate():
    steps, known = [], 2
    for name, function in FUNCTIONS.items():
        steps.append(Step(name, (0, 1)[: function.arity], known))
        known += function.results
    program = Program((2,), (), tuple(steps), (tuple(range(2, known)),)).check()
    kernel = from_program(program, backend="c", strict=False)
    assert kernel.provenance["strict"] is False and "-ffp-contract=fast" in kernel.provenance["flags"]
    random = np.random.default_rng(0)
    x = np.concatenate(
        [
            random.uniform(-1, 1, (2000, 2)),
            random.choice([-1, 1], (2000, 2)) * 10.0 ** random.uniform(-300, 300, (2000, 2)),
        ]
    )
    (fast,), (exact,) = kernel(x), from_program(program, backend="numpy")(x)
    number = np.isfinite(exact)
    assert np.array_equal(number, np.isfinite(fast))
    assert (np.abs(fast[number] - exact[number]) <= 2 * np.spacing(np.abs(exact[number]))).all()


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the number of the rounding mode")
def test_the_rounding_mode_of_the_caller_does_not_matter(random_program, awkward):
    upward, nearest, libm = 0x800, 0, ctypes.CDLL(None)
    kernel = from_program(random_program(8), backend="c")
    inputs = awkward(16, 3), awkward(16, 2)
    expected = kernel(*inputs)
    try:
        libm.fesetround(upward)
        got = kernel(*inputs)
        assert libm.fegetround() == upward
    finally:
        libm.fesetround(nearest)
    assert equal(got, expected)
