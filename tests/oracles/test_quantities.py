"""One call for one quantity, against Pinocchio: single states, batches, names, parameters."""

from __future__ import annotations

from functools import cache, partial

import casadi as ca
import numpy as np
import pinocchio as pin
import pytest
from scipy.spatial.transform import Rotation

import pfaffian as pf
from pfaffian import kernel
from tests.oracles.pinocchio_twin import Twin, twin_of
from tests.random_mechanisms import random_tree
from tests.tolerance import PEER, close

FRAMES = {
    "LOCAL": pin.ReferenceFrame.LOCAL,
    "WORLD": pin.ReferenceFrame.WORLD,
    "LOCAL_WORLD_ALIGNED": pin.ReferenceFrame.LOCAL_WORLD_ALIGNED,
}


@pytest.fixture(autouse=True)
def interpreted(request, monkeypatch):
    """Evaluate with NumPy, to the same numbers, except in test_poses."""
    if request.function is not test_poses:
        monkeypatch.setattr(kernel, "compile", partial(kernel.compile, backend="numpy"))


@cache
def twin() -> tuple[Twin, np.ndarray, np.ndarray]:
    """A branched tree with quaternions and a fixed joint, at three states; its constraint must not matter."""
    random = np.random.default_rng(5)
    m = random_tree(random, ["free", "revolute", "fixed", "spherical", "prismatic"], [-1, 0, 1, 2, 0])
    w = twin_of(m)
    constrained = m.with_(constraints=[pf.holonomic("some", lambda k: k.q[0])])
    q = np.array([pf.random_configuration(m, random) for _ in range(3)])
    return Twin(constrained, w.model, w.data), q, random.normal(size=(3, m.nv))


def test_poses():
    w, q, _ = twin()
    found = pf.forward_kinematics(w.ours, q)
    assert list(found) == [b.name for b in w.ours.bodies]
    for i in range(3):
        pin.framesForwardKinematics(w.model, w.data, w.q(q[i]))
        for name, X in found.items():
            theirs = w.data.oMf[w.frame(name)]
            close(X.rotation[i], theirs.rotation, PEER, f"rotation of {name}")
            close(X.position[i], theirs.translation, PEER, f"position of {name}", 1.0)
            quaternion = pin.Quaternion(theirs.rotation).coeffs()
            close(X.quaternion[i], quaternion * np.sign(quaternion[3]), PEER, f"quaternion of {name}")
    one = pf.forward_kinematics(w.ours, q[1], bodies=["b3", "world"])
    assert list(one) == ["b3", "world"]
    np.testing.assert_allclose(one["b3"].position, found["b3"].position[1], rtol=1e-14)
    assert one["world"].rotation.tolist() == np.eye(3).tolist() and one["world"].quaternion.tolist() == [0, 0, 0, 1]
    assert pf.forward_kinematics(w.ours, q[1], bodies=[]) == {}


@pytest.mark.parametrize("frame", FRAMES)
def test_jacobian(frame):
    w, q, _ = twin()
    at = np.array([0.1, -0.2, 0.3])
    J = pf.jacobian(w.ours, "b3", q, frame=frame, point=at)
    assert J.shape == (3, 6, w.ours.nv)
    i = w.frame("b3")
    for ours, state in zip(J, q, strict=True):
        theirs = pin.computeFrameJacobian(w.model, w.data, w.q(state), i, FRAMES[frame]).copy()
        if frame != "WORLD":  # from the body's origin to the point
            arm = at if frame == "LOCAL" else w.data.oMf[i].rotation @ at
            theirs[:3] -= np.cross(arm, theirs[3:], axis=0)
        close(ours, theirs[:, w.order], PEER, f"Jacobian {frame}")


def spring_energy(m: pf.Mechanism, j: pf.Joint, q: np.ndarray) -> np.ndarray:
    """Energy e^T k e / 2 of a joint at each q (runs, nq), with its orientation by SciPy."""
    k, rest, n = m.value(j.stiffness), m.value(j.rest).ravel(), j.plain
    found = []
    for x in q:
        turn = (Rotation.from_quat(rest[n:]).inv() * Rotation.from_quat(x[n:])).as_quat()[:3] if j.kind.quaternion else []
        e = np.concatenate([x[:n] - rest[:n], 2 * np.asarray(turn)])
        found.append(e @ k @ e / 2)
    return np.array(found)


