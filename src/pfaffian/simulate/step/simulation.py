"""A system under a control law and a scheme: state, inputs, faults and signals. Functions are traced when they are needed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from hashlib import sha256
from typing import Any

import casadi as ca
import numpy as np

from pfaffian import kernel
from pfaffian.control.command import Fault
from pfaffian.control.law import Control
from pfaffian.control.law_digest import digest as law_digest
from pfaffian.control.layout import Layout, entries, units
from pfaffian.control.open_loop import is_open, open_loop
from pfaffian.dynamics import FORMULATIONS, check_unchanged, identity, load_losses
from pfaffian.dynamics.controlforce import fault as servo_fault
from pfaffian.errors import ModelError, brief, listed
from pfaffian.model.loop_coordinates import loop_coordinates_of
from pfaffian.model.mechanism import Mechanism
from pfaffian.simulate.step import activation
from pfaffian.simulate.step.events import ENDLESS, UNDEFINED, eventful
from pfaffian.simulate.step.faults import Faults
from pfaffian.simulate.step.integrators import INTEGRATORS, Integrator
from pfaffian.simulate.step.kinks import has_kinks, may_have_kinks
from pfaffian.simulate.step.pairs import EmbeddedPair
from pfaffian.simulate.step.sampling import in_python, layout_of
from pfaffian.simulate.step.signals import MotionOutput, OutputFunction, Record, check_names, chosen, output_digest, standard
from pfaffian.simulate.step.step import DEFAULT, Scheme
from pfaffian.simulate.step.stiff_pair import StiffPair
from pfaffian.simulate.step.switches import Next, Switches
from pfaffian.simulate.step.tracing import Traced, arrival_flags, entering_step, projection, trace
from pfaffian.states.abstract_system import AbstractSystem
from pfaffian.states.signal import Signal
from pfaffian.terms.equations_digest import digest
from pfaffian.terms.loop_joints import open_turns
from pfaffian.terms.terms import has_losses, shared


def arguments(
    m: Mechanism, scheme: Any, control: Any, outputs: Any, integrator: str = DEFAULT
) -> tuple[Scheme, Control, tuple[tuple[str, OutputFunction], ...]]:
    """Check scheme, law and outputs of a run and fill in the defaults; without a law the machine runs in open loop.

    integrator: of a scheme that names none.
    Raises ModelError: one of the three has the wrong type.
    """
    if scheme is not None and not isinstance(scheme, Scheme):
        known = {"integrator": INTEGRATORS, "formulation": ("auto", *FORMULATIONS)}
        which = next((k for k, names in known.items() if isinstance(scheme, str) and scheme in names), None)
        way = f"{which}={scheme!r}" if which else "integrator=..., formulation=..."
        raise ModelError(f"scheme: a Scheme is needed, got {brief(scheme)}; write scheme=pf.Scheme({way})")
    if control is not None and not isinstance(control, Control):
        raise ModelError(
            f"control: a control law is needed, got {brief(control)}; make one by pf.control.projected(...) or another "
            "law, or from your own function law(terms, z, w, y) -> Command by pf.control.Control(law)"
        )
    if outputs is not None and not isinstance(outputs, Mapping):
        raise ModelError(f"outputs: {{name: function of the kinematics}} is needed, got {brief(outputs)}")
    for name, f in (outputs or {}).items():
        if not isinstance(name, str) or not name or not (callable(f) or isinstance(f, MotionOutput)):
            raise ModelError(f"outputs: {{name: function of the kinematics}} is needed, got {brief(name)}: {brief(f)}")
    scheme = scheme or Scheme()
    scheme = scheme if scheme.integrator else replace(scheme, integrator=integrator)
    return scheme, control or open_loop(m), tuple((outputs or {}).items())


def input_names(m: Mechanism, control: Control) -> tuple[str, ...]:
    """Names of a run's inputs: those of its law, then the external wrenches. Raises ModelError: two have the same name."""
    for name in control.w_names:
        if name in m.wrench_names:
            raise ModelError(f"the control law and an external wrench both have an input {name!r}; give one another name")
    return control.w_names + m.wrench_names


def _of_law(m: Mechanism, name: str, unit: str, named: tuple[str, ...], size: int) -> Signal:
    """The Signal of a law, labelled by `named`, or by the mechanism's velocities or inputs if the unit is per each of these."""
    labels = (f"{name}_component", named) if named else (None, ())
    dim, names = {"per velocity": ("velocity", m.v_names), "per input": ("input", m.u_names)}.get(unit, labels)
    return Signal(unit, dim, names) if len(names) == size else Signal(unit)


