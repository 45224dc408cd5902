"""Digests of laws: the arguments of a library law, the graph of a caller's law; everything that shapes the code counts."""

from __future__ import annotations

from dataclasses import replace

import casadi as ca
import numpy as np
import pytest

import pfaffian as pf
from pfaffian import control
from pfaffian.control.law_digest import digest
from pfaffian.simulate.step.simulation import Simulation
from pfaffian.states.system import as_system
from pfaffian.terms.equations_digest import digest as of_mechanism
from tests.simulations import simulation


def arm(**more) -> pf.Mechanism:
    bodies = [pf.body(f"b{i}", 1.0, (0.5, 0, 0), 0.1) for i in range(2)]
    joints = [pf.joint(f"j{i}", "revolute", "world" if i == 0 else "b0", f"b{i}", axis=(0, 1, 0),
                       placement=pf.pose((i, 0, 0))) for i in range(2)]  # fmt: skip
    tip = pf.holonomic("rail", lambda k: k.position("b1", (1, 0, 0))[2])
    return pf.actuate_all(pf.mechanism("arm", bodies, joints, **({"constraints": [tip]} | more)))


GOAL = {"task": control.joints("j0"), "reference": control.set_point([0.5]), "stiffness": 9.0, "damping": 6.0}
TWO = GOAL | {"task": control.joints("j0", "j1"), "reference": control.set_point([0.5, 0.1])}
FORCE = {"force": control.set_point([1.0]), "rows": ("rail",), "force_gain": 1.0, "integral_gain": 2.0}
MADE = {
    "projected": (control.projected, GOAL | {"weight": [1.0, 2.0], "rest_damping": 0.0, "limits": [(-9.0, 9.0), (-8.0, 8.0)]}),
    "computed torque": (control.computed_torque, TWO),
    "operational space": (control.operational_space, GOAL | {"joint_damping": 0.0}),
    "hybrid force": (control.hybrid_force, GOAL | FORCE | {"integral_start": [0.0]}),
}
OTHER = {
    "task": control.joints("j1"),
    "reference": control.polynomial([0.0], [0.5], 1.0),
    "stiffness": 9.5,
    "damping": 5.5,
    "weight": [1.0, 2.5],
    "limits": [(-9.0, 9.0), (-8.0, 7.0)],
    "rest_damping": 1.0,
    "joint_damping": 1.0,
    "force": control.set_point([2.0]),
    "rows": ("other",),
    "force_gain": 0.5,
    "integral_gain": 1.5,
    "integral_start": [0.5],
}


@pytest.mark.parametrize("name", MADE)
def test_each_argument_of_a_law_changes_its_digest(name):
    make, given = MADE[name]
    m, known = arm(), {digest(make(**given), arm())}
    assert known == {digest(make(**given), m)}, "the same law and machine, built again"
    for argument in given:
        changed = given | {argument: OTHER[argument]}
        if argument == "reference" and given["reference"].size == 2:
            changed["reference"] = control.set_point([0.5, 0.2])
        if argument == "task" and given["reference"].size == 2:
            changed["task"] = control.joints("j1", "j0")
        found = digest(make(**changed), m)
        assert found not in known, argument
        known.add(found)


def test_callers_tasks_and_references_count_by_what_they_compute():
    m = arm()

    def law(c: float, d: float) -> control.Control:
        wave = control.function_of_time(lambda t: [ca.sin(d * t)], 1)
        return control.projected(lambda k: k.q[:1] * c, wave, stiffness=1.0, damping=1.0)

    assert digest(law(2.0, 3.0), m) == digest(law(2.0, 3.0), m)
    assert len({digest(law(c, d), m) for c, d in ((2.0, 3.0), (2.5, 3.0), (2.0, 3.5))}) == 3


def test_a_reference_of_unknown_symbols_is_named():
    wave = control.function_of_time(lambda t: [ca.SX.sym("amplitude") * t], 1)
    with pytest.raises(pf.ModelError, match=r"^the reference uses symbols that do not belong to the"):
        digest(control.projected(control.joints("j0"), wave, stiffness=1.0, damping=1.0), arm())


def test_a_callers_law_counts_by_its_graph():
    m = arm()

    def law(c: float, **how) -> control.Control:
        return control.Control(lambda T, z, w, y: control.Command(ca.vertcat(c * T.q[0], 0), signals={"seen": T.q[1]}), **how)

    assert digest(law(2.0), m) == digest(law(2.0), m) != digest(law(3.0), m)
    seen = law(2.0, measured=lambda T, F: 2 * F[0])
    assert digest(seen, m) not in (digest(law(2.0), m), digest(law(2.0, measured=lambda T, F: F[0]), m))


def test_replacing_a_function_of_a_law_changes_its_digest():
    m, given = arm(), control.projected(**GOAL)
    idle = replace(given, law=lambda T, z, w, y: control.Command(ca.SX.zeros(2, 1), faults=ca.SX.zeros(2, 1)))
    assert digest(idle, m) != digest(given, m)
    assert digest(replace(given, measured=lambda T, F: F[:1]), m) != digest(given, m)


