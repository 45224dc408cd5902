"""Compliant contact and stops: bounces, stick and slip, distances, momentum and energy, against closed forms and SciPy."""

from __future__ import annotations

import re
import warnings

import casadi as ca
import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import minimize
from scipy.spatial.transform import Rotation
from scipy.special import gamma

import pfaffian as pf
from pfaffian import forces
from pfaffian.simulate.error.accuracy import BOUND
from tests.matrices import number
from tests.refused import refusals
from tests.tolerance import DERIVATIVE, close

STIFF = pf.Scheme(integrator="tr-bdf2", iterations=16)
QUIET = {"error_bound": np.inf, "backend": "interpreter"}
MASS, RADIUS = 2.0, 0.1
BALL = pf.shape("sphere", radius=RADIUS)
C = pf.Parameter("c", 0.0)


def ball(exponent: float, stiffness: float, **more) -> pf.Mechanism:
    ground = forces.contact("ground", "ball", shape_a=BALL, stiffness=stiffness, exponent=exponent, damping=C)
    fall = pf.joint("fall", "prismatic", "world", "ball", **more)
    return pf.mechanism("ball", [pf.body("ball", MASS)], [fall], forces=[ground], parameters=[C], gravity=(0, 0, 0))


# -- bounces ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("exponent", "stiffness"), [(1.0, 2e4), (1.5, 2e5), (2.0, 4e6)])
def test_an_elastic_bounce_lasts_as_long_as_its_closed_form(exponent, stiffness):
    """2 x / v sqrt(pi) Gamma(1 + 1/(n+1)) / Gamma(1/2 + 1/(n+1)), x = ((n+1) m v^2 / (2 k))^(1/(n+1)). [Hertz 1882]"""
    v, away, end, n = 1.5, 0.003, 0.08, exponent + 1
    deepest = (n * MASS * v**2 / 2 / stiffness) ** (1 / n)
    lasts = 2 * deepest / v * np.sqrt(np.pi) * gamma(1 + 1 / n) / gamma(0.5 + 1 / n)
    r = pf.run(ball(exponent, stiffness), [RADIUS + away], [-v], duration=end, step=4e-5, **QUIET)
    assert lasts < 0.05
    close(r.v[-1], [v], 1e-6, "speed")
    close(RADIUS - float(r.q.min()), deepest, 1e-4, "depth")
    close(end - away / v - (float(r.q[-1, 0]) - RADIUS) / v, lasts, 1e-4, "duration")


def hunt_crossley(v: float, c: float, k: float, n: float) -> float:
    """Speed after the bounce, computed by SciPy."""

    def rate(t, x):
        return [x[1], -k * max(x[0], 0) ** n * max(0, 1 + c * x[1]) / MASS]

    def parted(t, x):
        return x[0]

    parted.terminal, parted.direction = True, -1
    return -solve_ivp(rate, (0, 1), [0.0, v], rtol=1e-10, atol=1e-12, events=parted, max_step=1e-4).y[1, -1]


def test_a_damped_bounce_with_rk4_and_with_the_stiff_integrator():
    """The speed afterwards is that of the law's ODE; tr-bdf2 at 1 ms, a tenth of the bounce, comes close to it.

    No step of the damped bounces gains energy, up to the error of order two: 3e-4 of the energy at the lightest damping.
    """
    c, v, k = np.array([0.05, 0.3, 3.0]), 1.5, 2e5
    expected = np.array([hunt_crossley(v, x, k, 1.5) for x in c])
    given = {"parameters": {"c": c}, **QUIET}
    r = pf.run(ball(1.5, k), [RADIUS + 0.003], [-v], duration=0.06, step=1e-4, **given)
    close(r.v.values[:, -1, 0], expected, 1e-3, "speeds after", v)
    stiff = pf.run(ball(1.5, k), [RADIUS + 0.003], [-v], duration=0.06, step=1e-3, scheme=STIFF, **given)
    close(stiff.v.values[:, -1, 0], expected, 0.03, "speeds after, in steps of 1 ms", v)
    gains = np.diff(stiff.energy.values.squeeze(), axis=1).max(axis=1) / (MASS * v**2 / 2)
    assert (gains < [3e-4, 1e-12, 1e-12]).all() and np.diff(r.energy.values.squeeze(), axis=1).max() < 1e-6


