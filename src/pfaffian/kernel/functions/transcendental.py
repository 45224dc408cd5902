"""Exponential, logarithm, power, inverse trigonometric and hyperbolic functions from IEEE operations, errors at most 2 ulp.

The first argument m is an `Arithmetic`, as in `elementary`. Pairs (high, low) are unevaluated sums.
"""

from __future__ import annotations

import math

from pfaffian.kernel.functions.angle_reduction import MAGIC
from pfaffian.kernel.functions.arithmetic import Arithmetic
from pfaffian.kernel.functions.exact import Value, ValuePair, fast_two_sum, polynomial, quotient, two_product, two_sum

INF, NAN, LARGEST = math.inf, math.nan, 1.7976931348623157e308
LOG2E = 1.4426950408889634
LN2_HIGH, LN2_LOW = float.fromhex("0x1.62e42feep-1"), float.fromhex("0x1.a39ef35793c76p-33")
PI_HIGH, PI_LOW = 3.141592653589793, 1.2246467991473532e-16
PIO2_HIGH, PIO2_LOW, PIO4_HIGH = 1.5707963267948966, 6.123233995736766e-17, 0.7853981633974483
MAGIC_BITS = 0x4338000000000000
ONE_BITS, SQRT_HALF_BITS = 0x3FF0000000000000, 0x3FE6A09E667F3BCD

# (e^r - 1 - r) / r^2 on |r| <= ln 2 / 2
EXP = (0.5, 0.1666666666666667, 0.04166666666666667, 0.008333333333326084, 0.0013888888888883711,
       0.0001984126987500228, 2.480158732567746e-05, 2.755725517000089e-06, 2.755727347871858e-07,
       2.5105312729622103e-08, 2.09147553258932e-09)  # fmt: skip
# (log((1 + s) / (1 - s)) / s - 2) / s^2 in s^2, s <= 3 - 2 sqrt 2; its first coefficient is 2/3 = 0.666... + TWO_THIRDS_LOW
LOG = (0.6666666666666666, 0.3999999999999999, 0.2857142857143546, 0.22222222219829638, 0.18181818597892252,
       0.15384574799903467, 0.13335653036628284, 0.11687802007603933, 0.11884909250755585)  # fmt: skip
TWO_THIRDS_LOW = 3.700743415417188e-17
# (atan(t) / t - 1) / t^2 in t^2, t <= 7/16
ATAN = (-0.3333333333333332, 0.19999999999986603, -0.14285714282932097, 0.11111110885034843, -0.0909089963318541,
        0.07692075701061427, -0.06663093015943815, 0.058465916600748055, -0.05028655774469561, 0.03768901965761332,
        -0.017398493746311847)  # fmt: skip
# (asin(s) / s - 1) / s^2 in s^2, s <= 1/2
ASIN = (0.16666666666666669, 0.07499999999998433, 0.04464285714635543, 0.030381944138531247, 0.02237217294214989,
        0.017352392720869973, 0.013971212973552933, 0.011479177415184906, 0.01032281435018578, 0.005457506718640358,
        0.01740087944269402, -0.014851887071247204, 0.028757851367421566)  # fmt: skip
# From t >= the first number on: atan t = base + atan((t - c) / (1 + c t)), given as (from, c, base high, base low).
ATAN_STEPS = (
    (0.4375, 0.5, 0.4636476090008061, 2.2698777452961687e-17),
    (0.6875, 1.0, 0.7853981633974483, 3.061616997868383e-17),
    (1.1875, 1.5, 0.982793723247329, 1.3903311031230998e-17),
)


def _nan_of(m: Arithmetic, x: Value, y: Value) -> Value:
    """Mask of the lanes where x or y is nan."""
    return m.ne(x, x) | m.ne(y, y)


def _exp_pair(m: Arithmetic, x: Value, low: Value) -> tuple[Value, Value, Value, Value]:
    """(k, s, h, l): e^(x + low) = 2^k (1 + s) = 2^k (h + l), the pair accurate to 2^-57; |x| must be below 2000."""
    n = x * LOG2E + MAGIC
    k = n - MAGIC
    a, b = x - k * LN2_HIGH, k * LN2_LOW - low
    r = a - b
    p = ((a - r) - b) + (r * r) * polynomial(EXP, r)
    s, error = fast_two_sum(r, p)
    high, rest = fast_two_sum(1.0, s)
    return m.bits(n) - MAGIC_BITS, s, high, rest + error


