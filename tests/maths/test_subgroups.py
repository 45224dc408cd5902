"""The table of subgroups, compared with the group axioms, the exponential of SE(3) and derivatives of poses."""

import casadi as ca
import numpy as np
import pytest

from pfaffian.errors import ModelError
from pfaffian.maths import se3, so3
from pfaffian.maths.subgroups import ABOUT_Z, ANY_TURN, SUBGROUPS, Subgroup, is_subgroup, isotropy, name_of
from tests.matrices import number
from tests.tolerance import ALGEBRA, CENTRAL, close

PITCH = 0.37
GROUPS = [g.with_pitch(PITCH) if g.screws else g for g in SUBGROUPS.values()]
every = pytest.mark.parametrize("g", GROUPS, ids=[g.name for g in GROUPS])
PLANAR_HELICAL = SUBGROUPS["planar-helical"].with_pitch(PITCH)

DIMENSIONS = {
    "fixed": 0, "revolute": 1, "prismatic": 1, "helical": 1, "cylindrical": 2, "planar-translation": 2, "translation": 3,
    "planar": 3, "planar-helical": 3, "spherical": 3, "schoenflies": 4, "free": 6,
}  # fmt: skip


def screws(g: Subgroup, reach: float = 3.0) -> list[np.ndarray]:
    """Screw parameters with rotations up to `reach` [rad], including zero and tiny ones."""
    random = np.random.default_rng(4)
    found = [np.zeros(g.nv), 1e-5 * random.normal(size=g.nv)]
    for _ in range(6):
        s = random.normal(size=g.nv)
        turn = s[len(g.along) :]
        s[len(g.along) :] = turn * random.uniform(0, reach) / (np.linalg.norm(turn) or 1)
        found.append(s)
    return found


def configuration(g: Subgroup) -> np.ndarray:
    random = np.random.default_rng(7)
    q = random.normal(size=g.nq)
    if g.rotation is ANY_TURN:
        q[-4:] /= np.linalg.norm(q[-4:])
    return q


def pose(pair) -> np.ndarray:
    return np.array(ca.DM(se3.homogeneous(*pair)))


def test_the_table_has_every_row():
    assert {g.name: g.nv for g in GROUPS} == DIMENSIONS
    assert {5} & set(DIMENSIONS.values()) == set()  # no subgroup of SE(3) has five dimensions


@every
def test_names_and_units_match_the_dimensions(g):
    assert len(set(g.q_names)) == len(g.q_units) == g.nq
    assert len(set(g.v_names)) == len(g.v_units) == g.nv
    assert number(g.S).shape == (6, g.nv)
    assert g.nv == 0 or np.linalg.matrix_rank(number(g.S)) == g.nv  # NumPy 2.0 has no rank of an empty matrix


@every
def test_the_algebra_and_its_conjugates_are_closed_under_the_bracket(g):
    R, p = se3.exp(np.array([0.3, -1, 0.2, 0.5, 0.9, -0.4]))
    assert is_subgroup(g.S)
    assert is_subgroup(ca.mtimes(se3.Ad(R, p), g.S))


@pytest.mark.parametrize("axes", [(3, 4), (0, 5), (0, 1, 3), (2, 3, 4, 5), (0, 1, 2, 3, 4)])
def test_other_spans_do_not_form_a_group(axes):
    """A universal joint, a skate, and other combinations of axes that do not form a group."""
    assert not is_subgroup(np.eye(6)[:, axes])


def test_no_five_directions_form_a_group():
    """Whichever direction is omitted, the other five do not form a group. [chhabra14 table 2.1]"""
    for n in [*np.eye(6), *np.random.default_rng(0).normal(size=(40, 6))]:
        assert not is_subgroup(np.linalg.svd(n[None])[2][1:].T)


@every
def test_products_and_inverses_are_in_the_group(g):
    """Products and inverses are in the group: their coordinates reproduce their poses."""
    a, b = g.motion(configuration(g)), g.motion(number(g.screw_to_chart(screws(g)[2])))
    for found in (se3.compose(*a, *b), se3.inverse(*a)):
        close(pose(g.motion(g.chart(*found))), pose(found), 4 * ALGEBRA, "pose")


