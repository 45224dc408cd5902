"""Programs -> CUDA C++: the C text for one lane, run by one thread for each run."""

from __future__ import annotations

from pfaffian.kernel.program.program import Program
from pfaffian.kernel.text.source import file_text, single_source

PART_SIZE = 300
"""Size of a stage (operations, loads and stores) on a device, where the values of a stage must fit into few registers."""

OPTIONS = ("--std=c++17", "--fmad=false", "-default-device")
"""Options of the compiler that the text needs: no contractions, and functions without a qualifier are for the device."""


def cuda_text(step: Program, observe: Program, *samplers: Program) -> str:
    """CUDA C++ of a time loop: the kernel `pfaffian_device_rollout`, whose argument is the struct Rollout of rollout.h."""
    text = single_source(step, observe, *samplers, part_size=PART_SIZE).text
    return "\n".join([file_text("cuda.h"), text, file_text("device.h")])
