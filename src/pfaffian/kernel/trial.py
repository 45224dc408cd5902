"""Trial of a new object before anyone else may load it: in a child process, against the interpreter's numbers."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pfaffian.errors import BuildError
from pfaffian.kernel import children

RUNS = 8  # of one trial; TRIAL_RUNS of ports.h
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


@dataclass(frozen=True)
class Trial:
    """inputs: flat doubles. wanted(): flat doubles of the interpreter. workspace: doubles."""

    inputs: np.ndarray
    wanted: Callable[[], np.ndarray]
    workspace: int
    strict: bool


def check(trial: Trial, library: Path, source: Path) -> None:
    """BuildError unless the object computes what the interpreter does, to the bit when strict."""
    wanted = trial.wanted()
    argv = [sys.executable, "-I", "-S", "-c", _CHILD, str(library), str(wanted.size), str(trial.workspace)]
    try:
        (said,) = children.run([argv], TIMEOUT, feed=trial.inputs.tobytes(), most=wanted.nbytes)
    except BuildError as error:
        raise BuildError(f"the compiled object does not run; source kept at {source}: {error}") from error
    result = np.frombuffer(said) if len(said) == wanted.nbytes else np.empty(0)
    if result.shape != wanted.shape or not same(result, wanted, trial.strict):
        raise BuildError(f"the compiler miscompiles: not the interpreter's numbers; source kept at {source}")


def same(a: np.ndarray, b: np.ndarray, strict: bool) -> bool:
    """Equal to the bit (a nan is a nan), or when not strict within a tolerance of the largest number."""
    nan = np.isnan(a) & np.isnan(b)
    if strict:
        return bool(np.all((a.view(np.int64) == b.view(np.int64)) | nan))
    scale = np.max(np.abs(b[np.isfinite(b)]), initial=1.0)
    return bool(np.mean(np.isclose(a, b, rtol=1e-6, atol=1e-6 * scale, equal_nan=True)) > 0.5)


def random_inputs(count: int) -> np.ndarray:
    """(count, RUNS) pseudo-random numbers, the same every time."""
    return np.random.default_rng(7).uniform(-2.0, 2.0, (count, RUNS))
