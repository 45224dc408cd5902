"""Parts of a model are equal if their contents are equal, and pickle and copy preserve them with their parameters."""

from __future__ import annotations

import copy
import gc
import pickle
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import casadi as ca
import numpy as np
import pytest

import pfaffian as pf
from tests.random_mechanisms import constrained

FOLDER = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Level:
    """A user's function with a parameter: height of the rod's tip minus a given height."""

    height: pf.Parameter

    def __call__(self, k: pf.Kinematics) -> ca.SX:
        return k.position("rod", (1, 0, 0))[2] - self.height


def still(k: pf.Kinematics) -> ca.SX:
    return k.joint_rate("slide")


def parts(length: float = 1.0, name: str = "l", **of_joint) -> dict:
    """One part of every kind, with numbers that depend on two parameters."""
    l, h = pf.Parameter(name, length, "m"), pf.Parameter("h", 0.2, "m")
    return {
        "l": l,
        "body": pf.body("rod", mass=2 * l, com=(l / 2, 0, 0), inertia=(0.01, l**2 / 6, l**2 / 6)),
        "cart": pf.body("cart", mass=1.0, inertia=0.1),
        "slide": pf.joint("slide", "prismatic", "world", "cart", stiffness=l, **of_joint),
        "hinge": pf.joint("hinge", "spherical", "cart", "rod", placement=pf.pose((0, 0, l / 3), rpy=(0.1, 0.2, 0.3))),
        "closure": pf.closure("loop", "point-on-plane", "world", "rod", placement_a=pf.pose((l, 0, 0))),
        "phi": pf.holonomic("level", Level(h)),
        "eta": pf.nonholonomic("still", still),
        "servo": pf.servo(pf.nonholonomic("hold", still), ["motor"], stiffness=l, damping=3),
        "spring": pf.spring("spring", "cart", "rod", point_b=(l, 0, 0), stiffness=2),
        "wrench": pf.wrench("push", "rod", point=(l, 0, 0)),
        "weight": pf.wrench("weight", "rod", value=(0, 0, l, 0, 0, 0)),
        "function": pf.wrench("wind", "rod", still, point=(l, 0, 0), by="cart"),
        "potential": pf.forces.potential("V", Level(h)),
        "dissipation": pf.forces.dissipation("R", Level(h)),
        "kinetic": pf.forces.kinetic_energy("T", Level(h)),
        "generalised": pf.forces.generalised_force("f", still, joint="slide"),
        "motor": pf.actuator("motor", "slide", gear=l),
        "pose": pf.pose((l, 0, 1)),
        "h": h,
    }


def machine(x: dict, **changes) -> pf.Mechanism:
    given = {
        "constraints": [x["closure"], x["phi"]],
        "forces": [x["spring"], x["wrench"], x["weight"]],
        "actuators": [x["motor"]],
        "parameters": [x["l"], x["h"]],
    }
    return pf.mechanism("machine", [x["cart"], x["body"]], [x["slide"], x["hinge"]], **given | changes)


ITEMS = [n for n in parts() if n not in ("l", "h")]


@pytest.mark.parametrize("name", ITEMS)
def test_an_item_is_equal_by_content(name):
    one, same, other = parts(), parts(), parts(length=1.5)
    if name in ("phi", "eta", "servo"):  # these contain functions of the user
        assert one[name] == same[name]
    assert one[name] == same[name] and hash(one[name]) == hash(same[name])
    assert one[name] is not same[name]
    read = pickle.loads(pickle.dumps(one[name]))
    assert read == one[name] and hash(read) == hash(one[name])
    assert copy.deepcopy(one[name]) == copy.copy(one[name]) == one[name]
    if name not in ("cart", "phi", "eta", "wrench_free", "potential", "dissipation", "kinetic", "generalised"):
        assert one[name] != other[name], "a parameter with another default value"
    assert one[name] != one["l"]


@pytest.mark.parametrize(
    "change",
    [
        {"gravity": (0, 0, -9.8)},
        {"actuators": []},
        {"constraints": []},
        {"lenient": True},
        {"parameters": "swapped"},
        {"forces": []},
    ],
    ids=lambda c: next(iter(c)),
)
def test_mechanisms_differ_by_any_part(change):
    x = parts()
    m = machine(x)
    assert m == machine(x) == machine(parts()) and len({m, machine(x), machine(parts())}) == 1
    change = {"parameters": [x["h"], x["l"]]} if change.get("parameters") else change
    assert m != machine(x, **change)
    assert m != pf.mechanism("other", **{f: getattr(m, f) for f in ("bodies", "joints", "constraints", "forces", "actuators")},
                             parameters=m.parameters)  # fmt: skip
    assert m != machine(parts(limits=(-1, 1)))
    assert m != machine(parts(name="length"))


