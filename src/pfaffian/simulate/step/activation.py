"""Constraints that become active or jump during a run: near phi = 0 the state is put onto them, far from it the run stops.

Without this check the correction after a step would move the state onto such a constraint at once, over any distance. Near
means that the constraint was satisfied at the start of the step, or that the motion, or the rate of phi with time, leads to
phi = 0 within two steps.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

import casadi as ca
import numpy as np

from pfaffian.control.command import Fault, Reason
from pfaffian.control.reason import foremost
from pfaffian.kernel.remember import remembered
from pfaffian.model.constraint import Holonomic, Target
from pfaffian.model.mechanism import Mechanism
from pfaffian.terms.lengths import inverse_scale, reach
from pfaffian.terms.pfaffian import POSITION, Rows, activity, condition, position_residual, target_rows
from pfaffian.terms.terms import Terms, symbols

COMPARISONS = frozenset((ca.OP_LT, ca.OP_LE, ca.OP_EQ, ca.OP_NE, ca.OP_NOT, ca.OP_AND, ca.OP_OR, ca.OP_IF_ELSE_ZERO))
"""Operations whose value is a number even if an operand is NaN."""

JUMPING = COMPARISONS | {ca.OP_FLOOR, ca.OP_CEIL, ca.OP_SIGN, ca.OP_FMOD, ca.OP_REMAINDER, ca.OP_COPYSIGN, ca.OP_ATAN2}
"""Operations whose value may jump although their operands are continuous."""

NO_NUMBER = frozenset((
    ca.OP_DIV, ca.OP_INV, ca.OP_SQRT, ca.OP_LOG, ca.OP_POW, ca.OP_CONSTPOW, ca.OP_ASIN, ca.OP_ACOS, ca.OP_ACOSH, ca.OP_ATANH,
    ca.OP_FMOD, ca.OP_REMAINDER, ca.OP_TAN,
))  # fmt: skip
"""Operations that may give NaN although their operands are numbers."""


def switched(m: Mechanism) -> tuple[Target, ...]:
    """Ideal constraints that are active only while a condition holds."""
    return tuple(c for c in m.ideal if c.active is not None)


@remembered(64)
def faults(m: Mechanism, parameters: tuple[str, ...] = ()) -> tuple[Fault, ...]:
    """The faults whose flags `fault_flags` computes, in the same order.   parameters: names of those that the run changes."""
    conditional, discontinuous, undefined = switched(m), jumping(m, parameters), _undefined(m)
    listed = []
    if conditional:
        meaning = (
            f"a constraint became active (active_while) away from phi = 0: {_names(conditional)}; let it become active where "
            "the motion reaches phi = 0"
        )
        listed.append(Fault(meaning, _residual_reason(conditional)))
    if discontinuous:
        meaning = f"phi of a constraint jumped: {_names(discontinuous)}; let it change only as fast as the motion can follow"
        listed.append(Fault(meaning, _residual_reason(discontinuous)))
    if undefined:
        meaning = f"the condition of a constraint (active_while) became NaN: {_names(undefined)}"
        listed.append(Fault(meaning))
    return tuple(listed)


def fault_flags(before: Terms, after: Terms, ahead: Terms, h: ca.SX, limit: float, parameters: Sequence[str]) -> ca.SX:
    """(n, 1) flags, 1 for each of the `faults` that occurs in a step of h [s].

    before, after: Terms at the start of the step, and at its end before the state is corrected.   ahead: Terms at the state of
    the start, at rest, and the time of the end.   limit: |phi| that counts as satisfied, relative to the row's scale.
    """
    m = before.mechanism
    conditional, discontinuous, undefined = switched(m), jumping(m, parameters), _undefined(m)
    flags = []
    if conditional:
        flags.append(_any(_activated_away(before, after, c, h, limit) for c in conditional))
    if discontinuous:
        still = Terms(m, before.q, ahead.v, before.u, before.t)
        flags.append(_any(_activated_away(before, after, c, h, limit) for c in discontinuous if c not in conditional))
        flags[-1] = ca.logic_or(flags[-1], _any(_jumped(still, ahead, c, h, limit) for c in discontinuous))
    if undefined:
        operand_values = [x for c in undefined for T in (before, after) for x in _condition_operands(T, c)]
        flags.append(_any(ca.logic_not(ca.logic_or(x <= 1, x > 1)) for x in operand_values))
    return ca.vertcat(*flags)


def _any(flags: Iterator[ca.SX]) -> ca.SX:
    """Whether one of the flags is set."""
    result = ca.SX(0)
    for flag in flags:
        result = ca.logic_or(result, flag)
    return result


def _names(constraints: Sequence[Target]) -> str:
    return ", ".join(c.name for c in constraints)


def _always(T: Terms, c: Target) -> Rows:
    """The rows of a constraint, whether or not it is active."""
    return target_rows(T.kinematics, replace(c, active=None))


def _activity(T: Terms, c: Target) -> ca.SX:
    """1 while a constraint is active, else 0."""
    return activity(T.kinematics, c.active, c.name) if c.active else ca.SX(1)


def _activated_away(before: Terms, after: Terms, c: Target, h: ca.SX, limit: float) -> ca.SX:
    """Whether a constraint is active at the end of a step although the motion did not bring it near phi = 0."""
    begin, end, active, away = _always(before, c), _always(after, c), _activity(after, c), ca.SX(0)
    scale = 1 / inverse_scale(before.mechanism, c, begin.A, limit, reach(before.kinematics))
    for i in end.at(POSITION):
        near = limit * scale[i] + 2 * h * ca.fmax(ca.fabs(begin.eta[i]), ca.fabs(end.eta[i]))
        away = ca.logic_or(away, ca.logic_and(active, ca.fabs(begin.phi[i]) > near))
    return away


def _jumped(here: Terms, ahead: Terms, c: Target, h: ca.SX, limit: float) -> ca.SX:
    """Whether phi of a constraint, at a state at rest, changes with time by more than its rates at both ends explain."""
    begin, end, active, jumped = _always(here, c), _always(ahead, c), _activity(ahead, c), ca.SX(0)
    scale = 1 / inverse_scale(here.mechanism, c, begin.A, limit, reach(here.kinematics))
    for i in end.at(POSITION):
        near = limit * scale[i] + 2 * h * ca.fmax(ca.fabs(begin.eta[i]), ca.fabs(end.eta[i]))
        jumped = ca.logic_or(jumped, ca.logic_and(active, ca.fabs(end.phi[i] - begin.phi[i]) > near))
    return jumped


def jumping(m: Mechanism, parameters: Sequence[str]) -> tuple[Target, ...]:
    """Ideal constraints whose phi may jump: phi contains a parameter that the run changes, or it depends on time and contains
    an operation that may jump."""
    k, p = symbols(m).kinematics, [m.p_symbols[m.p_names.index(name)] for name in parameters]
    found = []
    for c in m.ideal:
        # The pose of a body does not depend on time alone, so phi of a closure can only jump with a parameter.
        phi = position_residual(k, c) if p or isinstance(c, Holonomic) else ca.SX(0, 1)
        if (p and ca.depends_on(phi, ca.vertcat(*p))) or (ca.depends_on(phi, k.t) and has(phi, JUMPING)):
            found.append(c)
    return tuple(found)


def _undefined(m: Mechanism) -> tuple[Target, ...]:
    """Constraints whose condition may become NaN."""
    return tuple(c for c in switched(m) if _condition_operands(symbols(m), c))


def _condition_operands(T: Terms, c: Target) -> list[ca.SX]:
    """The operands of the condition of a constraint that may be NaN."""
    return operands(condition(T.kinematics, c.active, c.name)) if c.active else []


def operands(x: ca.SX) -> list[ca.SX]:
    """The operands of the comparisons in the condition x that may be NaN at some state."""
    found, seen, pending = [], set[int](), [x]
    while pending:
        node = pending.pop()
        if node.element_hash() in seen:
            continue
        seen.add(node.element_hash())
        if node.n_dep() and node.op() in COMPARISONS:
            pending += [node.dep(i) for i in range(node.n_dep())]
        elif has(node, NO_NUMBER):
            found.append(node)
    return found


def has(x: ca.SX, operations: frozenset[int]) -> bool:
    """Whether an expression contains one of the operations."""
    f = ca.Function("f", ca.symvar(x), [x])
    return any(f.instruction_id(i) in operations for i in range(f.n_instructions()))


def _residual_reason(constraints: Sequence[Target]) -> Reason:
    """The reason of a fault: phi of each of these constraints at the last state of a run."""

    def words(m: Mechanism, phi: Mapping[str, np.ndarray]) -> str:
        return f"at its last state {', '.join(f'phi of {name!r} is {x[foremost(x)]:.3g}' for name, x in phi.items())}"

    return Reason({c.name: partial(_residual, c) for c in constraints}, words)


def _residual(c: Target, T: Terms) -> ca.SX:
    """phi of a constraint, whether or not it is active."""
    return _always(T, c).phi
