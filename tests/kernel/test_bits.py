"""The same bits from the interpreter, scalar C and 8 lanes, for any batch, position, thread count and compiler."""

import importlib.util
import shutil

import numpy as np
import pytest

from pfaffian.kernel.kernel import from_program

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
    for lanes in (8, 1):
        kernel = from_program(program, backend="c", lanes=lanes)
        for batch in (1, 2, 7, 8, 9, 63, 64, 65):
            inputs = awkward(batch, 3), awkward(batch, 2)
            wanted = interpreted(*inputs)
            for threads in (1, 2):
                assert equal(kernel(*inputs, threads=threads), wanted), (lanes, batch, threads)


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


def test_contraction_is_a_choice_and_stays_near(random_program):
    program = random_program(7, 30)
    kernel = from_program(program, backend="c", strict=False)
    assert kernel.provenance["strict"] is False
    assert "-ffp-contract=fast" in kernel.provenance["flags"]
