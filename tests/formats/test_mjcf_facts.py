"""Every element and attribute that MuJoCo's schema has is read, refused, named or harmless, as tests/data/mjcf_facts.csv says.

Each row gives the answer and, for an attribute, a value other than its default. A small model that has this value is read:

read        what MuJoCo computes changes alike, or the data of the mechanism that MuJoCo enforces otherwise, such as limits
refused     a ModelError, unless the row gives no value, since MuJoCo refuses the attribute there as well
named       a warning tells more than for the model without it
harmless    mechanism, start and warnings are the same

An element with the attribute "*" answers for all its attributes and for the elements within it.
"""

from __future__ import annotations

import csv
import warnings
from pathlib import Path
from xml.etree import ElementTree

import mujoco
import numpy as np
import pytest

import pfaffian as pf
from pfaffian.errors import ModelError, ModelWarning
from tests.formats.test_mjcf import ours, state_of
from tests.tolerance import PEER, close
from tools.schema_names import mjcf as names
from tools.schema_names import unanswered

TABLE = Path(__file__).parents[1] / "data" / "mjcf_facts.csv"
ROWS = {(r["element"], r["attribute"]): r for r in csv.DictReader(TABLE.read_text().splitlines())}
ANSWERS = ("read", "refused", "named", "harmless")

MODEL = """<mujoco model="m"><compiler angle="radian"/><option gravity="1 -2 -9"><flag contact="disable"/></option>
<default><default class="zz"><joint armature="0.3"/><geom density="300"/><site rgba="1 0 0 1"/><tendon springlength="0.4"/>
 <mesh scale="2 1 1"/><equality active="false"/><general gear="3"/></default></default>
<asset><mesh name="solid" vertex="0 0 0 1 0 0 0 1 0 0 0 1" face="0 2 1 0 1 3 0 3 2 1 2 3"/></asset>
<worldbody><site name="w" pos="0.4 0.3 1"/>
<body name="a" pos="0.1 0.2 0.3"><inertial pos="0.1 0.02 -0.05" mass="1.3" diaginertia="0.05 0.06 0.04"/>
 <joint name="h" axis="0 1 0" damping="0.1" stiffness="0.2" range="-2 2"/><site name="p" pos="0.1 0 0.2"/>
 <geom name="ga" size="0.1" mass="1" contype="0" group="3"/>
 <body name="still" pos="0 0 0.1"><geom name="gs" size="0.05" mass="0.3" contype="0"/></body>
 <body name="c" pos="0 0.3 0.2" gravcomp="0.1"><joint name="s" type="slide" axis="1 0 0" range="-2 2"/>
  <geom name="g" type="box" size="0.1 0.2 0.3" pos="0.1 0 0"/><site name="r" pos="0.1 0 0"/></body></body>
<body name="f"><freejoint name="fr"/><geom name="ball" size="0.1" mass="2" pos="0.1 0 0"/><site name="e" pos="0 0 0.1"/></body>
<body name="d" pos="1 0 0" euler="0.1 0.2 0"><joint name="b" type="ball"/>
 <geom name="k" type="mesh" mesh="solid" mass="1" pos="0 0 0.2" contype="0"/></body></worldbody>
<tendon><fixed name="t" stiffness="0.3" damping="0.1"><joint joint="h" coef="1"/><joint joint="s" coef="-0.5"/></fixed>
 <spatial name="u" stiffness="0.4"><site site="w"/><site site="r"/><pulley divisor="2"/><site site="w"/><site site="e"/>
 </spatial></tendon>
<equality><connect name="e1" body1="c" anchor="0 0 0"/><weld name="e2" body1="c"/><joint name="e3" joint1="h" joint2="s"/>
 <tendon name="e4" tendon1="t"/></equality>
<actuator><general name="a0" joint="h" biastype="affine" biasprm="0.1 -0.3 -0.2"/>
 <motor name="a1" joint="h" ctrlrange="-3 3"/><position name="a2" joint="s" kp="2"/><velocity name="a3" joint="h" kv="0.4"/>
 <intvelocity name="a4" joint="s" kp="3"/><motor name="a5" tendon="t"/></actuator>
<keyframe><key name="home"/></keyframe></mujoco>"""
"""A model with one of each element that rows set an attribute of."""

AT = {"body": "worldbody/body", "body/geom": ".//geom[@name='g']", "body/site": ".//site[@name='r']"}
"""Element of a row -> its place in the model, if that is not the path or the first one within a body."""


def place(path: str) -> str:
    return AT.get(path, path.replace("body/", "worldbody//") if path.startswith("body/") else path)