# -- on a slope ---------------------------------------------------------------------------------------------------------

SLOPE, FRICTION = pf.Parameter("slope", 0.3), 0.5
W = pf.pose((0.4, -1.0, 2.0), rpy=(0.7, -0.4, 1.1))


def block(moved: bool) -> pf.Mechanism:
    """A block with four sharp corners on a slope. moved: everything, including gravity, is in another frame of the world."""
    X = W if moved else pf.pose()
    rubber = {"stiffness": 1e5, "exponent": 1.0, "damping": 20.0, "friction": FRICTION}
    slope = forces.contact(
        "ground", "block", shape_a=pf.shape("box", size=(0.2, 0.2, 0.1)), shape_b=X @ pf.pose(rpy=(0, SLOPE, 0)), **rubber
    )
    fly = pf.joint("fly", "free", "world", "block", placement=X @ pf.pose(rpy=(0, SLOPE, 0)) @ pf.pose((0, 0, 0.05)))
    down = number(X.R) @ [0, 0, -9.81]
    return pf.mechanism(
        "block", [pf.body("block", MASS, inertia=0.02)], [fly], forces=[slope], parameters=[SLOPE], gravity=down
    )


@pytest.fixture(scope="module")
def on_slope():
    return pf.run(block(False), {"fly.z": -4e-5}, duration=0.5, scheme=STIFF, parameters={"slope": [0.3, 0.6]}, **QUIET)


def test_a_block_sticks_below_the_friction_angle_and_slides_above(on_slope):
    """When it sticks it creeps at creep t / sqrt(1 - t^2), t = tan(slope) / mu; when it slides it gains g (sin - mu cos)."""
    v = on_slope.v.sel(velocity="fly.vx").values
    t = np.tan(0.3) / FRICTION
    close(v[0, -1], 1e-2 * t / np.sqrt(1 - t**2), 1e-3, "creep")
    gained = (v[1, -1] - v[1, 250]) / 0.25
    close(gained, 9.81 * (np.sin(0.6) - FRICTION * np.cos(0.6)), 1e-3, "slides")
    assert (on_slope.status == 0).all() and np.diff(on_slope.energy.values.squeeze(), axis=1).max() < 1e-12


def test_a_block_in_another_frame_of_the_world_moves_the_same_way(on_slope):
    r = pf.run(block(True), {"fly.z": -4e-5}, duration=0.1, scheme=STIFF, parameters={"slope": [0.3, 0.6]}, **QUIET)
    close(r.q, on_slope.q[:, :101], 1e-9, "q")
    close(r.v, on_slope.v[:, :101], 1e-7, "v", 1)


# -- distances, momentum and power ------------------------------------------------------------------------------------

SHAPES = {
    "point": (0.1, 0.0, -0.2),
    "sphere": pf.shape("sphere", radius=0.4, placement=(0.1, 0.2, -0.1)),
    "capsule": pf.shape("capsule", radius=0.3, length=0.9, placement=pf.pose((0.1, 0, 0), rpy=(0.4, 1.1, 0))),
    "box": pf.shape("box", size=(0.6, 0.8, 1.0), placement=pf.pose((0, 0.1, 0), rpy=(0.2, 0.3, 0.4))),
}
PLANE = pf.pose((0.3, 0.1, -0.2), rpy=(0.3, -0.2, 0.5))
PAIRS = [(a, "plane") for a in SHAPES] + [(a, b) for a in SHAPES for b in ("sphere", "capsule") if a != "box"]


def pair(a: str, b: str, **law) -> pf.Mechanism:
    shape_b = PLANE if b == "plane" else SHAPES[b]
    touch = forces.contact("t", "a", "b", shape_a=SHAPES[a], shape_b=shape_b, **{"stiffness": 50.0, "exponent": 1.5} | law)
    bodies = [pf.body(n, MASS, inertia=(0.1, 0.2, 0.25)) for n in "ab"]
    joints = [pf.joint(f"j{n}", "free", "world", n) for n in "ab"]
    return pf.mechanism("pair", bodies, joints, forces=[touch], gravity=(0, 0, 0))


def state(seed: int, distance: float) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    turns = [Rotation.random(random_state=int(random.integers(1000))).as_quat() for _ in "ab"]
    way = random.normal(size=3)
    q = np.concatenate([distance * way / np.linalg.norm(way), turns[0], np.zeros(3), turns[1]])
    return q, random.normal(size=12)


