"""Friction that follows the load of a joint, against closed forms, against reactions, and through every door."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np
import pytest

import pfaffian as pf
from pfaffian import forces
from pfaffian.dynamics import load_equations, load_losses
from pfaffian.errors import ModelError, RunError, RunWarning, collected
from tests.simulate.machines import four_bar
from tests.tolerance import CENTRAL, INTEGRATED, PEER

G = 9.81
INTERPRETED: Any = {"backend": "interpreter"}


def cart_and_bob(*losses: Any, mass: float = 2.0) -> pf.Mechanism:
    bodies = [pf.body("cart", mass), pf.body("bob", 1.0, com=(0, 0, -0.5))]
    rail = pf.joint("rail", "prismatic", "world", "cart", axis=(1, 0, 0))
    hinge = pf.joint("hinge", "revolute", "cart", "bob", axis=(0, 1, 0))
    return pf.mechanism("cart and bob", bodies, [rail, hinge], forces=losses)


def painleve_rod(mu: float) -> pf.Mechanism:
    """A rod of 2 m that leans on a light slider on a rough rail: Painleve's example."""
    bodies = [pf.body("slider", 0.01), pf.body("rod", 1.0, com=(0, 0, 1.0), inertia=1 / 3)]
    rail = pf.joint("rail", "prismatic", "world", "slider", axis=(1, 0, 0))
    pin = pf.joint("pin", "revolute", "slider", "rod", axis=(0, 1, 0))
    shoes = forces.guide_friction("shoes", "rail", mu, smooth=1e-9)
    return pf.mechanism("rod", bodies, [rail, pin], forces=[shoes])


def four_bar_on_pins(**how: Any) -> tuple[pf.Mechanism, dict[str, float]]:
    m = four_bar()
    radii = dict(zip([*[j.name for j in m.joints], *m.loop_joints], (0.03, 0.02, 0.05, 0.01), strict=True))
    losses = [forces.pin_friction(f"{n} pin", n, 0.15, r, smooth=0.05, **how) for n, r in radii.items()]
    return m.with_(forces=losses), radii


def moving_four_bar(m: pf.Mechanism) -> tuple[np.ndarray, np.ndarray]:
    first = m.q_names[0]
    q = pf.assemble(m, {first: 0.4}, **INTERPRETED).q
    return q, pf.assemble(m, q, {first: 2.0}, hold=[first], **INTERPRETED).v


def test_cart_and_bob() -> None:
    """N = 3 g + 0.5 * 9 at the lowest point, and the cart is braked by 0.1 N. Where the bob hangs sideways, friction moves the
    cart and so its own load: Newton's equations of both, solved by hand for the friction."""
    m = cart_and_bob(forces.guide_friction("shoes", "rail", 0.1, smooth=1e-9))
    assert pf.forward_dynamics(m, [0, 0], [1.0, 3.0]).v_dot[0] == pytest.approx(-1.6965, abs=1e-9)
    for angle, mu, mass in ((0.7, 0.3, 2.0), (-1.1, 0.5, 0.4), (2.0, 0.2, 1.0)):
        m = cart_and_bob(forces.guide_friction("shoes", "rail", mu, smooth=1e-9), mass=mass)
        a = pf.forward_dynamics(m, [0, angle], [1.5, 3.0]).v_dot
        s, c, w2, l = np.sin(angle), np.cos(angle), 9.0, 0.5
        # The bob is at (x - l s, -l c); unknown: x_dd, angle_dd, N, with friction -mu N on the cart.
        A = np.array([[mass + 1, -l * c, mu], [0, -l * s, 1], [-c, l, 0]])
        b = np.array([-l * s * w2, (mass + 1) * G + l * c * w2, -G * s])
        np.testing.assert_allclose(a, np.linalg.solve(A, b)[:2], rtol=1e-8)


