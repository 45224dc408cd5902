"""Run settings in a file: only data, which the room `simulate` uses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from pfaffian.errors import ModelError, nearest
from pfaffian.formats.text.strict_number import printable
from pfaffian.formats.text.sweep_settings import SweepSettings
from pfaffian.formats.text.yaml_tree import Node
from pfaffian.model.mechanism import Mechanism

MAX_STEPS = 1e9

STATES = ("standard", "reduced", "hamiltonian")
"""Choices for the state that a run integrates."""


@dataclass(frozen=True)
class StartValues(Mapping[str, float]):
    """The coordinates from which a run of a file starts: a mapping from names to numbers, of which only `fixed` are exact.

    fixed: dict of coordinate -> value that is used exactly.   guess: dict of coordinate -> value from which it moves onto the
    constraints. `assemble`, `run` and all that take a start take both as q.

    Example:
        >>> import pfaffian as pf
        >>> m, settings = pf.read("zoo:four_bar")
        >>> pf.assemble(m, settings.start).q.shape
        (3,)
    """

    fixed: Mapping[str, float]
    guess: Mapping[str, float]

    def __getitem__(self, name: str) -> float:
        return self.fixed[name] if name in self.fixed else self.guess[name]

    def __iter__(self) -> Iterator[str]:
        return iter({**self.guess, **self.fixed})

    def __len__(self) -> int:
        return len({**self.guess, **self.fixed})


class StartArrays(NamedTuple):
    """Start values q (nq,) and v (nv,), inputs u (nu,) and parameters p (np,) of a mechanism."""

    q: np.ndarray
    v: np.ndarray
    u: np.ndarray
    p: np.ndarray


@dataclass(frozen=True)
class RunSettings:
    """A run as described in a file. Settings that are missing in the file have their defaults.

    duration: [s], 1 by default.
    step: [s], or None, the default, for that of `run`.
    record_every: number of steps between two records, 1 by default.
    accuracy: of a run under error control, which has no step; None, the default, for steps of one length.
    formulation, integrator: names, or None, the default, for the library's choice.
    saturate: whether inputs are limited to their ranges, False by default.
    state: the state that is integrated: "standard" (q and v), the default, "reduced" (see `reduce`) or "hamiltonian".
    q: dict of coordinate -> start value, which is used exactly.
    v: dict of velocity -> start value, which is used exactly; other velocities start at zero.
    guess: dict of coordinate -> start value, which may change to satisfy the constraints. Coordinates in neither dict start
        from the neutral configuration.
    u: dict of input -> constant value; other inputs are zero.
    parameters: dict of name -> value that replaces the default.
    sweep: settings for `pfaffian sweep`; None if the file has none.

    Example:
        >>> import pfaffian as pf
        >>> ball, joint = "ball: {mass: 2}", "z: {kind: prismatic, parent: world, child: ball}"
        >>> run = "duration: 3, q: {z: 1}"
        >>> m, settings = pf.formats.parse_yaml(f"{{bodies: {{{ball}}}, joints: {{{joint}}}, run: {{{run}}}}}")
        >>> settings.duration, settings.step, settings.arrays(m).q
        (3.0, None, array([1.]))
    """

    duration: float = 1.0
    step: float | None = None
    record_every: int = 1
    accuracy: float | None = None
    formulation: str | None = None
    integrator: str | None = None
    saturate: bool = False
    state: str = "standard"
    q: Mapping[str, float] = field(default_factory=dict)
    guess: Mapping[str, float] = field(default_factory=dict)
    v: Mapping[str, float] = field(default_factory=dict)
    u: Mapping[str, float] = field(default_factory=dict)
    parameters: Mapping[str, float] = field(default_factory=dict)
    sweep: SweepSettings | None = None

    @property
    def start(self) -> StartValues:
        """Start values of all coordinates in the file: `run` and `assemble` hold those in q, and move those in guess."""
        return StartValues(self.q, self.guess)

    @property
    def times(self) -> dict[str, Any]:
        """The arguments of `run` that say how long a run lasts and how it is stepped."""
        if self.accuracy is not None:
            return {"duration": self.duration, "accuracy": self.accuracy}
        stepped = {} if self.step is None else {"step": self.step}
        return {"duration": self.duration, "every": self.record_every, **stepped}

    def arrays(self, m: Mechanism) -> StartArrays:
        """Start values, inputs and parameters of m, of which the file may name a part. Raises ModelError: an unknown name."""
        return StartArrays(
            _fill(m.neutral(), m.q_names, self.start, "q"),
            _fill(np.zeros(m.nv), m.v_names, self.v, "v"),
            _fill(np.zeros(m.nu), m.u_names, self.u, "u"),
            _fill(m.p_defaults.copy(), m.p_names, self.parameters, "parameters"),
        )


def _fill(x: np.ndarray, names: Sequence[str], values: Mapping[str, float], what: str) -> np.ndarray:
    """x with the named values inserted.   names: of its entries.   what: section of the file, for errors."""
    place = {name: i for i, name in enumerate(names)}
    for name, value in values.items():
        if name not in place:
            raise ModelError(f"run: {what}: {printable(name)} is unknown; {nearest(name, names)}")
        x[place[name]] = value
    return x


def read_run(node: Node, m: Mechanism) -> RunSettings:
    """Read the `run:` section. Start values and inputs may be expressions of the run's parameters."""
    keys = ("duration", "step", "record_every", "accuracy", "formulation", "integrator", "saturate", "state",
            "q", "guess", "v", "u", "parameters")  # fmt: skip
    f = node.fields(keys)
    known = {p.name: ca.SX(p.default) for p in m.parameters}
    parameters = _values(f.get("parameters"), list(known), {})
    known |= {name: ca.SX(value) for name, value in parameters.items()}
    times: dict[str, Any] = {k: _positive(f[k]) for k in ("duration", "step") if k in f}
    words = {k: f[k].text() for k in ("formulation", "integrator") if k in f}
    state = f["state"].text() if "state" in f else "standard"
    if state not in STATES:
        raise f["state"].error(f"state {printable(state)} is unknown; {nearest(state, STATES)}")
    every = _whole(f["record_every"]) if "record_every" in f else 1
    accuracy = f["accuracy"].constant() if "accuracy" in f else None
    if accuracy is not None and (both := [k for k in ("step", "record_every") if k in f]):
        raise f[both[0]].error("a run to an accuracy has no step of its own; leave out one of the two")
    given = (("q", m.q_names), ("guess", m.q_names), ("v", m.v_names), ("u", m.u_names))
    q, guess, v, u = (_values(f.get(k), names, known) for k, names in given)
    made = RunSettings(**times, record_every=every, accuracy=accuracy, formulation=words.get("formulation"),
                       integrator=words.get("integrator"), saturate="saturate" in f and f["saturate"].truth(),
                       state=state, q=q, guess=guess, v=v, u=u, parameters=parameters)  # fmt: skip
    if made.step is not None and not made.step <= made.duration <= MAX_STEPS * made.step:
        raise node.error(f"{made.duration} s in steps of {made.step} s is not between 1 and {MAX_STEPS:g} steps; change one")
    return made


def _values(node: Node | None, names: Sequence[str], known: Mapping[str, ca.SX]) -> dict[str, float]:
    """Name -> value of a section that may be missing.   names: the allowed ones.   known: names usable in expressions."""
    if node is None:
        return {}
    return {name: value.constant(known) for name, value in node.fields(names).items()}


def _positive(node: Node) -> float:
    value = node.constant()
    if not value > 0:
        raise node.error("a time above zero is needed [s]")
    return value


def _whole(node: Node) -> int:
    value = node.constant()
    if value != int(value) or not 1 <= value <= MAX_STEPS:
        raise node.error(f"a whole number of steps from 1 to {MAX_STEPS:g} is needed")
    return int(value)
