"""Recipe -> Code: from the store by its key, or traced, printed, compiled and tried; interpreted if that fails."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pfaffian.kernel.build.library import load_or_none
from pfaffian.kernel.build.trial import Trial
from pfaffian.kernel.build.waiting import tell
from pfaffian.kernel.call import keyed
from pfaffian.kernel.call.recipe import Backend, Recipe, Shape, shape
from pfaffian.kernel.remember import checking, compare


@dataclass(frozen=True)
class Code:
    """The parts of a Kernel or a Rollout.   library: None if it is interpreted.   doubles: size of the workspace."""

    recipe: Recipe
    shapes: tuple[Shape, ...]
    provenance: dict[str, Any]
    library: ctypes.CDLL | None = None
    doubles: int = 0


def obtain(recipe: Recipe, trial: Callable[[], Trial], backend: Backend, key: str | None) -> Code:
    """The code of the recipe. With a known key nothing is traced."""
    keyed.check_key(key)
    options: dict[str, Any] = {"lanes": recipe.lanes, "strict": recipe.mode != "fast"}
    found = keyed.recall(key, recipe) if key is not None and backend != "numpy" else None
    if found:
        if checking():
            compare(f"the kernel of {key}", found.digest, recipe.digest)
        provenance = {"digest": found.digest} | options | {"backend": "c"} | found.meta
        return Code(recipe.expecting(found.digest), found.shapes, provenance, found.library, found.doubles)
    tell("deriving the equations")
    shapes = tuple(map(shape, recipe.programs))
    loaded = load_or_none(recipe.source.text, recipe.mode, trial(), backend) if backend != "numpy" else None
    provenance = {"digest": recipe.digest} | options
    if loaded is None:
        return Code(recipe, shapes, provenance | {"backend": "numpy"})
    if key is not None:
        keyed.remember(key, recipe, loaded[1], shapes)
    return Code(recipe, shapes, provenance | {"backend": "c"} | loaded[1], loaded[0], recipe.source.doubles)
