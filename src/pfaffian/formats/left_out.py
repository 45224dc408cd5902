"""What of a file a mechanism cannot represent: collected while the file is read, and warned of once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from pfaffian.errors import ModelWarning, notice
from pfaffian.formats.number import printable
from pfaffian.model.mechanism import Mechanism
from pfaffian.model.unphysical import unphysical

LeftOut = dict[str, list[str]]
"""What was left out or changed, in words -> the elements, where it has some."""

SHOWN = 8
"""Elements of a kind that the warning lists."""

AS_THEY_ARE = "inertias that no body can have are used as they are"


def leave(lost: LeftOut, what: str, *elements: str) -> None:
    """Add elements to what is left out."""
    lost.setdefault(what, []).extend(elements)


def warned(m: Mechanism, source: str, lost: LeftOut) -> Mechanism:
    """The mechanism, lenient only where it must be. Warns ModelWarning: all that was left out or changed, in one message."""
    wrong = unphysical(m)
    if wrong:
        leave(lost, AS_THEY_ARE, *wrong)
    if lost:
        parts = [what + (f": {_listed(elements)}" if elements else "") for what, elements in lost.items()]
        notice(f"{source}: {'; '.join(parts)}", ModelWarning)
    return replace(m, lenient=bool(wrong))


def as_they_are(wrong: Mapping[str, str]) -> str:
    """What `unphysical` found, as a warning says it: bodies and reasons."""
    reasons = "; ".join(f"{printable(n)}: {reason}" for n, reason in list(wrong.items())[:10])
    return f"{AS_THEY_ARE}: {reasons}" + (f"; and {len(wrong) - 10} more" if len(wrong) > 10 else "")


def _listed(elements: Iterable[str]) -> str:
    every = list(dict.fromkeys(elements))
    more = f" and {len(every) - SHOWN} more" if len(every) > SHOWN else ""
    return ", ".join(printable(e) for e in every[:SHOWN]) + more
