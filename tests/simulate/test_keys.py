"""A key covers all that compiled code, or a decision made while a law is built, may depend on; laws and mechanisms copy
their arguments."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import fields, replace
from pathlib import Path

import casadi as ca
import numpy as np
import pytest

import pfaffian as pf
from pfaffian import control
from pfaffian.control.law_digest import digest as of_law
from pfaffian.errors import BuildError
from pfaffian.kernel import remember
from pfaffian.model.joint import JointKind
from pfaffian.parts.elastic import PoseSpring
from pfaffian.states.system import StatePart, System, as_system
from pfaffian.terms.equations_digest import digest
from pfaffian.terms.traced_now import present, remembered
from pfaffian.viewer.run_study import run_study
from tests.simulations import simulation

Y = (0, 1, 0)


def everything() -> pf.Mechanism:
    """A machine with one part of each kind, and numbers and names of each kind in it."""
    l = pf.Parameter("l", 1.0, "m")
    bodies = [pf.body("cart", 1.5, inertia=0.1), pf.body("rod", 2 * l, (0, 0, -l / 2), 0.1), pf.body("fin", 0.3, inertia=0.1),
              pf.body("gear", 0.2, inertia=0.01)]  # fmt: skip
    joints = [
        pf.joint("slide", "prismatic", "world", "cart", axis=(1, 0, 0), limits=(-2, 2), effort=9.0, stiffness=3.0),
        pf.joint("hinge", "revolute", "cart", "rod", axis=Y, placement=pf.pose((0, 0, 0.1)), damping=0.1, armature=0.2),
        pf.edge("e", "rod", "fin", lambda c: pf.pose((c.joint("slide"), 0, -1))),
        pf.joint("led", "revolute", "cart", "gear", axis=Y, mimic=pf.mimic({"hinge": 2.0}, 0.1)),
    ]
    return pf.mechanism(
        "everything", bodies, joints,
        constraints=[
            pf.closure("loop", "point-on-plane", "world", "rod", placement_a=pf.pose((0, 0, -l)), axis=(0, 0.1, 1)),
            pf.constraints.active_while(pf.holonomic("phi", lambda K: K.q[0] - 0.1), lambda K: K.t < 1),
            pf.nonholonomic("eta", lambda K: K.v[0]),
            pf.constraints.acceleration_constraint("rows", lambda K: ([[1, -1]], [0])),
            pf.servo(pf.holonomic("held", lambda K: K.q[1]), ["push"], stiffness=3.0, damping=2.0),
        ],
        forces=[
            pf.wrench("W", "rod", (0, 0, 1, 0, 0, 0), point=(0, 0, -1), by="cart"),
            pf.wrench("outside", "rod"),
            pf.spring("S", "cart", "rod", point_b=(0, 0, -1), stiffness=2.0, rest=0.3, damping=0.1),
            pf.forces.potential("V", lambda K: K.q[0] ** 2),
            pf.forces.generalised_force("F", lambda K: K.v[1], joint="hinge"),
        ],
        actuators=[pf.actuator("push", "slide", gear=2.0, limits=(-5, 5)),
                   pf.forces.thruster("jet", "rod", torque=0.1, limits=(0, 3))],
        parameters=[l],
    )  # fmt: skip


def changed(x):
    """The value with one change; None for kinds of values that are not varied."""
    if isinstance(x, ca.SX) and x.numel():
        y = ca.densify(ca.SX(x))
        y[0] += 0.25
        return y
    if isinstance(x, str):
        return x + "'"
    if isinstance(x, bool):
        return not x
    if isinstance(x, (int, float)):
        return x + 1 if np.isfinite(x) else 7.0
    if isinstance(x, tuple) and x:
        return (changed(x[0]), *x[1:])
    return None


def ways() -> dict:
    """Name of a field of a part -> function that changes it in a machine without any check."""
    m, found = (
        everything(),
        {"lenient": lambda m: replace(m, lenient=True), "gravity": lambda m: replace(m, gravity=changed(m.gravity))},
    )
    for group in ("bodies", "joints", "constraints", "forces", "actuators"):
        for i, part in enumerate(getattr(m, group)):
            for f in fields(part):
                if changed(getattr(part, f.name)) is None or isinstance(getattr(part, f.name), JointKind):
                    continue
                found[f"{part.name}: {f.name}"] = lambda m, group=group, i=i, name=f.name: _put(m, group, i, name)
        if len(getattr(m, group)) > 1:
            found[f"order of {group}"] = lambda m, group=group: replace(m, **{group: getattr(m, group)[::-1]})
    return found


def _put(m, group, i, name):
    parts = list(getattr(m, group))
    parts[i] = replace(parts[i], **{name: changed(getattr(parts[i], name))})
    return replace(m, **{group: tuple(parts)})


WAYS = ways()


@pytest.fixture(scope="module")
def known():
    m = everything()
    return m, digest(m)


@pytest.mark.parametrize("way", [name for name in WAYS if not name.startswith("order of bodies")])
def test_every_field_of_a_mechanism_is_in_its_key(known, way):
    """Names and limits count too: a law may read them, and a reaction is requested by name."""
    from pfaffian.model.mechanism_digest import structure

    m, was = present(known[0]), known[1]
    assert structure(m) == was
    assert structure(WAYS[way](m)) != was


def test_parameters_count_by_name_default_and_unit():
    def one(**more):
        l = pf.Parameter(**({"name": "l", "default": 1.0, "unit": "m"} | more))
        return pf.mechanism(
            "p", [pf.body("b", l, (0, 0, -1))], [pf.joint("j", "revolute", "world", "b", axis=Y)], parameters=[l]
        )

    keys = [digest(one(**more)) for more in ({}, {"name": "k"}, {"default": 2.0}, {"unit": "mm"}, {})]
    assert keys[0] == keys[4] and len(set(keys)) == 4
    assert digest(replace(one(), name="another")) == keys[0], "the name of a machine is not part of its digest"


PARTS = {
    "bushing": lambda x: pf.forces.bushing("part", "world", "b", stiffness=pf.forces.pseudo_matrix(x, (0, 0, -1)),
                                           damping=np.eye(4)).parts[0],
    "friction": lambda x: pf.forces.joint_friction("part", "j", x),
    "contact": lambda x: pf.forces.contact("part", "b", shape_a=(0, 0, -1), stiffness=x).parts[0],
    "drag": lambda x: pf.forces.drag("part", "b", area=x, coefficient=0.5),
    "gust": lambda x: pf.forces.drag("part", "b", area=1.0, coefficient=0.5, wind=pf.forces.gust(intensity=1.0, seed=x)),
    "road tyre": lambda x: pf.forces.road_tyre("part", "b", 0.3, road=pf.forces.road([0.0, 0.1], x=[0.0, 1.0]), vertical=x),
}  # fmt: skip
"""Parts of the library that are functions of the kinematics, by one of their numbers."""


@pytest.mark.parametrize("kind", PARTS)
def test_a_part_of_the_library_is_known_by_its_numbers_and_never_traced(kind):
    l = pf.Parameter("l", 3.0)

    def with_part(x):
        return pendulum(forces=[PARTS[kind](x)], parameters=[l])

    assert present(m := with_part(3)) is m
    keys = [digest(with_part(x)) for x in (3, 4, l, 2 * l, 3, l)]
    assert keys[0] == keys[4] and keys[2] == keys[5] and len(set(keys)) == 4


def test_a_part_with_a_function_of_a_caller_is_traced():
    speed = [2.0]
    m = pendulum(forces=[pf.forces.drag("part", "b", area=1.0, coefficient=0.5, wind=lambda K: [speed[0], 0, 0])])
    one, other = digest(m), speed.__setitem__(0, 3.0) or digest(m)
    assert one != other


def test_a_part_derived_from_one_of_the_library_is_traced():
    class Stiffer(PoseSpring):
        factor = 1.0

        def __call__(self, k):
            return self.factor * super().__call__(k)

    part = PARTS["bushing"](3.0)
    m = pendulum(forces=[replace(part, function=Stiffer(*(getattr(part.function, f.name) for f in fields(part.function))))])
    one = pf.energy(m, [0.3]).potential
    Stiffer.factor = 2.0
    assert pf.energy(m, [0.3]).potential != one


def test_a_parameter_that_is_not_listed_is_refused_in_a_part():
    with pytest.raises(pf.ModelError, match="force 'part': function uses a Parameter that is not among"):
        pendulum(forces=[PARTS["friction"](pf.Parameter("l", 3.0))])


# -- what decisions depend on --------------------------------------------------------------------------------------------


def pair_of_loops(a: str, b: str) -> pf.Mechanism:
    """Two rods that move in a plane, the tip of each in a plane of the world; these closures are called a and b."""
    bodies = [pf.body(n, 1.0 + i, (0, 0, -0.5), 0.1) for i, n in enumerate(("one", "two"))]
    joints = [pf.joint(f"j{n}", "planar", "world", n, axis=Y) for n in ("one", "two")]
    rails = [pf.closure(name, "point-on-plane", "world", body, placement_b=pf.pose((0, 0, -1)), placement_a=pf.pose((0, 0, -1)))
             for name, body in ((a, "one"), (b, "two"))]  # fmt: skip
    return pf.actuate_all(pf.mechanism("loops", bodies, joints, constraints=rails))


def test_reactions_follow_swapped_names():
    m, swapped = pair_of_loops("A", "B"), pair_of_loops("B", "A")
    found = [pf.reaction_wrench(x, name).wrench for x in (m, swapped) for name in "AB"]
    np.testing.assert_array_equal(found[0], found[3])
    np.testing.assert_array_equal(found[1], found[2])
    assert np.abs(found[0] - found[1]).max() > 1
    outputs = {"a": pf.reaction("A")}
    ran = [pf.run(x, duration=0.002, outputs=outputs)["a"].values[0] for x in (m, swapped)]
    for r, expected in zip(ran, (found[0], found[1]), strict=True):
        np.testing.assert_allclose(r, expected, rtol=0, atol=1e-9)


def test_laws_that_name_rows_depend_on_the_names():
    goal = {"task": control.joints("jone"), "reference": control.set_point([0.1, 0, 0]), "stiffness": 4.0, "damping": 4.0}
    law = control.hybrid_force(**goal, force=control.set_point([1.0]), rows=["A.vz"], force_gain=1.0, integral_gain=1.0)
    keys = [simulation(as_system(pair_of_loops(*names)), pf.Scheme(), law).key for names in ("AB", "BA", "AB")]
    assert keys[0] == keys[2] != keys[1]


def test_switches_follow_swapped_names_of_parameters():
    def m(a, b):
        p = [pf.Parameter(a, 1.0), pf.Parameter(b, 1.0)]
        push = [pf.forces.potential("V", lambda K: p[0].symbol * K.q[0] + 10 * p[1].symbol * K.q[0])]
        return pf.mechanism("p", [pf.body("b", 1.0)], [pf.joint("j", "prismatic", "world", "b", axis=(1, 0, 0))],
                            parameters=p, forces=push)  # fmt: skip

    off = {"a": lambda K: 0.0}
    found = [pf.run(m(*names), duration=0.02, step=0.01, switches=off)["v"].values[-1, 0] for names in ("ab", "ba")]
    np.testing.assert_allclose(found, [-0.2, -0.02], rtol=1e-12)


def lifted(low: float, high: float) -> pf.Mechanism:
    motors = [pf.actuator("lift", "z", limits=(low, high))]
    return pf.mechanism("lift", [pf.body("b", 1.0)], [pf.joint("z", "prismatic", "world", "b")], actuators=motors)


def test_limits_of_the_actuators_count():
    given = {
        "inertia": pf.forces.pseudo_matrix(1.0),
        "stiffness": pf.forces.pseudo_matrix(100.0),
        "damping": pf.forces.pseudo_matrix(20.0),
    }
    law = control.prototype_tracking([control.pair("b", **given)], control.set_point([1.0]), limits="actuators")
    reached = []
    for low, high in ((0.0, 9.0), (2.0, 12.0)):
        r = pf.run(lifted(low, high), [0.0], duration=0.3, step=0.01, control=law)
        reached.append((float(r["u"].min()), float(r["u"].max())))
    assert reached[0][1] == pytest.approx(9.0) and reached[1][1] == pytest.approx(12.0)


def test_defaults_that_a_law_decides_by_count():
    """Motors that are equal at the defaults, or not."""

    def key(gear):
        g = pf.Parameter("g", gear)
        m = pf.mechanism(
            "arm", [pf.body("b", 1.0, (0.5, 0, 0), 0.1)], [pf.joint("j", "revolute", "world", "b", axis=Y)], parameters=[g],
            actuators=[pf.actuator("u1", "j"), pf.actuator("u2", "j", gear=g)],
        )  # fmt: skip
        law = control.concurrent([control.output("b", "heading", np.eye(2), stiffness=4.0, damping=4.0)], rest_damping=1.0)
        return simulation(as_system(m), pf.Scheme(), law).key if gear is None else digest(m) + str(law.made.maker)

    assert key(1.0) == key(1.0) != key(2.0)


# -- laws and mechanisms copy their arguments ----------------------------------------------------------------------------

ARM = pair_of_loops("A", "B")
GOAL = {"task": lambda K: K.q[:2], "stiffness": 4.0, "damping": 4.0}


FLOATING = pf.actuate_all(pf.mechanism("hull", [pf.body("one", 1.0, inertia=0.1)], [pf.joint("j", "free", "world", "one")]))


def before_and_after(make, value, change, m=ARM):
    """Digest and equations of a law of `value`, before and after the value is changed in place."""
    law = make(value)
    seen = []
    for _ in range(2):
        s = simulation(as_system(m), pf.Scheme(), law)
        seen.append((of_law(law, m), s.traced.rhs.serialize(), *(f.serialize() for f in s.traced.samplers)))
        change(value)
    return seen


def edit(x):
    x[0] = 7.0


COPIES = {
    "weight, a list": (lambda x: control.projected(reference=control.set_point([0, 0]), weight=x, **GOAL), [1.0] * 6, edit),
    "weight, an array": (lambda x: control.projected(reference=control.set_point([0, 0]), weight=x, **GOAL), np.ones(6), edit),
    "gains": (lambda x: control.projected(reference=control.set_point([0, 0]), **GOAL | {"stiffness": x}), np.ones(2), edit),
    "a gain as an expression": (
        lambda x: control.projected(reference=control.set_point([0, 0]), **GOAL | {"stiffness": x}), ca.SX([1.0, 2.0]), edit),
    "limits": (lambda x: control.projected(reference=control.set_point([0, 0]), limits=x, **GOAL),
               np.tile([-5.0, 5.0], (6, 1)), lambda x: x.__setitem__((0, 0), -1.0)),
    "a set point": (lambda x: control.projected(reference=control.set_point(x), **GOAL), np.zeros(2), edit),
    "a path": (lambda x: control.projected(
        reference=control.function_of_time(control.rest_to_rest(x, [1, 1], 1.0), 2), **GOAL), np.zeros(2), edit),
    "a polynomial": (lambda x: control.projected(reference=control.polynomial(x, [1, 1], 1.0), **GOAL), np.zeros(2), edit),
    "a pose": (lambda x: control.projected(**GOAL | {"task": control.pose("one", x)}, reference=control.set_point([0.0] * 6)),
               np.eye(3), lambda x: x.__setitem__((slice(None), slice(None)), np.diag([1, -1, -1])), FLOATING),
    "a point": (lambda x: control.projected(**GOAL | {"task": control.point("one", x)}, reference=control.set_point([0.0] * 3)),
                np.zeros(3), edit, FLOATING),
    "axes": (lambda x: control.projected(**GOAL | {"task": control.point("one", axes=x)}, reference=control.set_point([0.0])),
             [0], lambda x: x.__setitem__(0, 2)),
    "rows": (lambda x: control.hybrid_force(reference=control.set_point([0, 0]), force=control.set_point([1.0]), rows=x,
                                            force_gain=1.0, integral_gain=1.0, **GOAL), ["A.vz"],
             lambda x: x.__setitem__(0, "B.vz")),
    "noise": (lambda x: control.discrete(lambda s: control.Command(s["y"]), 0.01,
                                         measure={"y": control.sensor(lambda K: K.v, x)}), np.zeros(6), edit),
    "sensors": (lambda x: control.discrete(lambda s: control.Command(s["y"]), 0.01, measure=x),
                {"y": control.sensor(lambda K: K.v)}, lambda x: x.update(y=control.sensor(lambda K: 2 * K.v))),
    "a start": (lambda x: control.discrete(lambda s: control.Command(s["z"] * ca.SX.ones(6, 1), d_next={"z": s["z"]}), 0.01,
                                           state=x), {"z": [1.0]}, lambda x: x["z"].__setitem__(0, 7.0)),
    "pairs": (lambda x: control.prototype_tracking(x, control.set_point([0.0] * 6)),
              [control.pair(n, inertia=np.eye(4), stiffness=np.eye(4)) for n in ("one", "two")],
              lambda x: x.__setitem__(0, control.pair("one", inertia=2 * np.eye(4)))),
    "servos": (lambda x: control.servo_control(*x), [pf.servo(pf.holonomic("h", lambda K: K.q[2]), ["jone.wz"])],
               lambda x: x.clear()),
}  # fmt: skip


@pytest.mark.parametrize("what", COPIES)
def test_changing_an_argument_in_place_changes_no_law(what):
    before, after = before_and_after(*COPIES[what])
    assert before == after


@pytest.mark.parametrize("part", ["mass", "com", "placement", "stiffness", "gear", "gravity", "wrench", "bushing", "friction"])
def test_changing_an_argument_in_place_changes_no_mechanism(part):
    x = ca.SX([2.0, 0, 0]) if part in ("com", "placement", "gravity") else ca.SX([2.0] * 6) if part == "wrench" else ca.SX(2.0)
    given = {part: x}
    body = pf.body("b", given.get("mass", 1.0), given.get("com", (0, 0, -1)), 0.1)
    joint = pf.joint("j", "revolute", "world", "b", axis=Y, placement=pf.pose(given.get("placement", (0, 0, 0))),
                     stiffness=given.get("stiffness", 0.0))  # fmt: skip
    m = pf.mechanism(
        "m", [body], [joint], gravity=given.get("gravity", (0, 0, -9.81)),
        actuators=[pf.actuator("u", "j", gear=given.get("gear", 1.0))],
        forces=[pf.wrench("W", "b", given.get("wrench", (0, 0, 0, 0, 0, 0))),
                pf.forces.pose_spring("S", "world", "b", pf.forces.pseudo_matrix(given.get("bushing", 1.0))),
                pf.forces.joint_friction("F", "j", given.get("friction", 1.0))],
    )  # fmt: skip
    was = [digest(m), pf.energy(m, [0.3]).potential]
    x[0] = 50.0
    assert [digest(replace(m, gravity=m.gravity)), pf.energy(m, [0.3]).potential] == was


# -- systems -------------------------------------------------------------------------------------------------------------


def pendulum(**more) -> pf.Mechanism:
    return pf.mechanism("p", [pf.body("b", 1.0, (0, 0, -1))], [pf.joint("j", "revolute", "world", "b", axis=Y)], **more)


def hamilton_by_hand(m: pf.Mechanism) -> System:
    """Hamilton's state as a System of functions."""
    h = pf.reduction.hamiltonian(m)
    return System(m, h.name, h.parts, h.enter, h.show, h.rate, h.project)


