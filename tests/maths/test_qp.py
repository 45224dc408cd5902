"""The nearest input within limits satisfies its optimality conditions for any rows, and agrees with the solver DAQP."""

import casadi as ca
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import pfaffian as pf
from pfaffian.evaluate.solve_qp import NearestInput
from pfaffian.kernel import compile
from pfaffian.kernel.program.interpret import evaluate
from pfaffian.kernel.program.passes import optimise
from pfaffian.kernel.program.trace import trace
from pfaffian.maths import qp
from tests.maths.qp_problems import FAMILIES, SIZES, Problems, by_daqp, conditions, contradiction, exact, metric
from tests.programs import from_program
from tests.tolerance import EPS

EACH = 160  # of 13 families in 5 sizes: 10,400 problems

OPTIMAL = 1e-13
"""Largest relative error of the optimality conditions if the active rows are not close to dependent."""

MEETING = 1e-9
"""The same if more than n random rows meet in one point, so that active rows may be almost dependent: the solver's ACCURATE."""

FEASIBLE = {"plain", "box", "inside", "doubled", "vertex", "cone", "badly_scaled", "nearly_parallel"}
"""Families whose rows some u satisfies."""


def solve(*problem, **options):
    return pf.analysis.solve_qp(*problem, **{"backend": "numpy"} | options)


def check(p: Problems, r: NearestInput, tolerance: float) -> None:
    """Each problem is solved or proved infeasible; both are checked from the answer alone."""
    assert np.isin(r.status, (0, 1)).all(), r.message
    good = r.status == 0
    for name, left in conditions(Problems(*[x[good] for x in p]), r.u[good], r.multipliers[good])._asdict().items():
        assert left.max(initial=0) <= tolerance, name
    assert (r.multipliers[good] * ~r.active[good] == 0).all() and r.active.sum(axis=1)[good].max(initial=0) <= p.u0.shape[1]
    infeasible = contradiction(Problems(*[x[~good] for x in p]), r.multipliers[~good])
    assert infeasible.max(initial=0) <= 1e-12
    assert np.array_equal(r.active[~good], r.multipliers[~good] > 0) and np.isnan(r.u[~good]).all()


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("family", FAMILIES)
def test_every_kind_of_problem(family, size):
    n, m = size
    p = FAMILIES[family](np.random.default_rng([n, m, *map(ord, family)]), EACH, n, m)
    r = solve(*p)
    check(p, r, MEETING if family in ("vertex", "cone") else OPTIMAL)
    assert r.iterations.max() <= qp.most_iterations(n, m) / 2 + 2
    if family in FEASIBLE:
        assert (r.status == 0).all()
    if family == "contradicting":
        assert (r.status == 1).all()
    if family == "narrow":
        assert (r.status[p.l[:, 0] + p.l[:, 1] < 0] == 1).all()


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("family", ["plain", "box", "inside", "doubled", "grid", "equalities", "odd_rows", "nearly_parallel"])
def test_daqp_gives_the_same_answers(family, size):
    pytest.importorskip("daqp")
    p = FAMILIES[family](np.random.default_rng([1, *size]), 40, *size)
    r, reference = solve(*p), by_daqp(p)
    assert np.array_equal(r.status == 0, reference.solved)
    assert np.abs(r.u - reference.u)[reference.solved].max(initial=0) <= 1e-7 * (1 + np.abs(p.u0).max())


SMALL = st.integers(-3, 3).map(float)


@st.composite
def problems(draw):
    n, m = draw(st.integers(1, 4)), draw(st.integers(1, 7))
    A = draw(arrays(float, (n, n), elements=SMALL))
    H = A @ A.T + np.diag(10.0 ** draw(arrays(float, n, elements=st.integers(-3, 3))))
    u0 = draw(arrays(float, n, elements=st.floats(-5, 5)))
    W = draw(arrays(float, (m, n), elements=st.one_of(SMALL, st.floats(-2, 2, width=16))))
    # Floats of 16 bits end at 6e-8. With smaller ones, u0 could be 1e20 times beyond all limits and an answer inaccurate.
    l = draw(arrays(float, m, elements=st.one_of(SMALL, st.floats(-3, 3, width=16), st.sampled_from([np.inf, -np.inf]))))
    return Problems(*[x[None] for x in (H, u0, W, l)])