def sampled(law, **more):
    measure = {"gyro": control.sensor(lambda k: k.v, 0.1)}
    return control.discrete(law, **({"period": 0.01, "measure": measure} | more))


CHANGES = {
    "period": 0.02,
    "phase": 0.005,
    "latency": 1,
    "hold": "first",
    "start": [0.0, 1.0],
    "measure": {"gyro": control.sensor(lambda k: k.v, 0.2)},
}
SENSORS = (
    control.sensor(lambda k: 2 * k.v, 0.1),
    control.sensor(lambda k: k.v, 0.1, period=0.005),
    control.sensor(lambda k: k.v, 0.1, phase=0.005),
    control.sensor(lambda k: k.v, 0.1, latency=1),
    control.sensor(lambda k: k.v, 0.1, unit="rad/s"),
    control.sensor(lambda k: k.v, [0.1, 0.2]),
    control.sensor(lambda terms, motion: motion.v_dot, 0.1, moving=True),
    control.sensor(lambda terms, motion: 2 * motion.v_dot, 0.1, moving=True),
)


@pytest.mark.parametrize("by_caller", [False, True], ids=["of the library", "of the caller"])
def test_every_argument_of_a_discrete_law_changes_its_digest(by_caller):
    m = arm()

    def law(c=1.0):
        return (lambda s: control.Command(c * s["gyro"])) if by_caller else control.computed_torque(**TWO | {"stiffness": c})

    given = [{}, *({name: x} for name, x in CHANGES.items()), *({"measure": {"gyro": s}} for s in SENSORS),
             {"measure": CHANGES["measure"] | {"more": SENSORS[0]}}]  # fmt: skip
    keys = [digest(sampled(law(), **more), m) for more in given]
    keys += [digest(sampled(law(2.0)), m), digest(law(), m) if not by_caller else ""]
    assert len(set(keys)) == len(keys) and keys[:1] == [digest(sampled(law()), arm())]
    one, two = sampled(law()), sampled(law(2.0), phase=0.001)
    pairs = [{"a": one, "b": two}, {"b": one, "a": two}, {"a": two, "b": one}, {"a": one, "c": two}]
    keys = [digest(control.several(**pair), m) for pair in pairs]
    assert len(set(keys)) == 4 and keys[0] == digest(control.several(a=sampled(law()), b=sampled(law(2.0), phase=0.001)), m)


def test_arguments_of_a_callers_discrete_law_change_its_digest():
    m = arm()

    def law(gain=1.0, name="i", start=0.0, faults=(), signals=(), **more):
        def call(s):
            late = ca.SX(len(faults), 1)
            seen = {n: s[name] for n in signals}
            return control.Command(ca.vertcat(s["w"], gain), faults=late, signals=seen, d_next={name: s[name] + 1})

        return control.discrete(call, 0.01, state={name: start}, inputs=("w",), faults=faults, **more)

    changes = [{}, {"gain": 2.0}, {"name": "j"}, {"start": 1.0}, {"faults": ("no",)}, {"signals": ("a",)}]
    keys = [digest(law(**change), m) for change in changes]
    assert len(set(keys)) == len(keys) and keys[0] == digest(law(), m)
    part = law().parts[0]
    assert digest(replace(law(), parts=(replace(part, call=lambda s: part.call(s)._replace(u=2 * s.u)),)), m) not in keys


@pytest.mark.parametrize(
    "change",
    [
        lambda c: [pf.holonomic("rail", lambda k: k.position("b1", (1, 0, 0))[2] - c)],
        lambda c: [pf.nonholonomic("rail", lambda k: k.velocity("b1", (1, 0, 0))[2] - c)],
        lambda c: [
            pf.constraints.active_while(pf.coincide("rail", "world", (2, 0, 0), "b1", (1, 0, 0)), lambda k: k.t < 1 + c)
        ],
        lambda c: [pf.servo(pf.holonomic("rail", lambda k: k.q[0]), lambda k: ca.horzcat(1 + c, 0))],
    ],
    ids=["phi", "eta", "active", "directions"],
)
def test_functions_of_a_mechanism_count_by_what_they_compute(change):
    keys = [of_mechanism(arm(constraints=change(c))) for c in (0.0, 0.0, 0.25)]
    assert keys[0] == keys[1] != keys[2]


def test_outputs_schemes_and_records_change_the_key():
    m = arm()
    keys = {
        simulation(as_system(m), scheme, law, outputs, record).key
        for law in (None, control.projected(**GOAL))
        for scheme in (pf.Scheme(), pf.Scheme(corrections=1))
        for outputs in ((), (("x", lambda k: k.q[0]),), (("x", lambda k: k.q[1]),), (("y", lambda k: k.q[0]),))
        for record in ("all", ("q",))
    }
    assert len(keys) == 2 * 2 * 4 * 2


