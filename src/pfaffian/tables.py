"""Tables name -> row, such as the joint kinds. Keys of compiled code know a row of the library by its name alone.

The rows of the library are therefore read-only. A table to which a user may add rows is a `Registry`; what such a row computes
belongs into the key.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, MutableMapping
from typing import Any, NoReturn, TypeVar

from pfaffian.errors import ModelError, brief

_Row = TypeVar("_Row")


class Table(Mapping[str, _Row]):
    """A table that cannot be changed.

    Args:
        what: what a row is, such as "joint kind".
        rows: {name: row}.
        way: what to do instead of changing a row, for the message.
    """

    def __init__(self, what: str, rows: Mapping[str, _Row], way: str) -> None:
        self._what, self._rows, self._way = what, dict(rows), way

    def __getitem__(self, name: str) -> _Row:
        return self._rows[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def __repr__(self) -> str:
        return f"<{self._what}: {', '.join(self)}>"

    def __setitem__(self, name: str, row: Any) -> None:
        self._refuse(name)

    def __delitem__(self, name: str) -> None:
        self._refuse(name)

    def _refuse(self, name: Any) -> NoReturn:
        """Raise ModelError, with the way out."""
        raise ModelError(f"{self._what} {brief(name)}: rows of the library cannot be changed; {self._way}")


class Registry(Table[_Row], MutableMapping[str, _Row]):
    """A table of the library to which users add rows of their own, which they may also change and delete.

    Args:
        what, rows, way: as of a Table.
        check: (name, row) -> None; raises ModelError if the row does not fit.
        reserved: names with a meaning of their own, which no row may have.
    """

    def __init__(
        self,
        what: str,
        rows: Mapping[str, _Row],
        way: str,
        check: Callable[[str, Any], None],
        reserved: tuple[str, ...] = (),
    ) -> None:
        super().__init__(what, rows, way)
        self._check, self._reserved, self._fixed = check, reserved, frozenset((*rows, *reserved))

    def __setitem__(self, name: str, row: _Row) -> None:
        if not isinstance(name, str) or not name:
            raise ModelError(f"{self._what}: a name must be a non-empty text, got {brief(name)}")
        if name in self._fixed:
            self._refuse(name)
        self._check(name, row)
        self._rows[name] = row

    def __delitem__(self, name: str) -> None:
        if name in self._fixed:
            self._refuse(name)
        del self._rows[name]

    def named(self, name: Any) -> _Row:
        """The row of this name. Raises ModelError: there is none."""
        if not isinstance(name, str) or name not in self._rows:
            known = ", ".join((*self._reserved, *self._rows))
            raise ModelError(f"{self._what} {brief(name)} is unknown; one of {known}")
        return self._rows[name]

    def is_added(self, name: str) -> bool:
        """Whether a user added the row of this name."""
        return name in self._rows and name not in self._fixed
