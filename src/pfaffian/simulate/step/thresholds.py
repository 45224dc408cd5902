"""The comparisons that decide conditions, each with a number that passes zero where it changes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import reduce
from typing import Any, NamedTuple

import casadi as ca

from pfaffian.simulate.step.activation import NO_NUMBER, has

COMPARED = (ca.OP_LT, ca.OP_LE, ca.OP_EQ, ca.OP_NE)


def _zero_at_integers(x: ca.SX) -> ca.SX:
    """sin(pi x), which is exactly zero for integers."""
    whole = ca.floor(x + 0.5)
    return ca.sin(ca.pi * (x - whole)) * ca.cos(ca.pi * whole)


JUMPS: dict[int, Callable[..., tuple[Any, Any]]] = {
    **{op: lambda x, y: (x - y, x < y) for op in COMPARED},
    ca.OP_FLOOR: lambda x: (_zero_at_integers(x), ca.floor(x)),
    ca.OP_CEIL: lambda x: (_zero_at_integers(x), ca.ceil(x)),
    ca.OP_SIGN: lambda x: (x, ca.sign(x)),
    ca.OP_COPYSIGN: lambda x, y: (y, y < 0),
    ca.OP_FMOD: lambda x, y: (_zero_at_integers(x / y), ca.floor((x - ca.fmod(x, y)) / y + 0.5)),  # as exact as fmod
    ca.OP_ATAN2: lambda y, x: (y, y < 0),
}
"""Operations that jump: of their operands, a number that is zero where they do, and one that changes there only."""

SMOOTH_BETWEEN = (ca.OP_FMOD, ca.OP_ATAN2)
"""Those of them that also change between their jumps."""


class Threshold(NamedTuple):
    """A comparison in a condition, or a jump of the numbers that one compares.

    difference: zero where it changes.   value: its own.   size: of the numbers of which that is the difference, 0 for jumps of
    other kinds.   inner: indices of the jumps of its difference.
    """

    difference: ca.SX
    value: ca.SX
    size: ca.SX
    inner: tuple[int, ...]


class Compared(NamedTuple):
    """The comparisons in conditions, each after the jumps of its numbers.   symbols: (k, 1) of their values.   states: the
    conditions with these symbols."""

    comparisons: list[Threshold]
    symbols: ca.SX
    states: ca.SX


def compared(x: ca.SX, moving: ca.SX, inside: bool = True) -> Compared:
    """The outermost comparisons in x whose numbers depend on the symbols `moving`, and the jumps of these numbers; numbers that
    are rounded are compared with the integers.   inside: whether jumps of numbers are wanted."""
    found, symbols, made, jumps = list[Threshold](), list[ca.SX](), dict[int, ca.SX](), dict[int, tuple[int, ...]]()

    def add(node: ca.SX, difference: ca.SX, value: ca.SX, inner: tuple[int, ...]) -> int:
        """Append the threshold of an operation and return its index."""
        size = sum(map(ca.fabs, _operands(node)), ca.SX(0)) if node.op() in COMPARED else ca.SX(0)
        found.append(Threshold(difference, value, size, inner))
        symbols.append(ca.SX.sym(f"b{len(symbols)}"))
        return len(found) - 1

    def jumps_of(numbers: list[ca.SX]) -> tuple[int, ...]:
        """The indices of the jumps in numbers, the innermost first."""
        return _union(within(x) for x in numbers) if inside else ()

    def within(x: ca.SX) -> tuple[int, ...]:
        """The indices of the jumps in a number, the innermost first."""
        pending = [x]
        while pending:
            node = pending[-1]
            operands = _operands(node)
            if unknown := [y for y in operands if y.element_hash() not in jumps]:
                pending += unknown
                continue
            pending.pop()
            inner = _union(jumps[y.element_hash()] for y in operands)
            if node.op() in JUMPS and node.element_hash() not in jumps:
                difference, value = JUMPS[node.op()](*operands)
                if ca.depends_on(difference, moving):
                    inner = (*inner, add(node, difference, value, inner))
            jumps.setdefault(node.element_hash(), inner)
        return jumps[x.element_hash()]

    def replaced(node: ca.SX) -> ca.SX:
        """The expression with symbols of comparisons."""
        if node.element_hash() not in made:
            made[node.element_hash()] = rebuilt(node)
        return made[node.element_hash()]

    def rebuilt(node: ca.SX) -> ca.SX:
        """An expression made anew of its replaced arguments; of a comparison, its symbol."""
        operands = _operands(node)
        if node.op() in JUMPS and node.op() not in SMOOTH_BETWEEN:
            difference, _ = JUMPS[node.op()](*operands)
            if ca.depends_on(difference, moving):
                return symbols[add(node, difference, node, jumps_of(operands))]
        if not operands or not ca.depends_on(node, moving):
            return node
        parts = [replaced(operand) for operand in operands]
        return ca.SX.unary(node.op(), parts[0]) if len(parts) == 1 else ca.SX.binary(node.op(), *parts)

    with_symbols = ca.vertcat(ca.SX(0, 1), *[replaced(x[i]) for i in range(x.numel())])
    return Compared(found, ca.vertcat(ca.SX(0, 1), *symbols), with_symbols)


def undefined(states: ca.SX, found: Compared) -> ca.SX:
    """(n, 1) whether a comparison with NaN decides each of the conditions, whose values are `states`; structurally zero for
    those that none may decide."""
    values = ca.vertcat(ca.SX(0, 1), *[c.value for c in found.comparisons])
    nan = ca.SX(*values.shape)
    for k, c in enumerate(found.comparisons):
        if has(c.difference, NO_NUMBER):
            nan[k] = ca.logic_not(ca.logic_or(c.difference <= 0, c.difference > 0))
    doubtful = nan.sparsity().row()
    flags, groups = ca.SX(*states.shape), [[k] for k in doubtful] + ([doubtful] if len(doubtful) > 1 else [])
    for group in groups:  # together too: of two numbers that end at once, none decides alone
        other = ca.SX(values)
        for k in group:
            other[k] = ca.if_else(nan[k], ca.logic_not(values[k]), values[k])
        (otherwise,) = ca.substitute([found.states], [found.symbols], [other])
        for i in range(states.numel()):
            if ca.depends_on(found.states[i], found.symbols[group]):
                decides = ca.logic_and(reduce(ca.logic_or, [nan[k] for k in group]), otherwise[i] != states[i])
                flags[i] = ca.logic_or(flags[i], decides)
    return flags


def _operands(node: ca.SX) -> list[ca.SX]:
    """The operands of an expression."""
    return [node.dep(i) for i in range(node.n_dep())]


def _union(groups: Iterable[tuple[int, ...]]) -> tuple[int, ...]:
    """The numbers of all groups, each once."""
    return tuple(dict.fromkeys(i for group in groups for i in group))
