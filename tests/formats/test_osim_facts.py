"""Every class that OpenSim registers, and every property of those that are read, has an answer: see tests/data/osim_facts.csv.

Their names were printed by `python -m tools.schema_names osim`. Each row gives the answer and what the element of the property
contains, other than its default; the attribute "*" answers for a class with all its properties, within the elements that
`value` names. A small model with this element is read:

read        the mechanism or the settings change, or its class is in the model anyway
refused     a ModelError
named       a warning tells more than for the model without it
harmless    mechanism, settings and warnings are the same

The last column has what OpenSim 4.6 makes of the same model: value, speed and acceleration of each coordinate at the start,
where these are rates in OpenSim too. `python -m tools.osim_facts` wrote them.
"""

from __future__ import annotations

import csv
import warnings
from functools import cache
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

import pfaffian as pf
from pfaffian.errors import ModelError, ModelWarning
from pfaffian.formats import parse_osim
from tests.formats.test_osim import CUBIC, LINE, OLD, POLYGON, SPLINE, custom, joint, model
from tests.formats.test_osim_prescribed import GIVEN, MOTION, STEP
from tests.formats.test_osim_words import SPRING, SUM, coupler, pins
from tests.tolerance import close
from tools.schema_names import unanswered

TABLE = Path(__file__).parents[1] / "data" / "osim_facts.csv"
ROWS = list(csv.DictReader(TABLE.read_text().splitlines()))

OPENSIM = 1e-7
"""Relative tolerance beside OpenSim's accelerations, of states that it assembles to 1e-9."""


def start(q: float, v: float) -> str:
    return f"<default_value>{q}</default_value><default_speed_value>{v}</default_speed_value>"


OFFSET = (
    '<PhysicalOffsetFrame name="{}"><socket_parent>/bodyset/{}</socket_parent><translation>0 -0.4 0.1</translation>'
    "<orientation>0.1 0.2 0.3</orientation></PhysicalOffsetFrame>"
)
LOWER = "".join(OFFSET.format(f"lower_{x}", x) for x in "ab").replace("0.1</translation>", "0</translation>")
LOWER = "<frames>" + LOWER.replace("<orientation>0.1 0.2 0.3</orientation>", "") + "</frames>"
ABOVE, THERE = (f"<frames>{OFFSET.format(*names)}</frames>" for names in (("above", "b"), ("there", "a")))
SWING = joint("PinJoint", "p", "ground", "a", ("qa", start(0.3, 0.5)), inside=THERE)
RESTING = start(0.3, 0.0)
PINS = pins(start(0.3, 0.5), start(-0.4, 0.2))


def hung(kind: str, *starts: str) -> str:
    """A body that hangs on a joint below a pin.   starts: of the coordinates of the joint."""
    there = joint(kind, "j", "a", "b", *((f"q{i}", s) for i, s in enumerate(starts, 1)), inside=ABOVE)
    return model(SWING + there.replace("<socket_parent_frame>/bodyset/a", "<socket_parent_frame>/jointset/p/there"))


def sliding(function: str) -> str:
    """A body that turns by a coordinate below a pin, and slides by a function of it."""
    axes = {"rotation1": ("q1", "0 0 1", LINE.format(1, 0)), "rotation3": ("", "1 0 0", ""),
            "translation1": ("q1", "0.6 0.8 0", f"<function>{function}</function>")}  # fmt: skip
    turning = custom("j", "a", "b", [("q1", start(0.2, 0.7))], axes)
    return model(SWING + turning.replace("<SpatialTransform>", f"{ABOVE}<SpatialTransform>"))


def between(kind: str, sockets: tuple[str, str], inside: str = "") -> str:
    """Two bodies on pins with a constraint between them."""
    ends = "".join(f"<socket_{s}>/bodyset/{b}</socket_{s}>" for s, b in zip(sockets, "ab", strict=True))
    two = SWING.replace(start(0.3, 0.5), RESTING) + joint("PlanarJoint", "r", "ground", "b", ("q1", RESTING), "q2", "q3")
    return model(two, constraints=f'<{kind} name="c">{ends}{inside}</{kind}>')


LOOSE = start(0.0, 0.0)
COUPLED = model(pins(RESTING, start(-0.4, 0.0)) + joint("PinJoint", "s", "b", "c", "qc"), "abc", coupler("qc", "qa qb", SUM))
POINTS = "<location_body_1>0.1 -0.3 0</location_body_1><location_body_2>0.1 -0.3 0</location_body_2>"
LINED = (
    "<line_direction_vec>1 0.5 0</line_direction_vec><point_on_line>0 0 0</point_on_line>"
    "<point_on_follower>0.2 0.1 0</point_on_follower>"
)
ROD = POINTS.replace("-0.3 0</location_body_2", "0.4 0</location_body_2") + "<constant_distance>0.7</constant_distance>"
SPRUNG = SPRING.format("qa", "<stiffness>3</stiffness><rest_length>0.1</rest_length><viscosity>0.2</viscosity>")
LIMITED = f"{start(0.3, 0.5)}<clamped>true</clamped><range>-1 1</range><prescribed_function>{MOTION}</prescribed_function>"
DRIVEN = '<CoordinateActuator name="m"><coordinate>qa</coordinate></CoordinateActuator>'

