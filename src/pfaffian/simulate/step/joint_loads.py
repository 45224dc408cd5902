"""Peak loads of all joints and closures: what a run or a sweep records for "loads"."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import casadi as ca

from pfaffian.dynamics.motion import Motion
from pfaffian.dynamics.reaction import reaction_wrenches
from pfaffian.errors import ModelError
from pfaffian.model.constraint import Closure
from pfaffian.model.mechanism import Mechanism
from pfaffian.simulate.step.reaction_output import MAGNITUDES, magnitudes
from pfaffian.simulate.step.running_statistics import at_maximum, maximum, time_of_maximum
from pfaffian.simulate.step.signals import MotionOutput
from pfaffian.states.signal import Signal
from pfaffian.terms.terms import Terms

LOADS = "loads"
"""Value of `record` of `run` and `keep` of `sweep` that stands for the peak loads of all joints and closures."""

AXES = ("x", "y", "z")
UNITS = dict(zip(MAGNITUDES, ("N", "N m"), strict=True))


def loaded_names(m: Mechanism) -> tuple[str, ...]:
    """The joints of a mechanism, then its closures."""
    return (*[j.name for j in m.joints], *[c.name for c in m.ideal if isinstance(c, Closure)])


@dataclass(frozen=True)
class _LoadOfEach:
    """The force or the moment of every joint and closure, or whether the motion determines it.   row: index in MAGNITUDES."""

    row: int
    field: str

    def __call__(self, terms: Terms, motion: Motion) -> ca.SX:
        wrenches = reaction_wrenches(terms, motion, loaded_names(terms.mechanism))
        return ca.vertcat(*[magnitudes(getattr(x, self.field), self.field)[self.row] for x in wrenches.values()])


@dataclass(frozen=True)
class _OriginEntry:
    """One coordinate of the origin of every joint and closure on its child, in the world."""

    axis: int

    def __call__(self, terms: Terms, _: Motion) -> ca.SX:
        m, k = terms.mechanism, terms.kinematics
        ends = [(j.child, j.child_placement.p) for j in m.joints]
        ends += [(c.body_b, c.placement_b.p) for c in m.ideal if isinstance(c, Closure)]
        return ca.vertcat(*[k.position(body, point)[self.axis] for body, point in ends])


def load_outputs(m: Mechanism) -> dict[str, MotionOutput]:
    """The outputs from which peak loads are taken: forces, moments, their uniqueness, and the places of the joints."""
    names = loaded_names(m)
    found = dict[str, MotionOutput]()
    for row, name in enumerate(MAGNITUDES):
        found[f"joint_{name}"] = MotionOutput(_LoadOfEach(row, "wrench"), Signal(UNITS[name], "joint", names))
        found[f"joint_{name}_unique"] = MotionOutput(_LoadOfEach(row, "unique"), Signal("1", "joint", names))
    return found | {f"joint_{x}": MotionOutput(_OriginEntry(i), Signal("m", "joint", names)) for i, x in enumerate(AXES)}


def load_statistics(over: str) -> dict[str, Any]:
    """The statistics of `load_outputs`.   over: "time" or "state", what the largest load is searched over."""
    found = dict[str, Any]()
    for name in MAGNITUDES:
        load = f"joint_{name}"
        found |= {name: maximum(load), f"{name}_{over}": time_of_maximum(load)}
        found |= {f"{name}_{x}": at_maximum(f"joint_{x}", load) for x in (*AXES,)}
        found[f"{name}_unique"] = at_maximum(f"{load}_unique", load)
    return found


def with_loads(m: Mechanism, record: Any, outputs: Mapping[str, Any] | None, over: str = "time") -> tuple[Any, Any]:
    """`record` and `outputs`, where "loads" as `record` is replaced by the statistics and outputs that it stands for.

    Raises ModelError: an output has the name of one of these.
    """
    if not (isinstance(record, str) and record == LOADS):
        return record, outputs
    added = load_outputs(m)
    for name in [n for n in outputs or {} if n in added]:
        raise ModelError(f"output {name!r}: {LOADS!r} has an output of that name already; choose another")
    return load_statistics(over), {**(outputs or {}), **added}
