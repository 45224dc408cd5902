"""Batches on a device of NVIDIA, one thread a run, with the bits of the processor.

text                the CUDA C++ of a stepper's loop
compiled            it for an architecture: registers, stack, spilled bytes; no device is needed
on_device           the stepper's state and loop in the memory of a device; its arrays go to other libraries by DLPack
"""

from pfaffian.kernel.build.nvrtc import compile_cuda as compiled
from pfaffian.simulate.device import on_device, text

__all__ = ["compiled", "on_device", "text"]
