"""Formulations and integrators that a user adds: results are those of what the function computes when they are requested."""

from __future__ import annotations

import functools
import subprocess
import sys

import casadi as ca
import numpy as np
import pytest

import pfaffian as pf
from pfaffian import dynamics
from pfaffian.control.outputs import KINDS as OUTPUTS
from pfaffian.errors import BuildError, ModelError
from pfaffian.evaluate.reactions import compiled_wrenches
from pfaffian.kernel import remember
from pfaffian.maths.closures import CLOSURES
from pfaffian.maths.subgroups import SUBGROUPS
from pfaffian.model.joint import KINDS
from pfaffian.simulate.step.integrators import INTEGRATORS, Integrator
from pfaffian.simulate.step.method import NO_FAULTS, Moved
from pfaffian.simulate.step.running_statistics import KINDS as STATISTICS
from pfaffian.states.system import as_system
from tests.by_scipy import run_adaptive
from tests.simulations import simulation
from tests.tolerance import ALGEBRA, INTEGRATED

MINE = pf.Scheme(formulation="mine")

k = 1.0
"""Global number that functions read."""


@pytest.fixture(autouse=True)
def _own_rows_are_removed():
    yield
    for table in (pf.FORMULATIONS, INTEGRATORS):
        table.pop("mine", None)


def crane(mass=3.0) -> pf.Mechanism:
    """A trolley with a load on a rod."""
    bodies = [pf.body("trolley", mass), pf.body("load", 1.5, (0, 0, -2.0), 0.2)]
    joints = [pf.joint("x", "prismatic", "world", "trolley", axis=(1, 0, 0)),
              pf.joint("swing", "revolute", "trolley", "load", axis=(0, 1, 0), damping=0.4)]  # fmt: skip
    return pf.mechanism("crane", bodies, joints, actuators=[pf.actuator("drive", "x")])


def steady(value):
    """A motion of constant acceleration."""
    return pf.Motion(ca.SX([value, -value]), ca.SX.zeros(2, 1), ca.SX(0))


class Held:
    def __init__(self):
        self.value = 1.0

    def __call__(self, terms):
        return steady(self.value)


def _global(value):
    globals()["k"] = value
    return _reads_global


def _reads_global(terms):
    return steady(k)


CELL, HELD = [1.0], Held()


def _cell(value):
    CELL[0] = value
    return _of_cell


_of_cell = (lambda cell: lambda terms: steady(cell[0]))(CELL)


def _object(value):
    HELD.value = value
    return HELD


WAYS = {
    "another function": lambda value: lambda terms: steady(value),
    "another default": lambda value: lambda terms, own=value: steady(own),
    "partial": lambda value: functools.partial(lambda own, terms: steady(own), value),
    "global": _global,
    "cell": _cell,
    "object": _object,
}
"""How the acceleration of a formulation is changed."""


def after_a_step(s):
    """The first coordinate after a step of a stepper."""
    s.step()
    return float(s.q[0])


ASKED = {
    "forward_dynamics": lambda m: pf.forward_dynamics(m, [0.3, 0.2], formulation="mine").v_dot[0],
    "run": lambda m: 2 * float(pf.run(m, duration=1.0, step=0.25, scheme=MINE, error_bound=np.inf).q[-1, 0]),
    "run_adaptive": lambda m: 2 * float(run_adaptive(m, times=[0.0, 1.0], scheme=MINE).q[-1, 0]),
    "stepper": lambda m: 2 * after_a_step(pf.stepper(m, step=1.0, scheme=MINE, backend="numpy")),
}
"""A result of a crane that equals the acceleration."""


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.filterwarnings("ignore::pfaffian.RunWarning")
def test_results_follow_the_function(way, asked):
    m, found = crane(), []
    for value in (1.0, 4.0, 1.0):
        pf.FORMULATIONS["mine"] = WAYS[way](value)
        found.append(ASKED[asked](m))
    assert found == pytest.approx([1.0, 4.0, 1.0], rel=INTEGRATED)


PROCESS = """
import sys, pfaffian as pf
value = float(sys.argv[1])
pf.FORMULATIONS["mine"] = lambda terms: pf.Motion([value], [0.0], 0.0)
m = pf.mechanism("block", [pf.body("block", 5.0)], [pf.joint("x", "prismatic", "world", "block", axis=(1, 0, 0))])
print(pf.forward_dynamics(m, [0.3], formulation="mine").v_dot[0])
"""


def test_processes_with_one_store():
    for value in ("7.0", "9.0"):
        done = subprocess.run([sys.executable, "-c", PROCESS, value], capture_output=True, text=True, check=True)
        assert done.stdout.split() == [value]