def _scale(m: Arithmetic, y: Value, k: Value) -> Value:
    """y 2^k by two factors, so that neither of them is out of range."""
    half = k >> 1
    return (y * m.real((half + 1023) << 52)) * m.real(((k - half) + 1023) << 52)


def _clamp(m: Arithmetic, x: Value, low: float, high: float) -> Value:
    """x limited to [low, high]; a nan stays a nan."""
    x = m.where(m.lt(x, low), low, x)
    return m.where(m.lt(high, x), high, x)


def exp(m: Arithmetic, x: Value) -> Value:
    """e^x."""
    k, s, _, _ = _exp_pair(m, _clamp(m, x, -746.0, 710.0), 0.0)
    return _scale(m, 1.0 + s, k)


def _log_split(m: Arithmetic, x: Value) -> ValuePair:
    """(k as a number, y) with x = 2^k y and sqrt(1/2) <= y < sqrt 2, for 0 < x < inf."""
    tiny = m.lt(x, 2.2250738585072014e-308)
    i = m.bits(m.where(tiny, x * 2.0**54, x))
    k = ((i + (ONE_BITS - SQRT_HALF_BITS)) >> 52) - 1023
    number = m.real(k + MAGIC_BITS) - MAGIC
    return number - m.where(tiny, 54.0, 0.0), m.real(i - (k << 52))


def log(m: Arithmetic, x: Value) -> Value:
    """Natural logarithm of x; -inf for zero, nan for negative numbers."""
    k, y = _log_split(m, x)
    f = y - 1.0
    s = f / (2.0 + f)
    z = s * s
    half = 0.5 * (f * f)
    y = k * LN2_HIGH - ((half - (s * (half + z * polynomial(LOG, z)) + k * LN2_LOW)) - f)
    y = m.where(m.le(x, LARGEST), y, x)
    y = m.where(m.lt(x, 0.0), NAN, y)
    return m.where(m.eq(x, 0.0), -INF, y)


def _log_pair(m: Arithmetic, x: Value) -> ValuePair:
    """log x as a pair with a relative error of 2^-63, for 0 < x < inf."""
    k, y = _log_split(m, x)
    s, s_low = quotient((y - 1.0, 0.0), two_sum(y, 1.0))
    z, z_low = two_product(s, s)
    z_low = z_low + 2.0 * (s * s_low)
    a, a_low = two_product(z, LOG[0])
    a, a_low = fast_two_sum(a, (a_low + (z * TWO_THIRDS_LOW + z_low * LOG[0])) + (z * z) * polynomial(LOG[1:], z))
    b, b_low = two_product(s, a)
    high, low = fast_two_sum(2.0 * s, b)
    low = low + ((b_low + (s * a_low + s_low * a)) + 2.0 * s_low)
    high, rest = two_sum(k * LN2_HIGH, high)
    return fast_two_sum(high, rest + (low + k * LN2_LOW))


def pow(m: Arithmetic, x: Value, y: Value) -> Value:
    """x^y, by a logarithm with extra bits; nan for a finite x < 0 and a y that is not an integer."""
    a = m.fabs(x)
    log_high, log_low = _log_pair(m, a)
    exponent = _clamp(m, y, -(2.0**65), 2.0**65)
    p, p_low = two_product(exponent, log_high)
    p_low = m.where(m.lt(750.0, m.fabs(p)), 0.0, p_low + exponent * log_low)
    k, _, high, low = _exp_pair(m, _clamp(m, p, -750.0, 750.0), p_low)
    z = _scale(m, high + low, k)
    z = m.where(m.eq(a, 0.0), m.where(m.lt(y, 0.0), INF, 0.0), z)
    z = m.where(m.eq(a, INF), m.where(m.lt(y, 0.0), 0.0, INF), z)
    whole, half = m.eq(m.floor(y), y), 0.5 * y
    odd = whole & m.ne(m.floor(half), half)
    z = m.where(odd, m.copysign(z, x), z)
    z = m.where(m.lt(x, 0.0) & m.lt(-INF, x) & m.ne(m.floor(y), y), NAN, z)
    z = m.where(_nan_of(m, x, y), NAN, z)
    return m.where(m.eq(y, 0.0) | m.eq(x, 1.0), 1.0, z)