def test_jamming_drawer() -> None:
    """A drawer of 2 kg and a guide of 0.4 m, pulled beside its axis: m a = F (1 - 2 mu e / L), and it jams beyond."""
    push = pf.wrench("push", "drawer", [8.0, 0, 0, 0, 0, 0], point=(0, 0.3, 0))
    slide = pf.joint("slide", "prismatic", "world", "drawer", axis=(1, 0, 0))
    for mu in (0.1, 0.5):
        guide = forces.guide_friction("guide", "slide", mu, length=0.4, smooth=1e-9)
        m = pf.mechanism("drawer", [pf.body("drawer", 2.0, inertia=0.1)], [slide], forces=[push, guide], gravity=(0, 0, 0))
        a = pf.forward_dynamics(m, [0.0], [0.1]).v_dot[0]
        assert a == pytest.approx(4.0 * (1 - 2 * mu * 0.3 / 0.4), rel=1e-8)


@pytest.mark.parametrize("mu", [0.05, 0.2])
@pytest.mark.parametrize("pitch", [0.003, -0.008])
def test_efficiency_of_a_screw(mu: float, pitch: float) -> None:
    """A jack that lifts 100 kg: torque F r tan(l + phi), down F r tan(l - phi), and the efficiency tan l / tan(l + phi)."""
    r = 0.02
    nut = pf.joint("screw", "helical", "world", "nut", axis=(0, 0, 1), pitch=pitch)
    thread = forces.screw_friction("thread", "screw", mu, r, smooth=1e-9)
    motor = pf.actuator("motor", "screw")
    m = pf.mechanism("jack", [pf.body("nut", 100.0, inertia=0.01)], [nut], forces=[thread], actuators=[motor])
    l, phi = np.arctan(pitch / r), np.arctan(mu)
    for w in (2.0, -2.0):
        u = pf.inverse_dynamics(m, [0.3], [w], [0.0]).u[0]
        assert u == pytest.approx(100 * G * r * np.tan(l + np.sign(w) * phi), rel=1e-8)
        assert pf.forward_dynamics(m, [0.3], [w], [u]).v_dot[0] == pytest.approx(0, abs=1e-9)
    lifting = float(np.sign(pitch))
    u = pf.inverse_dynamics(m, [0.0], [lifting], [0.0]).u[0]
    assert 100 * G * pitch / u == pytest.approx(np.tan(abs(l)) / np.tan(abs(l) + phi), rel=1e-8)


def test_efficiency_of_a_gear_head() -> None:
    hinge = pf.joint("hinge", "revolute", "world", "arm", axis=(0, -1, 0))
    head = forces.gear_loss("head", "hinge", 0.75, backward=0.6, smooth=1e-9)
    bodies, motor = [pf.body("arm", 1.0, com=(0.5, 0, 0), inertia=2.0)], pf.actuator("motor", "hinge", gear=4.0)
    m = pf.mechanism("arm", bodies, [hinge], forces=[head], actuators=[motor])
    for w, factor in ((1.0, 1 / 0.75), (-1.0, 0.6)):
        u = pf.inverse_dynamics(m, [0.0], [w], [0.0]).u[0]
        assert u == pytest.approx(0.5 * G * factor / 4, rel=1e-8)
        assert pf.forward_dynamics(m, [0.0], [w], [u]).v_dot[0] == pytest.approx(0, abs=1e-9)


def test_journals_of_a_four_bar() -> None:
    """The moment about each pin, also of the one that closes the loop, is mu r |F| of the reaction of the same motion."""
    m, radii = four_bar_on_pins()
    q, v = moving_four_bar(m)
    wrenches = pf.reaction_wrench(m, list(radii), q, v)
    for n, r in radii.items():
        w = wrenches[n].wrench
        s = v[m.v_names.index(n)] if n in m.v_names else pf.compile_terms(
            m, {"s": lambda T, n=n: T.kinematics.joint_rate(n)}, **INTERPRETED)(q, v)["s"]  # fmt: skip
        assert w[5] == pytest.approx(-0.15 * r * np.hypot(*w[:2]) * s / np.hypot(s, 0.05), rel=1e-9)
    motions = [pf.forward_dynamics(m, q, v, formulation=by).v_dot for by in ("gauss", "multipliers", "nullspace", "projection")]
    for other in motions[1:]:
        np.testing.assert_allclose(other, motions[0], rtol=1e-10)


