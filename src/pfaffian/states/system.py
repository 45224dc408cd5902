"""The state [q; v] of a mechanism, and a state that a user's functions define."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, final

import casadi as ca
import numpy as np

from pfaffian.dynamics.motion import Motion
from pfaffian.errors import ModelError, brief
from pfaffian.model.mechanism import Mechanism, as_mechanism
from pfaffian.states.abstract_system import AbstractSystem, StatePart
from pfaffian.states.variables import Variables, of_joints, q_dot
from pfaffian.terms.terms import Terms
from pfaffian.terms.traced_now import present, remembered


@final
@dataclass(frozen=True, eq=False, repr=False)
class System(AbstractSystem):
    """A mechanism in a state x (nx,) that the user's functions define, its parts one after another.

        x_dot = rate(T, motion, x),   (q, v) = show(x, t),   x = enter(T) where T.q = q and T.v = v

    These functions, as well as `project`, `signals` and `inside`, take and return CasADi expressions, and may use the
    mechanism's parameters. `run` takes a System wherever it takes a mechanism: starts are given as q and v, and laws,
    constraints, inputs and outputs are those of the mechanism, so that results of two systems of one mechanism can be
    subtracted.

    Args:
        mechanism: the mechanism.
        name: name of the state, quoted in error messages.
        parts: the `StatePart`s of the state, in order. One named "q" or "v" is the mechanism's own.
        enter: Terms at a state [q; v] -> x (nx, 1).
        show: (x, t) -> (q, v), the inverse of `enter`.
        rate: (T, motion, x) -> x_dot (nx, 1). T: the Terms at show(x) with the inputs applied; motion: v_dot, reaction and rank
            by the formulation of the scheme. A rate with its own equations may use only some of these, perhaps only T.u.
        project: (x, t) -> x on the state's manifold, such as quaternions of unit length; None: by way of (q, v). States are
            always put onto the mechanism's constraints by way of (q, v).
        signals: (T, motion, x) -> {name: column}, recorded with those of the mechanism and of the parts; None: no others.
        named: `StatePart`s that give names and units to the entries of these signals.
        inside: (x, t) -> a number that is positive inside. A start where it is not positive is refused, and a run stops where
            it is zero or changes its sign, also within a step.
        ends: what ends where `inside` is zero, and the way out; the message of such a run.
        check: function of the parameters (runs, np) of a run that raises ModelError if the state cannot represent them.
        holds: whether the (q, v) of `show` satisfy the mechanism's constraints for every x, so that steps need no correction.
        uncorrected: indices of entries of x that the correction onto the constraints leaves unchanged: momenta without
            reactions.
        about: lines of text about the state; print(system) shows them, and a result contains them as `state_about`.
        digest: a text that distinguishes the system from others, in addition to the graphs of its functions; optional.
    Raises ModelError: not a mechanism; a part without a unit for each name; two parts with one name; only one of `inside` and
    `ends`.

    Example:
        A box of 2 kg in the state [x; p], with its momentum p = 2 v:

        >>> import casadi as ca, pfaffian as pf
        >>> slide = pf.joint("x", "prismatic", "world", "box", axis=(1, 0, 0))
        >>> m = pf.mechanism("block", [pf.body("box", mass=2.0)], [slide])
        >>> parts = (pf.reduction.StatePart("q", ("x",), ("m",)), pf.reduction.StatePart("p", ("p",), ("N s",)))
        >>> system = pf.System(m, "[x; p]", parts, enter=lambda T: ca.vertcat(T.q, 2 * T.v), show=lambda x, t: (x[0], x[1] / 2),
        ...                    rate=lambda T, motion, x: ca.vertcat(T.v, 2 * motion.v_dot))
        >>> pf.run(system, v=[3.0], duration=1.0, step=0.1, backend="numpy")["p"].values[-1]
        array([6.])
    """

    enter: Callable[[Terms], Any]
    show: Callable[[ca.SX, ca.SX], Any]
    rate: Callable[[Terms, Motion, ca.SX], Any]
    project: Callable[[ca.SX, ca.SX], Any] | None = None
    signals: Callable[[Terms, Motion, ca.SX], Any] | None = None
    inside: Callable[[ca.SX, ca.SX], Any] | None = None
    check: Callable[[np.ndarray], None] | None = None
    digest: str | None = None

    def __post_init__(self) -> None:
        as_mechanism(self.mechanism)
        for part in (*self.parts, *self.named):
            if not (isinstance(part, StatePart) and part.names and len(part.names) == len(part.units)):
                raise ModelError(
                    f"{self.title}: a StatePart(name, names, units) with a unit for each name is needed, got {brief(part)}"
                )
        names = [part.name for part in self.parts]
        if len(set(names)) < len(names):
            raise ModelError(f"{self.title}: two parts have one name among {', '.join(names)}")
        if (self.inside is None) != (self.ends is None):
            raise ModelError(f"{self.title}: inside says where the state ends, and ends says what ends there: give both")


@final
@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Standard(AbstractSystem):
    """A mechanism in the state [q; v], in which mechanisms are integrated by default."""

    variables: Variables
    name: str = "[q; v]"
    other_state = False

    def enter(self, T: Terms) -> ca.SX:
        """[q; v]."""
        return ca.vertcat(T.q, T.v)

    def show(self, x: ca.SX, t: ca.SX) -> tuple[ca.SX, ca.SX]:
        """(q, v)."""
        return x[: self.mechanism.nq, 0], x[self.mechanism.nq :, 0]

    def rate(self, T: Terms, motion: Motion, x: ca.SX) -> ca.SX:
        """[q_dot; v_dot]."""
        return ca.vertcat(q_dot(T.kinematics), motion.v_dot)

    def identity(self) -> str:
        """The mechanism alone determines this state."""
        return self.name


@remembered(256)
def _standard(m: Mechanism) -> Standard:
    """The System of the state [q; v]."""
    parts = (StatePart("q", m.q_names, m.q_units), StatePart("v", m.v_names, m.v_units))
    return Standard(mechanism=m, parts=tuple(part for part in parts if part.names), variables=of_joints(m))


def as_system(value: Any) -> AbstractSystem:
    """A System, with the functions of its mechanism as they are now; a mechanism becomes the System of its state [q; v].

    Raises ModelError: it is neither; a function of the mechanism fails, or no longer agrees with a reduction made from it.
    """
    if not isinstance(value, AbstractSystem):
        return _standard(as_mechanism(value))
    if value.changed is not None and value.changed():
        raise ModelError(f"{value.title}: a function from which it was derived gives another result now; derive it again")
    return replace(value, mechanism=present(value.mechanism))
