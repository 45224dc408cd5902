"""Tiers: a Program runs on the interpreter in C at once; compiled code takes over between two calls, with the same bits.

The compiler starts in the background when the interpreter has worked about a third as long as compiling takes: then, whatever
follows, the time spent is at most a small multiple of the least possible. Work is counted in operations, not timed.
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
"""Operations of the interpreter, for each step of the text, from which on compiling is worth it: a third of what it costs."""


@dataclass(frozen=True)
class Tier:
    """One way to run Programs.   name: in the provenance.   call: the C function.   doubles: size of its workspace.
    meta: how it was compiled.   data: what it computes with, kept here because C has its address only."""

    name: str
    call: Callable[..., None]
    doubles: int
    meta: dict[str, Any] = field(default_factory=dict)
    data: Words | np.ndarray | None = None


def compiled(library: ctypes.CDLL, function: str, doubles: int, meta: dict[str, Any], numbers: np.ndarray) -> Tier:
    """The tier of a compiled object, with the numbers of its table."""
    call = getattr(library, function)
    call.argtypes, call.restype = [ctypes.c_void_p, *ARGUMENTS[function]], None
    return Tier("c", partial(call, numbers.ctypes.data), doubles, meta, numbers)


def interpreted(library: ctypes.CDLL, function: str, doubles: int, words: Words) -> Tier:
    """The tier of the interpreter."""
    call = getattr(library, INTERPRETED[function])
    return Tier("interpreter", partial(call, words.address), doubles, {}, words)


ARGUMENTS: dict[str, list[Any]] = {
    "pfaffian_evaluate": [ctypes.c_void_p] * 2 + [ctypes.c_int64] * 3 + [ctypes.c_void_p],
    "pfaffian_rollout": [ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p],
}
PATIENCE = 5.0
"""Seconds to wait for a thread at the end of the program."""

INTERPRETED = {"pfaffian_evaluate": "pfaffian_interpret", "pfaffian_rollout": "pfaffian_interpret_rollout"}


class Tiers:
    """What is called now, and perhaps something faster later.   now: the tier of the next call."""

    def __init__(self, first: Tier, better: Callable[[], Tier] | None = None, worth: float = 0.0) -> None:
        self.now = first
        self._better, self._left = better, worth

    def take(self, work: int) -> Tier:
        """The tier for a call of so many operations. From some number on, the compiler starts in the background."""
        if self._better is not None:
            self._left -= work
            if self._left < 0:
                better, self._better = self._better, None
                _BACKGROUND.start(partial(self._change_over, better))
        return self.now

    def _change_over(self, better: Callable[[], Tier]) -> None:
        try:
            self.now = better()
        except processes.Ended:
            return
        except (BuildError, OSError) as error:
            text = f"running on the interpreter, some three times slower than compiled code: {error}"
            warnings.warn(text, RuntimeWarning, stacklevel=2)


class _Background:
    """One compilation at a time in a thread beside; when the program ends, it and its processes end too."""

    def __init__(self) -> None:
        self.turn, self.ending = threading.Lock(), False
        self.threads: list[threading.Thread] = []

    def start(self, work: Callable[[], None]) -> None:
        thread = threading.Thread(target=self._run, args=(work,), name="pfaffian compiles", daemon=True)
        self.threads = [t for t in self.threads if t.is_alive()] + [thread]
        thread.start()

    def _run(self, work: Callable[[], None]) -> None:
        with self.turn, processes.until(lambda: self.ending):
            if not self.ending:
                work()

    def wait(self) -> None:
        """Until everything that was started is done: for tests and measurements."""
        for thread in self.threads:
            thread.join()

    def end(self) -> None:
        """End the processes, and wait until their folders are removed."""
        self.ending = True
        for thread in self.threads:
            thread.join(PATIENCE)


_BACKGROUND = _Background()
atexit.register(_BACKGROUND.end)


def wait() -> None:
    """Until no compiler works in the background."""
    _BACKGROUND.wait()
