"""Kernels of Programs, to which no passes are applied."""

from __future__ import annotations

from typing import Any

from pfaffian.kernel.call.kernel import Kernel, _kernel
from pfaffian.kernel.call.recipe import Recipe, mode_of
from pfaffian.kernel.program.program import Program
from pfaffian.kernel.text.source import kernel_source


def from_program(program: Program, *, backend: Any, lanes: int = 8, strict: bool = True) -> Kernel:
    """The Kernel of a Program.   backend, lanes, strict: as in `kernel.compile`."""
    return _kernel(Recipe(lambda: (program,), kernel_source, lanes, mode_of(strict)), backend, None)
