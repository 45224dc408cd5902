"""Where a run starts: named values stay, the rest moves as little as possible, and impossible starts are errors."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import pfaffian as pf
from pfaffian.starts import newton, start_search
from tests.by_scipy import run_adaptive
from tests.random_mechanisms import Case, constrained, matrices
from tests.simulate.machines import FOUR_BAR_START, ball_and_plane, four_bar, pendulum
from tests.tolerance import SATISFIED, close

QUICK = {"backend": "numpy"}
RUN = {"duration": 0.01, "backend": "interpreter"}
SHORT = {"duration": 0.01}
"""With compiled code, for tests in which many starts are tried before the error."""

NUDGE = 1e-5
"""How far a state is pushed off its constraints: so little that one linear step gives its way back."""

CURVED = 1e-7
"""What that step neglects: the square of NUDGE times the curvature of phi, which is some hundred."""

WEIGHTED = 1e-4
"""A coordinate with 1e10 times the weight still moves by the root of that ratio, through its coupling to the others."""

LIMIT = 1e-5
"""Accuracy of the rocker's extreme angle, at which steps of 1e-7 of the way no longer close."""

CRANK, COUPLER, ROCKER, GROUND = 0.3, 0.8, 0.7, 0.9


def rocker_limit(straight: bool) -> float:
    """Extreme angle of the rocker, with crank and coupler in line or folded, by the law of cosines."""
    far = COUPLER + CRANK if straight else COUPLER - CRANK
    return np.pi - np.arccos((GROUND**2 + ROCKER**2 - far**2) / (2 * GROUND * ROCKER))


# -- named values ----------------------------------------------------------------------------------------------


def test_named_coordinates_and_rates_stay_to_the_last_digit():
    r = pf.run(four_bar(), {"a": -0.6}, {"a": 6.0}, **RUN)
    assert r.q.sel(coordinate="a").values[0] == -0.6
    assert r.v.sel(velocity="a").values[0] == 6.0
    assert r.violation.values[0] < SATISFIED
    assert r.velocity_violation.values[0] < SATISFIED
    assert r.moved.sel(coordinate="a") == 0
    assert r.moved_rate.sel(velocity="a") == 0
    np.testing.assert_array_equal(r.moved.values, r.q.values[0] - [-0.6, 0, 0])
    np.testing.assert_array_equal(r.moved_rate.values, r.v.values[0] - [6.0, 0, 0])


def test_a_named_rate_stays_beside_a_guess():
    assert pf.run(four_bar(), FOUR_BAR_START, {"a": 6.0}, **RUN).v.sel(velocity="a").values[0] == 6.0


def test_every_run_has_its_named_values():
    a = np.linspace(-1.0, 1.0, 5)
    r = pf.run(four_bar(), {"a": a}, {"a": 2 * a}, **RUN)
    np.testing.assert_array_equal(r.q.sel(coordinate="a").values[:, 0], a)
    np.testing.assert_array_equal(r.v.sel(velocity="a").values[:, 0], 2 * a)
    for i in (0, 4):
        alone = pf.run(four_bar(), {"a": a[i]}, {"a": 2 * a[i]}, **RUN)
        np.testing.assert_array_equal(alone.q.values, r.q.values[i])


def test_adaptive_runs_start_likewise():
    r = run_adaptive(four_bar(), {"a": -0.6}, {"a": 6.0}, times=[0, 0.01])
    assert r.q.values[0, 0] == -0.6
    assert r.v.values[0, 0] == 6.0
    assert np.abs(r.moved.values[1:]).min() > 0


def test_a_state_on_the_constraints_stays_as_it_is():
    first = pf.run(four_bar(), {"a": -0.6}, {"a": 6.0}, **RUN)
    again = pf.run(four_bar(), first.q.values[-1], first.v.values[-1], **RUN)
    np.testing.assert_array_equal(again.q.values[0], first.q.values[-1])
    np.testing.assert_array_equal(again.v.values[0], first.v.values[-1])


CASES = {
    "weld and ball": (3, ["revolute", "spherical", "prismatic"], [-1, 0, 1], ["point-on-plane"], []),
    "free": (5, ["free", "revolute", "prismatic"], [-1, 0, 1], ["point-on-plane"], ["driven"]),
    "planar, rolling, twice": (8, ["planar", "revolute", "revolute"], [-1, 0, 1], ["point-on-line"], ["rolling", "duplicate"]),
}


