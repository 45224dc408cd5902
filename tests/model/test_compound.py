"""Compounds: several forces or constraints that a mechanism takes, writes and finds again as one."""

import pickle
from dataclasses import dataclass, replace

import numpy as np
import pytest

import pfaffian as pf
from pfaffian.formats import parse_yaml
from pfaffian.model.force import Potential
from pfaffian.parts.contact import compliant_parts, stopped
from pfaffian.terms.equations_digest import digest
from pfaffian.viewer.build import scene
from pfaffian.viewer.describe import describe
from pfaffian.viewer.scene import state_of
from tests.tolerance import ALGEBRA, close

K = pf.Parameter("k", 900.0, "N/m")
SOFT = {"stiffness": K, "damping": 0.4}


def sled(forces=(), constraints=(), **given):
    """A sled that falls freely, with a weight on a rail of limited length."""
    bodies = [pf.body("sled", 3.0, inertia=(0.2, 0.3, 0.4)), pf.body("weight", 0.5, inertia=0.01)]
    joints = [
        pf.joint("flight", "free", "world", "sled"),
        pf.joint("rail", "prismatic", "sled", "weight", axis=(1, 0, 0), limits=(-0.2, 0.3)),
    ]
    return pf.mechanism("sled", bodies, joints, forces=forces, constraints=constraints, parameters=[K], **given)


def runners():
    return pf.forces.contact("runners", "sled", shape_a=pf.shape("box", size=(0.4, 0.2, 0.1)), friction=0.2, **SOFT)


def wheel(**given):
    return pf.rolling.disk("roller", "sled", 0.2, axis=(0, 1, 0), centre=(0.1, 0, 0), **given)


def test_a_mechanism_keeps_the_whole_and_its_equations_contain_the_parts():
    touch, ends = runners(), pf.forces.stops(sled().joints, **SOFT)
    m = sled([touch, *ends], [wheel()])
    assert m.forces == (touch, *ends) and [c.name for c in m.compounds] == ["roller", "runners", "rail stop"]
    assert [f.name for f in m.all_forces] == ["runners press", "runners loss", "rail stop press", "rail stop loss"]
    parts = sled([f for c in m.forces for f in c.parts], wheel().parts)
    q, v = np.r_[0, 0, 0.19, 0.02, 0.01, 0, 1, 0.32], np.linspace(-1, 1, 7)
    whole, single = (pf.forward_dynamics(x, q, v) for x in (m, parts))
    assert whole.v_dot.tobytes() == single.v_dot.tobytes() and whole.reaction.tobytes() == single.reaction.tobytes()
    assert pickle.loads(pickle.dumps(m)) == m != parts
    kept = m.with_(forces=[*m.forces, pf.wrench("push", "weight")])
    assert kept.compounds == m.compounds and kept.with_(forces=[]).compounds == (wheel(),)


def test_contacts_and_stops_are_known_by_their_record_alone():
    """Neither the names of parts nor their classes count, also where functions are replaced by their traces."""
    touch = runners()
    renamed = replace(touch, name="keel", parts=tuple(replace(x, name=n) for x, n in zip(touch.parts, "ab", strict=True)))
    bare = pf.Compound("bare", tuple(replace(x, name=f"bare {x.name}") for x in touch.parts))
    m = sled([renamed, bare, *pf.forces.stops(sled().joints, **SOFT)])
    for x in (m, pf.symbols(m).mechanism):
        assert list(compliant_parts(x)) == ["keel", "rail stop"] and stopped(x) == {"rail"}
    assert digest(m) == digest(sled(m.forces)) != digest(sled([replace(renamed, of=None), *m.forces[1:]]))