def test_outputs_of_motions_and_reactions_change_the_key():
    m = arm()
    key = lambda f: simulation(as_system(m), pf.Scheme(), None, (("a", pf.of_motion(f)),)).key  # noqa: E731
    assert key(lambda T, motion: motion.v_dot) == key(lambda T, motion: motion.v_dot) != key(lambda T, motion: 2 * motion.v_dot)
    f = lambda T, motion: motion.v_dot  # noqa: E731
    named = [simulation(as_system(m), pf.Scheme(), None, ((name, pf.of_motion(f)),)) for name in "ab"]
    assert named[0].key != named[1].key and [name in s.sizes for s in named for name in "ab"] == [True, False, False, True]
    assert simulation(as_system(m), pf.Scheme(), None, (("a", pf.reaction("j0")),)).key != simulation(
        as_system(m), pf.Scheme(), None, (("a", pf.reaction("j1")),)).key  # fmt: skip


def test_a_known_law_is_not_traced(monkeypatch):
    """Another process finds the same cache entry: here an equal law, mechanism and Simulation, built again, do."""
    law = lambda: control.projected(**GOAL)  # noqa: E731
    again = lambda: pf.run(arm(), {"j0": 0.1}, duration=0.01, control=law(), outputs={"x": lambda k: k.q[:2]})  # noqa: E731
    first = again()
    monkeypatch.setattr(Simulation, "traced", property(lambda self: pytest.fail("traced again")))
    second = again()
    assert first.drop_attrs().equals(second.drop_attrs())
    assert second["x"].sizes["x_component"] == 2


def test_a_push_stays_an_input_under_a_law():
    """rate(push) - rate(no push) is the effect of the push on the same machine with constant inputs."""
    push = pf.wrench("push", "b1", point=(0.3, 0, 0))
    m, law = arm(forces=[push], constraints=()), control.computed_torque(**TWO)
    s = simulation(as_system(m), pf.Scheme(), law)
    assert s.w_names == tuple(f"push.{c}" for c in ("fx", "fy", "fz", "nx", "ny", "nz"))
    x, wrench = np.array([0.3, -0.4, 0.2, 0.1]), np.array([1.0, 2.0, -3.0, 0.4, 0.5, 0.6])
    rates = [np.array(s.traced.rhs(x, w, [], 0)[0]).ravel()[2:] for w in (wrench, 0 * wrench)]
    free = [pf.forward_dynamics(m, x[:2], x[2:], np.concatenate([[0, 0], w])).v_dot for w in (wrench, 0 * wrench)]
    np.testing.assert_allclose(rates[0] - rates[1], free[0] - free[1], rtol=0, atol=1e-12)
    assert np.abs(rates[0] - rates[1]).max() > 1
    moved = pf.run(m, x[:2], duration=0.05, control=law, u={"push.fz": -5.0}, backend="interpreter", step=0.01)
    assert list(moved["u"].sel(input="push.fz").values) == [-5.0] * 6


def test_a_law_may_not_take_the_name_of_a_push():
    m = arm(forces=[pf.wrench("push", "b1")])
    law = control.projected(control.joints("j0"), control.sampled(["push.fx"]), stiffness=1.0, damping=1.0)
    with pytest.raises(pf.ModelError, match=r"both have an input 'push\.fx'"):
        pf.run(m, duration=0.1, control=law)


def test_a_run_stops_where_the_side_of_a_fault_changes():
    m = arm(constraints=())
    law = control.Control(
        lambda T, z, w, y: control.Command(ca.SX.zeros(2, 1), faults=ca.SX(0), sides=0.025 - T.t), faults=("beyond",)
    )
    with pytest.warns(pf.RunWarning, match="beyond"):
        r = pf.run(m, duration=0.1, step=0.01, control=law, backend="interpreter")
    assert pf.results.causes(r) == ["beyond (at t = 0.02 s)"]
    with pytest.raises(pf.ModelError, match="gives 2 sides where 1 are declared"):
        pf.run(m, duration=0.1, control=replace(law, law=lambda T, z, w, y: control.Command(
            ca.SX.zeros(2, 1), faults=ca.SX(0), sides=ca.SX.ones(2, 1))))  # fmt: skip


def test_limits_of_the_actuators_change_the_digest_of_a_law_that_reads_them():
    """They are not part of the equations of motion, but they are part of the code of a law with limits="actuators"."""
    body, joint = pf.body("b", 1.0, inertia=0.3), pf.joint("j", "planar", "world", "b")
    motors = [pf.forces.thruster("up", "b", axis=(0, 1, 0), limits=(-x, x)) for x in (6.5, 8.0)]
    low, high = (pf.mechanism("m", [body], [joint], actuators=[a], gravity=(0, 0, 0)) for a in motors)
    pair = control.pair("b", inertia=pf.forces.pseudo_matrix(1, moments=1.0), stiffness=pf.forces.pseudo_matrix(1))
    for law in [
        (x := control.prototype_tracking([pair], control.set_point([0, 0, 0]), limits="actuators")),
        control.discrete(x, 0.1),
    ]:
        assert digest(law, low) != digest(law, high)
