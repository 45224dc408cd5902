"""OSIM files: the same machines made in Python, known accelerations of OpenSim, splines, and messages."""

import warnings

import numpy as np
import pytest

import pfaffian as pf
from pfaffian.errors import ModelError, ModelWarning
from pfaffian.formats import parse_osim
from pfaffian.formats.osim.osim_function import OsimFunction, spline
from tests.tolerance import PEER, close

ROUNDING = 1e-12
"""Relative tolerance of values that differ by rounding only."""

BODY = '<Body name="{}"><mass>3</mass><mass_center>0.1 -0.3 0.05</mass_center><inertia>0.2 0.1 0.25 0.01 0.02 -0.03</inertia>'
BODY += "</Body>"
INERTIA = (0.2, 0.1, 0.25, 0.01, 0.02, -0.03)
LINE = "<LinearFunction><coefficients>{} {}</coefficients></LinearFunction>"
KNOTS = ("-2 -1.5 -1 -0.5 0.1 0.4 0.9 1.6", "-0.3 0.2 0.1 0.4 -0.2 0.1 0.3 0.2")
SPLINE = "<SimmSpline><x>{}</x><y>{}</y></SimmSpline>".format(*KNOTS)
CUBIC = "<PolynomialFunction><coefficients>0.3 -0.2 0.1 0.05</coefficients></PolynomialFunction>"
POLYGON = "<PiecewiseLinearFunction><x>-1 0.5 2</x><y>0.2 0.5 -0.4</y></PiecewiseLinearFunction>"


def ends(parent, child):
    frames = ("/ground" if x == "ground" else f"/bodyset/{x}" for x in (parent, child))
    return "".join(f"<socket_{w}_frame>{f}</socket_{w}_frame>" for w, f in zip(("parent", "child"), frames, strict=True))


def joint(kind, name, parent, child, *coordinates, inside=""):
    given = "".join(f'<Coordinate name="{c}"/>' if isinstance(c, str) else f'<Coordinate name="{c[0]}">{c[1]}</Coordinate>'
                    for c in coordinates)  # fmt: skip
    return f'<{kind} name="{name}">{ends(parent, child)}<coordinates>{given}</coordinates>{inside}</{kind}>'


def custom(name, parent, child, coordinates, axes):
    """A CustomJoint.   axes: name -> (coordinates, axis, function)."""
    rows = "".join(
        f'<TransformAxis name="{n}"><coordinates>{c}</coordinates><axis>{a}</axis>{f}</TransformAxis>'
        for n, (c, a, f) in axes.items()
    )
    inside = f"<SpatialTransform>{rows}</SpatialTransform>"
    return joint("CustomJoint", name, parent, child, *coordinates, inside=inside)


def model(joints, bodies="ab", constraints="", forces="", version=40000):
    sets = {"BodySet": "".join(map(BODY.format, bodies)), "JointSet": joints, "ConstraintSet": constraints, "ForceSet": forces}
    inside = "".join(f"<{tag}><objects>{x}</objects></{tag}>" for tag, x in sets.items())
    return f'<OpenSimDocument Version="{version}"><Model name="m">{inside}</Model></OpenSimDocument>'


def read(text, match=None):
    if match is None:
        return parse_osim(text)
    with pytest.warns(ModelWarning, match=match):
        return parse_osim(text)


def standard(name):
    return pf.body(name, 3, (0.1, -0.3, 0.05), INERTIA)


UP = pf.pose(rotation=[[1, 0, 0], [0, 0, -1], [0, 1, 0]])


def accelerations(m, q, v, **rest):
    """Of a state on the constraints with these coordinates and speeds."""
    at = pf.assemble(m, q=q, v=v)
    return dict(zip(m.v_names, pf.forward_dynamics(m, at.q, at.v, **rest).v_dot, strict=True))


KNEE = {"rotation1": ("angle", "0 0 1", LINE.format(1, 0))}