def test_a_user_writes_a_compound():
    def strut(name, stiffness, damping):
        spring = pf.forces.potential(f"{name} spring", lambda k: stiffness * k.joint("rail") ** 2 / 2)
        damper = pf.forces.dissipation(f"{name} damper", lambda k: damping * k.joint_rate("rail") ** 2 / 2)
        return pf.Compound(name, (spring, damper))

    one, plain = strut("one", 40.0, 3.0), sled()
    rail = pf.joint("rail", "prismatic", "sled", "weight", axis=(1, 0, 0), stiffness=40.0, damping=3.0)
    twin = plain.with_(joints=[plain.joints[0], rail])
    state = np.r_[0, 0, 0, 0, 0, 0, 1, 0.1], np.r_[np.zeros(6), 0.7]
    close(pf.forward_dynamics(sled([one]), *state).v_dot, pf.forward_dynamics(twin, *state).v_dot, ALGEBRA, "accelerations")
    assert repr(one) == "<Compound 'one': one spring, one damper>"
    assert repr(runners()) == "<Compound 'runners': Contact, runners press, runners loss>"


FACTOR = [1.0]
"""A number that a function reads, and that is changed."""


@dataclass(frozen=True)
class Pair:
    """A record of a user, with things that no key knows."""

    notes: tuple
    function: object = max


def test_a_function_in_a_compound_is_identified_by_what_it_returns_now():
    pull = pf.forces.potential("pull", lambda k: FACTOR[0] * k.joint("rail") ** 2)
    m = sled([pf.Compound("both", (pull, pf.forces.dissipation("drag", lambda k: k.joint_rate("rail") ** 2)), Pair((1,)))])
    state = np.r_[0, 0, 0, 0, 0, 0, 1, 0.1], np.zeros(7)
    try:
        found = []
        for FACTOR[0] in (1.0, 3.0, 1.0):
            found.append((digest(m), float(pf.forward_dynamics(m, *state).v_dot[6])))
    finally:
        FACTOR[0] = 1.0
    assert found[0] == found[2] and found[0][0] != found[1][0] and found[1][1] == pytest.approx(3 * found[0][1], rel=ALGEBRA)


def test_a_plane_that_turns_by_a_function_of_time_is_in_the_digest():
    turning = [wheel(plane=pf.rolling.plane(rate=lambda t, s=s: s * t)) for s in (1.0, 1.0, 2.0)]
    keys = [digest(sled(constraints=[c])) for c in turning]
    assert keys[0] == keys[1] != keys[2]


def test_a_condition_applies_to_all_parts():
    late = pf.constraints.active_while(wheel(), lambda k: k.t > 1)
    m = sled(constraints=[late])
    q = [0, 0, 0.2, 0, 0, 0, 1, 0]
    assert [int(pf.forward_dynamics(m, q, t=t).rank) for t in (0.0, 2.0)] == [0, 3]


ROLLER = "{kind: rolling-disk, body: sled, radius: 0.2, axis: [0, 1, 0], centre: [0.1, 0, 0]}"


def test_a_file_has_one_entry_for_a_record_and_one_for_each_part_without(tmp_path):
    by_hand = pf.Compound("pair", (pf.spring("pair a", "world", "sled", stiffness=K), pf.spring("pair b", "world", "weight")))
    m = sled([runners(), by_hand], [wheel(plane=pf.rolling.plane(normal=(0, 1, 4), rate=0.3))])
    pf.write(m, tmp_path / "sled.yaml")
    again, _ = pf.read(tmp_path / "sled.yaml")
    assert [f.name for f in again.forces] == ["runners", "pair a", "pair b"] and again.constraints == m.constraints
    assert again.forces[0] == m.forces[0] and again.all_forces == m.all_forces
    text = (tmp_path / "sled.yaml").read_text()
    assert "kind: contact" in text and "exponent" not in text, "defaults are left out"


