"""A report on what this machine offers for compiling kernels, for `pfaffian doctor`."""

from __future__ import annotations

import platform

import casadi as ca

from pfaffian.errors import BuildError
from pfaffian.kernel.build import object_store as store
from pfaffian.kernel.build import toolchain
from pfaffian.kernel.call import kernel


def diagnose() -> dict[str, str]:
    """Machine, compiler, its version and flags, the store's folder, and whether a small kernel compiles and is correct."""
    compiler = toolchain.find_compiler()
    report = {
        "machine": platform.machine(),
        "compiler": " ".join(compiler.argv) if compiler else toolchain.NO_COMPILER,
        "version": compiler.version if compiler else "",
        "flags": " ".join(compiler.flags("strict")) if compiler else "",
        "store": str(store.directory()),
    }
    x = ca.SX.sym("x", 2)
    try:
        kernel.compile(ca.Function("diagnose", [x], [ca.sin(x[0]) * ca.sqrt(ca.fabs(x[1]))]), backend="c")
    except BuildError as error:
        return report | {"kernel": f"does not build: {error}"}
    return report | {"kernel": "compiles, and gives the interpreter's bits"}
