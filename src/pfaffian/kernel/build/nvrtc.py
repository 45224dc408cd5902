"""CUDA C++ to machine code of a device, by NVIDIA's NVRTC, which works without a device."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from pfaffian.errors import BuildError, install
from pfaffian.kernel.text.cuda_source import OPTIONS

_ARCHITECTURE = re.compile(r"sm_\d{2,3}a?")


@dataclass(frozen=True)
class DeviceCode:
    """CUDA C++ compiled for one architecture.

    binary: the code, a cubin.   architecture: such as "sm_90".   registers: registers of a thread, of 32 bits each.
    stack: stack of a thread [bytes].   spilled: part of a thread's values that did not fit into registers [bytes].
    log: the compiler's messages.
    """

    binary: bytes = field(repr=False)
    architecture: str
    registers: int
    stack: int
    spilled: int
    log: str = field(repr=False)


def compiled(text: str, architecture: str = "sm_90") -> DeviceCode:
    """Compile CUDA C++ by NVIDIA's NVRTC, without a device.

    Args:
        text: CUDA C++, such as `pf.cuda.text` returns.
        architecture: architecture of the device, default "sm_90".
    Returns:
        DeviceCode: binary (a cubin), architecture, registers of a thread, stack [bytes] of a thread, spilled [bytes], log.
    Raises BuildError: NVRTC is not installed, the architecture is unknown, or the text cannot be compiled.

    Example:
        >>> import pfaffian as pf
        >>> code = pf.cuda.compiled('extern "C" __global__ void twice(double *x) { x[threadIdx.x] *= 2.0; }')
        >>> code.architecture, code.registers < 64, code.spilled
        ('sm_90', True, 0)
    """
    if not isinstance(architecture, str) or not _ARCHITECTURE.fullmatch(architecture):
        raise BuildError(f"architecture: a name such as 'sm_90' is needed, got {architecture!r}")
    nvrtc = _nvrtc()
    options = (*OPTIONS, f"--gpu-architecture={architecture}", "--ptxas-options=-v")
    program = _result(nvrtc, nvrtc.nvrtcCreateProgram(text.encode(), b"pfaffian.cu", 0, [], []))
    status = nvrtc.nvrtcCompileProgram(program, len(options), [o.encode() for o in options])[0]
    log = _text(nvrtc, nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog, program).decode(errors="replace").rstrip("\0 \n")
    if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
        raise BuildError(f"NVRTC refuses the text for {architecture}: {nvrtc.nvrtcGetErrorString(status)[1].decode()}\n{log}")
    binary = _text(nvrtc, nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN, program)
    nvrtc.nvrtcDestroyProgram(program)
    spilled = sum(map(int, re.findall(r"(\d+) bytes spill stores", log)))
    stack = _most(r"(\d+) bytes cumulative stack size", log)
    return DeviceCode(binary, architecture, _most(r"Used (\d+) registers", log), stack, spilled, log)


def _most(pattern: str, log: str) -> int:
    """The largest number that a pattern finds in the compiler's messages."""
    return max(map(int, re.findall(pattern, log)), default=0)


def _nvrtc() -> Any:
    """The module of NVRTC. Raises BuildError: it is not installed."""
    try:
        from cuda.bindings import nvrtc

        _result(nvrtc, nvrtc.nvrtcVersion())
    except (ImportError, RuntimeError) as error:
        way = f"{install('cuda-bindings')} and {install('nvidia-cuda-nvrtc-cu12')}"
        raise BuildError(f"compiling for a device requires NVRTC: {way} ({error})") from error
    return nvrtc


def _result(nvrtc: Any, answer: tuple[Any, ...]) -> Any:
    """What a call of NVRTC returns besides its status. Raises BuildError: the status is an error."""
    if answer[0] != nvrtc.nvrtcResult.NVRTC_SUCCESS:
        raise BuildError(f"NVRTC: {nvrtc.nvrtcGetErrorString(answer[0])[1].decode()}")
    return answer[1] if len(answer) == 2 else answer[1:]


def _text(nvrtc: Any, size: Any, take: Any, program: Any) -> bytes:
    """Bytes that NVRTC returns by a pair of functions: one gives their number, the other writes them."""
    data = b"\0" * _result(nvrtc, size(program))
    if take(program, data)[0] != nvrtc.nvrtcResult.NVRTC_SUCCESS:
        raise BuildError("NVRTC compiled the text but does not return the result")
    return data
