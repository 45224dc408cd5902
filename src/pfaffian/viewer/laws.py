"""Find a control law named on the command line: that of a study, or of a Python file of the user."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from typing import Any, NamedTuple

from pfaffian.control.law import Control
from pfaffian.errors import ModelError
from pfaffian.model.mechanism import Mechanism
from pfaffian.model.user_functions import call_user
from pfaffian.output.plain import text
from pfaffian.viewer.run_study import folder, load, studies

PARTS = ("mechanism", "law")


class NamedLaw(NamedTuple):
    """A control law with its mechanism.   name: of the study or file, as an identifier of C."""

    law: Control
    mechanism: Mechanism
    name: str


def find(given: str) -> NamedLaw:
    """The law and the mechanism from the functions law() and mechanism() of a study NAME or of a file NAME.py.

    Raises ModelError: there is no such study or file; it lacks one of these functions, or one of them fails.
    """
    path = Path(given)
    if path.suffix != ".py":
        if path.suffix or path.name != given:
            raise ModelError(
                f"export: {text(given, 60)!r} names no law: give a study, or a Python file NAME.py with functions mechanism() "
                "and law(); a .yaml or .urdf file holds none"
            )
        return NamedLaw(*_law_and_mechanism(load(given, folder(), PARTS), f"study {given!r}"), _identifier(given))
    if not path.is_file():
        raise ModelError(f"there is no file {text(given, 200)!r}; the studies are {', '.join(studies())}")
    what = f"file {text(path.name, 60)!r}"
    spec = importlib.util.spec_from_file_location(f"law_of_{abs(hash(path))}", path)
    if spec is None or spec.loader is None:
        raise ModelError(f"{what} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    call_user(spec.loader.exec_module, what, module)
    for part in PARTS:
        if not callable(getattr(module, part, None)):
            raise ModelError(f"{what} has no function {part}()")
    return NamedLaw(*_law_and_mechanism(module, what), _identifier(path.stem))


def _law_and_mechanism(module: Any, what: str) -> tuple[Control, Mechanism]:
    """Call law() and mechanism() of a module.   what: name of the module for error messages."""
    mechanism, law = (call_user(getattr(module, part), f"{what}: {part}()") for part in PARTS)
    return law, mechanism


def _identifier(stem: str) -> str:
    """The stem of a file name as an identifier of C, of at most 40 characters."""
    word = re.sub("[^a-z0-9_]+", "_", stem.lower()).strip("_")[:40]
    return word if word[:1].isalpha() else f"law_{word}"[:40]
