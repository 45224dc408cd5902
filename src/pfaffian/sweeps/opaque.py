"""Digest of a law in Python: of its code and of all that the code reaches, since no graph shows what the law gives.

Functions count by their code, defaults, closures, attributes and the globals that they name; objects by the parts by which they
are pickled. What belongs to Python or to an installed package counts by its name and version.
"""

from __future__ import annotations

import site
import sys
import sysconfig
from collections.abc import Callable, Iterator, Mapping
from dis import get_instructions
from functools import cache
from hashlib import sha256
from pathlib import Path
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any
from uuid import uuid4

import numpy as np

from pfaffian.errors import brief
from pfaffian.model.data import functions_by_value
from pfaffian.model.number import Parameter

PLAIN = (type(None), bool, int, float, complex, str, type(...), type(NotImplemented))
"""Types whose repr is their content."""

CODE = ("co_code", "co_consts", "co_names", "co_varnames", "co_freevars", "co_cellvars", "co_flags", "co_argcount",
        "co_posonlyargcount", "co_kwonlyargcount", "co_exceptiontable")  # fmt: skip
"""Attributes of code on which its results depend; not its file and its lines."""

UNKNOWN = "cannot be compared"
"""How the digest of a law begins that contains an object whose content is hidden."""


class _Hidden(Exception):
    """Raised for an object whose content cannot be read."""


def content(function: Callable[..., Any]) -> str:
    """sha256 of a function and of all that it reaches; a text that never comes again where that cannot be read."""
    try:
        with functions_by_value():
            return _Reading().digest(function).hex()
    except (_Hidden, RecursionError) as error:
        return f"{UNKNOWN}, since it holds {error or 'too deep a structure'} ({uuid4().hex})"


class _Reading:
    """The reading of an object.   known: id of an object -> itself, which keeps the id its own, and its digest.
    path: ids of the objects that contain the one that is read."""

    def __init__(self) -> None:
        self.known: dict[int, tuple[Any, bytes]] = {}
        self.path: list[int] = []

    def digest(self, x: Any) -> bytes:
        """Digest of an object. Raises _Hidden: something in it cannot be read."""
        if type(x) is bytes:
            return sha256(b"bytes " + x).digest()
        if type(x) in PLAIN:
            return sha256(f"{type(x).__name__} {x!r}".encode("utf-8", "surrogatepass")).digest()
        if id(x) in self.path:
            return f"container {len(self.path) - self.path.index(id(x))}".encode()
        if id(x) not in self.known:
            self.path.append(id(x))
            kind, *parts = _parts(x)
            digests = [self.digest(part) for part in parts]
            hashed = sha256(f"{kind} {len(digests)}\n".encode())
            for one in sorted(digests) if kind == "set" else digests:
                hashed.update(sha256(one).digest())
            self.path.pop()
            self.known[id(x)] = x, hashed.digest()
        return self.known[id(x)][1]


PARTS: Mapping[type, Callable[[Any], tuple[Any, ...]]] = {
    list: lambda x: ("list", *x),
    tuple: lambda x: ("tuple", *x),
    set: lambda x: ("set", *x),
    frozenset: lambda x: ("set", *x),
    dict: lambda x: ("dict", *x.items()),
    Parameter: lambda x: ("parameter", x.name, x.default, x.unit),
    ModuleType: lambda x: ("module", x.__name__, _version(x.__name__)),
    CodeType: lambda x: ("code", *(getattr(x, name, None) for name in CODE)),
    CellType: lambda x: ("cell", *_filled(x)),
    MethodType: lambda x: ("method", x.__func__, x.__self__),
    property: lambda x: ("property", x.fget),
    staticmethod: lambda x: ("staticmethod", x.__func__),
    classmethod: lambda x: ("classmethod", x.__func__),
}
"""Type of an object -> its kind, and the objects that it consists of."""