def ends(shape, G) -> tuple[np.ndarray, float]:
    """End points in the world, and the radius."""
    if isinstance(shape, tuple):
        return np.array([G[0] @ shape + G[1]]), 0.0
    X, size = shape.placement, number(shape.size).ravel()
    R, p = number(X.R), number(X.p)
    local = {
        "sphere": np.zeros((1, 3)),
        "capsule": np.array([[0, 0, -1], [0, 0, 1]]) * size[-1] / 2,
        "box": np.array(np.meshgrid(*[(-1, 1)] * 3)).reshape(3, -1).T * (size / 2 if shape.kind == "box" else 0),
    }[shape.kind]
    return (G[0] @ (R @ local.T + p) + G[1][:, None]).T, 0.0 if shape.kind == "box" else size[0]


def depths(a: str, b: str, q: np.ndarray) -> np.ndarray:
    """Depth of each contact point, from the geometry alone."""
    at = [(Rotation.from_quat(q[i + 3 : i + 7]).as_matrix(), q[i : i + 3]) for i in (0, 7)]
    points, radius = ends(SHAPES[a], at[0])
    if b == "plane":
        R, p = number(PLANE.R), number(PLANE.p)
        n = at[1][0] @ R[:, 2]
        return np.maximum(0, radius - (points - (at[1][0] @ p.ravel() + at[1][1])) @ n)
    others, other = ends(SHAPES[b], at[1])
    along, opposite = points[-1] - points[0], others[-1] - others[0]

    def between(s):
        return np.linalg.norm(points[0] + s[0] * along - others[0] - s[1] * opposite)

    starts = [(x, y) for x in (0, 0.5, 1) for y in (0, 0.5, 1)]
    least = min(minimize(between, s, bounds=[(0, 1)] * 2, tol=1e-13).fun for s in starts)
    return np.maximum(0, [radius + other - least])


@pytest.mark.parametrize(("a", "b"), PAIRS)
def test_the_force_of_a_pair_follows_from_its_depth_and_acts_equally_on_both(a, b):
    """The energy follows from the depth, forces and moments of the pair sum to zero, and beyond its energy the pair does no
    positive work."""
    m = pair(a, b, damping=0.4, friction=0.7)
    f = pf.compile_terms(m, {"f": lambda T: T.f, "V": lambda T: T.V, "J": lambda T: T.kinematics.jacobian("a", "WORLD"),
                             "K": lambda T: T.kinematics.jacobian("b", "WORLD")}, backend="numpy")  # fmt: skip
    slope = pf.compile_terms(m, {"V_dot": lambda T: ca.jacobian(T.V, T.q) @ T.kinematics.q_dot}, backend="numpy")
    touched = 0
    for seed in range(12):
        q, v = state(seed, 0.3 if (a, b) != ("point", "plane") and a == "point" else 0.6)
        found, depth = f(q, v), depths(a, b, q)
        touched += depth.any()
        close(found["V"], (50 / 2.5 * depth**2.5).sum(), 1e-6, f"energy in state {seed}", max(1.0, found["V"]))
        total = np.linalg.solve(found["J"][:, :6].T, found["f"][:6]) + np.linalg.solve(found["K"][:, 6:].T, found["f"][6:])
        close(total, np.zeros(6), DERIVATIVE, "force and moment on both", 1 + np.abs(found["f"]).max())
        assert found["f"] @ v + slope(q, v)["V_dot"] <= 1e-12 * (1 + np.abs(found["f"]).max())
    assert touched >= 3


def test_friction_slows_the_sliding_point_by_its_load():
    m = pair("point", "plane", friction=0.7, static=0.9, stribeck=0.5, creep=0.1)
    q = np.zeros(14)
    q[[6, 13]], q[:3] = 1, (0, 0, -0.6)
    q[10:14] = (PLANE_INVERSE := Rotation.from_matrix(number(PLANE.R)).inv()).as_quat()
    q[7:10] = -PLANE_INVERSE.apply(number(PLANE.p).ravel())
    v = np.zeros(12)
    v[:3] = (0.3, 0.4, 0.0)
    load = 50 * 0.8**1.5
    dry = load * (0.7 + 0.2 * np.exp(-(0.5**2) / 0.5**2)) * 0.5 / np.hypot(0.5, 0.1)
    F = pf.forward_dynamics(m, q, v).v_dot[:3] * MASS
    turned = pf.compile_terms(m, {"f": lambda T: T.f}, backend="numpy")(q, v)["f"][:3]
    close(turned, [-0.6 * dry, -0.8 * dry, load], 1e-12, "force on the point", load)
    close(F, turned, 1e-9, "accelerates", load)


