"""Starts in a singular configuration: as accurate as any other where the velocity chooses a branch; a warning where it does
not."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from scipy.integrate import solve_ivp

import pfaffian as pf
from pfaffian.dynamics import passage
from tests.loops_cut_anywhere import SPHERICAL, linkage
from tests.oracles.test_known_answers import n_four_bar
from tests.oracles.test_singular import slider_crank
from tests.random_mechanisms import Case, loops, matrices, reverse
from tests.simulate.machines import FOUR_BAR_START, four_bar
from tests.tolerance import ALGEBRA, INTEGRATED, close

FLAT = np.pi / 2 * np.array([1, -1, 1, -1, 1])
ALONG = 5.0 * np.array([1, -1, 1, -1, 1])

AS_ELSEWHERE = 1e-11
"""Error of a run of one second from a regular start at 1 ms; a first stage without the lost rows costs 1e-7."""


def exact(times: np.ndarray) -> np.ndarray:
    """Angle of the links of the 2-four-bar from flat: ((N + 1) / 3 + N) th'' = g ((N + 1) / 2 + N) sin th."""

    def rate(_: float, x: np.ndarray) -> list[float]:
        return [x[1], 9.81 * 3.5 / 3 * np.sin(x[0])]

    return solve_ivp(rate, (0, times[-1]), [FLAT[0], ALONG[0]], "DOP853", times, rtol=1e-13, atol=1e-13).y[0]


@pytest.mark.parametrize("spatial", [False, True])
def test_a_start_from_flat_is_as_accurate_as_any(spatial):
    r = pf.run(n_four_bar(2, spatial), FLAT, ALONG, duration=1.0, step=1e-3, every=10)
    close(r.q.values[:, 0], exact(r.time.values), AS_ELSEWHERE, "angle from flat")
    assert (r.entrance, r.regularity[0]) == (1, 0)
    assert float(r.regularity[1]) > 0
    assert (r["rank"][0], r["rank"][1]) == (2, 4)


def test_the_acceleration_at_a_singularity_is_that_of_the_motion():
    """The reaction does no work. At rest no lost row is recovered."""
    m, parts = n_four_bar(2, True), {"v_dot": lambda T: passage.motion(T).v_dot, "rank": lambda T: passage.motion(T).rank,
                                     "reaction": lambda T: passage.motion(T).reaction}  # fmt: skip
    r = matrices(Case(m, FLAT, ALONG, np.zeros(0), 0.0), parts)
    close(r["v_dot"].ravel(), 9.81 * 3.5 / 3 * ALONG / ALONG[0], ALGEBRA, "acceleration from flat")
    assert r["rank"] == 4
    close(ALONG @ r["reaction"].ravel(), 0.0, ALGEBRA, "power of the reaction", np.abs(r["reaction"]).max())
    assert matrices(Case(m, FLAT, 0 * ALONG, np.zeros(0), 0.0), parts)["rank"] == 2


@given(loops(most=3))
@settings(max_examples=8)
def test_at_regular_states_it_equals_gauss(case):
    parts = {"passage": lambda T: passage.motion(T).v_dot, "gauss": lambda T: pf.FORMULATIONS["gauss"](T).v_dot,
             "M": lambda T: T.M}  # fmt: skip
    r = matrices(case, parts)
    close(r["passage"], r["gauss"], INTEGRATED, "acceleration", 1 + np.abs(r["gauss"]).max())


def test_bits_are_equal_alone_in_a_batch_and_by_numpy():
    m = n_four_bar(2, False)
    q, v = np.array([FLAT, 0.3 * FLAT, FLAT]), np.array([ALONG, 0 * ALONG, -ALONG])
    keep = {"duration": 0.01, "step": 1e-3}
    batch, by_numpy = pf.run(m, q, v, **keep), pf.run(m, q, v, backend="interpreter", **keep)
    assert list(batch.entrance) == [1, 0, 1]
    assert np.array_equal(batch.q, by_numpy.q)
    for i in range(3):
        alone = pf.run(m, q[i], v[i], **keep)
        assert np.array_equal(alone.q, batch.q[i])
    one = pf.run(m, q, v, duration=1e-3, step=1e-3)
    assert np.array_equal(one.q, batch.q[:, :2])


def test_inputs_with_either_hold_enter_the_first_step():
    m, keep = slider_crank().with_(actuators=[pf.actuator("motor", "a")]), {"duration": 4e-3, "step": 1e-3, "u_step": 2e-3}
    u = np.array([[0.0], [40.0], [40.0]])
    start = np.pi / 2 * np.array([1, -2]), [2.0, -4.0]
    ends = [float(pf.run(m, *start, u=u, hold=hold, **keep).v[1, 0]) for hold in ("zero", "linear")]
    assert ends[1] > ends[0] + 1e-3


def test_a_singular_start_at_rest_warns_with_its_configuration():
    with pytest.warns(pf.RunWarning, match=r"the run of .* begins in a singular conf.*, at a = 1\.5708, b = -3\.14159:"):
        r = pf.run(slider_crank(), np.pi / 2 * np.array([1, -2]), duration=0.01, backend="interpreter")
    assert r.entrance == 2


@pytest.mark.parametrize("cut", ["A", "C"])
def test_it_is_told_where_a_run_counts_the_turns_of_its_closure(cut):
    # Four axes in one plane, of which two arcs are together as long as the other two: a change point.
    angles = dict(zip("ABCD", np.deg2rad([0, 40, 100, 30]), strict=True))
    flat = {n: SPHERICAL[n]._replace(axis=(np.cos(x), np.sin(x), 0.0)) for n, x in angles.items()}
    flat = {n: h._replace(at=h.axis, there=h.axis) for n, h in flat.items()}
    m = linkage(flat, cut, {cut: {"stiffness": 3.0}})
    with pytest.warns(pf.RunWarning, match="begins in a singular configuration"):
        r = pf.run(m, duration=0.002, step=1e-3, backend="interpreter", error_bound=np.inf)
    assert r["entrance"].item() == 2


def test_a_batch_warns_with_the_number_of_singular_starts_at_rest_and_the_first_of_them():
    """Neither the run that passes through nor the regular one counts. Without q in the record the warning has the number of
    the run alone; at most six coordinates are named."""
    m, keep = slider_crank(), {"duration": 2e-3, "step": 1e-3, "backend": "interpreter"}
    q = np.pi / 2 * np.array([[1, -2], [0.5, -1], [1, -2], [1, -2]])
    v = np.array([[2.0, -4.0], [0, 0], [0, 0], [0, 0]])
    words = r"2 of 4 runs of 'slider-crank' begin in a singular configuration, run 2 at a = 1\.5708, b = -3\.14159: several"
    with pytest.warns(pf.RunWarning, match=words):
        r = pf.run(m, q, v, **keep)
    assert list(r.entrance) == [1, 0, 2, 2] and "2 singular, no velocity along a branch" in r.entrance.attrs["meaning"]
    with pytest.warns(pf.RunWarning, match="begin in a singular configuration, run 2 the first: several"):
        pf.run(m, q, v, record=["energy"], **keep)
    with pytest.warns(pf.RunWarning, match="the run of 'slider-crank' begins in a singular configuration: several"):
        pf.run(m, q[2], record=["energy"], **keep)
    flat = n_four_bar(3, False)  # seven angles
    with pytest.warns(pf.RunWarning, match=r"configuration, at (\S+ = -?1\.5708, ){6}\.\.\.: several"):
        pf.run(flat, np.pi / 2 * np.array([1, -1, 1, -1, 1, -1, 1]), **keep)


@pytest.mark.parametrize("rate, expected", [(0.0, 2), (3.0, 1)])
def test_rows_without_phi_do_not_tell_branches_apart(rate, expected):
    """The rows of a skate and of an acceleration constraint are not taken for rows that the slider-crank lost."""
    m = slider_crank()
    skate, floor = pf.body("skate", 1.0, (0.1, 0, 0), 0.1), pf.joint("floor", "planar", "world", "skate")
    edge = pf.rolling.knife_edge("edge", "skate", (1, 0, 0))
    law = pf.constraints.acceleration_constraint("law", lambda k: (np.eye(5)[4:].tolist(), 0))
    m = m.with_(bodies=[*m.bodies, skate], joints=[*m.joints, floor], constraints=[edge, *m.constraints, law])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pf.RunWarning)
        q, v = np.r_[np.pi / 2 * np.array([1, -2]), 0, 0, 0], np.r_[rate, -2 * rate, 0, 0, 0]
        r = pf.run(m, q, v, duration=0.01, backend="interpreter")
    assert r.entrance == expected


def test_regularity_is_zero_where_a_step_begins_in_the_singular_configuration():
    """The machine leaves the singular configuration for five steps and returns the same way, so the sixth step begins where
    the first did."""
    m, keep = slider_crank(), {"step": 1e-3, "backend": "interpreter"}
    out = pf.run(m, np.pi / 2 * np.array([1, -2]), [3.0, -6.0], duration=5e-3, **keep)
    back = pf.run(m, out.q.values[-1], -out.v.values[-1], duration=1e-2, **keep)
    assert list(back["rank"].values) == [1] * 5 + [0] + [1] * 5
    assert list(np.flatnonzero(back.regularity.values == 0)) == [5]
    assert "entrance" not in back


def test_rows_that_are_redundant_only_on_the_constraints_make_no_singular_start():
    m = four_bar()
    m = m.with_(constraints=[*m.constraints, reverse(m.constraints[0])])
    r = pf.run(m, FOUR_BAR_START, {"a": 4.0}, duration=0.0, backend="interpreter")
    assert r.phi.shape[1] == 10
    assert "entrance" not in r
    assert r["rank"][0] == 2
    assert float(r.regularity[0]) > 0.01
