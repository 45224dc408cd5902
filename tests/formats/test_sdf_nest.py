"""Nested and included models of SDF, compared with the same machine in one flat model whose poses NumPy computes."""

from __future__ import annotations

import math

import numpy as np
import pytest

import pfaffian as pf
from pfaffian.errors import ModelError
from pfaffian.formats.sdf import sdf_nest
from tests.formats.test_sdf import joint, link, read, sdf
from tests.tolerance import PEER, SATISFIED, close


def X(text):
    """The (4, 4) matrix of a pose of six numbers: position, then roll about x, pitch about y and yaw about z."""
    *p, r, b, y = map(float, text.split())
    turns = []
    for angle, axis in ((r, 0), (b, 1), (y, 2)):
        i, j = [k for k in range(3) if k != axis]
        R, s = np.eye(3), math.sin(angle) * (-1 if axis == 1 else 1)
        R[i, i] = R[j, j] = math.cos(angle)
        R[i, j], R[j, i] = -s, s
        turns.append(R)
    found = np.eye(4)
    found[:3, :3], found[:3, 3] = turns[2] @ turns[1] @ turns[0], p
    return found


def numbers(M):
    """The six numbers of a (4, 4) pose matrix, as the text of a <pose>."""
    R = M[:3, :3]
    turn = math.atan2(R[2, 1], R[2, 2]), math.asin(-R[2, 0]), math.atan2(R[1, 0], R[0, 0])
    return " ".join(repr(float(x)) for x in (*M[:3, 3], *turn))


def pose(text, relative=""):
    return f'<pose relative_to="{relative}">{text}</pose>' if relative else f"<pose>{text}</pose>"


ARM, HAND, PALM, TIP, JOINT, MARK = (
    "0.1 0.2 0.3 0.4 -0.2 0.6", "0 0.5 0.1 -0.3 0.2 0.1", "0.05 0 0.1 0.1 0.7 0", "0.2 0 0 0 0 0.5", "0 0.03 0 0.2 0 0",
    "0.3 -0.1 0 0 0.4 0",
)  # fmt: skip
FINGER = "<axis><xyz expressed_in='__model__'>0 1 0</xyz><dynamics><damping>0.3</damping></dynamics></axis>"
FOLLOWER = "<axis><xyz>0 0 1</xyz><mimic joint='bend'><multiplier>-2</multiplier></mimic></axis>"


def hand(name="hand", at="", **words):
    """A model of a palm with a finger that bends, a thumb that follows it, and a frame `mark` on the palm."""
    given = "".join(f' {k}="{v}"' for k, v in words.items())
    bend = joint("bend", "revolute", "palm", "tip", pose(JOINT) + FINGER)
    return (
        f'<model name="{name}"{given}>{at or pose(HAND)}{link("palm", pose(PALM))}{link("tip", pose(TIP, "palm"))}'
        f'<frame name="rest">{pose(JOINT)}</frame>{link("thumb", pose("0 0 0 0 0 0", "rest"))}'
        f'<frame name="mark" attached_to="palm">{pose(MARK)}</frame>{bend}'
        f"{joint('follow', 'revolute', 'palm', 'thumb', FOLLOWER)}</model>"
    )


def flat(frame, names="arm::hand::{}", extra=()):
    """Links and joints of a hand with the pose `frame` in the model, written without nesting."""
    n, tip = names.format, frame @ X(PALM) @ X(TIP)
    towards = (tip @ X(JOINT))[:3, :3].T @ frame[:3, :3] @ [0, 1, 0]
    return (
        link(n("palm"), pose(numbers(frame @ X(PALM)))),
        link(n("tip"), pose(numbers(tip))),
        link(n("thumb"), pose(numbers(frame @ X(JOINT)))),
        joint(n("bend"), "revolute", n("palm"), n("tip"), pose(JOINT) + FINGER.replace(
            "<xyz expressed_in='__model__'>0 1 0", f"<xyz>{' '.join(map(repr, map(float, towards)))}")),
        joint(n("follow"), "revolute", n("palm"), n("thumb"), FOLLOWER.replace("bend", n("bend"))),
        *extra,
    )  # fmt: skip


