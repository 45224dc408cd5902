"""Derivatives of runs to an accuracy with frozen steps, against differences of these steps and of exact runs."""

from __future__ import annotations

import numpy as np
import pytest

import pfaffian as pf
from pfaffian.errors import ModelError, RunError
from pfaffian.kernel.call.rollout import Rollout
from tests.simulate.test_sensitivity import BY_DIFFERENCES, SAME, difference, five_bar
from tests.tolerance import close

CALLS = {"backend": "interpreter"}
"""Settings with which nothing is compiled."""

TIMES = np.array([0.0, 0.1, 0.33, 0.5])
U = np.array([[0.4, -0.2], [1.0, 0.3], [-0.5, 0.2]])
HOW = {"times": TIMES, "u_step": 0.2} | CALLS
"""Records at the start, between samples of u, within one, and after the last sample."""

OF_THE_MOTION = 1e-6
"""Error of derivatives by steps of an accuracy of 1e-8, whose error grows at most a hundredfold by a derivative."""


@pytest.fixture(scope="module")
def bar() -> tuple[pf.Mechanism, np.ndarray, np.ndarray]:
    m = five_bar()
    q, v = pf.assemble(m, [1.8, -0.9, 1.2, 0.9], [0.3, 0.1, 0.2, 0.4])[:2]
    return m, np.ravel(q), np.ravel(v)


@pytest.mark.parametrize("accuracy", [1e-3, 1e-7])
def test_it_has_the_bits_of_a_run(bar, accuracy):
    m, q, v = bar
    starts = np.tile(q, (3, 1)), v * np.array([[1.0], [0.0], [-2.0]])
    r = pf.calculus.accurate_rollout(m, *starts, U, accuracy=accuracy, **HOW)
    run = pf.run(m, *starts, u=U, record=["q", "v"], accuracy=accuracy, **HOW)
    assert run.attrs["integrator"] == "dop853"
    assert np.array_equal(run.q.values.transpose(1, 0, 2), r.q) and np.array_equal(run.v.values.transpose(1, 0, 2), r.v)
    assert np.array_equal(r.time, TIMES)
    alone = pf.calculus.accurate_rollout(m, q, -2 * v, U, accuracy=accuracy, **HOW)
    assert np.array_equal(alone.q, r.q[:, 2]) and alone.steps == r.steps[2] <= run.steps.values[2]


def test_a_batch_has_the_derivatives_of_its_runs(bar):
    m, q, v = bar
    speeds = v * np.array([[1.0], [0.0], [-2.0]])
    r = pf.calculus.accurate_rollout(m, np.tile(q, (3, 1)), speeds, U, accuracy=1e-3, **HOW)
    alone = pf.calculus.accurate_rollout(m, q, speeds[2], U, accuracy=1e-3, **HOW)
    assert len(set(r.steps.tolist())) > 1, "the runs make the same number of steps"
    weights = np.random.default_rng(2).normal(size=r.q.shape)
    many, one = r.vjp(q=weights), alone.vjp(q=weights[:, 2])
    close(many.u[:, 2], one.u, SAME, "u")
    close(many.q[2], one.q, SAME, "q")
    close(many.parameters[2], one.parameters, SAME, "parameters")


def test_threads_share_the_derivatives_and_change_no_bit(bar, monkeypatch):
    m, q, v = bar
    speeds = v * np.linspace(-2.0, 2.0, 20)[:, None]
    one, two = (
        pf.calculus.accurate_rollout(m, np.tile(q, (20, 1)), speeds, U, accuracy=1e-3, threads=n, **HOW) for n in (1, 2)
    )
    used, call = list[int](), Rollout.__call__

    def counted(self, *given, threads=1, **more):
        used.append(threads)
        return call(self, *given, threads=threads, **more)

    monkeypatch.setattr(Rollout, "__call__", counted)
    weights = np.random.default_rng(2).normal(size=one.q.shape)
    for a, b in ((one.jvp(dp=[0.3]), two.jvp(dp=[0.3])), (one.vjp(q=weights), two.vjp(q=weights))):
        assert all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))
    assert used == [1, 1, 2, 2] * 2


def test_jvp_and_vjp_agree(bar):
    m, q, v = bar
    r = pf.calculus.accurate_rollout(m, q, v, U, accuracy=1e-3, **(HOW | {"times": np.linspace(0.0, 0.5, 41)}))
    assert r.steps < 40, "no step contains two records"
    random = np.random.default_rng(1)
    dq, dv, du = random.normal(size=4), random.normal(size=4), random.normal(size=U.shape)
    weights = random.normal(size=r.q.shape), random.normal(size=r.v.shape)
    ahead, back = r.jvp(dq=dq, dv=dv, du=du, dp=[0.3]), r.vjp(q=weights[0], v=weights[1])
    one = (ahead.q * weights[0]).sum() + (ahead.v * weights[1]).sum()
    other = back.q @ dq + back.v @ dv + (back.u * du).sum() + back.parameters @ [0.3]
    close(one, other, SAME * np.abs([*ahead.q.ravel(), *ahead.v.ravel()]).sum(), "both ways")
    close(r.jvp(dq=dq).q[0], dq, SAME, "the start")