@settings(max_examples=150, deadline=None)
@given(problems())
def test_conditions_of_any_problem(p):
    r = solve(*p)
    check(p, r, 1e-9)
    assert solve(p.H, p.u0, p.W, np.full(p.l.shape, np.inf)).u == pytest.approx(p.u0, abs=0)


def test_a_box_of_independent_inputs_clips_each():
    u0 = np.random.default_rng(0).normal(size=(200, 4)) * 2
    r = solve(np.diag([1.0, 4.0, 0.1, 9.0]), u0, np.vstack([np.eye(4), -np.eye(4)]), np.ones(8))
    assert np.abs(r.u - np.clip(u0, -1, 1)).max() <= 4 * EPS * np.abs(u0).max()
    assert np.array_equal(r.active, np.hstack([u0 > 1, u0 < -1]))
    assert np.allclose(r.multipliers, np.hstack([u0 - 1, -u0 - 1]).clip(0) * np.tile([1, 4, 0.1, 9], 2), rtol=1e-12)
    assert r.message == ["solved"] * 200


@pytest.mark.parametrize("family", ["plain", "vertex", "equalities"])
def test_order_scale_and_repetition_of_rows_change_nothing(family):
    p = FAMILIES[family](np.random.default_rng(5), 60, 4, 9)
    r = solve(*p)
    good = r.status == 0
    order = np.random.default_rng(6).permutation(9)
    scale = 10.0 ** np.random.default_rng(7).uniform(-3, 3, (60, 9))
    twice = [np.concatenate([p.W, p.W * scale[:, :, None]], axis=1), np.concatenate([p.l, p.l * scale], axis=1)]
    for other in (
        solve(p.H, p.u0, p.W[:, order], p.l[:, order]),
        solve(p.H * 1e4, p.u0, p.W * scale[:, :, None], p.l * scale),
        solve(p.H, p.u0, *twice),
    ):
        assert np.array_equal(other.status, r.status)
        assert np.abs(other.u - r.u)[good].max() <= 1e-9


def test_rows_that_always_hold_and_rows_that_never_hold():
    def one(W, l, H=((1.0,),), u0=(2.0,)):
        r = solve(H, u0, W, l)
        return r.message, r.u.tolist(), r.active.tolist()

    assert one([[1], [-1]], [np.inf, np.inf]) == ("solved", [2.0], [False, False])
    assert one([[0], [1]], [0, 1]) == ("solved", [1.0], [False, True])
    words, u, active = one([[1], [0]], [1, -1e-30])
    assert words == "infeasible: no u satisfies row 1" and np.isnan(u) and active == [False, True]
    assert one([[1], [-1]], [5, -np.inf])[0] == "infeasible: no u satisfies row 1"
    assert one([[1], [1], [-1]], [9, 1, -2])[0] == "infeasible: rows 1, 2 contradict each other"
    assert one([[1], [-1]], [1, -1]) == ("solved", [1.0], [True, False])
    for broken in ({"W": [[np.nan], [1]]}, {"u0": [np.inf]}, {"H": [[np.nan]]}, {"l": [1, np.nan]}):
        words, u, active = one(**{"W": [[1], [-1]], "l": [1, 1]} | broken)
        assert "not finite" in words and np.isnan(u) and active == [False, False]
    for H in ([[0.0]], [[-1.0]]):
        assert one([[1], [-1]], [1, 1], H)[0] == "H is not positive definite"
    assert solve([[1, 2], [2, 4]], [3, 3], [[1, 0]], [1]).message == "H is not positive definite"


