"""The errors and warnings of the library, and helpers for their messages.

Each message names the element at fault, what is wrong and the way out.
"""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple, TypeVar

VALUE_LENGTH = 80
"""Largest number of characters of a user's value that a message repeats."""

LISTED_NAMES = 12
"""Largest number of names that a message lists."""

MESSAGE_LENGTH = 4000
"""Largest number of characters of a message, however long the user's names in it are."""


class PfaffianError(Exception):
    """The base class of all errors that the library raises on purpose.

    A message has at most 4000 characters, however long the user's names in it are.

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
    """An error in a mechanism, file, array or setting. The message names the element, what is wrong and what to do.

    It is also a ValueError.

    Example:
        >>> import pfaffian as pf
        >>> pf.joint("hinge", "revolute", "world", "world")
        Traceback (most recent call last):
        pfaffian.errors.ModelError: joint 'hinge': parent and child are both 'world'
    """


class RunError(PfaffianError, RuntimeError):
    """An error that stops a computation. The message gives the time, the place and the reason.

    It is also a RuntimeError.

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
    """An error while equations are traced, printed as C or compiled. The message gives the reason.

    It is also a RuntimeError. Where a compiler fails, the message also names the file with its C source.

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
    """An error in compiled code: its results differ from those of the interpreter."""


class ModelWarning(UserWarning):
    """A warning about a file that is read although something in it is changed, ignored or probably wrong.

    The message names this part of the file and the way out.

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
        ('ModelWarning', "URDF: dry friction is left out: 'hinge'; friction='smooth' reads it")
    """


class RunWarning(UserWarning):
    """A warning about a run whose result is incomplete or exceeds limits. The message names the runs and the reason.

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


class Notice(NamedTuple):
    """A warning that is not issued yet."""

    message: str
    category: type[Warning]


_SINK: ContextVar[Callable[[Notice], object] | None] = ContextVar("sink", default=None)
"""What receives the notices of this thread instead of the user."""


@contextmanager
def collected() -> Iterator[list[str]]:
    """A context in which the warnings of this thread are collected in a list instead of being issued."""
    messages: list[str] = []
    token = _SINK.set(lambda x: messages.append(x.message))
    try:
        yield messages
    finally:
        _SINK.reset(token)


_Kept = TypeVar("_Kept")


def with_notices(make: Callable[..., _Kept], *arguments: Any) -> tuple[_Kept, tuple[Notice, ...]]:
    """make(*arguments), and the different notices that it gave. They are issued if it fails, and otherwise left to the caller,
    who may keep them with the result to issue them each time that it is used."""
    notices: dict[Notice, None] = {}
    token = _SINK.set(notices.setdefault)
    try:
        result = make(*arguments)
    except BaseException:
        _SINK.reset(token)
        issue(notices)
        raise
    _SINK.reset(token)
    return result, tuple(notices)


def issue(notices: Iterable[Notice]) -> None:
    """Issue notices that were kept."""
    for x in notices:
        notice(*x)


def notice(message: str, category: type[Warning]) -> None:
    """Issue a warning at the line of the user's code that called the library, once in each of its calls; or hand it to the
    context that receives notices."""
    if (sink := _SINK.get()) is not None:
        sink(Notice(bounded(message), category))
        return
    _warn_user(message, category)


@cache
def notice_once(message: str) -> None:
    """Issue a RuntimeWarning at the line of the user's code that called the library, once in each process for each message.

    It is not collected: who collects messages may drop them since they come again, and this one would not.
    """
    _warn_user(message, RuntimeWarning)


_BETWEEN = ("contextlib", "functools")
"""Modules whose decorators stand between functions of the library."""


def _warn_user(message: str, category: type[Warning]) -> None:
    """Warn at the innermost line outside the library, once in each call from there.

    The warnings of a call are noted among the local variables of its function, and so end with it.
    """
    level, frame, called = 2, sys._getframe(1), sys._getframe(1)
    while frame.f_back and _is_of_library(frame.f_globals.get("__name__", "")):
        level, frame, called = level + 1, frame.f_back, frame
    given = called.f_locals.setdefault("(warnings)", set())
    if (message, category) not in given:
        given.add((message, category))
        warnings.warn(bounded(message), category, stacklevel=level)


