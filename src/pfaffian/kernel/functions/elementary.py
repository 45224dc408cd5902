"""The table of all elementary functions, and the trigonometric ones: IEEE operations only, errors of at most 2 ulp.

The first argument m of each body is an `Arithmetic`. The coefficients of the polynomials are Chebyshev fits of Taylor
remainders.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pfaffian.kernel.functions import transcendental
from pfaffian.kernel.functions.angle_reduction import MAGIC
from pfaffian.kernel.functions.arithmetic import Arithmetic, Writer
from pfaffian.kernel.functions.exact import Value, fast_two_sum, polynomial, quotient, two_sum

TWO_OVER_PI = 0.6366197723675814
# pi/2 in three pieces of 33 bits and a remainder: k times a piece is exact for |k| < 2^20.
PIO2 = tuple(map(float.fromhex, ("0x1.921fb544p+0", "0x1.0b4611a6p-34", "0x1.3198a2ep-69", "0x1.b839a252049c1p-104")))
MEDIUM = 2.0**20

SIN = (-0.16666666666666666, 0.008333333333330936, -0.00019841269836740532, 2.7557316093198404e-06,
       -2.5051129896450185e-08, 1.5917988979397435e-10)  # fmt: skip
COS = (0.041666666666666664, -0.0013888888888887389, 2.48015872987544e-05, -2.755731726587808e-07,
       2.087614504941318e-09, -1.138254464534925e-11)  # fmt: skip


@dataclass(frozen=True)
class Elementary:
    """An elementary function.   arity: number of arguments.   body: body(m, *args).   results: number of results."""

    arity: int
    body: Callable[..., Any]
    results: int = 1


def _reduce(m: Arithmetic, x: Value) -> tuple[Value, Value, Value]:
    """Reduce the angle x: an integer with the quadrant in its low bits, and the rest high + low, |high| <= pi/4 (1 + eps)."""
    n = x * TWO_OVER_PI + MAGIC
    k = n - MAGIC
    a, e1 = two_sum(x - k * PIO2[0], -(k * PIO2[1]))
    b, e2 = two_sum(a, -(k * PIO2[2]))
    c = (e1 + e2) - k * PIO2[3]
    high = b + c
    low = (b - high) + c
    n, high, low = m.huge(x, MEDIUM, (n, high, low))
    return m.bits(n), high, low


def _sine_and_cosine(m: Arithmetic, x: Value, pairs: bool = False) -> tuple[Value, Any, Any]:
    """Quadrant of x, and sine and cosine of the reduced angle: rounded, or with `pairs` as unevaluated sums (high, low)."""
    quadrant, r, low = _reduce(m, x)
    z = r * r
    half = 0.5 * z
    w = 1.0 - half
    s_low = low * w + (r * z) * polynomial(SIN, z)
    c_low = ((1.0 - w) - half) + ((z * z) * polynomial(COS, z) - r * low)
    if pairs:
        return quadrant, fast_two_sum(r, s_low), fast_two_sum(w, c_low)
    return quadrant, r + s_low, w + c_low


def _turn(m: Arithmetic, quadrant: Value, y: Value) -> Value:
    """y, or -y in quadrants 2 and 3."""
    return m.real(m.bits(y) ^ ((quadrant & 2) << 62))


def sincos(m: Arithmetic, x: Value) -> tuple[Value, Value]:
    """sin x and cos x with one reduction of the angle. The pass `pair` inserts this function where both are needed."""
    quadrant, s, c = _sine_and_cosine(m, x)
    swap = m.odd(quadrant)
    sine = _turn(m, quadrant, m.where(swap, c, s))
    cosine = _turn(m, quadrant + 1, m.where(swap, s, c))
    return m.where(m.eq(x, 0.0), x, sine), cosine


def tan(m: Arithmetic, x: Value) -> Value:
    """tan x, the quotient of sine and cosine as unevaluated sums, so that the result is not rounded three times."""
    quadrant, s, c = _sine_and_cosine(m, x, pairs=True)
    odd = m.odd(quadrant)
    top = m.where(odd, -c[0], s[0]), m.where(odd, -c[1], s[1])
    bottom = m.where(odd, s[0], c[0]), m.where(odd, s[1], c[1])
    return m.where(m.eq(x, 0.0), x, quotient(top, bottom)[0])


def sin(m: Arithmetic, x: Value) -> Value:
    """sin x."""
    return sincos(m, x)[0]


def cos(m: Arithmetic, x: Value) -> Value:
    """cos x."""
    return sincos(m, x)[1]


FUNCTIONS: dict[str, Elementary] = {
    "sin": Elementary(1, sin),
    "cos": Elementary(1, cos),
    "sincos": Elementary(1, sincos, results=2),
    "tan": Elementary(1, tan),
}
_ONE = "exp", "log", "asin", "acos", "atan", "sinh", "cosh", "tanh", "expm1", "log1p", "asinh", "acosh", "atanh"
for _name in _ONE:
    FUNCTIONS[_name] = Elementary(1, getattr(transcendental, _name))
for _name in ("pow", "atan2", "hypot"):
    FUNCTIONS[_name] = Elementary(2, getattr(transcendental, _name))


def c_text(name: str, inline: bool) -> str:
    """C text of the function on lanes: `V pf_name(V a0, ...)`, or for two results `void pf_name(V a0, V *r0, V *r1)`."""
    place = "INLINE" if inline else "NOINLINE"
    function = FUNCTIONS[name]
    writer = Writer()
    results = function.body(writer, *(writer.let(f"a{i}") for i in range(function.arity)))
    arguments = ", ".join(f"V a{i}" for i in range(function.arity))
    if function.results == 1:
        return _definition(f"static {place} V pf_{name}({arguments})", [*writer.needed(results), f"  return {results.name};"])
    pointers = ", ".join(f"V *r{i}" for i in range(function.results))
    stores = [f"  *r{i} = {r.name};" for i, r in enumerate(results)]
    return _definition(f"static {place} void pf_{name}({arguments}, {pointers})", writer.needed(*results) + stores)


def _definition(signature: str, body: list[str]) -> str:
    """C text of a function with this signature and body."""
    return "\n".join([f"{signature} {{", *body, "}\n"])
