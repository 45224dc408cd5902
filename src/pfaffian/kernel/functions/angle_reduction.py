"""Exact reduction of a huge angle modulo pi/2 in integers (Payne and Hanek); in C this is `reduce_one` of reduction.h."""

from __future__ import annotations

import math

# The bit pattern of n = MAGIC + k has the integer k in its low bits, for |k| < 2^51.
MAGIC = 1.5 * 2.0**52
PIO2_HIGH, PIO2_LOW = 1.5707963267948966, 6.123233995736766e-17
WINDOW, FRACTION = 192, 190
BITS = 1216


def _two_over_pi(bits: int) -> int:
    """floor(2/pi 2^bits), by Machin's formula in integers."""
    guard = bits + 64
    one = 1 << guard

    def arctan_inverse(n: int) -> int:
        term, total, k = one // n, 0, 0
        while term:
            total += (-1) ** k * (term // (2 * k + 1))
            term //= n * n
            k += 1
        return total

    pi = 4 * (4 * arctan_inverse(5) - arctan_inverse(239))
    return (2 << (guard + bits)) // pi


TWO_OVER_PI = _two_over_pi(BITS)


def limbs() -> list[int]:
    """2/pi as 64-bit words, the lowest first, with one more word of zero at the end."""
    return [(TWO_OVER_PI >> 64 * i) & (2**64 - 1) for i in range(BITS // 64 + 1)]


def _split(a: float) -> tuple[float, float]:
    """(high, low) with a = high + low and 26 bits each (Veltkamp)."""
    c = 134217729.0 * a
    high = c - (c - a)
    return high, a - high


def reduce_huge(x: float) -> tuple[float, float, float]:
    """(MAGIC + quadrant, high, low) with x = quadrant pi/2 + high + low modulo 2 pi; nan for inf and nan.

    The window of 2/pi leaves out the bits that give whole turns. It has 137 correct bits behind the binary point, enough for
    the double nearest to a multiple of pi/2 (62 leading zeros).
    """
    if not math.isfinite(x):
        return MAGIC, math.nan, math.nan
    mantissa, exponent = math.frexp(abs(x))
    m, e = int(mantissa * 2.0**53), exponent - 53
    window = (TWO_OVER_PI >> (BITS - e - FRACTION)) & ((1 << WINDOW) - 1)
    product = (m * window) & ((1 << WINDOW) - 1)
    quadrant = product >> FRACTION
    fraction = (product >> (FRACTION - 128)) & (2**128 - 1)
    upper = fraction >> 127
    quadrant, magnitude = quadrant + upper, (2**128 - fraction if upper else fraction)
    h = float(magnitude)
    rest = float(magnitude - int(h)) * 2.0**-128
    h *= 2.0**-128
    high, low = _times_half_pi(h, rest)
    if (x < 0) != bool(upper):
        high, low = -high, -low
    return MAGIC + ((-quadrant if x < 0 else quadrant) & 3), high, low


def _times_half_pi(h: float, rest: float) -> tuple[float, float]:
    """(h + rest) pi/2 as an unevaluated sum, by Dekker's product, since strict arithmetic has no fused multiply-add."""
    (a, b), (c, d) = _split(h), _split(PIO2_HIGH)
    p = h * PIO2_HIGH
    error = ((a * c - p) + a * d + b * c) + b * d
    low = error + (h * PIO2_LOW + rest * PIO2_HIGH)
    high = p + low
    return high, (p - high) + low