def test_friction_of_a_run_takes_its_energy() -> None:
    m, _ = four_bar_on_pins()
    q, v = moving_four_bar(m)
    result = pf.run(m, q, v, duration=0.5, step=1e-3, error=False, **INTERPRETED)
    E = result["energy"].values
    assert (np.diff(E) < 1e-9).all() and E[-1] < E[0] - 0.1
    finer = pf.run(m, q, v, duration=0.5, step=2.5e-4, error=False, **INTERPRETED)
    np.testing.assert_allclose(result["q"][-1], finer["q"][-1], atol=100 * INTEGRATED)


def test_friction_of_a_run_to_an_accuracy() -> None:
    m = cart_and_bob(forces.guide_friction("shoes", "rail", 0.2, smooth=0.05))
    start, end = {"q": [0.0, 0.5], "v": [0.7, 3.0], "error": False, **INTERPRETED}, 0.5
    steps = pf.run(m, duration=end, step=2.5e-4, **start)
    exact = pf.run(m, accuracy=1e-9, times=[0.0, end], **start)
    np.testing.assert_allclose(steps["q"][-1], exact["q"][-1], atol=100 * INTEGRATED)


@pytest.mark.parametrize("slope", [0.15, 0.35])
def test_a_block_sticks_on_a_slope(slope: float) -> None:
    """Below the angle of friction the block comes to rest and stays; above it slides with g (sin - mu cos)."""
    axis = (np.cos(slope), 0, -np.sin(slope))
    rail = pf.joint("rail", "prismatic", "world", "block", axis=axis)
    shoes = forces.guide_friction("shoes", "rail", 0.25, settle=0.01)
    m = pf.mechanism("slope", [pf.body("block", 3.0)], [rail], forces=[shoes])
    result = pf.run(m, v={"rail": 0.2}, duration=2.0, step=1e-3, every=100, **INTERPRETED)
    x, v = result["q"][:, 0].values, result["v"][:, 0].values
    if np.tan(slope) < 0.25:
        assert abs(v[-1]) < 1e-15 and x[-1] == x[-5]
        assert x[-1] == pytest.approx(0.2**2 / 2 / G / (0.25 * np.cos(slope) - np.sin(slope)), rel=0.02)
    else:
        assert v[-1] == pytest.approx(0.2 + 2 * G * (np.sin(slope) - 0.25 * np.cos(slope)), rel=1e-9)


def test_two_sticking_joints_hold_each_other() -> None:
    """Two blocks, one on the other: pushed below both limits nothing moves, above the upper one only that slides."""
    bodies = [pf.body("lower", 2.0), pf.body("upper", 1.0)]
    joints = [
        pf.joint("table", "prismatic", "world", "lower", axis=(1, 0, 0)),
        pf.joint("top", "prismatic", "lower", "upper", axis=(1, 0, 0)),
    ]
    friction = (("under", "table", 0.5), ("between", "top", 0.3))
    losses = [forces.guide_friction(name, joint, mu, settle=0.01) for name, joint, mu in friction]
    m = pf.mechanism("stack", bodies, joints, forces=losses, actuators=[pf.actuator("push", "top")])
    np.testing.assert_allclose(pf.forward_dynamics(m, [0, 0], [0, 0], [2.0]).v_dot, 0, atol=1e-12)
    a = pf.forward_dynamics(m, [0, 0], [0, 0], [5.0]).v_dot
    np.testing.assert_allclose(a, [0, 5 - 0.3 * G], atol=1e-9)


