"""Circles among things that follow one another, such as joints whose coordinates depend on those of other joints."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping


def circle(follows: Mapping[str, Iterable[str]]) -> list[str]:
    """The names in a circle of things that follow one another, the first of them first in `follows`; empty if there is none.

    follows: name -> names that it follows; names that are no key follow nothing. The time is linear in their number.
    """
    done = set[str]()
    for start in follows:
        way: dict[str, Iterator[str]] = {} if start in done else {start: iter(follows[start])}  # each follows the next
        while way:
            last = next(reversed(way))
            name = next(way[last], None)
            if name is None:
                done.add(last)
                del way[last]
            elif name in way:
                names = [*way]
                return names[names.index(name) :]
            elif name not in done:
                way[name] = iter(follows.get(name, ()))
    return []
