"""The start that a caller gave: state, parameters and the coordinates to hold, checked, as arrays of runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any, NamedTuple

import numpy as np

from pfaffian.errors import ModelError, brief
from pfaffian.evaluate.arrays import (
    Arguments,
    as_batch,
    configurations,
    guessed_configurations,
    run_arguments,
    unknown,
    velocities,
)
from pfaffian.formats.text.run_settings import StartValues
from pfaffian.kernel.build.waiting import tell
from pfaffian.kernel.call.recipe import Backend
from pfaffian.model.loop_coordinates import coordinates_of_closures
from pfaffian.model.mechanism import Mechanism, as_names
from pfaffian.model.unphysical import check_parameters
from pfaffian.starts.closures_as_joints import ClosuresAsJoints, closures_as_joints, widened
from pfaffian.starts.newton import Fixed, Problem, fixed_entries, fixed_velocities
from pfaffian.terms.traced_now import present


class Given(NamedTuple):
    """The start that a caller gave.

    q: (runs, nq).   v: (runs, nv).   problem: the assembly problem, with what is held.   origin: (runs, nq) the configuration
    from which held coordinates move to their values in q; q itself if it was given as a whole.
    guesses: whether q and v were given as arrays, and so as guesses.   as_joints: the closures whose coordinates
    are held, or None; arrays and problem are then those of `as_joints.whole`, with the closures' coordinates at the end.
    """

    q: np.ndarray
    v: np.ndarray
    problem: Problem
    origin: np.ndarray
    guesses: tuple[bool, bool]
    as_joints: ClosuresAsJoints | None = None

    @property
    def p(self) -> np.ndarray:
        """(runs, np) parameters."""
        return self.problem.p

    @property
    def caller(self) -> Mechanism:
        """The caller's mechanism."""
        return self.problem.m if self.as_joints is None else self.as_joints.m

    def take(self, at: Any) -> Given:
        """The starts of the runs `at`."""
        return self._replace(q=self.q[at], v=self.v[at], problem=self.problem.take(at), origin=self.origin[at])

    def refuse_closures(self, what: str) -> None:
        """Raise ModelError if coordinates of closures are held.   what: takes them at no value of their own."""
        if self.as_joints is not None:
            name = self.as_joints.names[0]
            raise ModelError(
                f"{what} takes no coordinate of closure {name!r}: hold it by pf.assemble(m, q), and go on from there"
            )


class StartArguments(NamedTuple):
    """What a caller gave for a start.   arrays: checked; those of `as_joints.whole` where closures are held."""

    arrays: Arguments
    as_joints: ClosuresAsJoints | None = None

    @property
    def u(self) -> np.ndarray:
        """(runs, inputs) constant inputs."""
        return self.arrays.u


def start_arguments(
    m: Mechanism,
    q: Any,
    v: Any,
    parameters: Any,
    *,
    guess: Any = None,
    hold: Iterable[str] = (),
    u: Any = None,
    u_names: Sequence[str] = (),
) -> StartArguments:
    """Check the state, parameters, held coordinates and constant inputs that a caller gave, with arguments as in `assemble`.

    A dict q names the coordinates to hold, while the others start from `guess` (None: neutral).
    """
    joints = closures_as_joints(m, q, v, guess, names_to_hold(hold))
    if joints is not None:
        q = q if q is None or isinstance(q, Mapping) else widened(configurations(m, q), joints.whole.neutral())
        v = v if v is None or isinstance(v, Mapping) else widened(velocities(m, v), np.zeros(joints.whole.nv))
        m = joints.whole
    start, hold = from_guess(m, q, guess, hold)
    given = run_arguments(m, start, v, parameters, u, u_names)
    if parameters is not None:
        tell("checking parameters")
        check_parameters(m, given.p)
    guesses = given.guesses if start is q else (False, given.guesses[1])
    return StartArguments(given._replace(hold=names_to_hold(hold), guesses=guesses), joints)


