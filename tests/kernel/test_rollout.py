"""The time loop agrees with a plain loop, resumes with the same bits, and keeps a failed run from affecting others."""

import casadi as ca
import numpy as np
import pytest

from pfaffian import kernel
from pfaffian.errors import BuildError, ModelError
from pfaffian.kernel.call.rollout import Buffers, InPlace
from tests.kernel.conftest import on_every_backend


def pendulum(n_fault=2):
    x, u0, u1, p = (ca.SX.sym(*name) for name in (("x", 2), ("u0", 1), ("u1", 1), ("p", 1)))
    t, h = ca.SX.sym("t"), ca.SX.sym("h")
    rhs = ca.Function("rhs", [x, u0, p], [ca.vertcat(x[1], u0 - p * ca.sin(x[0]))], {"never_inline": True})
    um = (u0 + u1) / 2
    k1 = rhs(x, u0, p)
    k2 = rhs(x + h / 2 * k1, um, p)
    k3 = rhs(x + h / 2 * k2, um, p)
    k4 = rhs(x + h * k3, u1, p)
    faults = ca.vertcat(x[1] > 4, ca.sqrt(ca.fmin(x[0] + 30, 0)))[:n_fault]
    step = ca.Function("step", [x, u0, u1, p, t, h], [x + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4), faults])
    return step, ca.Function("observe", [x, u0, p, t], [ca.vertcat(x, u0, t)])


@pytest.fixture(scope="module")
def rollouts():
    return on_every_backend(pendulum)


def inputs(batch):
    random = np.random.default_rng(batch)
    return random.normal(size=(batch, 2)), random.normal(size=(7, batch, 1)), random.uniform(1, 9, (batch, 1))


def equal(a, b):
    return all(np.array_equal(x, y, equal_nan=x.dtype == float) for x, y in zip(a[:4], b[:4], strict=True))


TIMES = {"t0": 0.25, "h": 0.05, "steps": 40, "every": 3, "stride": 5}


@pytest.mark.parametrize("hold", ["zero", "linear"])
@pytest.mark.parametrize("batch", [1, 7, 8, 19])
def test_same_bits(rollouts, hold, batch):
    results = [r(*inputs(batch), kernel.Span(**TIMES, hold=hold, last=True), threads=n) for r in rollouts for n in (1, 2)]
    assert all(equal(results[0], r) for r in results[1:])
    assert results[0].records.shape == (14, batch, 4)
    assert results[0].records.strides[1] == 8


def folded():
    """x grows by h and is folded back at 1, in a part of its own that is guarded."""
    x, u, p = (ca.SX.sym(name) for name in "xup")
    t, h, guard, y = (ca.SX.sym(name) for name in ("t", "h", "guard", "y"))
    back = kernel.guarded("back", [guard, y, p], [ca.sin(y - p) + ca.exp(y - p) - 1])
    high = x > 1
    x_next = ca.if_else(high, back(high, x, p), x + h * u)
    step = ca.Function("step", [x, u, ca.SX.sym("u1"), p, t, h], [x_next, ca.SX(0, 1), ca.logic_and(x_next > 1, x <= 1)])
    return step, ca.Function("observe", [x, u, p, t], [x])