MODELS = {
    "Model": model(PINS),
    "WeldJoint": hung("WeldJoint"), **{kind: hung(kind, start(0.2, 0.7)) for kind in ("PinJoint", "SliderJoint")},
    "UniversalJoint": hung("UniversalJoint", start(0.2, 0.7), start(-0.3, 0.1)),
    **{kind: hung(kind, *[LOOSE] * n) for kind, n in (("GimbalJoint", 3), ("BallJoint", 3), ("FreeJoint", 6))},
    "PlanarJoint": hung("PlanarJoint", *(start(x, x) for x in (0.2, -0.3, 0.4))), "CustomJoint": sliding(SPLINE),
    "SimmSpline": sliding(SPLINE), "Constant": sliding("<Constant><value>0.3</value></Constant>"),
    "LinearFunction": sliding(LINE.format(0.5, 0.1)), "PolynomialFunction": sliding(CUBIC),
    "PiecewiseLinearFunction": sliding(POLYGON), "StepFunction": sliding(STEP),
    "MultiplierFunction": sliding(f"<MultiplierFunction><function>{CUBIC}</function><scale>2</scale></MultiplierFunction>"),
    "CoordinateCouplerConstraint": COUPLED, "PointConstraint": between("PointConstraint", ("body_1", "body_2"), POINTS),
    "WeldConstraint": between("WeldConstraint", ("frame1", "frame2"), LOWER),
    "PointOnLineConstraint": between("PointOnLineConstraint", ("line_body", "follower_body"), LINED),
    "ConstantDistanceConstraint": between("ConstantDistanceConstraint", ("body_1", "body_2"), ROD),
    "SpringGeneralizedForce": model(PINS, forces=SPRUNG), "CoordinateActuator": model(PINS, forces=DRIVEN),
    "Coordinate": model(pins(LIMITED, LIMITED)), "Coordinate/prescribed_function": model(pins("", GIVEN.format(MOTION))),
    "CoordinateSet": OLD,
    **{name: sliding(SPLINE) for name in ("SpatialTransform", "TransformAxis")},
    "PhysicalOffsetFrame": hung("PinJoint", start(0.2, 0.7)),
}  # fmt: skip
"""Class -> a model that has it; other classes are put into that of Model."""


def base(element: str, attribute: str, value: str) -> str:
    """The text of the model for a row, without its value."""
    first = value.split("/")[0] if attribute == "*" else element
    return MODELS.get(f"{element}/{attribute}") or MODELS.get(first) or MODELS["Model"]


def text(element: str, attribute: str, value: str) -> str:
    """The text of the model with a value."""
    within = value.split("/") if attribute == "*" else [element]
    root = ElementTree.fromstring(base(element, attribute, value))
    found = [*root.iter(within[0])] or [ElementTree.SubElement(next(root.iter("Model")), within[0])]
    place = found[-1]
    if attribute == "*":
        for tag in within[1:]:
            place = place.find(tag) if place.find(tag) is not None else ElementTree.SubElement(place, tag)
        for other in [*place] if within[-1] == "function" else ():
            place.remove(other)
        place.append(ElementTree.Element(element, {"name": "new"}))
    else:
        for old in [*place.findall(attribute), *place.findall(f"*[@name='{attribute}']")]:
            place.remove(old)
        place.append(ElementTree.fromstring(value if element == "SpatialTransform" else f"<{attribute}>{value}</{attribute}>"))
    return ElementTree.tostring(root, encoding="unicode")


@cache
def read(given: str):
    with warnings.catch_warnings(record=True, action="always") as caught:
        found = parse_osim(given)
    told = {part for w in caught if w.category is ModelWarning for part in str(w.message).split("; ")}
    return found, told


def answer(row: dict[str, str]) -> str:
    words = row["element"], row["attribute"], row["value"]
    without, told_anyway = read(base(*words))
    try:
        found, told = read(text(*words))
    except ModelError:
        return "refused"
    if told - told_anyway:
        return "named"
    return "harmless" if found == without else "read"


def test_a_new_class_or_property_of_opensim_is_found():
    known = [(r["element"], r["attribute"]) for r in ROWS]
    assert unanswered("osim", known) == []
    new = [("RailJoint", "axis"), ("PinJoint", "backlash"), ("ActivationCoordinateActuator", "any")]
    assert unanswered("osim", known + new) == [("RailJoint", "axis"), ("PinJoint", "backlash")]


@pytest.mark.parametrize("name", MODELS)
def test_nothing_of_these_models_is_unread(name):
    assert not [words for words in read(MODELS[name])[1] if "not read" in words]


@pytest.mark.parametrize("row", ROWS, ids=lambda r: f"{r['element']}-{r['attribute']}")
def test_each_class_and_property_does_what_the_table_says(row):
    assert answer(row) == row["answer"]


@cache
def motion(m: pf.Mechanism, near: tuple, rates: tuple):
    """Coordinates on the constraints near some, and their accelerations, by name."""
    at = pf.assemble(m, guess=dict(near), v=dict(rates))
    found = pf.forward_dynamics(m, at.q, at.v).v_dot
    return dict(zip(m.q_names, at.q, strict=True)), dict(zip(m.v_names, found, strict=True))


@pytest.mark.parametrize("row", [r for r in ROWS if r["opensim"]], ids=lambda r: f"{r['element']}-{r['attribute']}")
def test_what_is_read_moves_as_in_opensim(row):
    (m, settings), _ = read(text(row["element"], row["attribute"], row["value"]))
    theirs = {n: tuple(map(float, numbers)) for n, *numbers in (word.split(":") for word in row["opensim"].split())}
    shared = [n for n in theirs if n in m.v_names]
    near = {**settings.guess, **{n: theirs[n][0] for n in shared}}
    rates = {**settings.v, **{n: theirs[n][1] for n in shared}}
    q, found = motion(m, tuple(near.items()), tuple(rates.items()))
    close(np.array([q[n] for n in shared]), np.array([theirs[n][0] for n in shared]), OPENSIM, "coordinates")
    close(np.array([found[n] for n in shared]), np.array([theirs[n][2] for n in shared]), OPENSIM, "accelerations")
