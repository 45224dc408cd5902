"""What is no real number is refused wherever one is taken: text is not read, True does not count, no imaginary part is cut."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import casadi as ca
import numpy as np
import pytest

import pfaffian as pf
from pfaffian import analysis, control, forces, identification, study, sweeps
from pfaffian.errors import ModelError

NONE_REAL: dict[str, Any] = {
    "complex": 1 + 1j, "complex of NumPy": np.complex128(1 + 0j), "complex64": np.complex64(1 + 1j), "flag": True,
    "flag of NumPy": np.True_, "text": "1", "text of NumPy": np.str_("1"), "bytes": b"1", "set": {1.0}, "object": object(),
    "time": np.timedelta64(1, "s"), "date": np.datetime64("2020-01-01"), "ragged": [[1.0], [1.0, 2.0]],
}  # fmt: skip
"""None of them is a real number, although float() takes most."""

SLIDE = pf.joint("x", "prismatic", "world", "cart", axis=(1, 0, 0))
CART = pf.mechanism("cart", [pf.body("cart", 2.0)], [SLIDE], actuators=[pf.actuator("push", "x")])
TIMES = np.arange(0.0, 2.0, 0.1)
AT = pf.Kinematics(CART, ca.SX([0.0]), ca.SX([0.0]), ca.SX(0.0))
PROPELLERS: dict[str, Any] = {"arm": 0.2, "rotor": 3e-5, "thrust": 1e-5, "torque": 2e-7, "tilt_inertia": 0.0}
RUN: dict[str, Any] = {"duration": 0.1, "step": 0.05, "backend": "numpy"}


def propellers(**changed: Any) -> np.ndarray:
    arms = np.arange(4) * np.pi / 2
    return identification.propeller_wrench([[5.0] * 4], [[0.0] * 4], [[0.0] * 3], arms, [1, -1, 1, -1], **PROPELLERS | changed)


ONE: dict[str, Callable[[Any], Any]] = {
    "mass": lambda x: pf.body("cart", x),
    "parameter": lambda x: pf.Parameter("p", x),
    "damping": lambda x: pf.joint("x", "prismatic", "world", "cart", damping=x),
    "upper limit": lambda x: pf.joint("x", "prismatic", "world", "cart", limits=(-1.0, x)),
    "thrust limit": lambda x: forces.thruster("jet", "cart", limits=np.array([0.0, x], dtype=object)),
    "gear": lambda x: pf.actuator("push", "x", gear=x),
    "gust": lambda x: forces.gust(intensity=x),
    "within": lambda x: pf.random_configuration(CART, np.random.default_rng(0), within=x),
    "duration of extremes": lambda x: control.extremes(lambda t: [t, 0.0, 0.0], x),
    "heading": lambda x: control.thrust_attitude([0.0, 0.0, 1.0], x),
    "transport": lambda x: control.transport_error(AT, AT, [], x),
    "arm": lambda x: propellers(arm=x),
    "torque": lambda x: propellers(torque=x),
    "window": lambda x: identification.smoothed(TIMES, 0.1, window=x, order=2),
    "order": lambda x: identification.smoothed(TIMES, 0.1, window=5, order=x),
    "width": lambda x: study.blank_figure(x, 3.0),
    "range": lambda x: sweeps.refine(CART, {"q:x": (0.0, x)}, store="none", keep={}, by="end"),
    "horizon": lambda x: identification.compare_friction(CART, [], [], joints=["x"], horizon=x),
    "length metric": lambda x: pf.constraints.length_metric(CART, x),
    "gravity": lambda x: control.hover_placement([-1, -1, -1, -1], gravity=x),
}
"""A call that needs one number."""

SEVERAL: dict[str, Callable[[Any], Any]] = {
    "com": lambda x: pf.body("cart", 1.0, com=(0, 0, x)),
    "axis": lambda x: pf.joint("x", "prismatic", "world", "cart", axis=[1.0, x, 0.0]),
    "placement": lambda x: pf.pose(xyz=(x, 0, 0)),
    "road": lambda x: forces.road([0.0, x, 0.0]),
    "axes": lambda x: control.centre_of_mass(axes=[x]),
    "axes of a point": lambda x: control.point("cart", axes=[x]),
    "headings": lambda x: control.quadcopter_pair("cart", [-1, -1, -1, -1], heading=(x, 1.0)),
    "record": lambda x: pf.fit(CART, {"time": [0.0, 1.0], "q": [0.0, x]}),
    "matrix": lambda x: analysis.solve_qp([[x]], [0.0], [[1.0]], [1.0]),
    "start of a path": lambda x: control.rest_to_rest([x], [1.0], 1.0),
}
"""A call that needs several numbers, of which this is one."""


@pytest.mark.parametrize("name", [*ONE, *SEVERAL])
def test_what_is_no_real_number_is_refused(name: str) -> None:
    call = (ONE | SEVERAL)[name]
    for kind, value in NONE_REAL.items():
        with pytest.raises(ModelError):
            call(value)
            pytest.fail(f"{name}: {kind} was taken")


@pytest.mark.parametrize(
    "poles", [["-1"] * 4, [True] * 4, [[-1] * 4], [], [[-1], [-1, -2], -1, -1], [None] * 4, [-1, -1, -1, np.nan]]
)
def test_poles_are_numbers_which_may_be_complex(poles: Any) -> None:
    for place in (control.hover_placement, lambda p: control.two_mass_placement(p, ratio=2.0)):
        with pytest.raises(ModelError, match="four poles"):
            place(poles)
    assert control.hover_placement(np.array([-1 + 1j, -1 - 1j, -2, -3])).damping > 0


@pytest.mark.parametrize("kind", ["complex", "complex of NumPy", "flag", "text", "ragged"])
def test_a_law_in_python_that_gives_no_real_number_stops_its_run(kind: str) -> None:
    with pytest.warns(pf.RunWarning, match="numbers are needed"):
        found = pf.run(CART, control=control.python_law(lambda *at: [NONE_REAL[kind]], 0.05), **RUN)
    assert found.status.item() > 0


def test_numbers_of_other_types_are_taken() -> None:
    for x in (np.float32(2.0), np.int8(2), np.array(2.0), np.array([2.0]), np.longdouble(2.0), ca.DM(2.0)):
        assert float(pf.body("cart", x).mass) == 2.0
        assert pf.joint("x", "prismatic", "world", "cart", limits=(-1, x)).limits == ((-1.0, 2.0),)


@pytest.mark.parametrize("empty", ["H", "u0", "W", "l"])
def test_a_batch_of_no_problems_is_refused(empty: str) -> None:
    given: dict[str, Any] = {"H": [[1.0]], "u0": [0.0], "W": [[1.0]], "l": [1.0]}
    with pytest.raises(ModelError, match=f"no run in {empty}"):
        analysis.solve_qp(**given | {empty: np.zeros((0, *np.shape(given[empty])))})


def test_a_path_keeps_its_ends_if_the_arrays_are_changed() -> None:
    start, end = np.zeros(1), np.ones(1)
    path = control.rest_to_rest(start, end, 1.0)
    start[:], end[:] = 5.0, 7.0
    assert [float(path(ca.SX(t))) for t in (0.0, 1.0)] == [0.0, 1.0]
