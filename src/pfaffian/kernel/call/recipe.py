"""Recipes: what to compile and how. The Programs are traced and their text is printed only when needed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple, get_args

import casadi as ca
import numpy as np

from pfaffian.errors import BuildError, ModelError, Notice, brief, is_one_of, issue, with_notices
from pfaffian.kernel.build.compiled_passes import passes
from pfaffian.kernel.build.toolchain import BuildMode
from pfaffian.kernel.program.passes import PYTHON, optimise
from pfaffian.kernel.program.program import Program
from pfaffian.kernel.program.skeleton import in_order_of_use, numbers, skeleton
from pfaffian.kernel.program.trace import trace
from pfaffian.kernel.text.source import Source

Backend = Literal["auto", "c", "interpreter", "numpy"]
BACKENDS = get_args(Backend)

LANES = {8: 8, 4: 8, 1: 1}
"""Numbers of runs that compiled code computes at once, each with that of the interpreter in its place."""

SHORT = 3000
"""Largest number of operations that the passes in Python take before NumPy runs them: in C they first have to be compiled."""


class PortLengths(NamedTuple):
    """Lengths of the inputs and outputs of a Program."""

    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


def shape(program: Program) -> PortLengths:
    """Lengths of the inputs and outputs of a Program."""
    return PortLengths(program.inputs, tuple(map(len, program.outputs)))


@dataclass(frozen=True, eq=False)
class Recipe:
    """Programs to be compiled, and how.   make: returns the Programs.   printer: writes their C text.
    lanes: number of runs that are computed at once.   mode: mode of the compiler."""

    make: Callable[[], tuple[Program, ...]]
    printer: Callable[..., Source]
    lanes: int
    mode: BuildMode

    @cached_property
    def _traced(self) -> tuple[tuple[Program, ...], tuple[Notice, ...]]:
        """The Programs, and what was told while they were traced."""
        return with_notices(self.make)

    @property
    def programs(self) -> tuple[Program, ...]:
        """The Programs, traced when first needed."""
        return self._traced[0]

    @property
    def notices(self) -> tuple[Notice, ...]:
        """What is to be told whenever the Programs are used: what was told while they were traced."""
        return self._traced[1]

    @cached_property
    def source(self) -> Source:
        """The C text, printed when first needed."""
        return self.printer(*self.programs, lanes=self.lanes)

    @cached_property
    def numbers(self) -> np.ndarray:
        """The table of constants that the text reads."""
        return numbers(self.programs)

    @cached_property
    def skeleton(self) -> str:
        """The digest that Programs share which differ only in numbers."""
        return skeleton(self.programs)

    @property
    def shapes(self) -> tuple[PortLengths, ...]:
        """Lengths of the inputs and outputs of each Program."""
        return tuple(map(shape, self.programs))

    @property
    def digest(self) -> str:
        """Digests of all Programs, in one text."""
        return ":".join(program.digest() for program in self.programs)

    def of(self, programs: tuple[Program, ...], notices: tuple[Notice, ...]) -> Recipe:
        """This recipe with Programs that are already known, and what is to be told of them."""

        def make() -> tuple[Program, ...]:
            issue(notices)
            return programs

        return Recipe(make, self.printer, self.lanes, self.mode)

    def expecting(self, digest: str) -> Recipe:
        """This recipe, which raises BuildError if its Programs turn out to have another digest."""

        def make() -> tuple[Program, ...]:
            if self.digest != digest:
                raise BuildError("the key was used before for another function, which was loaded: choose another key")
            return self.programs

        return Recipe(make, self.printer, self.lanes, self.mode)


def _each_alone(*programs: Program) -> tuple[Program, ...]:
    """Leave the Programs as they are: the pass over several that changes none."""
    return programs


def recipe(
    build: Callable[[], tuple[Any, ...]],
    printer: Callable[..., Source],
    backend: str,
    lanes: int,
    mode: BuildMode,
    together: Callable[..., tuple[Program, ...]] = _each_alone,
) -> Recipe:
    """The recipe of the Functions that build() returns, with all passes; short ones for NumPy wait for no compiler.

    together: pass over all their Programs at once.
    """
    check_options(backend, lanes)

    def make() -> tuple[Program, ...]:
        functions = build()
        for f in functions:
            if not isinstance(f, ca.Function):
                raise ModelError(f"a casadi.Function is needed, got {type(f).__name__}")
        brief_enough = sum(f.n_instructions() for f in functions) <= SHORT
        how = PYTHON if backend == "numpy" and brief_enough else passes()
        return in_order_of_use(together(*[optimise(trace(f, how), how) for f in functions]))

    return Recipe(make, printer, lanes, mode)


def mode_of(strict: bool) -> BuildMode:
    """The compiler's mode for the option `strict`."""
    return "strict" if strict else "fast"


def check_options(backend: str, lanes: int) -> None:
    """Raise BuildError if an option has an unknown value."""
    if not is_one_of(backend, BACKENDS):
        raise BuildError(f"backend {brief(backend)}: choose auto, c, interpreter or numpy")
    if lanes not in LANES:
        raise BuildError(f"lanes={lanes}: choose 8, 4 or 1")