def alike(one, other, **options):
    """Compare names, poses and accelerations of the machines in two texts."""
    (m, settings, _), (twin, *_) = (read(x, base="fixed", **options) for x in (one, other))
    assert (m.q_names, m.v_names, [b.name for b in m.bodies]) == (twin.q_names, twin.v_names, [b.name for b in twin.bodies])
    q, v = np.linspace(0.2, 0.9, m.nq), np.linspace(-1, 2, m.nv)
    for x in (settings.arrays(m).q, q):
        places, others = pf.forward_kinematics(m, x), pf.forward_kinematics(twin, x)
        for b in m.bodies:
            close(places[b.name].position, others[b.name].position, SATISFIED, b.name, 1.0)
            close(places[b.name].rotation, others[b.name].rotation, SATISFIED, b.name, 1.0)
    a, b = (pf.forward_dynamics(x, q, v).v_dot for x in (m, twin))
    close(a, b, PEER, "accelerations")
    return m


SHOULDER = joint("shoulder", "revolute", "world", "arm::upper", "<axis><xyz>0 1 0</xyz></axis>")
WRIST = joint("wrist", "revolute", "arm::upper", "arm::hand", "<pose>0.1 0 0 0 0 0</pose><axis><xyz>1 0 0</xyz></axis>")


def test_a_nested_model_is_equal_to_a_flat_one():
    """Two levels of nesting. A joint to the frame of a nested model is a joint to its canonical link."""
    arm = f'<model name="arm">{pose(ARM)}{link("upper", pose(TIP))}{hand(canonical_link="tip")}</model>'
    wrist = WRIST.replace("arm::hand<", "arm::hand::tip<").replace(
        "<pose>0.1 0 0 0 0 0</pose>", pose(numbers(np.linalg.inv(X(PALM) @ X(TIP)) @ X("0.1 0 0 0 0 0")))
    )  # fmt: skip
    here = X(ARM) @ X(HAND)
    other = sdf(link("arm::upper", pose(numbers(X(ARM) @ X(TIP)))), *flat(here), SHOULDER, wrist)
    m = alike(sdf(arm, SHOULDER, WRIST), other)
    assert m.q_names == ("shoulder", "arm::hand::bend") and m.joint("arm::hand::follow").mimic
    assert [(c.name, c.body_a, c.body_b) for c in m.constraints] == [("wrist", "arm::upper", "arm::hand::tip")]


@pytest.mark.parametrize("relative", ["", "arm::upper", "arm", "arm::__model__"])
def test_placement_frame_and_relative_to(relative):
    """With placement_frame, the pose of a model is that of this frame and not that of the model frame."""
    arm = f'<model name="arm">{pose(ARM)}{link("upper", pose(TIP))}</model>'
    base = {"": np.eye(4), "arm::upper": X(ARM) @ X(TIP)}.get(relative, X(ARM))
    here = base @ X(HAND) @ np.linalg.inv(X(PALM) @ X(MARK))
    text = sdf(arm, hand(at=pose(HAND, relative), placement_frame="mark"), joint("j", "fixed", "arm::upper", "hand::palm", ""))
    other = sdf(link("arm::upper", pose(numbers(X(ARM) @ X(TIP)))), *flat(here, "hand::{}"),
                joint("j", "fixed", "arm::upper", "hand::palm", ""))  # fmt: skip
    alike(text, other)
    whole = hand("m", placement_frame="mark")
    alike(f'<sdf version="1.9">{whole}</sdf>', sdf(*flat(X(HAND) @ np.linalg.inv(X(PALM) @ X(MARK)), "{}")))


CONFIG = "<model><name>hand</name><sdf version='1.4'>old.sdf</sdf><sdf version='1.9'>hand.sdf</sdf></model>"