def test_a_fault_does_not_affect_other_problems_of_a_batch():
    p = FAMILIES["plain"](np.random.default_rng(0), 30, 3, 6)
    whole = solve(*p)
    p.u0[4], p.l[9, 2], p.W[11, 1, 1] = np.nan, np.nan, np.inf
    p.W[13, 1], p.l[13, 1] = -p.W[13, 0], -10.0
    r = solve(*p)
    odd = [4, 9, 11, 13]
    assert r.status[odd].tolist() == [5, 5, 5, 1]
    assert np.array_equal(np.delete(r.u, odd, axis=0), np.delete(whole.u, odd, axis=0))


def symbols(n, m):
    return [ca.SX.sym("H", n, n), ca.SX.sym("u0", n), ca.SX.sym("W", m, n), ca.SX.sym("l", m)]


def flat(p):
    return [x.swapaxes(1, -1).reshape(len(x), -1) for x in p]


def test_compiled_code_has_the_bits_of_the_interpreter():
    p = Problems(
        *[np.concatenate(x) for x in zip(*[f(np.random.default_rng(3), 9, 3, 7) for f in FAMILIES.values()], strict=True)]
    )
    p.u0[5] = np.nan
    x = symbols(3, 7)
    interpreted = compile(ca.Function("f", x, [ca.densify(y) for y in qp.nearest(*x)]), backend="numpy")
    expected = interpreted(*flat(p))
    for lanes in (1, 8):
        found = from_program(interpreted.program, backend="c", lanes=lanes)(*flat(p))
        assert all(np.array_equal(a, b, equal_nan=True) for a, b in zip(found, expected, strict=True))
    assert len(interpreted.program.steps) < 3000 and [len(c.steps) < 1000 for c in interpreted.program.callees] == [True]


def test_too_few_turns_have_a_separate_status(monkeypatch):
    p = FAMILIES["box"](np.random.default_rng(0), 50, 3, 6)
    expected = solve(*p)
    monkeypatch.setattr(qp, "most_iterations", lambda n, m: 3)
    x = symbols(3, 6)
    r = qp.nearest(*x)
    u, status = compile(ca.Function("f", x, [r.u, r.status]), backend="numpy")(*flat(p))
    late = expected.iterations > 3
    assert late.any() and (status[late] == qp.TOO_MANY_ITERATIONS).all() and (status[~late] == qp.SOLVED).all()
    assert np.array_equal(u[~late], expected.u[~late])


def test_lost_digits_have_a_separate_status():
    """H has a condition number of 1e15, so that some answers do not satisfy the optimality conditions."""
    r = np.random.default_rng(2)
    Q = np.linalg.qr(r.normal(size=(40, 4, 4)))[0]
    H = np.einsum("bij,j,bkj->bik", Q, [1, 1e-5, 1e-10, 1e-15], Q)
    found = solve((H + H.swapaxes(1, 2)) / 2, r.normal(size=(40, 4)), r.normal(size=(40, 6, 4)), -np.ones((40, 6)))
    assert set(found.status) >= {qp.INACCURATE} and (np.isnan(found.u).any(axis=1) == (found.status != 0)).all()


MAGNITUDES = (-20, -12, -6, 6, 12, 20)


@pytest.mark.parametrize("family", ["plain", "box", "equalities", "cone"])
def test_units_do_not_matter(family):
    """Scale factors of the metric, of each row and of all inputs, over forty orders of magnitude."""
    p = FAMILIES[family](np.random.default_rng(11), 20, 3, 6)
    r = solve(*p)
    mixed = 10.0 ** np.random.default_rng(12).uniform(-20, 20, p.l.shape)
    others = [(1.0, p._replace(W=p.W * mixed[:, :, None], l=p.l * mixed))]
    for x in 10.0 ** np.array(MAGNITUDES):
        others += [
            (1.0, p._replace(H=p.H * x)),
            (1.0, p._replace(W=p.W * x, l=p.l * x)),
            (x, p._replace(u0=p.u0 * x, l=p.l * x)),
        ]
    for unit, other in others:
        found = solve(*other)
        assert np.array_equal(found.status, r.status)
        assert np.nanmax(np.abs(found.u / unit - r.u)) <= 1e-11 * np.nanmax(np.abs(r.u))


