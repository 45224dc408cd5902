"""Tiers: the interpreter in C runs Programs at once; compiled code takes over between two calls, with the same bits.

The compiler starts in the background when the interpreter has worked about a third as long as compiling takes. So, whatever
calls follow, the total time is at most a small multiple of the shortest possible. Work is counted in operations, not timed.
"""

from __future__ import annotations

import atexit
import ctypes
import threading
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from pfaffian.errors import BuildError
from pfaffian.kernel.build import processes
from pfaffian.kernel.build.interpreter import Words

WORTH = 550_000
"""Operations of the interpreter, per step of the C text, after which the compiler starts: a third of what compiling takes."""


@dataclass(frozen=True)
class Tier:
    """One way to run Programs.   name: "c" or "interpreter".   call: the C function.   doubles: size of its workspace.
    meta: how it was compiled.   data: constants or encoded Programs, kept alive here because C has only their address."""

    name: str
    call: Callable[..., None]
    doubles: int
    meta: dict[str, Any] = field(default_factory=dict)
    data: Words | np.ndarray | None = None


def compiled(library: ctypes.CDLL, function: str, doubles: int, meta: dict[str, Any], numbers: np.ndarray) -> Tier:
    """The tier of a compiled object, with the table of its constants."""
    call = getattr(library, function)
    call.argtypes, call.restype = [ctypes.c_void_p, *ARGUMENTS[function]], None
    return Tier("c", partial(call, numbers.ctypes.data), doubles, meta, numbers)


def interpreted(library: ctypes.CDLL, function: str, doubles: int, words: Words) -> Tier:
    """The tier of the interpreter, with encoded Programs."""
    call = getattr(library, INTERPRETED[function])
    return Tier("interpreter", partial(call, words.address), doubles, {}, words)


ARGUMENTS: dict[str, list[Any]] = {
    "pfaffian_evaluate": [ctypes.c_void_p] * 2 + [ctypes.c_int64] * 3 + [ctypes.c_void_p],
    "pfaffian_rollout": [ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p],
}
PATIENCE = 5.0
"""Time to wait for a thread at the end of the process [s]."""

INTERPRETED = {"pfaffian_evaluate": "pfaffian_interpret", "pfaffian_rollout": "pfaffian_interpret_rollout"}


class Tiers:
    """The tier in use, and perhaps a faster one later.

    now: the tier of the next call.   better: compiles the faster tier; None: there is none.   worth: number of operations
    after which it is compiled.
    """

    def __init__(self, first: Tier, better: Callable[[], Tier] | None = None, worth: float = 0.0) -> None:
        self.now = first
        self._better, self._left = better, worth

    def take(self, work: float) -> Tier:
        """The tier for a call of `work` operations. When their sum is large enough, the compiler starts in the background."""
        if self._better is not None:
            self._left -= work
            if self._left < 0:
                better, self._better = self._better, None
                _BACKGROUND.start(partial(self._change_over, better))
        return self.now

    def _change_over(self, better: Callable[[], Tier]) -> None:
        """Compile the faster tier and use it from the next call on; warn if that fails."""
        try:
            self.now = better()
        except processes.Ended:
            return
        except (BuildError, OSError) as error:
            text = f"running on the interpreter, some three times slower than compiled code: {error}"
            warnings.warn(text, RuntimeWarning, stacklevel=2)


class _Background:
    """Background threads, of which one at a time compiles. At the end of the process their compilers are killed."""

    def __init__(self) -> None:
        self.turn, self.ending = threading.Lock(), False
        self.threads: list[threading.Thread] = []

    def start(self, work: Callable[[], None]) -> None:
        """Run `work` in a new thread, after the work of earlier ones."""
        thread = threading.Thread(target=self._run, args=(work,), name="pfaffian compiles", daemon=True)
        self.threads = [t for t in self.threads if t.is_alive()] + [thread]
        thread.start()

    def _run(self, work: Callable[[], None]) -> None:
        """Run `work` when it is its turn, unless the process is ending."""
        with self.turn, processes.until(lambda: self.ending):
            if not self.ending:
                work()

    def wait(self) -> None:
        """Wait until all work is done; for tests and measurements."""
        for thread in self.threads:
            thread.join()

    def end(self) -> None:
        """End the compilers, and wait until their folders are removed."""
        self.ending = True
        for thread in self.threads:
            thread.join(PATIENCE)


_BACKGROUND = _Background()
atexit.register(_BACKGROUND.end)


def wait() -> None:
    """Wait until no compiler works in the background."""
    _BACKGROUND.wait()