def start_of(m: Mechanism, start: StartArguments, t: float, backend: Backend, weights: np.ndarray | None = None) -> Given:
    """The start with these arguments at the time t [s].   weights: (nv,) factors on the inertias; 1 if None."""
    given, joints = start
    m = present(m if joints is None else joints.whole)
    by_hold = fixed_by_name(m, given.hold)
    keep_q = fixed_velocities(m, given.named_q) | by_hold
    keep_v = given.named_v | (by_hold & given.guesses[1])
    count = max(len(given.q), len(given.v), len(given.p))
    qs, vs, p, keep_q, keep_v = (
        np.array(np.broadcast_to(x, (count, x.shape[-1]))) for x in (given.q, given.v, given.p, keep_q, keep_v)
    )
    origin = np.where(fixed_entries(m, keep_q), m.neutral(), qs) if given.named_q.any() and not given.guesses[0] else qs
    if joints is not None:
        there, there_v = joints.measured(qs, vs, p, np.array([t]), backend)
        qs, vs = np.where(joints.open_q, there, qs), np.where(joints.open_v, there_v, vs)
        origin = joints.measured(origin, vs, p, np.array([t]), backend)[0]
    weights = np.ones(m.nv) if weights is None else widened(weights, np.ones(m.nv))
    return Given(qs, vs, Problem(m, p, t, Fixed(keep_q, keep_v, weights), backend), origin, given.guesses, joints)


def from_guess(m: Mechanism, q: Any, guess: Any, hold: Iterable[str]) -> tuple[Any, Iterable[str]]:
    """The configuration and the names to hold of a start whose dict q names coordinates to hold, the others being guesses."""
    if guess is not None and not isinstance(guess, Mapping):
        raise ModelError(f"guess: {{name: number}} is needed, such as the .named of an assembly, got {brief(guess)}")
    if isinstance(q, StartValues):
        q, guess = q.fixed, {**q.guess, **(guess or {})}
    if not guess:
        return q, hold
    if not (q is None or isinstance(q, Mapping)):
        raise ModelError("guess: q is needed as a dict of the coordinates that are held")
    if both := sorted(set(guess) & set(q or ())):
        raise ModelError(f"guess: q names {both[0]!r} too; a coordinate that q names is held, so leave it out of guess, or "
                         f"give q as an array with hold=[{both[0]!r}, ...]")  # fmt: skip
    configurations(m, q)  # refuses a part of a quaternion, which cannot be held
    return guessed_configurations(m, {**guess, **(q or {})}), (*names_to_hold(hold), *(q or ()))


def names_to_hold(hold: Any) -> tuple[str, ...]:
    """The names to hold, of a list, a set or the keys of a dict. Raises ModelError: they are no texts."""
    if isinstance(hold, str):
        raise ModelError(f"hold must be a list of names, got {hold!r}; write hold=[{hold!r}]")
    return as_names(tuple(hold) if isinstance(hold, (Set, Mapping)) else hold, "hold")


def fixed_by_name(m: Mechanism, hold: tuple[str, ...]) -> np.ndarray:
    """(nv,) of bool, whether a velocity coordinate belongs to one of the named coordinates or joints."""
    marked = np.zeros(m.nv, dtype=bool)
    for name in hold:
        if name in m.v_slices:
            marked[m.v_slices[name]] = True
        elif name in m.q_names:
            marked |= fixed_velocities(m, np.array([n == name for n in m.q_names]))
        else:
            raise unknown(name, tuple(dict.fromkeys((*m.q_names, *m.v_slices, *coordinates_of_closures(m)))), "hold")
    return marked


def weights_of(m: Mechanism, weight: Any) -> np.ndarray:
    """(nv,) the checked factors on the inertias of the velocity coordinates."""
    found = as_batch(weight, m.v_names, np.ones(m.nv), "weight")
    if len(found) != 1 or not (found > 0).all():
        raise ModelError(f"weight must be one number above zero for each of {m.nv} velocity coordinates")
    return found[0]
