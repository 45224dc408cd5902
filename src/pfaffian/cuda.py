"""Batches on a device of NVIDIA, one thread a run, with the bits of the processor.

text                the CUDA C++ of a stepper's loop
compiled            it for an architecture: registers, stack, spilled bytes; no device is needed
on_device           the stepper's state and loop in the memory of a device; its arrays go to other libraries by DLPack
"""

from pfaffian.kernel.build.nvrtc import compiled as compiled
from pfaffian.simulate.device import on_device as on_device
from pfaffian.simulate.device import text as text
