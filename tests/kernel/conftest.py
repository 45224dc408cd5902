"""A private kernel store for the test session, and random Programs over all operations."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pytest

from pfaffian import kernel
from pfaffian.kernel.build.compiled_passes import passes
from pfaffian.kernel.build.interpreter import interpreter
from pfaffian.kernel.program.ops import OPS
from pfaffian.kernel.program.program import Program, Step


@pytest.fixture(scope="session", autouse=True)
def private_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    before = os.environ.get("PFAFFIAN_CACHE")
    os.environ["PFAFFIAN_CACHE"] = str(tmp_path_factory.mktemp("store"))
    for lanes in (8, 1):
        interpreter(lanes)
    passes()  # built here, so that a test's private store contains only what the test puts there
    yield
    if before is None:
        del os.environ["PFAFFIAN_CACHE"]
    else:
        os.environ["PFAFFIAN_CACHE"] = before


def draw(seed: int, n: int = 80, callees: tuple[Program, ...] = ()) -> Program:
    """A Program of n random steps on inputs of 3 and 2 numbers. Every value is an output, so that every error is visible."""
    random = np.random.default_rng(seed)
    constants = tuple(random.choice([0.0, -0.0, 1.0, -2.5, 1e-3, 1e300, 5e-324, 0.1], 3, replace=False))
    known, steps = 5 + len(constants), []
    for _ in range(n):
        op = str(random.choice([*OPS, *["call"] * (8 * len(callees))]))
        callee = int(random.integers(len(callees))) if op == "call" else -1
        arity = callees[callee].n_in if op == "call" else OPS[op].arity
        steps.append(Step(op, tuple(map(int, random.integers(known, size=arity))), known, callee))
        known += callees[callee].n_out if op == "call" else OPS[op].results
    return Program((3, 2), constants, tuple(steps), (tuple(range(known)), (0, known - 1)), callees).check()


@pytest.fixture(scope="session")
def random_program() -> Callable[..., Program]:
    return draw


SPECIAL = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    np.inf,
    -np.inf,
    np.nan,
    5e-324,
    -1e-310,
    1e300,
    -1e22,
    0.5,
    2.0**53 + 2,
    710.0,
    -745.5,
]


@pytest.fixture(scope="session")
def awkward() -> Callable[[int, int], np.ndarray]:
    """A function that draws (batch, n) inputs: special values, numbers of every magnitude, and normal samples."""

    def make(batch: int, n: int) -> np.ndarray:
        random = np.random.default_rng(batch)
        plain = random.normal(size=(batch, n))
        wide = random.choice([-1.0, 1.0], (batch, n)) * 10.0 ** random.uniform(-320, 308, (batch, n))
        kind = random.integers(3, size=(batch, n))
        return np.choose(kind, [plain, wide, random.choice(SPECIAL, (batch, n))])

    return make


def on_every_backend(functions: Callable[[], tuple]) -> list[kernel.Rollout]:
    """Rollouts of these functions: compiled for eight lanes and for one, and on NumPy."""
    settings = ({"backend": "c"}, {"backend": "c", "lanes": 1}, {"backend": "numpy"})
    return [kernel.compile_rollout(*functions(), **s) for s in settings]


def same(a: Sequence, b: Sequence) -> bool:
    """Whether the arrays of a and b are equal; NaN equals NaN, and zeros of both signs are equal."""
    return all(np.array_equal(x, y, equal_nan=x.dtype == float) for x, y in zip(a, b, strict=True))
