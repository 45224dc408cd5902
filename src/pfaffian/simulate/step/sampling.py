"""Laws in discrete time within a run: the functions that evaluate their parts, and the steps at which these are due."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from pfaffian import kernel
from pfaffian.control.command import Command
from pfaffian.control.law import Control
from pfaffian.control.law_digest import digest as law_digest
from pfaffian.control.law_part import LawPart
from pfaffian.control.layout import Layout, PartFunction, Slots, layout, part_functions, sizes
from pfaffian.dynamics import formulation
from pfaffian.errors import ModelError, brief
from pfaffian.maths.random import WORD
from pfaffian.model.mechanism import Mechanism
from pfaffian.model.number import is_whole, real_array
from pfaffian.simulate.step.limits import saturated
from pfaffian.simulate.step.step import Scheme
from pfaffian.simulate.step.switches import Switches
from pfaffian.states.abstract_system import AbstractSystem, At
from pfaffian.terms.equations_digest import digest
from pfaffian.terms.terms import Terms

WHOLE = 1e-9
"""Largest difference of a period or phase from a whole number of steps, as a fraction of the period."""


def layout_of(control: Control, m: Mechanism, changing: Switches, law: str, eventful: bool) -> Layout:
    """The layout of the discrete state d: the values of the law, the switched parameters, and numbers that locate events. Its
    sizes are cached by digest."""
    if not control.parts:
        return layout((), (), changing.names, changing.visible, eventful)
    key = f"layout {digest(m)} {law or law_digest(control, m)}"
    known = kernel.noted(key, lambda: {"sizes": sizes(part_functions(control, m))})
    return layout(control.parts, known["sizes"], changing.names, changing.visible, eventful)


def in_force(at: Layout, d: ca.SX, nu: int, t: ca.SX) -> Command:
    """The Command in force at the time t [s], from the discrete state d: inputs (nu, 1) and signals of all parts of the law."""
    return Command(at.u(d, nu, t), signals={name: d[where, 0] for name, where in at.signals.items()})


def refuse(control: Control, what: str, instead: str = "use run") -> None:
    """Raise ModelError if a law is in discrete time.   what: function that needs continuous time.   instead: the way out."""
    if control.parts:
        raise ModelError(f"{what} takes laws in continuous time; this one is sampled once a period: {instead}")


def in_python(control: Control) -> LawPart | None:
    """The part of a law that is a Python function, if any; it is called between the steps, after its sensors and all modes."""
    return next((part for part in control.parts if part.python), None)


def rates(control: Control) -> list[list[LawPart]]:
    """The parts that compiled code evaluates, in groups of successive parts with equal period and phase."""
    parts = [part for part in control.parts if part.python is None]
    return [list(group) for _, group in groupby(parts, key=lambda part: (part.period, part.phase))]


Acting = Callable[[At, ca.SX, ca.SX, ca.SX], ca.SX]
"""(here, z, d, w) -> (nu, 1) all inputs that act on the mechanism."""


class Loads(NamedTuple):
    """Inputs and reaction at an instant, as functions of the discrete state d of the law.

    inputs: d -> (nu, 1) all inputs that act.   reaction: d -> (nv, 1) generalised reaction under these.
    """

    inputs: Callable[[ca.SX], ca.SX]
    reaction: Callable[[ca.SX], ca.SX]


def samplers(
    system: AbstractSystem, control: Control, scheme: Scheme, at: Layout, nw: int, switches: Switches, acting: Acting
) -> tuple[ca.Function, ...]:
    """A function (x, w, p, t) -> (x, faults) for each group of `rates`; x = [state of the system; z; d], w (nw, 1)."""
    if not control.parts:
        return ()
    m = system.mechanism
    answer_of = {answer.part: answer for answer in part_functions(control, m)}

    def sampler(group: Sequence[LawPart]) -> ca.Function:
        """The Function (x and z and d, w, p, t) -> the same state with what these parts of the law return, and its faults."""
        here = system.at()
        z, before, w = ca.SX.sym("z", len(control.z)), ca.SX.sym("d", at.size), ca.SX.sym("w", nw)
        loads = Loads(
            lambda d: acting(here, z, d, w),
            lambda d: _reaction(here.T, acting(here, z, d, w), scheme),
        )
        of_law = w[: len(control.w_names), 0]
        d, faults = evaluate_parts([answer_of[part] for part in group], at, here.T, before, of_law, loads, scheme.saturate)
        outputs = here.of_state([ca.vertcat(here.x, z, d), faults])
        if switches.names:
            outputs = ca.substitute(outputs, [m.p_symbols], [switches.now(m.p_symbols, before[at.switched, 0])])
        given = [ca.vertcat(here.x, z, before), w, m.p_symbols, here.T.t]
        return ca.Function("sample", given, outputs)

    return tuple(sampler(group) for group in rates(control))


def evaluate_parts(
    group: Sequence[PartFunction], at: Layout, T: Terms, d: ca.SX, w: ca.SX, loads: Loads, saturate: bool
) -> tuple[ca.SX, ca.SX]:
    """Evaluate the parts of a group at T, one after another; returns the new d (size, 1) and their faults (nf, 1).

    w: (nw, 1) inputs of the law.   saturate: whether the inputs that the law reads are cut at their limits.
    """
    m, d, faults = T.mechanism, ca.SX(d), [ca.SX(0, 1)]
    for answer in group:
        slots = at.of(answer.part).slots
        u = at.u(d, m.nu, T.t)
        u = ca.densify(saturated(m, u) if saturate else u)
        acting = loads.inputs(d) if answer.uses_inputs else ca.SX(m.nu, 1)
        F = loads.reaction(d) if answer.uses_reaction else ca.SX(m.nv, 1)
        state, count = d[slots.state, 0], d[slots.drawn, 0] if answer.part.random else ca.SX(0)
        known = [T.q, T.v, T.t, m.p_symbols, w, u, acting, F, _stream(at, d), at.earlier(answer.part, d), state, count]
        given, next_state, fault = answer.function.call([ca.densify(x) for x in known], True, False)
        pass_on(slots, d, given, T.t)
        d[slots.state] = next_state
        d[slots.drawn] = d[slots.drawn, 0] + 1
        faults.append(fault)
    return d, ca.densify(ca.vertcat(*faults))


def _reaction(T: Terms, u: ca.SX, scheme: Scheme) -> ca.SX:
    """(nv, 1) generalised reaction under all inputs u (nu, 1)."""
    pushed = T.under(u)
    return formulation(scheme.formulation, pushed)(pushed).reaction


def _stream(at: Layout, d: ca.SX) -> ca.SX:
    """(3, 1) the Stream in d, zeros if the law draws no random numbers."""
    stream = d[at.stream, 0]
    return stream if stream.numel() else ca.SX.zeros(3, 1)


def pass_on(slots: Slots, d: Any, given: Any, t: Any) -> None:
    """Push `given` onto the delay line in d, and make its oldest entry current; of expressions (n, 1) or arrays (n, runs)."""
    n, expressions = slots.given.stop - slots.given.start, not isinstance(d, np.ndarray)
    of = (lambda s: (s, 0)) if expressions else (lambda s: s)  # without the 0, a column of one entry gives a row
    line = ca.vertcat(d[of(slots.ring)], given) if expressions else np.concatenate([d[slots.ring], given])
    if slots.since.stop > slots.since.start:
        d[slots.before] = d[of(slots.given)][: slots.before.stop - slots.before.start]
        d[slots.since] = t
    d[slots.given], d[slots.ring] = line[of(slice(n))], line[of(slice(n, None))]


def instants(control: Control, step: float) -> list[tuple[int, int]]:
    """Period and phase of each sampler in steps of `step` [s]."""
    return sampling([group[0] for group in rates(control)], step)


def compiled_instants(control: Control, step: float) -> list[tuple[int, int]]:
    """The `instants` of samplers in the compiled loop, none with a law in Python. Raises ModelError: see `sampling`."""
    found = [*instants(control, step), *sampling([part for part in control.parts if part.python], step)]
    return [] if in_python(control) else found


def sampling(parts: Sequence[LawPart], step: float) -> list[tuple[int, int]]:
    """Period and phase of each part in steps of `step` [s]. Raises ModelError: one is not a whole number of steps."""
    return [(_steps(part, "period", part.period, step), _steps(part, "phase", part.phase, step)) for part in parts]


def _steps(part: LawPart, what: str, seconds: float, step: float) -> int:
    """Number of steps in a period or phase `seconds` [s]. Raises ModelError: it is not a whole number."""
    count = round(seconds / step)
    if abs(count * step - seconds) > WHOLE * part.period or (what == "period" and count < 1):
        raise ModelError(
            f"{what} {seconds!r} s of {part.title!r} must be a whole number of steps of {step!r} s, and is "
            f"{seconds / step:.6g} of them; change either"
        )
    return count


def check_seed(seed: Any) -> None:
    """Raise ModelError unless the seed is a whole number from 0 to 2^52 - 1, which fits into two words."""
    if not is_whole(seed) or not 0 <= seed < int(WORD) ** 2:
        raise ModelError(f"seed must be a whole number from 0 to 2^52 - 1, got {brief(seed)}")


def check_seeds(seed: Any) -> int:
    """Number of seeds, 1 if a single one is given. Raises ModelError: one is not a whole number from 0 to 2^52 - 1."""
    if not isinstance(seed, (np.ndarray, list, tuple)):
        check_seed(seed)
        return 1
    seeds = real_array(seed, "seed")
    if seeds.ndim != 1 or seeds.dtype.kind not in "iu" or not ((seeds >= 0) & (seeds < int(WORD) ** 2)).all():
        raise ModelError(f"seed: (runs,) whole numbers from 0 to 2^52 - 1 are needed, got {brief(seed)}")
    return len(seeds)


def provenance(control: Control, switches: Switches, seed: Any) -> dict[str, Any]:
    """Attributes of a result that describe its laws in discrete time and its switches."""
    attributes = {"switches": json.dumps(switches.visible)} if switches.visible else {}
    if not control.parts:
        return attributes
    parts = [
        {"name": p.title, "period": p.period, "phase": p.phase, "latency": p.latency, "hold": p.hold}
        | ({"python": "called between compiled steps, which is slow"} if p.python else {})
        for p in control.parts
    ]
    return (
        attributes
        | {"sampling": json.dumps(parts)}
        | ({"seed": np.asarray(seed).tolist()} if any(p.random for p in control.parts) else {})
    )