@pytest.mark.parametrize("which", CASES)
def test_the_rest_moves_least_in_the_metric_of_M(which):
    """dq = K R x with the shortest x in M' = R^T M R for A R x = -phi, and x = 0 along `hold`; likewise v, whose step is
    exact since eta is linear."""
    seed, *structure = CASES[which]
    random = np.random.default_rng(seed)
    case = constrained(random, *structure)
    m, compared = case.m, 0
    q = case.q + NUDGE * random.normal(size=m.nq)
    for j in m.joints:
        part = [m.q_slices[j.name].start + i for i, n in enumerate(j.kind.q_names) if n.startswith("q")]
        q[part] /= np.linalg.norm(q[part]) if part else 1.0
    parts = {"M": lambda T: T.M, "A": lambda T: T.A, "K": lambda T: T.kinematics.kinematic_matrix,
             "phi": lambda T: T.rows.phi, "eta": lambda T: T.rows.eta}  # fmt: skip
    here = matrices(Case(m, q, case.v, case.u, case.t), parts)
    firm = np.array(pf.symbols(m).rows.level) == 0
    R, names = rates(m, here["K"]), hold_names(m)
    for _ in range(6):
        hold = [n for n in dict.fromkeys(names) if random.random() < 0.3]
        marked = np.array([n in hold for n in names])
        x = shortest(here["A"][firm] @ R, R.T @ here["M"] @ R, here["phi"][firm, 0], ~marked)
        if x is not None:
            found = pf.assemble(m, q, t=case.t, hold=hold, **QUICK)
            close(found.moved, -here["K"] @ R @ x, CURVED, "what moved of q", scale=1)
            compared += 1
        keep = random.random(m.nv) < 0.3
        v = {n: float(random.normal()) for n, k in zip(m.v_names, keep, strict=True) if k}
        start = np.array([v.get(n, 0.0) for n in m.v_names])
        there = matrices(Case(m, case.q, start, case.u, case.t), parts)
        y = shortest(there["A"], there["M"], there["eta"][:, 0], ~keep)
        if y is not None:
            found = pf.assemble(m, case.q, v, t=case.t, **QUICK)
            close(found.moved_rate, -y, CURVED, "what moved of v", scale=1 + np.abs(y).max())
            np.testing.assert_array_equal(found.v[keep], start[keep])
            compared += 1
    assert compared >= 4


def hold_names(m: pf.Mechanism) -> list[str]:
    """For each velocity a name that `hold` takes: that of its coordinate, or that of a quaternion's part."""
    names = []
    for j in m.joints:
        plain = [n for n in j.kind.q_names if not n.startswith("q")]
        names += [f"{j.name}.{n}" if n else j.name for n in plain]
        names += [f"{j.name}.qw"] * (j.nv - len(plain))
    return names


def rates(m: pf.Mechanism, K: np.ndarray) -> np.ndarray:
    """Matrix of velocities that change one coordinate at a time; those of a quaternion stay as they are."""
    R = np.eye(m.nv)
    for j in m.joints:
        q, v, k = m.q_slices[j.name].start, m.v_slices[j.name].start, sum(not n.startswith("q") for n in j.kind.q_names)
        R[v : v + k, v : v + k] = np.linalg.inv(K[q : q + k, v : v + k]) if k else np.eye(0)
    return R


def shortest(A: np.ndarray, M: np.ndarray, rhs: np.ndarray, free: np.ndarray) -> np.ndarray | None:
    """Smallest correction by NumPy; None where the rank is not clear, or the fixed coordinates leave no solution."""
    x = np.zeros(len(M))
    if not free.any():
        return x if np.abs(rhs).max(initial=0.0) < 1e-12 else None
    L = np.linalg.cholesky(M[np.ix_(free, free)])
    weighted = np.linalg.solve(L, A[:, free].T).T
    U, s, Vt = np.linalg.svd(weighted, full_matrices=False)
    if ((s > 1e-7) & (s < 1e-1 * s.max(initial=0))).any():
        return None
    significant = s > 1e-7
    y = Vt[significant].T @ ((U[:, significant].T @ rhs) / s[significant])
    if np.abs(weighted @ y - rhs).max(initial=0.0) > 1e-8:
        return None
    x[free] = np.linalg.solve(L.T, y)
    return x


def test_a_larger_weight_moves_a_coordinate_less_and_in_the_limit_not_at_all():
    m, q = four_bar(), [-0.6, -0.5, -2.0]
    moved = [abs(pf.assemble(m, q, weight={"a": w}, **QUICK).moved[0]) for w in (0.1, 1, 10, 1e10)]
    assert moved[0] > moved[1] > moved[2] > moved[3]
    with_hold = pf.assemble(m, q, hold=["a"], **QUICK)
    assert with_hold.q[0] == -0.6
    close(pf.assemble(m, q, weight=[1e10, 1, 1], **QUICK).q, with_hold.q, WEIGHTED, "large weight, against hold")