def atan(m: Arithmetic, x: Value) -> Value:
    """arctan x, reduced by the nearest of a few arguments whose arctangents are known."""
    a = m.fabs(x)
    top, bottom, high, low = a, 1.0, 0.0, 0.0
    for start, c, base, base_low in ATAN_STEPS:
        here = m.le(start, a)
        top, bottom = m.where(here, a - c, top), m.where(here, 1.0 + c * a, bottom)
        high, low = m.where(here, base, high), m.where(here, base_low, low)
    far = m.le(2.4375, a)
    t = m.where(far, -1.0, top) / m.where(far, a, bottom)
    high, low = m.where(far, PIO2_HIGH, high), m.where(far, PIO2_LOW, low)
    z = t * t
    return m.copysign(high + (t + ((t * z) * polynomial(ATAN, z) + low)), x)


def atan2(m: Arithmetic, y: Value, x: Value) -> Value:
    """Angle of the point (x, y), in [-pi, pi]."""
    a, b = m.fabs(y), m.fabs(x)
    ratio = m.where(m.eq(a, b), 1.0, a / b)
    z = atan(m, m.where(m.eq(a, 0.0), 0.0, ratio))
    z = m.where(m.lt(m.copysign(1.0, x), 0.0), PI_HIGH - (z - PI_LOW), z)
    return m.where(_nan_of(m, x, y), NAN, m.copysign(z, y))


def _asin_parts(m: Arithmetic, x: Value) -> tuple[Value, Value, Value, Value, Value]:
    """(small, r, s, head, c). small is the mask of |x| < 1/2. s = |x| where small, else sqrt((1 - |x|) / 2), and s = head + c;
    asin s = (1 + r) s."""
    a = m.fabs(x)
    small = m.lt(a, 0.5)
    z = m.where(small, x * x, (1.0 - a) * 0.5)
    r = z * polynomial(ASIN, z)
    s = m.sqrt(z)
    head = m.real(m.bits(s) & -(1 << 32))
    c = (z - head * head) / m.where(m.eq(s, 0.0), 1.0, s + head)
    return small, r, s, head, c


def asin(m: Arithmetic, x: Value) -> Value:
    """arcsin x."""
    small, r, s, head, c = _asin_parts(m, x)
    a = m.fabs(x)
    p = 2.0 * (s * r) - (PIO2_LOW - 2.0 * c)
    large = PIO4_HIGH - (p - (PIO4_HIGH - 2.0 * head))
    return m.copysign(m.where(small, a + a * r, large), x)


def acos(m: Arithmetic, x: Value) -> Value:
    """arccos x."""
    small, r, s, head, c = _asin_parts(m, x)
    near = PIO2_HIGH - (x - (PIO2_LOW - x * r))
    left = PI_HIGH - 2.0 * (s + (r * s - PIO2_LOW))
    right = 2.0 * (head + (r * s + c))
    return m.where(small, near, m.where(m.lt(x, 0.0), left, right))


def _expm1_pair(m: Arithmetic, x: Value) -> ValuePair:
    """e^x - 1 as a pair, for |x| <= 90."""
    k, _, high, low = _exp_pair(m, x, 0.0)
    head, rest = two_sum(_scale(m, high, k), -1.0)
    return fast_two_sum(head, rest + _scale(m, low, k))


def expm1(m: Arithmetic, x: Value) -> Value:
    """e^x - 1, accurate for small x too."""
    near = _expm1_pair(m, _clamp(m, x, -50.0, 50.0))[0]
    return m.where(m.eq(x, 0.0), x, m.where(m.lt(50.0, x), exp(m, x), near))


def tanh(m: Arithmetic, x: Value) -> Value:
    """tanh x = (e^2x - 1) / (e^2x + 1)."""
    top, low = _expm1_pair(m, 2.0 * _clamp(m, m.fabs(x), 0.0, 22.0))
    bottom, rest = two_sum(top, 2.0)
    return m.copysign(quotient((top, low), (bottom, rest + low))[0], x)


