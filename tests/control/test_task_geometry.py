"""Tasks by geometry move as their coordinates differentiated do, on machines of every joint kind."""

import casadi as ca
import numpy as np
import pytest

import pfaffian as pf
from pfaffian import control
from pfaffian.control.task import GeometricTask, Task, TaskTerms, task_terms
from pfaffian.maths import so3
from pfaffian.terms.connection import rate
from tests.random_mechanisms import JOINTS, Case, matrices, random_rotation, random_tree
from tests.tolerance import ALGEBRA, DERIVATIVE, close

SLIGHT = [1e-3, 1e-6, 1e-9, 1e-30, 1e-160, 0.0]
"""Angles [rad] at which factors of the logarithm's rate are quotients of roundings."""


def tree(kinds: list[str], parents: list[int], seed: int) -> pf.Mechanism:
    return random_tree(np.random.default_rng(seed), kinds, parents)


def following(seed: int) -> pf.Mechanism:
    """A joint that follows another one."""
    m = tree(["revolute", "prismatic", "revolute"], [-1, 0, 1], seed)
    first, second, third = m.joints
    follows = pf.joint("j2", "revolute", "b1", "b2", placement=third.placement, mimic=pf.mimic({"j0": 0.7}))
    return m.with_(joints=[first, second, follows])


def chosen_velocities(seed: int) -> pf.Mechanism:
    """Velocities that are no rates of joints, with a change of their own."""
    m = tree(["revolute", "spherical", "prismatic"], [-1, 0, 1], seed)
    mixed = ca.DM(0.3 * np.random.default_rng(seed).normal(size=(m.nv, m.nv)))
    T = lambda k: ca.SX.eye(m.nv) + mixed * ca.sin(k.position("b1")[0])  # noqa: E731
    return m.with_(velocities=pf.velocities(T, [f"y{i}" for i in range(m.nv)]))


MACHINES = {
    **{f"{kind} within a chain": (lambda kind=kind: tree(["revolute", kind, "spherical"], [-1, 0, 1], 3)) for kind in JOINTS},
    "free base": lambda: tree(["free", "revolute", "universal"], [-1, 0, 0], 5),
    "mimic": lambda: following(7),
    "chosen velocities": lambda: chosen_velocities(11),
}



def tasks(random: np.random.Generator) -> dict[str, Task]:
    at = random.normal(size=3)
    return {
        "point": control.point("b2", at),
        "some axes": control.point("b1", at, (2, 0)),
        "pose": control.pose("b2", random_rotation(random)),
        "stack": control.stack(control.pose("b1"), lambda k: ca.sin(k.t) * k.position("b2")[:2], control.centre_of_mass([1])),
    }


@pytest.mark.parametrize("name", MACHINES)
def test_geometry_moves_tasks_as_derivatives_do(name):
    m, random = MACHINES[name](), np.random.default_rng(2)
    case = Case(m, pf.random_configuration(m, random), random.normal(size=m.nv), np.zeros(0), 0.4)
    parts = {}
    for title, task in tasks(random).items():
        assert isinstance(task, GeometricTask)
        for way, chosen in (("geometry", task), ("derivative", lambda k, task=task: task(k))):
            for part in TaskTerms._fields:
                parts[title, way, part] = lambda T, t=chosen, part=part: getattr(task_terms(T, t), part)
    found = matrices(case, parts)
    for title, way, part in parts:
        expected = found[title, "derivative", part]
        size = 100 * (1 + np.abs(found[title, "derivative", "drift"]).max())
        close(found[title, way, part], expected, DERIVATIVE, f"{title} {part}", size)


@pytest.mark.parametrize("name", ["schoenflies within a chain", "free base", "chosen velocities"])
def test_bias_acceleration_is_the_rate_of_the_twist_at_constant_v(name):
    m, random = MACHINES[name](), np.random.default_rng(4)
    case = Case(m, pf.random_configuration(m, random), random.normal(size=m.nv), np.zeros(0), 0.0)
    x = random.normal(size=3)
    twist = lambda k: k.jacobian("b2", "LOCAL_WORLD_ALIGNED", x) @ k.v  # noqa: E731
    r = matrices(case, {
        "bias": lambda T: T.kinematics.bias_acceleration("b2", x),
        "rate": lambda T: rate(T.kinematics, twist(T.kinematics)),
        "still": lambda T: T.kinematics.bias_acceleration("world", x),
    })  # fmt: skip
    close(r["bias"], r["rate"], DERIVATIVE, "bias", 10 * (1 + np.abs(r["rate"]).max()))
    assert not r["still"].any()


def moved(phi: np.ndarray, w: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """L, L_dot w, and L of `so3.dexp_left_inv`, at the rotation exp(phi)."""
    x = so3.log_motion(so3.exp(ca.DM(phi)), ca.DM(w))
    return np.array(x.L), np.array(x.bias).ravel(), np.array(so3.dexp_left_inv(ca.DM(phi)))


@pytest.mark.parametrize("angle", [3.0, 2.0, 0.7, 0.05, *SLIGHT])
def test_rate_of_the_logarithm(angle):
    """L_dot w against the second derivative along the motion exp(t w) R, by the series of dexp_left_inv near R = 1."""
    random = np.random.default_rng(8)
    axis, w = random.normal(size=3), random.normal(size=3)
    phi = angle * axis / np.linalg.norm(axis)
    L, bias, expected = moved(phi, w)
    close(L, expected, ALGEBRA, "L", 10.0)
    s, along = ca.SX.sym("s", 3), ca.SX.sym("w", 3)
    turned = ca.jtimes(so3.dexp_left_inv(s) @ along, s, so3.dexp_left_inv(s) @ along)
    L_dot_w = np.array(ca.Function("f", [s, along], [turned])(phi, w)).ravel()
    assert np.isfinite(bias).all()
    close(bias, L_dot_w, DERIVATIVE, "L_dot w", max(angle, 1e-300) * 10 * np.linalg.norm(w) ** 2)
