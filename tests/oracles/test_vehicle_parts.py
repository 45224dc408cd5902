"""Parts of vehicles: roads, bushes, anti-roll bars and suspension curves, against closed forms and SciPy's closure."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np
import pytest
import scipy.optimize as so

import pfaffian as pf
from pfaffian import forces
from pfaffian.errors import ModelError, RunError
from tests.tolerance import INTEGRATED, PEER

G = 9.81
INTERPRETED: Any = {"backend": "interpreter"}
RATES: Any = {"radial": 1.0, "axial": 1.0, "torsional": 1.0, "cardanic": 1.0}

# -- a double wishbone ------------------------------------------------------------------------------------------------

UPPER_PIVOTS = np.array([[0.12, 0.42, 0.62], [-0.14, 0.40, 0.60]])
LOWER_PIVOTS = np.array([[0.15, 0.35, 0.21], [-0.17, 0.33, 0.19]])
UPPER, LOWER = np.array([-0.015, 0.66, 0.63]), np.array([0.01, 0.72, 0.20])
RACK, ROD = np.array([-0.12, 0.34, 0.28]), np.array([-0.13, 0.70, 0.27])
HUB, AXIS = np.array([0.0, 0.78, 0.33]), np.array([0.01, 1.0, -0.02])


def wishbone() -> pf.Mechanism:
    """Two arms on hinges, an upright on balls and a track rod; every body has its frame in the world's axes at design."""

    def arm(name: str, pivots: np.ndarray, ball: np.ndarray) -> tuple[pf.Body, pf.Joint]:
        axis = pivots[0] - pivots[1]
        return pf.body(name, 2.0, com=ball - pivots[1], inertia=0.1), pf.joint(
            name, "revolute", "world", name, axis=axis, placement=pivots[1], child_placement=(0, 0, 0)
        )  # fmt: skip

    upper, upper_hinge = arm("upper", UPPER_PIVOTS, UPPER)
    lower, lower_hinge = arm("lower", LOWER_PIVOTS, LOWER)
    upright = pf.body("upright", 15.0, com=(0, 0, 0.1), inertia=0.5)
    ball = pf.joint("ball", "spherical", "lower", "upright", placement=LOWER - LOWER_PIVOTS[1])
    top = pf.closure("top", "spherical", "upper", "upright", placement_a=UPPER - UPPER_PIVOTS[1], placement_b=UPPER - LOWER)
    rod = pf.closure("rod", "distance", "world", "upright", placement_a=RACK, placement_b=ROD - LOWER,
                     length=float(np.linalg.norm(ROD - RACK)))  # fmt: skip
    return pf.mechanism("wishbone", [upper, lower, upright], [upper_hinge, lower_hinge, ball], constraints=[top, rod])


