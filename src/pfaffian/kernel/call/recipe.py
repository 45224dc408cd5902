"""What is to be compiled, and how; traced and printed only when needed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple, get_args

import casadi as ca
import numpy as np

from pfaffian.errors import BuildError, ModelError
from pfaffian.kernel.build.passes import passes
from pfaffian.kernel.build.toolchain import Mode
from pfaffian.kernel.program.passes import optimise
from pfaffian.kernel.program.program import Program
from pfaffian.kernel.program.skeleton import in_order_of_use, numbers, skeleton
from pfaffian.kernel.program.trace import trace
from pfaffian.kernel.text.source import Source

Backend = Literal["auto", "c", "interpreter", "numpy"]
BACKENDS = get_args(Backend)


class PortLengths(NamedTuple):
    """Lengths of the inputs and outputs of a Program."""

    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


def shape(program: Program) -> PortLengths:
    return PortLengths(program.inputs, tuple(map(len, program.outputs)))


@dataclass(frozen=True, eq=False)
class Recipe:
    """make: returns the Programs.   printer: writes their C text for so many lanes.   mode: of the compiler."""

    make: Callable[[], tuple[Program, ...]]
    printer: Callable[..., Source]
    lanes: int
    mode: Mode

    @cached_property
    def programs(self) -> tuple[Program, ...]:
        return self.make()

    @cached_property
    def source(self) -> Source:
        return self.printer(*self.programs, lanes=self.lanes)

    @cached_property
    def numbers(self) -> np.ndarray:
        """The table of the text."""
        return numbers(self.programs)

    @cached_property
    def skeleton(self) -> str:
        """The digest that Programs which differ in numbers alone share."""
        return skeleton(self.programs)

    @property
    def shapes(self) -> tuple[PortLengths, ...]:
        return tuple(map(shape, self.programs))

    @property
    def digest(self) -> str:
        return ":".join(program.digest() for program in self.programs)

    def of(self, programs: tuple[Program, ...]) -> Recipe:
        """The same recipe of Programs that are known."""
        return Recipe(lambda: programs, self.printer, self.lanes, self.mode)

    def expecting(self, digest: str) -> Recipe:
        """The same recipe, but BuildError if the digest of its Programs turns out to be another."""

        def make() -> tuple[Program, ...]:
            if self.digest != digest:
                raise BuildError("the key was used before for another function, which is the one that is loaded")
            return self.programs

        return Recipe(make, self.printer, self.lanes, self.mode)


def _apart(*programs: Program) -> tuple[Program, ...]:
    return programs


def recipe(
    build: Callable[[], tuple[Any, ...]],
    printer: Callable[..., Source],
    backend: str,
    lanes: int,
    mode: Mode,
    together: Callable[..., tuple[Program, ...]] = _apart,
) -> Recipe:
    """Recipe of the Functions that build() returns, with all passes; `together` is a pass over all their Programs at once."""
    check_options(backend, lanes)

    def make() -> tuple[Program, ...]:
        functions = build()
        for f in functions:
            if not isinstance(f, ca.Function):
                raise ModelError(f"a casadi.Function is needed, got {type(f).__name__}")
        how = passes()
        return in_order_of_use(together(*[optimise(trace(f, how), how) for f in functions]))

    return Recipe(make, printer, lanes, mode)


def mode_of(strict: bool) -> Mode:
    return "strict" if strict else "fast"


def check_options(backend: str, lanes: int) -> None:
    if backend not in BACKENDS:
        raise BuildError(f"backend {backend!r}: choose auto, c, interpreter or numpy")
    if lanes not in (1, 8):
        raise BuildError(f"lanes={lanes}: choose 8 or 1")
