"""Arguments that no run can use raise a ModelError that names them: they are checked as given, before any conversion."""

from __future__ import annotations

import numpy as np
import pytest

import pfaffian as pf
from pfaffian.kernel import Span, compile_rollout
from pfaffian.states.system import as_system
from tests.by_scipy import run_adaptive
from tests.simulate.machines import four_bar, pendulum
from tests.simulations import simulation

HUGE = 10**400
RUN = {"duration": 0.1}
U = np.zeros((3, 1))

NUMBERS = {
    "text": "x",
    "digits": "2",
    "complex": 1j,
    "flag": True,
    "none": None,
    "list": [1.0],
    "nan": np.nan,
    "inf": np.inf,
    "huge": HUGE,
}
COUNTS = {"text": "2", "float": 2.0, "flag": True, "zero": 0, "negative": -3, "huge": HUGE, "2**64": 2**64, "inf": np.inf}
FLAGS = {"text": "no", "number": 1, "none": None}
ARRAYS = {
    "complex": [1j], "flags": [True], "digits": ["2"], "objects": [None], "ragged": [[1.0], [1.0, 2.0]], "nan": [np.nan],
    "huge": [HUGE], "infinite": [-np.inf], "text": "x", "dates": np.array(["2020-01-01"], dtype="datetime64[D]"),
}  # fmt: skip


def cases(name: str, values: dict, call, skip: tuple[str, ...] = ()):
    return [pytest.param(call, name, value, id=f"{name}-{how}") for how, value in values.items() if how not in skip]


def run(**arguments):
    return lambda name, value: pf.run(pendulum(), **(RUN | arguments | {name: value}))


def accurately(name, value):
    return run_adaptive(pendulum(), **({"times": [0.0, 0.1]} | {name: value}))


def forward(name, value):
    return pf.forward_dynamics(pendulum(), **({"q": [0.1], "v": [0.0], "u": [0.0]} | {name: value}))


def inverse(name, value):
    return pf.inverse_dynamics(pendulum(), **({"q": [0.1], "v": [0.0], "a": [0.0]} | {name: value}))


def assemble(name, value):
    return pf.assemble(four_bar(), **({"q": [0.1, 0.2, 0.3], "backend": "numpy"} | {name: value}))


BAD = [
    *cases("duration", NUMBERS, run()),
    *cases("step", NUMBERS, run(), skip=("none",)),
    *cases("start", NUMBERS, run()),
    *cases("u_step", NUMBERS, run(u=U), skip=("none",)),
    *cases("every", COUNTS, run()),
    *cases("threads", COUNTS, run()),
    *cases("correct_start", FLAGS, run()),
    *cases("strict", FLAGS, run()),
    *cases("squeeze", FLAGS, run()),
    *cases("progress", FLAGS, run()),
    *[p for name in ("q", "v", "u") for p in cases(name, ARRAYS, run())],
    *cases("times", ARRAYS, accurately),
    *[p for name in ("q", "v", "u") for p in cases(name, ARRAYS, accurately)],
    *cases("tolerance", NUMBERS | {"one": 1.0, "zero": 0.0}, accurately),
    *cases("max_step", NUMBERS | {"zero": 0.0, "negative": -1.0}, accurately, skip=("inf",)),
    *[p for name in ("q", "v", "u") for p in cases(name, ARRAYS, forward)],
    *cases("t", NUMBERS, forward, skip=("list",)),  # one time for each run
    *[p for name in ("q", "v", "a", "weight") for p in cases(name, ARRAYS, inverse)],
    *cases("t", NUMBERS, inverse),
    *[p for name in ("q", "v", "weight") for p in cases(name, ARRAYS, assemble)],
    *cases("t", NUMBERS, assemble),
    *cases("branches", COUNTS, assemble),
]


@pytest.mark.parametrize(("call", "name", "value"), BAD)
def test_bad_numbers_are_named(call, name, value):
    with pytest.raises(pf.ModelError, match=rf"\b{name}\b") as error:
        call(name, value)
    assert len(str(error.value)) < 400


OUT_OF_RANGE = {
    "more steps than counts": ({"duration": 1e308}, r"duration 1e\+308 s is more than 9007199254740992 steps of 0.001 s"),
    "overflow of their number": ({"duration": 1e300, "step": 1e-300}, "duration 1e"),
    "no step": ({"step": 0.0}, "step must be above 0"),
    "backwards": ({"duration": -1.0}, "duration must be at least 0"),
    "lost to rounding": ({"start": 1e17}, "step 0.001 s is lost to rounding next to start 1e"),
    "samples beyond counts": ({"u": U, "u_step": 1e300}, r"u_step 1e\+300 must be a whole number of steps"),
    "samples between steps": ({"u": U, "u_step": 1.5e-3}, "u_step 0.0015 must be"),
    "samples before steps": ({"u": U, "u_step": 1e-4}, "u_step 0.0001 must be"),
    "no such hold": ({"hold": "cubic"}, "hold 'cubic' is unknown; one of zero, linear"),
    "hold of no kind": ({"hold": 3}, "hold 3 is unknown"),
    "records beyond counts": ({"every": 2**63}, "every must be a whole number from 1"),
}


