"""A system under a control law and a scheme: the functions that the kernel compiles, traced when they are needed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import cached_property, partial
from hashlib import sha256
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from pfaffian import kernel
from pfaffian.control import law
from pfaffian.control.digest import digest as law_digest
from pfaffian.control.law import Command, Control, Fault
from pfaffian.control.layout import Layout, entries, units
from pfaffian.dynamics import FORMULATIONS, formulation, gauss, passage
from pfaffian.dynamics.controlforce import control_force
from pfaffian.dynamics.controlforce import fault as servo_fault
from pfaffian.dynamics.motion import RANK_TOLERANCE, Motion
from pfaffian.errors import ModelError, brief
from pfaffian.maths.linear import orthogonalise
from pfaffian.maths.pack import pack, unpack
from pfaffian.model.mechanism import Mechanism
from pfaffian.simulate import arrival
from pfaffian.simulate.integrators import INTEGRATORS, Integrator
from pfaffian.simulate.limits import saturated
from pfaffian.simulate.sampling import PYTHON_FAULT, in_force, layout_of, samplers
from pfaffian.simulate.signals import (
    MotionOutput,
    Output,
    Record,
    Signal,
    check_names,
    chosen,
    columns,
    output_digest,
    standard,
)
from pfaffian.simulate.step import Along, Functions, Scheme, along, correct, time_step
from pfaffian.simulate.switches import Next, Switches
from pfaffian.simulate.system import At, System
from pfaffian.terms.digest import digest
from pfaffian.terms.pfaffian import ACCELERATION
from pfaffian.terms.terms import Terms


def arguments(scheme: Any, control: Any, outputs: Any) -> tuple[Scheme, tuple[tuple[str, Output], ...]]:
    """Scheme and outputs of a run for a Simulation. Raises ModelError: one of the three arguments is of another type."""
    if scheme is not None and not isinstance(scheme, Scheme):
        known = {"integrator": INTEGRATORS, "formulation": ("auto", *FORMULATIONS)}
        which = next((k for k, names in known.items() if isinstance(scheme, str) and scheme in names), None)
        way = f"{which}={scheme!r}" if which else "integrator=..., formulation=..."
        raise ModelError(f"scheme: a Scheme is needed, got {brief(scheme)}; write scheme=pf.Scheme({way})")
    if control is not None and not isinstance(control, law.Control):
        raise ModelError(
            f"control: a control law is needed, got {brief(control)}; make one by pf.control.projected(...) or another "
            "law, or from your own function law(terms, z, w, y) -> Command by pf.control.Control(law)"
        )
    if outputs is not None and not isinstance(outputs, Mapping):
        raise ModelError(f"outputs: {{name: function of the kinematics}} is needed, got {brief(outputs)}")
    for name, f in (outputs or {}).items():
        if not isinstance(name, str) or not name or not (callable(f) or isinstance(f, MotionOutput)):
            raise ModelError(f"outputs: {{name: function of the kinematics}} is needed, got {brief(name)}: {brief(f)}")
    return scheme or Scheme(), tuple((outputs or {}).items())


def input_names(m: Mechanism, control: Control | None) -> tuple[str, ...]:
    """Inputs of a run: those of the mechanism; under a law those of the law, then the wrenches from outside.

    Raises ModelError: two of one name."""
    if control is None:
        return m.u_names
    for name in control.w_names:
        if name in m.wrench_names:
            raise ModelError(f"the control law and a wrench from outside both have an input {name!r}; give one another name")
    return control.w_names + m.wrench_names


class Traced(NamedTuple):
    """rhs: (x, w, p, t) -> (x_dot, faults, sides, carried, records).   project: (x, p, t, carried) -> (x, violation).
    carried: what the correction after a step needs from its last stage, and the integrator from all stages.
    step, observe, samplers: arguments of the kernel's rollout; the first two call rhs, so that what they share is one text.
    sizes: entries of each signal.   functions: what the step calls."""

    rhs: ca.Function
    project: ca.Function
    step: ca.Function
    observe: ca.Function
    sizes: Mapping[str, int]
    functions: Functions
    samplers: tuple[ca.Function, ...] = ()


def _of_law(m: Mechanism, name: str, unit: str, named: tuple[str, ...], size: int) -> Signal:
    """The Signal of a law in this unit, labelled if its entries have names or are those of the mechanism."""
    labels = (f"{name}_component", named) if named else (None, ())
    dim, names = {"per velocity": ("velocity", m.v_names), "per input": ("input", m.u_names)}.get(unit, labels)
    return Signal(unit, dim, names) if len(names) == size else Signal(unit)


SHARED = {"never_inline": True, "cse": True}
"""Options of a Function whose calls all share one text."""


@dataclass(frozen=True, eq=False)
class Simulation:
    """A system under a law and a scheme, with its recorded signals.

    Its state is [x; z; d]: x of the system, z what the control law integrates, d what it holds from one of its instants to the
    next. Its inputs are w. It is made for one run, from the functions as they are then; two are equal if their keys are.

    control: None: w are the mechanism's inputs.   switches: parameters that change during the run.
    """

    system: System
    scheme: Scheme
    control: Control | None = None
    outputs: tuple[tuple[str, Output], ...] = ()
    record: Record = "all"
    switches: tuple[tuple[str, Next], ...] = ()

    @property
    def mechanism(self) -> Mechanism:
        return self.system.mechanism

    @property
    def z(self) -> tuple[float, ...]:
        """Start values of what the control law integrates."""
        return self.control.z if self.control else ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Simulation) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    @cached_property
    def layout(self) -> Layout:
        """The layout of d."""
        return layout_of(self.control, self.mechanism, self.changing.names, self.law)

    @cached_property
    def law(self) -> str:
        """Digest of the control law."""
        return law_digest(self.control, self.mechanism) if self.control else ""

    @cached_property
    def changing(self) -> Switches:
        """The parameters that change during the run."""
        return Switches(self.mechanism, self.switches)

    def now(self, p: ca.SX, d: ca.SX) -> ca.SX:
        """The parameters (np, 1) in force where the law and the switches hold d."""
        return self.changing.now(p, d[self.layout.switched, 0])

    def parameters(self, p: np.ndarray, x: np.ndarray) -> np.ndarray:
        """The same of numbers: p (..., np) at states x (..., nx) of the whole simulation."""
        return self.changing.put(p, x[..., self.nx - self.layout.size :][..., self.layout.switched])

    @property
    def nx(self) -> int:
        """Numbers in the state [x; z; d]."""
        return self.system.nx + len(self.z) + self.layout.size

    @property
    def w_names(self) -> tuple[str, ...]:
        return input_names(self.mechanism, self.control)

    @property
    def faults(self) -> tuple[Fault, ...]:
        """What may stop a run beyond the faults of the step itself, in the order in which the functions give them."""
        servos, limit = self.mechanism.servos, self.system.limit
        of_law = self.control.faults if self.control else ()
        parts = self.control.parts if self.control else ()
        of_state = [*([Fault(servo_fault(servos))] if servos else []), *([Fault(limit[0])] if limit else [])]
        of_integrator = [Fault(meaning) for meaning in INTEGRATORS[self.scheme.integrator].faults]
        sampled = [fault for part in parts for fault in part.faults]
        python = [Fault(PYTHON_FAULT)] if any(part.python for part in parts) else []
        return (*of_law, *of_state, *of_integrator, *self.arriving, *sampled, *python)

    @cached_property
    def key(self) -> str:
        """Digest of everything that determines the functions."""
        parts = (
            digest(self.mechanism),
            self.system.key,
            self.system.holds,
            self.system.limit and self.system.limit[0],
            [(f.name, getattr(self.scheme, f.name)) for f in fields(self.scheme)],
            self.control and (self.law, len(self.control.z), self.control.w_names, [f.meaning for f in self.control.faults]),
            [(name, output_digest(name, x, self.mechanism)) for name, x in self.outputs],
            self.record,
            self.changing.digests,
        )
        return sha256(repr(parts).encode()).hexdigest()

    @cached_property
    def sizes(self) -> Mapping[str, int]:
        """Entries of each signal, in order; stored under the key."""
        if "traced" in vars(self):
            return self.traced.sizes
        return kernel.noted(f"sizes {self.key}", lambda: dict(self.traced.sizes))

    @cached_property
    def signals(self) -> dict[str, tuple[Signal, int]]:
        """Recorded signals in order, with the entries of each."""
        known = {**standard(self.mechanism, self.scheme.saturate), **self.system.labels}
        if self.control is None and not self.outputs and self.system.signals is None and not self.changing.names:
            return {name: (known[name], known[name].size) for name in chosen(tuple(known), self.record)}
        known = {**known, **{name: x.signal for name, x in self.outputs if isinstance(x, MotionOutput)}}
        known |= {p.name: Signal(p.unit or "1") for p in self.mechanism.parameters if p.name in self.changing.names}
        of_law, named = (units(self.control), entries(self.control)) if self.control else ({}, {})
        known |= {
            name: _of_law(self.mechanism, name, unit, named.get(name, ()), self.sizes.get(name, 0))
            for name, unit in of_law.items()
        }
        signals = {name: (known.get(name, Signal("per component")), size) for name, size in self.sizes.items()}
        check_names(signals)
        return signals

    @property
    def width(self) -> int:
        """Numbers in one record."""
        return sum(size for _, size in self.signals.values())

    @cached_property
    def traced(self) -> Traced:
        here, z = self.system.at(), ca.SX.sym("z", len(self.z))
        solve = formulation(self.scheme.formulation, here.T)
        # Reuse the last stage's factor only if it contains every row to be corrected: rows of accelerations are the rate's
        # alone, and one that comes on after the last stage is not among them.
        near = solve is gauss.motion and self._corrects and self.scheme.corrections > 0
        shares = near and self.integrator.shares and ACCELERATION not in here.T.rows.level
        shares = shares and not self.arriving
        project, needed = self._project(here, z, along(here.T) if shares else None)
        rhs, sizes, terms = self._rate("rhs", here, z, solve, needed)
        x, w, p, t = inputs = list(rhs.sx_in())
        observe = ca.Function("observe", inputs, [rhs(x, w, self.now(p, x[x.numel() - self.layout.size :, 0]), t)[4]])
        functions = Functions(rhs, project, self._energy(here, z), terms, self._settled)
        return Traced(rhs, project, self._step(functions), observe, sizes, functions, self._samplers())

    def _samplers(self) -> tuple[ca.Function, ...]:
        at, changing, nz, nw = self.layout, self.changing, len(self.z), len(self.w_names)
        first = (changing.sampler(self.system, nz, at.size, at.switched, nw),) if changing.names else ()
        if self.control is None or not self.control.parts:
            return first
        return first + samplers(self.system, self.control, self.scheme, at, nw, changing, self._acting)

    def _acting(self, T: Terms, z: ca.SX, d: ca.SX, w: ca.SX) -> ca.SX:
        """(nu, 1) all inputs that act at T for the law's states z and d, under the run's inputs w."""
        assert self.control is not None
        u = command_of(T, self.control, self.scheme, z, w, in_force(self.layout, d, self.mechanism.nu, T.t)).u
        return self._cut(u) if self.scheme.saturate else u

    @property
    def integrator(self) -> Integrator:
        """The integrator of the scheme. Raises ModelError: it cannot serve the system."""
        s, name = self.system, self.scheme.integrator
        found = INTEGRATORS[name]
        if s.own and not found.any_state:
            others = ", ".join(n for n, other in INTEGRATORS.items() if other.any_state)
            raise ModelError(f"integrator {name!r} goes with the state [q; v]; {s.title} goes with {others}")
        if reason := found.refuses(s.mechanism):
            raise ModelError(f"integrator {name!r} cannot serve {s.mechanism.name!r}: {reason}; take 'rk4'")
        return found

    @cached_property
    def entering(self) -> ca.Function:
        """The step from a start in a singular configuration, whose first stage uses what the lost rows still tell. [passage]"""
        first, *_ = self._rate("passage", self.system.at(), ca.SX.sym("z", len(self.z)), passage.motion, None)
        return self._step(self.traced.functions, first)

    def _step(self, functions: Functions, first: ca.Function | None = None) -> ca.Function:
        return time_step(functions, self.mechanism, self.system.variables, self.scheme, first, self.now, self.arrived)

    def _settled(self, x: ca.SX, t: ca.SX) -> ca.SX:
        s = self.system
        return ca.vertcat(s.settled(x[: s.nx, 0], t), x[s.nx :, 0])

    def _energy(self, here: At, z: ca.SX) -> ca.Function:
        """(x, way, p, t) -> T + V and its slope along a direction of x."""
        x = ca.vertcat(here.x, z)
        way = ca.SX.sym("way", x.numel())
        (E,) = here.of_state([here.T.T + here.T.V])
        return ca.Function("energy", [x, way, self.mechanism.p_symbols, here.T.t], [E, ca.jtimes(E, x, way)], SHARED)

    @cached_property
    def arriving(self) -> tuple[Fault, ...]:
        """Faults of constraints that come on or jump."""
        return arrival.faults(self.mechanism, self.changing.names)

    @cached_property
    def arrived(self) -> ca.Function | None:
        """(x, x after a step, p, t, h) -> the flags of `arriving`; None if no constraint comes on or jumps."""
        if not self.arriving:
            return None
        m, a, b, h = self.mechanism, self.system.at(), self.system.at(), ca.SX.sym("h")
        ahead = Terms(m, a.T.q, ca.SX.zeros(m.nv, 1), a.T.u, b.T.t)
        flags = arrival.found(a.T, b.T, ahead, h, self.scheme.violation_limit, self.changing.names)
        found = ca.substitute(b.of_state(a.of_state([flags])), [b.T.t], [a.T.t + h])
        return ca.Function("arrived", [a.x, b.x, m.p_symbols, a.T.t, h], found)

    @cached_property
    def project(self) -> ca.Function:
        """(x, p, t) -> (x, violation), by a factorisation of its own."""
        here, z = self.system.at(), ca.SX.sym("z", len(self.z))
        inputs = [ca.vertcat(here.x, z), self.mechanism.p_symbols, here.T.t]
        return ca.Function("project", inputs, self._corrected(here, z, None))

    def _project(self, here: At, z: ca.SX, near: Along | None) -> tuple[ca.Function, list[int]]:
        """(x, p, t, carried) -> (x, violation), and which numbers of `near` have to be carried."""
        numbers = ca.SX.sym("carried", pack(near).numel())
        corrected = self._corrected(here, z, near and unpack(near, numbers))
        used = {s.element_hash() for s in ca.symvar(ca.veccat(*corrected))}
        needed = [i for i in range(numbers.numel()) if numbers[i].element_hash() in used]
        inputs = [ca.vertcat(here.x, z), self.mechanism.p_symbols, here.T.t, numbers[needed, 0]]
        return ca.Function("project", inputs, corrected, SHARED), needed

    @property
    def _corrects(self) -> bool:
        """Whether a step has to put the state onto the constraints."""
        return bool(self.mechanism.ideal) and not self.system.holds

    def _corrected(self, here: At, z: ca.SX, near: Along | None) -> list[ca.SX]:
        """The state put onto its own manifold and, by way of (q, v), onto the constraints; and the largest |phi|."""
        s, T = self.system, here.T
        x, violation = here.x, ca.SX(0)
        if s.project is None or self._corrects:
            q, v, violation = correct(T, self.scheme, near)
            x, violation = here.of_state([s.entered(T, q, v), violation])
        if s.project is not None:
            x, violation = ca.substitute([x, violation], [here.x], [s.projected(here.x, T.t)])
        return [ca.vertcat(x, z), violation]

    def _rate(
        self, name: str, here: At, z: ca.SX, solve: Callable[[Terms], Motion], needed: list[int] | None
    ) -> tuple[ca.Function, dict[str, int], Any]:
        """(x, w, p, t) -> (x_dot, faults, sides, carried, recorded), the entries of each signal, and the integrator's terms.

        carried: the needed numbers of `along`, zero if `needed` is None, and then the numbers of these terms."""
        m, T, w = self.mechanism, here.T, ca.SX.sym("w", len(self.w_names))
        d = ca.SX.sym("d", self.layout.size)
        state = ca.vertcat(here.x, z, d)
        waiting = in_force(self.layout, d, m.nu, T.t)
        free = Command(w, signals=waiting.signals)
        command = free if self.control is None else command_of(T, self.control, self.scheme, z, w, waiting)
        requested = command.u
        if self.scheme.saturate:
            command = command._replace(u=self._cut(requested))
        closed = Terms(m, T.q, T.v, command.u, T.t)
        motion = solve(closed)
        faults, sides = command.faults, command.sides
        if m.servos:
            held = control_force(closed)
            faults, sides = ca.vertcat(faults, 1 - held.realisable), ca.vertcat(sides, held.side)
        side = self.system.side(here.x, T)
        faults, sides = ca.vertcat(faults, side == 0), ca.vertcat(sides, side)
        rate = ca.vertcat(self.system.rated(here.x, closed, motion), command.z_dot)
        cut = requested - command.u if self.scheme.saturate else None
        state_signals = self.system.recorded(here.x, closed, motion)
        recorded = columns(closed, motion, command, dict(self.outputs), self.record, cut, state_signals)
        if needed is None:
            near = ca.SX.zeros(self.traced.project.size1_in(3), 1)
        else:
            near = ca.densify(pack(along(closed))[needed, 0]) if needed else ca.SX(0, 1)
        terms = self.integrator.needs(closed, motion, partial(self.system.pushed, here.x, T))
        carried = ca.vertcat(near, ca.densify(pack(terms)))
        parts = [rate, ca.densify(faults), ca.sparsify(sides), carried, ca.vertcat(*recorded.values())]
        rhs = ca.Function(name, [state, w, m.p_symbols, T.t], here.of_state(parts), SHARED)
        return rhs, {name: column.numel() for name, column in recorded.items()}, terms

    def _cut(self, u: ca.SX) -> ca.SX:
        m = self.mechanism
        if m.servos:
            held = ", ".join(s.name for s in m.servos)
            raise ModelError(f"saturate: the forces of {held} hold a motion and cannot be cut; use control.servo_control")
        return saturated(m, u)


def command_of(T: Terms, control: Control, scheme: Scheme, z: ca.SX, w: ca.SX, held: Command | None = None) -> Command:
    """The law's answer, with the loop through what it measures closed: y = y0 + Y y, y0 the measurement under u at y = 0.

    held: what its parts in discrete time hold.
    """
    m = T.mechanism
    idle = Terms(m, T.q, T.v, ca.SX(m.nu, 1), T.t)
    y = ca.SX.sym("y", law.measured(control, idle, ca.SX.sym("F", m.nv)).numel())
    given = len(control.w_names)
    command = law.command(control, idle, z, _law_inputs(control, w[:given, 0], held), y)
    _check_command(command, control, m)
    if held is not None:
        signals_of_law = {f"law.{name}" if name in held.signals else name: x for name, x in command.signals.items()}
        command = command._replace(u=command.u + held.u, signals={**held.signals, **signals_of_law})
    # Wrenches from outside are not part of the law's answer, nor does the law see them.
    command = command._replace(u=command.u + ca.vertcat(ca.SX(len(m.motor_names), 1), w[given:, 0]))
    command = command._replace(sides=command.sides if command.sides.numel() else ca.SX.zeros(len(control.faults), 1))
    parts = [command.u, command.z_dot, command.faults, command.sides, *command.signals.values()]
    if not ca.depends_on(ca.veccat(*parts), y):
        return command
    if scheme.saturate:
        raise ModelError("saturate: a control law that measures reactions cannot be cut; use it without")
    if ca.depends_on(ca.jacobian(command.u, y), y):
        raise ModelError("a control law must be affine in the measured reaction")
    plant = Terms(m, T.q, T.v, command.u, T.t)
    measured = ca.densify(law.measured(control, plant, formulation(scheme.formulation, plant)(plant).reaction))
    Y, y0 = ca.jacobian(measured, y), ca.substitute(measured, y, ca.SX.zeros(*y.shape))
    loop = orthogonalise(ca.SX.eye(y.numel()) - Y, y0, RANK_TOLERANCE)
    u, z_dot, faults, sides, *signals = ca.substitute(parts, [y], [loop.Q.T @ loop.D])
    return Command(ca.densify(u), z_dot, faults, dict(zip(command.signals, signals, strict=True)), sides)


def _law_inputs(control: Control, w: ca.SX, held: Command | None) -> ca.SX:
    """The w of the law in continuous time, from the run's inputs and from what the parts in discrete time hold."""
    if control.takes is None or held is None:
        return w
    known = {name: w[i] for i, name in enumerate(control.w_names)}
    return ca.vertcat(ca.SX(0, 1), *[known[name] if name in known else held.signals[name] for name in control.takes])


def _check_command(command: Command, control: Control, m: Mechanism) -> None:
    for what, got, declared in (
        ("inputs", command.u, m.nu),
        ("integrated states", command.z_dot, len(control.z)),
        ("faults", command.faults, len(control.faults)),
        ("sides", command.sides, len(control.faults) if command.sides.numel() else 0),
    ):
        if got.numel() != declared:
            raise ModelError(f"the control law gives {got.numel()} {what} where {declared} are declared")
