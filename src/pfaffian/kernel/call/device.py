"""The time loop on a device: the arrays stay in its memory, and each run is a thread."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pfaffian.kernel.call.rollout import Buffers, Rollout, task_in_place
from pfaffian.kernel.program.numpy_loop import LARGEST, Span, as_span
from pfaffian.kernel.text.cuda_source import OPTIONS, cuda_text

THREADS = 128
"""Threads of a block: with 255 registers for each thread, two blocks fill a multiprocessor."""


class Device(NamedTuple):
    """A compiled time loop on a device.   cupy: the module CuPy.   kernel: the function `pfaffian_device_rollout`."""

    cupy: Any
    kernel: Any


def device_of(rollout: Rollout, cupy: Any) -> Device:
    """The time loop of a rollout, compiled for CuPy's current device."""
    module = cupy.RawModule(code=cuda_text(*rollout.code.recipe.programs), options=OPTIONS)
    return Device(cupy, module.get_function("pfaffian_device_rollout"))


class OnDevice:
    """A rollout on a device. Each call continues from the arrays in the device's memory.

    arrays: Buffers of CuPy arrays.   span: start time, step, and sampling; each call chooses the steps.
    Nothing is recorded. A call returns before its steps are done; reading the arrays waits for them.
    """

    def __init__(self, rollout: Rollout, device: Device, arrays: Buffers, span: Span) -> None:
        self.device, self.runs = device, len(arrays.status)
        self._task, self._buffers = task_in_place(rollout, as_span(span._replace(every=LARGEST)), arrays, device.cupy)

    def advance(self, first: int, steps: int) -> None:
        """Start the steps first ... first + steps - 1."""
        self._task.first, self._task.steps, self._task.count = first, steps, first == 0
        task = self.device.cupy.asarray(np.frombuffer(bytes(self._task), np.uint8))
        self.device.kernel((-(-self.runs // THREADS),), (THREADS,), (task,))

    def wait(self) -> None:
        """Wait until all steps are done."""
        self.device.cupy.cuda.get_current_stream().synchronize()