@pytest.mark.parametrize(
    ("function", "speed", "wanted"),
    [(SPLINE, 0.0, -0.7659528654423793), (SPLINE, 2.0, -8.4811960691613), (CUBIC, 2.0, -7.8736543360099445),
     (f"<MultiplierFunction><function>{SPLINE}</function><scale>1.3</scale></MultiplierFunction>", 2.0, -8.788265317209367)],
)  # fmt: skip
def test_a_slide_by_a_function_accelerates_as_in_opensim(function, speed, wanted):
    """Numbers of OpenSim 4.6 at 0.25 rad."""
    knee = custom("knee", "ground", "a", ["angle"], KNEE | {"translation1": ("angle", "1 0 0", function)})
    m, _ = read(model(knee, "a"))
    assert m.q_names == ("knee translation1", "angle")
    close(accelerations(m, {"angle": 0.25}, {"angle": speed})["angle"], wanted, PEER, "angle")


def by_energy(m, q, v):
    """-(1/2 M' v^2 + V') / M of a machine with one degree of freedom, by differences of its energy along the constraint."""

    def at(x):
        s = pf.assemble(m, q={"angle": x}, v={"angle": 1.0})
        e = pf.energy(m, s.q, s.v)
        return float(2 * e.kinetic), float(e.potential)

    h = 1e-4
    (Mp, Vp), (M, _), (Mm, Vm) = (at(q + x) for x in (h, 0, -h))
    return -(0.5 * (Mp - Mm) * v**2 + Vp - Vm) / (2 * h) / M


def test_three_turns_by_functions_keep_the_energy():
    """OpenSim itself does not: findings/opensim-custom-joint-velocity-terms.sh."""
    axes = KNEE | {"rotation2": ("angle", "0 1 0", SPLINE), "rotation3": ("angle", "1 0 0", CUBIC)}
    m, _ = read(model(custom("knee", "ground", "a", ["angle"], axes), "a"))
    found = accelerations(m, {"angle": 0.25}, {"angle": 2.0})["angle"]
    assert found == pytest.approx(by_energy(m, 0.25, 2.0), rel=1e-5)  # differences of second order, with h^2 = 1e-8


def test_pins_slides_universal_and_planar_joints():
    """Beside the same machine in Python; the last joint is reached from its child."""
    offset = ('<frames><PhysicalOffsetFrame name="off"><socket_parent>/bodyset/a</socket_parent>'
              "<translation>0.1 0.2 0.3</translation><orientation>0.3 -0.4 0.5</orientation>"
              "</PhysicalOffsetFrame></frames>")  # fmt: skip
    parts = [
        joint("PlanarJoint", "p", "ground", "a", "turn", "x", "y"),
        joint("UniversalJoint", "u", "a", "b", "u1", "u2", inside=offset).replace("/bodyset/a<", "off<", 1),
        joint("PinJoint", "back", "c", "b", "pin"),
    ]
    m, _ = read(model("".join(parts), "abc"))
    place = pf.pose((0.1, 0.2, 0.3)) @ pf.pose(rpy=(0.3, 0, 0)) @ pf.pose(rpy=(0, -0.4, 0)) @ pf.pose(rpy=(0, 0, 0.5))
    between = [pf.body(n) for n in ("i", "k", "l")]
    ours = pf.mechanism("m", [*map(standard, "abc"), *between], [
        pf.joint("x", "prismatic", "world", "i", axis=(1, 0, 0), placement=UP),
        pf.joint("y", "prismatic", "i", "k", axis=(0, 1, 0)),
        pf.joint("turn", "revolute", "k", "a"),
        pf.joint("u1", "revolute", "a", "l", axis=(1, 0, 0), placement=place),
        pf.joint("u2", "revolute", "l", "b", axis=(0, 1, 0)),
        pf.joint("pin", "revolute", "b", "c", axis=(0, 0, -1)),
    ], gravity=(0, 0, -9.80665))  # fmt: skip
    assert m.q_names == ours.q_names
    random = np.random.default_rng(3)
    q, v = random.normal(size=(2, m.nv))
    close(pf.forward_dynamics(m, q, v).v_dot, pf.forward_dynamics(ours, q, v).v_dot, PEER, "accelerations")


