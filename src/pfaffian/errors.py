"""The errors and warnings that a caller can act on. Each message names the element at fault and the way out."""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from difflib import get_close_matches
from importlib import import_module
from typing import Any

LONGEST = 80
"""Characters of a caller's value that a message repeats."""

LISTED = 12
"""Names that a message lists."""

MESSAGE = 4000
"""Characters of a message, whatever it repeats of the caller's names."""


class PfaffianError(Exception):
    """The root of all errors that the library raises on purpose; catching it catches them all.

    A message has at most 4000 characters, whatever it repeats of the caller's names.

    Example:
        >>> import pfaffian as pf
        >>> try:
        ...     pf.body("rod", mass="heavy")
        ... except pf.PfaffianError as error:
        ...     print(error)
        body 'rod': mass: 'heavy' is not a number, a Parameter or an expression of Parameters
    """

    def __init__(self, message: str = "") -> None:
        super().__init__(bounded(message))


class ModelError(PfaffianError, ValueError):
    """A mechanism, file, array or setting is wrong: the message names the element, what is wrong with it and what to do.

    It is a ValueError too.

    Example:
        >>> import pfaffian as pf
        >>> pf.joint("hinge", "revolute", "world", "world")
        Traceback (most recent call last):
        pfaffian.errors.ModelError: joint 'hinge': parent and child are both 'world'
    """


class RunError(PfaffianError, RuntimeError):
    """A computation cannot go on: the message says when, where and why.

    It is a RuntimeError too.

    Example:
        >>> import pfaffian as pf
        >>> rod, hinge = pf.body("rod", mass=2.0, inertia=0.1), pf.joint("hinge", "revolute", "world", "rod")
        >>> stop = pf.holonomic("stop", lambda k: k.joint("hinge") - 0.5)
        >>> m = pf.mechanism("pendulum", [rod], [hinge], constraints=[stop])
        >>> try:
        ...     pf.assemble(m, {"hinge": 0.3})
        ... except pf.RunError as error:
        ...     print(error)
        the coordinate 'hinge' = 0.3 rad ... 0.5
    """


class BuildError(PfaffianError, RuntimeError):
    """The equations cannot be traced, printed as C or compiled; the message says why.

    It is a RuntimeError too. Where a compiler fails, the message also says where its C source is.

    Example:
        >>> import pfaffian as pf
        >>> rod, hinge = pf.body("rod", mass=2.0, inertia=0.1), pf.joint("hinge", "revolute", "world", "rod")
        >>> m = pf.mechanism("pendulum", [rod], [hinge])
        >>> try:
        ...     pf.run(m, duration=0.01, backend="fortran")
        ... except pf.BuildError as error:
        ...     print(error)
        backend 'fortran': ...
    """


class MiscompiledError(BuildError):
    """A compiler's object that does not compute what the interpreter does."""


class ModelWarning(UserWarning):
    """A file is read, but something in it is changed, ignored or looks wrong: the message says what, and the way out.

    Example:
        >>> import warnings
        >>> import pfaffian as pf
        >>> links = '<link name="base"/><link name="rod"><inertial><mass value="1"/>{}</inertial></link>'
        >>> tensor = '<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>'
        >>> ends = '<parent link="base"/><child link="rod"/><dynamics friction="0.2"/>'
        >>> hinge = f'<joint name="hinge" type="continuous">{ends}</joint>'
        >>> with warnings.catch_warnings(record=True, action="always") as caught:
        ...     m = pf.formats.parse_urdf(f"<robot>{links.format(tensor)}{hinge}</robot>")
        >>> caught[0].category.__name__, str(caught[0].message)
        ('ModelWarning', "URDF: joint friction is ignored: 'hinge'; use damping, or a force of your own")
    """


class RunWarning(UserWarning):
    """A run has a result, but not all that was requested: the message says which runs stopped or left a limit, and why.

    Example:
        >>> import warnings
        >>> import pfaffian as pf
        >>> hinge = pf.joint("hinge", "revolute", "world", "rod", limits=(-1, 1))
        >>> m = pf.mechanism("pendulum", [pf.body("rod", mass=2.0, inertia=0.1)], [hinge])
        >>> with warnings.catch_warnings(record=True, action="always") as caught:
        ...     result = pf.run(m, [1.5], duration=0.01, backend="numpy")
        >>> caught[0].category.__name__, str(caught[0].message)
        ('RunWarning', "limits ... joint 'hinge' ... 0.5 rad")
    """


_COLLECTED: ContextVar[list[str] | None] = ContextVar("collected", default=None)


