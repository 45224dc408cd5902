"""What an OSIM file says is read as by OpenSim 4.6, whose accelerations are noted here, refused or named."""

import warnings

import numpy as np
import pytest

import pfaffian as pf
from pfaffian.errors import ModelError, ModelWarning
from pfaffian.formats import parse_osim
from tests.formats.test_osim import CUBIC, KNEE, LINE, OLD, ROUNDING, accelerations, custom, joint, model, read
from tests.tolerance import PEER, close

REST = {"rotation2": ("", "0 1 0", ""), "rotation3": ("", "1 0 0", ""), "translation3": ("", "0 0 1", "")}
SPRING = '<SpringGeneralizedForce name="s"><coordinate>{}</coordinate>{}</SpringGeneralizedForce>'
OFFSET = (
    '<frames><PhysicalOffsetFrame name="{}"><socket_parent>{}</socket_parent><translation>{}</translation>'
    "</PhysicalOffsetFrame></frames>"
)


def pins(*inside):
    """Two pins with coordinates qa and qb.   inside: what their elements contain."""
    words = [*inside, "", ""]
    return joint("PinJoint", "p", "ground", "a", ("qa", words[0])) + joint("PinJoint", "r", "a", "b", ("qb", words[1]))


def coupler(dependent, others, function, name="c"):
    names = f"<independent_coordinate_names>{others}</independent_coordinate_names>"
    names += f"<dependent_coordinate_name>{dependent}</dependent_coordinate_name>"
    inside = f"<coupled_coordinates_function>{function}</coupled_coordinates_function>{names}"
    return f'<CoordinateCouplerConstraint name="{name}">{inside}</CoordinateCouplerConstraint>'


def held(value):
    return f"<locked>true</locked><default_value>{value}</default_value>"


SUM = "<LinearFunction><coefficients>1 1 0.2</coefficients></LinearFunction>"
ANGLE = "<default_value>0.3</default_value>"


def test_a_coupler_to_a_locked_coordinate_couples_the_others():
    """q_b = q_a + q_c + 0.2 with q_b locked."""
    more = pins(ANGLE, held(0.5)) + joint("PinJoint", "s", "b", "c", "qc")
    m, settings = read(model(more, "abc", coupler("qb", "qa qc", SUM)), "locked coordinates are fixed")
    assert settings.guess == {"qa": 0.3}
    found = accelerations(m, {"qa": 0.3, "qc": 0.0}, {})
    close(np.array([found["qa"], found["qc"]]), np.array([-12.545394398926, 12.545394398926]), PEER, "accelerations")


def test_a_start_keeps_the_coordinates_on_which_others_depend():
    """As OpenSim assembles the model: q_b follows q_a, and q_c follows q_b, whatever their own values."""
    more = pins(ANGLE, "<default_value>0.1</default_value>") + joint("PinJoint", "s", "b", "c", "qc")
    both = coupler("qc", "qb", LINE.format(-1, 0)) + coupler("qb", "qa", LINE.format(2, 0.1), "d")
    _, settings = read(model(more, "abc", both))
    assert settings.guess == pytest.approx({"qa": 0.3, "qb": 0.7, "qc": -0.7}, rel=ROUNDING)


def test_an_axis_without_a_function_does_not_move():
    axes = REST | {"rotation1": ("angle", "0 0 1", LINE.format(1, 0)), "translation1": ("x", "1 0 0", LINE.format(1, 0))}
    axes["translation2"] = ("angle x", "0 1 0", "")
    m, _ = read(model(custom("k", "ground", "a", ["angle", "x"], axes), "a"))
    found = accelerations(m, {"angle": 0.3, "x": 0.1}, {"angle": 1.2, "x": -0.3})
    close(found["angle"], -15.985630178874828, PEER, "angle")


def test_defaults_fill_what_elements_leave_open():
    said = '<Coordinate name="default"><default_value>0.4</default_value><range>-1 2</range></Coordinate>'
    there = pins("", "<clamped>true</clamped><default_value>0.1</default_value>")
    m, settings = read(model(there).replace('<Model name="m">', f'<Model name="m"><defaults>{said}</defaults>'))
    assert settings.guess == {"qa": 0.4, "qb": 0.1} and m.q_limits.tolist() == [[-np.inf, np.inf], [-1, 2]]


@pytest.mark.parametrize(
    ("end", "around"),
    [
        ("</Body>", "<components>{}</components></Body>"),
        ("</Model>", "<ComponentSet><objects>{}</objects></ComponentSet></Model>"),
    ],
    ids=["of a body", "of the model"],
)
def test_a_force_among_components_acts(end, around):
    force = SPRING.format("qa", "<stiffness>30</stiffness><rest_length>1</rest_length>")
    m, _ = read(model(joint("PinJoint", "p", "ground", "a", "qa"), "a").replace(end, around.format(force)))
    close(accelerations(m, {"qa": 0.3}, {"qa": 1})["qa"], 28.329359844518233, PEER, "qa")