def test_the_wrenches_of_a_picture_follow_the_function():
    """On the carriage of a hoist acts its mass times the acceleration, and its weight."""
    m = pf.mechanism("hoist", [pf.body("carriage", 5.0)], [pf.joint("rail", "prismatic", "world", "carriage", axis=(0, 0, 1))])
    found = []
    for value in (1.0, -3.0, 1.0):
        pf.FORMULATIONS["mine"] = lambda terms, value=value: pf.Motion(ca.SX(value), ca.SX(1, 1), ca.SX(0))
        wrenches = compiled_wrenches(m, ("rail",), "LOCAL_WORLD_ALIGNED", "mine").matrices([0.2], [0.0], [], t=0.0)
        found.append(wrenches["through rail"][2, 0])
    assert found == pytest.approx([5 * (9.81 + value) for value in (1.0, -3.0, 1.0)], rel=ALGEBRA)


def test_a_deleted_name_is_unknown_although_its_results_are_stored():
    m = crane()
    pf.FORMULATIONS["mine"] = lambda terms: steady(3.0)
    for ask in ASKED.values():
        ask(m)
    del pf.FORMULATIONS["mine"]
    for ask in ASKED.values():
        with pytest.raises(ModelError, match="'mine' is unknown; one of auto, gauss"):
            ask(m)


def test_a_stepper_goes_on_with_its_function():
    pf.FORMULATIONS["mine"] = lambda terms: steady(1.0)
    s = pf.stepper(crane(), step=1.0, scheme=MINE, backend="numpy")
    pf.FORMULATIONS["mine"] = lambda terms: steady(2.0)
    assert after_a_step(s) == pytest.approx(0.5, rel=ALGEBRA)


def test_the_library_agrees_with_a_formulation_of_one_s_own_where_rows_are_independent():
    """The equations of docs/own_system.md, for a machine with a rod between two sliders."""

    def saddle_point(T):
        n, rows = T.M.shape[0], T.A.shape[0]
        x = ca.solve(ca.densify(ca.blockcat([[T.M, -T.A.T], [T.A, ca.SX(rows, rows)]])), ca.vertcat(T.force, T.b))
        return pf.Motion(x[:n], T.A.T @ x[n:], ca.SX(rows))

    pf.FORMULATIONS["mine"] = saddle_point
    sliders = [pf.body("a", 2.0), pf.body("b", 1.0)]
    rails = [pf.joint("a", "prismatic", "world", "a", axis=(1, 0, 0)), pf.joint("b", "prismatic", "world", "b", axis=(0, 0, 1))]
    rod = pf.closure("rod", "distance", "a", "b", length=2.0)
    m = pf.mechanism("trammel", sliders, rails, constraints=[rod])
    q, v = [2 * np.cos(0.6), 2 * np.sin(0.6)], [-0.5 * np.sin(0.6), 0.5 * np.cos(0.6)]
    mine, gauss = (pf.forward_dynamics(m, q, v, [], formulation=name) for name in ("mine", "gauss"))
    for one, other in zip(mine, gauss, strict=True):
        assert one == pytest.approx(other, rel=ALGEBRA, abs=ALGEBRA)


def test_a_key_of_a_formulation_of_the_library_traces_nothing(monkeypatch):
    def traced(*_):
        raise AssertionError("traced")

    m = crane()
    monkeypatch.setattr(dynamics, "graph", traced)
    ours = ["auto", *(name for name in pf.FORMULATIONS if not pf.FORMULATIONS.is_added(name))]  # other tests add some
    assert [dynamics.identity(name, m) for name in ours] == ours
    assert simulation(as_system(m), pf.Scheme()).key
    pf.FORMULATIONS["mine"] = lambda terms: steady(1.0)
    with pytest.raises(AssertionError, match="traced"):
        dynamics.identity("mine", m)


def test_checks_compare_formulations_of_one_s_own(monkeypatch):
    """A memory whose key knows only the name is detected."""
    m = crane()
    pf.FORMULATIONS["mine"] = lambda terms: steady(1.0)
    pf.forward_dynamics(m, [0.0, 0.0], formulation="mine")
    pf.FORMULATIONS["mine"] = lambda terms: steady(2.0)
    monkeypatch.setattr(remember, "CHECKING", True)
    pf.forward_dynamics(m, [0.0, 0.0], formulation="mine")
    monkeypatch.setattr("pfaffian.evaluate.compiled.identity", lambda name, m: name)
    monkeypatch.setattr("pfaffian.evaluate.compiled.check_unchanged", lambda *_: None)
    pf.forward_dynamics(m, [0.0, 0.0], formulation="mine")
    pf.FORMULATIONS["mine"] = lambda terms: steady(3.0)
    with pytest.raises(BuildError, match="its key leaves out something"):
        pf.forward_dynamics(m, [0.0, 0.0], formulation="mine")


@pytest.mark.parametrize("ask", [ASKED["forward_dynamics"], ASKED["run"]], ids=["forward_dynamics", "run"])
def test_a_formulation_that_never_returns_the_same_is_refused(ask):
    random = np.random.default_rng(1)
    pf.FORMULATIONS["mine"] = lambda terms: steady(random.normal())
    with pytest.raises(ModelError, match="no longer returns the motion"):
        ask(crane())


