"""Names that a package imports when they are first used, so that importing the package itself is quick.

No public package has an `__all__`, because `help()` prints the text of every name in it. So `from package import *` imports
none of these names.
"""

from __future__ import annotations

import types
from importlib import import_module

TYPE_CHECKING = False  # importing it from typing would take as long as the rest of `import pfaffian`
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any


def importer(package: dict[str, Any], homes: Mapping[str, str], modules: Iterable[str] = ()) -> Callable[[str], Any]:
    """Return the `__getattr__` of a package, which imports each public name when it is first used.

    Args:
        package: the `globals()` of the package.
        homes: {public name: module that defines it}.
        modules: names of the package's own modules that may be used as attributes.
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
    """Return the `__dir__` of a package: the public names that it has already imported, except modules, and the lazy names."""
    eager = {name for name, x in package.items() if name[0] != "_" and not isinstance(x, types.ModuleType)}
    names = sorted(eager.union(lazy))
    return lambda: list(names)