def changed(path: str, attribute: str, value: str) -> str:
    root = ElementTree.fromstring(MODEL)
    element = root if path == "" else root.find(place(path))
    assert element is not None, path
    for pair in value.split(";"):  # further attributes that this one needs
        name, _, word = pair.partition("=") if "=" in pair else (attribute, "", pair)
        if word == "none":
            element.attrib.pop(name, None)
        else:
            element.set(name, word)
    return ElementTree.tostring(root, encoding="unicode")


def read(text: str):
    with warnings.catch_warnings(record=True, action="always") as caught:
        keys = {"keyframe": 0} if "<key " in text else {}
        m, settings = pf.formats.parse_mjcf(text, **keys)
    return m, settings, "; ".join(str(w.message) for w in caught if w.category is ModelWarning)


BASE = read(MODEL)
STATE = np.random.default_rng(7)
Q, V, U = pf.random_configuration(BASE[0], STATE), STATE.normal(size=BASE[0].nv), STATE.normal(size=BASE[0].nu)


def accelerations(m):
    """Without the equality constraints, and without friction, which the reader smooths."""
    loose = m.with_(constraints=[], forces=[f for f in m.forces if not f.name.endswith(" friction")])
    at = pf.compile_terms(loose, {"v_dot": lambda T: pf.FORMULATIONS["gauss"](T).v_dot}, backend="interpreter", lanes=1)
    return np.ravel(at(Q, V, U[: m.nu])["v_dot"])


def by_mujoco(text: str, m):
    model = mujoco.MjModel.from_xml_string(text)
    off = mujoco.mjtDisableBit
    model.opt.disableflags |= int(off.mjDSBL_EQUALITY | off.mjDSBL_LIMIT | off.mjDSBL_FRICTIONLOSS | off.mjDSBL_CONTACT)
    model.opt.disableflags |= int(off.mjDSBL_CLAMPCTRL)
    data = mujoco.MjData(model)
    data.qpos, data.qvel, turns = state_of(model, Q, V)
    for name, u in zip(m.u_names, U, strict=False):
        i = model.actuator(name).id
        model.actuator_forcelimited[i] = False
        if model.actuator_dyntype[i] == 0:
            data.ctrl[model.actuator_ctrladr[i]] = u
        else:
            data.act[model.actuator_actadr[i]] = u
    model.jnt_actfrclimited[:] = False
    mujoco.mj_forward(model, data)
    return ours(data.qacc, data.qvel, turns)


def answer(text: str) -> tuple[str, pf.Mechanism | None]:
    """What the reader does with a text, beside the model as it is, and the mechanism."""
    try:
        m, settings, told = read(text)
    except ModelError:
        return "refused", None
    if set(filter(None, told.split("; "))) - set(BASE[2].split("; ")):
        return "named", m
    return "harmless" if (m, settings) == BASE[:2] else "read", m


def test_every_name_of_the_schema_has_an_answer():
    version, rows = names()
    missing = [row for row in unanswered("mjcf", rows) if row[1]]
    assert not missing, f"{version}: {len(missing)} names without an answer, such as {missing[:5]}"
    assert {r["answer"] for r in ROWS.values()} <= set(ANSWERS)


def test_no_row_is_superfluous():
    known = set(names()[1])
    assert not [row for row in ROWS if row not in known and (row[0], "") not in known]


OFF_TREE = ("tendon/spatial", "armature")
"""MuJoCo leaves out the inertia that a tendon's armature couples between separate trees."""

SET = [(*key, r["value"], r["answer"]) for key, r in ROWS.items() if r["value"]]


STILL = by_mujoco(MODEL, BASE[0])


@pytest.mark.parametrize(("path", "attribute", "value", "wanted"), SET, ids=[f"{p}-{a}" for p, a, *_ in SET])
def test_each_attribute_does_what_the_table_says_and_moves_as_in_mujoco(path, attribute, value, wanted):
    text = changed(path, attribute, value)
    found, m = answer(text)
    assert found == wanted
    if wanted not in ("read", "harmless") or (path, attribute) == OFF_TREE:
        return
    if (m.q_names, m.v_names) == (BASE[0].q_names, BASE[0].v_names):
        moved = by_mujoco(text, m)
        if wanted == "harmless":
            close(moved, STILL, PEER, "MuJoCo's accelerations")
        elif np.abs(moved - STILL).max() > PEER * np.abs(STILL).max():
            close(accelerations(m), moved, PEER, "accelerations")


def test_the_model_itself_moves_as_in_mujoco():
    close(accelerations(BASE[0]), STILL, PEER, "accelerations")