def _parts(x: Any) -> tuple[Any, ...]:
    """The kind of an object, and the objects that it consists of. Raises _Hidden: that cannot be read."""
    if type(x) in PARTS:
        return PARTS[type(x)](x)
    if isinstance(x, BuiltinFunctionType) and not isinstance(x.__self__, (ModuleType, type(None))):
        return "builtin method", x.__name__, x.__self__
    if isinstance(x, (FunctionType, type, BuiltinFunctionType)) and _is_installed(x.__module__):
        return "name", x.__module__, x.__qualname__, _version(x.__module__)
    if isinstance(x, FunctionType):
        return "function", x.__code__, x.__defaults__, x.__kwdefaults__, x.__closure__, _reached(x), vars(x)
    if isinstance(x, type):
        return "class", x.__qualname__, x.__bases__, *_body(x)
    if type(x) is np.ndarray and not x.dtype.hasobject:
        return "array", repr(x.dtype), x.shape, x.tobytes()
    if hasattr(x, "__wrapped__"):
        return "wrapper", type(x), x.__wrapped__
    return "object", *_pickled(x)


def _reached(function: FunctionType) -> list[tuple[str, Any]]:
    """The globals that a function and the functions within it name, with their names."""
    names, known = _names(function.__code__), function.__globals__
    return [(name, _of_module(known[name], names)) for name in _globals(function.__code__) if name in known]


def _body(cls: type) -> list[tuple[str, Any]]:
    """The functions and other attributes of a class, with their names, without what Python itself adds."""
    body = {n: x for n, x in vars(cls).items() if isinstance(x, FunctionType) or not n.startswith(("__", "_abc_"))}
    return sorted(body.items(), key=lambda item: item[0])


def _filled(cell: CellType) -> tuple[Any, ...]:
    """The content of a closure's cell, nothing if it is empty."""
    try:
        return (cell.cell_contents,)
    except ValueError:
        return ()


def _pickled(x: Any) -> list[Any]:
    """The parts by which an object is pickled. Raises _Hidden: it is not."""
    try:
        reduced = x.__reduce_ex__(4)
    except Exception as error:  # the pickling code of a user's object may raise anything
        raise _Hidden(f"{brief(x)}, which cannot be pickled") from error
    return [reduced] if isinstance(reduced, str) else [list(part) if isinstance(part, Iterator) else part for part in reduced]


def _every(code: CodeType) -> Iterator[CodeType]:
    """Code, and that of the functions within it."""
    yield code
    for part in code.co_consts:
        if isinstance(part, CodeType):
            yield from _every(part)


def _globals(code: CodeType) -> list[str]:
    """The names of globals in code, sorted."""
    return sorted({x.argval for one in _every(code) for x in get_instructions(one) if x.opname in ("LOAD_GLOBAL", "LOAD_NAME")})


def _names(code: CodeType) -> list[str]:
    """The names of globals and attributes in code, sorted."""
    return sorted({name for one in _every(code) for name in one.co_names})


def _of_module(x: Any, names: list[str]) -> Any:
    """The named attributes of a user's module with their names; another object as it is."""
    if not isinstance(x, ModuleType) or _is_installed(x.__name__):
        return x
    return [x.__name__, [(name, _of_module(vars(x)[name], names)) for name in names if name in vars(x)]]


@cache
def _is_installed(module: str | None) -> bool:
    """Whether a module belongs to Python, to an installed package or to this library."""
    top = (module or "").partition(".")[0]
    if top == "pfaffian" or (top in sys.stdlib_module_names and top != "__main__"):
        return True
    file = getattr(sys.modules.get(top), "__file__", None)
    if top == "__main__" or not file:
        return False
    libraries = [sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    known = [*libraries, *site.getsitepackages(), site.getusersitepackages()]
    return any(Path(file).resolve().is_relative_to(Path(place).resolve()) for place in known)


def _version(module: str) -> str:
    """Version of the package of a module, where it has one."""
    return str(getattr(sys.modules.get(module.partition(".")[0]), "__version__", ""))