@pytest.mark.parametrize("case", OUT_OF_RANGE)
def test_arguments_out_of_range_are_named(case):
    arguments, message = OUT_OF_RANGE[case]
    with pytest.raises(pf.ModelError, match=message):
        pf.run(pendulum(), **(RUN | arguments))


def test_large_integers_are_accepted_as_numbers():
    assert pf.run(pendulum(), {"pivot": 2**70}, duration=0.0).q.values[0, 0] == 2.0**70
    assert pf.run(pendulum(), np.array([1], dtype=np.int8), duration=np.int64(0), every=np.int32(5)).q.values[0, 0] == 1


@pytest.mark.parametrize("what", ["steps", "every", "stride", "first"])
def test_the_compiled_loop_refuses_counts_beyond_its_integers(what):
    traced = simulation(as_system(pendulum()), pf.Scheme()).traced
    rollout = compile_rollout(traced.step, traced.observe, backend="numpy", lanes=1)
    with pytest.raises(pf.ModelError, match="at most"):
        rollout(np.zeros(2), np.zeros((1, 1)), np.zeros(0), Span(**({"t0": 0.0, "h": 1e-3, "steps": 1} | {what: 2**64})))


# -- inputs -----------------------------------------------------------------------------------------------------


def two_motors() -> pf.Mechanism:
    return pendulum().with_(actuators=[pf.actuator("m1", "pivot"), pf.actuator("m2", "pivot", gear=2.0)])


@pytest.mark.parametrize("u", [np.zeros((5, 2)), {"m1": np.zeros(5)}])
def test_a_batch_given_by_u_alone_is_refused(u):
    with pytest.raises(pf.ModelError, match="nothing else has 5 runs: give u_step"):
        pf.run(two_motors(), u=u, **RUN)


def test_references_given_by_u_alone_are_refused():
    law = pf.control.computed_torque(pf.control.joints("pivot"), pf.control.sampled(["x"]), stiffness=4.0, damping=4.0)
    with pytest.raises(pf.ModelError, match="nothing else has 5 runs"):
        pf.run(pendulum(), u=np.zeros((5, 3)), control=law, **RUN)
    r = pf.run(pendulum(), u={"x": np.linspace(0, 1, 5)}, u_step=0.02, control=law, backend="numpy", **RUN)
    assert r.inputs.dims == ("sample", "given")
    assert list(r.given.values) == ["x", "x'", "x''"]


@pytest.mark.parametrize("other", ["q", "v"])
def test_a_batch_of_states_takes_an_input_for_each_run(other):
    u = np.arange(10.0).reshape(5, 2)
    r = pf.run(two_motors(), u=u, **{other: np.zeros((5, 1))}, backend="numpy", **RUN)
    np.testing.assert_array_equal(r.u.values[:, 0], u)


def test_a_series_by_name_equals_the_series_by_array():
    x, how = np.linspace(0, 2, 6), {"u_step": 0.02, "hold": "linear", "backend": "numpy"} | RUN
    whole = np.stack([np.zeros(6), x], axis=1)
    by_name, by_array = (pf.run(two_motors(), u=u, **how) for u in ({"m2": x}, whole))
    np.testing.assert_array_equal(by_name.q.values, by_array.q.values)
    np.testing.assert_array_equal(by_name.inputs.values, whole)
    with_constant = pf.run(two_motors(), u={"m2": x, "m1": 0.5}, **how)
    np.testing.assert_array_equal(with_constant.inputs.values[:, 0], 0.5)
    many = pf.run(two_motors(), u={"m2": np.stack([x, -x], axis=1), "m1": x}, **how)
    assert many.sizes["run"] == 2
    np.testing.assert_array_equal(many.inputs.sel(given="m2", run=1).values, -x)
    np.testing.assert_array_equal(many.inputs.sel(given="m1", run=1).values, x)


@pytest.mark.parametrize(
    ("u", "message"),
    [
        ({"m1": np.zeros(5), "m2": np.zeros(4)}, "different numbers of samples: 'm1' has 5, 'm2' has 4"),
        ({"m3": np.zeros(5)}, "no 'm3'; there are m1, m2"),
        ({"m1": np.zeros((5, 2, 2))}, r"u\['m1'\] has shape \(5, 2, 2\)"),
        ({"m1": np.zeros((5, 2)), "m2": np.zeros((5, 3))}, "numbers of runs differ"),
        ({"m1": np.zeros(0)}, r"u\['m1'\] has shape \(0,\)"),
        (np.zeros((5, 3)), r"u has shape \(5, 3\): with u_step \(samples, 2\)"),
        (None, "u"),
    ],
)
def test_wrong_series_are_named(u, message):
    with pytest.raises(pf.ModelError, match=message):
        pf.run(two_motors(), u=u, u_step=0.02, **RUN)