def test_hold_of_a_joint_fixes_its_orientation():
    m = ball_and_plane()
    turned = dict(zip(m.q_names[:4], np.array([0.1, 0.2, -0.1, 0.9]) / np.linalg.norm([0.1, 0.2, -0.1, 0.9]), strict=True))
    named = pf.assemble(m, turned, **QUICK)
    with_hold = pf.assemble(m, [*turned.values(), 0.0], hold=["shoulder"], **QUICK)
    assert list(named.q[:4]) == list(turned.values())
    np.testing.assert_array_equal(named.q, with_hold.q)
    assert abs(named.moved[4]) > 0.01
    with pytest.raises(pf.ModelError, match=r"quaternion of joint 'shoulder': give all of shoulder\.qx, .*qw"):
        pf.assemble(m, {"shoulder.qw": 0.5}, **QUICK)


def test_a_quaternion_of_any_length_gives_its_rotation():
    m = ball_and_plane()
    long = dict(zip(m.q_names[:4], (0.0, 0.2, 0.0, 2.0), strict=True))
    np.testing.assert_allclose(np.linalg.norm(pf.assemble(m, long, **QUICK).q[:4]), 1.0, rtol=1e-15)


def test_a_rate_that_the_constraints_determine_may_be_named():
    m = pendulum().with_(constraints=[pf.holonomic("drive", lambda k: k.joint("pivot") - 2 * k.t)])
    assert pf.assemble(m, v={"pivot": 2.0}, **QUICK).v == 2.0
    with pytest.raises(pf.RunError, match=r"the rate 'pivot' = 1 rad/s cannot be kept.* nearest possible value is 2$"):
        pf.assemble(m, v={"pivot": 1.0}, **QUICK)


def test_inactive_constraints_do_not_affect_the_start():
    stop = pf.constraints.active_while(pf.holonomic("stop", lambda k: k.joint("pivot") - 0.5), lambda k: k.t > 1)
    m = pendulum().with_(constraints=[stop])
    assert pf.assemble(m, {"pivot": 0.1}, **QUICK).q == 0.1
    with pytest.raises(pf.RunError, match=r"'pivot' = 0\.1 rad cannot be kept.* value is 0\.5$"):
        pf.assemble(m, {"pivot": 0.1}, t=2.0, **QUICK)


def test_a_servo_does_not_move_the_start():
    wish = pf.servo(pf.holonomic("wish", lambda k: k.joint("pivot") - 1.0), ["motor"])
    r = pf.run(pendulum().with_(constraints=[wish]), [0.2], **RUN)
    assert r.q.values[0, 0] == 0.2


def test_rolling_does_not_prevent_a_position():
    """A skate must not slip, yet it may start at y = 1."""
    m = pf.mechanism(
        "skate", [pf.body("blade", 1.0, inertia=0.1)], [pf.joint("ice", "planar", "world", "blade")],
        constraints=[
            pf.nonholonomic("no slip", lambda k: k.joint_rate("ice")[1]),
            pf.holonomic("line", lambda k: k.joint("ice")[1] - 1.0),
        ],
    )  # fmt: skip
    found = pf.assemble(m, {"ice.x": 0.3, "ice.angle": 0.0}, **QUICK)
    np.testing.assert_allclose(found.q, [0.3, 1.0, 0.0], atol=SATISFIED)


# -- impossible starts ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("angle", "straight"), [(0.1, True), (1.5, True), (2.75, False)])
def test_the_error_names_the_coordinate_and_its_nearest_value(angle, straight):
    with pytest.raises(pf.RunError, match=f"'d' = {angle} rad cannot be kept") as error:
        pf.run(four_bar(), {"d": angle}, **SHORT)
    nearest = float(str(error.value).split("value is ")[1])
    assert abs(nearest - rocker_limit(straight)) < LIMIT


def test_the_error_names_each_rate_that_could_give_way():
    a = pf.assemble(four_bar(), {"a": -0.6}, {"a": 1.0}, **QUICK).v
    with pytest.raises(pf.RunError, match="rates cannot all be kept") as error:
        pf.run(four_bar(), {"a": -0.6}, {"a": 1.0, "d": 5.0}, **SHORT)
    assert f"'d' = 5 rad/s (nearest possible value {a[2]:.6g})" in str(error.value)
    assert f"'a' = 1 rad/s (nearest possible value {5 / a[2]:.6g})" in str(error.value)


def test_the_error_lists_all_values_if_no_single_one_is_the_cause():
    with pytest.raises(pf.RunError, match=r"cannot all be kept; nearest possible values: 'a' = .* instead of -0\.6, 'b' = "):
        pf.run(four_bar(), {"a": -0.6, "b": -0.5, "d": -2.0}, **SHORT)