def test_couplers_loops_springs_and_motors():
    """Two pins with q_b = 2 f(q_a), f a polygon, a spring and a motor on b; and a point of b held on a line."""
    pins = joint("PinJoint", "p", "ground", "a", "qa") + joint("PinJoint", "r", "a", "b", "qb")
    coupler = (f'<CoordinateCouplerConstraint name="c"><coupled_coordinates_function>{POLYGON}</coupled_coordinates_function>'
               "<independent_coordinate_names>qa</independent_coordinate_names><scale_factor>2</scale_factor>"
               "<dependent_coordinate_name>qb</dependent_coordinate_name></CoordinateCouplerConstraint>")  # fmt: skip
    forces = ('<SpringGeneralizedForce name="s"><coordinate>qb</coordinate><stiffness>4</stiffness>'
              "<rest_length>0.3</rest_length><viscosity>0.5</viscosity></SpringGeneralizedForce>"
              '<CoordinateActuator name="motor"><coordinate>qb</coordinate><optimal_force>7</optimal_force>'
              "<min_control>-1</min_control><max_control>Inf</max_control></CoordinateActuator>"
              '<Thelen2003Muscle name="biceps"/>')  # fmt: skip
    m, _ = read(model(pins, constraints=coupler, forces=forces), "muscles are left out: 'biceps'")
    assert m.u_names == ("motor",) and m.u_limits.tolist() == [[-1, np.inf]]
    slope = 2 * 0.3 / 1.5
    ours = pf.mechanism("m", [*map(standard, "ab")], [
        pf.joint("qa", "revolute", "world", "a", placement=UP),
        pf.joint("qb", "revolute", "a", "b", stiffness=4, rest=0.3, damping=0.5, mimic=pf.mimic({"qa": slope}, 0.4 + slope)),
    ], gravity=(0, 0, -9.80665), forces=[pf.wrench("w", "b", [0, 0, 0, 0, 0, 7 * 0.2], axes="LOCAL"),
                                         pf.wrench("-w", "a", [0, 0, 0, 0, 0, -7 * 0.2], axes="LOCAL")])  # fmt: skip
    found = accelerations(m, {"qa": 0.2}, {"qa": 1.5}, u=[0.2])
    assert m.value(m.gravity).ravel().tolist() == pytest.approx([0, 0, -9.80665])
    close(found["qa"], pf.forward_dynamics(ours, [0.2], [1.5]).v_dot[0], PEER, "qa")


def test_coordinates_that_no_axis_has():
    """beta is given by a coupler in proportion to the angle; pitch moves an axis by a third, and its motor with it."""
    third = LINE.format(1 / 3, 0.1)
    knee = custom("knee", "ground", "a", ["angle"], KNEE)
    cap = custom("cap", "a", "b", ["beta"], {"translation1": ("beta", "1 0 0", SPLINE)})
    neck = custom("neck", "b", "c", ["pitch"], {"rotation1": ("pitch", "0 0 1", third), "rotation2": ("pitch", "0 1 0", third)})
    coupler = (f'<CoordinateCouplerConstraint name="c"><coupled_coordinates_function>{LINE.format(-2, 0.4)}'
               "</coupled_coordinates_function><independent_coordinate_names>angle</independent_coordinate_names>"
               "<dependent_coordinate_name>beta</dependent_coordinate_name></CoordinateCouplerConstraint>")  # fmt: skip
    motor = '<CoordinateActuator name="u"><coordinate>pitch</coordinate><optimal_force>6</optimal_force></CoordinateActuator>'
    m, _ = read(model(knee + cap + neck, "abc", coupler, motor), "replaced by that of the axis: 'pitch .neck rotation1.'")
    assert m.v_names == ("angle", "cap translation1", "neck rotation1") and len(m.constraints) == 1
    at = pf.assemble(m, q={"angle": 0.3, "neck rotation1": 0.2})
    f = OsimFunction(of="beta", pieces=spline(*(np.array(x.split(), dtype=float) for x in KNOTS)))
    assert at.q[1] == pytest.approx(f.at({"beta": -2 * 0.3 + 0.4}), rel=ROUNDING)
    free = pf.forward_dynamics(m, at.q, at.v).v_dot
    pushed = pf.forward_dynamics(m, at.q, at.v, u=[1]).v_dot
    power = pf.mass_matrix(m, at.q) @ (pushed - free)
    assert power[2] == pytest.approx(6 * 3, rel=1e-9)  # N m on the pitch are three times as many on the axis