@pytest.mark.parametrize("family", ["plain", "box"])
@pytest.mark.parametrize("power", [4, 6, 8, 10, 12, 14, 16, 20])
def test_requested_inputs_far_beyond_their_limits(family, power):
    """Compared with rational arithmetic. From 1e16 on, limits are smaller than the last digit of u0."""
    n, m = (3, 5) if family == "plain" else (3, 6)
    p = FAMILIES[family](np.random.default_rng([3, power]), 8, n, m)
    p = p._replace(H=(p.H + p.H.swapaxes(1, 2)) / 2, u0=p.u0 * 10.0**power)
    r = solve(*p)
    assert (r.status == qp.SOLVED).all(), r.message
    for i in range(len(p.u0)):
        expected = exact(*[x[i] for x in p])
        assert np.abs(r.u[i] - expected).max() <= 1e-8 * np.abs(expected).max()
        assert (p.W[i] @ r.u[i] - p.l[i] <= 1e-9 * (np.abs(p.l[i]) + np.abs(p.W[i]) @ np.abs(r.u[i]))).all()


@pytest.mark.parametrize(("family", "power"), [("plain", 16), ("box", 16), ("doubled", 16), ("nearly_parallel", 9)])
def test_many_rows_far_from_the_requested_input(family, power):
    p = FAMILIES[family](np.random.default_rng(13), 100, 6, 24)
    p = p._replace(u0=p.u0 * 10.0**power)
    r = solve(*p)
    check(p, r, 1e-9)
    assert (r.status == qp.SOLVED).all()
    terms = np.abs(p.l) + np.einsum("bmn,bn->bm", np.abs(p.W), np.abs(r.u))
    assert (np.einsum("bmn,bn->bm", p.W, r.u) - p.l <= 1e-9 * terms).all()


@pytest.mark.parametrize("family", ["plain", "box", "contradicting"])
@pytest.mark.parametrize("turned", [False, True], ids=["along inputs", "turned"])
@pytest.mark.parametrize("power", [8, 12, 16, 20, 24])
def test_a_metric_of_any_condition_is_solved_or_reported_as_inaccurate(family, turned, power):
    """The statuses "solved" and "infeasible" are always check. If each input has separate limits and the metric is diagonal,
    every condition number is solved."""
    n, m = (3, 6) if family == "box" else (3, 5)
    random = np.random.default_rng([4, power])
    p = FAMILIES[family](random, 10, n, m)
    eigenvalues = 10.0 ** -np.hstack([np.zeros((10, 1)), np.full((10, 1), power), random.uniform(0, power, (10, 1))])
    Q = np.linalg.qr(random.normal(size=(10, n, n)))[0] if turned else np.broadcast_to(np.eye(n), (10, n, n))
    H = np.einsum("bij,bj,bkj->bik", Q, eigenvalues, Q)
    p = p._replace(H=(H + H.swapaxes(1, 2)) / 2)
    r = solve(*p)
    assert (family, turned) != ("box", False) or (r.status == qp.SOLVED).all()
    for i in np.flatnonzero(r.status <= qp.INFEASIBLE):
        expected = exact(*[x[i] for x in p])
        assert (expected is None) == (r.status[i] == qp.INFEASIBLE)
        assert expected is None or np.abs(r.u[i] - expected).max() <= 1e-8 * np.abs(expected).max()


def test_rows_that_differ_along_a_heavy_input_do_not_contradict():
    """The rows are opposite along the light input, and the heavy input satisfies both."""
    for heavy in (1e16, 1e20, 1e24, 1e28):
        r = solve(np.diag([1.0, heavy]), [0, 0], [[1, 1], [-1, 1]], [-1.0, -1.0])
        assert r.status in (qp.SOLVED, qp.INACCURATE), "no contradiction: u = (0, -1)"
        assert r.status != qp.SOLVED or np.allclose(r.u, [0, -1], atol=1e-8)