# -- stops --------------------------------------------------------------------------------------------------------------


def test_stops_hold_a_slider_within_its_limits():
    """At a stop with n = 2 a push of F rests at (F / k)^(1/2); on the other side the speed is returned elastically."""
    rail = pf.joint("rail", "prismatic", "world", "cart", axis=(1, 0, 0), limits=(-0.2, 0.5))
    ends = forces.stops([rail], stiffness=1e6, exponent=2.0, damping=C)
    push = pf.actuator("push", "rail")
    m = pf.mechanism("cart", [pf.body("cart", MASS)], [rail], forces=ends, actuators=[push], parameters=[C])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        r = pf.run(m, [0.4], u=[50.0], duration=1.5, scheme=STIFF, parameters={"c": 20.0}, **QUIET)
    close(r.q[-1, 0], 0.5 + np.sqrt(50 / 1e6), 1e-6, "rests")
    back = pf.run(m, [0.0], [-1.0], duration=0.4, step=2e-4, **QUIET)
    close(back.v[-1], [1.0], 1e-4, "comes back")
    assert float(back.limit_excess.max()) > 0, "recorded in the result, without a warning"
    close(-0.2 - float(back.q.min()), (3 * MASS / 2 / 1e6) ** (1 / 3), 1e-3, "depth")


def test_stops_of_joints_with_several_coordinates_and_one_side():
    flat = pf.joint("flat", "planar-translation", "world", "puck", limits=((-1, 1), (-np.inf, 2)))
    m = pf.mechanism("puck", [pf.body("puck", MASS)], [flat], forces=forces.stops([flat], stiffness=100.0), gravity=(0, 0, 0))
    assert [f.name for f in m.all_forces] == ["flat.x stop press", "flat.x stop loss", "flat.y stop press", "flat.y stop loss"]
    for q, f in (((1.5, 2.5), (-50, -50)), ((-1.5, -9), (50, 0)), ((0.9, 1.9), (0, 0))):
        close(pf.forward_dynamics(m, q).v_dot * MASS, f, 1e-12, f"at {q}", 50)


# -- contacts that are too fast are named before they touch -----------------------------------------------------------


STICKS = 2.0 * 9.81 / 1e-4 * (1 + MASS * RADIUS**2 / 0.1)
"""Rate mu g / s_0 at which the weight of a ball that also turns stops its sliding [1/s]."""


@pytest.mark.parametrize(("z", "speed", "friction", "damping", "words"), [
    (5.0, 0.0, 0.0, 0.0, r"^the spring of contact 'ground' once it touches, 3\.06e\+03 rad/s of"),
    (5.0, -3.0, 0.0, 0.0, r"^the spring of contact 'ground' once it touches, 1\.\d+e\+04 rad/s of"),
    (RADIUS + 1e-4, 0.0, 2.0, 0.0, rf"^the damper of contact 'ground' once it touches, {re.escape(f'{STICKS:.3g}')} 1/s, "),
    (5.0, 0.0, 2.0, 0.0, rf"^the damper of contact 'ground' once it touches, {re.escape(f'{STICKS:.3g}')} 1/s, "),
    (5.0, 0.0, 0.0, 600.0, r"^the damper of contact 'ground' once it touches, 5\.89e\+03 1/s, the spring of contact 'ground'"),
])  # fmt: skip
def test_a_contact_is_named_before_it_touches(z, speed, friction, damping, words):
    """The weight m g is damped by c m g."""
    rubber = {"stiffness": 1e10, "friction": friction, "damping": damping, "creep": 1e-4}
    ground = forces.contact("ground", "ball", shape_a=BALL, **rubber)
    fly = pf.joint("fly", "free", "world", "ball")
    m = pf.mechanism("ball", [pf.body("ball", MASS, inertia=0.1)], [fly], forces=[ground])
    at = {"fly.z": z}, {"fly.vz": speed}
    with pytest.warns(pf.RunWarning, match=words) as caught:
        pf.run(m, *at, duration=0.002, backend="interpreter")
    assert "integrator='tr-bdf2') is stable without following them" in str(caught[0].message)
    first = r"the friction of contact 'ground', 1\.96e\+05 1/s, " if friction else ""
    with pytest.warns(
        pf.RunWarning, match=f"^{first}the spring of contact 'ground'.*may not converge.*a larger creep"
    ) as caught:
        pf.run(m, *at, duration=0.002, scheme=STIFF, backend="interpreter")
    assert len(caught) == 1


