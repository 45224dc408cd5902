"""A controller whose constants are floats: those beyond the largest and below the least become these."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pfaffian.embedded.controller import Controller
from pfaffian.kernel.program.program import Program

LARGEST, LEAST = float(np.finfo(np.float32).max), float(np.finfo(np.float32).tiny)
"""A constant like 1e300 stands for what no number reaches, one like 1e-300 for a divisor that is not zero."""


def in_floats(c: Controller) -> Controller:
    """The controller with constants that floats can hold."""
    rates = tuple(rate._replace(program=clamped(rate.program)) for rate in c.rates)
    return replace(c, rates=rates, result=clamped(c.result))


def clamped(program: Program) -> Program:
    """The Program with constants that floats can hold."""
    constants = tuple(_clamp(x) for x in program.constants)
    return replace(program, constants=constants, callees=tuple(map(clamped, program.callees)))


def _clamp(x: float) -> float:
    if abs(x) > LARGEST:
        return float(np.copysign(LARGEST, x))
    return float(np.copysign(LEAST, x)) if 0 < abs(x) < LEAST else x
