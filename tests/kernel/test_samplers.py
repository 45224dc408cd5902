"""Samplers: called at their periods, before the observation, with the same bits for every batch size and division in time."""

import casadi as ca
import numpy as np
import pytest

from pfaffian import kernel
from pfaffian.errors import BuildError, ModelError
from pfaffian.kernel.call import tiers
from tests.kernel.conftest import on_every_backend

N, PHASE, SLOW = 4, 1, 6
WHEN = [(N, PHASE), (SLOW, 0)]
SPAN = kernel.Span(0.5, 0.05, 40, 3, stride=5, last=True, sampling=WHEN)


def sampled():
    """Step, observation and two samplers of a point mass; x = [position; speed; held input; count; value of the slow sampler].

    The fast sampler sets the held input to u - p position - slow value, and counts its calls."""
    x, u0, u1, p = (ca.SX.sym(*name) for name in (("x", 5), ("u0", 1), ("u1", 1), ("p", 1)))
    t, h = ca.SX.sym("t"), ca.SX.sym("h")
    moved = ca.vertcat(x[0] + h * x[1] + h**2 / 2 * x[2], x[1] + h * x[2])  # the other states stay constant in a step
    step = ca.Function("step", [x, u0, u1, p, t, h], [moved, x[1] > 6])
    observe = ca.Function("observe", [x, u0, p, t], [ca.vertcat(x, u0, t)])
    hold = ca.vertcat(x[:2], u0 - p * x[0] - x[4], x[3] + 1, x[4])
    fast = ca.Function("fast", [x, u0, p, t], [hold, ca.vertcat(x[0] > 9, ca.sqrt(ca.fmin(x[1] + 20, 0)))])
    slow = ca.Function("slow", [x, u0, p, t], [ca.vertcat(x[:4], ca.sin(x[1] + t)), x[0] < -9])
    return step, observe, (fast, slow)


@pytest.fixture(scope="module")
def rollouts():
    return on_every_backend(sampled)


def inputs(batch):
    random = np.random.default_rng(batch)
    x0 = np.hstack([random.normal(size=(batch, 2)), np.zeros((batch, 3))])
    return x0, random.normal(size=(7, batch, 1)), random.uniform(1, 9, (batch, 1))


def equal(a, b):
    return all(np.array_equal(x, y, equal_nan=x.dtype == float) for x, y in zip(a[:4], b[:4], strict=True))


def test_against_a_loop_in_python(rollouts):
    step, observe, samplers = sampled()
    (x0,), u, (p,) = inputs(1)
    result = rollouts[0](x0, u, p, SPAN)
    x, records = x0, []
    for k in range(41):
        at, t = u[min(k // 5, 6), 0, 0], 0.5 + k * 0.05
        before = x
        for f, (period, phase) in zip(samplers, WHEN, strict=True):
            if k % period == phase:
                x = np.array(f(x, at, p, t)[0]).ravel()
        if k % 3 == 0:
            records.append(np.array(observe(x, at, p, t)).ravel())
        if k < 40:
            x = np.concatenate([np.array(step(x, at, at, p, t, 0.05)[0]).ravel(), x[2:]])
    np.testing.assert_allclose(result.records[:, 0], records, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(result.x[0], before, rtol=1e-12)
    assert result.x[0, 3] == 10  # steps 1, 5, ..., 37


@pytest.mark.parametrize("batch", [1, 7, 8, 19, 150])
def test_same_bits(rollouts, batch):
    x0, u, p = inputs(batch)
    x0[: batch // 3, 1] = 5.5  # some of these stop during the run
    results = [r(x0, u, p, SPAN, threads=n) for r in rollouts for n in (1, 2)]
    assert all(equal(results[0], r) for r in results[1:])
    one = rollouts[1](x0[-1], u[:, -1], p[-1], SPAN)
    assert np.array_equal(one.records[:, 0], results[0].records[:, -1], equal_nan=True)


def test_operations_of_samplers_count_towards_compiling(monkeypatch):
    """Three blocks for 17 runs. A control law may have many more operations than its machine, so they must count."""
    counted = []
    monkeypatch.setattr(tiers.Tiers, "take", lambda self, work: counted.append(work) or self.now)
    r = kernel.compile_rollout(*sampled(), backend="interpreter")
    r(*inputs(17), SPAN)
    step, fast, slow = (program.n_ops for program in (r.step, *r.samplers))
    assert counted == [pytest.approx(3 * 40 * (step + fast / N + slow / SLOW))]


@pytest.mark.parametrize("cuts", [(17, 40), (1, 4, 6, 40), (0, 5, 12, 40)])
@pytest.mark.parametrize("last", [True, False], ids=["recorded at each cut", "recorded at the end"])
def test_resumed_is_uninterrupted(rollouts, cuts, last):
    x0, u, p = inputs(13)
    x0[4, 1] = 5.9
    for rollout in rollouts:
        whole = rollout(x0, u, p, SPAN)
        state, first = {"x0": x0}, 0
        for end in cuts:
            part = rollout(u=u, p=p, span=SPAN._replace(steps=end - first, first=first, last=last or end == 40), **state)
            state, first = {"x0": part.x, "status": part.status, "stopped": part.stopped}, end
        assert equal(part._replace(records=whole.records), whole)


def test_faults_of_samplers_are_numbered_after_those_of_the_step(rollouts):
    x0 = np.zeros((5, 5))
    x0[:, 0] = 0, 9.5, -9.5, 0, 0
    x0[:, 1] = 0, 0, 0, -30, 7
    u, p = np.zeros((1, 1)), np.zeros(1)
    for rollout in rollouts:
        result = rollout(x0, u, p, kernel.Span(0, 0.125, 12, sampling=WHEN))
        assert result.status.tolist() == [0, 3, 5, 4, 2]
        assert result.stopped.tolist() == [-1, 1, 0, 1, 0]
        assert np.isnan(result.records[1, 1]).all() and not np.isnan(result.records[0, 1]).any()
        assert np.array_equal(result.x[2], x0[2])


def test_refusals(rollouts):
    for sampling in ((), [(1, 0)], [(0, 0), (1, 0)], [(2, 2), (1, 0)], [(2, -1), (1, 0)]):
        with pytest.raises(ModelError):
            rollouts[0](*inputs(4), SPAN._replace(sampling=sampling))
    step, observe, _ = sampled()
    with pytest.raises(BuildError):
        kernel.compile_rollout(step, observe, [observe])
