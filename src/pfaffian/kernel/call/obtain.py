"""Recipe -> Code: compiled code from the store, or Programs that the interpreter runs until compiling them pays."""

from __future__ import annotations

import contextlib
import ctypes
import gc
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from pfaffian.errors import BuildError, Notice, issue, notice_once
from pfaffian.kernel.build.compiled_passes import encoded
from pfaffian.kernel.build.interpreter import Words, interpreter
from pfaffian.kernel.build.library import key_of, load
from pfaffian.kernel.build.toolchain import needed_compiler
from pfaffian.kernel.build.trial import Trial
from pfaffian.kernel.build.waiting import tell
from pfaffian.kernel.call import cache_keys as keyed
from pfaffian.kernel.call.recipe import LANES, Backend, PortLengths, Recipe
from pfaffian.kernel.call.tiers import WORTH, Tier, Tiers, compiled, interpreted
from pfaffian.kernel.program.program import callees_first
from pfaffian.kernel.remember import checking, compare


@dataclass(frozen=True, eq=False)
class Code:
    """The code of a Kernel or a Rollout.

    shapes: lengths of the ports of each Program.   digest: of the Programs.   tiers: what runs them; None for NumPy.
    work: number of operations of one evaluation of each Program.
    """

    recipe: Recipe
    shapes: tuple[PortLengths, ...]
    digest: str
    tiers: Tiers | None = None
    work: tuple[int, ...] = ()

    @property
    def provenance(self) -> dict[str, Any]:
        """Digest, options, the backend that runs now, and how it was compiled."""
        about = {"digest": self.digest, "lanes": self.recipe.lanes, "strict": self.recipe.mode != "fast"}
        if self.tiers is None:
            return about | {"backend": "numpy"}
        return about | {"backend": self.tiers.now.name} | self.tiers.now.meta


@contextlib.contextmanager
def uncollected() -> Iterator[None]:
    """Disable the garbage collector in this context. It would visit hundreds of thousands of steps again and again, which
    takes a fifth of the time, although none of them is in a cycle."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def obtain(recipe: Recipe, function: str, trial: Callable[[Recipe], Trial], backend: Backend, key: str | None) -> Code:
    """The code of a recipe. With a known key nothing is traced; if only numbers are new, nothing is compiled.

    What was told while its Programs were traced is told, whether they are traced now or were before.

    function: name of the function of the compiled object.   trial: returns the trial of a recipe; called only if something is
    compiled.
    """
    keyed.check_key(key)
    with uncollected():
        code, notices = _obtain(recipe, function, trial, backend, key)
    issue(notices)
    return code


def _obtain(
    recipe: Recipe, function: str, trial: Callable[[Recipe], Trial], backend: Backend, key: str | None
) -> tuple[Code, tuple[Notice, ...]]:
    """The code of `obtain`, and what is to be told of it."""
    hit = keyed.recall(key, recipe) if key is not None and backend in ("auto", "c") else None
    if hit:
        if checking():
            compare(f"the kernel of {key}", hit.digest, recipe.digest)
        tier = compiled(hit.library, function, hit.doubles, hit.meta, hit.numbers)
        return Code(recipe.expecting(hit.digest), hit.shapes, hit.digest, Tiers(tier), (0,) * len(hit.shapes)), hit.notices
    tell("deriving the equations")
    if backend == "numpy":
        return Code(recipe, recipe.shapes, recipe.digest), recipe.notices
    known = keyed.programs(key, recipe) if key is not None else recipe
    if checking():
        compare(f"the Programs of {key}", known.digest, recipe.digest)
    tiers = _tiers(known, function, lambda: trial(known), backend, key)
    work = tuple(program.n_ops for program in known.programs)
    return Code(recipe.expecting(known.digest), known.shapes, known.digest, tiers, work), known.notices


def _tiers(recipe: Recipe, function: str, trial: Callable[[], Trial], backend: Backend, key: str | None) -> Tiers | None:
    """The tiers that run the Programs of the recipe; None for NumPy."""

    if backend == "interpreter" and recipe.mode == "fast":
        raise BuildError("the interpreter gives strict bits only: leave out strict=False, or choose the backend c")

    def tier(library: ctypes.CDLL, meta: dict[str, Any], doubles: int) -> Tier:
        if key is not None:
            keyed.remember(key, recipe, meta, doubles)
        return compiled(library, function, doubles, meta, recipe.numbers)

    def build() -> Tier:
        library, meta = load(recipe.source.text, recipe.mode, trial(), needed_compiler())
        keyed.remember(keyed.by_skeleton(recipe), recipe, meta, recipe.source.doubles)
        return tier(library, meta, recipe.source.doubles)

    hit = keyed.recall(keyed.by_skeleton(recipe), recipe) if backend in ("auto", "c") else None
    if hit:
        if checking():
            compare("the text of a skeleton", hit.meta["key"], key_of(recipe.source.text, recipe.mode, needed_compiler()))
        return Tiers(tier(hit.library, hit.meta, hit.doubles))
    try:
        if backend == "c" or recipe.mode == "fast":
            return Tiers(build())
        library = interpreter(LANES[recipe.lanes], recipe.programs)
    except (BuildError, OSError) as error:
        if backend != "auto":
            raise error if isinstance(error, BuildError) else BuildError(f"cannot build: {error}") from error
        notice_once(f"running in NumPy, some 100 times slower: {error}")
        return None
    code = encoded(*recipe.programs)
    first = interpreted(library, function, LANES[recipe.lanes] * code.frame, Words(code))
    if backend == "interpreter":
        return Tiers(first)
    return Tiers(first, build, WORTH * sum(len(program.steps) for program in callees_first(recipe.programs)))
