"""Pages of the public interface in Markdown, one for each room, from the names and docstrings."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import Any

import pfaffian as pf

_SECTION = re.compile(r"^(Args|Returns|Example|Examples):$")
_ENTRY = re.compile(r"^    (\*{0,2}[A-Za-z_][\w., *]*): (.*)$")
_WARNED = re.compile(r"^(Raises|Warns|Stops) ([^:]+): ")


def public_names(module: ModuleType) -> list[str]:
    """Public names of a room, which are those in its `dir()`. A room has no `__all__`, since `help()` would list it with
    docstrings."""
    return [name for name in dir(module) if not name.startswith("_")]


def api_pages() -> dict[str, str]:
    """Texts of the pages by name."""
    rooms = [name for name in public_names(pf) if isinstance(getattr(pf, name), ModuleType)]
    made = {"api/pf.md": _top()}
    for room in rooms:
        module = getattr(pf, room)
        made[f"api/{room}.md"] = f"# pf.{room}\n\n{_module(module)}\n" + "\n".join(_members(module, f"pf.{room}"))
    made["api/index.md"] = _index(rooms)
    return made


def tasks() -> dict[str, list[str]]:
    """Task -> names of `pf` for it, as the text of `help(pf)` groups and orders them."""
    found: dict[str, list[str]] = {}
    group = task = ""
    names = {name for name in public_names(pf) if not isinstance(getattr(pf, name), ModuleType)}
    for line in (inspect.getdoc(pf) or "").split("\n\n")[1].split("\n"):
        indent, words = len(line) - len(line.lstrip()), line
        if indent <= _SUBTASK:  # others continue the line above
            task, words = re.split(" {2,}", line.strip(), maxsplit=1)
            group, task = (task, task) if indent < _SUBTASK else (group, f"{group}: {task}")
        found[task] = [*found.get(task, ()), *dict.fromkeys(x for x in re.findall(r"\w+", words) if x in names)]
        names -= set(found[task])
    return found


_SUBTASK = 8
"""Indentation of a part of a task in `help(pf)`."""


def _index(rooms: Sequence[str]) -> str:
    rows = [f"| {task} | {', '.join(f'{{py:obj}}`{x} <pf.{x}>`' for x in names)} |" for task, names in tasks().items()]
    listed = [f"* [pf.{room}]({room}.md): {_about(getattr(pf, room))}" for room in rooms]
    return "\n".join(
        [
            "# Functions by task\n",
            "What `help(pf)` says in a terminal; `help(pf.run)` shows the arguments of one name and an example.\n",
            "| to | use |\n|---|---|",
            *rows,
            "\n## Rooms by subject\n",
            "Further names are in rooms, which `pf` brings with it: `pf.control.pose`, `pf.results.causes`.\n",
            *listed,
            "\n```{toctree}\n:hidden:\n",
            "pf",
            *rooms,
            "```\n",
        ]
    )


def _about(module: ModuleType) -> str:
    words = " ".join((inspect.getdoc(module) or "").split("\n\n")[0].split())
    return _plain(words[:1].lower() + words[1:])


def _top() -> str:
    """The page of `pf`: its names under the tasks of `help(pf)`."""
    text = f"# pf\n\n{_module(pf)}\n"
    for task, names in tasks().items():
        text += f"\n## {task[:1].upper()}{task[1:]}\n\n" + "\n".join(_entry(f"pf.{x}", getattr(pf, x)) for x in names)
    return text


def _module(module: ModuleType) -> str:
    """The text of a room that help() shows, verbatim."""
    return f"```text\n{inspect.getdoc(module)}\n```\n"


def _members(module: ModuleType, path: str) -> Iterator[str]:
    """The names of a room in the order in which its text mentions them, with its subrooms last."""
    text = inspect.getdoc(module) or ""
    is_room = path.count(".") == 1
    names = public_names(module) if is_room else [n for n, x in vars(module).items() if _belongs(n, x, module)]
    found = {name: re.search(rf"\b{name}\b", text) for name in names}
    order = sorted(names, key=lambda n: (isinstance(getattr(module, n), ModuleType), m.start() if (m := found[n]) else 10**6))
    for name in order:
        value = getattr(module, name)
        if isinstance(value, ModuleType):
            yield f"\n## {path}.{name}\n\n{_module(value)}\n"
            yield from _members(value, f"{path}.{name}")
        else:
            yield _entry(f"{path}.{name}", value)


def _belongs(name: str, value: Any, module: ModuleType) -> bool:
    made = inspect.isfunction(value) or inspect.isclass(value)
    return made and not name.startswith("_") and value.__module__ == module.__name__ and bool(inspect.getdoc(value))


def _entry(path: str, value: Any) -> str:
    """A name with its arguments and its text, as a directive of Sphinx."""
    kind = "class" if inspect.isclass(value) else "function" if callable(value) else "data"
    text = "" if kind == "data" else _text(inspect.getdoc(value) or "")
    return f"`````{{py:{kind}}} {path}{_arguments(value) if kind != 'data' else ''}\n\n{text}\n`````\n"


def _arguments(value: Any) -> str:
    """The arguments and their defaults, without types, which are in the text."""
    try:
        parameters = inspect.signature(value).parameters.values()
    except ValueError:
        return "()"
    plain = [
        p.replace(annotation=p.empty, default=p.empty if p.default is p.empty else _Default(p.default)) for p in parameters
    ]
    return str(inspect.Signature(plain))


class _Default:
    """A default, as a signature shows it."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __repr__(self) -> str:
        text = repr(self.value)
        return "..." if text.startswith("<") or " at 0x" in text else text


def _text(doc: str) -> str:
    """The Markdown of a docstring: arguments as a list, equations and examples as blocks, the rest as paragraphs."""
    out, section, block = [], "", []

    def close() -> None:
        if block:
            out.append("```text\n" + inspect.cleandoc("\n".join(["", *block])) + "\n```")
            block.clear()

    for line in doc.split("\n"):
        if found := _SECTION.match(line):
            close()
            section = found[1]
            out.append(f"\n**{section}**\n")
        elif line and not line.startswith(" "):
            close()
            section = ""
            out.append(_WARNED.sub(r"\n**\1** \2: ", _plain(line)))
        elif section in ("Args", "Returns"):
            found = _ENTRY.match(line)
            out.append(f"* `{found[1]}`: {_plain(found[2])}" if found else f"  {_plain(line.strip())}")
        elif line.strip() or block:
            block.append(line)
        else:
            out.append("")
    close()
    return "\n".join(out)


def _plain(line: str) -> str:
    """Text with its asterisks, underscores, brackets and signs escaped for Markdown."""
    parts = line.split("`")
    return "`".join(re.sub(r"([*_<>\[\]{}$~|#])", r"\\\1", p) if i % 2 == 0 else p for i, p in enumerate(parts))