WRONG = {
    "nothing": (lambda T: None, r"must return a pf.Motion\(v_dot, reaction, rank\), got None"),
    "a tuple": (lambda T: tuple(steady(1.0)), "must return a pf.Motion"),
    "too few": (lambda T: steady(1.0)._replace(v_dot=ca.SX(1)), "v_dot has 1 numbers where 2 are needed"),
    "no reaction": (lambda T: steady(1.0)._replace(reaction=ca.SX(0, 1)), "reaction has 0 numbers where 2"),
    "ranks": (lambda T: steady(1.0)._replace(rank=ca.SX(2, 1)), "rank has 2 numbers where 1"),
    "a foreign symbol": (lambda T: steady(1.0)._replace(v_dot=ca.SX.sym("x", 2)), "v_dot uses symbols that do not belong"),
    "fails": (lambda T: 1 / 0, "in test_own_formulation.py line .* ZeroDivisionError"),
    "nan": (lambda T: steady(np.nan), "the expression contains nan or inf"),
    "no argument": (lambda: steady(1.0), "a function of 1 argument"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_formulations_are_named(case):
    f, message = WRONG[case]
    pf.FORMULATIONS["mine"] = f
    for ask in (ASKED["forward_dynamics"], ASKED["run"]):
        with pytest.raises(ModelError, match=f"formulation 'mine'.*{message}"):
            ask(crane())


@pytest.mark.parametrize("what", ["step_derivatives", "casadi_function"])
def test_derivatives_of_another_motion_are_refused(what):
    pf.FORMULATIONS["mine"] = lambda terms: steady(1.0)
    with pytest.raises(ModelError, match=f"{what} differentiates .*'mine' may give another"):
        if what == "casadi_function":
            pf.casadi_function(crane(), "step", step=0.1, scheme=MINE)
        else:
            pf.calculus.step_derivatives(crane(), [0.0, 0.0], step=0.1, scheme=MINE)


def longer(factor):
    """An integrator: Euler's rule with steps that are longer by a factor."""

    def step(s):
        first = s.start(s.x, s.u0, s.t)
        x = s.variables.state(s.variables.stepped(s.x) + factor * s.h * first.rate)
        return Moved(x, first.faults, first.near, NO_FAULTS)

    return Integrator(step, 1)


@pytest.mark.filterwarnings("ignore::pfaffian.RunWarning")
def test_an_integrator_of_one_s_own():
    """With v = 1 and no acceleration the trolley moves by the factor."""
    m, scheme = crane(), lambda: pf.Scheme(integrator="mine", formulation="mine")
    pf.FORMULATIONS["mine"] = lambda terms: steady(0.0)
    for factor in (1.0, 3.0, 1.0):
        INTEGRATORS["mine"] = longer(factor)
        found = pf.run(m, v={"x": 1.0}, duration=1.0, step=0.5, scheme=scheme(), error_bound=np.inf)
        assert float(found.q[-1, 0]) == pytest.approx(factor, rel=ALGEBRA)
    keys = set()
    for row in (longer(1.0), longer(2.0), longer(1.0)._replace(order=2), longer(1.0)._replace(faults=("other",))):
        INTEGRATORS["mine"] = row
        keys.add(simulation(as_system(m), scheme()).key)
    assert len(keys) == 4
    chosen = scheme()
    del INTEGRATORS["mine"]
    for ask in (scheme, lambda: pf.run(m, duration=1.0, scheme=chosen)):
        with pytest.raises(ModelError, match="integrator 'mine' is unknown; one of rk4, euler"):
            ask()
    with pytest.raises(ModelError, match="an Integrator is needed, got 3"):
        INTEGRATORS["mine"] = 3


TABLES = [pf.FORMULATIONS, INTEGRATORS, KINDS, SUBGROUPS, CLOSURES, OUTPUTS, STATISTICS]


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table._what)
def test_rows_of_the_library_cannot_be_changed(table):
    name, other, before = *list(table)[:2], dict(table)
    changes = {
        "set": lambda: table.__setitem__(name, table[other]),
        "delete": lambda: table.__delitem__(name),
        "update": lambda: table.update({name: table[other]}),
        "pop": lambda: table.pop(name),
        "clear": lambda: table.clear(),
    }
    for way, change in changes.items():
        if way in ("set", "delete") or hasattr(table, way):
            with pytest.raises(ModelError, match=f"'{name}': rows of the library cannot be changed; "):
                change()
    assert dict(table) == before


@pytest.mark.parametrize("name", ["auto", "gauss", "", 3, None])
def test_names_that_a_formulation_cannot_have(name):
    with pytest.raises(ModelError, match=r"cannot be changed|must be a non-empty text"):
        pf.FORMULATIONS[name] = lambda terms: steady(1.0)
    with pytest.raises(ModelError, match="a function of Terms"):
        pf.FORMULATIONS["mine"] = steady(1.0)
