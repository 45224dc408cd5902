"""A caller's function is evaluated anew at each call, since whatever it depends on may change between two calls.

Each case builds one machine, law or output from a function that reads a number k, evaluates it, changes k and evaluates it
again. The expected result comes from a machine built anew with that k written into the function.
"""

from __future__ import annotations

import functools
import importlib
import subprocess
import sys

import casadi as ca
import numpy as np
import pytest

import pfaffian as pf
from pfaffian import control
from pfaffian.control.law_digest import digest as of_law
from pfaffian.errors import BuildError
from pfaffian.kernel import remember
from pfaffian.kernel.call import cache_keys as keyed
from pfaffian.kernel.call import obtain
from pfaffian.simulate.step.simulation import Simulation
from pfaffian.states.system import as_system
from pfaffian.terms import kinematics, traced_now
from pfaffian.terms.equations_digest import digest
from tests.simulations import simulation

Y = (0, 1, 0)
VALUES = (1.0, 10.0, 2.5, 1.0)

k = 1.0
"""Global variable that functions read."""


@pytest.fixture(autouse=True)
def interpreted(monkeypatch):
    """Compile nothing and load nothing from the store, so that only the memory of this process remains."""
    monkeypatch.setattr(obtain, "_tiers", lambda *_: None)
    monkeypatch.setattr(keyed, "recall", lambda *_: None)
    monkeypatch.setattr(keyed, "programs", lambda _, recipe: recipe)


def rod(**more) -> pf.Mechanism:
    """A cart that slides, with a rod on a hinge."""
    given = {"coordinates": (), "joints": (), "bodies": (), **more}
    bodies = [pf.body("cart", 1.5), pf.body("rod", 1.0, (0, 0, -0.5), 0.1), *given.pop("bodies")]
    joints = [
        pf.joint("slide", "prismatic", "world", "cart", axis=(1, 0, 0)),
        pf.joint("hinge", "revolute", "cart", "rod", axis=Y),
    ]
    motors = [pf.actuator("push", "slide"), pf.actuator("turn", "hinge")]
    return pf.mechanism("rod", bodies, [*joints, *given.pop("joints")], actuators=motors, **given)


def tip(K):
    return K.position("rod", (0, 0, -1))


Q, V, U = np.array([0.3, 0.7]), np.array([-0.4, 0.9]), np.array([0.2, -0.1])


def moves(m):
    x = pf.forward_dynamics(m, Q[: m.nq] if m.nq < 3 else None, V[: m.nv], U[: m.nu])
    return np.concatenate([x.v_dot, x.reaction])


def stands(m):
    return pf.forward_kinematics(m, Q, bodies=["rod"])["rod"].position


def along(parts):
    """A bead on a circle, in coordinates that the caller defines; the cases scale their K and phi."""
    return pf.mechanism("bead", [pf.body("bead", 1.0)], [parts[1]], coordinates=[parts[0]])


def circle(K, phi):
    coordinates = pf.coordinates("c", ["x", "z"], ["s"], K, phi=phi, start=(0.0, -1.0))
    edge = pf.edge("e", "world", "bead", lambda c: pf.pose(ca.vertcat(c.joint("c")[0], 0, c.joint("c")[1])))
    return coordinates, edge


def tangent(q):
    return [[-q[1]], [q[0]]]


def on(q):
    return q[0] ** 2 + q[1] ** 2 - 1