def test_coordinates_that_need_not_move_are_not_listed():
    m = four_bar()
    aside = pf.joint("aside", "prismatic", "world", "aside")
    m = m.with_(bodies=[*m.bodies, pf.body("aside", 1.0)], joints=[*m.joints, aside])
    with pytest.raises(pf.RunError, match="nearest possible values: 'a' = ") as error:
        pf.run(m, {"a": -0.6, "b": -0.5, "d": -2.0, "aside": 0.7}, **SHORT)
    assert "'aside'" not in str(error.value)


def no_way(problem, states, at, *more):
    """As if a singular configuration lay on the way of each run."""
    return np.zeros(len(at), dtype=bool), np.zeros(len(at), dtype=bool)


def test_other_starts_are_tried_before_giving_up(monkeypatch):
    """The flat neutral state is singular: Newton's iteration does not get from there to a crank angle of 2.5 rad."""
    monkeypatch.setattr(start_search, "_continue", no_way)
    assert pf.assemble(four_bar(), {"a": 2.5}).q[0] == 2.5
    monkeypatch.setattr(start_search, "_search", lambda *_: None)
    with pytest.raises(pf.RunError):
        pf.assemble(four_bar(), {"a": 2.5})


def test_hold_is_reached_in_steps_along_a_branch(monkeypatch):
    """From the nearest closed state the coordinate moves in steps to its fixed value, which Newton's iteration does not
    reach from the guess."""
    monkeypatch.setattr(start_search, "_starts", lambda m: iter(()))
    monkeypatch.setattr(start_search, "_continue", no_way)
    assert (np.array([pf.assemble(four_bar(), [a, 1.8, 2.15], hold=["a"]).q[0] for a in (1.5, 1.75)]) == [1.5, 1.75]).all()
    monkeypatch.setattr(start_search, "walk", lambda problem, begin, goal, *shortest: (np.zeros(len(goal)), begin))
    with pytest.raises(pf.RunError):
        pf.assemble(four_bar(), [1.5, 1.8, 2.15], hold=["a"])


def test_distant_guesses_end_on_near_branches():
    """Full Newton steps move 2.4 rad in the median, to distant branches; steps of at most half a radian move 1.6 rad."""
    guesses = np.random.default_rng(0).uniform(-2, 2, (40, 3))
    assert np.median(np.linalg.norm(pf.assemble(four_bar(), guesses).moved, axis=1)) < 1.8


def test_angles_do_not_wind_up():
    for a in np.linspace(-3, 3, 13):
        assert np.abs(pf.assemble(four_bar(), {"a": a}).moved).max() <= np.pi


# -- branches ---------------------------------------------------------------------------------------------------


def test_a_crank_angle_has_two_assemblies():
    found = pf.assemble(four_bar(), {"a": -0.6}, branches=5, **QUICK)
    assert found.q.shape == (2, 3)
    assert (found.q[:, 0] == -0.6).all()
    assert (found.residual < SATISFIED).all()
    assert np.linalg.norm(found.moved[0]) < np.linalg.norm(found.moved[1])
    ends = pf.compile_terms(four_bar(), {"tip": lambda T: T.kinematics.position("rocker", (ROCKER, 0, 0))}, **QUICK)
    (x1, _, z1), (x2, _, z2) = ends(found.q)["tip"]
    A, D = np.array([CRANK * np.cos(0.6), CRANK * np.sin(0.6)]), np.array([GROUND, 0])
    along = (D - A) / np.linalg.norm(D - A)
    off = [along[0] * (z - A[1]) - along[1] * (x - A[0]) for x, z in ((x1, z1), (x2, z2))]
    close(off[0], -off[1], SATISFIED, "one is the other's mirror image in the line from crank to bearing")
    assert len(pf.assemble(four_bar(), {"a": -0.6}, branches=2, **QUICK).q) == 2
    assert found.named["b"].shape == (2,)