def test_painleve_is_named_with_joint_and_instant() -> None:
    """mu |dN/dQ| reaches one as the rod falls; up to there the motion is that of the quadratic equation."""
    m, angle = painleve_rod(1.6), 0.45
    s, c = np.sin(angle), np.cos(angle)
    # Slider x, rod angle from the vertical; N is the force on the rail.
    inertia = np.array([[1.01, c], [c, 4 / 3]])
    feedback = -s * np.linalg.solve(inertia, [1.0, 0.0])[1]
    assert 1.6 * abs(feedback) > 1
    with pytest.raises(RunError, match=r"joint 'rail'.*Painleve.*t = 2 s"):
        pf.forward_dynamics(m, [0.0, angle], [1.0, 0.0], t=2.0)
    with pytest.raises(RunError, match="run 1"):
        pf.forward_dynamics(m, [[0.0, 0.0], [0.0, angle]], [1.0, 0.0])
    with pytest.warns(RunWarning, match="joint 'rail': its friction 'shoes'"):
        result = pf.run(m, [0.0, 0.05], [5.0, 1.0], duration=1.5, step=1e-3, every=10, error=False, **INTERPRETED)
    assert result["status"] > 0 and 0.05 < result["stopped"] < 1.5
    ends = [float(result["stopped"])]
    for accuracy in (1e-4, 1e-8):
        with pytest.warns(RunWarning, match="joint 'rail': its friction 'shoes'"):
            r = pf.run(m, [0.0, 0.05], [5.0, 1.0], duration=1.5, accuracy=accuracy, error=False, **INTERPRETED)
        ends.append(float(r["stopped"]))
    assert ends[0] - 1e-9 <= ends[2] <= ends[0] + 1e-3 and ends[1] == pytest.approx(ends[2], abs=1e-4)
    assert pf.forward_dynamics(painleve_rod(0.5), [0.0, angle], [1.0, 0.0]).v_dot.shape == (2,)


def test_inputs_and_accelerations_agree() -> None:
    m, _ = four_bar_on_pins()
    m = m.with_(actuators=[pf.actuator("motor", m.joints[0].name)])
    q, v = moving_four_bar(m)
    for u in (-3.0, 4.0):
        a = pf.forward_dynamics(m, q, v, [u]).v_dot
        assert pf.inverse_dynamics(m, q, v, a).u[0] == pytest.approx(u, rel=1e-9)


def test_friction_of_a_run_follows_its_inputs() -> None:
    """The motor of a gear head, and a motor across a guide: the acceleration in a run, under inputs and under a law."""
    hinge = pf.joint("hinge", "revolute", "world", "arm", axis=(0, -1, 0))
    head = forces.gear_loss("head", "hinge", 0.75, smooth=1e-9)
    m = pf.mechanism(
        "arm", [pf.body("arm", 1.0, inertia=2.0)], [hinge], forces=[head], actuators=[pf.actuator("motor", "hinge")]
    )
    outputs = {"a": pf.of_motion(lambda terms, motion: motion.v_dot)}
    law = pf.control.Control(lambda T, z, w, y: pf.control.Command([8.0 + 0 * T.f[0]]))  # which looks at the friction too
    for how in ({"u": {"motor": 8.0}}, {"control": law}):
        found = pf.run(m, v={"hinge": 1.0}, duration=2e-3, step=1e-3, outputs=outputs, **INTERPRETED, **how)
        assert float(found["a"][0]) == pytest.approx(3.0, rel=1e-9)
    m = cart_and_bob(forces.guide_friction("shoes", "rail", 0.2, smooth=1e-9)).with_(actuators=[pf.actuator("motor", "hinge")])
    found = pf.run(m, v={"rail": 1.0}, u={"motor": 5.0}, duration=2e-3, step=1e-3, outputs=outputs, **INTERPRETED)
    np.testing.assert_allclose(found["a"][0], pf.forward_dynamics(m, [0, 0], [1.0, 0.0], [5.0]).v_dot, rtol=1e-12)