MECHANISMS = {
    "potential": (lambda f: rod(forces=[pf.forces.potential("V", lambda K: f() * K.q[0] ** 2)]), moves),
    "energy": (
        lambda f: rod(forces=[pf.forces.potential("V", lambda K: f() * K.q[0] ** 2)]), lambda m: pf.energy(m, Q, V).potential),
    "wrench": (lambda f: rod(forces=[pf.wrench("W", "rod", lambda K: [f(), 0, 0, 0, 0, 0])]), moves),
    "generalised force": (lambda f: rod(forces=[pf.forces.generalised_force("F", lambda K: [f() * K.v[0], 0])]), moves),
    "dissipation": (lambda f: rod(forces=[pf.forces.dissipation("R", lambda K: f() * K.v[0] ** 2)]), moves),
    "kinetic energy": (lambda f: rod(forces=[pf.forces.kinetic_energy("T", lambda K: f() * K.v[0] ** 2)]), moves),
    "wind": (lambda f: rod(forces=[pf.forces.drag("D", "rod", coefficient=1.0, area=1.0, wind=lambda K: [f(), 0, 0])]), moves),
    "phi": (lambda f: rod(constraints=[pf.holonomic("c", lambda K: tip(K)[2] - f() * K.q[0])]), moves),
    "eta": (lambda f: rod(constraints=[pf.nonholonomic("c", lambda K: K.v[0] - f() * K.v[1])]), moves),
    "rows": (lambda f: rod(constraints=[pf.constraints.acceleration_constraint("c", lambda K: ([[1, -1]], [f()]))]), moves),
    "condition": (
        lambda f: rod(constraints=[pf.constraints.active_while(pf.holonomic("c", lambda K: K.q[0] - 0.3),
            lambda K: K.t < f() - 2)]),
        moves),
    "directions": (
        lambda f: rod(constraints=[pf.servo(pf.holonomic("c", lambda K: K.q[0] - 0.3), lambda K: ca.horzcat(f(), 1))]), moves),
    "target": (lambda f: rod(constraints=[pf.servo(pf.holonomic("c", lambda K: f() * K.q[0] + K.q[1]), ["push"])]), moves),
    "velocities": (lambda f: rod(velocities=pf.velocities(lambda K: [[f(), 0], [0, 1]], ["a", "b"])), moves),
    "pose": (
        lambda f: rod(bodies=[pf.body("fin", 0.3)],
                      joints=[pf.edge("e", "rod", "fin", lambda c: pf.pose((f() * c.joint("slide"), 0, -1)))]), moves),
    "K": (lambda f: along(circle(lambda q: f() * ca.vertcat(-q[1], q[0]), on)), lambda m: pf.mass_matrix(m, [0.6, -0.8])),
    "phi of coordinates": (lambda f: along(circle(lambda q: ca.vertcat(-q[1], q[0]), lambda q: q[0] ** 2 + q[1] ** 2 - f())),
                lambda m: m.neutral()),
    "assembly": (lambda f: rod(constraints=[pf.holonomic("c", lambda K: K.q[0] - 0.1 * f())]),
                 lambda m: pf.assemble(m, [0.3, 0.7], hold=["hinge"]).q),
    "reaction": (lambda f: rod(constraints=[pf.holonomic("c", lambda K: K.q[0] - 0.3 + f() * (K.q[1] - 0.7))]),
                 lambda m: pf.reaction_wrench(m, "hinge", Q, [0, 0]).wrench),
    "linearised": (
        lambda f: rod(forces=[pf.forces.potential("V", lambda K: f() * K.q[0] ** 2)]), lambda m: pf.linearise(m, [0, 0]).A),
    "inverse": (lambda f: rod(forces=[pf.forces.potential("V", lambda K: f() * K.q[0] ** 2)]),
                lambda m: pf.inverse_dynamics(m, Q, V, V).u),
    "momentum's state": (lambda f: rod(forces=[pf.forces.potential("V", lambda K: f() * K.q[0] ** 2)]),
                         lambda m: rates(simulation(pf.reduction.hamiltonian(as_system(m).mechanism), pf.Scheme()))),
}  # fmt: skip
"""Use of a function -> (f -> mechanism, mechanism -> result that depends on f)."""


def rates(s: Simulation) -> np.ndarray:
    s = simulation(as_system(s.system), s.scheme, s.control, s.outputs)
    return np.array(s.traced.rhs(0.1 + np.arange(s.nx), np.ones(len(s.w_names)), [], 0.3)[0]).ravel()


def now():
    return k