def test_dynamic_quantities():
    w, q, v = twin()
    M, c = pf.mass_matrix(w.ours, q), pf.bias_force(w.ours, q, v)
    h, centre, E = pf.momentum(w.ours, q, v), pf.mass_centre(w.ours, q), pf.energy(w.ours, q, v)
    weight = []
    for i in range(3):
        qi, vi = w.q(q[i]), w.v(v[i])
        upper = np.triu(pin.crba(w.model, w.data, qi))
        theirs = upper + np.triu(upper, 1).T
        close(M[i], theirs[np.ix_(w.order, w.order)], PEER, "mass matrix")
        close(c[i], pin.nonLinearEffects(w.model, w.data, qi, vi)[w.order], PEER, "bias force")
        com = pin.centerOfMass(w.model, w.data, qi, vi)
        close(centre[i], com, PEER, "mass centre", 1.0)
        ours = pin.computeCentroidalMomentum(w.model, w.data)
        close(h[i], np.concatenate([ours.linear, ours.angular + np.cross(com, ours.linear)]), PEER, "momentum")
        close(E.kinetic[i], pin.computeKineticEnergy(w.model, w.data, qi, vi), PEER, "kinetic energy")
        weight.append(pin.computePotentialEnergy(w.model, w.data, qi))
    springs = sum(spring_energy(w.ours, j, q[:, w.ours.q_slices[j.name]]) for j in w.ours.joints)
    close(E.potential, np.array(weight) + springs, PEER, "potential energy", np.abs(weight).max())


def test_names_and_shapes():
    """By name, for one state and one velocity: axes are neither lost nor added."""
    l = pf.Parameter("l", 2.0, "m")
    bob = pf.body("bob", 3.0, com=(l, 0, 0))
    m = pf.mechanism("one", [bob], [pf.joint("j", "revolute", "world", "bob", axis=(0, -1, 0))], parameters=[l])
    assert pf.mass_matrix(m).tolist() == [[12.0]]
    assert pf.mass_matrix(m, [[0.0]], parameters={"l": 1.0}).tolist() == [[[3.0]]]
    np.testing.assert_allclose(pf.energy(m, {"j": np.pi / 2}, {"j": 2.0}), [24.0, 3 * 9.81 * 2], rtol=1e-14)
    assert pf.energy(m, {"j": [0.0, 1.0]}).kinetic.tolist() == [0.0, 0.0]
    assert pf.jacobian(m, "bob", point=(1, 0, 0)).tolist() == [[0], [0], [1], [0], [-1], [0]]
    assert pf.jacobian(m, "world").tolist() == [[0]] * 6
    assert pf.mass_centre(m, parameters={"l": [1.0, 2.0]}).tolist() == [[1, 0, 0], [2, 0, 0]]
    assert pf.momentum(m, v=[2.0]).shape == (6,) and pf.bias_force(m).shape == (1,)


def test_a_second_call_compiles_nothing(monkeypatch):
    w, q, _ = twin()
    first = pf.mass_centre(w.ours, q)
    monkeypatch.setattr(kernel, "compile", lambda *_, **__: pytest.fail("compiled again"))
    np.testing.assert_array_equal(pf.mass_centre(w.ours.with_(), q[0]), first[0])


def test_wrong_arguments():
    m = twin()[0].ours
    for ask, message in (
        (lambda: pf.jacobian(m, "b9"), "no body 'b9'; there are b0"),
        (lambda: pf.forward_kinematics(m, bodies=["b9"]), "no body 'b9'"),
        (lambda: pf.jacobian(m, "b0", frame="local"), "frame 'local' is unknown; one of LOCAL"),
        (lambda: pf.jacobian(m, "b0", point=(1, 2)), "point has shape"),
        (lambda: pf.mass_centre(m, [1.0]), "q has shape"),
        (lambda: pf.energy(m, v={"j9": 1.0}), "v: there is no 'j9'"),
    ):
        with pytest.raises(pf.ModelError, match=message):
            ask()


