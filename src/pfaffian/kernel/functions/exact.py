"""Sums and products with their rounding errors, and polynomials: the building blocks of the elementary functions."""

from __future__ import annotations

from typing import Any

Value = Any
"""A number, an array or the text of one."""
ValuePair = tuple[Value, Value]


def polynomial(coefficients: tuple[float, ...], z: Value) -> Value:
    """sum of coefficients[i] z^i. Even and odd powers are summed separately, in two short chains instead of a long one."""
    z2 = z * z
    even, odd = (_horner(coefficients[start::2], z2) for start in (0, 1))
    return even + z * odd


def _horner(coefficients: tuple[float, ...], z: Value) -> Value:
    """sum of coefficients[i] z^i by Horner's scheme."""
    total: Value = coefficients[-1]
    for c in coefficients[-2::-1]:
        total = c + z * total
    return total


def two_sum(a: Value, b: Value) -> ValuePair:
    """(sum, error) with a + b = sum + error exactly (Knuth)."""
    s = a + b
    c = s - a
    return s, (a - (s - c)) + (b - c)


def fast_two_sum(a: Value, b: Value) -> ValuePair:
    """(sum, error) with a + b = sum + error exactly, for |a| >= |b| (Dekker)."""
    s = a + b
    return s, b - (s - a)


def split(a: Value) -> ValuePair:
    """(high, low) with a = high + low and 26 bits each (Veltkamp)."""
    c = a * 134217729.0
    high = c - (c - a)
    return high, a - high


def two_product(a: Value, b: Value) -> ValuePair:
    """(product, error) with a b = product + error, exactly unless it under- or overflows (Dekker)."""
    p = a * b
    (a1, a2), (b1, b2) = split(a), split(b)
    return p, ((a1 * b1 - p) + a1 * b2 + a2 * b1) + a2 * b2


def quotient(top: ValuePair, bottom: ValuePair) -> ValuePair:
    """top / bottom of two pairs (high, low), as a pair: the quotient, nearly always the nearest double, and the remainder."""
    q = top[0] / bottom[0]
    p, error = two_product(q, bottom[0])
    rest = (((top[0] - p) - error) + (top[1] - q * bottom[1])) / bottom[0]
    return fast_two_sum(q, rest)
