"""Memory and threads for compiled code: addresses and strides of arrays, workspaces, blocks of runs for each thread."""

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
    """A real array or sequence as a float64 array; if it is a float64 array already, the same object with any strides."""
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
    """An array of another library that follows the array API standard, as a NumPy array in the same memory, by DLPack; any
    other value unchanged. Raises ModelError: NumPy cannot read it, because it is on a device or part of a computation of
    gradients.
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
    """The array in double precision, not copied if it is already. Warns RunWarning: its type has fewer digits."""
    if array.dtype.kind == "f" and array.dtype.itemsize < FLOAT.itemsize:
        digits = np.finfo(array.dtype).precision
        notice(f"{name} is in {array.dtype}, which has {digits} digits; the computation is in double precision", RunWarning)
    return array.astype(np.float64, copy=False)


def addressable(array: np.ndarray) -> np.ndarray:
    """The array, or a copy if it is not aligned or its strides are not multiples of a double."""
    if array.flags.aligned and not any(s & 7 for s in array.strides):
        return array
    return np.array(array)


def address(array: Any) -> int:
    """Address of the first entry of a NumPy array, or of a CuPy array in the memory of a device."""
    return array.__array_interface__["data"][0] if isinstance(array, np.ndarray) else array.data.ptr


def port(array: Any, run_axis: int | None) -> tuple[int, int, int]:
    """(address, doubles between runs, doubles between elements) of an array whose elements lie along its last axis.

    run_axis: the axis of the runs; None if all runs share the elements.
    """
    run = 0 if run_axis is None or array.shape[run_axis] == 1 else array.strides[run_axis] >> 3
    return address(array), run, array.strides[-1] >> 3


class Workspaces(threading.local):
    """One aligned workspace for each thread, which grows as needed."""

    def __init__(self) -> None:
        self.buffer = np.empty(0)
        self.address = 0
        self.size = 0

    def get(self, doubles: int) -> int:
        """Address of a workspace of this many doubles, on a 64-byte boundary; valid in this thread until its next call."""
        if self.size < doubles:
            self.buffer = np.zeros(doubles + 8)
            self.size = doubles
            self.address = (self.buffer.ctypes.data + 63) & ~63
        return self.address


WORKSPACES = Workspaces()

_pool: tuple[int, int, ThreadPoolExecutor] | None = None
_pool_lock = threading.Lock()


def _executor(threads: int) -> ThreadPoolExecutor:
    """A pool of at least this many threads; in a forked child process a new one."""
    global _pool
    with _pool_lock:
        if _pool is None or _pool[0] != os.getpid() or _pool[1] < threads:
            _pool = os.getpid(), threads, ThreadPoolExecutor(threads, thread_name_prefix="pfaffian")
        return _pool[2]


def threads_for(runs: int, share: int) -> int:
    """Number of threads for this many runs: 1 + runs // share, and at most one for each core."""
    return min(os.cpu_count() or 1, 1 + runs // share)


def in_blocks(work: Callable[[int, int], None], batch: int, lanes: int, threads: int) -> None:
    """Call work(begin, end) for ranges that cover [0, batch), one for each thread, each of whole blocks of lanes."""
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