def test_rows_of_nan_from_a_stopped_run_stay_nan():
    """Rows that contain only NaN are allowed, by array and by name, in q, v or u; any other NaN is refused."""
    m = pf.actuate_all(random_tree(np.random.default_rng(4), ["free", "revolute"], [-1, 0]))
    random = np.random.default_rng(5)
    q = np.array([pf.random_configuration(m, random) for _ in range(4)])
    v, u = random.normal(size=(4, m.nv)), random.normal(size=(4, m.nu))
    whole = pf.forward_dynamics(m, q, v, u)
    for which in range(3):
        given = [q.copy(), v.copy(), u.copy()]
        given[which][1] = np.nan
        found = pf.forward_dynamics(m, *given)
        for a, b in zip(found, whole, strict=True):
            np.testing.assert_array_equal(a, np.where(np.arange(4).reshape(-1, *[1] * (b.ndim - 1)) == 1, np.nan, b))
    names = dict(zip(m.q_names, np.where(np.arange(4) == 2, np.nan, q.T), strict=True))
    heights = pf.forward_kinematics(m, names)["b1"].position[:, 2]
    assert np.isnan(heights).tolist() == [False, False, True, False]
    np.testing.assert_array_equal(heights[[0, 1, 3]], pf.forward_kinematics(m, q[[0, 1, 3]])["b1"].position[:, 2])
    part = q.copy()
    part[1, 2] = np.nan
    for wrong in (part, q[0] * np.nan, {m.q_names[0]: np.nan}):
        with pytest.raises(pf.ModelError):
            pf.mass_matrix(m, wrong)


def test_many_states_have_a_time_each():
    """One state at several times, several states at one time, and a state for each time; by one compiled function."""
    push = pf.wrench("push", "b0", lambda k: [0, 0, ca.sin(k.t), 0, 0, 0.3 * k.t**2])
    m = random_tree(np.random.default_rng(6), ["free", "revolute"], [-1, 0]).with_(forces=[push])
    random = np.random.default_rng(7)
    q, v = np.array([pf.random_configuration(m, random) for _ in range(3)]), random.normal(size=(3, m.nv))
    times = np.array([0.5, -1.0, 4.0])
    for of in (
        lambda *x, **y: pf.forward_dynamics(m, *x, **y).v_dot,
        lambda *x, **y: pf.reaction_wrench(m, "j1", *x, **y).wrench,
    ):
        alone = np.array([[of(a, b, t=float(t)) for t in times] for a, b in zip(q, v, strict=True)])
        assert np.ptp(alone, axis=1).max() > 0.1
        np.testing.assert_array_equal(of(q, v, t=times), alone[np.arange(3), np.arange(3)])
        np.testing.assert_array_equal(of(q[1], v[1], t=times), alone[1])
        np.testing.assert_array_equal(of(q, v, t=4.0), alone[:, 2])
        np.testing.assert_array_equal(of(q[:1], v[:1], t=times[:1]), alone[:1, 0])
        with pytest.raises(pf.ModelError, match="numbers of runs differ: q has 3, v has 3, t has 2"):
            of(q, v, t=times[:2])
        with pytest.raises(pf.ModelError, match=r"t has shape \(3, 1\): one time, or one for each run"):
            of(q, v, t=times[:, None])
    free = pf.Parameter("off", 1.0)
    named = pf.mechanism("m", [pf.body("b", free)], [pf.joint("off", "prismatic", "world", "b")], parameters=[free])
    np.testing.assert_allclose(pf.reaction_wrench(named, "off").wrench, 0, atol=1e-12)


def test_terms_keep_their_shape_on_request():
    one = pf.mechanism("one", [pf.body("a", 1.0, (1, 0, 0))], [pf.joint("j", "revolute", "world", "a")])
    parts = {"M": lambda T: T.M, "c": lambda T: T.c, "V": lambda T: T.V}
    unsqueezed, squeezed = (pf.compile_terms(one, parts, backend="numpy", squeeze=s) for s in (False, True))
    assert {n: x.shape for n, x in unsqueezed([0.3]).items()} == dict.fromkeys(parts, (1, 1))
    assert {n: x.shape for n, x in unsqueezed([[0.3], [0.4]]).items()} == dict.fromkeys(parts, (2, 1, 1))
    assert {n: np.shape(x) for n, x in squeezed([[0.3], [0.4]]).items()} == dict.fromkeys(parts, (2,))
