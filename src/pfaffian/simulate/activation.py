"""Constraints that come on or jump during a run: near phi = 0 the state is put onto them, far from it the run stops.

Otherwise the correction after a step would move the state onto them at once, however far that is. Near means that the
constraint was satisfied at the start of the step, that a motion of at most two steps leads to it, or that the rate of phi with
time does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

import casadi as ca
import numpy as np

from pfaffian.control.law import Fault, Reason
from pfaffian.control.reason import foremost
from pfaffian.kernel.remember import remembered
from pfaffian.model.constraint import Holonomic, Target
from pfaffian.model.mechanism import Mechanism
from pfaffian.terms.lengths import inverse_scale, reach
from pfaffian.terms.pfaffian import POSITION, Rows, activity, condition, position_residual, target_rows
from pfaffian.terms.terms import Terms, symbols

COMPARISONS = frozenset((ca.OP_LT, ca.OP_LE, ca.OP_EQ, ca.OP_NE, ca.OP_NOT, ca.OP_AND, ca.OP_OR, ca.OP_IF_ELSE_ZERO))
"""Operations whose value is a number even where an operand is NaN."""

JUMPING = COMPARISONS | {ca.OP_FLOOR, ca.OP_CEIL, ca.OP_SIGN, ca.OP_FMOD, ca.OP_REMAINDER, ca.OP_COPYSIGN, ca.OP_ATAN2}
"""Operations that may jump where their operands do not."""

NO_NUMBER = frozenset((
    ca.OP_DIV, ca.OP_INV, ca.OP_SQRT, ca.OP_LOG, ca.OP_POW, ca.OP_CONSTPOW, ca.OP_ASIN, ca.OP_ACOS, ca.OP_ACOSH, ca.OP_ATANH,
    ca.OP_FMOD, ca.OP_REMAINDER, ca.OP_TAN,
))  # fmt: skip
"""Operations that may give NaN where their operands are numbers."""


def switched(m: Mechanism) -> tuple[Target, ...]:
    """Ideal constraints that are active only while a condition holds."""
    return tuple(c for c in m.ideal if c.active is not None)


@remembered(64)
def faults(m: Mechanism, parameters: tuple[str, ...] = ()) -> tuple[Fault, ...]:
    """The faults that `fault_flags` tells of, in order.   parameters: those that the run changes."""
    come, jump, unclear = switched(m), jumping(m, parameters), _unclear(m)
    listed = []
    if come:
        meaning = (
            f"a constraint came on (active_while) away from phi = 0: {_names(come)}; let it come on where the motion meets it"
        )
        listed.append(Fault(meaning, _away(come)))
    if jump:
        meaning = f"phi of a constraint jumped: {_names(jump)}; let it change as fast as the motion can follow"
        listed.append(Fault(meaning, _away(jump)))
    if unclear:
        meaning = f"the condition of a constraint (active_while) became no number: {_names(unclear)}"
        listed.append(Fault(meaning))
    return tuple(listed)


def fault_flags(before: Terms, after: Terms, ahead: Terms, h: ca.SX, limit: float, parameters: Sequence[str] = ()) -> ca.SX:
    """(n, 1) flags, 1 where a step of h [s] has one of the `faults`.

    before, after: the state at the start of the step, and at its end before it is corrected.   ahead: that at the start, at
    rest, at the time of the end.   limit: |phi| that counts as satisfied, relative to the row's scale.
    """
    m = before.mechanism
    come, jump, unclear = switched(m), jumping(m, parameters), _unclear(m)
    flags = []
    if come:
        flags.append(_any(_off(before, after, c, h, limit) for c in come))
    if jump:
        still = Terms(m, before.q, ahead.v, before.u, before.t)
        flags.append(_any(_off(before, after, c, h, limit) for c in jump if c not in come))
        flags[-1] = ca.logic_or(flags[-1], _any(_leapt(still, ahead, c, h, limit) for c in jump))
    if unclear:
        every = [x for c in unclear for T in (before, after) for x in _compared(T, c)]
        flags.append(_any(ca.logic_not(ca.logic_or(x <= 1, x > 1)) for x in every))
    return ca.vertcat(*flags)


def _any(flags: Iterator[ca.SX]) -> ca.SX:
    found = ca.SX(0)
    for flag in flags:
        found = ca.logic_or(found, flag)
    return found


def _names(constraints: Sequence[Target]) -> str:
    return ", ".join(c.name for c in constraints)


def _always(T: Terms, c: Target) -> Rows:
    """The rows of a constraint, whether or not it is active."""
    return target_rows(T.kinematics, replace(c, active=None))


def _on(T: Terms, c: Target) -> ca.SX:
    return activity(T.kinematics, c.active, c.name) if c.active else ca.SX(1)


def _off(before: Terms, after: Terms, c: Target, h: ca.SX, limit: float) -> ca.SX:
    """Whether a constraint is active at the end of a step although the motion did not lead to it."""
    was, now, on, off = _always(before, c), _always(after, c), _on(after, c), ca.SX(0)
    scale = 1 / inverse_scale(before.mechanism, c, was.A, limit, reach(before.kinematics))
    for i in now.at(POSITION):
        near = limit * scale[i] + 2 * h * ca.fmax(ca.fabs(was.eta[i]), ca.fabs(now.eta[i]))
        off = ca.logic_or(off, ca.logic_and(on, ca.fabs(was.phi[i]) > near))
    return off


def _leapt(here: Terms, ahead: Terms, c: Target, h: ca.SX, limit: float) -> ca.SX:
    """Whether phi of a constraint changes with time, the state at rest, by more than its rates at both ends explain."""
    was, now, on, leapt = _always(here, c), _always(ahead, c), _on(ahead, c), ca.SX(0)
    scale = 1 / inverse_scale(here.mechanism, c, was.A, limit, reach(here.kinematics))
    for i in now.at(POSITION):
        near = limit * scale[i] + 2 * h * ca.fmax(ca.fabs(was.eta[i]), ca.fabs(now.eta[i]))
        leapt = ca.logic_or(leapt, ca.logic_and(on, ca.fabs(now.phi[i] - was.phi[i]) > near))
    return leapt


def jumping(m: Mechanism, parameters: Sequence[str]) -> tuple[Target, ...]:
    """Ideal constraints whose phi may jump: it contains a parameter that the run changes, or a comparison with the time."""
    k, p = symbols(m).kinematics, [m.p_symbols[m.p_names.index(name)] for name in parameters]
    found = []
    for c in m.ideal:
        # Bodies do not move with time by themselves, so a closure does not either.
        phi = position_residual(k, c) if p or isinstance(c, Holonomic) else ca.SX(0, 1)
        if (p and ca.depends_on(phi, ca.vertcat(*p))) or (ca.depends_on(phi, k.t) and _has(phi, JUMPING)):
            found.append(c)
    return tuple(found)


def _unclear(m: Mechanism) -> tuple[Target, ...]:
    """Constraints whose condition may become NaN."""
    return tuple(c for c in switched(m) if _compared(symbols(m), c))


def _compared(T: Terms, c: Target) -> list[ca.SX]:
    return operands(condition(T.kinematics, c.active, c.name)) if c.active else []


def operands(x: ca.SX) -> list[ca.SX]:
    """The operands of a condition's comparisons that may be NaN at some state."""
    found, seen, left = [], set[int](), [x]
    while left:
        node = left.pop()
        if node.element_hash() in seen:
            continue
        seen.add(node.element_hash())
        if node.n_dep() and node.op() in COMPARISONS:
            left += [node.dep(i) for i in range(node.n_dep())]
        elif _has(node, NO_NUMBER):
            found.append(node)
    return found


def _has(x: ca.SX, operations: frozenset[int]) -> bool:
    """Whether an expression contains one of the operations."""
    f = ca.Function("f", ca.symvar(x), [x])
    return any(f.instruction_id(i) in operations for i in range(f.n_instructions()))


def _away(constraints: Sequence[Target]) -> Reason:
    """Says how far from zero phi of each of them was at the last state of a run."""

    def words(m: Mechanism, phi: Mapping[str, np.ndarray]) -> str:
        return f"at its last state {', '.join(f'phi of {name!r} is {x[foremost(x)]:.3g}' for name, x in phi.items())}"

    return Reason({c.name: partial(_residual, c) for c in constraints}, words)


def _residual(c: Target, T: Terms) -> ca.SX:
    return _always(T, c).phi
