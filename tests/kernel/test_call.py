"""Calls of a Kernel: strides, broadcasting, out=, wrong arguments, threads."""

import gc
from concurrent.futures import ThreadPoolExecutor

import casadi as ca
import numpy as np
import pytest

from pfaffian import kernel
from pfaffian.errors import ModelError

x, p = ca.SX.sym("x", 3), ca.SX.sym("p", 2)
FUNCTION = ca.Function("f", [x, p], [ca.sin(x) * p[0] + p[1], x[0] / x[1]])


@pytest.fixture(scope="module", params=["c", "numpy"])
def k(request):
    return kernel.compile(FUNCTION, backend=request.param)


def layouts(a):
    wide = np.zeros((2 * len(a), 3 * a.shape[1]))
    wide[::2, ::3] = a
    odd = np.zeros(a.size * 8 + 1, np.uint8)[1:].view(np.float64).reshape(a.shape)
    odd[...] = a
    yield from (a, np.asfortranarray(a), wide[::2, ::3], a[::-1].copy()[::-1], odd, a.astype(">f8"))


@pytest.mark.parametrize("batch", [1, 5, 8, 19])
def test_any_strides(k, batch):
    random = np.random.default_rng(0)
    a, b = random.normal(size=(batch, 3)), random.normal(size=(batch, 2))
    expected = k(a, b)
    assert [w.shape for w in expected] == [(batch, 3), (batch, 1)]
    assert expected[0].strides[0] == 8
    for u, v in zip(layouts(a), layouts(b), strict=True):
        for got, w in zip(k(u, v), expected, strict=True):
            assert np.array_equal(got, w)
    assert np.array_equal(k(a, b[0])[0], k(a, np.broadcast_to(b[0], (batch, 2)))[0])


@pytest.mark.parametrize("n", [1, 7, 8, 9, 16, 21])
@pytest.mark.parametrize("batch", [8, 65, 133])
def test_wide_arrays_in_both_orders(n, batch):
    """Rows of eight or more numbers use the transpose. Memory next to the output is not written."""
    y = ca.SX.sym("y", n)
    k = kernel.compile(ca.Function("f", [y], [y * 3, y[0]]), backend="c")
    a = np.random.default_rng(n).normal(size=(batch, n))
    for order in "CF":
        for step in (1, -1):
            given = np.array(a, order=order)[::step]
            field = np.full((batch + 2, n + 3), 7.0, order=order)
            out = field[1:-1, 2:-1][::step], np.empty((batch, 1))
            k(given, out=out)
            assert np.array_equal(out[0], given * 3) and np.array_equal(out[1], given[:, :1])
            field[1:-1, 2:-1] = 7.0
            assert (field == 7.0).all()


def test_integers_and_lists_are_accepted(k):
    assert np.array_equal(k([1, 2, 3], [4, 5])[0], k(np.array([1.0, 2, 3]), np.array([4.0, 5]))[0])


def test_only_out_is_written(k):
    random = np.random.default_rng(0)
    a, b = random.normal(size=(11, 3)), random.normal(size=(11, 2))
    field = np.full((13, 7), 7.0)
    out = field[1:12, 2:5], np.empty((11, 1))
    assert k(a, b, out=out)[0] is out[0]
    assert np.array_equal(out[0], k(a, b)[0])
    field[1:12, 2:5] = 7.0
    assert (field == 7.0).all()


def test_wrong_arguments_name_the_argument(k):
    good = np.zeros(3), np.zeros(2)
    for bad, word in [
        ((good[0],), "2 arrays"),
        ((np.zeros(4), good[1]), "argument 0"),
        ((good[0], np.zeros((2, 2, 2))), "argument 1"),
        ((np.zeros((4, 3)), np.zeros((5, 2))), "argument 1"),
        ((good[0], "ab"), "argument 1"),
        ((good[0] * 1j, good[1]), "argument 0"),
        ((good[0], None), "argument 1"),
    ]:
        with pytest.raises(ModelError, match=word):
            k(*bad)
    with pytest.raises(ModelError, match="out"):
        k(*good, out=(np.zeros(3),))
    with pytest.raises(ModelError, match=r"out\[1\]"):
        k(*good, out=(np.zeros(3), np.zeros(2)))


def test_no_runs_and_no_ports():
    k = kernel.compile(FUNCTION, backend="c")
    assert k(np.zeros((0, 3)), np.zeros(2))[0].shape == (0, 3)
    for backend in ("c", "numpy"):
        constant = kernel.compile(ca.Function("f", [], [ca.SX(2.0)]), backend=backend)
        assert constant()[0].tolist() == [2.0]


def test_many_threads_may_call_one_kernel():
    k = kernel.compile(FUNCTION, backend="c")
    inputs = [(np.full((200, 3), float(i)), np.ones(2)) for i in range(1, 40)]
    expected = [k(*arrays)[0] for arrays in inputs]
    with ThreadPoolExecutor(8) as pool:
        for got, w in zip(pool.map(lambda a: k(*a, threads=2)[0], inputs), expected, strict=True):
            assert np.array_equal(got, w)
        singles = pool.map(lambda a: k(a[0][0], a[1])[0], inputs)
        assert all(np.array_equal(s, w[0]) for s, w in zip(singles, expected, strict=True))


@pytest.mark.parametrize("on", [True, False])
def test_compiling_restores_the_state_of_the_garbage_collector(on):
    before = gc.isenabled()
    try:
        gc.enable() if on else gc.disable()
        kernel.compile(ca.Function("f", [y := ca.SX.sym("y")], [2 * y]), backend="numpy")
        assert gc.isenabled() is on
    finally:
        gc.enable() if before else gc.disable()
