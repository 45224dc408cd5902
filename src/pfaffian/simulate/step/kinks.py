"""Kinks and jumps of a user's forces, laws and rows along a motion, such as those of abs, fmin, fmax and if_else.

A step across one has an error that follows no order, and that the difference of two solutions may hide. Under error control the
instants at which a motion passes them are therefore events, like those at which compliant surfaces touch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import reduce
from itertools import islice
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from pfaffian.control.open_loop import is_open
from pfaffian.maths.reflection import NOTHING
from pfaffian.model.constraint import Closure
from pfaffian.model.load_loss import LoadLoss
from pfaffian.parts.contact import compliant_gaps, compliant_parts
from pfaffian.simulate.step.closed_loop import ClosedLoop, LawAndSystem, traced_loop
from pfaffian.simulate.step.sampling import in_python
from pfaffian.simulate.step.thresholds import JUMPS, compared, undefined
from pfaffian.terms.applied_forces import force_of
from pfaffian.terms.pfaffian import target_rows

MOST, CHEAP = 16, 200
"""Greatest number of kinks of a machine that are located, and of the operations that give the numbers which pass zero there.
Where there are more, as in laws that select directions by their rank, steps meet them by becoming short."""

KINKS: dict[int, Callable[..., Any]] = {
    ca.OP_FABS: lambda x: x, ca.OP_FMIN: lambda x, y: x - y, ca.OP_FMAX: lambda x, y: x - y,
    **{op: lambda *x, jump=jump: jump(*x)[0] for op, jump in JUMPS.items() if op != ca.OP_ATAN2},
}  # fmt: skip
"""Operations with a kink or a jump -> the number that is zero there; atan2 jumps by a whole turn, to the same angle."""

EQUAL = 1e-12
"""Relative difference up to which two numbers count as equal, at random states of all these sizes."""

SIZES = (1e-12, 1e-8, 1e-4, 1.0, 1e4, 1e8)
"""Of these states: distances between kinks may be small beside a machine."""


class Kink(NamedTuple):
    """A kink of a part.   number: that passes zero there.   part: its name.   undefined: whether a comparison with NaN decides
    what the part does, structurally zero where none may and for all kinks of a part but the first; None: `number` is compared.
    """

    number: ca.SX
    part: str
    undefined: ca.SX | None = None


def gaps_and_kinks(loop: ClosedLoop) -> dict[str, Kink]:
    """{name: Kink} of compliant surfaces and of other parts; those of one part are numbered."""
    found = {name: Kink(gap, name) for name, gap in compliant_gaps(loop.here.T.kinematics).items()}
    several, at = _kinks(loop), ca.vertcat(moving_symbols(loop), loop.here.T.t, loop.w)
    for name, part in parts_that_act(loop) if several else ():
        numbers = several.pop(name, [])
        undecided = [_undecided(part, at)] + [ca.SX(1, 1)] * len(numbers)
        for i, x in enumerate(numbers):
            found[name if len(numbers) == 1 else f"{name} {i}"] = Kink(x, name, undecided[i])
    return found


def _undecided(part: ca.SX, at: ca.SX) -> ca.SX:
    """Whether comparisons with NaN decide the value of a part; structurally zero where none may, or where it is not CHEAP to
    tell."""
    values = ca.vec(ca.densify(part))
    flags = undefined(values, compared(values, at, inside=False))
    flag = reduce(ca.logic_or, [flags[i] for i in flags.sparsity().row()], ca.SX(1, 1))
    return flag if ca.Function("flag", ca.symvar(flag), [flag]).n_instructions() <= CHEAP else ca.SX(1, 1)


def may_have_kinks(s: LawAndSystem) -> bool:
    """Whether a simulation has parts of which some have kinks; the others need not be searched."""
    m = s.mechanism
    return bool(m.all_forces or m.compounds or (m.nu and not is_open(s.control))) or any(
        not isinstance(c, Closure) for c in m.ideal
    )


def has_kinks(s: LawAndSystem) -> bool:
    """Whether compliant surfaces, forces, the law or rows of a simulation have kinks that are located."""
    return bool(compliant_parts(s.mechanism)) or bool(_kinks(traced_loop(s)))


def moving_symbols(loop: ClosedLoop) -> ca.SX:
    """The symbols with which a motion passes kinks."""
    return ca.vertcat(loop.here.T.q, loop.here.T.v, loop.z)


def _kinks(loop: ClosedLoop) -> dict[str, list[ca.SX]]:
    """{name: numbers that pass zero} of the parts with kinks; none at all if they are many, or costly to evaluate."""
    moving = moving_symbols(loop)
    found = [(name, x) for name, part in parts_that_act(loop) for x in islice(passing_zero(part, moving), 2 * MOST + 1)]
    if not found or len(found) > 2 * MOST:
        return {}
    numbers = ca.vertcat(*[x for _, x in found])
    cost = ca.Function("numbers", ca.symvar(numbers), [numbers]).n_instructions()
    several = dict[str, list[ca.SX]]()
    for (name, x), known in zip(found, _repeated(numbers, moving), strict=True):
        if not known:
            several.setdefault(name, []).append(x)
    return several if sum(map(len, several.values())) <= MOST and cost <= CHEAP else {}


def _repeated(numbers: ca.SX, moving: ca.SX) -> list[bool]:
    """Whether each number or its negative is an earlier one, as those of a force and of its energy, or of an expression that is
    written twice. They are told by their values and rates at states of several sizes, unless they are constant at all of them:
    where limits are reached, their numbers may be equal. A difference that is rounding at all of them counts as known too: as
    1 - x / x, it passes zero without a kink."""
    random = np.random.default_rng(1)
    sizes = ca.vertcat(*[_size(numbers[i]) for i in range(numbers.numel())])
    rates = ca.jtimes(numbers, moving, ca.DM(random.uniform(0.3, 0.9, moving.numel())))
    others = [x for x in ca.symvar(numbers) if not ca.depends_on(x, moving)]
    f = ca.Function("numbers", [moving, ca.vertcat(ca.SX(0, 1), *others)], [numbers, rates, sizes])
    at = list[np.ndarray]()
    for size in SIZES:
        state, given = (random.uniform(0.3, 0.9, n) for n in (moving.numel(), len(others)))
        at.append(np.abs(np.hstack([np.array(x) for x in f(size * state, given)])))
    values, parts = np.split(np.stack(at, axis=1), [2], axis=2)  # (numbers, sizes, value and rate), (numbers, sizes, 1)
    moves = (values[..., 1] > 0).any(axis=1)
    rounded = (values[..., 0] <= EQUAL * parts[..., 0]).all(axis=1) & (values > 0).any(axis=(1, 2))
    same = [(np.abs(values[:i] - x) <= EQUAL * x).all(axis=(1, 2)).any() for i, x in enumerate(values)]
    return (rounded | (moves & np.array(same, dtype=bool))).tolist()


def _size(x: ca.SX) -> ca.SX:
    """The size of the parts of a difference; of another number, its own."""
    parts = [x.dep(i) for i in range(x.n_dep())] if x.op() in (ca.OP_SUB, ca.OP_ADD) else [x]
    return reduce(ca.fmax, map(ca.fabs, parts))


def parts_that_act(loop: ClosedLoop) -> Iterator[tuple[str, ca.SX]]:
    """(name, expression) of each force, each constraint of a user, as where it acts, and the inputs that act."""
    m, k = loop.sim.mechanism, loop.here.T.kinematics
    surfaces = {part.name for c in m.compounds if c.name in compliant_parts(m) for part in c.parts}
    for force in m.all_forces:
        if force.name not in surfaces and not isinstance(force, LoadLoss):
            yield force.name, force_of(k, force)
    for c in m.ideal:
        if not isinstance(c, Closure):
            rows = target_rows(k, replace(c, active=None))
            yield c.name, ca.veccat(rows.A, rows.b)
    if m.nu and not in_python(loop.sim.control):
        yield "control law", loop.acting


def passing_zero(x: ca.SX, moving: ca.SX, numbers: Mapping[int, Callable[..., Any]] = KINKS) -> Iterator[ca.SX]:
    """The numbers in an expression that are zero at its kinks and jumps, as far as they change with the symbols `moving`.

    numbers: operation -> what is zero there.
    """
    pending, seen = ca.vertsplit(ca.vec(ca.densify(x))), set[int]()
    while pending:
        node = pending.pop()
        if node.element_hash() in seen:
            continue
        seen.add(node.element_hash())
        operands = [node.dep(i) for i in range(node.n_dep())]
        pending += operands
        if node.op() in numbers and not any(_is_least(y) for y in operands):
            difference = numbers[node.op()](*operands)
            if ca.depends_on(difference, moving):
                yield difference


def _is_least(x: ca.SX) -> bool:
    """Whether x is a number that only keeps a divisor from zero."""
    return bool(x.is_constant()) and 0 < abs(float(x)) <= NOTHING