def test_a_guess_chooses_the_branch_and_named_values_stay():
    m, how = four_bar(), {"duration": 0.0, "backend": "numpy"}
    found = pf.assemble(m, {"a": 0.4}, branches=2, backend="numpy")
    near = {"b": found.q[:, 1] + 0.2, "d": found.q[:, 2] - 0.1}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        r = pf.run(m, {"a": 0.4}, guess=near, **how)
    np.testing.assert_allclose(r.q.values[:, 0], found.q, atol=1e-9)
    assert (r.q.values[:, 0, 0] == 0.4).all() and abs(found.q[0] - found.q[1]).max() > 0.5
    np.testing.assert_array_equal(pf.run(m, guess={n: x[1] for n, x in near.items()}, **how).q.shape, (1, 3))
    for q, guess, words in (([0, 0, 0], {"b": 1}, "q is needed as a dict"), (None, [0, 0, 0], "{name: number} is needed"),
                            ({"a": 0.4}, {"a": 1, "b": 1}, "q names 'a' too"), ({"a": 0.4}, {"bb": 1}, "no 'bb'")):  # fmt: skip
        with pytest.raises(pf.ModelError, match=words):
            pf.run(m, q, guess=guess, **how)
        with pytest.raises(pf.ModelError, match=words):
            pf.assemble(m, q, guess=guess, **QUICK)
    for k in (0, 1):
        one = {n: float(x[k]) for n, x in near.items()}
        again = pf.assemble(m, {"a": 0.4}, guess=one, **QUICK)
        np.testing.assert_allclose(again.q, found.q[k], atol=1e-9)
        assert again.named["a"] == 0.4 and type(again.named["b"]) is float
        with_hold = pf.assemble(m, guess={"a": 0.4, **one}, hold=["a"], **QUICK)
        np.testing.assert_array_equal(with_hold.q, again.q)
    with pytest.raises(pf.ModelError, match=r"write hold=\['a'\]"):
        pf.assemble(m, guess={"a": 0.4}, hold="a", **QUICK)


def test_an_error_names_the_other_fixed_coordinates():
    rails = [pf.joint(n, "prismatic", "world", n, axis=(1, 0, 0)) for n in ("x", "y", "z")]
    sum_of_squares = pf.holonomic("sum", lambda k: [k.q[0] - k.q[1] ** 2 - k.q[2] ** 2])
    m = pf.mechanism("bowl", [pf.body(n, 1.0) for n in ("x", "y", "z")], rails, constraints=[sum_of_squares])
    with pytest.raises(pf.RunError, match=r"'x' = -1 m cannot be kept together with y, z: the .* possible value is 0\.5$"):
        pf.assemble(m, {"x": -1.0, "y": 0.5, "z": 0.5}, **QUICK)


def test_a_guess_may_name_a_part_of_a_quaternion_but_q_may_not():
    post, ball = pf.body("post", 1.0, inertia=0.1), pf.joint("ball", "spherical", "world", "post")
    tip = pf.closure("tip", "point-on-plane", "world", "post", placement_b=(1, 0, 0))
    m, how = pf.mechanism("post", [post], [ball], constraints=[tip]), {"duration": 0.0, "backend": "numpy"}
    half = np.hypot(1, 0.2)
    r = pf.run(m, guess={"ball.qz": 0.2}, **how)  # about the normal of the plane, so that nothing has to move
    close(r.q.values[0], [0, 0, 0.2 / half, 1 / half], SATISFIED, "the rest is neutral, and the whole of unit length")
    r = pf.run(m, guess={"ball.qy": [0.2, -0.1], "ball.qz": 0.3}, **how)
    assert r.violation.max() < 1e-12 and (np.abs(r.moved.sel(coordinate="ball.qy").values) > 0.05).all()
    with pytest.raises(pf.ModelError, match="q names only some components of the quaternion of joint 'ball'"):
        pf.run(m, {"ball.qy": 0.2}, guess={"ball.qz": 0.3}, **how)


def test_infinitely_many_branches_are_refused():
    with pytest.raises(pf.ModelError, match=r"1 motion\(s\) stay free"):
        pf.assemble(four_bar(), branches=2, **QUICK)
    with pytest.raises(pf.ModelError, match="one state at a time, not 2"):
        pf.assemble(four_bar(), {"a": [0.1, 0.2]}, branches=2, **QUICK)
    with pytest.raises(pf.RunError, match="'d' = 0"):
        pf.assemble(four_bar(), {"d": 0.0}, branches=2)


# -- warnings ---------------------------------------------------------------------------------------------------


def test_a_start_that_moves_warns_once():
    with pytest.warns(pf.RunWarning) as seen:
        r = pf.run(four_bar(), np.array([FOUR_BAR_START, [-0.6, -0.5, -2.0]]), **RUN)
    assert len(seen) == 1
    assert f"'d' the most, by {r.moved.values[1, 2]:.3g} rad in run 1 of 2" in str(seen[0].message)
    assert seen[0].filename == __file__
    assert abs(r.moved.values[1, 2]) > 0.1
    assert (r.moved.values[0] == 0).all()
    with pytest.warns(pf.RunWarning, match=r"v was off .* rad/s"):
        pf.run(four_bar(), FOUR_BAR_START, [1.0, 0, 0], **RUN)


@pytest.mark.parametrize("q", [None, {"a": -0.6}, FOUR_BAR_START])
def test_unspecified_values_move_without_a_warning(q):
    m = ball_and_plane() if q is None else four_bar()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pf.run(m, q, {} if q is None else {"a": 1.0}, **RUN)


