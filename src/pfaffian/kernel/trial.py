"""Trial of a new object before anyone else may load it: in a child process, against the interpreter's numbers."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from pfaffian.errors import BuildError
from pfaffian.kernel import children
from pfaffian.kernel.interpret import evaluate
from pfaffian.kernel.program import Program

RUNS = 32  # of one trial; TRIAL_RUNS of ports.h
DRAWS = 3  # of inputs, where some output is no number in any run
TIMEOUT = 60.0

# The child knows only ctypes: a wild object can crash or hang it, not us. Workspace on a 64-byte boundary.
_CHILD = """
import ctypes, sys
path, n_out, n_work = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
data = sys.stdin.buffer.read()
given = (ctypes.c_double * (len(data) // 8 + 1)).from_buffer_copy(data + bytes(8))
result = (ctypes.c_double * (n_out + 1))()
work = (ctypes.c_double * (n_work + 8))()
place = (ctypes.addressof(work) + 63) & ~63
trial = ctypes.CDLL(path).pfaffian_trial
trial.restype, trial.argtypes = None, [ctypes.c_void_p] * 3
trial(ctypes.addressof(given), ctypes.addressof(result), place)
sys.stdout.buffer.write(bytes(result)[: 8 * n_out])
"""


class Answers(NamedTuple):
    """inputs: flat doubles, in the order of the C function that takes them.   outputs: the interpreter's."""

    inputs: np.ndarray
    outputs: np.ndarray


@dataclass(frozen=True)
class Trial:
    """answers(): asked for only when something was compiled.   workspace: doubles."""

    answers: Callable[[], Answers]
    workspace: int
    strict: bool


def check(trial: Trial, library: Path, source: Path) -> str:
    """What was tried. BuildError unless the object computes what the interpreter does, to the bit when strict."""
    inputs, wanted = trial.answers()
    argv = [sys.executable, "-I", "-S", "-c", _CHILD, str(library), str(wanted.size), str(trial.workspace)]
    try:
        (said,) = children.run([argv], TIMEOUT, feed=inputs.tobytes(), most=wanted.nbytes)
    except BuildError as error:
        raise BuildError(f"the compiled object does not run; source kept at {source}: {error}") from error
    result = np.frombuffer(said) if len(said) == wanted.nbytes else np.empty(0)
    if result.shape != wanted.shape or not same(result, wanted, trial.strict):
        raise BuildError(f"the compiler miscompiles: not the interpreter's numbers; source kept at {source}")
    return f"{RUNS} runs, {int(np.isfinite(wanted).sum())} numbers"


def same(a: np.ndarray, b: np.ndarray, strict: bool) -> bool:
    """Equal to the bit (a nan is a nan), or when not strict within a tolerance of the largest number."""
    nan = np.isnan(a) & np.isnan(b)
    if strict:
        return bool(np.all((a.view(np.int64) == b.view(np.int64)) | nan))
    finite = np.isfinite(b)
    scale = np.max(np.abs(b[finite]), initial=1.0)
    return bool(np.sum(np.isclose(a[finite], b[finite], rtol=1e-6, atol=1e-6 * scale)) >= 0.5 * np.sum(finite))


RANGES = ((-2.0, 2.0), (0.5, 1.5), (-0.1, 0.1), (0.1, 3.0))
"""What an input of a run is drawn from: masses must be positive, angles small or any, and nobody knows which is which."""


def random_inputs(sizes: Sequence[int], draw: int = 0) -> np.ndarray:
    """(sum of sizes, RUNS) numbers for inputs of these sizes, the same in every process; in each run each input has a range."""
    random = np.random.default_rng([7, draw])
    rows = [np.empty((0, RUNS))]
    for n in sizes:
        low, high = np.array(RANGES)[random.integers(len(RANGES), size=RUNS)].T
        rows.append(low + random.random((n, RUNS)) * (high - low))
    return np.vstack(rows)


def answers(program: Program) -> Answers:
    """Inputs of a Program, and what it makes of them: drawn anew while some output is no number in any run."""
    found: list[Answers] = []
    for draw in range(DRAWS):
        rows = random_inputs(program.inputs, draw)
        outputs = evaluate(program, split(rows, program.inputs) if program.inputs else [])
        found.append(Answers(rows.ravel(), flat(outputs)))
        if not _blind(found[-1]):
            break
    return min(found, key=_blind)


def _blind(found: Answers) -> int:
    """Outputs that are no number in any run, about which a trial says nothing."""
    return int(np.sum(~np.isfinite(found.outputs.reshape(-1, RUNS)).any(axis=1)))


def split(rows: np.ndarray, sizes: Sequence[int]) -> list[np.ndarray]:
    """(RUNS, size) for each size from rows (sum of sizes, RUNS)."""
    return [part.T for part in np.split(rows, np.cumsum(sizes)[:-1])]


def flat(outputs: Sequence[np.ndarray]) -> np.ndarray:
    """Outputs (RUNS, m) or (m,) as a trial writes them."""
    columns = [np.broadcast_to(np.atleast_2d(output), (RUNS, output.shape[-1])).T.ravel() for output in outputs]
    return np.concatenate([*columns, np.empty(0)])