@every
def test_poses_move_along_the_algebra(g):
    """d/dt motion = motion hat(S v) with q_dot = K v, by differentiation."""
    q, v = ca.SX.sym("q", g.nq), ca.SX.sym("v", g.nv)
    G = se3.homogeneous(*g.motion(q))
    G_dot = ca.reshape(ca.jtimes(ca.vec(G), q, g.kinematic(q) @ v), 4, 4)
    f = ca.Function("f", [q, v], [G_dot, G @ se3.hat(g.S @ v)])
    at = configuration(g), np.random.default_rng(1).normal(size=g.nv)
    close(*map(np.array, f(*at)), ALGEBRA, "rate of the pose")


@every
def test_exp_agrees_with_that_of_se3(g):
    for s in screws(g):
        close(pose(g.exp(s)), pose(se3.exp(number(g.S @ ca.DM(s)))), ALGEBRA, "pose")
        close(pose(g.motion(g.screw_to_chart(s))), pose(g.exp(s)), ALGEBRA, "chart of the pose", 1 + np.linalg.norm(s))


@every
def test_log_inverts_exp(g):
    for s in screws(g):
        close(number(g.log(*g.exp(s))).ravel(), s, 4 * ALGEBRA, "screw parameters", 1)


@every
def test_differentials_of_exp(g):
    """Central differences of the pose give the twist in the body frame and in the fixed frame."""
    h = 1e-5
    for s in screws(g):
        for i, e in enumerate(np.eye(g.nv)):
            G, plus, minus = pose(g.exp(s)), pose(g.exp(s + h * e)), pose(g.exp(s - h * e))
            rate = (plus - minus) / (2 * h)
            body = number(se3.vee(np.linalg.solve(G, rate))).ravel()
            fixed = number(se3.vee(rate @ np.linalg.inv(G))).ravel()
            close(number(g.S @ g.dexp_right(s))[:, i], body, CENTRAL, "body twist", 1)
            close(number(g.S @ g.dexp_left(s))[:, i], fixed, CENTRAL, "twist in the fixed frame", 1)


@every
def test_inverse_differential(g):
    for s in screws(g, 6.0):
        close(number(g.dexp_right_inv(s) @ g.dexp_right(s)), np.eye(g.nv), 1e3 * ALGEBRA, "identity", 1)


@every
def test_screw_rate_is_the_derivative_of_the_chart(g):
    s = ca.SX.sym("s", g.nv)
    f = ca.Function("f", [s], [ca.jacobian(g.screw_to_chart(s), s), g.screw_rate(s)])
    for at in screws(g):
        close(*map(np.array, f(at)), 4 * ALGEBRA, "dq/ds", 1)


def test_screw_rate_is_one_where_motions_commute():
    for name in ("revolute", "prismatic", "helical", "cylindrical", "planar-translation", "translation"):
        g = SUBGROUPS[name]
        close(number(g.screw_rate(np.full(g.nv, 0.7))), np.eye(g.nv), ALGEBRA, name)


def test_closed_form_of_the_planar_log():
    g, q = SUBGROUPS["planar"], np.array([0.4, -0.7, 1.9])
    (x, y, a), cot = q, 1 / np.tan(0.95)
    expected = [a * y / 2 + a * x / 2 * cot, a * y / 2 * cot - a * x / 2, a]
    close(number(g.log(*g.motion(q))).ravel(), expected, ALGEBRA, "[chhabra14 (2.4.19)]")


def test_speeds_of_a_base_without_side_slip():
    """[chhabra14 (2.1.5)] for B = [e_x, e_theta], written out."""
    s = np.array([0.4, -0.7, 1.9])
    (s1, s2, a), alpha = s, 0.95 / np.tan(0.95)
    expected = [[alpha, (1 - alpha) * s1 / a + s2 / 2], [a / 2, -s1 / 2 + (1 - alpha) * s2 / a], [0, 1]]
    close(number(SUBGROUPS["planar"].dexp_right_inv(s))[:, [0, 2]], expected, ALGEBRA, "Sigma")


