"""Writing XML files: elements as lines, numbers to the last digit, and helpers for both URDF and MJCF."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from xml.sax.saxutils import quoteattr  # only used for writing

import casadi as ca
import numpy as np

from pfaffian.errors import ModelError, ModelWarning, notice
from pfaffian.formats.text.formula import constant
from pfaffian.formats.text.strict_number import printable
from pfaffian.model.pose import Pose


@dataclass
class Tag:
    """An element to write.   name: its tag.   given: attribute -> number, numbers or text.   inside: its children."""

    name: str
    given: dict[str, object] = field(default_factory=dict)
    inside: list[Tag] = field(default_factory=list)

    def add(self, name: str, /, **given: object) -> Tag:
        """Add a child element. Attributes that are None are left out, and an underscore at the end of a name is dropped."""
        made = Tag(name, {key.rstrip("_"): x for key, x in given.items() if x is not None})
        self.inside.append(made)
        return made

    def lines(self, depth: int = 0) -> Iterable[str]:
        """The lines of the element and its children.   depth: of indentation."""
        words = "".join(f" {key}={quoteattr(attribute(x))}" for key, x in self.given.items())
        start = f"{'  ' * depth}<{self.name}{words}"
        if not self.inside:
            yield f"{start}/>"
            return
        yield f"{start}>"
        for tag in self.inside:
            yield from tag.lines(depth + 1)
        yield f"{'  ' * depth}</{self.name}>"


def attribute(x: object) -> str:
    """A text, a number or numbers as the value of an attribute."""
    if isinstance(x, str):
        return x
    return " ".join(repr(float(n)) for n in np.atleast_1d(np.asarray(x, dtype=float)))


def document(root: Tag, comment: str = "") -> str:
    """The text of an XML file with this root element.   comment: a line before it."""
    words = f"<!-- {comment.replace('--', '-')} -->\n" if comment else ""
    return '<?xml version="1.0" encoding="utf-8"?>\n' + words + "\n".join(root.lines()) + "\n"


def numbers(x: ca.SX, what: str) -> np.ndarray:
    """The values of an SX without parameters, as a flat array by columns.   what: its owner, for errors."""
    return constant(x, what).ravel(order="F")


def plain(X: Pose, what: str) -> tuple[np.ndarray, np.ndarray]:
    """(3, 3) rotation and (3,) position of a pose without parameters.   what: its owner, for errors."""
    return constant(X.R, what), constant(X.p, what).ravel()


def composed(a: tuple[np.ndarray, np.ndarray], b: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """The composition a b of two poses."""
    return a[0] @ b[0], a[1] + a[0] @ b[1]


def inverted(a: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """The inverse of a pose."""
    return a[0].T, -a[0].T @ a[1]


def is_one(R: np.ndarray) -> bool:
    """Whether a rotation is the identity, up to rounding."""
    return bool(np.abs(R - np.eye(3)).max() < 1e-14)


def check_names(names: Iterable[str], kind: str) -> None:
    """Raise ModelError if a name cannot be written.   kind: format of the file."""
    for name in names:
        if not name or len(name) > 128 or not name.isprintable():
            raise ModelError(f"the name {printable(name)} cannot be written as {kind}; use 1 to 128 printable characters")


def warn_lost(lost: list[str], kind: str) -> None:
    """Warn of everything that the file lacks, in one message.   kind: its format."""
    if lost:
        more = f" and {len(lost) - 20} more" if len(lost) > 20 else ""
        notice(f"{kind} cannot represent: {'; '.join(lost[:20])}{more}", ModelWarning)