@pytest.mark.parametrize(("sticks", "radius"), [(False, 0.5), (True, 0.05)])
def test_iterations_converge_though_frictions_load_each_other(sticks: bool, radius: float) -> None:
    """Random loads of three joints, whose frictions change each other's by up to the spectral radius of their gains."""
    random, n = np.random.default_rng(3), 3
    w, G, c, H = ca.SX.sym("w", 2 * n), ca.SX.sym("G", 2 * n, n), ca.SX.sym("c", n), ca.SX.sym("H", n, n + 1)
    equations = [
        load_equations.Equation(
            i,
            c[i],
            (ca.SX(1),),
            (w[2 * i : 2 * i + 2],),
            (G[2 * i : 2 * i + 2, :],),
            (H[i, 0] / H[i, 1 + i], H[i, 1:] / H[i, 1 + i]) if sticks else None,
        )
        for i in range(n)
    ]
    f = ca.Function("f", [w, G, c, H], list(load_equations.friction(equations)))
    for _ in range(200):
        loads, gains = random.normal(size=2 * n) * 10 ** random.uniform(-1, 1, 2 * n), random.normal(size=(2 * n, n))
        K = np.hypot(gains[::2], gains[1::2])
        mu = random.uniform(0.2, 1, n)
        mu *= radius / np.abs(np.linalg.eigvals(mu[:, None] * K)).max()
        L = random.normal(size=(n, n))
        rest = np.column_stack([random.normal(size=n), L @ L.T + 0.3 * np.eye(n)])
        sign = np.ones(n) if sticks else random.choice([-1, 1], n)
        Q, faults = (np.array(x).ravel() for x in f(loads, gains, sign * mu, rest))
        assert not faults.any()
        pressing = (loads + gains @ Q).reshape(n, 2)
        most = mu * np.hypot(*pressing.T)
        still = rest[:, 0] + rest[:, 1:] @ Q
        wanted = np.clip(Q - still / np.diag(rest[:, 1:]), -most, most) if sticks else -sign * most
        np.testing.assert_allclose(Q, wanted, atol=1e-7 * most.max())


def test_iterations_that_do_not_converge_are_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    m, _ = four_bar_on_pins()
    q, v = moving_four_bar(m)
    for count, fault in ((load_equations.ITERATIONS, 0.0), (1, 1.0)):
        monkeypatch.setattr(load_equations, "ITERATIONS", count)
        T = pf.symbols(m)
        assert T.losses is not None
        faults = ca.Function("faults", [T.q, T.v, T.u, m.p_symbols, T.t], [T.losses.faults])(q, v, [], [], 0)
        assert np.array(faults).ravel().tolist() == [0.0, 0.0, 0.0, 0.0, fault]
    assert "did not converge" in load_losses.meanings(m)[-1]


def test_derivatives() -> None:
    """The linear model and the derivatives of forward and inverse dynamics, against central differences."""
    m = cart_and_bob(forces.guide_friction("shoes", "rail", 0.3, length=0.5), forces.pin_friction("pin", "hinge", 0.2, 0.1))
    m = m.with_(actuators=[pf.actuator("motor", "rail")])
    q, v, u, h = np.array([0.2, 0.7]), np.array([0.5, -2.0]), np.array([3.0]), 1e-5
    near = pf.linearise(m, q, v, u)
    rate = lambda q, v, u: pf.forward_dynamics(m, q, v, u).v_dot  # noqa: E731
    steps = h * np.eye(2)
    by_q = np.transpose([(rate(q + d, v, u) - rate(q - d, v, u)) / (2 * h) for d in steps])
    by_v = np.transpose([(rate(q, v + d, u) - rate(q, v - d, u)) / (2 * h) for d in steps])
    by_u = (rate(q, v, u + h) - rate(q, v, u - h)) / (2 * h)
    found = pf.derivatives(m, q, v, u)
    for exact, seen in ((by_q, found.v_dot.q), (by_v, found.v_dot.v), (by_u[:, None], found.v_dot.u)):
        np.testing.assert_allclose(seen, exact, atol=CENTRAL * 100)
    dv = near.dv
    np.testing.assert_allclose(
        np.linalg.pinv(dv[:, 2:]) @ by_u, near.B[2:, 0], atol=CENTRAL * 100
    )  # fmt: skip