@pytest.mark.parametrize("name", ["helical", "planar-helical"])
def test_a_screw_counts_full_turns(name):
    g = SUBGROUPS[name].with_pitch(-0.2)
    s = np.full(g.nv, 9.0)
    close(number(g.log(*g.exp(s))).ravel(), s, ALGEBRA, "beyond a turn")
    close(number(g.chart(*g.exp(s)))[-1], [9.0], ALGEBRA, "beyond a turn")


@pytest.mark.parametrize("turns", [-2, -1, 1, 3])
def test_no_log_of_full_turns_away_from_the_axis(turns):
    """The planar-helical group is the only one whose exponential is not onto. [chhabra14 prop. 2.1.3]"""
    R, p = PLANAR_HELICAL.motion([1e-6, 0.0, 2 * np.pi * turns])
    with pytest.raises(ModelError, match=f"planar-helical motion by {turns} full turn"):
        PLANAR_HELICAL.log(R, p)
    near = PLANAR_HELICAL.motion([1e-6, 0.0, 2 * np.pi * turns + 1e-6])
    close(pose(PLANAR_HELICAL.exp(PLANAR_HELICAL.log(*near))), pose(near), 1e-9, "near a full turn, by a large twist")
    on = PLANAR_HELICAL.motion([0.0, 0.0, 2 * np.pi * turns])
    close(pose(PLANAR_HELICAL.exp(PLANAR_HELICAL.log(*on))), pose(on), ALGEBRA, "on the axis")
    straight = PLANAR_HELICAL.motion([1.0, 2.0, 0.0])
    close(number(PLANAR_HELICAL.log(*straight)).ravel(), [1, 2, 0], ALGEBRA, "no turn at all")


def test_log_refuses_poses_outside_the_group():
    R, p = SUBGROUPS["free"].motion([0.1, 0.2, 0.3, *np.full(4, 0.5)])
    for g in GROUPS:
        if g.name != "free":
            with pytest.raises(ModelError, match=f"the pose is not a {g.name} motion"):
                g.log(R, p)


@every
def test_displacement_from_rest(g):
    """It is zero at rest, its rate is E v, and both quaternions of an orientation give the same length."""
    q, v, rest = ca.SX.sym("q", g.nq), ca.SX.sym("v", g.nv), configuration(g)
    e, E = g.displacement(q, rest)
    f = ca.Function("f", [q, v], [e, ca.jtimes(e, q, g.kinematic(q) @ v), E @ v])
    here = number(g.screw_to_chart(screws(g)[3])).ravel()
    found, e_dot, E_v = map(np.array, f(here, np.random.default_rng(1).normal(size=g.nv)))
    close(e_dot, E_v, ALGEBRA, "rate")
    close(np.array(f(rest, np.zeros(g.nv))[0]), np.zeros((g.nv, 1)), ALGEBRA, "at rest")
    if g.rotation is ANY_TURN:
        other = np.r_[here[:-4], -here[-4:]]
        there = np.array(f(other, np.zeros(g.nv))[0])
        close((there * there).sum(), (found * found).sum(), ALGEBRA, "the other quaternion")


def test_pitch_may_be_a_symbol():
    h, s = ca.SX.sym("h"), ca.SX.sym("s", 3)
    g = SUBGROUPS["planar-helical"].with_pitch(h)
    G = g.exp(s)
    f = ca.Function("f", [h, s], [se3.homogeneous(*g.motion(g.screw_to_chart(s))), se3.homogeneous(*G), g.log(*G)])
    at = np.array([0.3, -0.5, 2.0])
    moved, reached, back = map(np.array, f(PITCH, at))
    close(moved, pose(PLANAR_HELICAL.exp(at)), ALGEBRA, "motion")
    close(reached, pose(PLANAR_HELICAL.exp(at)), ALGEBRA, "exp")
    close(back.ravel(), at, ALGEBRA, "log")