def test_the_friction_of_balls_far_apart_is_that_at_touch():
    """Their arms are the radii: the rate is mu W / s_0 (1 / m_a + 1 / m_b + r_a^2 / I_a + r_b^2 / I_b)."""
    ends = {"shape_a": pf.shape("sphere", radius=0.1), "shape_b": pf.shape("sphere", radius=0.3)}
    touch = forces.contact("touch", "a", "b", **ends, stiffness=1e4, friction=0.5, creep=1e-4)
    bodies = [pf.body("a", 1.0, inertia=0.01), pf.body("b", 3.0, inertia=0.2)]
    m = pf.mechanism("balls", bodies, [pf.joint(f"fly {n}", "free", "world", n) for n in "ab"], forces=[touch])
    rate = 0.5 * 4 * 9.81 / 1e-4 * (1 + 1 / 3 + 0.1**2 / 0.01 + 0.3**2 / 0.2)
    with pytest.warns(pf.RunWarning, match=rf"damper of contact 'touch' once it touches, {re.escape(f'{rate:.3g}')} 1/s"):
        pf.run(m, {"fly a.x": 40.0, "fly a.y": 3.0}, duration=0.002, backend="interpreter")


K, CREEP = pf.Parameter("k", 1e5), pf.Parameter("creep", 1e-2)


def rolling() -> pf.Mechanism:
    """A ball that falls, spins and slides."""
    rubber = {"stiffness": K, "exponent": 1.0, "damping": C, "friction": 0.5, "creep": CREEP}
    ground = forces.contact("ground", "ball", shape_a=BALL, **rubber)
    body, fly = pf.body("ball", MASS, inertia=0.008), pf.joint("fly", "free", "world", "ball")
    return pf.mechanism("ball", [body], [fly], forces=[ground], parameters=[K, C, CREEP])


THROWN = {"fly.z": 0.13}, {"fly.vx": 2.0, "fly.wy": -10.0, "fly.vz": -1.0}


def test_within_its_bounds_the_stiff_integrator_converges_and_gains_almost_no_energy():
    """Springs of up to 0.7 per step, a weight that stops at most half of the creep in a step, and any damping: with the
    default number of iterations there is no warning. Energy rises by less than 1e-2 of itself in a step."""
    grid = np.array(np.meshgrid([1e3, 1e4, 1e5, 1e6], [0.0, 0.3, 3.0, 30.0], [0.01, 0.1])).reshape(3, -1)
    p = dict(zip(("k", "c", "creep"), grid, strict=True))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        r = pf.run(
            rolling(), *THROWN, duration=0.3, parameters=p, scheme=pf.Scheme(integrator="tr-bdf2"), record=["energy"], **QUIET
        )
    E = r.energy.values.reshape(grid.shape[1], -1)
    gain = np.diff(E, axis=1).max(axis=1) / E[:, 0]
    assert (r.status == 0).all() and r.attrs["iterations"] == 16 and (E[:, -1] < E[:, 0]).all()
    assert gain.max() < 1e-2 and gain[grid[0] <= 1e4].max() < 1e-3 and gain[grid[1] == 30].max() < 1e-12


def thrown_at_random(count: int) -> dict[str, np.ndarray]:
    """Stiffness from soft to the bound and damping from none to some; friction as in `rolling`."""
    random = np.random.default_rng(5)
    return {
        "k": 10 ** random.uniform(3, 6, count),
        "c": np.where(random.random(count) < 0.3, 0, 10 ** random.uniform(-3, 0.5, count)),
    }