def test_a_row_at_the_origin_is_judged_by_the_size_of_the_answer():
    """At u = (0, 0, 1) the terms of row 0 are rounding errors. They are small compared with u, so no digits are lost."""
    W = [[-1, 1, 0], [-1, -1, 1], [0, -1, 1], [1, -1, -1], [-1, 1, 1]]
    r = solve(np.eye(3), [0, 0, 0], W, [0, 1, 1, -1, 2])
    assert r.message == "solved" and np.allclose(r.u, [0, 0, 1], atol=1e-15)
    wide = solve(np.eye(3), [0, 0, 0], [*W, [1, 2, 3]], [0, 1, 1, -1, 2, 1e12])
    assert np.array_equal(wide.u, r.u)


def test_two_problems_in_one_kernel():
    """The problems have different sizes, or the same size with zeros in other places."""
    H, u0, W, l = symbols(2, 3)
    box = ca.SX(ca.DM([[1, 0], [0, 1], [-1, 0]]))
    other = ca.SX(ca.DM([[1, 0], [0, 1], [0, -1]]))
    answers = [qp.nearest(H, u0, w, l).u for w in (W, ca.sparsify(box), ca.sparsify(other))]
    answers.append(qp.nearest(H, u0, ca.sparsify(box[:2, :]), l[:2]).u)
    f = compile(ca.Function("f", [H, u0, W, l], answers), backend="numpy")
    p = FAMILIES["plain"](np.random.default_rng(0), 20, 2, 3)
    found = f(*flat(p))
    for u, rows in zip(found, (p.W, box, other, box[:2, :]), strict=True):
        w = p.W if rows is p.W else np.array(ca.DM(rows))
        assert np.allclose(u, solve(p.H, p.u0, w, p.l[:, : w.shape[-2]]).u, rtol=0, atol=1e-13)


def test_derivatives_are_those_on_the_active_rows():
    x = symbols(3, 6)
    u = qp.nearest(*x).u
    f = ca.Function("f", x, [u, ca.jacobian(u, x[1]), ca.jacobian(u, x[3])])
    p = FAMILIES["box"](np.random.default_rng(1), 5, 3, 6)
    for i in range(5):
        H, u0, W, l = (ca.DM(y[i]) for y in p)
        _, by_u0, by_l = f(H, u0, W, l)
        for column, change in enumerate(np.eye(3) * 1e-6):
            apart = (f(H, u0 + change, W, l)[0] - f(H, u0 - change, W, l)[0]) / 2e-6
            assert np.abs(np.array(apart - by_u0[:, column])).max() <= 1e-8
        for column, change in enumerate(np.eye(6) * 1e-6):
            apart = (f(H, u0, W, l + change)[0] - f(H, u0, W, l - change)[0]) / 2e-6
            assert np.abs(np.array(apart - by_l[:, column])).max() <= 1e-8


def test_rows_that_almost_contradict_each_other():
    """Almost opposite rows meet far away or not at all. An angle of 1e-7 counts, one of 1e-13 is rounding."""
    far = solve(np.eye(2), [0, 0], [[1, 0], [-1, 1e-7]], [1, -2])
    assert far.message == "solved" and np.allclose(far.u, [1, -1e7], rtol=1e-8)
    rounded = solve(np.eye(2), [0, 0], [[1, 0], [-1, 1e-13]], [1, -2])
    assert rounded.message == "infeasible: rows 0, 1 contradict each other"
    never = solve(np.eye(2), [0, 0], [[1, 0], [-1, 0]], [1, -1 - 1e-12])
    assert never.message == "infeasible: rows 0, 1 contradict each other"
    assert np.allclose(never.multipliers, never.multipliers[0]) and never.multipliers @ [1, -1 - 1e-12] < 0


@pytest.mark.parametrize("miss", [1e-8, 1e-9, 1e-10, 1e-11])
def test_contradicting_rows_are_not_solved_for_any_metric(miss):
    """The rows miss each other along the light input, by less than the rounding errors that the heavy input causes in z."""
    for heavy in (1.0, 1e8, 1e12, 1e16):
        r = solve(np.diag([heavy, 1.0]), [1, 1], [[0, 1], [0, -1]], [0.5, -0.5 - 2 * miss])
        assert r.status in (qp.INFEASIBLE, qp.INACCURATE), (heavy, r.message)
    assert solve(np.eye(2), [1, 1], [[0, 1], [0, -1]], [0.5, -0.5 - 2 * miss]).status == qp.INFEASIBLE


