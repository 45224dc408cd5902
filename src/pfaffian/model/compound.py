"""Several forces or constraints that belong together, such as the normal force and the friction of one contact."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import is_dataclass, replace
from typing import Any

from pfaffian.errors import ModelError, brief
from pfaffian.model import reprs
from pfaffian.model.data import data


@data
class Compound:
    """Forces or constraints that belong together; a mechanism takes them as one item of its list `forces` or `constraints`.

    The equations contain each part by itself. Files, pictures and runs know the whole by its record.

    name: of the whole, unlike that of any other force or constraint.
    parts: two or more forces, or two or more constraints, with names of their own.
    of: a frozen dataclass that says what the whole is, such as a contact with its surfaces; None, the default, if its parts say
        all. Its fields are the arguments of the function that made it.
    Raises ModelError: a compound without parts, or a record that is not a dataclass.

    Example:
        >>> import pfaffian as pf
        >>> cart, rail = pf.body("cart", mass=2.0), pf.joint("rail", "prismatic", "world", "cart", axis=(1, 0, 0))
        >>> def buffer(name, joint, stiffness, damping):
        ...     spring = pf.forces.potential(f"{name} spring", lambda k: stiffness * k.joint(joint) ** 2 / 2)
        ...     damper = pf.forces.dissipation(f"{name} damper", lambda k: damping * k.joint_rate(joint) ** 2 / 2)
        ...     return pf.Compound(name, (spring, damper))
        >>> m = pf.mechanism("cart", [cart], [rail], forces=[buffer("buffer", "rail", 40.0, 6.0)])
        >>> pf.forward_dynamics(m, [0.1], [1.0]).v_dot.round(9)  # (-40 * 0.1 - 6 * 1) / 2
        array([-5.])
        >>> [f.name for f in m.forces], [f.name for f in m.all_forces]
        (['buffer'], ['buffer spring', 'buffer damper'])
    """

    name: str
    parts: tuple[Any, ...]
    of: Any = None

    def __post_init__(self) -> None:
        what = f"compound {brief(self.name)}"
        if not isinstance(self.parts, tuple) or not self.parts:
            raise ModelError(f"{what}: a tuple of forces or of constraints is needed, got {brief(self.parts)}")
        if self.of is not None and (not is_dataclass(self.of) or isinstance(self.of, type) or not _is_hashable(self.of)):
            raise ModelError(
                f"{what}: its record must be a frozen dataclass of values that do not change, got {brief(self.of)}"
            )

    def __repr__(self) -> str:
        made = [] if self.of is None else [type(self.of).__name__]
        return reprs.words(self, *made, reprs.listed([part.name for part in self.parts]), name=self.name)


def _is_hashable(x: Any) -> bool:
    """Whether x has a hash: a list or an array, which may change, has none."""
    try:
        hash(x)
    except TypeError:
        return False
    return True


def flat(items: Iterable[Any]) -> tuple[Any, ...]:
    """The forces or constraints of a list one by one, with the parts of a compound in its place."""
    return tuple(part for item in items for part in (item.parts if isinstance(item, Compound) else (item,)))


def each(items: Iterable[Any], change: Callable[[Any], Any]) -> tuple[Any, ...]:
    """The items of a list, each force or constraint changed by itself, also within a compound."""
    return tuple(replace(x, parts=tuple(map(change, x.parts))) if isinstance(x, Compound) else change(x) for x in items)