def closed_by_scipy(travel: float, guess: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(9,) the places of the upper and lower balls and of the rod's end for a travel of the hub, and their rates per travel.

    The upright is known by these three points; the hub is a fixed combination of them and of their normal.
    """
    base = np.array([UPPER, LOWER, ROD])
    frame = np.column_stack([base[1] - base[0], base[2] - base[0], np.cross(base[1] - base[0], base[2] - base[0])])
    weights = np.linalg.solve(frame, HUB - UPPER)
    links = [(0, UPPER_PIVOTS[0]), (0, UPPER_PIVOTS[1]), (1, LOWER_PIVOTS[0]), (1, LOWER_PIVOTS[1]), (2, RACK)]

    def hub(x: np.ndarray) -> np.ndarray:
        a, b, c = x.reshape(3, 3)
        return a + np.column_stack([b - a, c - a, np.cross(b - a, c - a)]) @ weights

    def residual(x: np.ndarray) -> np.ndarray:
        p = x.reshape(3, 3)
        fixed = [np.sum((p[i] - at) ** 2) - np.sum((base[i] - at) ** 2) for i, at in links]
        rigid = [np.sum((p[i] - p[j]) ** 2) - np.sum((base[i] - base[j]) ** 2) for i, j in ((0, 1), (1, 2), (0, 2))]
        return np.array([*fixed, *rigid, hub(x)[2] - HUB[2] - travel])

    def slopes(x: np.ndarray) -> np.ndarray:
        return np.array([residual(x + 1e-30j * d).imag / 1e-30 for d in np.eye(9)]).T

    x = so.fsolve(residual, guess, fprime=slopes, xtol=1e-12)
    for _ in range(3):
        x = x - np.linalg.solve(slopes(x), residual(x))
    return x, np.linalg.solve(slopes(x), np.eye(9)[8])


def curves_by_scipy(travel: float, guess: np.ndarray, radius: float) -> tuple[dict[str, float], np.ndarray]:
    x, rate = closed_by_scipy(travel, guess)
    base, now, moving = np.array([UPPER, LOWER, ROD]), x.reshape(3, 3), rate.reshape(3, 3)

    def frame(p: np.ndarray) -> np.ndarray:
        return np.column_stack([p[1] - p[0], p[2] - p[0], np.cross(p[1] - p[0], p[2] - p[0])])

    R = frame(now) @ np.linalg.inv(frame(base))
    a = R @ (AXIS / np.linalg.norm(AXIS))
    hub = now[0] + R @ (HUB - UPPER)
    down = np.array([0, 0, -1.0]) + a[2] * a
    contact = hub + radius * down / np.linalg.norm(down)
    # The angular velocity from those of three points: w x (p_i - p_0) = v_i - v_0.
    arms, rates = np.vstack([_hat(now[i] - now[0]) for i in (1, 2)]), np.hstack([moving[i] - moving[0] for i in (1, 2)])
    w = np.linalg.lstsq(-arms, rates, rcond=None)[0]
    v = moving[0] + np.cross(w, contact - now[0])
    up = now[0] - now[1]
    found = {
        "camber": -np.arcsin(a[2]), "toe": np.arctan2(a[0], a[1]), "roll_centre": contact[2] + contact[1] * v[1] / v[2],
        "track": contact[1], "recession": contact[0], "caster": np.arctan2(-up[0], up[2]), "kingpin": np.arctan2(-up[1], up[2]),
    }  # fmt: skip
    return found, x


def _hat(x: np.ndarray) -> np.ndarray:
    return np.array([[0, -x[2], x[1]], [x[2], 0, -x[0]], [-x[1], x[0], 0]])


def test_curves_of_a_double_wishbone_are_those_of_scipy() -> None:
    travel = np.array([-0.08, -0.03, 0.0, 0.05, 0.09])
    found = pf.analysis.wheel_curves(
        wishbone(), "upright", travel, axis=AXIS, centre=HUB - LOWER, radius=0.31, steering=(LOWER - LOWER, UPPER - LOWER)
    )
    design, _ = curves_by_scipy(0.0, np.hstack([UPPER, LOWER, ROD]), 0.31)
    for signs in (travel >= 0, travel < 0):
        x = np.hstack([UPPER, LOWER, ROD])
        for i in sorted(np.flatnonzero(signs), key=lambda i: abs(travel[i])):
            expected, x = curves_by_scipy(travel[i], x, 0.31)
            for name, value in expected.items():
                value -= design[name] if name in ("track", "recession") else 0.0
                assert float(found[name][i]) == pytest.approx(value, abs=PEER), name
    assert np.ptp(found["camber"].values) > 0.02 and np.ptp(found["roll_centre"].values) > 0.02


def test_curves_of_a_trailing_arm_and_a_swing_axle() -> None:
    """A trailing arm has no camber and its roll centre on the ground; a swing axle turns by the angle of its arm; the right
    side is the mirror of the left one."""
    travel = np.array([-0.05, 0.0, 0.1])
    trailing = pf.mechanism(
        "trailing",
        [pf.body("arm", 10.0, com=(-0.4, 0.7, 0), inertia=1.0)],
        [pf.joint("j", "revolute", "world", "arm", axis=(0, 1, 0))],
    )
    found = pf.analysis.wheel_curves(trailing, "arm", travel, centre=(-0.4, 0.7, 0), radius=0.3)
    np.testing.assert_allclose(found["camber"], 0, atol=PEER)
    np.testing.assert_allclose(found["roll_centre"], travel - 0.3, atol=PEER)
    angle = np.arcsin(travel / 0.6)
    for side in (1, -1):
        hinge = pf.joint("j", "revolute", "world", "arm", axis=(1, 0, 0), placement=(0, 0.1 * side, 0))
        axle = pf.mechanism("axle", [pf.body("arm", 10.0, com=(0, 0.6 * side, 0), inertia=1.0)], [hinge])
        found = pf.analysis.wheel_curves(axle, "arm", travel, centre=(0, 0.6 * side, 0), radius=0.3)
        np.testing.assert_allclose(found["camber"], -angle, atol=PEER)
        contact = np.array([0.1 + 0.6 * np.cos(angle) + 0.3 * np.sin(angle), 0.6 * np.sin(angle) - 0.3 * np.cos(angle)])
        slope = contact[1] / (contact[0] - 0.1)  # of the line from the contact to the pivot, which goes on to the middle
        np.testing.assert_allclose(found["roll_centre"], -0.1 * slope, atol=PEER)
    with pytest.raises(RunError, match=r"a travel of 0\.7 m is out of reach"):
        pf.analysis.wheel_curves(axle, "arm", [0.7], centre=(0, -0.6, 0))
    with pytest.raises(ModelError, match="steering: two points"):
        pf.analysis.wheel_curves(axle, "arm", [0.0], steering=(0, 0, 0))
    for axis in ((0, 0, 1), (1, 0, 0)):
        with pytest.raises(ModelError, match="'arm' has its axis at right angles to y, across the car"):
            pf.analysis.wheel_curves(axle, "arm", [0.0], axis=axis, centre=(0, -0.6, 0))
    with pytest.raises(ModelError, match=r"'arm' is in the car's plane of symmetry, y = 0\.7, where nothing is outwards"):
        pf.analysis.wheel_curves(trailing, "arm", [0.0], centre=(-0.4, 0.7, 0), middle=0.7)


def test_the_steering_axis_of_a_strut_ends_in_the_car() -> None:
    """A plane strut: the ball joint moves on a circle, and the axis goes from it to the mount in the car, at any travel."""
    top, reach = np.array([-0.03, 0.55, 0.8]), 0.35
    foot = np.array([-0.03, 0.63, 0.35])  # of the strut on the upright
    ball = np.array([0.0, 0.3 + reach, 0.2])
    bodies = [pf.body("arm", 3.0, com=(0, 0.2, 0), inertia=0.1), pf.body("upright", 15.0, inertia=0.3), pf.body("rod", 2.0)]
    pin = {"kind": "revolute", "axis": (1, 0, 0)}
    joints = [
        pf.joint("arm", parent="world", child="arm", placement=(0, 0.3, 0.2), **pin),
        pf.joint("ball", parent="arm", child="upright", placement=(0, reach, 0), **pin),
        pf.joint("strut", "prismatic", "upright", "rod", axis=top - foot, placement=foot - ball),
    ]
    mount = pf.closure("mount", body_a="world", body_b="rod", placement_a=top, placement_b=top - foot, **pin)
    m = pf.mechanism("strut", bodies, joints, constraints=[mount])
    how = {"centre": (0, 0.08, 0.1), "steering": ((0, 0, 0), ("world", top))}
    found = pf.analysis.wheel_curves(m, "upright", np.linspace(-0.08, 0.08, 9), **how)
    angle = found.q.sel(coordinate="arm").values
    up = top - np.stack([0 * angle, 0.3 + reach * np.cos(angle), 0.2 + reach * np.sin(angle)], axis=1)
    np.testing.assert_allclose(found["kingpin"], np.arctan2(-up[:, 1], up[:, 2]), atol=PEER)
    np.testing.assert_allclose(found["caster"], np.arctan2(-up[:, 0], up[:, 2]), atol=PEER)
    assert np.ptp(angle) > 0.3
    with pytest.raises(ModelError, match="chassis"):
        pf.analysis.wheel_curves(m, "upright", [0.0], centre=(0, 0.08, 0.1), steering=((0, 0, 0), ("chassis", top)))


# -- roads ------------------------------------------------------------------------------------------------------------


def test_a_table_is_its_function() -> None:
    """The interpolation meets every point, has continuous slopes, is exact for planes, and of third order in between."""

    def z(x: Any, y: Any) -> Any:
        return 0.05 * np.sin(2 * x) * np.cos(y)

    errors = []
    for n in (21, 41):
        x, y = np.linspace(-1, 2, n), np.linspace(-1, 1, n)
        made = forces.road(z(x[:, None], y), x=x, y=y)
        X = ca.SX.sym("x", 2)
        f = ca.Function("z", [X], [made.height(X[0], X[1])])
        assert abs(np.array(f(np.array([x[3:6], y[2:5]])))[0] - z(x[3:6], y[2:5])).max() < 1e-15
        points = np.random.default_rng(1).uniform((-0.8, -0.8), (1.8, 0.8), (200, 2))
        errors.append(abs(np.array(f(points.T))[0] - z(*points.T)).max())
    assert errors[1] < errors[0] / 6
    plane = forces.road([[0.0, 0.2], [0.3, 0.5], [0.4, 0.6]], x=[0.0, 3.0, 4.0], y=[0.0, 2.0])
    X = ca.SX.sym("x", 2)
    g = ca.Function("z", [X], [plane.height(X[0], X[1])])
    assert float(g([3.7, 0.3])) == pytest.approx(0.37 + 0.03, abs=1e-15)
    assert float(g([9.0, 9.0])) == 0.6


def wheel_on(road: Any, **how: Any) -> pf.Mechanism:
    tyre = forces.road_tyre("tyre", "wheel", 0.3, road=road, **({"vertical": 2e5} | how))
    return pf.mechanism(
        "wheel", [pf.body("wheel", 20.0, inertia=0.9)], [pf.joint("base", "free", "world", "wheel")], forces=[tyre]
    )


def test_a_wheel_on_a_slope_of_function_and_table() -> None:
    """A wheel that slides sideways, locked, on a plane road: load and force of the magic formula in the plane's own axes."""
    slope = 0.2
    n, along = np.array([-np.sin(slope), 0, np.cos(slope)]), np.array([np.cos(slope), 0, np.sin(slope)])
    x = np.linspace(-2, 3, 6)
    found = []
    for road in (forces.road(lambda x, y: ca.tan(slope) * x), forces.road(np.tan(slope) * x, x=x)):
        m = wheel_on(road, friction=0.8)
        place = along * 0.7 + n * (0.3 - 2e-3)
        q = [*place, 0, 0, 0, 1]
        a = pf.forward_dynamics(m, q, [*(10 * along), 0, 0, 0]).v_dot
        N = 2e5 * 2e-3
        F = 0.8 * N * np.sin(1.3 * np.arctan(10.0 * 10 / np.hypot(10, 0.5)))
        np.testing.assert_allclose(20 * (a[:3] + [0, 0, G]), N * n - F * along, rtol=1e-9, atol=1e-9)
        assert 0.9 * a[4] == pytest.approx((0.3 - 2e-3) * F, rel=1e-9)
        found.append(a)
    np.testing.assert_allclose(found[0], found[1], rtol=1e-9, atol=1e-9)
    assert (pf.forward_dynamics(wheel_on(forces.road([0.0], x=[0.0])), [0, 0, 0.31, 0, 0, 0, 1]).v_dot[:2] == 0).all()


def test_the_road_below_a_wheel_is_its_nearest_point() -> None:
    road, radius = forces.road(lambda x, y: 0.02 * ca.cos(2 * x) + 0.05 * y), 0.3
    X, r = ca.SX.sym("X", 3), ca.SX.sym("r")
    f = ca.Function("below", [X, r], ca.horzsplit(ca.horzcat(*road.below(X, r))))
    for x, y in ((0.3, 0.0), (1.0, -0.4), (2.2, 0.5)):
        point = np.array([x, y, 0.02 * np.cos(2 * x) + 0.05 * y])
        normal = np.array([0.04 * np.sin(2 * x), -0.05, 1.0])
        normal /= np.linalg.norm(normal)
        found, direction = (np.array(z).ravel() for z in f(point + radius * normal, radius))
        np.testing.assert_allclose(found, point, atol=2e-5)  # two corrections; without, 1e-2
        np.testing.assert_allclose(direction, normal, atol=2e-5)


def test_a_wheel_rolls_over_a_wave() -> None:
    """Without slip and damping the energy is kept over hills of a road; the wheel stays on it."""
    road = forces.road(lambda x, y: 0.02 * ca.cos(2 * x))
    m = wheel_on(road, friction=0.0)
    x = 0.4
    q = [x, 0, 0.02 * np.cos(2 * x) + 0.3 - 1e-3, 0, 0, 0, 1]
    result = pf.run(m, q, [1.5, 0, 0, 0, 0, 0], duration=1.0, accuracy=1e-8, every=None, **INTERPRETED)
    k = pf.compile_terms(m, {"V": lambda T: T.V}, **INTERPRETED)
    assert result["q"][-1, 0] > 1.5
    depth = 0.3 + 0.02 * np.cos(2 * result["q"][:, 0]) - result["q"][:, 2]
    assert float(depth.max()) < 4e-3 and k is not None


# -- bushes and bars --------------------------------------------------------------------------------------------------


def test_rates_of_a_bush() -> None:
    """Force and moment at the bush for small motions, each by its own rate, about a point and an axis that are skew."""
    point, axis = np.array([0.2, -0.1, 0.3]), np.array([1.0, 2.0, 2.0]) / 3
    rates = {"radial": 3e5, "axial": 8e4, "torsional": 50.0, "cardanic": 120.0}
    eye = forces.bush("eye", "world", "arm", axis=3 * axis, point=point, damping=0.01, **rates)
    m = pf.mechanism(
        "arm", [pf.body("arm", 1.0, inertia=1.0)], [pf.joint("j", "free", "world", "arm")], forces=[eye], gravity=(0, 0, 0)
    )
    across = np.cross(axis, [0, 0, 1.0])
    across /= np.linalg.norm(across)
    h = 1e-6
    for d, w in ((across, 0 * axis), (axis, 0 * axis), (0 * axis, axis), (0 * axis, across)):
        turn = h * w
        shift = h * d - np.cross(turn, point)
        q = [*shift, *(turn / 2), 1.0]
        f = pf.compile_terms(m, {"f": lambda T: T.f}, **INTERPRETED)(q)["f"] / h
        force, moment = f[:3], f[3:] - np.cross(point, f[:3])
        np.testing.assert_allclose(force, -3e5 * (d - axis * (axis @ d)) - 8e4 * axis * (axis @ d), atol=3)
        np.testing.assert_allclose(moment, -120 * (w - axis * (axis @ w)) - 50 * axis * (axis @ w), atol=3)
        v = [*(d - np.cross(w, point)), *w]
        damped = pf.compile_terms(m, {"f": lambda T: T.f}, **INTERPRETED)([0, 0, 0, 0, 0, 0, 1.0], v)["f"]
        np.testing.assert_allclose(damped, 0.01 * f, atol=0.03)


def test_an_anti_roll_bar_stiffens_roll_alone() -> None:
    """The frequencies of an axle of two sprung arms: heave sqrt(k / J), roll sqrt((k + 2 K) / J)."""
    k, K, J = 300.0, 900.0, 0.5
    arms = [pf.body(side, 1.0, inertia=J) for side in ("left", "right")]
    for sign in (1, -1):
        joints = [
            pf.joint("left", "revolute", "world", "left", axis=(1, 0, 0), stiffness=k),
            pf.joint("right", "revolute", "world", "right", axis=(sign, 0, 0), stiffness=k),
        ]
        bar = forces.anti_roll_bar("bar", "left", "right", K, ratio=sign, damping=0.5)
        m = pf.mechanism("axle", arms, joints, forces=[bar], gravity=(0, 0, 0))
        near = pf.linearise(m)
        eigenvalues = np.sort_complex(np.round(near.eigenvalues, 9))
        roll = np.roots([1, 2 * 0.5 / J, (k + 2 * K) / J])
        expected = np.sort_complex(np.round([*roll, 1j * np.sqrt(k / J), -1j * np.sqrt(k / J)], 9))
        np.testing.assert_allclose(eigenvalues, expected, rtol=INTEGRATED)


def test_doors_of_files(tmp_path: Path) -> None:
    road = forces.road(np.outer([0, 0.02, 0.03], [1.0, 1.2]), x=[-1, 0, 1.0], y=[-1, 1.0])
    bodies = [*(pf.body(side, 3.0, inertia=0.5) for side in ("left", "right")), pf.body("wheel", 10.0, inertia=0.3)]
    joints = [pf.joint(side, "revolute", "world", side, axis=(1, 0, 0)) for side in ("left", "right")]
    joints.append(pf.joint("base", "free", "world", "wheel"))
    parts = [
        forces.road_tyre("tyre", "wheel", 0.3, road=road, vertical=1e5),
        forces.bush("eye", "world", "wheel", axis=(0, 1, 0), point=(0, 0.1, 0), damping=0.1, **RATES),
        forces.anti_roll_bar("bar", "left", "right", 100.0, damping=2.0),
    ]
    m = pf.mechanism("parts", bodies, joints, forces=parts)
    pf.write(m, tmp_path / "m.yaml")
    q, v = [0.1, 0.2, 0.3, 0.05, 0.31, 0.01, 0.02, 0.03, np.sqrt(1 - 0.0014)], np.linspace(0.1, 1, 8)
    again = pf.read(tmp_path / "m.yaml")[0]
    np.testing.assert_array_equal(pf.forward_dynamics(again, q, v).v_dot, pf.forward_dynamics(m, q, v).v_dot)
    text = "{kind: bush, body_a: world, body_b: wheel, axis: [0, 1, 0], point: [0, 0.1, 0], damping: 0.1, radial: 1, axial: 1, "
    (tmp_path / "bush.yaml").write_text(
        "bodies: {wheel: {mass: 10, inertia: 0.3}}\njoints: {base: {kind: free, parent: world, child: wheel}}\n"
        f"forces: {{eye: {text}torsional: 1, cardanic: 1}}}}\n"
    )
    alone = pf.mechanism("bush", bodies[2:], joints[2:], forces=parts[1:2])
    read = pf.read(tmp_path / "bush.yaml")[0]
    np.testing.assert_array_equal(pf.forward_dynamics(read, q[2:], v[2:]).v_dot, pf.forward_dynamics(alone, q[2:], v[2:]).v_dot)
    lines = (tmp_path / "m.yaml").read_text()
    (tmp_path / "wrong.yaml").write_text(lines.replace("x: [-1.0, 0.0, 1.0]", "x: [-1.0, 0.0, -0.5]"))
    with pytest.raises(ModelError, match="road: x: places that increase"):
        pf.read(tmp_path / "wrong.yaml")


def on_the_world() -> pf.Mechanism:
    slide = pf.joint("slide", "prismatic", "world", "cart")
    return pf.mechanism("cart", [pf.body("cart", 1.0)], [slide], forces=[pf.wrench("push", "world", [1, 0, 0, 0, 0, 0])])


def barred_ball() -> pf.Mechanism:
    bodies = [pf.body(name, 1.0, inertia=1.0) for name in ("knuckle", "arm")]
    ball = pf.joint("ball", "spherical", "world", "knuckle")
    hinge = pf.joint("hinge", "revolute", "world", "arm")
    return pf.mechanism("axle", bodies, [ball, hinge], forces=[forces.anti_roll_bar("bar", "hinge", "ball", 1.0)])


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: forces.road([0.0, np.nan], x=[0, 1]), "height is nan at x = 1"),
        (lambda: forces.road(lambda x, y: ca.log(x)), "height is nan at x = -1"),
        (lambda: forces.road([0.0, 1.0], x=[1, 0]), "2 increasing places"),
        (lambda: forces.road([0.0, 1.0]), "2 increasing places"),
        (lambda: forces.road(["a", "b"], x=[0, 1]), "road: z: .* is not an array of real numbers"),
        (lambda: forces.road([[0.0, 1.0], [1.0]], x=[0, 1], y=[0, 1]), "road: z: .* is not an array of real numbers"),
        (lambda: forces.road(np.array([1j, 0.0]), x=[0, 1]), "road: z: .* is not an array of real numbers"),
        (lambda: forces.road([], x=[]), r"heights \(nx, ny\) are needed"),
        (lambda: forces.road(lambda x, y: 0 * x, x=[0.0]), "a function of x and y needs none"),
        (lambda: wheel_on(3), "force 'tyre': road: a road is needed"),
        (lambda: wheel_on(forces.road([0.0], x=[0.0]), vertical=0.0), "force 'tyre': vertical"),
        (
            lambda: forces.bush("eye", "a", "b", **RATES),
            "force 'eye': a bush needs its axis",
        ),
        (lambda: forces.bush("eye", "a", "b", axis=(0, 0, 0), **RATES), "force 'eye': the axis .* has no direction"),
        (
            lambda: forces.bush("eye", "a", "b", axis=(0, 0, 1), **(RATES | {"radial": -1.0})),
            "force 'eye': radial",
        ),
        (lambda: forces.anti_roll_bar("bar", "left", "left", 1.0), "force 'bar': both ends are on 'left'"),
        (lambda: forces.anti_roll_bar("bar", "left", 3, 1.0), "force 'bar': a joint is given by its name"),
        (lambda: forces.anti_roll_bar("bar", "left", "right", 1.0, ratio=0), "force 'bar': ratio 0 leaves 'right' without"),
        (lambda: on_the_world(), "force 'push': it acts on the world"),
        (lambda: barred_ball(), "joint 'ball' has 4 coordinates; a bar turns with a joint of one"),
    ],
)
def test_wrong_parts_are_refused(make: Any, words: str) -> None:
    with pytest.raises(ModelError, match=words):
        m = make()
        pf.forward_dynamics(m, m.neutral())