def test_a_function_of_the_user_is_equal_only_to_itself():
    f = lambda k: k.q[0]  # noqa: E731
    assert pf.holonomic("c", f) == pf.holonomic("c", f) != pf.holonomic("c", lambda k: k.q[0])

    class Odd:
        __hash__ = None

        def __call__(self, k):
            return k.q[0]

    odd = Odd()
    assert pf.holonomic("c", odd) == pf.holonomic("c", odd) != pf.holonomic("c", Odd())


def test_equal_mechanisms_with_different_parameter_objects_both_run():
    """Cached expressions of one mechanism must not bring its symbols into the other."""
    results = []
    for _ in range(2):
        m = machine(parts())
        T = pf.compile_terms(m, {"c": lambda T: T.c, "A": lambda T: T.A}, backend="numpy", lanes=1)
        results.append(T(m.neutral(), np.ones(m.nv), parameters={"l": 1.3}))
    np.testing.assert_array_equal(results[0]["c"], results[1]["c"])


def test_a_parameter_stays_the_same_object():
    """Unpickled parts share one Parameter: within a pickle, across pickles, and with the living one."""
    x = parts()
    body, l = pickle.loads(pickle.dumps((x["body"], x["l"])))
    assert l is x["l"] and ca.is_equal(body.mass, 2 * x["l"], 3)
    m = copy.deepcopy(machine(x))
    assert m.parameters[0] is x["l"]
    assert m.with_(bodies=[x["cart"], pf.body("rod", mass=x["l"], inertia=1.0)]).parameters == m.parameters
    stored = [pickle.dumps(x["body"]), pickle.dumps(x["slide"]), pickle.dumps(x["l"])]
    before = x["l"].symbol.element_hash()
    del x, body, l, m
    gc.collect()
    body, slide, l = map(pickle.loads, stored)
    assert ca.is_equal(body.mass, 2 * l, 3) and ca.is_equal(slide.stiffness, l.symbol)
    assert isinstance(before, int)


def test_another_process_reads_the_same_machine(tmp_path):
    m = machine(parts())
    (tmp_path / "m.pickle").write_bytes(pickle.dumps(m))
    code = (
        "import pickle, sys, numpy as np; sys.path.insert(0, sys.argv[2]); import pfaffian as pf;"
        "m = pickle.load(open(sys.argv[1], 'rb'));"
        "f = pf.compile_terms(m, {'c': lambda T: T.c, 'b': lambda T: T.b}, backend='numpy', lanes=1);"
        "r = f(np.arange(1.0, 6), np.ones(4), parameters={'l': 1.4, 'h': 0.1});"
        "print([x.hex() for x in np.concatenate([r['c'], r['b']])], m.q_names)"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "m.pickle"), str(FOLDER)], capture_output=True, text=True, check=True
    ).stdout
    f = pf.compile_terms(m, {"c": lambda T: T.c, "b": lambda T: T.b}, backend="numpy", lanes=1)
    r = f(np.arange(1.0, 6), np.ones(4), parameters={"l": 1.4, "h": 0.1})
    assert answer.strip() == f"{[x.hex() for x in np.concatenate([r['c'], r['b']])]} {m.q_names}"


def test_a_random_mechanism_can_be_pickled():
    m = constrained(np.random.default_rng(3), ["free", "planar", "spherical"], [-1, 0, 1], ["weld"], ["duplicate"]).m
    assert pickle.loads(pickle.dumps(m)) == m


@pytest.mark.parametrize("part", ["holonomic", "nonholonomic"])
def test_a_function_that_does_not_pickle_is_named(part):
    x = parts()
    m = machine(x, constraints=[getattr(pf, part)("odd", lambda k: k.v[0])])
    with pytest.raises(pf.ModelError, match=f"{part} 'odd': its function (phi|eta) cannot be pickled.*top level of a module"):
        pickle.dumps(m)
    assert copy.deepcopy(m) == m


def test_a_symbol_of_no_parameter_is_refused_by_pickle():
    with pytest.raises(pf.ModelError, match="body 'b' cannot be pickled: its mass uses a symbol of no Parameter"):
        pickle.dumps(pf.body("b", mass=ca.SX.sym("m")))


def test_control_needs_no_separate_import():
    code = "import pfaffian as pf; print(pf.control.projected.__name__, 'control' in dir(pf))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["projected", "True"]
