"""Units and names of outputs: in the result, on plots and in the overview; and names that are taken."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import pfaffian as pf
from pfaffian import control


@pytest.fixture(scope="module")
def cart() -> pf.Mechanism:
    slide = pf.joint("x", "prismatic", "world", "cart", axis=(1, 0, 0))
    hinge = pf.joint("swing", "revolute", "cart", "bob", axis=(0, 1, 0))
    bodies = [pf.body("cart", 2.0), pf.body("bob", 0.5, com=(0, 0, -0.4), inertia=0.01)]
    return pf.mechanism("cart", bodies, [slide, hinge], actuators=[pf.actuator("push", "x")])


RUN = {"duration": 0.1, "step": 0.01, "backend": "numpy"}


def outputs() -> dict[str, object]:
    return {
        "tip": pf.of_motion(lambda T, a: T.kinematics.position("bob", (0, 0, -0.4))[:2], unit="m", names=("ahead", "aside")),
        "jolt": pf.of_motion(lambda T, a: a.v_dot[0], unit="m/s^2"),
        "plain": lambda k: k.q[0],
    }


def test_units_and_names_of_outputs_reach_result_and_plots(cart: pf.Mechanism) -> None:
    r = pf.run(cart, {"x": 0.2, "swing": 0.5}, outputs=outputs(), **RUN)
    q = r["q"].values
    np.testing.assert_allclose(r["tip"].sel(tip_component="ahead"), q[:, 0] - 0.4 * np.sin(q[:, 1]), atol=1e-12)
    assert (r["tip"].attrs["units"], r["jolt"].attrs["units"], r["jolt"].dims) == ("m", "m/s^2", ("time",))
    pytest.importorskip("matplotlib")
    labels = [axes.get_ylabel() for axes in pf.plot(r, "tip", "jolt", "plain", "tip.aside").axes]
    assert labels == ["tip [m]", "jolt [m/s^2]", "plain", "aside, tip [m]"]


def test_the_overview_draws_outputs(cart: pf.Mechanism) -> None:
    pytest.importorskip("matplotlib")
    r = pf.run(cart, {"x": 0.2, "swing": 0.5}, outputs=outputs(), **RUN)
    labels = [" ".join(axes.get_ylabel().split()) for axes in pf.overview(r).axes]
    assert labels[-3:] == ["tip [m]", "jolt [m/s^2]", "plain"]
    many = {f"y{i}": lambda k: k.q[0] for i in range(12)}
    plain = [axes.get_ylabel() for axes in pf.overview(pf.run(cart, {"x": 0.2}, outputs=many, **RUN)).axes]
    assert [x for x in plain if x.startswith("y")] == [f"y{i}" for i in range(8)]


def test_states_are_swept_with_labelled_outputs(cart: pf.Mechanism, tmp_path: Path) -> None:
    pytest.importorskip("zarr")
    tip = {"tip": outputs()["tip"]}
    states = {"q:x": np.linspace(0, 1, 3)}
    r = pf.sweep(cart, {"q:swing": [0.0, 0.5]}, states=states, outputs=tip, store=tmp_path / "s.zarr", keep=["tip"], u=[0.0])
    assert list(r["tip_component"].values) == ["ahead", "aside"] and r["tip"].attrs["units"] == "m"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"unit": 3}, "unit: a text"),
        ({"names": ("a", "a")}, "two entries are named 'a'"),
        ({"names": "ab"}, "returns 1 number, but 2 are named"),
        ({"names": (1,)}, "a list of names"),
    ],
)
def test_labels_that_cannot_be_are_refused(cart: pf.Mechanism, given: dict, words: str) -> None:
    with pytest.raises(pf.ModelError, match=words):
        pf.run(cart, outputs={"y": pf.of_motion(lambda T, a: T.q[0], **given)}, **RUN)


def test_a_sensor_with_the_name_of_a_signal_is_told_how_to_be_named(cart: pf.Mechanism) -> None:
    law = control.discrete(lambda s: control.Command(-s["q"][0]), 0.02, measure={"q": control.sensor(lambda k: k.q)})
    with pytest.raises(pf.ModelError, match=r"sensor or signal of the law 'q': the result has a signal of that name.*'my_q'"):
        pf.run(cart, control=law, **RUN)
