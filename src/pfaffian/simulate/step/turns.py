"""Turns of closures: a run counts those that the pose of a closure leaves open, by parameters that it changes itself.

The angle of such a closure is known up to full turns (`terms/loop_joints.py`). What it has left behind is a discrete state of a
run, like a mode: a parameter after the mechanism's own, which callers neither give nor see, and whose next value follows from
the angle at the end of a step. So springs, laws, outputs and records continue the angle from step to step.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import Any

import casadi as ca

from pfaffian.control.law import Control
from pfaffian.control.law_digest import digest as law_digest
from pfaffian.kernel.remember import once_for
from pfaffian.model.compound import each
from pfaffian.model.constraint import Closure, Servo
from pfaffian.model.loop_coordinates import loop_coordinates_of
from pfaffian.model.mechanism import Mechanism
from pfaffian.model.number import Parameter
from pfaffian.simulate.step.run_arguments import arguments
from pfaffian.simulate.step.signals import OutputFunction, output_digest
from pfaffian.simulate.step.step import DEFAULT, Scheme
from pfaffian.simulate.step.switches import as_switches
from pfaffian.states.abstract_system import AbstractSystem
from pfaffian.terms.loop_joints import open_turns, uncounted
from pfaffian.terms.terms import shared
from pfaffian.terms.traced_now import present

Named = tuple[str, OutputFunction]
"""A function of the kinematics, or of terms and motion, with its name."""


def counting_arguments(
    system: AbstractSystem, scheme: Any, control: Any, outputs: Any, switches: Any, integrator: str = DEFAULT
) -> tuple[AbstractSystem, Scheme, Control, tuple[Named, ...]]:
    """A system that counts the turns of its closures, and the checked `arguments` of its runs, explained there."""
    scheme, law, extra = arguments(system.mechanism, scheme, control, outputs, integrator)
    return counting_turns(system, law, extra, switches), scheme, law, extra


def counting_turns(system: AbstractSystem, control: Control, outputs: tuple[Named, ...], switches: Any) -> AbstractSystem:
    """The system with parameters that count the turns of its closures, as far as a run needs them; else the system itself.

    A run needs them for closures that carry something, or along which a force or an input acts; and for all where a function of
    the machine, the law, the outputs or the switches reads the angle of another one.
    """
    m = system.mechanism
    if not m.loop_joints or not (open_ := _open(m)):
        return system
    needed = open_ & {c.name for c in loop_coordinates_of(m).closures}
    if needed != open_ and _is_read(m, open_, needed, control, (*outputs, *as_switches(m, switches).next)):
        needed = open_
    return replace(system, mechanism=_counting(m, needed, needed)) if needed else system


def _open(m: Mechanism) -> set[str]:
    """Names of the closures whose turns nothing counts yet."""
    k = shared(m).kinematics
    return {name for name, c in m.loop_joints.items() if uncounted(k, c)}


def _counting(m: Mechanism, listed: Collection[str], counted: Collection[str]) -> Mechanism:
    """The mechanism with parameters for the angles of the closures `listed`, by which those of `counted` are counted."""
    key = f"counting {sorted(counted)!r} of {sorted(listed)!r}"
    return once_for(m, key, lambda: _with_counters(m, listed, counted))


def _with_counters(m: Mechanism, listed: Collection[str], counted: Collection[str]) -> Mechanism:
    """See `_counting`."""
    k = shared(m).kinematics
    counters = {
        name: [Parameter(_unused(f"turns of {name} {i}", m), 0.0, "rad") for i, _ in open_turns(k, c)]
        for name, c in m.loop_joints.items()
        if name in listed
    }

    def counting(c: Any) -> Any:
        if isinstance(c, Servo):
            return replace(c, target=counting(c.target))
        if not isinstance(c, Closure) or c.name not in counted:
            return c
        return replace(c, counted=ca.vertcat(*[p.symbol for p in counters[c.name]]))

    more = [p for of_closure in counters.values() for p in of_closure]
    return replace(m, constraints=each(m.constraints, counting), parameters=(*m.parameters, *more))


def _unused(name: str, m: Mechanism) -> str:
    """A name that no parameter has."""
    while name in m.p_names:
        name += "'"
    return name


def _is_read(m: Mechanism, open_: set[str], needed: set[str], law: Control, functions: Iterable[Named]) -> bool:
    """Whether a function reads the angle of a closure among `open_` but not `needed`: its graph changes with the counters."""
    graphs, given = [], tuple(functions)
    for counted in (open_, needed):
        x = present(_counting(m, open_, counted))
        rest = [c for c in x.all_constraints if not isinstance(c, Closure)]
        graphs.append((x.all_forces, rest, law_digest(law, x), [output_digest(name, f, x) for name, f in given]))
    return graphs[0] != graphs[1]
