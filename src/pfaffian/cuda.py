"""Batches of runs on an NVIDIA device, one thread for each run, with the same bits as on the processor.

text                CUDA C++ text of a stepper's loop
compiled            that text compiled for an architecture, with its registers, stack and spilled bytes; needs no device
on_device           a stepper whose state and loop are on a device; other libraries read its arrays by DLPack
"""

from pfaffian.kernel.build.nvrtc import compiled as compiled
from pfaffian.simulate.run.device_stepper import on_device as on_device
from pfaffian.simulate.run.device_stepper import text as text
