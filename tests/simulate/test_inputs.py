"""Input series with either hold, inputs by name, and refused arguments."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import pfaffian as pf
from tests.by_scipy import run_adaptive
from tests.refused import refusals
from tests.simulate.machines import FOUR_BAR_START, flying_pair, four_bar, pendulum
from tests.tolerance import INTEGRATED, close

U = np.array([1.0, -2.0, 0.5, 3.0, -1.0])
U_STEP = 0.2


@pytest.mark.parametrize("hold", ["zero", "linear"])
def test_input_series_against_scipy(hold):
    times = U_STEP * np.arange(len(U))

    def torque(t: float) -> float:
        return np.interp(t, times, U) if hold == "linear" else U[min(int(t / U_STEP + 1e-9), len(U) - 1)]

    m = pendulum(damping=0.3)
    r = pf.run(m, [0.4], [0.0], duration=1.0, step=1e-3, every=200, u=U[:, None], u_step=U_STEP, hold=hold)
    state, expected = [0.4, 0.0], [[0.4, 0.0]]
    for i in range(5):  # sample by sample, since the right-hand side is not smooth
        ends = (i * U_STEP, (i + 1) * U_STEP)

        def slope(t, x, ends=ends):
            return [x[1], torque(min(t, ends[1] - 1e-8)) - 0.3 * x[1] - 9.81 * np.sin(x[0])]

        state = solve_ivp(slope, ends, state, method="DOP853", rtol=1e-12, atol=1e-12).y[:, -1]
        expected.append(state)
    found = np.column_stack([r.q.values[:, 0], r.v.values[:, 0]])
    close(found, np.array(expected), INTEGRATED, f"input series, hold {hold}")


def test_names_and_arrays_give_the_same_run():
    m = four_bar()
    start = dict(zip(m.q_names, FOUR_BAR_START.tolist(), strict=True))
    by_name = pf.run(m, start, {"a": 0.0}, u={"motor": 2.0}, duration=0.1)
    by_array = pf.run(m, FOUR_BAR_START, [0.0, 0, 0], u=[2.0], duration=0.1)
    assert np.array_equal(by_name.q.values, by_array.q.values)
    assert (by_name.u.values == 2.0).all()


def crossed() -> pf.Mechanism:
    """Two constraints that contradict each other."""
    return pendulum().with_(
        constraints=[
            pf.holonomic("here", lambda k: k.joint("pivot")),
            pf.holonomic("there", lambda k: k.joint("pivot") - 1),
        ]
    )


RUN = {"duration": 0.1}
NEWTON = {"formulation": "newton"}
WRONG = {
    "q too long": (lambda: pf.run(pendulum(), [0, 0], **RUN), r"q has shape \(2,\).*pivot"),
    "v too long": (lambda: pf.run(pendulum(), [0], [0, 0, 0], **RUN), r"v has shape \(3,\).*pivot"),
    "unknown name": (lambda: pf.run(pendulum(), {"pivto": 1.0}, **RUN), r"no 'pivto'; did you mean 'pivot'"),
    "unknown input": (lambda: pf.run(pendulum(), u={"moter": 1.0}, **RUN), r"no 'moter'; did you mean 'motor'"),
    "unknown parameter": (lambda: pf.run(pendulum(), parameters={"mass": 1.0}, **RUN), r"there is no 'mass'"),
    "nan": (lambda: pf.run(pendulum(), [np.nan], **RUN), r"q is not finite: 'pivot' is nan"),
    "infinite input": (lambda: pf.run(pendulum(), u={"motor": np.inf}, **RUN), r"u\['motor'\] is not finite"),
    "text": (lambda: pf.run(pendulum(), ["a"], **RUN), r"q: \['a'\] is not an array of real numbers"),
    "zero quaternion": (lambda: pf.run(flying_pair(), np.zeros(11), **RUN), r"quaternion of joint 'flight' is zero"),
    "runs differ": (lambda: pf.run(pendulum(), np.zeros((2, 1)), np.zeros((3, 1)), **RUN), r"q has 2, v has 3"),
    "negative step": (lambda: pf.run(pendulum(), step=-1e-3, **RUN), r"step must be above 0, got -0.001"),
    "endless": (lambda: pf.run(pendulum(), duration=np.inf), r"duration is not finite"),
    "every": (lambda: pf.run(pendulum(), every=0, **RUN), r"every must be .* got 0"),
    "u_step": (lambda: pf.run(pendulum(), u=np.zeros((3, 1)), u_step=1.5e-3, **RUN), r"u_step 0.0015 must be"),
    "series": (lambda: pf.run(pendulum(), u=np.zeros((3, 2)), u_step=1e-2, **RUN), r"u has shape \(3, 2\)"),
    "formulation": (lambda: pf.run(pendulum(), scheme=pf.Scheme(**NEWTON), **RUN), r"formulation 'newton' is unknown"),
    "integrator": (lambda: pf.Scheme(integrator="rk5"), r"integrator 'rk5' is unknown; one of rk4, euler, midpoint, tr-bdf2"),
    "corrections": (lambda: pf.Scheme(corrections=-1), r"corrections must be .* got -1"),
    "output name": (lambda: pf.run(pendulum(), outputs={"q": lambda k: k.q}, **RUN), r"output 'q'"),
    "times": (lambda: run_adaptive(pendulum(), times=[0, 0]), r"times must be"),
    "body": (lambda: pf.run(pendulum(), outputs={"x": lambda k: k.position("bub")}, **RUN), r"no body 'bub'"),
}  # fmt: skip


test_wrong_input_is_named = refusals(WRONG)


def stretched() -> pf.Mechanism:
    """The four-bar with its far bearing at a distance that is a parameter."""
    m, far = four_bar(), pf.Parameter("far", 0.9)
    d = pf.joint("d", "revolute", "world", "rocker", axis=(0, 1, 0), placement=pf.pose((far, 0, 0)))
    return m.with_(joints=[*m.joints[:2], d], parameters=[far])


def test_start_that_cannot_close_is_named():
    with pytest.raises(pf.RunError, match=r"row '(here|there)' is left"):
        pf.run(crossed(), **RUN)
    with pytest.raises(pf.RunError, match=r"row 'c\.v.' is left .* in run 0"):
        pf.run(stretched(), FOUR_BAR_START, parameters={"far": [7.0, 5.0]}, **RUN)


@pytest.mark.parametrize("hold, enough", [("zero", 5), ("linear", 6)])
def test_a_series_that_ends_before_the_run_warns(hold, enough):
    m, keep = pendulum(), {"duration": 0.01, "u_step": 2e-3, "hold": hold, "backend": "interpreter"}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pf.run(m, u={"motor": np.ones(enough)}, **keep)
        pf.run(m, u={"motor": 1.0}, **keep)
    with pytest.warns(pf.RunWarning, match=rf"u ends at t = 0\.008 s .*: {enough - 1} samples are given, {enough} are needed"):
        pf.run(m, u={"motor": np.ones(enough - 1)}, **keep)


def test_an_empty_dict_means_no_inputs():
    """The settings of a file without inputs contain an empty dict."""
    ball = pf.mechanism("point", [pf.body("ball", 1.0)], [pf.joint("rail", "prismatic", "world", "ball", axis=(0, 0, 1))])
    one, two = (pf.run(ball, duration=0.1, step=0.05, u=u, backend="numpy") for u in ({}, None))
    np.testing.assert_array_equal(one.q, two.q)
