"""A safe subset of YAML: a tree of texts, lists and maps with line numbers.

Scalars stay text. The reader of each key decides whether a scalar is a number, a name or a truth value, so `no`, `1_000`,
`017` or `1:30` never turn into something else. Tags, anchors, aliases, duplicate keys and a second document are refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

import casadi as ca
import yaml

from pfaffian.errors import ModelError, meant_kind, nearest
from pfaffian.formats.text.expression import expression, plain
from pfaffian.formats.text.strict_number import printable

MAX_CHARACTERS = 4_000_000
MAX_DEPTH = 16
IN_C = getattr(yaml, "CSafeLoader", None)
"""PyYAML's loader by libyaml, which gives the same events in a tenth of the time; None where PyYAML was built without it."""
COMMON = re.compile(r"[ ->@-~\n]*")
"""Texts for libyaml: printable ASCII without `?`. Beside tabs, `?` and special characters it accepts what PyYAML refuses."""
CLOSE_COMMENT = re.compile(r"[|>][-+0-9]*#")
"""A comment right after the head of a block of text, which libyaml accepts too."""


class Node(NamedTuple):
    """A value in a file.   where: source, line and path of keys, for errors.   plain: whether a scalar has no quotes."""

    value: str | list[Node] | dict[str, Node]
    where: str
    plain: bool = False

    def error(self, message: str) -> ModelError:
        """A ModelError that begins with the place of the value."""
        return ModelError(f"{self.where}: {message}")

    def map(self) -> dict[str, Node]:
        """The value as a map. Raises ModelError: it is something else."""
        if not isinstance(self.value, dict):
            raise self.error("a map of `key: value` is needed")
        return self.value

    def fields(self, allowed: Iterable[str], required: Iterable[str] = ()) -> dict[str, Node]:
        """The value as a map with known keys only. Raises ModelError: a key is unknown or missing."""
        found, known = self.map(), dict.fromkeys(allowed)
        for key, node in found.items():
            if key not in known:
                raise node.error(f"the key {printable(key)} is unknown; {nearest(key, [*known])}")
        for key in required:
            if key not in found:
                raise self.error(f"the key {key!r} is missing; add it")
        return found

    def items(self, count: int | None = None) -> list[Node]:
        """The value as a list.   count: required length, None for any. Raises ModelError: it is something else."""
        if not isinstance(self.value, list) or count not in (None, len(self.value)):
            raise self.error("a list is needed" if count is None else f"a list of length {count} is needed")
        return self.value

    def text(self) -> str:
        """The value as a text that is not empty. Raises ModelError: it is something else, or null."""
        if not isinstance(self.value, str) or not self.value or (self.plain and self.value in ("~", "null")):
            raise self.error("a text or number is needed here")
        return self.value

    def choice(self, choices: Iterable[str]) -> str:
        """The value as one of the choices. Raises ModelError: it is none of them; the message names the nearest one."""
        known, value = list(choices), self.text()
        if value not in known:
            meant = meant_kind(value, known)
            raise self.error(f"{printable(value)} is unknown; {meant}{' ' if meant else ''}there are {', '.join(known)}")
        return value

    def truth(self) -> bool:
        """The value as true or false."""
        return self.choice(("true", "false")) == "true"

    def number(self, names: Mapping[str, ca.SX]) -> ca.SX:
        """(1, 1) SX of a number or an expression.   names: name -> its symbol or value."""
        text = self.text()
        value = plain(text)
        if value is not None:
            return ca.SX(value)
        if text in names and not names[text].is_constant():
            return names[text]
        return expression(text, names, self.where)

    def constant(self, names: Mapping[str, ca.SX] | None = None) -> float:
        """The value of a number, or of an expression that is constant."""
        if (plain_value := plain(self.text())) is not None:
            return plain_value
        value = self.number(names or {})
        if not value.is_constant():
            raise self.error("a plain number is needed here, not a parameter")
        return float(value)

    def numbers(self, count: int, names: Mapping[str, ca.SX]) -> ca.SX:
        """(count, 1) SX of a list of numbers or expressions."""
        nodes = self.items(count)
        values = [value for node in nodes if (value := plain(node.text())) is not None]
        if nodes and len(values) == len(nodes):
            return ca.SX(values)
        return ca.vertcat(*[node.number(names) for node in nodes])

    def array(self, names: Mapping[str, ca.SX]) -> ca.SX | list[Any]:
        """A number or expression, or nested lists of them."""
        return [node.array(names) for node in self.value] if isinstance(self.value, list) else self.number(names)

    def constants(self, count: int) -> tuple[float, ...]:
        """The values of a list of `count` constants."""
        return tuple(node.constant() for node in self.items(count))


