"""Conditions that no motion changes: constraints that always or never act, comparisons of equal numbers, or by ==."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

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
from pfaffian.terms.kinematics import Kinematics
from pfaffian.terms.pfaffian import condition
from pfaffian.terms.terms import symbols

STATES = 4
"""Number of random states of each size at which numbers are compared."""

WAY_OUT = "compare numbers that change with the motion"

LOGIC = (ca.OP_NOT, ca.OP_AND, ca.OP_OR, ca.OP_ADD, ca.OP_IF_ELSE_ZERO)
"""Operations through which a comparison decides a condition, or the choice between two values."""


def warn_of_constant_conditions(s: Simulation) -> None:
    """Warn of the conditions of a simulation that no motion changes."""
    if switched(s.mechanism) or s.changing.visible:
        for words in _constant(s):
            notice(words, RunWarning)


@remembered(64)
def _constant(s: Simulation) -> tuple[str, ...]:
    """What is said of each condition that no motion changes."""
    found, k = list[str](), symbols(s.mechanism).kinematics
    for what, x, as_words in _conditions(s, k):
        if not ca.symvar(x):
            found.append(f"{what} is the same everywhere, {as_words(float(x))}: {WAY_OUT}")
        elif _compares_equal(x):
            found.append(f"{what} compares numbers that are equal everywhere, so that rounding decides: {WAY_OUT}")
        elif _compares_by_equality(x, ca.vertcat(k.q, k.v, k.t)):
            found.append(
                f"{what} compares by == or != numbers that change with the motion, which are equal at single instants, where "
                "no step ends: compare them by <= or >="
            )
    return tuple(found)


def _conditions(s: Simulation, k: Kinematics) -> Iterator[tuple[str, ca.SX, Callable[[float], str]]]:
    """Of each condition: what it is, its expression, and the words for a value."""
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
    pairs = [(node.dep(0), node.dep(1)) for node in _nodes(x) if node.op() in COMPARED]
    if not pairs:
        return False
    given = ca.vertcat(*ca.symvar(x))
    f = ca.Function("compared", [given], [ca.vertcat(*side) for side in zip(*pairs, strict=True)])
    random = np.random.default_rng(1)
    states = np.concatenate([size * random.uniform(-1, 1, (given.numel(), STATES)) for size in SIZES], axis=1)
    left, right = (np.array(side) for side in f(states))
    equal = np.abs(left - right) <= EQUAL * np.maximum(np.abs(left), np.abs(right))
    return bool(equal.all(axis=1).any())


def _compares_by_equality(x: ca.SX, moving: ca.SX) -> bool:
    """Whether x is decided by an equality of numbers that change continuously with the symbols `moving`."""
    equalities = [node for node in _nodes(x, LOGIC) if node.op() in (ca.OP_EQ, ca.OP_NE)]
    return any(ca.sparsify(ca.jacobian(node.dep(0) - node.dep(1), moving)).nnz() for node in equalities)


def _nodes(x: ca.SX, through: Sequence[int] = ()) -> Iterator[ca.SX]:
    """The operations in an expression, each once.   through: those whose operands are looked at; all if empty."""
    pending, seen = ca.vertsplit(x), set[int]()
    while pending:
        node = pending.pop()
        if node.element_hash() not in seen:
            seen.add(node.element_hash())
            yield node
            if not through or node.op() in through:
                pending += [node.dep(i) for i in range(node.n_dep())]