def _is_of_library(module: str) -> bool:
    """Whether a module's functions are the library's own, or are called by it only."""
    return module.startswith("pfaffian.") or module in _BETWEEN


_LONG_WORD = re.compile(r"\S{200,}")


def bounded(message: str) -> str:
    """The message, shortened to MESSAGE_LENGTH characters: first its long words, then its middle.

    The end stays, since it contains the way out.
    """
    if len(message) <= MESSAGE_LENGTH:
        return message
    words = _LONG_WORD.sub(lambda word: f"{word[0][:60]}... ({len(word[0])} characters) ...{word[0][-20:]}", message)
    half = MESSAGE_LENGTH // 2 - 4
    return words if len(words) <= MESSAGE_LENGTH else f"{words[:half]} ... {words[-half:]}"


def brief(value: object) -> str:
    """A user's value as a short text on one line, for messages."""
    if callable(value) and hasattr(value, "__name__"):
        return f"the {type(value).__name__} {value.__name__}"
    words = " ".join(repr(value).split())
    return words if len(words) <= VALUE_LENGTH else f"{words[:VALUE_LENGTH]}... ({type(value).__name__})"


def is_one_of(value: object, words: Collection[str]) -> bool:
    """Whether a caller's choice is one of the words; False for all that is no text, such as an array, whose == has no truth
    value."""
    return isinstance(value, str) and value in words


def nearest(name: object, known: Sequence[str]) -> str:
    """The end of a message about an unknown name: the most similar known name, if any, and a list of the known names."""
    near = get_close_matches(str(name)[:VALUE_LENGTH], known, 1)
    return f"{f'did you mean {near[0]!r}? ' if near else ''}there are {listed(known)}"


KIND_SYNONYMS = {
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
"""Names of joint and closure kinds in other libraries -> names of this library, of which the first known one applies."""


def meant_kind(kind: object, known: Sequence[str]) -> str:
    """A question that suggests the known kind that was probably meant; empty if no known kind is similar."""
    word = str(kind)[:VALUE_LENGTH].lower()
    near = [k for k in KIND_SYNONYMS.get(word, ()) if k in known] or get_close_matches(word, known, 1)
    return f"did you mean {near[0]!r}?" if near else ""


def unknown_kind(kind: object, known: Sequence[str]) -> str:
    """The end of a message about an unknown kind: a list of the known kinds, and the one that was probably meant."""
    meant = meant_kind(kind, known)
    return f"kind {brief(kind)} is unknown; one of {', '.join(known)}" + (f"; {meant}" if meant else "")


def listed(names: Sequence[str], most: int = LISTED_NAMES) -> str:
    """The first few names, at most `most`, with their total number if there are more."""
    more = f", ... ({len(names)} in all)" if len(names) > most else ""
    return ", ".join(names[:most]) + more or "none"


def plural(count: int, word: str) -> str:
    """A count with its noun: 1 body, 2 bodies."""
    many = f"{word[:-1]}ies" if re.search("[^aeiou]y$", word) else f"{word}s"
    return f"{count} {word if count == 1 else many}"


def install(package: str) -> str:
    """The command that installs an optional package.

    It works in every shell, unlike a package with extras in brackets, which would need quotes.
    """
    return f"`pip install {package}`"


def optional(module: str, package: str, why: str, otherwise: str = "") -> Any:
    """The module of an optional package. Raises ModelError: the package is not installed.

    module: dotted name of the module.
    package: name under which pip installs it.
    why: subject and verb of the message, such as "meshes need".
    otherwise: another way out, such as "write .html"; none by default.
    """
    try:
        import_module(module.partition(".")[0])
        return import_module(module)
    except ImportError:
        way = f"; or {otherwise}" if otherwise else ""
        raise ModelError(f"{why} the package {package}: run {install(package)}{way}") from None
