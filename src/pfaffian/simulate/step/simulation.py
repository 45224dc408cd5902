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
from pfaffian.control.law import Control
from pfaffian.control.law_digest import digest as law_digest
from pfaffian.control.layout import Layout
from pfaffian.dynamics import check_unchanged, identity
from pfaffian.kernel.remember import once_for, remembered
from pfaffian.model.mechanism import Mechanism
from pfaffian.simulate.step.events import eventful
from pfaffian.simulate.step.faults import Faults, faults_of
from pfaffian.simulate.step.integrators import INTEGRATORS, AnyPair, Integrator, integrator_for, pair_of
from pfaffian.simulate.step.kinks import has_kinks, may_have_kinks
from pfaffian.simulate.step.recorded_signals import RecordedSignals, recorded_signals
from pfaffian.simulate.step.run_arguments import input_names
from pfaffian.simulate.step.sampling import layout_of
from pfaffian.simulate.step.signals import OutputFunction, Record, output_digest
from pfaffian.simulate.step.step import DEFAULT, Scheme
from pfaffian.simulate.step.switches import Next, Switches
from pfaffian.simulate.step.tracing import Traced, arrival_flags, entering_step, projection, trace
from pfaffian.states.abstract_system import AbstractSystem
from pfaffian.terms.equations_digest import digest


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
        return replace(self, kinks=True) if _has_kinks(self) else self

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Simulation) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    @cached_property
    def layout(self) -> Layout:
        """The layout of the discrete state d."""
        return layout_of(self.control, self.mechanism, self.changing, self.law, eventful(self))

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
        return faults_of(self)

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
        if "(traced)" in vars(self):
            return self.traced.sizes
        return kernel.noted(f"sizes {self.key}", lambda: dict(self.traced.sizes))

    @cached_property
    def signals(self) -> RecordedSignals:
        """Recorded signals in order, each with its number of entries."""
        return recorded_signals(self, lambda: self.sizes)

    @property
    def width(self) -> int:
        """Size of one record."""
        return sum(size for _, size in self.signals.values())

    @property
    def integrator(self) -> Integrator:
        """The integrator of the scheme. Raises ModelError: it does not support the system."""
        return integrator_for(self.scheme.integrator or DEFAULT, self.system)

    @property
    def pair(self) -> AnyPair:
        """The pair of the integrator. Raises ModelError: it has none."""
        return pair_of(self.integrator, self.scheme.integrator or DEFAULT)

    @property
    def traced(self) -> Traced:
        """The CasADi functions of the step, the records and the samplers."""
        return once_for(self, "traced", self._traced)

    def _traced(self) -> Traced:
        """The functions of `traced`."""
        check_unchanged(self.scheme.formulation, self.mechanism, self.formulation)
        return trace(self)

    @cached_property
    def entering(self) -> ca.Function:
        """The first step from a start in a singular configuration."""
        return entering_step(self)

    @cached_property
    def arrived(self) -> ca.Function | None:
        """(x, x after a step, p, t, h) -> the flags of `faults.arriving`; None if no constraint becomes active or jumps."""
        return arrival_flags(self)

    @cached_property
    def project(self) -> ca.Function:
        """(x, p, t) -> (x on the constraints, violation), with a factorisation at x itself."""
        return projection(self)


@remembered(64)
def _has_kinks(s: Simulation) -> bool:
    """Whether kinks of a simulation count as events, noted for later processes."""
    found: bool = kernel.noted(f"kinks {s.key}", lambda: {"any": has_kinks(s)})["any"]
    return found
