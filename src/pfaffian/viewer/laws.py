"""Which law a word of the command line means: that of a study, or of a Python file of the caller's."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from typing import Any, NamedTuple

from pfaffian.control.law import Control
from pfaffian.errors import ModelError
from pfaffian.model.caller import ask
from pfaffian.model.mechanism import Mechanism
from pfaffian.output.plain import text
from pfaffian.viewer.study import folder, load, studies

PARTS = ("mechanism", "law")


class Found(NamedTuple):
    """name: of the study or file, as a word for identifiers."""

    law: Control
    mechanism: Mechanism
    name: str


def find(given: str) -> Found:
    """The law that law() gives and the mechanism that mechanism() gives, of a study by name or of a file NAME.py, which is run.

    Raises ModelError: there is neither; it has no such functions, or they fail.
    """
    path = Path(given)
    if path.suffix != ".py":
        if path.suffix or path.name != given:
            raise ModelError(
                f"export: {text(given, 60)!r} names no law: give a study, or a Python file NAME.py with functions mechanism() "
                "and law(); a .yaml or .urdf file holds none"
            )
        return Found(*_asked(load(given, folder(), PARTS), f"study {given!r}"), _word(given))
    if not path.is_file():
        raise ModelError(f"there is no file {text(given, 200)!r}; the studies are {', '.join(studies())}")
    what = f"file {text(path.name, 60)!r}"
    spec = importlib.util.spec_from_file_location(f"law_of_{abs(hash(path))}", path)
    if spec is None or spec.loader is None:
        raise ModelError(f"{what} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    ask(spec.loader.exec_module, what, module)
    for part in PARTS:
        if not callable(getattr(module, part, None)):
            raise ModelError(f"{what} has no function {part}()")
    return Found(*_asked(module, what), _word(path.stem))


def _asked(module: Any, what: str) -> tuple[Control, Mechanism]:
    mechanism, law = (ask(getattr(module, part), f"{what}: {part}()") for part in PARTS)
    return law, mechanism


def _word(stem: str) -> str:
    """What of it C can take for a name."""
    word = re.sub("[^a-z0-9_]+", "_", stem.lower()).strip("_")[:40]
    return word if word[:1].isalpha() else f"law_{word}"[:40]
