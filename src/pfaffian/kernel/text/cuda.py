"""Programs -> CUDA C++: the text of one lane, with a thread for each run."""

from __future__ import annotations

from pfaffian.kernel.program.program import Program
from pfaffian.kernel.text.source import file_text, single_source

PART_SIZE = 300
"""Operations of a function, with what it loads and stores: what is known in it at a time has to fit into few registers."""

OPTIONS = ("--std=c++17", "--fmad=false", "-default-device")
"""What the text needs of a compiler: no contractions, and all that has no mark of its own is for the device."""


def cuda_text(step: Program, observe: Program, *samplers: Program) -> str:
    """CUDA C++ of a time loop: the kernel `pfaffian_device_rollout`, which takes the struct Rollout of rollout.h."""
    text = single_source(step, observe, *samplers, part_size=PART_SIZE).text
    return "\n".join([file_text("cuda.h"), text, file_text("device.h")])
