"""The two uses of an elementary function's body: computing it on NumPy arrays, and writing it as C text.

A body (see `elementary`) uses + - * / & | ^ ~ << >> and the methods of `Arithmetic`. Each of these operations is exact or
correctly rounded, so arrays and C give the same bits. In C, a mask is an integer of all ones or all zeros.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Protocol

import numpy as np

from pfaffian.kernel.functions.angle_reduction import reduce_huge
from pfaffian.kernel.functions.exact import Value


class Arithmetic(Protocol):
    """The operations that a body may call.

    lt, le, eq, ne, odd: return masks.   where: selects bits by a mask.   bits, real: the same 64 bits as an integer or as a
    number.   huge: replaces the reduced angle where |x| exceeds a limit.
    """

    def lt(self, a: Value, b: Value) -> Value: ...
    def le(self, a: Value, b: Value) -> Value: ...
    def eq(self, a: Value, b: Value) -> Value: ...
    def ne(self, a: Value, b: Value) -> Value: ...
    def where(self, mask: Value, a: Value, b: Value) -> Value: ...
    def bits(self, a: Value) -> Value: ...
    def real(self, a: Value) -> Value: ...
    def fabs(self, a: Value) -> Value: ...
    def sqrt(self, a: Value) -> Value: ...
    def floor(self, a: Value) -> Value: ...
    def copysign(self, a: Value, b: Value) -> Value: ...
    def odd(self, i: Value) -> Value: ...
    def huge(self, x: Value, limit: float, parts: tuple[Value, Value, Value]) -> tuple[Value, Value, Value]: ...


class _Numpy:
    """Computes the bodies on NumPy arrays."""

    lt = staticmethod(np.less)
    le = staticmethod(np.less_equal)
    eq = staticmethod(np.equal)
    ne = staticmethod(np.not_equal)
    where = staticmethod(np.where)
    fabs = staticmethod(np.fabs)
    sqrt = staticmethod(np.sqrt)
    floor = staticmethod(np.floor)
    copysign = staticmethod(np.copysign)

    @staticmethod
    def bits(a: Value) -> Value:
        return np.asarray(a, dtype=np.float64).view(np.int64)

    @staticmethod
    def real(a: Value) -> Value:
        return np.asarray(a, dtype=np.int64).view(np.float64)

    @staticmethod
    def odd(i: Value) -> Value:
        return (i & 1) != 0

    @staticmethod
    def huge(x: Value, limit: float, parts: tuple[Value, Value, Value]) -> tuple[Value, Value, Value]:
        """Replace (quadrant, high, low) by the exact reduction in the lanes where |x| exceeds the limit or is nan."""
        lanes = np.flatnonzero(~(np.fabs(x) <= limit))
        if lanes.size:
            parts = tuple(np.array(part) for part in parts)  # type: ignore[assignment]
            for lane in lanes:
                parts[0][lane], parts[1][lane], parts[2][lane] = reduce_huge(float(x[lane]))
        return parts


NUMPY: Arithmetic = _Numpy()


def _operator(sign: str, swap: bool = False) -> Callable[[Text, Value], Text]:
    """The operator of Text that makes a new variable `a sign b`, or with swap `b sign a`."""

    def apply(x: Text, other: Value) -> Text:
        a, b = x.name, x.out.text(other, x.kind)
        return x.out.let(f"{b} {sign} {a}" if swap else f"{a} {sign} {b}", x.kind)

    return apply


class Text:
    """A variable in C text: its name and its type, V (double lanes) or I (integer lanes)."""

    __slots__ = ("kind", "name", "out")

    def __init__(self, out: Writer, name: str, kind: str = "V") -> None:
        self.out, self.name, self.kind = out, name, kind

    __add__, __sub__, __mul__, __truediv__, __and__, __or__, __xor__ = (_operator(sign) for sign in "+-*/&|^")
    __radd__, __rsub__, __rmul__, __rtruediv__ = (_operator(sign, swap=True) for sign in "+-*/")

    def __lshift__(self, n: int) -> Text:
        return self.out.let(f"{self.name} << {n}", "I")

    def __rshift__(self, n: int) -> Text:
        return self.out.let(f"SHR({self.name}, {n})", "I")

    def __neg__(self) -> Text:
        return self.out.let(f"-{self.name}", self.kind)

    def __invert__(self) -> Text:
        return self.out.let(f"~{self.name}", "I")


_NAME = re.compile(r"t[0-9]+")


class Writer:
    """Writes the bodies as C statements, which it appends to `lines`."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def needed(self, *results: Text) -> list[str]:
        """The statements on which the results depend."""
        names, statements = {r.name for r in results}, []
        for line in reversed(self.lines):
            declared = line.split(" = ")[0].split()[-1]
            if declared in names or not _NAME.fullmatch(declared):
                names.update(_NAME.findall(line))
                statements.append(line)
        return statements[::-1]

    def let(self, expression: str, kind: str = "V") -> Text:
        """Declare a new variable with the value of an expression in C."""
        name = f"t{len(self.lines)}"
        self.lines.append(f"  {kind} {name} = {expression};")
        return Text(self, name, kind)

    def text(self, value: Value, kind: str = "V") -> str:
        """C text of a variable or a number."""
        if isinstance(value, Text):
            return value.name
        if kind == "I":
            return f"KI({int(value)})"
        special = {"inf": "INFINITE", "-inf": "-INFINITE", "nan": "NOT_A_NUMBER"}
        return f"K({special.get(str(value), float(value).hex())})"

    def _compare(self, macro: str, a: Value, b: Value) -> Text:
        """A new mask `macro(a, b)`."""
        return self.let(f"{macro}({self.text(a)}, {self.text(b)})", "I")

    def lt(self, a: Value, b: Value) -> Text:
        return self._compare("LT", a, b)

    def le(self, a: Value, b: Value) -> Text:
        return self._compare("LE", a, b)

    def eq(self, a: Value, b: Value) -> Text:
        return self._compare("EQ", a, b)

    def ne(self, a: Value, b: Value) -> Text:
        return self._compare("NE", a, b)

    def where(self, mask: Value, a: Value, b: Value) -> Text:
        return self.let(f"SEL({mask.name}, {self.text(a)}, {self.text(b)})")

    def bits(self, a: Value) -> Text:
        return self.let(f"BITS({self.text(a)})", "I")

    def real(self, a: Value) -> Text:
        return self.let(f"REAL({a.name})")

    def fabs(self, a: Value) -> Text:
        return self.let(f"FABS({self.text(a)})")

    def sqrt(self, a: Value) -> Text:
        return self.let(f"SQRT({self.text(a)})")

    def floor(self, a: Value) -> Text:
        return self.let(f"FLOOR({self.text(a)})")

    def copysign(self, a: Value, b: Value) -> Text:
        return self.let(f"COPYSIGN({self.text(a)}, {self.text(b)})")

    def odd(self, i: Value) -> Text:
        return self.let(f"-({i.name} & KI(1))", "I")

    def huge(self, x: Value, limit: float, parts: tuple[Value, Value, Value]) -> tuple[Text, Text, Text]:
        """The parts (n, high, low) of a reduced angle; where |x| exceeds the limit or is nan, by the slow exact reduction."""
        q, high, low = (self.let(part.name) for part in parts)
        self.lines.append(
            f"  if (ANY(~LE(FABS({x.name}), K({limit.hex()})))) "
            f"reduce_huge({x.name}, K({limit.hex()}), &{q.name}, &{high.name}, &{low.name});"
        )
        return q, high, low
