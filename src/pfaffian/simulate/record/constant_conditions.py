"""Conditions that no motion changes: constraints that always or never act, comparisons of equal numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import casadi as ca
import numpy as np

from pfaffian.errors import RunWarning, notice
from pfaffian.kernel.remember import remembered
from pfaffian.model.user_functions import call_for_column
from pfaffian.simulate.step.activation import switched
from pfaffian.simulate.step.kinks import EQUAL, SIZES
from pfaffian.simulate.step.signals import MotionOutput
from pfaffian.simulate.step.simulation import Simulation
from pfaffian.simulate.step.thresholds import COMPARED
from pfaffian.terms.pfaffian import condition
from pfaffian.terms.terms import symbols

STATES = 4
"""Number of random states of each size at which numbers are compared."""

WAY_OUT = "compare numbers that change with the motion"


def warn_of_constant_conditions(s: Simulation) -> None:
    """Warn of the conditions of a simulation that no motion changes."""
    if switched(s.mechanism) or s.changing.visible:
        for words in _constant(s):
            notice(words, RunWarning)


@remembered(64)
def _constant(s: Simulation) -> tuple[str, ...]:
    """What is said of each condition that no motion changes."""
    found = list[str]()
    for what, x, as_words in _conditions(s):
        if not ca.symvar(x):
            found.append(f"{what} is the same everywhere, {as_words(float(x))}: {WAY_OUT}")
        elif _compares_equal(x):
            found.append(f"{what} compares numbers that are equal everywhere, so that rounding decides: {WAY_OUT}")
    return tuple(found)


def _conditions(s: Simulation) -> Iterator[tuple[str, ca.SX, Callable[[float], str]]]:
    """Of each condition: what it is, its expression, and the words for a value."""
    k = symbols(s.mechanism).kinematics
    for c in switched(s.mechanism):
        if c.active is not None:
            yield f"constraint {c.name!r}: active_while", condition(k, c.active, c.name), _acting
    for name, f in s.changing.next:
        if name in s.changing.visible and not isinstance(f, MotionOutput):
            yield f"switch {name!r}", call_for_column(f, f"switch {name!r}", k), "{:g}".format


def _acting(value: float) -> str:
    """Whether a constraint acts."""
    return "true, so that it always acts" if value else "false, so that it never acts"


def _compares_equal(x: ca.SX) -> bool:
    """Whether a comparison in x is of numbers that are equal at random states of all SIZES."""
    pairs = list(_compared(x))
    if not pairs:
        return False
    given = ca.vertcat(*ca.symvar(x))
    f = ca.Function("compared", [given], [ca.vertcat(*side) for side in zip(*pairs, strict=True)])
    random = np.random.default_rng(1)
    states = np.concatenate([size * random.uniform(-1, 1, (given.numel(), STATES)) for size in SIZES], axis=1)
    left, right = (np.array(side) for side in f(states))
    equal = np.abs(left - right) <= EQUAL * np.maximum(np.abs(left), np.abs(right))
    return bool(equal.all(axis=1).any())


def _compared(x: ca.SX) -> Iterator[tuple[ca.SX, ca.SX]]:
    """The two numbers of each comparison in an expression."""
    pending, seen = ca.vertsplit(x), set[int]()
    while pending:
        node = pending.pop()
        if node.element_hash() not in seen:
            seen.add(node.element_hash())
            pending += [node.dep(i) for i in range(node.n_dep())]
            if node.op() in COMPARED:
                yield node.dep(0), node.dep(1)