TWICE = {
    "two wholes": (lambda: sled([runners(), runners()]), "forces: the name 'runners' is used 2 times"),
    "a whole and a part": (lambda: sled([runners(), pf.wrench("runners loss", "sled")]), "'runners loss' is used 2 times"),
    "a whole and a single": (lambda: sled([runners(), pf.wrench("runners", "sled")]), "'runners' is used 2 times"),
    "a constraint among forces": (lambda: sled([wheel()]), r"forces: .*this item belongs in constraints=\[...\]"),
    "mixed": (
        lambda: sled([pf.Compound("x", (*wheel().parts, *runners().parts))]), "forces: .*does not belong here; make each"),
    "no parts": (lambda: pf.Compound("x", ()), "compound 'x': a tuple of forces or of constraints is needed"),
    "a list": (lambda: pf.Compound("x", list(runners().parts)), "compound 'x': a tuple"),
    "a record of another kind": (lambda: pf.Compound("x", runners().parts, "contact"), "its record must be a frozen"),
    "a record that may change": (lambda: pf.Compound("x", runners().parts, Pair([1])), "its record must be a frozen dataclass"),
    "an unknown body": (lambda: sled([pf.forces.cable("c", "sled", "sky", length=1.0, stiffness=1.0)]), "no body 'sky'"),
    "a disk on an unknown body": (lambda: sled(constraints=[wheel(plane=pf.rolling.plane(on="ice"))]), "no body 'ice'"),
    "a file of an unknown body": (
        lambda: parse_yaml("{bodies: {sled: {mass: 1}}, joints: {j: {kind: free, parent: world, child: sled}},\n"
                           f"constraints: {{r: {ROLLER.replace('sled', 'sle')}}}}}"), "line 2: constraints.r: .*no body 'sle'"),
}  # fmt: skip


@pytest.mark.parametrize("what", TWICE)
def test_wrong_compounds_are_named(what):
    make, words = TWICE[what]
    with pytest.raises(pf.ModelError, match=words):
        make()


def test_parts_of_parts_are_refused():
    inner = pf.Compound("inner", (Potential("p", lambda k: k.q[0]),))
    with pytest.raises(pf.ModelError, match="does not belong here"):
        sled([pf.Compound("outer", (inner,))])


def four_bar(whole: bool) -> pf.Mechanism:
    """A four-bar whose pin, with a spring and an input beside it, is alone or in a compound."""
    hinge = {"kind": "revolute", "axis": (0, -1, 0)}
    bodies = [pf.body(n, 1.0, com=(0.5, 0, 0), inertia=0.1) for n in ("crank", "coupler", "rocker")]
    joints = [
        pf.joint("A", parent="world", child="crank", **hinge),
        pf.joint("B", parent="crank", child="coupler", placement=(1, 0, 0), **hinge),
        pf.joint("D", parent="world", child="rocker", placement=(2.5, 0, 0), **hinge),
    ]
    ends = {"placement_a": (2, 0, 0), "placement_b": (2, 0, 0)}
    rows = (
        pf.closure("C", body_a="coupler", body_b="rocker", **hinge, **ends),
        pf.nonholonomic("slow", lambda k: k.v[0] - k.v[0]),
    )
    pulls = (pf.spring("s", "world", "coupler", stiffness=3.0, damping=0.2), pf.wrench("hand", "rocker"))
    given = ([pf.Compound("rows", rows)], [pf.Compound("pulls", pulls)]) if whole else (rows, pulls)
    return pf.mechanism("four-bar", bodies, joints, constraints=given[0], forces=given[1])


def test_parts_of_compounds_count_wherever_those_alone_do():
    """Equations, inputs, signals, wrenches, words and pictures are those of the parts."""
    one, other = four_bar(whole=True), four_bar(whole=False)
    assert one.u_names == other.u_names and describe(one, pf.formats.RunSettings()) == describe(other, pf.formats.RunSettings())
    start = pf.assemble(one, {"A": 0.5}, guess={"B": -0.2, "D": 1.0}, backend="numpy")
    q, v = start.q, np.zeros(3)
    for ask in (
        lambda m: pf.forward_dynamics(m, q, v, u={"hand.fx": 1.0}).v_dot,
        lambda m: pf.reaction_wrench(m, "C", q, v).wrench,
        lambda m: pf.run(m, q, v, duration=0.01, record="all", backend="numpy", error_bound=np.inf).to_array().values,
    ):
        assert ask(one).tobytes() == ask(other).tobytes()
    drawn = [[(p.name, p.layer) for p in scene(m, state_of(m, q)).parts] for m in (one, other)]
    assert drawn[0] == drawn[1] and ("C", "closures") in drawn[0]
    assert repr(one) == repr(other) and one._repr_html_() == other._repr_html_()
