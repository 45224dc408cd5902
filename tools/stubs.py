"""Write stubs of the lazily imported public names, for type checkers and editors: `python -m tools.stubs`.

The `__init__.py` of these modules find such names in a table at run time, where no type checker sees them. A stub next to each
declares where every name comes from.
"""

from __future__ import annotations

import ast
from importlib import import_module
from pathlib import Path
from types import ModuleType

SOURCE = Path(__file__).resolve().parents[1] / "src"
MODULES = ("pfaffian", "pfaffian.control", "pfaffian.formats")


def public_names(module: ModuleType) -> list[str]:
    """Public names of a room, which are those in its `dir()`. A room has no `__all__`, since `help()` would list it with
    docstrings."""
    return [name for name in dir(module) if not name.startswith("_")]


def stub(module: str) -> str:
    """The text of a module's stub: an import for each public name."""
    loaded = import_module(module)
    tree = ast.parse((_folder(module) / "__init__.py").read_text(encoding="utf-8"))
    found = {a.name: node.module for node in tree.body if isinstance(node, ast.ImportFrom) for a in node.names}
    homes = found | loaded._HOMES
    lines = sorted(
        f"from {homes.get(name, module)} import {name} as {name}\n" for name in {*public_names(loaded), *loaded._HOMES}
    )
    version = "\n__version__: str\n" if module == "pfaffian" else ""
    return f'"""Written by `python -m tools.stubs`."""\n\n{"".join(lines)}{version}'


def path(module: str) -> Path:
    """Path of a module's stub."""
    return _folder(module) / "__init__.pyi"


def _folder(module: str) -> Path:
    return SOURCE.joinpath(*module.split("."))


if __name__ == "__main__":
    for name in MODULES:
        path(name).write_text(stub(name), encoding="utf-8")
