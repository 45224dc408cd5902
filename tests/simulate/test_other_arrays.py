"""Arrays of other libraries, by the array API standard and DLPack, give the numbers of NumPy arrays; lost precision warns."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pfaffian as pf
from pfaffian.errors import ModelError, RunWarning
from pfaffian.kernel.call import memory
from pfaffian.model.number import floats


class Strict:
    """An array with exactly the features of the standard: no `__array__`, no sequence, and a dtype that is not NumPy's."""

    dtype = "double"

    def __init__(self, values: Any) -> None:
        self.inner = np.array(values, order="C")
        self.shape, self.ndim, self.size = self.inner.shape, self.inner.ndim, self.inner.size

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        return np

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.inner.__dlpack_device__()

    def __dlpack__(self, **how: Any) -> Any:
        return self.inner.__dlpack__(**how)


class Elsewhere(Strict):
    """An array that only another processor can read."""

    def __dlpack__(self, **how: Any) -> Any:
        raise BufferError("on a device")


def crane() -> pf.Mechanism:
    mass = pf.Parameter("mass", 0.5, "kg")
    bodies = [pf.body("cart", 1.0), pf.body("load", mass, com=(0, 0, -0.7), inertia=0.01)]
    rail = pf.joint("x", "prismatic", "world", "cart", axis=(1, 0, 0))
    joints = [rail, pf.joint("swing", "revolute", "cart", "load", axis=(0, 1, 0))]
    return pf.mechanism("crane", bodies, joints, actuators=[pf.actuator("drive", "x")], parameters=[mass])


STATES = np.array([[0.1, 0.6], [0.2, -0.4]]), np.array([[0.3, -0.2], [0.1, 0.5]]), np.array([[1.0], [2.0]])
SERIES = np.sin(np.arange(5.0))[:, None]


def numbers(m: pf.Mechanism, kind: Callable[[Any], Any]) -> list[np.ndarray]:
    """Results of all functions that take arrays: for one state and a batch, by position and by name."""
    q, v, u = (kind(x) for x in STATES)
    one = [kind(x[0]) for x in STATES]
    how = {"backend": "interpreter"}
    found: list[Any] = []
    for state in ((q, v, u), one, ({"swing": kind([0.3, 0.4])}, v, kind([1.5]))):
        d = pf.derivatives(m, *state, parameters=kind([0.7]), backend="numpy")
        found += [*d.v_dot, d.values, d.regular, *pf.calculus.jvp(m, *state, dq=kind([1.0, 2.0]), du=kind([0.5]))]
        found += [*pf.calculus.vjp(m, *state, v_dot=kind([1.0, -2.0])), pf.forward_dynamics(m, *state).v_dot]
        found += [*pf.calculus.step_derivatives(m, *state, **how)]
    r = pf.calculus.rollout(m, one[0], one[1], kind(SERIES), steps=5, step=0.01, parameters=kind([0.7]), **how)
    found += [r.q, *r.vjp(q=kind(np.ones((6, 2)))), *r.jvp(du=kind(np.ones((5, 1))))]
    run = pf.run(m, q, v, u=kind(SERIES), u_step=0.01, duration=0.05, step=0.01, record=["q"], **how)
    s = pf.stepper(m, step=0.01, runs=2, **how)
    s.reset(q, v)
    s.step(u)
    return [*found, run["q"].values, s.q, s.v]


def jax_arrays() -> Callable[[Any], Any]:
    jax = pytest.importorskip("jax")

    def kind(x: Any) -> Any:
        with jax.enable_x64(True):
            return jax.numpy.asarray(x)

    return kind


@pytest.mark.parametrize("name", ["the standard", "jax"])
def test_other_arrays_are_accepted_everywhere_and_give_the_same_bits(name):
    m, kind = crane(), Strict if name == "the standard" else jax_arrays()
    expected = numbers(m, lambda x: np.asarray(x))
    found = numbers(m, kind)
    assert len(found) == len(expected) > 50
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a, b)


def test_results_are_arrays_of_the_standard_that_others_can_read():
    d = pf.derivatives(crane(), *STATES, backend="numpy")
    for x in (*d.v_dot, *d.reaction, d.motion.v_dot, d.motion.rank, d.regular):
        assert x.__array_namespace__() is np
        assert np.shares_memory(np.from_dlpack(x), x)


def test_doubles_are_not_copied():
    x = Strict(STATES[0])
    assert np.shares_memory(floats(x, "x"), x.inner) and np.shares_memory(memory.as_float(x, "x"), x.inner)


@pytest.mark.parametrize("read", [floats, memory.as_float])
def test_single_precision_warns(read):
    for x in (np.float32([0.1]), Strict(np.float32([0.1]))):
        with pytest.warns(RunWarning, match="q is in float32, which has 6 digits; the computation is in double precision"):
            found = read(x, "q")
        assert found.dtype == np.float64 and found[0] == np.float64(np.float32(0.1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read(np.array([1, 2]), "q").dtype == np.float64  # whole numbers lose nothing


def test_single_precision_of_a_quadratic_program_warns():
    with pytest.warns(RunWarning, match="H is in float32"):
        nearest = pf.analysis.solve_qp(np.eye(2, dtype=np.float32), [3.0, 4.0], [[1, 1]], [5.0], backend="numpy")
    assert np.allclose(nearest.u, [2, 3], atol=1e-9)


@pytest.mark.parametrize("read", [floats, memory.as_float])
def test_arrays_that_numpy_cannot_read_are_refused_with_advice(read):
    with pytest.raises(ModelError, match=r"q: NumPy cannot read this tests.Elsewhere: give a copy in the .* \(on a device\)"):
        read(Elsewhere([1.0]), "q")
    with pytest.raises(ModelError, match="q"):
        read(Strict([1.0 + 2.0j]), "q")


def test_traced_values_of_jax_are_refused():
    jax = pytest.importorskip("jax")
    with pytest.raises(ModelError, match="q: NumPy cannot read this jax"):
        jax.jit(lambda q: pf.forward_dynamics(crane(), q).v_dot)(np.zeros(2))