def test_a_shared_load_is_refused() -> None:
    """A door on two hinges: their forces along the axis, and moments across it, are not determined."""
    hinges = [pf.joint("upper", "revolute", "world", "door", axis=(0, 0, 1), placement=(0, 0, 1))]
    lower = pf.closure("lower", "revolute", "world", "door", placement_b=(0, 0, -1), axis=(0, 0, 1))
    door = [pf.body("door", 20.0, com=(0.4, 0, -0.5), inertia=1.0)]
    m = pf.mechanism("door", door, hinges, constraints=[lower], forces=[forces.pin_friction("pin", "upper", 0.1, 0.01)])
    with pytest.raises(ModelError, match=r"force 'pin'.*share the load of joint 'upper'"):
        pf.forward_dynamics(m, [0.3], [1.0])


@pytest.mark.parametrize(
    ("apart", "shared", "words"),
    [(1e-12, False, ""), (8e-10, False, "counted as zero"), (1e-8, True, "counted as nonzero"), (1e-3, True, "")],
)
def test_a_load_that_is_hardly_shared_is_told(apart: float, shared: bool, words: str) -> None:
    """Two tables on parallel rails, held at one distance by two rods: what these share presses on a rail if they are apart."""
    tables = [pf.body(n, 1.0, inertia=0.1) for n in ("one", "two")]
    rails = [pf.joint(f"rail {b.name}", "prismatic", "world", b.name, axis=(0, 0, 1)) for b in tables]
    rods = [
        pf.closure(f"rod {i}", "distance", "one", "two", placement_a=(x, 0, 0), placement_b=(x, 0, 2), length=2.0)
        for i, x in enumerate((1.0, 1.0 + apart))
    ]
    shoes = forces.guide_friction("shoes", "rail one", 0.1, length=0.5)
    m = pf.mechanism("tables", tables, rails, constraints=rods, forces=[shoes])
    with collected() as messages:
        if shared:
            with pytest.raises(ModelError, match="share the load of joint 'rail one'"):
                load_losses.check_unique(m)
        else:
            assert load_losses.check_unique(m)
    told = [x for x in messages if "whether redundant constraints share the load of joint 'rail one'" in x]
    assert bool(told) == bool(words) and all(words in x for x in told)


def test_doors_of_files(tmp_path: Path) -> None:
    m = cart_and_bob(
        forces.guide_friction("shoes", "rail", 0.3, length=0.5, static=0.4, settle=0.02),
        forces.pin_friction("pin", "hinge", 0.2, 0.1, collar=0.05),
        forces.gear_loss("head", "hinge", 0.8, backward=0.5),
    ).with_(actuators=[pf.actuator("motor", "hinge")])
    pf.write(m, tmp_path / "m.yaml")
    again = pf.read(tmp_path / "m.yaml")[0]
    state = ([0.1, 0.4], [0.3, 2.0], [1.5])
    np.testing.assert_allclose(pf.forward_dynamics(again, *state).v_dot, pf.forward_dynamics(m, *state).v_dot, rtol=PEER)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: forces.guide_friction("shoes", "rail", -0.1), "force 'shoes'.*coefficient"),
        (lambda: forces.guide_friction("shoes", "rail", 0.2, static=0.1), "less than sliding"),
        (lambda: forces.pin_friction("pin", "hinge", 0.2, 0.0), "force 'pin': radius"),
        (lambda: forces.gear_loss("head", "hinge", 1.2), "force 'head': efficiency must be above 0"),
        (lambda: cart_and_bob(forces.guide_friction("shoes", "hinge", 0.1)), "a guide is in a prismatic joint"),
        (lambda: cart_and_bob(forces.pin_friction("pin", "nothing", 0.1, 0.1)), "no joint 'nothing'"),
        (lambda: forces.guide_friction("shoes", "rail", 0.2, settle=0), "settle"),
    ],
)
def test_wrong_friction_is_refused(make: Any, words: str) -> None:
    with pytest.raises(ModelError, match=words):
        make()
