"""Libraries with CasADi's calling convention: nonzeros, omitted arguments, results that are not requested, derivatives."""

import ctypes

import casadi as ca
import numpy as np
import pytest

from pfaffian.errors import BuildError
from pfaffian.kernel.call.external import compile_external
from pfaffian.kernel.text.external_source import external_text


def functions() -> tuple[ca.Function, ...]:
    """A function of a column and an upper triangular matrix with sparse results, and its Jacobian."""
    x, A = ca.SX.sym("x", 2), ca.SX.sym("A", ca.Sparsity.upper(2))
    y = ca.SX(3, 1)
    y[2] = ca.sin(x[0]) * A[0, 1]
    f = ca.Function("f", [x, A], [y, ca.mtimes(A, x)], ["x", "A"], ["y", "Ax"])
    return f, f.jacobian()


@pytest.fixture(scope="module")
def path():
    return compile_external(functions, "test external")


GIVEN = [0.3, -0.7], ca.DM(ca.Sparsity.upper(2), [2.0, 0.5, -1.5])


def test_a_library_keeps_names_patterns_values_and_jacobian(path):
    f, (original, jacobian) = ca.external("f", str(path)), functions()
    for a, b in ((f, original), (f.jacobian(), jacobian)):
        assert a.name_in() == b.name_in() and a.name_out() == b.name_out() and a.is_a("External", False)
        for side, count in (("sparsity_in", a.n_in()), ("sparsity_out", a.n_out())):
            assert [getattr(a, side)(i) for i in range(count)] == [getattr(b, side)(i) for i in range(count)]
    for a, b in zip(f(*GIVEN), original(*GIVEN), strict=True):
        np.testing.assert_allclose(np.array(a), np.array(b), rtol=1e-15)
    outputs = original(*GIVEN)
    for a, b in zip(f.jacobian()(*GIVEN, *outputs), jacobian(*GIVEN, *outputs), strict=True):
        np.testing.assert_allclose(np.array(a), np.array(b), rtol=1e-15)


def test_omitted_arguments_are_zero_and_results_not_requested_are_skipped(path):
    library = ctypes.CDLL(str(path))
    doubles, work = ctypes.c_double * 8, (ctypes.c_longlong * 4)()
    assert library.f_work(*[ctypes.byref(work, 8 * i) for i in range(4)]) == 0
    assert list(work[:3]) == [2, 2, 0]
    x, found, w = doubles(0.3, -0.7), doubles(*[9.0] * 8), (ctypes.c_double * work[3])()
    pointers = ctypes.c_void_p * 2
    given, requested = pointers(ctypes.addressof(x), None), pointers(None, ctypes.addressof(found))
    assert library.f(given, requested, None, w, 0) == 0
    assert found[:3] == [0.0, 0.0, 9.0]


def test_a_known_key_builds_nothing_again(path):
    def never() -> tuple[ca.Function, ...]:
        raise AssertionError

    assert compile_external(never, "test external") == path


def test_names_that_are_invalid_in_c_are_refused():
    x = ca.SX.sym("x")
    f = ca.Function("f", [x], [x])
    with pytest.raises(BuildError, match="'a b' is not an identifier of C"):
        external_text([_Named(f, "a b")], [None])


class _Named:
    """A function with a name that CasADi itself would refuse."""

    def __init__(self, f: ca.Function, name: str) -> None:
        self.f, self.name = f, lambda: name

    def __getattr__(self, name: str):
        return getattr(self.f, name)


def test_without_a_compiler(monkeypatch):
    monkeypatch.setenv("PFAFFIAN_CC", "/no/such/compiler")
    with pytest.raises(BuildError, match="no C compiler found"):
        compile_external(functions, "test external")
