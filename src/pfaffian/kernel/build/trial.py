"""The trial of a new object before any process may load it: a child process compares it with the interpreter's numbers."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np

from pfaffian.errors import BuildError, MiscompiledError
from pfaffian.kernel.build import processes

RUNS = 32  # runs of one round; TRIAL_RUNS of ports.h
DRAWN = 8 * RUNS  # runs with random inputs, before those on both sides of decisions
TIMEOUT = 60.0

# The child imports only ctypes: a faulty object can crash or hang it, not this process. Workspace on a 64-byte boundary.
_CHILD = """
import ctypes, sys
path = sys.argv[1]
rounds, n_in, n_out, n_work, n_numbers = map(int, sys.argv[2:])
data = sys.stdin.buffer.read()
numbers = (ctypes.c_double * (n_numbers + 1)).from_buffer_copy(data[: 8 * n_numbers] + bytes(8))
given = (ctypes.c_double * (len(data) // 8 - n_numbers + 1)).from_buffer_copy(data[8 * n_numbers :] + bytes(8))
result = (ctypes.c_double * (rounds * n_out + 1))()
work = (ctypes.c_double * (n_work + 8))()
place = (ctypes.addressof(work) + 63) & ~63
trial = ctypes.CDLL(path).pfaffian_trial
trial.restype, trial.argtypes = None, [ctypes.c_void_p] * 4
for i in range(rounds):
    trial(ctypes.addressof(numbers), ctypes.addressof(given) + 8 * i * n_in, ctypes.addressof(result) + 8 * i * n_out, place)
sys.stdout.buffer.write(bytes(result)[: 8 * rounds * n_out])
"""


class Answers(NamedTuple):
    """Rounds of RUNS runs each.   inputs: (rounds, numbers) in the order in which pfaffian_trial reads them.
    outputs: (rounds, numbers) that it must write."""

    inputs: np.ndarray
    outputs: np.ndarray


@dataclass(frozen=True)
class Trial:
    """How to test an object.   answers: returns inputs and expected outputs; called only if something was compiled.
    workspace: its size in doubles.   strict: whether all bits must agree.   numbers: the table of constants of the text."""

    answers: Callable[[], Answers]
    workspace: int
    strict: bool
    numbers: np.ndarray = field(default_factory=lambda: np.empty(0))


def check(trial: Trial, library: Path, source: Path) -> str:
    """Test an object; return the numbers of runs and outputs compared, as text.

    Raises BuildError: the object does not run. MiscompiledError: it does not compute the interpreter's numbers, bit for bit if
    strict.
    """
    inputs, expected = trial.answers()
    sizes = [*inputs.shape, expected.shape[1], trial.workspace, len(trial.numbers)]
    argv = [sys.executable, "-I", "-S", "-c", _CHILD, str(library), *map(str, sizes)]
    try:
        (output,) = processes.run([argv], TIMEOUT, feed=trial.numbers.tobytes() + inputs.tobytes(), most=expected.nbytes)
    except BuildError as error:
        raise BuildError(f"the compiled object does not run; source kept at {source}: {error}") from error
    result = np.frombuffer(output) if len(output) == expected.nbytes else np.empty(0)
    if result.size != expected.size or not same(result, expected.ravel(), trial.strict):
        raise MiscompiledError(f"the compiler miscompiles: other numbers than the interpreter's; source kept at {source}")
    return f"{RUNS * len(inputs)} runs, {int(np.isfinite(expected).sum())} numbers"


def same(a: np.ndarray, b: np.ndarray, strict: bool) -> bool:
    """Whether a and b are equal bit for bit, where any nan equals any other.

    If not strict: whether at least half of the finite numbers of b agree within 1e-6, relative or of the largest number.
    """
    nan = np.isnan(a) & np.isnan(b)
    if strict:
        return bool(np.all((a.view(np.int64) == b.view(np.int64)) | nan))
    finite = np.isfinite(b)
    scale = np.max(np.abs(b[finite]), initial=1.0)
    return bool(np.sum(np.isclose(a[finite], b[finite], rtol=1e-6, atol=1e-6 * scale)) >= 0.5 * np.sum(finite))


TINY = 1e-7

RANGES = ((-2.0, 2.0), (0.5, 1.5), (-0.1, 0.1), (0.1, 3.0))
"""Ranges from which inputs are drawn. Masses must be positive and angles may be small, but which input is which is unknown."""


def random_inputs(sizes: Sequence[int], runs: int = RUNS) -> np.ndarray:
    """Random numbers (sum of sizes, runs) for inputs of these sizes, the same in every process.

    In each run each input is drawn from one of the RANGES. After the first RUNS runs, some inputs consist of zeros and ones,
    like switches, some contain zeros, and some are tiny or large.
    """
    random = np.random.default_rng(7)
    rows = [np.empty((0, runs))]
    for n in sizes:
        low, high = np.array(RANGES)[random.integers(len(RANGES), size=runs)].T
        x = low + random.random((n, runs)) * (high - low)
        on = np.where(random.random((n, runs)) < random.random(runs), 1.0, 0.0)
        how = np.where(np.arange(runs) < RUNS, 0, random.integers(5, size=runs))
        rows.append(np.choose(how, [x, on, x * on, TINY * x, 3 * x]))
    return np.vstack(rows)


def in_rounds(rows: np.ndarray) -> np.ndarray:
    """Rearrange numbers (n, runs) as (rounds, n RUNS); the number of runs must be a multiple of RUNS."""
    rounds = rows.shape[1] // RUNS
    return rows.reshape(len(rows), rounds, RUNS).swapaxes(0, 1).reshape(rounds, len(rows) * RUNS)


def one_after_another(parts: Sequence[np.ndarray]) -> np.ndarray:
    """Rounds of several functions that are called in turn: as many as the function with most rounds has; the others repeat."""
    rounds = np.arange(max(map(len, parts)))
    return np.hstack([part[rounds % len(part)] for part in parts])


def split(rows: np.ndarray, sizes: Sequence[int]) -> list[np.ndarray]:
    """Split rows (sum of sizes, runs) into inputs (runs, size), one for each size."""
    return [part.T for part in np.split(rows, np.cumsum(sizes)[:-1])]