@pytest.fixture
def shelf(tmp_path):
    """A folder with a model `hand` in a subfolder, with its model.config, and a file of SDF 1.4."""
    (tmp_path / "hand").mkdir()
    (tmp_path / "hand" / "hand.sdf").write_text(f'<sdf version="1.9">{hand(at=pose("9 9 9 0 0 0"))}</sdf>')
    (tmp_path / "hand" / "model.config").write_text(CONFIG)
    old = joint("j", "prismatic", "box", "lid", "<axis><xyz>1 0 0</xyz></axis>")
    old = f'<model name="case">{link("box")}{link("lid", "<pose>0 0 0 0 0 1.2</pose>")}{old}</model>'
    (tmp_path / "case.sdf").write_text(f'<sdf version="1.4">{old}</sdf>')
    return tmp_path


def include(uri, inside="", **given):
    words = "".join(f' {k}="{v}"' for k, v in given.items())
    return f"<include{words}><uri>{uri}</uri>{inside}</include>"


GRIP = joint("grip", "fixed", "upper", "left::palm", "")


@pytest.mark.parametrize(
    "uri", ["model://hand", "hand", "model://hand/hand.sdf", "hand/hand.sdf", "file://hand", "package://hand"]
)
def test_an_included_model_gets_its_name_and_place(shelf, uri):
    text = sdf(link("upper"), include(uri, f"<name>left</name>{pose(HAND)}"), GRIP)
    alike(text, sdf(link("upper"), *flat(X(HAND), "left::{}"), GRIP), folder=shelf)


def test_one_file_may_be_included_twice_and_merged(shelf):
    """A merged model keeps its names; the other copy has a prefix. An <include> may give the placement frame."""
    marked = f"{pose(HAND)}<placement_frame>mark</placement_frame>"
    text = sdf(link("upper"), include("hand", pose(HAND), merge="true"), include("hand", f"<name>b</name>{marked}"),
               joint("a", "fixed", "upper", "palm", ""), joint("c", "fixed", "palm", "b::palm", ""))  # fmt: skip
    here = X(HAND) @ np.linalg.inv(X(PALM) @ X(MARK))
    other = sdf(link("upper"), *flat(X(HAND), "{}"), *flat(here, "b::{}"), joint("a", "fixed", "upper", "palm", ""),
                joint("c", "fixed", "palm", "b::palm", ""))  # fmt: skip
    alike(text, other, folder=shelf)


def test_an_included_file_keeps_the_rules_of_its_version(shelf):
    """Before SDF 1.5 an axis was expressed in the frame of the model, which is rotated by 0.5 rad here."""
    m, settings, _ = read(sdf(include("case.sdf", pose("0 0 0 0 0 0.5"))), folder=shelf, base="fixed")
    q = settings.arrays(m).q
    moved = pf.forward_kinematics(m, q + 1)["case::lid"].position - pf.forward_kinematics(m, q)["case::lid"].position
    close(np.ravel(moved), (math.cos(0.5), math.sin(0.5), 0), SATISFIED, "direction", 1.0)


def test_a_world_of_one_included_model_is_that_model(shelf):
    (shelf / "world.sdf").write_text(
        f'<sdf version="1.9"><world name="w"><gravity>0 0 -1</gravity>{include("hand", pose(HAND))}</world></sdf>'
    )
    m, settings = pf.read(shelf / "world.sdf", base="fixed")
    assert m.q_names == ("bend",) and m.value(m.gravity).ravel().tolist() == [0, 0, -1]
    at = pf.forward_kinematics(m, settings.arrays(m).q)["palm"]
    close(np.ravel(at.position), (X(HAND) @ X(PALM))[:3, 3], SATISFIED, "place", 1.0)
    two = f"{include('model://sun')}{include('hand')}"
    (shelf / "world.sdf").write_text(f'<sdf version="1.9"><world name="w">{two}</world></sdf>')
    assert pf.read(shelf / "world.sdf", model="hand")[0].q_names[-1] == "bend"
    with pytest.raises(ModelError, match="there are 2 models: 'sun', 'hand'; pass model=name"):
        pf.read(shelf / "world.sdf")