def test_it_agrees_with_differences_of_the_frozen_steps():
    """A pendulum with a spring of which the stiffness is a parameter, at steps so long that they are not exact."""
    k = pf.Parameter("k", 3.0, "N m/rad")
    hinge = pf.joint("hinge", "revolute", "world", "bob", axis=(0, 1, 0), stiffness=k)
    motor = pf.actuator("motor", "hinge")
    m = pf.mechanism("swing", [pf.body("bob", 1.0, com=(0, 0, -1))], [hinge], actuators=[motor], parameters=[k])
    times = np.linspace(0.0, 2.0, 8)
    scheme = pf.Scheme(integrator="dopri5")
    how = {"accuracy": 0.01, "times": times, "u_step": 0.5, "scheme": scheme} | CALLS
    u = np.array([[0.5], [-1.0], [2.0], [0.0]])
    r = pf.calculus.accurate_rollout(m, [1.0], [2.0], u, **how)
    begin, h = r._of.begin[:, 0], r._of.h[:-1, 0]

    def stepped(x: np.ndarray, t: float, h: float, u: float, k: float) -> np.ndarray:
        s = pf.stepper(m, step=h, scheme=scheme, **CALLS)
        s.reset(x[:1], x[1:], parameters=[k], t=t)
        s.step([u])
        return np.concatenate([s.q, s.v])

    def motion(e: float, way: np.ndarray) -> np.ndarray:
        x, inputs, k = np.array([1.0, 2.0]) + e * way[:2], u[:, 0] + e * way[3:], 3.0 + e * way[2]
        found, points = np.zeros((len(times), 2)), np.append(begin[:-1], begin[-1])
        for i, t in enumerate(points):
            held = inputs[min(int(t / 0.5 * (1 + 1e-12)), 3)]
            last = i == len(h)
            for j, instant in enumerate(times):
                if t <= instant and (last or instant < points[i + 1]):
                    found[j] = stepped(x, t, instant - t, held, k) if instant > t else x
            x = x if last else stepped(x, t, h[i], held, k)
        return found

    way = np.random.default_rng(4).normal(size=7)
    ahead = r.jvp(dq=way[:1], dv=way[1:2], dp=way[2:3], du=way[3:, None])
    by_differences = difference(lambda e: motion(e, way))
    close(np.hstack([ahead.q, ahead.v]), by_differences, BY_DIFFERENCES, "frozen steps")
    exact = difference(
        lambda e: pf.run(
            m, [1.0 + e * way[0]], [2.0 + e * way[1]], parameters=[3.0 + e * way[2]], u=u + e * way[3:, None],
            **(how | {"accuracy": 1e-11}),
        ).q.values
    )  # fmt: skip
    assert np.abs(ahead.q - exact).max() > 1e2 * BY_DIFFERENCES, "the steps are too short to tell them from the motion"


def test_at_a_small_accuracy_it_is_the_derivative_of_the_motion(bar):
    m, q, v = bar
    way = np.random.default_rng(5).normal(size=U.shape)
    r = pf.calculus.accurate_rollout(m, q, v, U, accuracy=1e-8, **HOW)
    found = difference(lambda e: pf.run(m, q, v, u=U + e * way, accuracy=1e-11, **HOW).q.values)
    close(r.jvp(du=way).q, found, OF_THE_MOTION, "by u")


def test_a_law_that_integrates_and_a_later_start():
    slide = pf.joint("x", "prismatic", "world", "cart", axis=(1, 0, 0))
    m = pf.mechanism("cart", [pf.body("cart", 2.0)], [slide], actuators=[pf.actuator("push", "x")])
    law = pf.control.Control(lambda T, z, w, y: pf.control.Command(-3 * T.q - 2 * z + w, z_dot=T.q), z=(0.5,), w_names=("set",))
    r = pf.calculus.accurate_rollout(m, [0.2], [0.1], [0.3], control=law, accuracy=1e-9, times=[4.0], t=3.0, **CALLS)
    A = np.array([[0, 1, 0], [-1.5, 0, -1], [1, 0, 0]])  # x_dot of [x; v; z]
    values, vectors = np.linalg.eig(A)
    exact = (vectors * np.exp(values) @ np.linalg.inv(vectors)).real
    close(np.ravel(r.jvp(dq=[1.0])), exact[:2, 0], OF_THE_MOTION, "by x")
    close(np.ravel(r.vjp(v=[[1.0]])[:2]), exact[1, :2], OF_THE_MOTION, "v by the start")
    assert r.time == [4.0]


def test_refusals(bar):
    m, q, v = bar
    with pytest.raises(ModelError, match="accuracy"):
        pf.calculus.accurate_rollout(m, q, v, accuracy=0.0, times=[1.0])
    with pytest.raises(ModelError, match=r"accurate_rollout takes the integrators.*'radau5' has stages"):
        pf.calculus.accurate_rollout(m, q, v, accuracy=1e-6, times=[1.0], scheme=pf.Scheme(integrator="radau5"))
    with pytest.raises(ModelError, match="duration"):
        pf.calculus.accurate_rollout(m, q, v, accuracy=1e-6)
    r = pf.calculus.accurate_rollout(m, q, v, accuracy=1e-4, times=[0.1], **CALLS)
    with pytest.raises(ModelError, match=r"q has shape \(3, 4\): \(1, 4\) is needed"):
        r.vjp(q=np.zeros((3, 4)))
    with pytest.raises(ModelError, match=r"du has shape"):
        r.jvp(du=np.zeros((3, 2)))
    slide = pf.joint("x", "prismatic", "world", "cart", axis=(1, 0, 0))
    cubic = pf.forces.potential("cubic", lambda K: -25 * K.q[0] ** 4)
    cart = pf.mechanism("cart", [pf.body("cart", 1.0)], [slide], forces=[cubic])
    with (
        pytest.warns(pf.RunWarning, match="diverged"),
        pytest.raises(RunError, match=r"accurate_rollout: run 0 stopped at .*; there is no derivative"),
    ):
        pf.calculus.accurate_rollout(cart, [1.0], accuracy=1e-4, times=[5.0], **CALLS)
