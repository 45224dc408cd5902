"""Functions of coordinates in OSIM files: sums of multiples of coordinates, or piecewise polynomials of one coordinate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from pfaffian.formats.text.strict_number import number, words_of
from pfaffian.formats.text.xml import Element

SPLINES = ("SimmSpline", "NaturalCubicSpline", "natCubicSpline")
"""Names of OpenSim's cubic spline, by version."""

FUNCTIONS = (
    *SPLINES, "Constant", "LinearFunction", "PolynomialFunction", "PiecewiseLinearFunction", "StepFunction",
    "MultiplierFunction",
)  # fmt: skip
"""Functions that are read."""

JUMPING = ("PiecewiseConstantFunction", "PiecewiseLinearFunction")
"""Functions that no prescribed motion may be: their values or rates jump."""

TIME = "time"
"""What a prescribed motion is a function of."""


Affine = tuple[str, float, float]
"""A quantity x, a factor a and a constant b: a x + b."""


@dataclass(frozen=True)
class OsimFunction:
    """sum of ratio q over coordinates + offset, plus f(q) of the coordinate `of`, if that is not empty.

    pieces: (n, 1 + degree + 1) rows x, c0, c1, ...: f = c0 + c1 (q - x) + ... from x on, and before it in the first row.
    """

    ratios: Mapping[str, float] = field(default_factory=dict)
    offset: float = 0.0
    of: str = ""
    pieces: np.ndarray = field(default_factory=lambda: np.zeros((0, 2)))

    @property
    def coordinates(self) -> tuple[str, ...]:
        """The coordinates that it depends on."""
        return (*self.ratios, *([self.of] if self.of else []))

    def at(self, q: Mapping[str, float]) -> float:
        """Its value.   q: of each of its coordinates."""
        whole = self.offset + sum(ratio * q[name] for name, ratio in self.ratios.items())
        if not self.of:
            return whole
        x = q[self.of]
        i = max(0, int(np.searchsorted(self.pieces[:, 0], x, side="right")) - 1)
        return whole + float(np.polyval(self.pieces[i, :0:-1], x - self.pieces[i, 0]))

    def as_pieces(self) -> np.ndarray:
        """The rows of a function that depends on one coordinate at most, its ratio and its offset among them."""
        pieces = self.pieces if self.of else np.zeros((1, 2))
        pieces = np.pad(pieces, ((0, 0), (0, max(0, 3 - pieces.shape[1]))))
        pieces[:, 1] += self.offset
        for ratio in self.ratios.values():
            pieces[:, 1] += ratio * pieces[:, 0]
            pieces[:, 2] += ratio
        return pieces

    def times(self, s: float) -> OsimFunction:
        """Its multiple by s."""
        pieces = self.pieces * np.r_[1.0, np.full(self.pieces.shape[1] - 1, s)]
        return OsimFunction({n: s * r for n, r in self.ratios.items()}, s * self.offset, self.of, pieces)

    def plus(self, b: float) -> OsimFunction:
        """The function plus a constant."""
        return replace(self, offset=self.offset + b)

    def in_terms_of(self, replaced: Mapping[str, Affine]) -> OsimFunction:
        """The function of other quantities.   replaced: coordinate -> the quantity, factor a and constant b: q = a x + b."""
        ratios, offset = dict[str, float](), self.offset
        for q, ratio in self.ratios.items():
            name, a, b = replaced.get(q, (q, 1.0, 0.0))
            ratios[name] = ratios.get(name, 0.0) + ratio * a
            offset += ratio * b
        name, a, b = replaced.get(self.of, (self.of, 1.0, 0.0))
        pieces = self.pieces if (a, b) == (1.0, 0.0) else _composed(self.pieces, a, b)
        return OsimFunction(ratios, offset, name, pieces)

    def with_values(self, q: Mapping[str, float]) -> OsimFunction:
        """The function with some coordinates held.   q: values of these."""
        known = {n: r for n, r in self.ratios.items() if n in q}
        rest = {n: r for n, r in self.ratios.items() if n not in q}
        offset = self.offset + sum(r * q[n] for n, r in known.items())
        if self.of in q:
            return OsimFunction(rest, replace(self, ratios={}, offset=offset).at(q))
        return replace(self, ratios=rest, offset=offset)