@pytest.mark.parametrize(
    "change",
    [
        {"rate": lambda T, motion, x: ca.vertcat(2 * T.kinematics.q_dot, motion.reaction)},
        {"enter": lambda T: ca.vertcat(T.q, 2 * T.v)},
        {"show": lambda x, t: (x[0], x[1] / 2)},
        {"project": lambda x, t: ca.vertcat(x[0], x[1] + 1)},
        {"signals": lambda T, motion, x: {"more": x[:1]}},
        {"inside": lambda x, t: x[0], "ends": "ends"},
        {"holds": True},
        {"name": "another"},
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_system_with_a_part_replaced_is_another(change):
    plain = hamilton_by_hand(pendulum())
    key = lambda s: simulation(as_system(s), pf.Scheme()).key  # noqa: E731
    was = key(plain)
    assert key(replace(plain, **change)) != was
    assert key(plain) == was == key(hamilton_by_hand(pendulum()))


def floating() -> pf.Mechanism:
    bodies = [pf.body("hull", 2.0, (0.1, 0, 0), inertia=(0.3, 0.4, 0.5)), pf.body("arm", 1.0, (0.3, 0, 0), 0.1)]
    joints = [pf.joint("base", "free", "world", "hull"), pf.joint("arm", "revolute", "hull", "arm", axis=Y)]
    return pf.mechanism("craft", bodies, joints, gravity=(0, 0, 0))


@pytest.mark.parametrize(
    "make, change",
    [
        (pf.reduction.hamiltonian, {"first": None}),
        (lambda m: pf.reduce(m, momentum=[0, 0, 1, 0, 2, 0]), {"momentum": (0.0, 0.0, 1.0, 0.0, 3.0, 0.0)}),
        (pf.reduce, {"r": pf.reduce(floating()).r._replace(conserved=(6,))}),
    ],
    ids=["hamiltonian", "one momentum", "reduced"],
)  # fmt: skip
def test_data_replaced_in_a_state_of_the_library_give_another_key(make, change):
    s = make(floating())
    assert replace(s, **change).key != s.key == make(floating()).key


def test_a_replaced_system_does_not_affect_the_original():
    plain = hamilton_by_hand(pendulum())
    fast = replace(plain, rate=lambda T, motion, x: 2 * plain.rate(T, motion, x))
    found = [pf.run(s, [0.3], duration=0.1, step=0.01)["q"].values[-1, 0] for s in (fast, plain, pendulum())]
    assert abs(found[0] - found[1]) > 0.03 and found[1] == pytest.approx(found[2], abs=1e-7)


@pytest.mark.parametrize("text", ["[q; v]", "[q; p]", "mine", None])
def test_another_state_with_any_digest_gives_the_same_motion(text):
    m = pendulum()
    swapped_state = System(
        m, "[v; q]", (StatePart("y", ("a", "b"), ("1", "1")),),
        enter=lambda T: ca.vertcat(T.v, T.q), show=lambda x, t: (x[1], x[0]),
        rate=lambda T, motion, x: ca.vertcat(motion.v_dot, T.v), digest=text,
    )  # fmt: skip
    found, expected = (
        pf.run(s, [0.3], duration=0.05, step=0.01, backend="numpy")["q"].values[-1, 0] for s in (swapped_state, m)
    )
    assert found == pytest.approx(expected, abs=1e-9)


def test_a_reduction_whose_symmetry_is_lost_is_refused():
    lean = [0.0]
    tilt = pf.forces.potential("tilt", lambda K: lean[0] * K.joint("base")[0])
    bodies = [pf.body("hull", 2.0, inertia=(0.3, 0.4, 0.5)), pf.body("arm", 1.0, (0.3, 0, 0), 0.1)]
    joints = [pf.joint("base", "free", "world", "hull"), pf.joint("arm", "revolute", "hull", "arm", axis=Y)]
    m = pf.mechanism("craft", bodies, joints, gravity=(0, 0, 0), forces=[tilt])
    s = pf.reduce(m)
    start = {"v": [0.1, 0.2, 0.3, 0.1, 0.2, 0.3, 0.4], "duration": 0.02, "step": 0.01, "backend": "numpy"}
    first = pf.run(s, **start)
    lean[0] = 5.0
    for system in (s, replace(s, about=())):
        with pytest.raises(pf.ModelError, match="gives another result now; derive it again"):
            pf.run(system, **start)
    lean[0] = 0.0
    assert pf.run(s, **start).drop_attrs().equals(first.drop_attrs())


@pytest.mark.parametrize("make", [pf.reduction.hamiltonian, pf.reduce, lambda m: m], ids=["hamiltonian", "reduce", "mechanism"])
def test_a_cell_of_a_notebook_run_twice(make):
    """Each time the cell makes another Parameter of the same name."""

    def cell():
        g = pf.Parameter("gain", 2.0)
        bodies = [pf.body("hull", g, inertia=(0.3, 0.4, 0.5)), pf.body("arm", 1.0, (0.3, 0, 0), 0.1)]
        joints = [pf.joint("base", "free", "world", "hull"), pf.joint("arm", "revolute", "hull", "arm", axis=Y)]
        m = pf.mechanism("craft", bodies, joints, actuators=[pf.actuator("motor", "arm")], gravity=(0, 0, 0), parameters=[g])
        law = control.Control(lambda T, z, w, y: control.Command(-g * T.q[-1]))
        return pf.run(make(m), {"arm": 0.3}, duration=0.02, step=0.01, control=law, outputs={"x": lambda K: g * K.q[7]},
                      backend="numpy")  # fmt: skip

    first, second = cell(), cell()
    assert first.drop_attrs().equals(second.drop_attrs())


@pytest.mark.parametrize("condition", [True, np.bool_(True), 1, 1.0])
def test_a_constraint_that_is_always_active(condition):
    always = pf.constraints.active_while(pf.holonomic("c", lambda K: K.q[0] - 0.3), lambda K: condition)
    r = pf.run(pendulum(constraints=[always]), [0.3], duration=0.03, step=0.01, backend="numpy")
    assert (r["q"].values == 0.3).all() and (r["v"].values == 0).all()


# -- sources and checks --------------------------------------------------------------------------------------------------


def test_sources_are_read_at_import():
    """Files that are edited later change no key, since the imported code is what runs: see tests/kernel/test_sources.py."""
    code = "from pfaffian.kernel.call import cache_keys; print(cache_keys._contents.cache_info().currsize)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["1"]


def test_remembered_results_are_checked_on_request(monkeypatch):
    """A memory whose key leaves out something that its result depends on is detected, but only if checks are requested."""
    hidden = [1.0]

    @remembered(4)
    def forgetful(m):
        return ca.DM(hidden[0])

    @remember.remembered(4)
    def plain(x):
        return ca.Function("f", [x := ca.SX.sym("x")], [hidden[0] * x])

    m = pendulum()
    forgetful(m), plain(1)
    hidden[0] = 2.0
    assert float(forgetful(m)) == 1.0
    monkeypatch.setattr(remember, "CHECKING", True)
    for again in (lambda: forgetful(m), lambda: plain(1)):
        with pytest.raises(BuildError, match="its key leaves out something"):
            again()
    hidden[0] = 1.0
    forgetful(m), plain(1)


@pytest.mark.parametrize("backend, what", [("c", "the kernel of k"), ("auto", "the Programs of k")])
def test_kernels_and_notes_from_the_store_are_checked(monkeypatch, tmp_path, backend, what):
    from pfaffian import kernel

    monkeypatch.setenv("PFAFFIAN_CACHE", str(tmp_path))
    x = ca.SX.sym("x")
    one, two = (ca.Function("f", [x], [c * x]) for c in (1.0, 2.0))
    how = {"key": "k", "lanes": 1, "backend": backend}
    kernel.compile(one, **how)
    kernel.noted("n", lambda: {"a": 1})
    kernel.compile(two, **how)
    monkeypatch.setattr(remember, "CHECKING", True)
    with pytest.raises(BuildError, match=what):
        kernel.compile(two, **how)
    with pytest.raises(BuildError, match="note n"):
        kernel.noted("n", lambda: {"a": 2})
    assert kernel.noted("n", lambda: {"a": 1}) == {"a": 1} and kernel.compile(one, **how)(np.ones(1))[0] == 1


@pytest.mark.parametrize("name", ["particle-on-circle", "arm-on-slider"])
def test_studies_use_no_stale_results(name, monkeypatch):
    """The second run finds everything again, computes it anew and compares; PFAFFIAN_CHECK=1 pytest does so in all tests."""
    place = Path(__file__).parents[2] / "studies"
    run_study(name, place, draw=False)
    monkeypatch.setattr(remember, "CHECKING", True)
    compared = []
    monkeypatch.setattr(remember, "compare", lambda *what, of=remember.compare: compared.append(what[0]) or of(*what))
    assert run_study(name, place, draw=False).holds and compared