def test_without_correction_nothing_moves():
    r = pf.run(four_bar(), [-0.6, -0.5, -2.0], correct_start=False, **RUN)
    np.testing.assert_array_equal(r.q.values[0], [-0.6, -0.5, -2.0])
    assert (r.moved == 0).all()
    free = pf.assemble(pendulum(), {"pivot": 0.3}, {"pivot": 1.0}, **QUICK)
    assert (free.q, free.v, free.residual) == (0.3, 1.0, 0.0)


def test_shapes_follow_the_arguments():
    m, q = four_bar(), FOUR_BAR_START
    assert pf.assemble(m, q, **QUICK).q.shape == (3,)
    assert pf.assemble(m, q[None], **QUICK).q.shape == (1, 3)
    many = pf.assemble(m, q, np.zeros((4, 3)), **QUICK)
    assert many.q.shape == many.v.shape == many.moved.shape == (4, 3)
    assert many.residual.shape == (4,)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"hold": "a"}, r"write hold=\['a'\]"),
        ({"hold": ["e"]}, "hold: there is no 'e'; there are a, b, d"),
        ({"weight": {"a": 0.0}}, "weight must be .* above zero"),
        ({"weight": [1.0]}, r"weight has shape \(1,\)"),
        ({"branches": 0}, "branches must be a whole number from 1"),
        ({"t": "now"}, "t: 'now' is no"),
        ({"t": np.nan}, "t is not finite"),
    ],
)
def test_wrong_arguments_of_assemble_are_named(arguments, message):
    with pytest.raises(pf.ModelError, match=message):
        pf.assemble(four_bar(), FOUR_BAR_START, **arguments, **QUICK)


# -- variants ---------------------------------------------------------------------------------------------------


def variants() -> pf.Mechanism:
    """The four-bar with the coupler's length as a parameter."""
    m, length = four_bar(), pf.Parameter("coupler", COUPLER, "m")
    loop = pf.closure("c", "revolute", "coupler", "rocker", axis=(0, 1, 0), placement_a=pf.pose((length, 0, 0)),
                      placement_b=pf.pose((ROCKER, 0, 0)))  # fmt: skip
    return m.with_(constraints=[loop], parameters=[length])


LENGTHS = np.array([0.8, 3.0, 0.75, 0.005])
"""The second exceeds crank, ground and rocker together; the last is too short to connect them."""


def test_a_variant_that_cannot_close_leaves_the_others_alone(tmp_path):
    m = variants()
    r = pf.run(m, {"a": -0.6}, {"a": 1.0}, parameters={"coupler": LENGTHS}, **SHORT)
    bad, good = [1, 3], [0, 2]
    causes = pf.results.causes(r)
    assert [causes[i] for i in good] == ["finished", "finished"]
    for i in bad:
        assert "not assembled" in causes[i]
        assert "row 'c.v" in causes[i]
        assert r.status.values[i] not in (0, 1, 2)
        assert r.start_residual.values[i] > 0.01
        assert r.stopped.values[i] == 0
        assert np.isnan(r.q.values[i]).all()
        assert (r.moved.values[i] == 0).all()
    assert (r.start_residual.values[good] < SATISFIED).all()
    for i in good:
        alone = pf.run(m, {"a": -0.6}, {"a": 1.0}, parameters={"coupler": LENGTHS[i]}, **SHORT)
        np.testing.assert_array_equal(alone.q.values, r.q.values[i])
        np.testing.assert_array_equal(alone.moved.values, r.moved.values[i])
    pf.results.write_netcdf(r, tmp_path / "r.nc")
    assert pf.results.causes(pf.results.read_netcdf(tmp_path / "r.nc")) == causes
    assert pf.results.causes(r.isel(run=1)) == [causes[1]]
    found = pf.assemble(m, {"a": -0.6}, {"a": 1.0}, parameters={"coupler": LENGTHS})
    assert np.isnan(found.q[bad]).all()
    np.testing.assert_array_equal(found.q[good], r.q.values[good, 0])
    np.testing.assert_allclose(found.residual, r.start_residual.values, atol=SATISFIED)


def test_a_batch_in_which_nothing_closes_is_an_error():
    with pytest.raises(pf.RunError, match="in run 0"):
        pf.run(variants(), {"a": -0.6}, parameters={"coupler": LENGTHS[[1, 3]]}, **SHORT)


