"""Which pair makes the next step of a lane under error control: the explicit one, or the stiff one where that is quicker.

A step of the explicit pair shows the rate of the fastest motions, as its stages contain them once its stability limits it
(`EmbeddedPair.turn`); a step of the stiff pair knows its Jacobian. The choice of a lane depends on its own numbers alone, so
its steps are the same whatever lanes are beside it and wherever calls of the loops end.
"""

from __future__ import annotations

import casadi as ca
import numpy as np

from pfaffian.simulate.step.pairs import EmbeddedPair
from pfaffian.simulate.step.stiff_pair import StiffPair

PATIENCE, MOST_PATIENT = 15.0, 4000.0
"""Least and greatest evidence, in steps, after which the explicit pair gives way to the stiff one."""

DOUBTS, CALMS = 4.0, 0.9
"""Factors of the patience when the stiff pair gives way again, and after each of its steps that was worth it."""

UNTRIED = 20_000.0
"""Steps of the explicit pair after which the stiff one is tried without evidence, the patience being PATIENCE. A steep part of
a force that is narrower than the tolerance hides its rate: the stages of a step lie on both sides of it."""

NEVER = 1e9
"""Patience of a lane that stays with its pair."""


STABLE, OF_STAGES = 2.0, 150
"""Length of a step of an explicit pair times the rate of the fastest motion; its operations for each number of the state."""


def limit(pair: EmbeddedPair | StiffPair, step: ca.Function) -> float:
    """The length of a step times the rate of the fastest motion beyond which the stiff pair is quicker.

    step: of the pair. For the stiff pair it follows from the operations of both.
    """
    if isinstance(pair, EmbeddedPair):
        return pair.limit
    inner = {f.name(): f.n_instructions() for f in step.find_functions()}
    rate = inner["rhs"]
    work = step.n_instructions() + sum(inner.values()) + pair.rates * rate
    return STABLE * work / (12 * rate + OF_STAGES * step.size1_in(0))


def pair_of_next_step(limit: float, stiff: bool, now: ca.SX, turn: ca.SX) -> ca.SX:
    """(4, 1) the next [implicit; evidence; patience; spent] of a lane, after a step that was good.

    limit: see `limit`.   stiff: whether the stiff pair made the step.   now: (4, 1) the present ones.   turn: length of the
    step times the rate of the fastest motions. The explicit pair gives way where its stability limits most of its steps, or on
    trial after very many; the stiff one where its steps are so short that the explicit one is quicker. Each time the stiff
    pair gives way the explicit one becomes more patient, so that little time is lost where they are equally quick.
    """
    implicit, evidence, patience, spent = ca.vertsplit(now)
    speaks = turn < limit if stiff else turn > limit
    evidence = ca.if_else(speaks, evidence + 1, ca.fmax(evidence - 1, 0))
    untried = spent >= UNTRIED / PATIENCE * patience
    enough = evidence >= PATIENCE if stiff else ca.logic_or(evidence >= patience, untried)
    changes = ca.logic_and(enough, patience < NEVER)
    if stiff:
        calmer = ca.if_else(speaks, patience, ca.fmax(patience * CALMS, PATIENCE))
        other = ca.if_else(changes, ca.fmin(patience * DOUBTS, MOST_PATIENT), calmer)
        patience = ca.if_else(patience < NEVER, other, patience)
    stays = ca.vertcat(implicit, evidence, patience, spent + 1)
    return ca.if_else(changes, ca.vertcat(1 - implicit, 0, patience, 0), stays)


def first_length_of(stiff: bool, h: ca.SX, turn: ca.SX, length: ca.SX) -> ca.SX:
    """The length of the first step of the other pair, after one of the length h: one in which the explicit pair is stable."""
    return ca.fmin(length, h / ca.fmax(turn, 1)) if stiff else length


def has_been_stiff(implicit: np.ndarray, patience: np.ndarray) -> np.ndarray:
    """Whether the stiff pair makes the next step of lanes (n,), or has made steps before: then the explicit one is more patient
    than it was at the start."""
    return (implicit == 1) | ((patience > PATIENCE) & (patience < NEVER))
