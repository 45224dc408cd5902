"""The coordinates of joints that close loops, which results record beside q and v."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pfaffian.kernel.remember import once_for
from pfaffian.model.constraint import Closure
from pfaffian.model.force import joints_of
from pfaffian.model.joint import Joint
from pfaffian.model.mechanism import Mechanism


class LoopCoordinates(NamedTuple):
    """Labels of the coordinates and velocities of closures.

    closures: to which they belong, in order.   limits: (coordinates, 2), infinite where there is none.
    """

    closures: tuple[Closure, ...]
    names: tuple[str, ...]
    units: tuple[str, ...]
    v_names: tuple[str, ...]
    v_units: tuple[str, ...]
    limits: np.ndarray


def loop_coordinates_of(m: Mechanism) -> LoopCoordinates:
    """The coordinates of all closures that carry something, or that a force or an actuator names."""
    return once_for(m, "loop coordinates", lambda: _loop_coordinates(m))


def _loop_coordinates(m: Mechanism) -> LoopCoordinates:
    """See `loop_coordinates_of`."""
    forces = (*m.all_forces, *m.actuators) if m.loop_joints else ()
    named = {joint for f in forces for joint in joints_of(f)}
    used = tuple(c for c in m.loop_joints.values() if c.carries or c.name in named)
    joints = [c.joint for c in used if c.joint is not None]
    pairs = [x for j in joints for x in j.limits]
    return LoopCoordinates(
        used,
        tuple(n for j in joints for n in _labelled(j, j.q_names)),
        tuple(u for j in joints for u in j.q_units),
        tuple(n for j in joints for n in _labelled(j, j.v_names)),
        tuple(u for j in joints for u in j.v_units),
        np.array(pairs, dtype=float).reshape(-1, 2),
    )


def coordinates_of_closures(m: Mechanism) -> tuple[str, ...]:
    """Names of the coordinates of all joints that close loops."""
    return tuple(name for j in _closing_joints(m) for name in _labelled(j, j.q_names))


def velocities_of_closures(m: Mechanism) -> tuple[str, ...]:
    """Names of the velocities of all joints that close loops."""
    return tuple(name for j in _closing_joints(m) for name in _labelled(j, j.v_names))


def _closing_joints(m: Mechanism) -> list[Joint]:
    """The joints that close loops."""
    return [c.joint for c in m.loop_joints.values() if c.joint is not None]


def labels(j: Joint) -> tuple[str, ...]:
    """Names of all coordinates and velocities of a joint that closes a loop."""
    return _labelled(j, j.q_names) + _labelled(j, j.v_names)


def _labelled(j: Joint, suffixes: tuple[str, ...]) -> tuple[str, ...]:
    """Names of coordinates or velocities of a joint."""
    return tuple(f"{j.name}.{n}" if n else j.name for n in suffixes)