def test_a_nearest_value_of_zero_has_no_rounding():
    """Two slides tied together, for which iterations give some 1e-17 instead of zero."""
    m = pf.mechanism(
        "slides",
        [pf.body("a", 1.0), pf.body("b", 1.0)],
        [pf.joint("a", "prismatic", "world", "a", axis=(1, 0, 0)), pf.joint("b", "prismatic", "a", "b", axis=(0, 1, 0))],
        constraints=[pf.holonomic("tie", lambda k: 0.1 * k.q[0] + 0.2 * k.q[1] - 0.3 * 0.2)],
    )
    for named, rates in (({"a": 0.4, "b": 0.3}, {}), ({"a": 0.0, "b": 0.3}, {"a": 0.7, "b": 0.0})):
        with pytest.raises(pf.RunError) as error:
            pf.assemble(m, named, rates)
        assert "e-" not in str(error.value) and "nearest possible value 0)" in str(error.value)


def arm_to_a_place() -> pf.Mechanism:
    """Two links of 0.5 m and 0.4 m whose end is at a place that coordinates give."""
    bodies = [pf.body(n, 1.0, com=(0.25, 0, 0), inertia=0.02) for n in ("upper", "lower")] + [pf.body("tip", 0.1, inertia=0.01)]
    joints = [
        pf.joint("a", "revolute", "world", "upper", axis=(0, 1, 0)),
        pf.joint("b", "revolute", "upper", "lower", axis=(0, 1, 0), placement=(0.5, 0, 0)),
        pf.joint("tip", "planar", "world", "tip", axis=(0, 1, 0)),
    ]
    hold = pf.closure("hold", "revolute", "lower", "tip", axis=(0, 1, 0), placement_a=(0.4, 0, 0))
    return pf.mechanism("arm to a place", bodies, joints, constraints=[hold])


def places(count: int) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Places all around, and whether the arm reaches each of them."""
    x = np.random.default_rng(0).uniform(-1.5, 1.5, (count, 2))
    far = np.hypot(*x.T)
    return {"tip.x": x[:, 0], "tip.y": x[:, 1]}, (far > 0.1) & (far < 0.9)


@pytest.mark.parametrize(("kind", "arrives"), [("prismatic", True), ("revolute", False)])
def test_only_rotations_are_limited_in_each_iteration(kind, arrives):
    """An iteration turns by at most 0.5 rad, but a slide moves 100 m in a few iterations, since its row is linear."""
    m = pf.mechanism(
        "far",
        [pf.body("a", 1.0, inertia=0.1)],
        [pf.joint("a", kind, "world", "a")],
        constraints=[pf.holonomic("there", lambda k: k.q[0] - 100)],
    )
    problem = newton.free_problem(m, np.zeros((1, 0)), 0.0, "numpy")
    assert newton.newton(problem, np.zeros((1, 1)), np.zeros((1, 1)), iterations=20).closed[0] == arrives


def test_a_search_finds_every_place_within_reach_and_takes_some_hundred_iterations_beyond(monkeypatch):
    m, (q, within), batches = arm_to_a_place(), places(120), []
    one = newton.newton_step
    monkeypatch.setattr(newton, "newton_step", lambda problem, q, v: batches.append(len(q)) or one(problem, q, v))

    def cost(at, search):
        batches.clear()
        found = pf.assemble(m, {n: x[at] for n, x in q.items()}, search=search, backend="numpy")
        return np.isfinite(found.q).all(axis=1), sum(batches)

    every = np.ones(len(within), dtype=bool)
    for search, most in ((True, 320), (False, 30)):
        (closed, both), (_, near) = cost(every, search), cost(within, search)
        assert not closed[~within].any()
        assert closed[within].all() or not search
        assert (both - near) / (~within).sum() < most


def test_without_a_search_the_error_reports_the_residual_alone():
    m, (q, within) = arm_to_a_place(), places(120)
    beyond = {n: float(x[~within][0]) for n, x in q.items()}
    with pytest.raises(pf.RunError, match=r"row 'hold\.v[xyz]' is left with .*search=True looks for a solution"):
        pf.assemble(m, beyond, search=False, backend="numpy")
    with pytest.raises(pf.RunError, match="cannot all be kept; nearest possible values: "):
        pf.assemble(m, beyond, backend="numpy")
    with pytest.raises(pf.ModelError, match="search must be True or False"):
        pf.assemble(m, search=1)


def test_a_start_with_nan_or_inf_is_named():
    q = np.zeros((3, 3))
    q[1, 2] = np.nan
    with pytest.raises(pf.ModelError, match="q is not finite: 'd' is nan in run 1"):
        pf.assemble(four_bar(), q)
    with pytest.raises(pf.ModelError, match=r"v is not finite: 'b' is inf$"):
        pf.run(four_bar(), None, [0, np.inf, 0], duration=0.1)


def test_without_a_search_no_state_is_settled_twice(monkeypatch):
    """A rod that is shorter than its crank lets this turn 53 degrees to either side. Half a turn away it can be put together
    again: no way leads there, so the state is the one that Newton's iterations found."""
    bodies = [pf.body(name, 1.0, (0.2, 0, 0), 0.01) for name in ("crank", "rod")] + [pf.body("block", 1.0)]
    hinge = {"axis": (0, 0, 1)}
    joints = [
        pf.joint("a", "revolute", "world", "crank", **hinge),
        pf.joint("b", "revolute", "crank", "rod", placement=(1.0, 0, 0), **hinge),
        pf.joint("s", "prismatic", "world", "block", axis=(1, 0, 0), placement=(1.8, 0, 0)),
    ]
    pin = pf.closure("pin", "revolute", "rod", "block", axis=(0, 0, 1), placement_a=pf.pose((0.8, 0, 0)))
    m = pf.mechanism("short rod", bodies, joints, constraints=[pin])
    begun, jumped = list[bytes](), list[bool]()

    def counted(problem, q, v, *more, settle=start_search.newton):
        begun.extend(row.tobytes() for row in q)
        return settle(problem, q, v, *more)

    def continued(*given, follow=start_search._continue):
        reached, jumps = follow(*given)
        jumped.extend(~reached)
        return reached, jumps

    monkeypatch.setattr(start_search, "newton", counted)
    monkeypatch.setattr(start_search, "_continue", continued)
    with pytest.warns(pf.RunWarning):
        found = pf.assemble(m, {"a": np.array([0.3, 3.0, -2.9])}, search=False, backend="interpreter")
    assert jumped == [False, True, True] and len(set(begun)) == len(begun)
    assert np.isfinite(found.q).all() and found.continued.tolist() == [True, False, False]