def test_guarded_calls_and_the_parts_of_a_step():
    """In runs that are folded at different steps, beside the loop written out, and in one run that is alone."""
    results, u, p, n = [], np.linspace(0.5, 2, 19), 0.9, 40
    exact = np.zeros((n + 1, 19))
    rows = []
    for k in range(n):
        x = exact[k] + 0.1 * u
        high = x > 1
        if high[7]:
            rows += [(k, exact[k, 7]), (k, x[7])]
        exact[k + 1] = np.where(high, np.sin(x - p) + np.exp(x - p) - 1, x)
        rows += [(k, exact[k + 1, 7])] if high[7] else []
    for r in (*on_every_backend(folded), kernel.compile_rollout(*folded(), backend="interpreter")):
        span, one = kernel.Span(0.0, 0.1, n, last=True), np.full((1, 1), p)
        results.append(r(np.zeros((19, 1)), u[None, :, None], np.full((19, 1), p), span))
        np.testing.assert_allclose(results[-1].records[:, :, 0], exact, rtol=1e-12, err_msg="closed form")
        assert equal(results[0], results[-1])
        for room in (1, 100):
            alone = r(np.zeros((1, 1)), u[None, 7:8, None], one, span, room=room)
            np.testing.assert_array_equal(alone.records[:, 0], results[0].records[:, 7])
            np.testing.assert_allclose(alone.parts, rows, rtol=1e-12)
        assert not r(np.zeros((1, 1)), u[None, 7:8, None], one, span).parts.size


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("batch", [1, 19])
def test_steps_in_place_have_the_bits_of_a_call(rollouts, batch, threads):
    """Steps in place start at step 0 and later, with and without a record at their end. Observing changes nothing. A run that
    stops has no records from then on."""
    x0, u, p = inputs(batch)
    x0[4:7, 1] = 9.0  # faster than the limit of the fault, so these stop
    span = kernel.Span(**TIMES, hold="linear", last=True)
    for rollout in rollouts:
        buffers = Buffers(0 * x0, u, p, np.zeros(batch, np.int32), np.full(batch, -1))
        in_place, first = InPlace(rollout, span, buffers, threads), 0
        assert np.isfinite(in_place.observed(0, 1)).all()
        buffers.x[...] = x0
        for steps in (1, 4, 2):
            expected = rollout(x0, u, p, span._replace(steps=first + steps, every=first + steps))
            if steps != 4:
                assert np.array_equal(in_place.observed(first, steps), expected.records[-1], equal_nan=True)
            else:
                in_place.advance(first, steps)
            assert np.array_equal(buffers.x, expected.x) and np.array_equal(buffers.status, expected.status)
            first += steps


