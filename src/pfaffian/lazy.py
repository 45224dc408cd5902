"""Names that a package imports when they are first used, so that importing the package itself is quick.

No public package has an `__all__`, because `help()` prints the text of every name in it. So `from package import *` brings none
of these names.
"""

import types
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import Any


def importer(package: dict[str, Any], homes: Mapping[str, str], modules: Iterable[str] = ()) -> Callable[[str], Any]:
    """The `__getattr__` of a package.

    Args:
        package: its `globals()`.
        homes: name -> the module that defines it.
        modules: names of modules of the package.
    """
    path, inside = package["__name__"], frozenset(modules)

    def attribute(name: str) -> Any:
        if name in inside:
            return import_module(f"{path}.{name}")
        if name not in homes:
            raise AttributeError(f"module {path!r} has no attribute {name!r}")
        value = getattr(import_module(homes[name]), name)
        package[name] = value
        return value

    return attribute


def lister(package: dict[str, Any], lazy: Iterable[str]) -> Callable[[], list[str]]:
    """The `__dir__` of a package: the public names that it has imported, but not modules, and these names."""
    eager = {name for name, x in package.items() if name[0] != "_" and not isinstance(x, types.ModuleType)}
    names = sorted(eager.union(lazy))
    return lambda: list(names)
