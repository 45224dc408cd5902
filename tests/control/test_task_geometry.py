"""Terms of geometric tasks against differentiated coordinates, on machines of every joint kind."""

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


def tree(kinds: list[str], parents: list[int], seed: int) -> pf.Mechanism:
    return random_tree(np.random.default_rng(seed), kinds, parents)


def following(seed: int) -> pf.Mechanism:
    """A chain in which the third joint follows the first."""
    m = tree(["revolute", "prismatic", "revolute"], [-1, 0, 1], seed)
    first, second, third = m.joints
    follows = pf.joint("j2", "revolute", "b1", "b2", placement=third.placement, mimic=pf.mimic({"j0": 0.7}))
    return m.with_(joints=[first, second, follows])


def chosen_velocities(seed: int) -> pf.Mechanism:
    """A chain along velocities that are not joint rates and depend on the configuration."""
    m = tree(["revolute", "spherical", "prismatic"], [-1, 0, 1], seed)
    mixed = ca.DM(0.3 * np.random.default_rng(seed).normal(size=(m.nv, m.nv)))
    T = lambda k: ca.SX.eye(m.nv) + mixed * ca.sin(k.position("b1")[0])  # noqa: E731
    return m.with_(velocities=pf.velocities(T, [f"y{i}" for i in range(m.nv)]))


CHAINS = [JOINTS[i : i + 3] for i in range(0, len(JOINTS), 3)]
MACHINES = {
    **{", ".join(kinds): (lambda kinds=kinds: tree(list(kinds), [-1, 0, 1][: len(kinds)], 3)) for kinds in CHAINS[:-1]},
    CHAINS[-1][0]: lambda: tree(["revolute", CHAINS[-1][0], "spherical"], [-1, 0, 1], 3),
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
def test_terms_of_geometric_tasks_are_those_of_derivatives(name):
    m, random = MACHINES[name](), np.random.default_rng(2)
    case = Case(m, pf.random_configuration(m, random), random.normal(size=m.nv), np.zeros(0), 0.4)
    made: dict[tuple[str, str], TaskTerms] = {}

    def terms(T: pf.Terms, title: str, way: str) -> TaskTerms:
        if (title, way) not in made:
            task = chosen[title]
            made[title, way] = task_terms(T, task if way == "geometry" else lambda k: task(k))
        return made[title, way]

    chosen = tasks(random)
    assert all(isinstance(task, GeometricTask) for task in chosen.values())
    keys = [(title, way, part) for title in chosen for way in ("geometry", "derivative") for part in TaskTerms._fields]
    found = matrices(case, {key: lambda T, key=key: getattr(terms(T, *key[:2]), key[2]) for key in keys})
    for title, way, part in keys:
        size = 100 * (1 + np.abs(found[title, "derivative", "drift"]).max())
        close(found[title, way, part], found[title, "derivative", part], DERIVATIVE, f"{title} {part}", size)


@pytest.mark.parametrize("name", ["schoenflies", "free base", "chosen velocities"])
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


def log_motion(phi: np.ndarray, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """L and L_dot w at the rotation exp(phi), for the angular velocity w."""
    x = so3.log_motion(so3.exp(ca.DM(phi)), ca.DM(w))
    return np.array(x.L), np.array(x.bias).ravel()


def at_angle(angle: float) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(8)
    axis, w = random.normal(size=3), random.normal(size=3)
    return angle * axis / np.linalg.norm(axis), w


@pytest.mark.parametrize("angle", [3.0, 2.0, 0.7, 0.05])
def test_rate_of_the_logarithm(angle):
    """L_dot w against the derivative of dexp_left_inv along the motion."""
    phi, w = at_angle(angle)
    L, bias = log_motion(phi, w)
    s, along = ca.SX.sym("s", 3), ca.SX.sym("w", 3)
    rate = so3.dexp_left_inv(s) @ along
    expected = ca.Function("f", [s, along], [so3.dexp_left_inv(s), ca.jtimes(rate, s, rate)])(phi, w)
    close(L, np.array(expected[0]), ALGEBRA, "L", 10.0)
    close(bias, np.array(expected[1]).ravel(), DERIVATIVE, "L_dot w", 10 * np.linalg.norm(w) ** 2)


@pytest.mark.parametrize("angle", [1e-4, 1e-6, 1e-9, 1e-30, 1e-160, 0.0])
def test_rate_of_the_logarithm_of_small_rotations(angle):
    """To first order L_dot w = (phi x w) x w / 6, to full precision, although the slope of g is a quotient of roundings."""
    phi, w = at_angle(angle)
    _, bias = log_motion(phi, w)
    close(bias, np.cross(np.cross(phi, w), w) / 6, ALGEBRA + angle, "L_dot w", max(angle, 1e-300) * 10)
