"""The part of CuPy that the library uses, on the CPU: device text is compiled as C, and its threads run one after another."""

from __future__ import annotations

import ctypes
import subprocess
import types
from pathlib import Path

import numpy as np

from pfaffian.kernel.build.toolchain import find_compiler
from pfaffian.kernel.text.cuda_source import OPTIONS
from pfaffian.kernel.text.source import file_text

SHIM = """
#include <stdint.h>
#define KERNEL static
static struct { int64_t x; } blockIdx, threadIdx;
static const struct { int64_t x; } blockDim = {1};
"""
THREADS = """
void all_threads(const Rollout *r, int64_t count) {
  for (blockIdx.x = 0; blockIdx.x < count; blockIdx.x++) pfaffian_device_rollout(r);
}
"""


class Array:
    """A device array: a host array that NumPy does not recognise as one."""

    def __init__(self, host):
        self.host, self.shape, self.strides, self.ndim = host, host.shape, host.strides, host.ndim
        self.data = types.SimpleNamespace(ptr=host.ctypes.data)

    def __len__(self):
        return len(self.host)

    def __setitem__(self, where, value):
        self.host[where] = value

    def swapaxes(self, *axes):
        return Array(self.host.swapaxes(*axes))

    def get(self, order):
        return np.array(self.host, order=order)


def cupy(folder: Path) -> types.ModuleType:
    """A stand-in for the module `cupy` that compiles into the given folder."""

    class RawModule:
        def __init__(self, code, options):
            head = file_text("cuda.h")
            assert options == OPTIONS and code.startswith(head)
            self.text = folder / f"{len(list(folder.glob('*.c')))}.c"  # loaded libraries stay loaded, so each gets a new name
            self.text.write_text(SHIM + code[len(head) :] + THREADS)
            compiler, library = find_compiler(), self.text.with_suffix(".so")
            assert compiler is not None
            subprocess.run([*compiler.argv, *compiler.flags("strict"), self.text, "-o", library, "-lm"], check=True)
            self.library = ctypes.CDLL(str(library))

        def get_function(self, name):
            assert f"KERNEL void {name}(" in self.text.read_text()
            call = self.library.all_threads
            call.argtypes, call.restype = [ctypes.c_void_p, ctypes.c_int64], None
            return lambda grid, block, given: call(given[0].data.ptr, grid[0] * block[0])

    module = types.ModuleType("cupy")
    module.RawModule = RawModule
    module.asarray = lambda host, order="C": Array(np.array(host, order=order))
    module.empty = lambda shape: Array(np.empty(shape))
    stream = types.SimpleNamespace(synchronize=lambda: waited.append(1))
    runtime = types.SimpleNamespace(getDeviceCount=lambda: 1)
    module.cuda = types.SimpleNamespace(runtime=runtime, get_current_stream=lambda: stream)
    module.waited = waited = []
    return module