@pytest.mark.parametrize("name", ["prismatic", "planar", "translation", "schoenflies", "free"])
def test_rounding_far_from_the_origin_is_accepted(name):
    """1e9 m away, poses are accurate to 1e-7 m. A displacement of 1e4 m in a direction outside the group is refused."""
    g = SUBGROUPS[name]
    s = np.linspace(0.3, 1.1, g.nv) * np.where(np.array(g.axes) < 3, 1e9, 1.0)
    R, p = g.exp(s)
    close(number(g.log(R, p)).ravel() / 1e9, s / 1e9, ALGEBRA, "log")
    if name in ("prismatic", "planar"):
        with pytest.raises(ModelError, match="is no"):
            g.log(R, p + ca.DM([0, 0, 1e4] if name == "planar" else [1e4, 0, 0]))


@pytest.mark.parametrize("turn", [1.23e5, -4.56e5, 7.89e5])
def test_rounding_after_many_turns_is_accepted(turn):
    g = SUBGROUPS["helical"].with_pitch(PITCH)
    close(number(g.log(*g.exp([turn]))).ravel() / turn, [1.0], ALGEBRA, "log")


def test_only_a_screw_has_a_pitch():
    with pytest.raises(ModelError, match="a planar motion has no pitch"):
        SUBGROUPS["planar"].with_pitch(0.1)


def test_rotations_agree_with_so3():
    close(number(ABOUT_Z.matrix(ca.DM(0.8))), number(so3.exp([0, 0, 0.8])), ALGEBRA, "about z")
    close(number(ANY_TURN.matrix(ANY_TURN.of_vector(ca.DM([0.1, 0.2, 0.8])))), number(so3.exp([0.1, 0.2, 0.8])), ALGEBRA, "any")


# [chhabra14 table 3.1]: isotropy groups of momenta with both parts, with an angular part alone, with a linear part alone, and
# of zero momentum. The last of the second row has its linear part along the axis.
CALLED = {
    "free": "SE(3)", "schoenflies": "SE(2) x R", "planar": "SE(2)", "spherical": "SO(3)", "planar-helical": "H x R^2",
    "translation": "R^3", "cylindrical": "SO(2) x R", "planar-translation": "R^2", "revolute": "SO(2)", "prismatic": "R",
    "helical": "H", "fixed": "none",
}  # fmt: skip
ISOTROPY = {
    "free": ("SO(2) x R", "SE(2) x R", "SO(2) x R", "SE(3)"),
    "schoenflies": ("R^2", "SE(2) x R", "R^2", "SE(2) x R"),
    "planar": ("R", "SE(2)", "R", "SE(2)"),
    "spherical": ("SO(2)", "SO(2)", "SO(3)", "SO(3)"),
    "planar-helical": ("R", "H x R^2", "R", "H x R^2"),
}


@every
def test_isotropy_groups_of_momenta(g):
    """Names of the isotropy groups. For commutative groups they are the whole group."""
    B, random = number(g.S), np.random.default_rng(8)
    assert name_of(B) == CALLED[g.name]
    for parts, name in zip(((1, 1), (0, 1), (1, 0), (0, 0)), ISOTROPY.get(g.name, (CALLED[g.name],) * 4), strict=True):
        mu = B.T @ np.r_[parts[0] * random.normal(size=3), parts[1] * random.normal(size=3)]
        left = isotropy(B, mu)
        assert name_of(B @ left) == name
        for x in left.T:
            close(number(se3.ad(B @ x)).T @ np.linalg.pinv(B).T @ mu @ B, np.zeros(g.nv), 10 * ALGEBRA, "ad^T mu")


def test_a_linear_momentum_along_the_axis_leaves_the_whole_group():
    B = number(SUBGROUPS["schoenflies"].S)
    assert name_of(B @ isotropy(B, [0, 0, 2.0, 1.0])) == "SE(2) x R"


def test_twists_that_form_no_group_have_no_name():
    with pytest.raises(ModelError, match="do not form an algebra"):
        name_of(np.eye(6)[:, [3, 4]])


@every
def test_a_group_keeps_its_name_in_any_frame(g):
    """The group in a general frame, and with its axis along x and along y."""
    for to in ([0.3, -0.2, 0.5, 0.4, 0.7, -0.1], [0, 0, 2, 0, np.pi / 2, 0], [1, 0, 0, np.pi / 2, 0, 0]):
        assert name_of(number(se3.Ad(*se3.exp(to))) @ number(g.S)) == CALLED[g.name]