def check(make, ask, read=now, write=None):
    """Assert that ask(made once) equals ask(made anew with a constant) after each change of k."""
    made, seen = make(read), []
    for value in VALUES:
        (write or set_k)(value)
        got, expected = ask(made), ask(make(lambda value=value: value))
        np.testing.assert_array_equal(got, expected)
        seen.append(np.asarray(got, dtype=float).ravel())
    assert len({x.tobytes() for x in seen}) > 1, "the answer depends on k"


def set_k(value):
    global k
    k = value


@pytest.mark.parametrize("what", MECHANISMS)
def test_functions_of_a_mechanism_are_evaluated_anew(what):
    check(*MECHANISMS[what])


class Slope:
    """A callable object that also has a method; all of its instances are equal."""

    def __init__(self):
        self.k = 1.0

    def __call__(self):
        return self.k

    def method(self):
        return self.k

    def __eq__(self, other):
        return isinstance(other, Slope)

    def __hash__(self):
        return 1


def reading_a_cell():
    cell = 1.0

    def write(value):
        nonlocal cell
        cell = value

    return lambda: cell, write


def reading_an_array():
    x = np.ones(3)
    return lambda: x[1], lambda value: x.__setitem__(1, value)


def reading_a_list():
    x = [1.0]
    return (lambda x=x: x[0]), lambda value: x.__setitem__(0, value)


def reading_a_dict():
    x = {"k": 1.0}
    return functools.partial(dict.get, x, "k"), lambda value: x.update(k=value)


def reading_an_object():
    x = Slope()
    return x, lambda value: setattr(x, "k", value)


def reading_by_a_method():
    x = Slope()
    return x.method, lambda value: setattr(x, "k", value)


def reading_a_class():
    class Holder:
        k = 1.0

    return lambda: Holder.k, lambda value: setattr(Holder, "k", value)


def reading_an_expression():
    x = ca.SX(1.0)
    return lambda: x, lambda value: x.__setitem__(0, value)


def reading_by_another_code():
    def f():
        return 1.0

    def write(value):
        f.__defaults__, f.__code__ = (value,), (lambda value=0: value).__code__

    return f, write


CHANGES = {
    f.__name__: f
    for f in (
        reading_a_cell, reading_an_array, reading_a_list, reading_a_dict, reading_an_object, reading_by_a_method,
        reading_a_class, reading_an_expression, reading_by_another_code,
    )
}  # fmt: skip


@pytest.mark.parametrize("how", CHANGES)
@pytest.mark.parametrize("what", ["potential", "phi"])
def test_a_change_of_whatever_a_function_reads_counts(how, what):
    read, write = CHANGES[how]()
    check(*MECHANISMS[what], read, write)


@pytest.mark.parametrize("make", [lambda f: f, lambda f: f.method], ids=["objects", "methods"])
def test_a_change_of_a_callable_object_counts(make):
    """The number belongs to the object that the mechanism holds, not to one that it calls."""

    class V(Slope):
        def __call__(self, K):
            return self.k * K.q[0] ** 2

        method = __call__

    function = V()
    m = rod(forces=[pf.forces.potential("V", make(function))])
    for value in VALUES:
        function.k = value
        assert pf.energy(m, Q).potential == pytest.approx(value * Q[0] ** 2 - 0.5 * 9.81 * np.cos(Q[1]), rel=1e-14)


