"""Forces, laws and rows that jump with the state: a derivative would miss how the instant of a jump changes with the start."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import casadi as ca
import numpy as np

from pfaffian import kernel
from pfaffian.errors import ModelError
from pfaffian.simulate.step.closed_loop import LawAndSystem, closed_loop
from pfaffian.simulate.step.kinks import may_have_kinks, moving_symbols, parts_that_act, passing_zero
from pfaffian.simulate.step.simulation import Simulation
from pfaffian.simulate.step.thresholds import JUMPS
from pfaffian.terms.equations_digest import digest

NUMBERS: dict[int, Callable[..., Any]] = {op: lambda *x, jump=jump: jump(*x)[0] for op, jump in JUMPS.items()}
"""Operations that jump -> the number that is zero there."""

STARTS, ITERATIONS = 8, 30
"""Random states from which one is sought where a number is zero, and Newton's steps from each."""

FOUND = 1e-10
"""Size of a number that counts as zero."""

APART = (1e-4, 1e-6)
"""Distances from there at which both sides are compared."""

SHRINKS = 0.5
"""The difference of both sides of a jump does not shrink below this part of itself from one distance to the other; that of a
kink becomes a hundredth."""

LEAST = 1e-9
"""Least jump, relative to the size of what jumps."""


def refuse_jumps(s: Simulation, what: str) -> None:
    """Raise ModelError if a force, the law or a row of a constraint jumps at an instant that depends on the state."""
    if not may_have_kinks(s):
        return
    names = kernel.noted(f"jumps {digest(s.mechanism)} {s.law}", lambda: {"names": jumping(s)})["names"]
    if names:
        raise ModelError(
            f"{what}: {', '.join(names)} jumps at an instant that depends on the state, whose change the derivative would "
            "miss; let it change continuously, as by tanh in place of sign or if_else"
        )


def jumping(s: LawAndSystem) -> list[str]:
    """Names of the forces, the law and the constraints whose numbers jump somewhere in the state."""
    loop = closed_loop(s, s.system.at_shared())
    moving, found = moving_symbols(loop), list[str]()
    for name, part in parts_that_act(loop):
        numbers = list(passing_zero(part, moving, NUMBERS))
        if numbers and _jumps(part, ca.vertcat(*numbers), moving, s):
            found.append(name)
    return found


def _jumps(part: ca.SX, numbers: ca.SX, moving: ca.SX, s: LawAndSystem) -> bool:
    """Whether a part jumps where one of the numbers is zero.   moving: symbols of the state."""
    part, random = ca.densify(ca.vec(part)), np.random.default_rng(1)
    p = s.mechanism.p_symbols
    others = [x for x in ca.symvar(ca.vertcat(part, numbers)) if not ca.depends_on(x, ca.vertcat(moving, p))]
    f = ca.Function("part", [moving, p, ca.vertcat(ca.SX(0, 1), *others)], [part, numbers, ca.jacobian(numbers, moving)])
    given = np.asarray(s.mechanism.p_defaults), random.uniform(0.3, 0.9, len(others))

    def at(x: np.ndarray) -> list[np.ndarray]:
        return [np.array(y) for y in f(x, *given)]

    starts = random.uniform(-0.9, 0.9, (STARTS, moving.numel()))
    return any(_differs(at, _zero(at, k, x), k) for k in range(numbers.numel()) for x in starts)


def _zero(at: Callable[[np.ndarray], list[np.ndarray]], k: int, x: np.ndarray) -> np.ndarray:
    """A state near x at which number k is zero, by Newton's steps of least length; another one if these fail.

    at: state -> (part, numbers, their derivatives).
    """
    for _ in range(ITERATIONS):
        _, values, slopes = at(x)
        steepness = float(slopes[k] @ slopes[k])
        if abs(values[k, 0]) <= FOUND or not steepness > 0:
            break
        x = x - values[k, 0] / steepness * slopes[k]
    return x


def _differs(at: Callable[[np.ndarray], list[np.ndarray]], x: np.ndarray, k: int) -> bool:
    """Whether number k is zero at the state x and the part jumps there: it has other values on the two sides, however near."""
    _, values, slopes = at(x)
    steepness = float(np.linalg.norm(slopes[k]))
    if not (abs(values[k, 0]) <= FOUND and steepness > 0):
        return False
    across = slopes[k] / steepness
    sides = [[at(x + way * c * across)[0] for way in (1, -1)] for c in APART]
    far, near = (float(np.abs(a - b).max()) for a, b in sides)
    return near > max(SHRINKS * far, LEAST * float(np.abs(sides[0]).max()))