def test_a_rise_of_energy_warns():
    """`energy_error` is at least the largest rise of a run's energy above an earlier value; beyond the bound it warns. Energy
    rises where the steps of RK4 are too long for the springs."""
    p, given = thrown_at_random(60), {"duration": 0.3, "scheme": pf.Scheme(integrator="rk4"), "backend": "interpreter"}
    p["c"] *= 0.03
    with pytest.warns(pf.RunWarning) as caught:
        r = pf.run(rolling(), *THROWN, parameters=p, **given)
    E, T = r.energy.values.reshape(60, -1), r.kinetic_energy.values.reshape(60, -1)
    rise = np.array([max(0, *(e[i:].max() - e[i] for i in range(len(e)))) for e in E])
    rising = np.flatnonzero(rise > 2 * BOUND * T.max(axis=1))
    assert 10 < len(rising) < 50 and (r.energy_error.values >= rise).all()
    assert len(caught) == 2 and "which rk4 cannot follow" in str(caught[0].message)
    assert "J of energy, which rises although nothing drives it" in str(caught[1].message)
    for run in (rising[0], rising[-1]):
        one = {name: float(x[run]) for name, x in p.items()}
        with pytest.warns(pf.RunWarning, match="which rises although nothing drives it"):
            pf.run(rolling(), *THROWN, parameters=one, **given)
    given["scheme"] = pf.Scheme(integrator="tr-bdf2")
    with pytest.warns(pf.RunWarning, match="give the run") as caught:
        pf.run(rolling(), *THROWN, parameters={"k": 1e4, "c": 30.0}, **given)
    assert "rises" not in str(caught[0].message), "the impact has an error of 1.4e-3 rad of spin, but none of energy"


@pytest.mark.parametrize(("given", "words"), [
    ({"creep": 4e-3}, r"the friction of contact 'ground', 1\.23e\+03 1/s of 'ball': faster than the step of 0\.001 s"),
    ({"k": 2.2e6}, r"^the spring of contact 'ground' once it touches, 1\.05e\+03 rad/s of 'ball'.*a step of 0\.0005 s"),
])  # fmt: skip
def test_problems_too_fast_for_the_stiff_integrator_are_named_before_the_run(given, words):
    with pytest.warns(pf.RunWarning, match=words):
        pf.run(rolling(), *THROWN, duration=0.002, parameters=given, scheme=pf.Scheme(integrator="tr-bdf2"), **QUIET)


def test_the_number_of_iterations_is_the_mechanisms_unless_a_scheme_gives_one():
    calm = pf.mechanism("calm", [pf.body("b", 1.0)], [pf.joint("x", "prismatic", "world", "b")])
    for m, given, used in ((calm, None, 4), (rolling(), None, 16), (rolling(), 7, 7), (calm, 9, 9)):
        scheme = pf.Scheme(integrator="tr-bdf2", iterations=given)
        assert pf.run(m, duration=0.001, scheme=scheme, **QUIET).attrs["iterations"] == used


def test_the_rate_of_a_contact_is_that_at_the_depth_of_its_weight():
    """sqrt(n k x^(n-1) / m) at the depth that carries the weight."""
    k, n = 1e10, 1.5
    deep = (MASS * 9.81 / k) ** (1 / n)
    m = ball(n, k).with_(gravity=(0, 0, -9.81))
    with pytest.warns(pf.RunWarning) as caught:
        pf.run(m, [5.0], duration=0.002, backend="interpreter")
    assert f"{np.sqrt(n * k * deep ** (n - 1) / MASS):.3g} rad/s" in str(caught[0].message)


# -- wrong arguments ----------------------------------------------------------------------------------------------------


def touch(**given):
    return forces.contact("g", given.pop("a", "ball"), given.pop("b", "world"), **{"stiffness": 1e4} | given)


def stopped(*given, **more):
    return forces.stop("s", *given, **{"stiffness": 1e4} | more)


def built(*parts):
    rail = pf.joint("rail", "prismatic", "world", "ball")
    return pf.mechanism("m", [pf.body("ball", 1.0)], [rail], forces=parts)