def read_function(element: Element, coordinates: Sequence[str]) -> OsimFunction:
    """A function of coordinates. Raises ModelError: its kind is not read, or its numbers do not fit."""
    if element.tag == "MultiplierFunction":
        inner, scale = element.only("function"), element.only("scale")
        if inner is None or len(inner.children) != 1:
            raise element.error("its <function> is missing; add it")
        f = read_function(inner.children[0], coordinates)
        return f.times(1.0 if scale is None else number(scale.content, scale.where))
    if element.tag == "Constant":
        return OsimFunction(offset=_values(element, "value")[0])
    if element.tag == "LinearFunction":
        *ratios, offset = _values(element, "coefficients")
        if len(ratios) != len(coordinates):
            raise element.error(
                f"{len(coordinates)} coordinates need {len(coordinates) + 1} coefficients, got {len(ratios) + 1}"
            )
        return OsimFunction({n: r for n, r in zip(coordinates, ratios, strict=True) if r}, offset)
    if element.tag not in FUNCTIONS:
        raise element.error(f"functions of this kind are not read; the kinds are {', '.join(FUNCTIONS)}")
    if len(coordinates) != 1:
        raise element.error(f"a function of one coordinate is given {len(coordinates)}; name one")
    return OsimFunction(of=coordinates[0], pieces=_pieces(element))


def _pieces(element: Element) -> np.ndarray:
    if element.tag == "PolynomialFunction":
        return np.array([[0.0, *_values(element, "coefficients")[::-1]]])
    if element.tag == "StepFunction":
        return _step(element)
    x, y = (np.array(_values(element, tag)) for tag in "xy")
    if len(x) != len(y) or len(x) < 2 or not (np.diff(x) > 0).all():
        raise element.error("two or more points are needed, with as many y as x, and x that increase")
    return spline(x, y) if element.tag in SPLINES else lines(x, y)


def _step(element: Element) -> np.ndarray:
    """The pieces of a step from one value to another, along the polynomial whose first two derivatives vanish at its ends."""
    tags = ("transition_start_time", "transition_end_time", "start_value", "end_value")
    defaults = (0.99, 1.01, 0.0, 1.0)
    start, end, low, high = (_values(element, tag, x)[0] for tag, x in zip(tags, defaults, strict=True))
    if not start < end:
        raise element.error(f"its transition ends at {end}, which must be after its start at {start}")
    length, rise, none = end - start, high - low, [0.0] * 5
    cubic = [0.0, 0.0, 10 * rise / length**3, -15 * rise / length**4, 6 * rise / length**5]
    return np.array([[start - length, low, *none], [start, low, *cubic], [end, high, *none]])


def _values(element: Element, tag: str, default: float | None = None) -> list[float]:
    """The numbers in a child element; the default without one. Raises ModelError: it is missing and has no default."""
    found = element.only(tag)
    if found is None or not found.content:
        if default is not None:
            return [default]
        raise element.error(f"<{tag}> is missing; add it")
    return [number(word, f"{found.where}") for word in words_of(found.content)]


def _composed(pieces: np.ndarray, a: float, b: float) -> np.ndarray:
    """The pieces of f(a x + b)."""
    rows, starts = [], pieces[:, 0]
    ends = [*starts[1:], starts[-1] + 1.0]  # the last piece has no end; the first one may begin anywhere
    for row, start, end in zip(pieces, starts, ends, strict=True):
        x = ((start if a > 0 else end) - b) / a
        inner = np.poly1d([a, a * x + b - start])
        f = np.atleast_1d(np.poly1d(row[:0:-1])(inner).coeffs)[::-1]
        rows.append([x, *f, *[0.0] * (len(row) - 1 - len(f))])
    return np.array(rows if a > 0 else rows[::-1])


def lines(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The pieces of the polygon through points, whose ends go on straight."""
    slopes = np.diff(y) / np.diff(x)
    return np.column_stack([x[:-1], y[:-1], slopes])


def spline(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The pieces of the cubic spline through points that OpenSim uses.

    Its third derivative at each end is that of the cubic through the four points there; with three points it is one parabola,
    with two a line. Beyond the ends it goes on straight.
    """
    n, h = len(x), np.diff(x)
    slope = np.diff(y) / h
    A, b = np.zeros((n, n)), np.zeros(n)  # s = f'' / 6 at the points
    for i in range(1, n - 1):
        A[i, i - 1 : i + 2] = h[i - 1], 2 * (h[i - 1] + h[i]), h[i]
        b[i] = slope[i] - slope[i - 1]
    A[0, :2], A[-1, -2:] = (-1, 1), (-1, 1)
    if n > 3:
        b[0], b[-1] = h[0] * _third(x[:4], y[:4]), h[-1] * _third(x[-4:], y[-4:])
    s = np.linalg.solve(A, b) if n > 2 else np.zeros(2)
    first = slope - h * (s[1:] + 2 * s[:-1])
    inner = np.column_stack([x[:-1], y[:-1], first, 3 * s[:-1], np.diff(s) / h])
    end = slope[-1] + h[-1] * (2 * s[-1] + s[-2])
    before = [x[0] - h[0], y[0] - first[0] * h[0], first[0], 0.0, 0.0]
    return np.vstack([before, inner, [x[-1], y[-1], end, 0.0, 0.0]])


def _third(x: np.ndarray, y: np.ndarray) -> float:
    """The third divided difference of four points."""
    d = y.astype(float)
    for k in range(1, 4):
        d = np.diff(d) / (x[k:] - x[:-k])
    return float(d[0])