@pytest.mark.parametrize("hold", ["zero", "linear"])
def test_against_a_loop_in_python(rollouts, hold):
    step, observe = pendulum()
    (x0,), u, (p,) = inputs(1)
    result = rollouts[0](x0, u, p, kernel.Span(**TIMES, hold=hold))
    x, records = x0, []
    for k in range(40):
        grid = np.arange(7) * 5
        at = [np.interp(j, grid, u[:, 0, 0]) if hold == "linear" else u[min(k // 5, 6), 0, 0] for j in (k, k + 1)]
        t = 0.25 + k * 0.05
        if k % 3 == 0:
            records.append(np.array(observe(x, at[0], p, t)).ravel())
        x = np.array(step(x, *at, p, t, 0.05)[0]).ravel()
    np.testing.assert_allclose(result.records[:, 0], records, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(result.x[0], x, rtol=1e-12)


def chosen():
    """Runs that go on to the next sample whenever the sum of their inputs has passed 2, or they have none."""
    x, u, u1, p = ca.SX.sym("x", 2), ca.SX.sym("u", 2), ca.SX.sym("u1", 2), ca.SX.sym("p")
    t, h, total = ca.SX.sym("t"), ca.SX.sym("h"), x[0] + u[0] + u1[1]
    step = ca.Function("step", [x, u, u1, p, t, h], [ca.vertcat(total, x[1] + (total > 2 * p * (x[1] + 1))), ca.SX(0, 1)])
    return step, ca.Function("observe", [x, u, p, t], [ca.vertcat(x, u)])


@pytest.mark.parametrize("shared", [True, False])
def test_runs_that_choose_their_samples(shared):
    """Against the loop written out, for samples of all runs and of each: the last one holds beyond the end, the first one for
    numbers below zero and for nan."""
    random, n = np.random.default_rng(3), 11
    u, p = random.uniform(0.1, 1, (5, 2) if shared else (5, n, 2)), np.ones((n, 1))
    x0 = np.stack([np.zeros(n), np.r_[-3.0, 7.0, np.nan, np.zeros(n - 3)]], axis=1)
    span, want = kernel.Span(0.0, 1.0, 40, last=True, chooser=1), np.full((41, n, 4), np.nan)
    for run in range(n):
        x = x0[run].copy()
        for k in range(41):
            now = (u if shared else u[:, run])[int(np.clip(np.nan_to_num(x[1]), 0, 4))]
            want[k, run] = [*x, *now]
            x += [now.sum(), x[0] + now.sum() > 2 * (x[1] + 1)]
    going = np.arange(n) != 2  # the run of nan stops at once
    for r in (*on_every_backend(chosen), kernel.compile_rollout(*chosen(), backend="interpreter")):
        for threads in (1, 2):
            found = r(x0, u, p, span, threads=threads)
            np.testing.assert_allclose(found.records[:, going], want[:, going], rtol=1e-12)
            np.testing.assert_array_equal(found.records[0, 2, 2:], want[0, 2, 2:])
            assert found.status.tolist() == [0, 0, 1, *[0] * (n - 3)]
    for wrong, match in (({"chooser": 2}, "chooser 2: the index"), ({"hold": "linear"}, "chooser")):
        with pytest.raises(ModelError, match=match):
            r(x0, u, p, span._replace(**wrong))


def halting(wakes: float):
    """Runs that count in x[0] up to x[1], in steps of p, and would go on after the time `wakes`."""
    x, u, u1, p = ca.SX.sym("x", 2), ca.SX.sym("u", 0), ca.SX.sym("u1", 0), ca.SX.sym("p")
    t, h = ca.SX.sym("t"), ca.SX.sym("h")
    step = ca.Function("step", [x, u, u1, p, t, h], [x[0] + p * ca.logic_or(x[0] < x[1], t > wakes), x[0] > 50])
    return step, ca.Function("observe", [x, u, p, t], [3 * x[0]])


def test_runs_that_end_where_they_are_still():
    """Their records are those of a loop that goes on, and their later steps are not computed; a run that stops meanwhile has
    nan."""
    random, n = np.random.default_rng(5), 19
    x0, p, u = np.stack([np.zeros(n), random.integers(0, 30, n)], axis=1), np.ones((n, 1)), np.zeros((1, 0))
    x0[4], p[4] = (49.0, 60.0), 2.0
    span = kernel.Span(0.0, 1.0, 40, last=True)
    for backend in ("c", "interpreter", "numpy"):
        for threads, lanes in ((1, 8), (2, 8), (1, 4)):
            r = kernel.compile_rollout(*halting(1e9), backend=backend, lanes=lanes)
            whole, ended = (r(x0, u, p, span._replace(until_still=still), threads=threads) for still in (False, True))
            for name in ("x", "records", "status", "stopped"):
                np.testing.assert_array_equal(getattr(whole, name), getattr(ended, name))
            assert np.isnan(ended.records[-1, 4]) and ended.status[4] == 2
        wakes = kernel.compile_rollout(*halting(20.5), backend=backend)
        found = [wakes([0.0, 3.0], u, [1.0], span._replace(until_still=still)).x[0, 0] for still in (False, True)]
        assert found == [22, 3]
    with pytest.raises(ModelError, match="every=1"):
        r(x0, u, p, span._replace(until_still=True, every=2))


@pytest.mark.parametrize("hold", ["zero", "linear"])
@pytest.mark.parametrize("cuts", [(17, 40), (3, 4, 40), (0, 1, 2, 40)])
def test_resumed_is_uninterrupted(rollouts, hold, cuts):
    x0, u, p = inputs(13)
    x0[4, 1] = 3.9  # this one stops on its way
    times = {**TIMES, "hold": hold}
    for rollout in rollouts:
        whole = rollout(x0, u, p, kernel.Span(**times, last=True))
        state, records, first = {"x0": x0}, [], 0
        for end in cuts:
            span = kernel.Span(**(times | {"steps": end - first}), first=first, last=end == 40)
            part = rollout(u=u, p=p, span=span, **state)
            records.append(part.records)
            state, first = {"x0": part.x, "status": part.status, "stopped": part.stopped}, end
        assert equal(part._replace(records=np.concatenate(records)), whole)


@pytest.mark.parametrize("poison", [np.nan, np.inf, 1e200])
def test_a_failed_run_stops_alone(rollouts, poison):
    x0, u, p = inputs(19)
    for rollout in rollouts:
        clean = rollout(x0, u, p, kernel.Span(**TIMES))
        bad = x0.copy()
        bad[5, 0] = poison
        result = rollout(bad, u, p, kernel.Span(**TIMES))
        others = np.arange(19) != 5
        assert result.status[5] == 1 and result.stopped[5] == 0
        assert np.isnan(result.records[1:, 5]).all()
        assert np.array_equal(result.x[5], bad[5], equal_nan=True)
        assert np.array_equal(result.records[:, others], clean.records[:, others], equal_nan=True)
        assert np.array_equal(result.x[others], clean.x[others])


@pytest.mark.parametrize("hold", ["zero", "linear"])
def test_blocks_that_stop_do_not_affect_the_others(rollouts, hold):
    x0, u, p = inputs(150)
    x0[:, 1] = np.random.default_rng(3).permutation(np.linspace(0.0, 3.99, 150))  # many stop, at many times
    x0[16:40, 1] = x0[80:88, 1] = 4.5  # whole blocks stop at once
    x0[144:, 0] = np.nan
    status = np.zeros(150, np.int32)
    status[40:48] = 7
    span = kernel.Span(**TIMES, hold=hold, last=True)
    results = [r(x0, u, p, span, threads=n, status=status) for r in rollouts for n in (1, 2)]
    assert all(equal(results[0], r) for r in results[1:])
    r = results[0]
    assert len(np.unique(r.stopped)) > 5 and (r.status == 0).sum() > 10
    assert (r.status[40:48] == 7).all() and np.array_equal(r.x[40:48], x0[40:48])
    alone = rollouts[0](x0[60], u[:, 60], p[60], span)
    assert np.array_equal(alone.records[:, 0], r.records[:, 60], equal_nan=True)


def test_a_fault_sets_the_status_and_keeps_the_last_good_state(rollouts):
    x0 = np.array([[0.0, 0.0], [0.0, 4.5], [-31.0, 0.0], [0.0, 3.0]])
    u, p = np.array([[2.0]]), np.array([0.0])
    for rollout in rollouts:
        result = rollout(x0, u, p, kernel.Span(0, 0.125, 12))
        assert result.status.tolist() == [0, 2, 3, 2]
        assert result.stopped.tolist() == [-1, 0, 0, 5]
        assert result.x[3, 1] == 4.25
        assert np.array_equal(result.x[1:3], x0[1:3])
        assert rollout(x0, u, p, kernel.Span(0, 0.125, 12, limit=3.5)).status.tolist() == [0, 2, 1, 1]
        continued = rollout(x0, u, p, kernel.Span(0, 0.125, 2), status=[0, 0, 0, 9])
        assert continued.status[3] == 9 and np.array_equal(continued.x[3], x0[3]) and np.isnan(continued.records[:, 3]).all()


def test_a_step_without_input_parameter_fault():
    x, none, t, h = ca.SX.sym("x"), ca.SX(0, 1), ca.SX.sym("t"), ca.SX.sym("h")
    empty = [ca.SX.sym(n, 0) for n in ("u0", "u1", "p")]
    step = ca.Function("step", [x, *empty, t, h], [x + h * t, none])
    observe = ca.Function("observe", [x, *empty[1:], t], [x])
    for backend in ("c", "numpy"):
        rollout = kernel.compile_rollout(step, observe, backend=backend)
        result = rollout([1.0], np.zeros((1, 0)), np.zeros(0), kernel.Span(0.0, 0.5, 4, 2, last=True))
        assert result.records.ravel().tolist() == [1.0, 1.25, 2.5]


def test_refusals(rollouts):
    x0, u, p = inputs(4)
    for change in ({"steps": -1}, {"every": 0}, {"stride": 0}, {"h": np.nan}, {"hold": "cubic"}):
        with pytest.raises(ModelError):
            rollouts[0](x0, u, p, kernel.Span(**(TIMES | change)))
    with pytest.raises(ModelError):
        rollouts[0](x0, u, p, kernel.Span(**TIMES), status=[0])
    for arrays in ((x0[:3], u, p), (x0[:, :1], u, p), (x0, u[0, 0], p), (x0, u[:0], p)):
        with pytest.raises(ModelError):
            rollouts[0](*arrays, kernel.Span(**TIMES))
    step, observe = pendulum()
    with pytest.raises(BuildError):
        kernel.compile_rollout(observe, step)