@pytest.mark.parametrize("miss", [2.0**-k for k in (20, 26, 30, 33, 36)])
@pytest.mark.parametrize("n", [2, 3, 6])
def test_integer_rows_that_miss_one_point_are_infeasible(n, miss):
    """W^T y = 0 and l^T y = -miss exactly, with integers W and y and limits up to 100. The miss is down to 1e-12 of these."""
    r, runs = np.random.default_rng([n, 5]), 200
    W, y = r.integers(-3, 4, (runs, n, n)).astype(float), r.integers(1, 4, (runs, n)).astype(float)
    W = np.concatenate([W, -np.einsum("bk,bkn->bn", y, W)[:, None]], axis=1)
    l = np.einsum("bmn,bn->bm", W, r.integers(-64, 65, (runs, n)) / 64)
    l[:, -1] -= miss
    found = solve(np.broadcast_to(np.eye(n), (runs, n, n)), r.normal(size=(runs, n)), W, l)
    assert np.isin(found.status, (qp.INFEASIBLE, qp.INACCURATE)).all()
    assert miss < 1e-9 or (found.status == qp.INFEASIBLE).mean() > 0.99


@pytest.mark.parametrize("n", [2, 3])
def test_almost_opposite_rows_that_meet_do_not_contradict(n):
    """Rows turned by 1e-14 to 1e-7 meet at up to a thousand times their distance. Solutions within 100 must not be missed."""
    r, runs, m = np.random.default_rng(n), 150, 4
    p = FAMILIES["plain"](r, runs, n, m)
    turn = 10.0 ** r.uniform(-14, -7, runs)
    p.W[:, 1] = -p.W[:, 0] + turn[:, None] * r.normal(size=(runs, n))
    limit = 1 + p.l
    limit[:, 1] = -limit[:, 0] - turn * 10.0 ** r.uniform(-2, 2.5, runs)
    p = p._replace(H=(p.H + p.H.swapaxes(1, 2)) / 2, l=limit)
    found = solve(*p)
    infeasible = np.flatnonzero(found.status == qp.INFEASIBLE)
    assert len(infeasible) and (found.status == qp.SOLVED).any()
    for i in infeasible:
        there = exact(*[x[i] for x in p])
        assert there is None or np.abs(there).max() > 100, (i, turn[i], there)


def test_rounding_errors_are_no_contradiction():
    """Pairs of opposite rows make equations. In about one run of 40,000, rounding leaves an inaccurate z on the way."""
    p = FAMILIES["equalities"](np.random.default_rng([1, 6]), 40_000, 6, 12)
    check(p, solve(*p), OPTIMAL)


@pytest.mark.parametrize("kind, over", [(np.float64, 1e-13), (np.float64, 1e-9), (np.float64, 1e-6), (np.float32, 3e-5)])
def test_inputs_slightly_beyond_their_limits_are_solved(kind, over):
    """The correction is then as small as its rounding errors, and the multipliers must belong to the whole correction."""
    n, m, runs = 3, 6, 200
    r = np.random.default_rng(17)
    u0, W = r.normal(size=(runs, n, 1)), r.normal(size=(runs, m, n))
    room = np.where(np.arange(m) < 2, -over, 1.0) * np.abs(r.normal(size=(runs, m))) * np.linalg.norm(W, axis=2)
    given = (metric(r, runs, n, 100.0), u0, W, (W @ u0)[..., 0] + room)
    x = [ca.SX.sym(name, *shape) for name, shape in (("H", (n, n)), ("u0", (n, 1)), ("W", (m, n)), ("l", (m, 1)))]
    made = optimise(trace(ca.Function("f", x, [qp.nearest(*x).status])))
    flat_rows = [np.ascontiguousarray(a.swapaxes(1, -1).reshape(runs, -1)).astype(kind) for a in given]
    (status,) = evaluate(made, flat_rows, kind)
    assert (status == qp.SOLVED).all()
