"""The values of a state of a mechanism, held by its actuators or moving under given inputs, as one compiled function."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import NamedTuple

import casadi as ca

from pfaffian import kernel
from pfaffian.control.allocation import allocate, weights
from pfaffian.control.command import Command
from pfaffian.control.idle import idle_motions
from pfaffian.control.losses_at import with_losses_at
from pfaffian.dynamics import formulation
from pfaffian.dynamics.motion import Motion, shortest_change
from pfaffian.maths.tree_factor import solve_WT
from pfaffian.model.mechanism import Mechanism
from pfaffian.simulate.step.signals import (
    MotionOutput,
    OutputFunction,
    Record,
    columns,
    labelled_output,
    output_digest,
    standard,
)  # fmt: skip
from pfaffian.states.signal import Signal
from pfaffian.terms.equations_digest import digest
from pfaffian.terms.terms import Terms, symbols
from pfaffian.terms.traced_now import remembered


class StateValues(NamedTuple):
    """A kernel (q, v, u, p, t) -> recorded signals and whether the actuators cannot hold the state, and these signals."""

    kernel: kernel.Kernel
    signals: dict[str, tuple[Signal, int]]


def key_of(m: Mechanism, outputs: Mapping[str, OutputFunction], record: Record, balanced: bool) -> str:
    """Digest of all that determines the kernel of a sweep over states."""
    named = [(name, output_digest(name, x, m)) for name, x in sorted(outputs.items())]
    return sha256(repr((digest(m), named, record, balanced)).encode()).hexdigest()


def values_at_states(m: Mechanism, outputs: Mapping[str, OutputFunction], record: Record, balanced: bool) -> StateValues:
    """The compiled values of a state.   balanced: whether the actuators hold it; otherwise it moves under given inputs."""
    return _values(m, tuple(outputs.items()), record, balanced, key_of(m, outputs, record, balanced))


@remembered(16)
def _values(
    m: Mechanism, outputs: tuple[tuple[str, OutputFunction], ...], record: Record, balanced: bool, key: str
) -> StateValues:
    """The compiled values of a state.   outputs: in pairs.   key: their digest."""
    T = symbols(m)
    if balanced:
        T, motion, lost = _at_rest(T)
    else:
        motion, lost = formulation("auto", T)(T), ca.SX(0)
    nothing = ca.SX(0, 1)
    found = columns(T, motion, Command(T.u, nothing, nothing, {}, nothing), dict(outputs), record)
    labelled = {name: labelled_output(name, x, found[name].numel()) for name, x in outputs if isinstance(x, MotionOutput)}
    known = {**standard(m), **{name: Signal("per component") for name, _ in outputs}, **labelled}
    u = ca.SX.sym("u", m.nu) if balanced else T.u
    f = ca.Function("state", [T.q, T.v, u, m.p_symbols, T.t], [ca.vertcat(*found.values()), ca.densify(lost)])
    signals = {name: (known[name], x.numel()) for name, x in found.items()}
    return StateValues(kernel.compile(f, key=f"at states {key}"), signals)


def _at_rest(T: Terms) -> tuple[Terms, Motion, ca.SX]:
    """The terms under the smallest inputs that hold a state, its motion, and whether no inputs do.

    It moves on with its velocities: at the smallest acceleration that the constraints allow, none at rest.
    """
    m, rows = T.mechanism, T.A.shape[0]
    a, rank = ca.SX.zeros(m.nv, 1), ca.SX(0)
    if rows:
        change = shortest_change(T)
        a, rank = ca.densify(solve_WT(T.factor, change.solve(ca.densify(T.b)))), change.rank
    R, idle = weights(m), idle_motions(m).number
    T = with_losses_at(T, a, R, idle)
    answer = allocate(T, T.inertia_force(a) - T.f, R, idle=idle)
    reaction = ca.densify(answer.tau - T.B @ answer.u) if rows else ca.SX.zeros(m.nv, 1)
    pushed = T.under(answer.u) if T.losses is None else T.under(answer.u).with_losses(T.losses)
    return pushed, Motion(a, reaction, rank), answer.uncontrollable