def test_a_reloaded_module_counts(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    file = tmp_path / "own_potential_of_test.py"
    found = []
    for value in (1.0, 10.0, 2.5):
        file.write_text(f"def V(K):\n    return {value} * K.q[0] ** 2\n")
        importlib.invalidate_caches()
        module = importlib.reload(sys.modules[file.stem]) if file.stem in sys.modules else importlib.import_module(file.stem)
        found.append(pf.energy(rod(forces=[pf.forces.potential("V", module.V)]), [1.0, np.pi / 2]).potential)
    np.testing.assert_allclose(found, [1.0, 10.0, 2.5], rtol=1e-14)


# -- laws, outputs, switches ---------------------------------------------------------------------------------------------


def feedback(f):
    return control.Control(lambda T, z, w, y: control.Command(ca.vertcat(-f() * T.q[0], 0)))


def sampled(f):
    return control.discrete(lambda s: control.Command(ca.vertcat(f() * s["x"][0], 0)), 0.01,
                            measure={"x": control.sensor(lambda K: K.q)})  # fmt: skip


GOAL = {"stiffness": 4.0, "damping": 4.0}
LAWS = {
    "law": feedback,
    "task": lambda f: control.projected(lambda K: f() * K.q, control.set_point([0.1, 0.2]), **GOAL),
    "reference": lambda f: control.projected(lambda K: K.q, control.function_of_time(lambda t: [f() * t, t], 2), **GOAL),
    "measured": lambda f: control.Control(lambda T, z, w, y: control.Command(ca.vertcat(y, 0)),
                                          measured=lambda T, F: f() * T.q[0]),
    "discrete": sampled,
    "sensor": lambda f: control.discrete(lambda s: control.Command(ca.vertcat(s["x"], 0)), 0.01,
                                         measure={"x": control.sensor(lambda K: f() * K.q[0])}),
    "moving sensor": lambda f: control.discrete(
        lambda s: control.Command(ca.vertcat(s["x"], 0)), 0.01,
        measure={"x": control.sensor(lambda T, motion: f() * motion.v_dot[0], moving=True)}),
    "discrete task": lambda f: control.discrete(
        control.projected(lambda K: f() * K.q, control.set_point([0.1, 0.2]), **GOAL), 0.01),
}  # fmt: skip


@pytest.mark.parametrize("what", LAWS)
def test_laws_are_evaluated_anew(what):
    """After each change of k, the keys and equations of one law equal those of a law made anew."""
    m = rod()

    def ask(law):
        s = simulation(as_system(m), pf.Scheme(), law)
        parts = (s.key, of_law(law, m), *(f.serialize() for f in (s.traced.rhs, *s.traced.samplers)))
        return [int(x, 16) / 16.0 ** len(x) if i < 2 else hash(x) for i, x in enumerate(parts)]

    check(LAWS[what], ask)


def ran(**given):
    """Result of a short run by the interpreter."""
    return pf.run(rod(), Q, V, duration=0.02, step=0.01, backend="interpreter", **given)


@pytest.mark.parametrize("what", ["law", "discrete", "output", "output of the motion", "switch"])
def test_short_runs(what):
    ask = {
        "law": lambda f: ran(control=f)["v"].values,
        "discrete": lambda f: ran(control=f)["v"].values,
        "output": lambda f: ran(outputs={"x": f})["x"].values,
        "output of the motion": lambda f: ran(outputs={"x": f})["x"].values,
    }
    make = {
        "law": feedback,
        "discrete": sampled,
        "output": lambda f: lambda K: f() * K.q[0],
        "output of the motion": lambda f: pf.of_motion(lambda T, motion: f() * motion.v_dot),
    }
    if what in make:
        return check(make[what], ask[what])
    mode = pf.Parameter("mode", 0.0)
    m = rod(parameters=[mode], forces=[pf.forces.potential("V", lambda K: mode.symbol * K.q[0])])
    return check(lambda f: {"mode": lambda K: f()},
                 lambda s: pf.run(m, Q, duration=0.03, step=0.01, backend="interpreter", switches=s)["q"].values)  # fmt: skip


@pytest.mark.parametrize("what", ["gradient", "along", "zero"])
def test_functions_given_to_calculus_are_evaluated_anew(what):
    m = rod()
    ask = {
        "gradient": lambda f: pf.calculus.directional_derivative(m, Q, V, f=f),
        "along": lambda f: pf.calculus.linearise_along(m, Q, V, V, f=lambda K, a: f(K)).F0 if f.__name__ != "g" else None,
        "zero": lambda f: pf.calculus.covariant_hessian(m, Q, f=f),
    }[what]
    if what == "along":
        return check(lambda f: lambda K, a: f() * K.q[0] ** 2, lambda f: pf.calculus.linearise_along(m, Q, V, V, f=f).F0)
    return check(lambda f: lambda K: f() * K.q[0] ** 2, ask)


def test_a_change_of_the_bodies_that_a_function_reads_counts():
    """Two welded bodies stand in one place, so only the reaction between them shows which of them a function reads."""
    name = "rod"
    weld = pf.joint("weld", "fixed", "rod", "tool", placement=pf.pose((0, 0, -1)))
    place = {"rod": (0, 0, -1), "tool": (0, 0, 0)}
    m = rod(bodies=[pf.body("tool", 0.2)], joints=[weld],
            constraints=[pf.holonomic("c", lambda K: K.position(name, place[name])[2])])  # fmt: skip
    found = []
    for name in ("rod", "tool", "rod"):  # noqa: B007  the function reads it
        found.append(pf.reaction_wrench(m, "weld", [0.3, np.pi / 2], [0, 0]).wrench)
    np.testing.assert_array_equal(found[0], found[2])
    assert np.abs(found[0] - found[1]).max() > 1


def test_a_function_that_differs_at_every_call_is_refused():
    calls = []

    def V(K):
        calls.append(0)
        return len(calls) * K.q[0]

    with pytest.raises(pf.ModelError, match="'V' of 'rod' returns different expressions each time"):
        pf.energy(rod(forces=[pf.forces.potential("V", V)]), Q)


def test_digests_follow_the_results_of_functions():
    m = rod(forces=[pf.forces.potential("V", lambda K: k * K.q[0] ** 2)])
    keys = []
    for value in VALUES:
        set_k(value)
        keys.append(digest(m))
    assert keys[0] == keys[3] and len(set(keys)) == 3


# -- what a second trace keeps -------------------------------------------------------------------------------------------


def test_a_second_look_at_functions_derives_no_kinematics(monkeypatch):
    """Only what the functions themselves do is done again: each is called for its value, and once more for its bodies."""
    calls, derived = [], []

    def V(K):
        calls.append(0)
        return k * tip(K)[2] ** 2

    m = rod(forces=[pf.forces.potential("V", V)])
    was, motion = digest(m), kinematics.motion
    calls.clear()
    monkeypatch.setattr(kinematics, "motion", lambda *given: derived.append(0) or motion(*given))
    assert digest(m) == was and len(calls) == 2 and not derived
    set_k(2.0)
    try:
        assert digest(m) != was and not derived
    finally:
        set_k(1.0)


LOOKS = {
    "run": lambda m: pf.run(m, {"hinge": 0.7}, duration=1e-2, step=5e-3, backend="numpy"),
    "assemble": lambda m: pf.assemble(m, {"hinge": 0.7}),
    "equilibrium": lambda m: pf.equilibrium(m, {"hinge": 0.1}),
    "impact": lambda m: pf.impact(m, [0.3, 0.7], [1.0, 0.0]),
    "inverse": lambda m: pf.inverse_dynamics(m, [0.3, 0.7], [0, 0], [0, 0], actuated=["hinge"]),
    "accelerations": lambda m: pf.forward_dynamics(m, [0.3, 0.7]),
}


@pytest.mark.parametrize("ask", LOOKS)
def test_a_call_looks_at_functions_once(ask):
    calls = []

    def V(K):
        calls.append(0)
        return k * tip(K)[2] + K.q[0] ** 2

    m = rod(constraints=[pf.holonomic("c", lambda K: K.q[0] - 0.3)], forces=[pf.forces.potential("V", V)])
    LOOKS[ask](m)
    calls.clear()
    LOOKS[ask](m)
    assert len(calls) == 2, "for its value, and for the bodies on which it acts"


def test_a_function_that_writes_into_what_it_is_given_is_traced_alike_each_time():
    def V(K):
        x = K.joint("loop")
        x[0] = 2 * x[0]
        return k * x[0] ** 2

    loop = pf.closure("loop", "planar", "world", "rod", axis=Y, stiffness=(0, 0, 0))
    m = rod(constraints=[loop], forces=[pf.forces.potential("V", V)])
    keys = []
    for value in (1.0, 1.0, 2.0, 2.0, 1.0, 1.0):
        set_k(value)
        keys.append(digest(m))
    assert keys == [keys[0], keys[0], keys[2], keys[2], keys[0], keys[0]] and keys[0] != keys[2]


def test_a_pose_cannot_be_changed_in_place():
    def V(K):
        X = K.pose("rod")
        X.p[2] = X.p[2] + k
        return X.p[2]

    with pytest.raises(pf.ModelError, match=r"force 'V': .*cannot be changed in place: copy it first"):
        digest(rod(forces=[pf.forces.potential("V", V)]))


def test_a_function_that_fails_later_is_named_and_may_recover():
    factor = [1.0]
    m = rod(forces=[pf.forces.potential("V", lambda K: factor[0] * K.q[0])])
    was = pf.energy(m, Q).potential
    factor[0] = "two"
    for _ in range(2):
        with pytest.raises(pf.ModelError, match="force 'V'"):
            pf.energy(m, Q)
    factor[0] = ca.SX.sym("foreign")
    for _ in range(2):
        with pytest.raises(pf.ModelError, match="force 'V' uses symbols that do not belong to the mechanism"):
            pf.energy(m, Q)
    factor[0] = np.nan
    for _ in range(2):
        with pytest.raises(pf.ModelError, match=r"force 'V'.* nan"):
            pf.energy(m, Q)
    factor[0] = 1.0
    assert pf.energy(m, Q).potential == was


def test_a_function_that_begins_to_differ_at_every_call_is_refused():
    random, free = np.random.default_rng(1), [False]
    m = rod(forces=[pf.forces.potential("V", lambda K: (random.uniform() if free[0] else 1.0) * K.q[0])])
    assert pf.energy(m, Q).potential
    free[0] = True
    with pytest.raises(pf.ModelError, match="'V' of 'rod' returns different expressions each time"):
        pf.energy(m, Q)


def test_a_function_that_reads_another_parameter_counts():
    a, b = pf.Parameter("a", 1.0), pf.Parameter("b", 10.0)
    use = [a]
    m = rod(parameters=[a, b], forces=[pf.forces.potential("V", lambda K: use[0] * K.q[0])])
    for read, given in ((a, 1.0), (b, 10.0), (a, 1.0)):
        use[0] = read
        expected = given * Q[0] - 0.5 * 9.81 * np.cos(Q[1])
        assert pf.energy(m, Q).potential == pytest.approx(expected, rel=1e-14)


def test_checks_compare_what_is_known_of_functions(monkeypatch):
    """With PFAFFIAN_CHECK a function that is taken for unchanged is traced and compared."""
    m = rod(forces=[pf.forces.potential("V", lambda K: k * K.q[0] ** 2)])
    digest(m)
    monkeypatch.setattr(remember, "CHECKING", True)
    digest(m)
    monkeypatch.setattr(traced_now, "_returned_now", lambda _: vars(m)["(last traced)"][0][0].returned)
    set_k(2.0)
    try:
        with pytest.raises(BuildError, match="functions of 'rod'"):
            digest(m)
    finally:
        set_k(1.0)


PROCESS = """
import sys, pfaffian as pf
k = float(sys.argv[1])
ball, rail = pf.body("ball", 1.0), pf.joint("rail", "prismatic", "world", "ball")
m = pf.mechanism("own", [ball], [rail], forces=[pf.forces.potential("V", lambda K: k * K.q[0])], gravity=(0, 0, 0))
print(pf.forward_dynamics(m, [1.0]).v_dot[0], pf.run(m, duration=0.5, step=0.25)["v"].values[-1, 0])
"""


def test_processes_with_one_store_follow_the_function():
    for value in ("1.0", "4.0"):
        done = subprocess.run([sys.executable, "-c", PROCESS, value], capture_output=True, text=True, check=True)
        assert [float(x) for x in done.stdout.split()] == pytest.approx([-float(value), -float(value) / 2], rel=1e-14)