def turns_meaning(name: str) -> str:
    """The message of a run that stops because an angle of this closure passed half a turn."""
    return (
        f"the angle of closure {name!r} passed half a turn from the angle near which it is known, as the axes of its loop are "
        "not parallel: cut the loop at another joint, or give near=pf.Parameter(...), which follows the angle in a run"
    )


PYTHON_FAULT = "the law in Python failed"
"""Meaning of the fault of a law that is a Python function."""


@dataclass(frozen=True, eq=False)
class Simulation:
    """A system under a law and a scheme, with its recorded signals.

    The state is [x; z; d]: x of the system, z integrated by the control law, d the discrete values of law and switches, which
    are constant between their instants. The inputs are w. A Simulation is created for one run, from the caller's functions as
    they are then; two are equal if their keys are.

    control: the law.   switches: parameters that change during the run.   kinks: whether instants at which forces have a kink,
    as where compliant surfaces touch, count as events.
    """

    system: AbstractSystem
    scheme: Scheme
    control: Control
    outputs: tuple[tuple[str, OutputFunction], ...] = ()
    record: Record = "all"
    switches: tuple[tuple[str, Next], ...] = ()
    kinks: bool = False

    @property
    def mechanism(self) -> Mechanism:
        return self.system.mechanism

    @property
    def z(self) -> tuple[float, ...]:
        """Start values of the states that the control law integrates."""
        return self.control.z

    def with_kinks(self) -> Simulation:
        """This simulation, kinks being events where there are any."""
        if not may_have_kinks(self):
            return self
        found = kernel.noted(f"kinks {self.key}", lambda: {"any": has_kinks(self)})
        return replace(self, kinks=True) if found["any"] else self

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Simulation) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    @cached_property
    def layout(self) -> Layout:
        """The layout of the discrete state d."""
        return layout_of(self.control, self.mechanism, self.changing.names, self.law, eventful(self))

    @cached_property
    def law(self) -> str:
        """Digest of the control law."""
        return law_digest(self.control, self.mechanism)

    @cached_property
    def changing(self) -> Switches:
        """The parameters that change during the run."""
        return Switches(self.mechanism, self.switches)

    def now(self, p: ca.SX, d: ca.SX) -> ca.SX:
        """The parameters (np, 1) in force: p, with those that the run changes taken from the discrete state d."""
        return self.changing.now(p, d[self.layout.switched, 0])

    def parameters(self, p: np.ndarray, x: np.ndarray) -> np.ndarray:
        """p (..., np) with the parameters that the run changes taken from its states x (..., nx)."""
        return self.changing.put(p, x[..., self.nx - self.layout.size :][..., self.layout.switched])

    @cached_property
    def nx(self) -> int:
        """Size of the state [x; z; d]."""
        return self.system.nx + len(self.z) + self.layout.size

    @property
    def w_names(self) -> tuple[str, ...]:
        return input_names(self.mechanism, self.control)

    @cached_property
    def faults(self) -> Faults:
        """The faults that may stop a run, in addition to those of the step itself."""
        servos, ends = self.mechanism.servos, self.system.ends
        return Faults(
            law=self.control.faults,
            servo=(Fault(servo_fault(servos)),) if servos else (),
            friction=tuple(map(Fault, load_losses.meanings(self.mechanism))) if has_losses(self.mechanism) else (),
            limit=(Fault(ends),) if ends else (),
            turns=tuple(Fault(turns_meaning(name)) for name in self.open_turns),
            integrator=tuple(Fault(meaning) for meaning in INTEGRATORS.named(self.scheme.integrator or DEFAULT).faults),
            arriving=self.arriving,
            events=(Fault(ENDLESS),) if eventful(self) else (),
            undefined=(Fault(UNDEFINED),) if eventful(self) else (),
            sampled=tuple(fault for part in self.control.parts for fault in part.faults),
            python=(Fault(PYTHON_FAULT),) if in_python(self.control) else (),
        )

    @cached_property
    def open_turns(self) -> tuple[str, ...]:
        """Names of the closures whose number of turns a run may lose, once for each angle."""
        closures = loop_coordinates_of(self.mechanism).closures
        return tuple(c.name for c in closures for _ in open_turns(shared(self.mechanism).kinematics, c))

    @cached_property
    def key(self) -> str:
        """Digest of everything that determines the functions."""
        parts = (
            digest(self.mechanism),
            self.system.key,
            self.system.holds,
            self.system.ends,
            [(f.name, getattr(self.scheme, f.name)) for f in fields(self.scheme)],
            self.formulation,
            self.users_integrator,
            (self.law, len(self.control.z), self.control.w_names, [f.meaning for f in self.control.faults]),
            [(name, output_digest(name, x, self.mechanism)) for name, x in self.outputs],
            self.record,
            self.changing.digests,
            self.kinks,
        )
        return sha256(repr(parts).encode()).hexdigest()

    @cached_property
    def formulation(self) -> str:
        """The `identity` of the scheme's formulation."""
        return identity(self.scheme.formulation, self.mechanism)

    @property
    def users_integrator(self) -> tuple[Any, ...]:
        """Everything that a run depends on of an integrator that a user added; empty for those of the library."""
        if not INTEGRATORS.is_added(self.scheme.integrator or DEFAULT):
            return ()
        i = self.integrator
        return i.order, i.shares, tuple(i.faults), i.any_state, i.stiff, self.traced.step.serialize()

    @cached_property
    def sizes(self) -> Mapping[str, int]:
        """Number of entries of each signal, in order; cached under the key."""
        if "traced" in vars(self):
            return self.traced.sizes
        return kernel.noted(f"sizes {self.key}", lambda: dict(self.traced.sizes))

    @cached_property
    def signals(self) -> dict[str, tuple[Signal, int]]:
        """Recorded signals in order, each with its number of entries."""
        known = {**standard(self.mechanism, self.scheme.saturate), **self.system.labels}
        if is_open(self.control) and not self.outputs and self.system.signals is None and not self.changing.names:
            return {name: (known[name], known[name].size) for name in chosen(tuple(known), self.record)}
        known = {**known, **{name: x.signal for name, x in self.outputs if isinstance(x, MotionOutput)}}
        known |= {p.name: Signal(p.unit or "1") for p in self.mechanism.parameters if p.name in self.changing.names}
        named = entries(self.control)
        known |= {
            name: _of_law(self.mechanism, name, unit, named.get(name, ()), self.sizes.get(name, 0))
            for name, unit in units(self.control).items()
        }
        signals = {name: (known.get(name, Signal("per component")), size) for name, size in self.sizes.items()}
        check_names(signals)
        return signals

    @property
    def width(self) -> int:
        """Size of one record."""
        return sum(size for _, size in self.signals.values())

    @property
    def integrator(self) -> Integrator:
        """The integrator of the scheme. Raises ModelError: it does not support the system."""
        s, name = self.system, self.scheme.integrator or DEFAULT
        integrator = INTEGRATORS.named(name)
        if s.other_state and not integrator.any_state:
            others = ", ".join(n for n, other in INTEGRATORS.items() if other.any_state)
            raise ModelError(f"integrator {name!r} supports only the state [q; v]; {s.title} works with {others}")
        if reason := integrator.refuses(s.mechanism):
            raise ModelError(f"integrator {name!r} cannot serve {s.mechanism.name!r}: {reason}; take 'rk4'")
        return integrator

    @property
    def pair(self) -> EmbeddedPair | StiffPair:
        """The pair of the integrator. Raises ModelError: it has none."""
        pair = self.integrator.pair
        if pair is None:
            pairs = listed([name for name, row in INTEGRATORS.items() if row.pair])
            raise ModelError(
                f"accuracy: {self.scheme.integrator!r} does not estimate the error of its steps; leave it out, or take {pairs}"
            )
        return pair

    @cached_property
    def arriving(self) -> tuple[Fault, ...]:
        """Faults of constraints that become active or jump."""
        return activation.faults(self.mechanism, self.changing.names)

    @cached_property
    def traced(self) -> Traced:
        """The CasADi functions of the step, the records and the samplers."""
        check_unchanged(self.scheme.formulation, self.mechanism, self.formulation)
        return trace(self)

    @cached_property
    def entering(self) -> ca.Function:
        """The first step from a start in a singular configuration."""
        return entering_step(self)

    @cached_property
    def arrived(self) -> ca.Function | None:
        """(x, x after a step, p, t, h) -> the flags of `arriving`; None if no constraint becomes active or jumps."""
        return arrival_flags(self)

    @cached_property
    def project(self) -> ca.Function:
        """(x, p, t) -> (x on the constraints, violation), with a factorisation at x itself."""
        return projection(self)
