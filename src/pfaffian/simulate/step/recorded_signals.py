"""The signals that a simulation records, with their labels and sizes."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pfaffian.control.layout import entries, units
from pfaffian.control.open_loop import is_open
from pfaffian.model.mechanism import Mechanism
from pfaffian.simulate.step.signals import MotionOutput, check_names, chosen, labelled_output, standard
from pfaffian.simulate.step.tracing import Traceable
from pfaffian.states.signal import Signal

RecordedSignals = dict[str, tuple[Signal, int]]
"""Signals by name, in the order of a record, each with its number of entries."""


def recorded_signals(s: Traceable, sizes: Callable[[], Mapping[str, int]]) -> RecordedSignals:
    """The recorded signals in order, each with its number of entries.

    sizes: () -> number of entries by name, in order; called only where the equations have to say it.
    Raises ModelError: a result cannot store a signal under its name.
    """
    known = {**standard(s.mechanism, s.scheme.saturate), **s.system.labels}
    if is_open(s.control) and not s.outputs and s.system.signals is None and not s.changing.visible:
        return {name: (known[name], known[name].size) for name in chosen(tuple(known), s.record)}
    labelled = {name: x for name, x in s.outputs if isinstance(x, MotionOutput)}
    known |= {name: labelled_output(name, x, sizes()[name]) for name, x in labelled.items()}
    known |= {p.name: Signal(p.unit or "1") for p in s.mechanism.parameters if p.name in s.changing.visible}
    named = entries(s.control)
    known |= {
        name: _of_law(s.mechanism, name, unit, named.get(name, ()), sizes().get(name, 0))
        for name, unit in units(s.control).items()
    }
    signals = {name: (known.get(name, Signal("per component")), size) for name, size in sizes().items()}
    check_names(signals)
    return signals


def _of_law(m: Mechanism, name: str, unit: str, named: tuple[str, ...], size: int) -> Signal:
    """The Signal of a law, labelled by `named`, or by the mechanism's velocities or inputs if the unit is per each of these."""
    labels = (f"{name}_component", named) if named else (None, ())
    dim, names = {"per velocity": ("velocity", m.v_names), "per input": ("input", m.u_names)}.get(unit, labels)
    return Signal(unit, dim, names) if len(names) == size else Signal(unit)
