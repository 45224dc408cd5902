"""Arrays for compiled code: addresses and strides, workspaces, blocks of runs for threads."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np

from pfaffian.errors import ModelError, RunWarning, notice

FLOAT = np.dtype(np.float64)


def as_float(value: Any, name: str) -> np.ndarray:
    """A real array or sequence as a float64 array; the same object, whatever its strides, if it is one already."""
    if type(value) is np.ndarray and value.dtype is FLOAT:
        return value
    given = on_processor(value, name)
    try:
        array = np.asarray(given)
        if array.dtype.kind not in "fiub":
            raise TypeError(f"its type is {array.dtype}")
    except (TypeError, ValueError) as error:
        raise ModelError(f"{name}: not an array of real numbers: {error}") from error
    return in_double(array, name)


def on_processor(value: Any, name: str) -> Any:
    """An array of another library that follows the array API standard, as NumPy sees it where it lies, by DLPack; anything
    else unchanged. Raises ModelError: NumPy cannot see it, because it is on a device or part of a computation of gradients.
    """
    if isinstance(value, (np.ndarray, np.generic)) or not hasattr(value, "__dlpack__"):
        return value
    try:
        return np.from_dlpack(value)
    except (AttributeError, BufferError, RuntimeError, TypeError, ValueError) as error:
        kind = f"{type(value).__module__.partition('.')[0]}.{type(value).__name__}"
        raise ModelError(
            f"{name}: NumPy cannot read this {kind}: give a copy in the processor's memory, without gradients ({error})"
        ) from error


def in_double(array: np.ndarray, name: str) -> np.ndarray:
    """The array in double precision, not copied if it is already. Warns RunWarning: it had fewer digits."""
    if array.dtype.kind == "f" and array.dtype.itemsize < FLOAT.itemsize:
        digits = np.finfo(array.dtype).precision
        notice(f"{name} is in {array.dtype}, which holds {digits} digits; it is computed with in double precision", RunWarning)
    return array.astype(np.float64, copy=False)


def addressable(array: np.ndarray) -> np.ndarray:
    """The array, or a copy if C cannot address it by whole doubles."""
    if array.flags.aligned and not any(s & 7 for s in array.strides):
        return array
    return np.array(array)


def address(array: Any) -> int:
    """Where an array of NumPy begins, or one of CuPy in the memory of a device."""
    return array.ctypes.data if isinstance(array, np.ndarray) else array.data.ptr


def port(array: Any, run_axis: int | None) -> tuple[int, int, int]:
    """(address, doubles between runs, doubles between elements) of an array with elements along its last axis."""
    run = 0 if run_axis is None or array.shape[run_axis] == 1 else array.strides[run_axis] >> 3
    return address(array), run, array.strides[-1] >> 3


class Workspaces(threading.local):
    """One aligned workspace for each thread, enlarged as needed."""

    def __init__(self) -> None:
        self.buffer = np.empty(0)
        self.address = 0
        self.size = 0

    def get(self, doubles: int) -> int:
        """Address of so many doubles on a 64-byte boundary, for this thread until its next call."""
        if self.size < doubles:
            self.buffer = np.zeros(doubles + 8)
            self.size = doubles
            self.address = (self.buffer.ctypes.data + 63) & ~63
        return self.address


WORKSPACES = Workspaces()

_pool: tuple[int, int, ThreadPoolExecutor] | None = None
_pool_lock = threading.Lock()


def _executor(threads: int) -> ThreadPoolExecutor:
    """A pool of at least so many threads; a new one in a forked child."""
    global _pool
    with _pool_lock:
        if _pool is None or _pool[0] != os.getpid() or _pool[1] < threads:
            _pool = os.getpid(), threads, ThreadPoolExecutor(threads, thread_name_prefix="pfaffian")
        return _pool[2]


def threads_for(runs: int, share: int) -> int:
    """Number of threads for so many runs: one for each core, if there are `share` runs for each."""
    return min(os.cpu_count() or 1, 1 + runs // share)


def in_blocks(work: Callable[[int, int], None], batch: int, lanes: int, threads: int) -> None:
    """Call work(begin, end) over [0, batch), in ranges of whole blocks of lanes, one range for each thread."""
    blocks = -(-batch // lanes)
    count = min(threads, blocks)
    if count <= 1:
        work(0, batch)
        return
    edges = [blocks * i // count * lanes for i in range(count)] + [batch]
    futures = [_executor(count).submit(work, a, b) for a, b in pairwise(edges[1:])]
    try:
        work(edges[0], edges[1])
    finally:
        for future in futures:
            future.result()