def sinh(m: Arithmetic, x: Value) -> Value:
    """sinh x = (e + e / (e + 1)) / 2 with e = e^x - 1."""
    a = m.fabs(x)
    e, low = _expm1_pair(m, _clamp(m, a, 0.0, 40.0))
    bottom, rest = two_sum(e, 1.0)
    q, q_low = quotient((e, low), (bottom, rest + low))
    head, rest = fast_two_sum(e, q)
    near = 0.5 * (head + (rest + (low + q_low)))
    return m.copysign(m.where(m.lt(40.0, a), _half_exp(m, a), near), x)


def cosh(m: Arithmetic, x: Value) -> Value:
    """cosh x = (e^x + e^-x) / 2."""
    a = m.fabs(x)
    k, _, high, low = _exp_pair(m, _clamp(m, a, 0.0, 40.0), 0.0)
    e = _scale(m, high, k)
    head, rest = fast_two_sum(e, 1.0 / e)
    return m.where(m.lt(40.0, a), _half_exp(m, a), 0.5 * (head + (rest + _scale(m, low, k))))


def _half_exp(m: Arithmetic, x: Value) -> Value:
    """e^x / 2, which is finite for slightly larger x than e^x."""
    k, s, _, _ = _exp_pair(m, _clamp(m, x, 0.0, 712.0), 0.0)
    return _scale(m, 1.0 + s, k - 1)


def _log1p_pair(m: Arithmetic, x: Value, low: Value) -> Value:
    """log(1 + x + low) for finite x > -1."""
    u, rest = two_sum(1.0, x)
    high, log_low = _log_pair(m, u)
    return high + (log_low + (rest + low) / u)


def log1p(m: Arithmetic, x: Value) -> Value:
    """log(1 + x), accurate for small x too."""
    y = m.where(m.le(x, LARGEST), _log1p_pair(m, x, 0.0), x)
    y = m.where(m.lt(x, -1.0), NAN, m.where(m.eq(x, -1.0), -INF, y))
    return m.where(m.eq(x, 0.0), x, y)


def atanh(m: Arithmetic, x: Value) -> Value:
    """artanh x = log(1 + 2 x / (1 - x)) / 2."""
    a = m.fabs(x)
    inside = m.lt(a, 1.0)
    b = m.where(inside, a, 0.5)
    y = 0.5 * _log1p_pair(m, *quotient((2.0 * b, 0.0), two_sum(1.0, -b)))
    y = m.where(inside, y, m.where(m.eq(a, 1.0), INF, NAN))
    return m.copysign(y, x)


def asinh(m: Arithmetic, x: Value) -> Value:
    """arsinh x = log(1 + x + x^2 / (1 + sqrt(1 + x^2))) for x > 0."""
    a = m.fabs(x)
    b = _clamp(m, a, 0.0, 2.0**30)
    near = _log1p_pair(m, *fast_two_sum(b, (b * b) / (1.0 + m.sqrt(1.0 + b * b))))
    return m.copysign(m.where(m.lt(2.0**30, a), log(m, a) + (LN2_HIGH + LN2_LOW), near), x)


def acosh(m: Arithmetic, x: Value) -> Value:
    """arcosh x = log(1 + t + sqrt(2 t + t^2)) with t = x - 1."""
    t = _clamp(m, x, 1.0, 2.0**30) - 1.0
    near = m.where(m.eq(t, 0.0), 0.0, _log1p_pair(m, *two_sum(t, m.sqrt(2.0 * t + t * t))))
    y = m.where(m.lt(2.0**30, x), log(m, x) + (LN2_HIGH + LN2_LOW), near)
    return m.where(m.lt(x, 1.0), NAN, y)


def hypot(m: Arithmetic, x: Value, y: Value) -> Value:
    """sqrt(x^2 + y^2), scaled so that no square is out of range."""
    a, b = m.fabs(x), m.fabs(y)
    large = m.where(m.lt(a, b), b, a)
    factor = m.where(m.lt(2.0**500, large), 2.0**-600, m.where(m.lt(large, 2.0**-500), 2.0**600, 1.0))
    u, v = a * factor, b * factor
    z = m.sqrt(u * u + v * v) / factor
    return m.where(m.eq(a, INF) | m.eq(b, INF), INF, z)