def test_a_guess_near_a_ridge_descends_onto_the_constraints():
    """Random guesses for Peaucellier's loops: those that full steps close keep their bits; the others follow the residual
    down, alone as in a batch."""
    m, _ = pf.read("zoo:peaucellier")
    random = np.random.default_rng(0)
    guesses = np.array([pf.random_configuration(m, random) for _ in range(40)])
    nearby = pf.assemble(m, guesses, search=False, backend="interpreter")
    found = pf.assemble(m, guesses, backend="interpreter")
    closed = np.isfinite(nearby.q).all(axis=1)
    assert 30 < closed.sum() < 40
    np.testing.assert_array_equal(found.q[closed], nearby.q[closed])
    assert (found.residual < SATISFIED).all()
    phi = pf.compile_terms(m, {"phi": lambda T: T.rows.phi}, backend="interpreter", lanes=1)
    for guess, q in zip(guesses[~closed], found.q[~closed], strict=True):
        assert np.abs(phi(guess)["phi"]).max() > 0.1 and np.abs(phi(q)["phi"]).max() < SATISFIED
    alone = pf.assemble(m, guesses[np.flatnonzero(~closed)[0]], backend="interpreter")
    np.testing.assert_array_equal(alone.q, found.q[~closed][0])


def test_a_descent_without_success_ends_soon(monkeypatch):
    """Rods that cannot reach each other, from 40 random guesses: the smallest residual is found in some 20 steps, and only
    once, not again for the message."""
    m, batches = four_bar(ground=9.0), []
    counted = newton.newton_step
    monkeypatch.setattr(newton, "newton_step", lambda problem, q, v: batches.append(len(q)) or counted(problem, q, v))
    random = np.random.default_rng(0)
    with pytest.raises(pf.RunError, match="is left with phi"):
        pf.assemble(m, [pf.random_configuration(m, random) for _ in range(40)], backend="interpreter")
    assert sum(batches) < 40 * 120 and len(batches) < 2 * newton.DESCENT_STEPS


def test_rods_in_line_bend_onto_the_constraints():
    """Rods that all lie in line cannot reach each other along it, and to first order no rotation of any of them changes
    that."""
    bodies = [pf.body(f"rod {i}", 1.0, (0.1, 0, 0), 0.01) for i in range(5)]
    chain = (("world", 0, 0.0), ("rod 0", 1, 0.1), ("rod 1", 2, 0.2), ("world", 3, 0.0), ("rod 3", 4, 0.4))
    joints = [pf.joint(f"h{i}", "revolute", parent, f"rod {i}", placement=pf.pose((at, 0, 0))) for parent, i, at in chain]
    ends = {"placement_a": pf.pose((0.3, 0, 0)), "placement_b": pf.pose((0.5, 0, 0))}
    m = pf.mechanism("six bar", bodies, joints, constraints=[pf.closure("pin", "revolute", "rod 2", "rod 4", **ends)])
    found = pf.assemble(m, backend="interpreter")
    assert found.residual < SATISFIED and np.abs(found.moved).max() > 0.1
    with pytest.raises(pf.RunError, match="search=True looks for a solution further away"):
        pf.assemble(m, search=False, backend="interpreter")