# -- refusals ---------------------------------------------------------------------------------------------------------

DEEP = "".join(f'<model name="m{i}">' for i in range(20)) + link("a") + "</model>" * 20
WRONG = {
    "not there": (include("model://foot"), r"'model://foot' is not below this file's folder; pass meshes="),
    "above": (include("../hand"), "is not a path below this file's folder"),
    "above in a uri": (include("model://hand/../../x"), "is not a path below this file's folder"),
    "elsewhere": (include("file:///etc/hostname"), "is not below this file's folder"),
    "from the net": (include("https://fuel.gazebosim.org/hand"), "is not a path below this file's folder; put the model there"),
    "no uri": ("<include><name>a</name></include>", "<uri> '' is not a path"),
    "no sdf": (include("robot.sdf"), "'robot.sdf' must have one <model> in its <sdf>, but has 0"),
    "another key": (include("hand", "<experimental:params/>"), r"not supported in an <include>; use only uri, name, pose"),
    "static": (include("hand", "<static>true</static>"), "the model is static"),
    "itself": (include("itself.sdf"), "nested more than 16 deep"),
    "many": (include("many.sdf"), "more than 100 models are included"),
    "deep": (DEEP, "nested more than 16 deep"),
    "a name twice": (include("hand") * 2, "a <frame> of this name is on line"),
    "a link of its name": (link("hand") + include("hand"), "a <link> of this name"),
    "empty": ('<model name="a"/>' + link("b"), "the model has no <link>"),
    "no name": ("<model><link name='a'/></model>", "the attribute 'name' is missing"),
    "an unknown placement frame": (hand(placement_frame="f"), "no link, joint or frame 'hand::f'"),
    "names from outside": (link("a") + f'<model name="b">{link("c", pose("0 0 0 0 0 0", "a"))}</model>', "frame 'b::a'"),
}


@pytest.mark.parametrize(("parts", "words"), WRONG.values(), ids=WRONG)
def test_wrong_includes_are_refused_with_the_reason(shelf, parts, words):
    (shelf / "robot.sdf").write_text("<robot/>")
    (shelf / "itself.sdf").write_text(sdf(link("a"), include("itself.sdf")))
    (shelf / "many.sdf").write_text(sdf(link("a"), *(include("case.sdf", f"<name>n{i}</name>") for i in range(120))))
    with pytest.raises(ModelError, match=words):
        read(sdf(parts, joint("j", "revolute", "world", "hand::palm")), folder=shelf)


def test_included_models_are_limited_in_total_size(shelf, monkeypatch):
    monkeypatch.setattr(sdf_nest, "MAX_ELEMENTS", 100)
    one, two = (include("hand", f"<name>{n}</name>") for n in "ab")
    assert read(sdf(one, link("base")), folder=shelf)
    with pytest.raises(ModelError, match="have more than 100 elements; split them"):
        read(sdf(one, two), folder=shelf)


def test_an_included_file_must_not_be_outside_by_a_link(shelf, tmp_path_factory):
    outside = tmp_path_factory.mktemp("outside")
    (outside / "model.sdf").write_text(sdf(link("a")))
    (shelf / "linked").symlink_to(outside)
    (shelf / "case").mkdir()
    (shelf / "case" / "model.config").write_text("<model><sdf>../../outside/model.sdf</sdf></model>")
    for uri in ("model://linked", "model://linked/model.sdf", "model://case"):
        with pytest.raises(ModelError, match="is not below this file's folder"):
            read(sdf(include(uri)), folder=shelf)
    assert read(sdf(include("model.sdf")), folder=shelf, meshes=[outside])[0].bodies[0].name == "m::a"
    with pytest.raises(ModelError, match="is not below this file's folder"):
        read(sdf(include("hand")))