WRONG = {
    "no stiffness": (lambda: touch(stiffness=0.0), "force 'g': stiffness .* must be above zero"),
    "a stiffness of words": (lambda: touch(stiffness="hard"), "force 'g': stiffness"),
    "a soft exponent": (lambda: touch(exponent=0.5), "exponent must be 1 or more, got 0.5"),
    "damping that drives": (lambda: touch(damping=-1.0), "force 'g': damping"),
    "friction that drives": (lambda: touch(friction=-0.1), "force 'g': sliding friction"),
    "less static friction": (lambda: touch(friction=0.5, static=0.4), "static friction is less than sliding friction"),
    "no creep": (lambda: touch(creep=0.0), "force 'g': creep 0 must be above zero"),
    "no stribeck speed": (lambda: touch(stribeck=0.0), "force 'g': stribeck 0 must be above zero"),
    "one body": (lambda: touch(b="ball"), "both surfaces are on 'ball'"),
    "a body as an object": (lambda: touch(a=pf.body("ball", 1.0)), "a body is given by its name"),
    "an unknown body": (lambda: built(touch(a="bal")), "there is no body 'bal'"),
    "an unknown ground": (lambda: built(touch(b="floor")), "there is no body 'floor'"),
    "a plane that touches": (lambda: touch(shape_a=pf.pose()), "a plane must be shape_b"),
    "a cylinder": (lambda: touch(shape_a=pf.shape("cylinder", radius=1, length=1)), "a cylinder cannot touch"),
    "a mesh": (lambda: touch(shape_a=pf.shape("mesh", file="foot.stl")), "a mesh cannot touch"),
    "a box to touch": (lambda: touch(shape_b=pf.shape("box", size=(1, 1, 1))), "a box cannot be touched"),
    "a box on a ball": (
        lambda: touch(shape_a=pf.shape("box", size=(1, 1, 1)), shape_b=BALL), "a box touches only planes, not a sphere"),
    "a point of two": (lambda: touch(shape_a=(0, 0)), "shape_a, a point"),
    "a point of words": (lambda: touch(shape_a="foot"), "shape_a must be a shape"),
    "a plane of two": (lambda: touch(shape_b=(0, 0)), "force 'g': shape_b"),
    "no stop": (lambda: stopped("rail"), "low or high is needed"),
    "stops the wrong way round": (lambda: stopped("rail", 1.0, 0.0), "low must be below high; high - low is -1"),
    "a stop of words": (lambda: stopped("rail", "low"), "force 's': low"),
    "a joint as an object": (lambda: stopped(3, 0.0), "joint must be the name of a joint"),
    "a component below": (lambda: stopped("rail", 0.0, component=-1), "component must be a whole number"),
    "a component beyond": (
        lambda: pf.forward_dynamics(built(stopped("rail", 0.0, component=1)), [0.0]), "1 coordinate.s., none numbered 1"),
    "an unknown joint": (lambda: built(stopped("rial", 0.0)), "there is no joint 'rial'"),
    "a soft stop": (lambda: stopped("rail", 0.0, stiffness=-1.0), "force 's': stiffness .* must be above zero"),
    "stops of joints without": (lambda: forces.stops(built().joints, stiffness=1.0), "none of these joints has limits"),
    "stops of names": (lambda: forces.stops(["rail"], stiffness=1.0), "joints are needed, as m.joints"),
    "no iterations": (lambda: pf.Scheme(integrator="tr-bdf2", iterations=1), "whole number from 2 to 40, got 1"),
    "iterations of rk4": (lambda: pf.Scheme(iterations=8), "rk4 has none to set"),
    "iterations of True": (lambda: pf.Scheme(integrator="tr-bdf2", iterations=True), "whole number from 2 to 40"),
}  # fmt: skip


test_wrong_arguments_are_named = refusals(WRONG)


def test_friction_acts_in_the_middle_of_the_overlap_of_two_balls():
    """Balls of 0.2 m and 0.3 m overlap by 0.1 m, so the arm of the moment is 0.15 m, below the centre of the smaller one."""
    small, large = (pf.shape("sphere", radius=r) for r in (0.2, 0.3))
    touch = pf.forces.contact("touch", "ball", shape_a=small, shape_b=large, stiffness=1e4, friction=0.5)
    joint = pf.joint("ball", "free", "world", "ball")
    m = pf.mechanism("ball", [pf.body("ball", 1.0, inertia=0.1)], [joint], forces=[touch], gravity=(0, 0, 0))
    v = [1.0, 0, 0, 0, 0, 0]
    f = pf.compile_terms(m, {"f": lambda T: T.f}, backend="numpy")([0, 0, 0.4, 0, 0, 0, 1], v)["f"]
    assert f[0] < 0 and f[4] == pytest.approx(-0.15 * f[0])
