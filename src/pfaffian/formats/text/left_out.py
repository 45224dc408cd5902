"""Parts of a file that a mechanism cannot represent: collected while the file is read, and reported in one warning."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from pfaffian.errors import ModelError, ModelWarning, notice
from pfaffian.formats.text.strict_number import printable
from pfaffian.model.constraint import Closure
from pfaffian.model.force import Spring
from pfaffian.model.mechanism import Mechanism
from pfaffian.model.unphysical import unphysical

LeftOut = dict[str, list[str]]
"""Message about what was left out or changed -> names of the elements, if any."""

MOST_LISTED = 8
"""Number of elements that the warning lists for each message."""

BELOW_ZERO = "stiffness and damping below zero, which may drive the motion, are used as they are"

_AS_THEY_ARE = "inertias that no body can have are used as they are"


def leave(lost: LeftOut, what: str, *elements: str) -> None:
    """Record that elements were left out or changed.   what: the message."""
    lost.setdefault(what, []).extend(elements)


def warned(m: Mechanism, source: str, lost: LeftOut, strict: Mapping[str, str] | None = None) -> Mechanism:
    """The mechanism, lenient only if it has unphysical inertias. Warns ModelWarning: all that was left out, in one message.

    strict: body -> its place in the file, to refuse unphysical inertias; None to warn of them.
    Raises ModelError: the first such inertia.
    """
    wrong = unphysical(m)
    if wrong and strict is not None:
        name, reason = next(iter(wrong.items()))
        raise ModelError(f"{strict[name]}: {reason}; correct it")
    if wrong:
        leave(lost, as_they_are(wrong))
    if driving := below_zero(m):
        leave(lost, BELOW_ZERO, *driving)
    if lost:
        parts = [what + (f": {_listed(elements)}" if elements else "") for what, elements in lost.items()]
        notice(f"{source}: {'; '.join(parts)}", ModelWarning)
    return replace(m, lenient=bool(wrong))


def below_zero(m: Mechanism) -> list[str]:
    """The joints, closures and springs with a stiffness or damping below zero."""
    parts = (*m.joints, *(x for x in (*m.constraints, *m.forces) if isinstance(x, (Closure, Spring))))
    given = [(p.name, x) for p in parts for x in (p.stiffness, p.damping) if x is not None and not x.is_zero()]
    values = m.values([x for _, x in given])
    return list(dict.fromkeys(name for (name, _), x in zip(given, values, strict=True) if (x.diagonal() < 0).any()))


def as_they_are(wrong: Mapping[str, str]) -> str:
    """The warning about unphysical inertias.   wrong: body -> reason, as `unphysical` returns it."""
    reasons = "; ".join(f"{printable(n)}: {reason}" for n, reason in list(wrong.items())[:10])
    return f"{_AS_THEY_ARE}: {reasons}" + (f"; and {len(wrong) - 10} more" if len(wrong) > 10 else "")


def _listed(elements: Iterable[str]) -> str:
    """The first few names, without repetition, and how many more there are."""
    names = list(dict.fromkeys(elements))
    more = f" and {len(names) - MOST_LISTED} more" if len(names) > MOST_LISTED else ""
    return ", ".join(printable(n) for n in names[:MOST_LISTED]) + more