def test_a_coupler_of_a_coordinate_that_no_axis_has():
    """The axis moves by a third of pitch and 0.1, and pitch is f(angle) of a polygon: 0.2 + 0.2 (angle + 1) here."""
    knee = custom("knee", "ground", "a", ["angle"], KNEE)
    neck = custom("neck", "a", "b", ["pitch"], {"rotation1": ("pitch", "0 0 1", LINE.format(1 / 3, 0.1))})
    coupler = (f'<CoordinateCouplerConstraint name="c"><coupled_coordinates_function>{POLYGON}'
               "</coupled_coordinates_function><independent_coordinate_names>angle</independent_coordinate_names>"
               "<dependent_coordinate_name>pitch</dependent_coordinate_name></CoordinateCouplerConstraint>")  # fmt: skip
    m, _ = read(model(knee + neck, "ab", coupler), "replaced by that of the axis: 'pitch .neck rotation1.'")
    at = pf.assemble(m, q={"angle": 0.3})
    assert at.q[1] == pytest.approx((0.2 + 0.2 * 1.3) / 3 + 0.1, rel=ROUNDING)


@pytest.mark.parametrize(
    ("x", "y", "at", "wanted"),
    [  # by SimmSpline of OpenSim 4.6
        (KNOTS[0], KNOTS[1], (-2.5, -0.7, 0.25, 1.2, 2.2), None),
        ("0 1 2", "1 0 3", (-1, 0.5, 1.5, 3), (4, 0, 1, 8)),
        ("0 2", "1 5", (-1, 1, 3), (-1, 3, 7)),
    ],
)
def test_splines_go_through_their_points_and_on_straight(x, y, at, wanted):
    x, y = (np.array(word.split(), dtype=float) for word in (x, y))
    f = OsimFunction(of="q", pieces=spline(x, y))
    close(np.array([f.at({"q": t}) for t in x]), y, ROUNDING, "points")
    if wanted:
        close(np.array([f.at({"q": t}) for t in at]), np.array(wanted, dtype=float), ROUNDING, "values")
    for end, side in ((x[0], -1), (x[-1], 1)):
        one, two = (f.at({"q": end + side * t}) - f.at({"q": end}) for t in (0.5, 1.0))
        assert two == pytest.approx(2 * one, abs=1e-12)


def test_a_spline_through_points_of_a_cubic_is_the_cubic():
    cubic, x = np.poly1d([0.7, -1.2, 0.4, 0.1]), np.array([-1, -0.4, 0.3, 0.5, 1.4, 2.0])
    f = OsimFunction(of="q", pieces=spline(x, cubic(x)))
    t = np.linspace(-1, 2, 40)
    close(np.array([f.at({"q": s}) for s in t]), cubic(t), 1e-12, "values")


@pytest.mark.parametrize("a", [2.0, -0.5])
def test_functions_of_functions(a):
    f = OsimFunction(of="q", pieces=spline(*(np.array(x.split(), dtype=float) for x in KNOTS)))
    g = f.in_terms_of({"q": ("x", a, 0.3)})
    for t in np.linspace(-4, 4, 81):
        assert g.at({"x": t}) == pytest.approx(f.at({"q": a * t + 0.3}), abs=1e-12)