@pytest.mark.parametrize("named", [True, False])
def test_frames_are_found_by_their_paths(named):
    """Frames of two joints with one name, also that of a body, whether or not the set of joints has a name."""
    at_a, at_b = OFFSET.format("b", "/bodyset/a", "0.1 0.2 0.3"), OFFSET.format("b", "/bodyset/b", "-0.5 0.2 0.3")
    first = joint("PinJoint", "p", "ground", "a", "qa", inside=at_a).replace("frame>/bodyset/a<", "frame>b<")
    second = joint("PinJoint", "r", "a", "b", "qb", inside=at_b).replace("frame>/bodyset/b<", "frame>b<")
    text = model(first + second)
    m, _ = read(text.replace("<JointSet>", '<JointSet name="jointset">') if named else text)
    found = accelerations(m, {"qa": 0.3, "qb": -0.4}, {"qa": 1.2, "qb": 0.5})
    close(np.array([found["qa"], found["qb"]]), np.array([0.38927011896031266, -8.47807187422714]), PEER, "accelerations")


def four_bar(last, forces="", constraints=""):
    """Links of 0.9, 1.1 and 0.8 m, of which the joint r to the last closes the loop."""

    def at(name, body, place, text):
        frame = OFFSET.format(name, body, place)
        return text.replace(f"parent_frame>{body}<", f"parent_frame>{name}<").replace("</PinJoint>", f"{frame}</PinJoint>")

    out = at("foot", "/ground", "1 0 0", joint("PinJoint", "q", "ground", "c", "qc"))
    tip = OFFSET.format("tip", "/bodyset/c", "0 0.8 0")
    end = joint("PinJoint", "r", "b", "c", ("qr", last)).replace("child_frame>/bodyset/c<", "child_frame>tip<")
    end = at("there", "/bodyset/b", "1.1 0 0", end).replace("</PinJoint>", f"{tip}</PinJoint>").replace("</frames><frames>", "")
    middle = at("top", "/bodyset/a", "0 0.9 0", joint("PinJoint", "s", "a", "b", "qb"))
    return model(joint("PinJoint", "p", "ground", "a", "qa") + middle + out + end, "abc", constraints, forces)


def test_a_joint_that_closes_a_loop_keeps_its_spring_and_limits():
    force = SPRING.format("qr", "<stiffness>30</stiffness><rest_length>0.4</rest_length><viscosity>2</viscosity>")
    m, _ = read(four_bar("<clamped>true</clamped><range>-1 3</range>", force), "close loops as constraints: 'r'")
    (c,) = m.constraints
    at = pf.assemble(m, guess={"qa": 0.1}, v={"qa": 0.7})
    q, v = dict(zip(m.q_names, at.q, strict=True)), dict(zip(m.v_names, at.v, strict=True))
    angle, rate = q["qc"] - q["qa"] - q["qb"], v["qc"] - v["qa"] - v["qb"]
    free, _ = read(four_bar(""), "close loops")
    difference = pf.forward_dynamics(m, at.q, at.v).v_dot - pf.forward_dynamics(free, at.q, at.v).v_dot
    torque = -30 * (angle - 0.4) - 2 * rate  # on qc, and against qa and qb, among which the loop leaves one motion
    power = np.array([{"qc": 1, "qa": -1, "qb": -1}[n] for n in m.v_names]) * torque @ at.v
    assert at.v @ pf.mass_matrix(m, at.q) @ difference == pytest.approx(power, rel=1e-8)
    assert c.limits == ((-1, 3),)


def test_a_locked_joint_that_closes_a_loop_is_rigid():
    m, _ = read(four_bar(held(-0.4)), "close loops as constraints: 'r'")
    (c,) = m.constraints
    R = np.array(m.value(c.placement_a.R)).T @ np.array(m.value(c.placement_b.R))
    assert c.kind == "weld" and np.arctan2(R[1, 0], R[0, 0]) == pytest.approx(0.4, rel=ROUNDING)


def test_a_joint_without_coordinates_may_be_called_like_a_coordinate():
    m, _ = read(model(joint("PinJoint", "p", "ground", "a", "r") + joint("WeldJoint", "r", "a", "b")))
    assert m.q_names == ("r",)


