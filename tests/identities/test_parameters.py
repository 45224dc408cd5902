"""A value given at run time gives the same results as a mechanism built with the number."""

from __future__ import annotations

import numpy as np
import pytest

import pfaffian as pf
from tests.tolerance import ALGEBRA, close

NAMES = (
    "mass",
    "length",
    "inertia",
    "stiffness",
    "rest",
    "damping",
    "armature",
    "gravity",
    "gear",
    "push",
    "offset",
    "drive",
)
VALUES = dict(zip(NAMES, (1.7, 0.8, 0.3, 4.0, 0.2, 0.1, 0.05, -8.0, 2.0, 1.5, 0.9, 0.4), strict=True))


def machine(**x) -> pf.Mechanism:
    """A mechanism with every kind of number of a model, from these values."""
    bodies = [
        pf.body("a", x["mass"], com=(x["length"] / 2, 0, 0.1), inertia=x["inertia"]),
        pf.body("b", 2 * x["mass"], com=(0, 0.1, 0), inertia=(0.2, 0.2, x["inertia"] / 2)),
    ]
    joints = [
        pf.joint("j", "revolute", "world", "a", axis=(0, 1, 0), damping=x["damping"], armature=x["armature"]),
        pf.joint("k", "prismatic", "a", "b", placement=pf.pose((x["length"], 0, 0), rpy=(0, x["offset"], 0)),
                 stiffness=x["stiffness"], rest=x["rest"]),
    ]  # fmt: skip
    forces = [
        pf.spring("s", "world", "b", point_a=(x["offset"], 0, 1), stiffness=x["stiffness"], rest=x["rest"], damping=0.2),
        pf.wrench("w", "b", value=(x["push"], 0, 0, 0, 0, 1)),
    ]
    drive = x["drive"].symbol if isinstance(x["drive"], pf.Parameter) else x["drive"]
    return pf.mechanism(
        "machine", bodies, joints, forces=forces, gravity=(0, 0, x["gravity"]),
        actuators=[pf.actuator("motor", "j", gear=x["gear"])],
        constraints=[pf.nonholonomic("drive", lambda k: k.velocity("b")[0] - drive)],
        parameters=[p for p in x.values() if isinstance(p, pf.Parameter)],
    )  # fmt: skip


PARTS = {
    "M": lambda T: T.M, "c": lambda T: T.c, "f": lambda T: T.f, "B": lambda T: T.B, "V": lambda T: T.V,
    "A": lambda T: T.A, "b": lambda T: T.b, "eta": lambda T: T.rows.eta,
    "v_dot": lambda T: pf.FORMULATIONS["gauss"](T).v_dot,
}  # fmt: skip


@pytest.mark.parametrize("seed", range(3))
def test_values_at_run_time_equal_numbers_in_the_model(seed):
    random = np.random.default_rng(seed)
    values = {n: x * random.uniform(0.7, 1.3) for n, x in VALUES.items()}
    open_ = machine(**{n: pf.Parameter(n, x) for n, x in VALUES.items()})
    q, v, u = random.normal(size=2), random.normal(size=2), [0.7]
    given = pf.compile_terms(open_, PARTS, backend="numpy", lanes=1)(q, v, u, parameters=values)
    built = pf.compile_terms(machine(**values), PARTS, backend="numpy", lanes=1)(q, v, u)
    by_default = pf.compile_terms(open_, PARTS, backend="numpy", lanes=1)(q, v, u)
    for name in PARTS:
        close(given[name], built[name], ALGEBRA, f"{name} with parameters", 1 + np.abs(built[name]).max())
        assert not np.allclose(given[name], by_default[name], rtol=1e-6) or name in ("eta",), name


def test_runs_with_parameters_equal_rebuilt_mechanisms():
    open_ = machine(**{n: pf.Parameter(n, x) for n, x in VALUES.items()})
    lengths = np.array([0.6, 0.8, 1.1])
    batch = pf.run(open_, [0.3, 0.1], parameters={"length": lengths}, duration=0.3, every=100)
    for i, length in enumerate(lengths):
        one = pf.run(machine(**VALUES | {"length": length}), [0.3, 0.1], duration=0.3, every=100)
        close(batch.q.values[i], one.q.values, 1e4 * ALGEBRA, "run with parameters")  # rounding of 300 steps


def test_batch_of_terms_equals_single_states():
    open_ = machine(**{n: pf.Parameter(n, x) for n, x in VALUES.items()})
    random = np.random.default_rng(0)
    q, v, p = random.normal(size=(5, 2)), random.normal(size=(5, 2)), {"mass": random.uniform(1, 2, 5)}
    compiled = pf.compile_terms(open_, PARTS)
    many = compiled(q, v, parameters=p)
    for i in range(5):
        one = compiled(q[i], v[i], parameters={"mass": p["mass"][i]})
        for name in PARTS:
            assert np.array_equal(many[name][i], one[name]), name