def parse_tree(text: str, source: str) -> Node:
    """Parse a YAML text with one document.   source: name of the text, for errors.

    Raises ModelError: the YAML is not well-formed, or has tags, anchors, aliases, duplicate keys, a second document, more than
    4,000,000 characters or 16 levels.
    """
    source = printable(source)[1:-1]
    if len(text) > MAX_CHARACTERS:
        raise ModelError(f"{source}: the text has more than {MAX_CHARACTERS} characters; put large robots into a URDF file")
    if IN_C is not None and COMMON.fullmatch(text) and not CLOSE_COMMENT.search(text):
        # Any error is left to the parser in Python: what is refused, and in which words, depends on no library in C. So is a
        # document without content, which has another line there.
        with suppress(ModelError, yaml.YAMLError, ValueError, OverflowError):
            found = _document(yaml.parse(text, Loader=IN_C), source)
            if found.value:
                return found
    try:
        return _document(yaml.parse(text, Loader=yaml.SafeLoader), source)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        reason = printable(error.problem or error.context or "syntax error")[1:-1]
        raise ModelError(f"{source} line {line}: this is not well-formed YAML: {reason}") from None
    except ModelError:
        raise
    except (yaml.YAMLError, ValueError, OverflowError):
        # PyYAML does not catch some errors of Python, such as those of chr().
        raise ModelError(f"{source}: this is not well-formed YAML: it has characters that YAML does not allow") from None


def _document(events: Iterator[yaml.Event], source: str) -> Node:
    """The root value of a YAML text with one document.   events: of PyYAML's parser."""
    root = None
    for event in events:
        if isinstance(event, (yaml.ScalarEvent, yaml.CollectionStartEvent, yaml.AliasEvent)):
            if root is not None:
                raise ModelError(f"{source} line {_line(event)}: a second document; a file describes one mechanism")
            root = _node(event, events, source, _line(event), "", 0)
    if root is None:
        raise ModelError(f"{source}: the file is empty")
    return root


def _node(event: yaml.Event, events: Iterator[yaml.Event], source: str, line: int, path: str, depth: int) -> Node:
    """The value that begins with an event.   events: those that follow.   path: keys and indices that lead to the value."""
    where = f"{source} line {line}" + (f": {path}" if path else "")
    if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None) is not None:
        raise ModelError(f"{where}: anchors and aliases are not allowed; write the value out, or use a parameter")
    if isinstance(event, (yaml.ScalarEvent, yaml.CollectionStartEvent)) and event.tag is not None:
        raise ModelError(f"{where}: tags such as {printable(event.tag)} are not allowed; remove it")
    if isinstance(event, yaml.ScalarEvent):
        return Node(event.value, where, not event.style)
    if depth == MAX_DEPTH:
        raise ModelError(f"{where}: lists and maps are nested more than {MAX_DEPTH} deep; write them flatter")
    if isinstance(event, yaml.SequenceStartEvent):
        items: list[Node] = []
        for inner in events:
            if isinstance(inner, yaml.SequenceEndEvent):
                break
            items.append(_node(inner, events, source, _line(inner), f"{path}[{len(items)}]", depth + 1))
        return Node(items, where)
    return Node(_pairs(events, source, where, path, depth), where)


def _pairs(events: Iterator[yaml.Event], source: str, where: str, path: str, depth: int) -> dict[str, Node]:
    """The keys and values of a map, from the events after its start."""
    pairs: dict[str, Node] = {}
    for inner in events:
        if isinstance(inner, yaml.MappingEndEvent):
            break
        line = _line(inner)
        key = _node(inner, events, source, line, path, depth + 1)
        if not isinstance(key.value, str) or not key.value:
            raise key.error("a key must be a text that is not empty")
        if key.value in pairs:
            raise key.error(f"the key {printable(key.value)} is given twice; remove one of them")
        here = printable(key.value)[1:-1]
        pairs[key.value] = _node(next(events), events, source, line, f"{path}.{here}" if path else here, depth + 1)
    return pairs


def _line(event: yaml.Event) -> int:
    return event.start_mark.line + 1 if event.start_mark else 1