OLD = """<OpenSimDocument Version="30000"><Model name="m"><gravity>0 -9.81 0</gravity><BodySet><objects>
<Body name="ground"><mass>0</mass><Joint/></Body>
<Body name="a"><mass>3</mass><mass_center>0.1 -0.3 0.05</mass_center><inertia_xx>0.2</inertia_xx><inertia_yy>0.1</inertia_yy>
<inertia_zz>0.25</inertia_zz><inertia_xy>0.01</inertia_xy><inertia_xz>0.02</inertia_xz><inertia_yz>-0.03</inertia_yz><Joint>
<PinJoint name="p"><parent_body>ground</parent_body><location_in_parent>0.5 0 0</location_in_parent>
<orientation_in_parent>0 0.2 0</orientation_in_parent><location>0 0.1 0</location><orientation>0 0 0</orientation>
<CoordinateSet><objects><Coordinate name="q"><default_value>0.3</default_value><default_speed_value>2</default_speed_value>
<clamped>true</clamped><range>-1 1</range></Coordinate></objects></CoordinateSet></PinJoint></Joint></Body></objects></BodySet>
</Model></OpenSimDocument>"""


def test_files_of_version_3():
    m, settings = read(OLD)
    ours = pf.mechanism("m", [standard("a")], [
        pf.joint("q", "revolute", "world", "a", placement=UP @ pf.pose((0.5, 0, 0), rpy=(0, 0.2, 0)),
                 child_placement=(0, 0.1, 0)),
    ], gravity=(0, 0, -9.81))  # fmt: skip
    assert settings.guess == {"q": 0.3} and settings.v == {"q": 2} and m.q_limits.tolist() == [[-1, 1]]
    close(pf.forward_dynamics(m, [0.3], [2]).v_dot, pf.forward_dynamics(ours, [0.3], [2]).v_dot, PEER, "acceleration")


def test_locked_coordinates_and_loops():
    """A four-bar of three pins and a closing one, with a coordinate that is locked in a second chain."""
    pins = [
        joint("PinJoint", f"p{i}", *x, f"q{i}")
        for i, x in enumerate((("ground", "a"), ("a", "b"), ("ground", "c"), ("b", "c")))
    ]
    still = joint("PinJoint", "l", "c", "d", ("ql", "<locked>true</locked><default_value>0.4</default_value>"))
    m, _ = read(model("".join([*pins, still]), "abcd"), "joints close loops as constraints: 'p3'")
    assert sorted(m.v_names) == ["q0", "q1", "q2"] and [c.name for c in m.constraints] == ["p3"]
    turned = pf.forward_kinematics(m, [0.1, 0.2, 0.3])
    R = np.array(turned["c"].rotation).T @ np.array(turned["d"].rotation)
    assert R[0, 0] == pytest.approx(np.cos(0.4), rel=ROUNDING)


def test_the_motions_of_a_free_joint():
    """Three lengths along axes at right angles, and three angles; a coordinate clamped without a range has that of OpenSim."""
    names = ["rx", "ry", "rz", "tx", ("ty", "<clamped>true</clamped>"), ("tz", "<clamped>true</clamped><range>-1 2</range>")]
    m, _ = read(model(joint("FreeJoint", "f", "ground", "a", *names), "a"))
    at = [pf.forward_kinematics(m, {name: 1.0} if name else None)["a"] for name in ("", "tx", "ty", "tz", "rx", "ry", "rz")]
    moved = np.array([x.position - at[0].position for x in at[1:4]])
    close(moved @ moved.T, np.eye(3), ROUNDING, "translations")
    turned = [np.trace(at[0].rotation.T @ x.rotation) for x in at[4:]]
    close(np.array(turned), np.full(3, 1 + 2 * np.cos(1.0)), ROUNDING, "turns")
    limits = dict(zip(m.q_names, m.q_limits.tolist(), strict=True))
    assert [limits[n] for n in ("tx", "ty", "tz")] == [[-np.inf, np.inf], [-10, 10], [-1, 2]]


