"""Elementary functions are within 2 ulp of mpmath over the whole range and follow IEEE 754 at special points."""

import math

import mpmath as mp
import numpy as np
import pytest

from pfaffian.kernel.program.ops import OPS

N = 120
RANDOM = np.random.default_rng(2)


def signs(n):
    return RANDOM.choice([-1.0, 1.0], n)


def powers(low, high, n=N):
    return 10.0 ** RANDOM.uniform(low, high, n)


WIDE = np.concatenate([RANDOM.uniform(-4, 4, N), signs(N) * powers(-320, 308), RANDOM.uniform(-750, 710, N)])
# The last number is the double nearest to a multiple of pi/2.
ANGLES = np.concatenate([WIDE, np.pi / 2 * np.arange(1, N), [2.0**20 - 0.5, 2.0**20 + 0.5, math.ldexp(6381956970095103, 797)]])
UNIT = np.concatenate([RANDOM.uniform(-1, 1, 3 * N), signs(N) * powers(-320, 0), signs(N) * (1 - powers(-15, -1))])
ABOVE = np.concatenate([1 + powers(-15, 5), powers(0, 308)])
BASES = np.concatenate([powers(-5, 5), 1 + RANDOM.normal(size=N) * 1e-3, powers(-320, 308)])
EXPONENTS = RANDOM.uniform(-700, 700, BASES.size) / np.log(BASES)
DOMAINS = {
    **dict.fromkeys(("sin", "cos", "tan"), (ANGLES,)),
    **dict.fromkeys(("exp", "expm1", "sinh", "cosh", "tanh", "asinh", "atan"), (WIDE,)),
    **dict.fromkeys(("asin", "acos", "atanh"), (UNIT,)),
    "log": (np.abs(WIDE),), "log1p": (np.concatenate([np.abs(WIDE), -np.abs(UNIT)]),), "acosh": (ABOVE,),
    "pow": (BASES, EXPONENTS), "atan2": (WIDE, np.roll(WIDE, 7)), "hypot": (WIDE, np.roll(WIDE, 11)),
}  # fmt: skip


@pytest.mark.parametrize("name", DOMAINS)
def test_ulp(name):
    with np.errstate(all="ignore"):
        got = OPS[name].numpy(*[np.array(x) for x in DOMAINS[name]])
    exact = {"pow": mp.power}.get(name) or getattr(mp, name)
    with mp.workprec(2300 if name in ("sin", "cos", "tan") else 400):
        for value, *args in zip(got, *DOMAINS[name], strict=True):
            expected = exact(*map(mp.mpf, args))
            near = float(expected)
            if math.isinf(near) or near == 0:
                assert value == near, args
            else:
                assert abs(mp.mpf(float(value)) - expected) <= 2 * math.ulp(near), (args, near, value)


POINTS = [0.0, -0.0, 1.0, -1.0, 0.5, -2.0, 3.0, math.inf, -math.inf, math.nan, 5e-324, -5e-324]


def c_library(name, *args):
    """Values that annex F of the C standard prescribes, from NumPy, which inherits the special cases of the C library."""
    twin = {"pow": "power", "atan2": "arctan2"}.get(name, name.replace("asin", "arcsin").replace("acos", "arccos"))
    twin = "arctan" if name == "atan" else "arctanh" if name == "atanh" else twin
    with np.errstate(all="ignore"):
        return getattr(np, twin)(*args)


@pytest.mark.parametrize("name", DOMAINS)
def test_special_points(name):
    args = [np.array(POINTS)] if OPS[name].arity == 1 else [a.ravel() for a in np.meshgrid(POINTS, POINTS)]
    with np.errstate(all="ignore"):
        got = OPS[name].numpy(*args)
    expected = c_library(name, *args)
    np.testing.assert_allclose(got, expected, rtol=1e-15, atol=0)
    number = ~np.isnan(expected)
    assert np.array_equal(np.signbit(got)[number], np.signbit(expected)[number])