@contextmanager
def collected() -> Iterator[list[str]]:
    """Within it, warnings of this thread are collected instead of given."""
    messages: list[str] = []
    token = _COLLECTED.set(messages)
    try:
        yield messages
    finally:
        _COLLECTED.reset(token)


def notice(message: str, category: type[Warning]) -> None:
    """Warn at the line that called the library."""
    if (messages := _COLLECTED.get()) is not None:
        messages.append(bounded(message))
        return
    level, frame = 2, sys._getframe(1)
    while frame.f_back and frame.f_globals.get("__name__", "").startswith("pfaffian."):
        level, frame = level + 1, frame.f_back
    warnings.warn(bounded(message), category, stacklevel=level)


_LONG_WORD = re.compile(r"\S{200,}")


def bounded(message: str) -> str:
    """The message, shortened to MESSAGE characters: long words first, then the middle. Its end, the way out, is kept."""
    if len(message) <= MESSAGE:
        return message
    words = _LONG_WORD.sub(lambda word: f"{word[0][:60]}... ({len(word[0])} characters) ...{word[0][-20:]}", message)
    half = MESSAGE // 2 - 4
    return words if len(words) <= MESSAGE else f"{words[:half]} ... {words[-half:]}"


def brief(value: object) -> str:
    """A caller's value as a message repeats it: short and on one line."""
    if callable(value) and hasattr(value, "__name__"):
        return f"the {type(value).__name__} {value.__name__}"
    words = " ".join(repr(value).split())
    return words if len(words) <= LONGEST else f"{words[:LONGEST]}... ({type(value).__name__})"


def nearest(name: object, known: Sequence[str]) -> str:
    """The end of a message about an unknown name: the nearest known one, and a list."""
    near = get_close_matches(str(name)[:LONGEST], known, 1)
    return f"{f'did you mean {near[0]!r}? ' if near else ''}there are {listed(known)}"


ELSEWHERE = {
    "ball": ("spherical",),
    "cardan": ("universal",),
    "connect": ("coincide", "spherical"),
    "continuous": ("revolute",),
    "floating": ("free",),
    "freejoint": ("free",),
    "freeflyer": ("free",),
    "hinge": ("revolute",),
    "hooke": ("universal",),
    "pin": ("revolute",),
    "rigid": ("fixed", "weld"),
    "rod": ("distance",),
    "rotational": ("revolute",),
    "screw": ("helical",),
    "slide": ("prismatic",),
    "slider": ("prismatic",),
    "socket": ("spherical",),
    "translational": ("prismatic",),
    "weld": ("fixed",),
}
"""Words of other libraries for kinds of joints and closures -> the words here, the first that fits."""


def meant_kind(kind: object, known: Sequence[str]) -> str:
    """The kind that an unknown one probably means, as a question; empty if there is none near."""
    word = str(kind)[:LONGEST].lower()
    near = [k for k in ELSEWHERE.get(word, ()) if k in known] or get_close_matches(word, known, 1)
    return f"did you mean {near[0]!r}?" if near else ""


def unknown_kind(kind: object, known: Sequence[str]) -> str:
    """The end of a message about an unknown kind: all of the library's, and the one that is probably meant."""
    meant = meant_kind(kind, known)
    return f"kind {brief(kind)} is unknown; one of {', '.join(known)}" + (f"; {meant}" if meant else "")


def listed(names: Sequence[str], most: int = LISTED) -> str:
    """The first few names, and how many there are in all."""
    more = f", ... ({len(names)} in all)" if len(names) > most else ""
    return ", ".join(names[:most]) + more or "none"


def plural(count: int, word: str) -> str:
    """A count with its noun: 1 body, 2 bodies."""
    many = f"{word[:-1]}ies" if re.search("[^aeiou]y$", word) else f"{word}s"
    return f"{count} {word if count == 1 else many}"


def install(package: str) -> str:
    """The command that installs an optional package in every shell; extras in brackets would need quotes."""
    return f"`pip install {package}`"


def optional(module: str, package: str, why: str, otherwise: str = "") -> Any:
    """The module of an optional package. Raises ModelError: it is not installed, what for it is needed, how to install it.

    why: the subject and verb of the message, "meshes need".   otherwise: another way out, "write .html".
    """
    try:
        import_module(module.partition(".")[0])
        return import_module(module)
    except ImportError:
        way = f"; or {otherwise}" if otherwise else ""
        raise ModelError(f"{why} the package {package}: run {install(package)}{way}") from None
