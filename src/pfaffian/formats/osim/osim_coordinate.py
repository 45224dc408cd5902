"""Coordinates of an OSIM file that no axis of their joint has: those that other coordinates or multiples of an angle say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, replace
from graphlib import CycleError, TopologicalSorter

from pfaffian.errors import nearest
from pfaffian.formats.osim.osim_function import TIME, Affine, OsimFunction, read_function
from pfaffian.formats.osim.osim_part import AxisMotion, OsimCoordinate, OsimJoint, name_of, text_of, value
from pfaffian.formats.text.left_out import LeftOut, leave
from pfaffian.formats.text.strict_number import printable, words_of
from pfaffian.formats.text.xml import Element


@dataclass(frozen=True)
class Coupler:
    """A CoordinateCouplerConstraint: dependent = by."""

    name: str
    element: Element
    dependent: str
    by: OsimFunction


ACCURACY = 1e-9
"""Largest violation of a constraint that OpenSim accepts when it assembles a model."""


def read_coupler(e: Element, joints: Sequence[OsimJoint]) -> Coupler | None:
    """q = scale f(others), with those that are locked at their values. Raises ModelError: an unknown coordinate or function."""
    dependent, others = text_of(e, "dependent_coordinate_name"), tuple(words_of(text_of(e, "independent_coordinate_names")))
    known = {c.name: c for j in joints for c in j.coordinates}
    for n in (dependent, *others):
        if n not in known:
            raise e.error(f"there is no coordinate {printable(n)}; {nearest(n, [*known])}")
    inner = e.only("coupled_coordinates_function")
    if inner is None or len(inner.children) != 1:
        raise e.error("<coupled_coordinates_function> is missing; add it")
    f = read_function(inner.children[0], others).times(value(e, "scale_factor", 1.0))
    f = f.with_values({n: known[n].default for n in others if known[n].locked})
    return _turned(e, known[dependent], f) if known[dependent].locked else Coupler(name_of(e), e, dependent, f)


def _turned(e: Element, locked: OsimCoordinate, f: OsimFunction) -> Coupler | None:
    """The coupler q = f of a locked q, solved for one of the others; None if these are locked too."""
    what, at = f"its dependent coordinate {printable(locked.name)} is locked", locked.default
    if f.of:
        raise e.error(f"{what}, and its function is not linear; lock {printable(f.of)} too, or none of them")
    if not f.ratios:
        if abs(f.offset - at) > ACCURACY:
            raise e.error(f"{what} at {at}, but those on which it depends are locked too and ask for {f.offset}; change one")
        return None
    name, ratio = next(iter(f.ratios.items()))
    rest = {n: -r / ratio for n, r in f.ratios.items() if n != name}
    return Coupler(name_of(e), e, name, OsimFunction(rest, (at - f.offset) / ratio))


def owners(motions: Sequence[AxisMotion]) -> dict[str, AxisMotion]:
    """Coordinate -> the first motion that is the coordinate itself, but for sign and offset."""
    found = dict[str, AxisMotion]()
    for x in motions:
        if not x.by.of and [abs(r) for r in x.by.ratios.values()] == [1.0]:
            found.setdefault(next(iter(x.by.ratios)), x)
    return found


def settled(
    joints: Sequence[OsimJoint], couplers: Sequence[Coupler], lost: LeftOut
) -> tuple[list[OsimJoint], list[Coupler], dict[str, Affine]]:
    """The joints and couplers in terms of coordinates that axes have, and coordinate -> what says it, for the others.

    A coordinate that a coupler gives in proportion to another one is that; else one of which an axis moves by a multiple is
    that of the axis.
    """
    for j in joints:
        _check(j)
    joints = [_without_locked(j) for j in joints]
    replaced, made, used = dict[str, Affine](), list[OsimJoint](), set[str]()
    free = {n for j in joints for n in {n for x in j.motions for n in x.by.coordinates}.difference(owners(j.motions))}
    for c in couplers:
        if c.dependent in free and c.dependent not in replaced and not c.by.of and len(c.by.ratios) == 1:
            ((other, ratio),) = c.by.ratios.items()
            if other not in free and ratio:
                replaced[c.dependent] = other, ratio, c.by.offset
                used.add(c.name)
    for j in joints:
        for name in [c.name for c in j.coordinates if c.name in free and c.name not in replaced]:
            j, entry = _by_axis(j, name)
            replaced[name] = entry
            leave(
                lost,
                "coordinates of which an axis moves by a multiple are replaced by that of the axis",
                f"{name} ({entry[0]})",
            )
        made.append(replace(j, motions=tuple(replace(x, by=x.by.in_terms_of(replaced)) for x in j.motions)))
    rest = []
    for c in couplers:
        if c.name not in used:
            name, a, b = replaced.get(c.dependent, (c.dependent, 1.0, 0.0))
            f = c.by.in_terms_of(replaced)
            rest.append(replace(c, dependent=name, by=f.plus(-b).times(1 / a)))
    return made, rest, replaced


def _check(j: OsimJoint) -> None:
    """Raise ModelError for a motion by a coordinate that is not one of the joint."""
    known = {c.name for c in j.coordinates}
    for x in j.motions:
        for name in x.by.coordinates:
            if name not in known:
                raise j.element.error(f"its {x.name} depends on {printable(name)}, which is none of its coordinates")


def _without_locked(j: OsimJoint) -> OsimJoint:
    """The joint with its locked coordinates at their default values."""
    fixed_at = {c.name: c.default for c in j.coordinates if c.locked}
    return replace(j, motions=tuple(replace(x, by=x.by.with_values(fixed_at)) for x in j.motions)) if fixed_at else j


def _by_axis(j: OsimJoint, name: str) -> tuple[OsimJoint, Affine]:
    """The joint with the coordinate of an axis in place of a coordinate q = (x - b) / a, and the entry of q.

    Raises ModelError: no axis moves in proportion to the coordinate alone.
    """
    c = next(c for c in j.coordinates if c.name == name)
    axis = next((x for x in j.motions if not x.by.of and [*x.by.ratios] == [name] and x.by.ratios[name]), None)
    if axis is None:
        way = "give an axis a LinearFunction of it, or couple it to another coordinate by a LinearFunction"
        raise c.element.error(f"no axis of its joint moves in proportion to this coordinate alone; {way}")
    a, b, new = axis.by.ratios[name], axis.by.offset, f"{j.name} {axis.name}"[:128]
    limits = sorted(a * x + b for x in c.limits)
    motion = None if c.prescribed is None else c.prescribed.times(a).plus(b)
    mine = OsimCoordinate(new, c.element, a * c.default + b, a * c.speed, (limits[0], limits[1]), c.locked, motion)
    motions = tuple(replace(x, by=OsimFunction({new: 1.0})) if x is axis else x for x in j.motions)
    coordinates = tuple(mine if x is c else x for x in j.coordinates)
    return replace(j, coordinates=coordinates, motions=motions), (new, 1 / a, -b / a)


def prescribed(
    joints: Sequence[OsimJoint], replaced: Mapping[str, Affine], loops: Sequence[OsimJoint], owned: Mapping[str, float]
) -> dict[str, OsimFunction]:
    """Coordinate of the tree -> its motion, where that is given.   replaced: coordinate -> what says it.   owned: coordinates
    of the tree.

    Raises ModelError: one is a coordinate of a joint that closes a loop.
    """
    closing, found = {id(j) for j in loops}, dict[str, OsimFunction]()
    for j in joints:
        for c in j.coordinates:
            if c.prescribed is None:
                continue
            if id(j) in closing:
                raise c.element.error("it is prescribed, and of a joint that closes a loop; open the loop at another joint")
            name, a, b = replaced.get(c.name, (c.name, 1.0, 0.0))
            if name in owned:
                found[name] = c.prescribed.plus(-b).times(1 / a)
    return found


def moves(c: Coupler, owned: Mapping[str, float], loops: Sequence[OsimJoint]) -> bool:
    """Whether a coupler constrains a coordinate that moves something.   owned: coordinates of the tree.

    Raises ModelError: it uses a coordinate of a joint that closes a loop, or one that moves nothing.
    """
    closing = {x.name for j in loops for x in j.coordinates}
    if c.dependent not in owned and c.dependent not in closing:
        return False
    for name in (c.dependent, *c.by.coordinates):
        if name not in owned:
            why = "of a joint that closes a loop; open the loop at another joint" if name in closing else "that moves nothing"
            raise c.element.error(f"{printable(name)} is a coordinate {why}")
    return True


def settled_start(
    given: Mapping[str, float], motions: Mapping[str, OsimFunction], functions: Mapping[str, OsimFunction]
) -> dict[str, float]:
    """The start with prescribed coordinates at the start of their motions, and dependent ones at the values of their functions,
    as in OpenSim; as given if these form a ring."""
    start = {**given, **{name: f.at({TIME: 0.0}) for name, f in motions.items()}}
    with suppress(CycleError):
        for name in [*TopologicalSorter({n: f.coordinates for n, f in functions.items()}).static_order()]:
            if name in functions:
                start[name] = functions[name].at(start)
    return start


def start_speeds(joints: Sequence[OsimJoint], free: Set[str]) -> dict[str, float]:
    """Coordinate -> its speed at the start, for those that nothing else determines.   free: names of these."""
    return {c.name: c.speed for j in joints for c in j.coordinates if c.speed and c.name in free}