CONNECTORS = (
    '<PinJoint name="p"><connectors><C name="parent_body"><connectee_name>../ground</connectee_name></C>'
    '<C name="child_body"><connectee_name>a</connectee_name></C></connectors><location_in_parent>1 2 0</location_in_parent>'
    '<location_in_child>0 0.5 0</location_in_child><CoordinateSet><objects><Coordinate name="q"/></objects></CoordinateSet>'
    "</PinJoint>"
)


def test_files_between_versions_3_and_4_have_connectors_or_sockets():
    """The weight of a turns it about a pin that is .5 above its origin; either form gives the same machine."""
    m, _ = read(model(CONNECTORS, "a", version=30501))
    inertia = 0.25 + 3 * (0.1**2 + 0.8**2)
    assert accelerations(m, {"q": 0.0}, {})["q"] == pytest.approx(-3 * 9.80665 * 0.1 / inertia, rel=ROUNDING)
    texts = (model(joint("PinJoint", "p", "ground", "a", "q"), "a", version=v) for v in (30517, 40000))
    assert len({read(text)[0] for text in texts}) == 1


def named(text, *words):
    """Whether one warning has these words."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        parse_osim(text)
    (message,) = [str(w.message) for w in caught if issubclass(w.category, ModelWarning)]
    return all(word in message for word in words)


def test_what_is_not_known_is_named_once():
    """Misspelt elements, controllers, units and a version that is newer."""
    force = SPRING.format("qb", "<stifness>3</stifness>")
    assert named(model(pins(), forces=force), "'<stifness> in <SpringGeneralizedForce> s'")
    assert named(model(pins()).replace("<mass>", "<mas>1</mas><mass>"), "<mas> in <Body> a", "<mas> in <Body> b")
    law = '<ControllerSet><objects><PrescribedController name="pc"/></objects></ControllerSet>'
    assert named(model(pins()).replace("</Model>", f"{law}</Model>"), "controllers are left out: 'pc'")
    unit = "<length_units>millimeters</length_units></Model>"
    assert named(model(pins()).replace("</Model>", unit), "numbers are in metres", "'millimeters'")
    later = model(pins("<twist>1</twist>"), version=50000)
    assert named(later, "newer than 40600, the newest that is known: '50000'", "'<twist> in <Coordinate> qa'")


BAD = {
    "contradiction": (model(pins(held(0.1), held(0.5)), constraints=coupler("qb", "qa", LINE.format(2, 0.1))),
                      "'qb' is locked at 0.5, but those on which it depends are locked too and ask for 0.3"),
    "not linear": (model(pins("", held(0.5)), constraints=coupler("qb", "qa", CUBIC)),
                   "is locked, and its function is not linear"),
    "outside": (model(pins("<clamped>true</clamped><range>-1 1</range><default_value>2</default_value>")),
                "default_value 2.0 is outside its range -1.0 to 1.0"),
    "massless": (model(pins()).replace("<mass>3</mass>", ""), "<mass> is missing"),
    "ground": (model(joint("PinJoint", "p", "ground", "a", "q"), ["ground", "a"]), "'ground': this name is taken"),
    "nothing": (model(custom("k", "ground", "a", ["angle", "idle"], KNEE), "a", coupler("angle", "idle", LINE.format(1, 0))),
                "'idle' is a coordinate that moves nothing"),
    "closing": (four_bar("", constraints=coupler("qr", "qa", LINE.format(1, 0))),
                "'qr' is a coordinate of a joint that closes a loop"),
    "partly locked": (model(joint("PinJoint", "p", "ground", "a", "qa")
                            + joint("UniversalJoint", "u", "ground", "a", ("u1", held(0)), "u2"), "a"),
                      "with all of its coordinates locked or none"),
    "between versions": (OLD.replace("</BodySet>", '</BodySet><JointSet><objects><PinJoint name="z"/></objects></JointSet>'),
                         "joints are in bodies and in a JointSet too; open the model in OpenSim 4"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_what_contradicts_itself_is_refused(name):
    text, message = BAD[name]
    with pytest.raises(ModelError, match=message), warnings.catch_warnings(action="ignore"):
        parse_osim(text)


def test_an_inertia_without_a_mass_is_none_and_named():
    """As in OpenSim, where a hand of no mass, which a weld holds, adds nothing to the forearm."""
    hand = joint("WeldJoint", "w", "b", "c")
    weightless = model(pins(ANGLE) + hand, "abc").replace('"c"><mass>3', '"c"><mass>0')
    m, _ = read(weightless, match="bodies without a mass have no inertia, whatever the file gives: 'c'")
    bare, _ = read(model(pins(ANGLE)), match=None)
    state = [0.3, -0.4], [1.0, 0.5]
    assert pf.forward_dynamics(m, *state).v_dot == pytest.approx(pf.forward_dynamics(bare, *state).v_dot)
