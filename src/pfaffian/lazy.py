"""Names that a package imports when they are first used, so that importing the package itself is quick.

The stub `__init__.pyi` of such a package is the list of its public names, for type checkers and at run time alike. No public
package has an `__all__`, because `help()` prints the text of every name in it. So `from package import *` imports none of these
names.
"""

from __future__ import annotations

import types
from importlib import import_module

TYPE_CHECKING = False  # importing it from typing would take as long as the rest of `import pfaffian`
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any


def listed(file: str) -> dict[str, str]:
    """{public name: module that defines it} of the package with this `__file__`, from the lines of its stub.

    A module of the package itself is an entry `from package import module as module`.
    """
    with open(f"{file.rpartition('.')[0]}.pyi", encoding="utf-8") as stub:
        entries = [line.split() for line in stub if line.startswith("from ")]
    return {name: module for _, module, _, name, *_ in entries}


def importer(package: dict[str, Any]) -> Callable[[str], Any]:
    """Return the `__getattr__` of a package, which imports each public name when it is first used.

    package: the `globals()` of the package.
    """
    path, homes = package["__name__"], listed(package["__file__"])

    def attribute(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {path!r} has no attribute {name!r}")
        if homes[name] == path:
            return import_module(f"{path}.{name}")
        value = getattr(import_module(homes[name]), name)
        package[name] = value
        return value

    return attribute


def lister(package: dict[str, Any], lazy: Iterable[str]) -> Callable[[], list[str]]:
    """Return the `__dir__` of a package: the public names that it has already imported, except modules, and the lazy names."""
    eager = {name for name, x in package.items() if name[0] != "_" and not isinstance(x, types.ModuleType)}
    names = sorted(eager.union(lazy))
    return lambda: list(names)
