"""Coordinates of OSIM files whose motion is given: beside OpenSim 4.6, whose values are noted here, or refused."""

import numpy as np
import pytest

import pfaffian as pf
from pfaffian.errors import ModelError
from pfaffian.formats import parse_osim
from tests.formats.test_osim import CUBIC, LINE, POLYGON, SPLINE, accelerations, custom, joint, model
from tests.formats.test_osim_words import coupler, four_bar, pins
from tests.tolerance import PEER, close

GIVEN = "<prescribed>true</prescribed><prescribed_function>{}</prescribed_function><default_value>0.9</default_value>"
SWINGING = "<default_value>0.4</default_value><default_speed_value>0.7</default_speed_value>"
MOTION = "<PolynomialFunction><coefficients>0.3 -0.2 0.5 0.25</coefficients></PolynomialFunction>"
STEP = (
    "<StepFunction><transition_start_time>-1</transition_start_time><transition_end_time>1</transition_end_time>"
    "<start_value>0</start_value><end_value>1</end_value></StepFunction>"
)
TWICE = f"<MultiplierFunction><function>{MOTION}</function><scale>2</scale></MultiplierFunction>"

STEPPING = 1e-6
"""Error of a second in steps of 4 ms."""


@pytest.mark.parametrize(
    ("motion", "wanted", "later"),
    [(MOTION, (-0.4, -13.569892171168235), (0.85, -2.123955216850532, 1.0, 0.40798775788989)),
     (TWICE, (-0.8, -15.095281769219959), (1.7, -3.319983924127658, 2.0, -1.3464602903799754)),
     (SPLINE, (7.028594391285132, -15.845665986311888), (0.2942173662846909, -0.9669004493940255, -0.08390290001118701,
                                                         1.786408518790035)),
     (STEP, (0.0, -15.89528176921996), (1.0, -2.610362687517709, 0.0, 0.7290885310947525)),
     (LINE.format(1.5, 0.3), (0.0, -14.429122791044692), None)],
    ids=["polynomial", "multiple", "spline", "step", "line"],
)  # fmt: skip
def test_a_prescribed_coordinate_moves_as_in_opensim(motion, wanted, later):
    """Accelerations of both pins at the start, and their angles and rates after one second."""
    m, settings = parse_osim(model(pins(GIVEN.format(motion), SWINGING)))
    at = pf.assemble(m, settings.start, settings.v)
    close(pf.forward_dynamics(m, at.q, at.v).v_dot, np.array(wanted), PEER, "accelerations")
    if later is not None:
        run = pf.run(m, settings.start, settings.v, duration=1.0, step=4e-3)
        close(np.r_[run.q.values[-1], run.v.values[-1]], np.array(later), STEPPING, "after a second")


def test_a_coordinate_that_an_axis_moves_by_a_multiple_is_prescribed_too():
    """An axis turns by 2 q + 0.1: its own angle is 2 f + 0.1."""
    knee = {"rotation1": ("q", "0 0 1", LINE.format(2, 0.1))}
    with pytest.warns(pf.ModelWarning, match="replaced by that of the axis"):
        m, settings = parse_osim(model(custom("k", "ground", "a", [("q", GIVEN.format(MOTION))], knee), "a"))
    close(np.array(list(settings.guess.values())), np.array([2 * 0.25 + 0.1]), PEER, "start")
    close(np.array(list(accelerations(m, settings.guess, {}).values())), np.array([2 * -0.4]), PEER, "acceleration")


def test_a_coupler_follows_a_prescribed_coordinate():
    """q_b = 2 q_a + 0.1: its acceleration is twice that of q_a, and its speed in the file gives way."""
    text = model(pins(GIVEN.format(MOTION), SWINGING), constraints=coupler("qb", "qa", LINE.format(2, 0.1)))
    m, settings = parse_osim(text)
    run = pf.run(m, settings.start, settings.v, duration=0.01)
    close(run.v.values[0], np.array([0.5, 1.0]), PEER, "rates")
    assert settings.guess == pytest.approx({"qa": 0.25, "qb": 0.6}) and settings.v == {}


def test_yaml_keeps_prescribed_motions(tmp_path):
    m, settings = parse_osim(model(pins(GIVEN.format(SPLINE), SWINGING)))
    pf.write(m, tmp_path / "m.yaml")
    again, _ = pf.read(tmp_path / "m.yaml")
    at = pf.assemble(m, settings.start, settings.v)
    assert np.array_equal(*(pf.forward_dynamics(x, at.q, at.v).v_dot for x in (m, again)))


def test_without_a_function_a_coordinate_is_free():
    m, _ = parse_osim(model(pins("<prescribed>true</prescribed>")))
    assert m.constraints == ()


BAD = {
    "jumps": (model(pins(GIVEN.format(POLYGON))), "the rate of a PiecewiseLinearFunction jumps"),
    "jumps inside": (model(pins(GIVEN.format(TWICE.replace(MOTION, POLYGON)))), "the rate of a PiecewiseLinearFunction jumps"),
    "unknown": (model(pins(GIVEN.format("<Sine><amplitude>1</amplitude></Sine>"))), "functions of this kind are not read"),
    "locked": (model(pins(f"<locked>true</locked>{GIVEN.format(CUBIC)}")), "it is locked and prescribed at once"),
    "closing": (four_bar(GIVEN.format(CUBIC)), "it is prescribed, and of a joint that closes a loop"),
    "no transition": (model(pins(GIVEN.format(STEP.replace(">1</transition_end", ">-1</transition_end")))),
                      "its transition ends at -1.0"),
    "brackets": (model(joint("PinJoint", "p", "ground", "a", "q"), "a").replace(">0.1 -0.3 0.05<", ">(0.1 -0.3 0.05)<"),
                 "write the numbers without brackets"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_what_no_motion_can_follow_is_refused(name):
    text, message = BAD[name]
    with pytest.raises(ModelError, match=message):
        parse_osim(text)
