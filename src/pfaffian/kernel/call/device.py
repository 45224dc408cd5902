"""A time loop on a device: the arrays stay in its memory, and each run is a thread of its own."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pfaffian.kernel.call.rollout import Buffers, Rollout, task_in_place
from pfaffian.kernel.program.loop import LARGEST, Span, as_span
from pfaffian.kernel.text.cuda import OPTIONS, cuda_text

THREADS = 128
"""Of a block: with 255 registers each, two blocks fill a multiprocessor."""


class Device(NamedTuple):
    """cupy: the module.   kernel: its function `pfaffian_device_rollout`."""

    cupy: Any
    kernel: Any


def device_of(rollout: Rollout, cupy: Any) -> Device:
    """The rollout's loop, compiled for the current device of CuPy."""
    module = cupy.RawModule(code=cuda_text(*rollout.code.recipe.programs), options=OPTIONS)
    return Device(cupy, module.get_function("pfaffian_device_rollout"))


class OnDevice:
    """A rollout whose arrays are on a device: each call goes on from there.

    arrays: as in Buffers, those of the device.   span: start, length and sampling of the steps; each call says which.
    Nothing is recorded, and a call returns before its steps are done; what reads the arrays waits for them.
    """

    def __init__(self, rollout: Rollout, device: Device, arrays: Buffers, span: Span) -> None:
        self.device, self.runs = device, len(arrays.status)
        self._task, self._buffers = task_in_place(rollout, as_span(span._replace(every=LARGEST)), arrays, device.cupy)

    def advance(self, first: int, steps: int) -> None:
        """Steps first ... first + steps - 1."""
        self._task.first, self._task.steps, self._task.count = first, steps, first == 0
        task = self.device.cupy.asarray(np.frombuffer(bytes(self._task), np.uint8))
        self.device.kernel((-(-self.runs // THREADS),), (THREADS,), (task,))

    def wait(self) -> None:
        """Return when all steps are done."""
        self.device.cupy.cuda.get_current_stream().synchronize()