def test_yaml_keeps_the_functions(tmp_path):
    knee = custom("knee", "ground", "a", ["angle"], KNEE | {"translation1": ("angle", "1 0 0", SPLINE)})
    m, settings = read(model(knee, "a"))
    again, _ = pf.read(pf.write(m, tmp_path / "m.yaml", settings)[0])
    assert again == m


BAD = {
    "old": (OLD.replace("30000", "10905"), "version '10905' is not read; open the model in OpenSim 4 and save it"),
    "reversed": (OLD.replace("<location>", "<reverse>true</reverse><location>"), "joints that are reversed are not read"),
    "no model": ('<OpenSimDocument Version="40000"/>', "the file has no <Model>"),
    "kind": (model(joint("EllipsoidJoint", "e", "ground", "a", "q"), "a"), "'e': joints of this kind are not read"),
    "itself": (model(joint("PinJoint", "e", "a", "a", "q"), "a"), "it connects a body to itself; name two bodies"),
    "frame": (model(joint("PinJoint", "e", "ground", "z", "q"), "a"), "there is no frame '/bodyset/z'"),
    "function": (model(custom("k", "ground", "a", ["q"], {"rotation1": ("q", "0 0 1", "<GCVSpline/>")}), "a"),
                 "GCVSpline.*not read"),
    "coordinate": (
        model(custom("k", "ground", "a", ["q"], {"rotation1": ("w", "0 0 1", LINE.format(1, 0))}), "a"),
        "depends on 'w', which is none of its coordinates",
    ),
    "only splines": (
        model(custom("k", "ground", "a", ["q"], {"rotation1": ("q", "0 0 1", SPLINE)}), "a"),
        "no axis of its joint moves in proportion to this coordinate alone; give an axis a LinearFunction",
    ),
    "knots": (model(custom("k", "ground", "a", ["q"], {"translation1": ("q", "1 0 0", SPLINE.replace("-1.5", "-3"))}), "a"),
              "x that increase"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_what_is_wrong_is_named(name):
    text, message = BAD[name]
    with pytest.raises(ModelError, match=message), warnings.catch_warnings(action="ignore"):
        parse_osim(text)


def test_axes_that_move_by_multiples_of_a_coordinate_follow_the_first_of_them():
    """n = 3 x + .2 slides; the turn by 2 x + .1 is 2 / 3 n - .1 / 3."""
    axes = {"rotation1": ("x", "0 0 1", LINE.format(2, 0.1)), "translation1": ("x", "1 0 0", LINE.format(3, 0.2))}
    words = "coordinates of which an axis moves by a multiple are replaced by that of the axis: 'x"
    m = read(model(custom("g", "ground", "a", ["x"], axes), bodies="a"), match=words)[0]
    law = m.joint("g rotation1").mimic
    assert law.joints == ("g translation1",)
    close(np.r_[m.value(law.ratios).ravel(), m.value(law.offset).ravel()], [2 / 3, -0.1 / 3], ROUNDING, "law")


@pytest.mark.parametrize("ratio", [1, -1])
def test_an_axis_may_turn_against_its_coordinate(ratio):
    """Which is .3, so that the body's x is at the angle .3 ratio + .1 about y of the file, which is up."""
    m = read(model(custom("g", "ground", "a", ["x"], {"rotation1": ("x", "0 1 0", LINE.format(ratio, 0.1))}), bodies="a"))[0]
    angle = 0.3 * ratio + 0.1
    ahead = pf.forward_kinematics(m, {"x": 0.3})["a"].rotation[:, 0]
    close(ahead, [np.cos(angle), np.sin(angle), 0], ROUNDING, "x of the body")
