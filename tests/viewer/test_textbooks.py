"""Symbolic equations beside those of textbooks: their difference is zero, and a page shows them."""

from __future__ import annotations

import pytest
import sympy as sp

import pfaffian as pf
from pfaffian.viewer import formulas

MOST = 2500
"""Characters of LaTeX that a page shows."""


def parameters(names: str) -> dict[str, pf.Parameter]:
    return {name: pf.Parameter(name, 1.0) for name in names.split()}


def letters(e) -> dict[str, sp.Symbol]:
    """The symbols of equations by name."""
    return {s.name: s for s in (*e.q, *e.v, *e.u, *e.p)}


def coin() -> pf.Mechanism:
    p = parameters("m r A C")
    frames = [pf.body(n, 0.0) for n in ("lift", "heading", "lean")]
    disk = pf.body("coin", p["m"], inertia=(p["A"], p["C"], p["A"]))
    joints = [
        pf.joint("base", "translation", "world", "lift"),
        pf.joint("psi", "revolute", "lift", "heading"),
        pf.joint("theta", "revolute", "heading", "lean", axis=(1, 0, 0)),
        pf.joint("phi", "revolute", "lean", "coin", axis=(0, 1, 0)),
    ]
    edge = pf.rolling.disk("edge", "coin", p["r"], axis=(0, 1, 0))
    return pf.mechanism("coin", [*frames, disk], joints, constraints=[edge], parameters=list(p.values()))


def test_a_rolling_coin_in_euler_angles():
    """[Goldstein, Classical Mechanics]: a disk of radius r, its plane inclined by theta, heading psi, turned by phi."""
    e = pf.equations(coin())
    s = letters(e)
    psi, theta, r, A, C, m = (s[n] for n in ("psi", "theta", "r", "A", "C", "m"))
    spin = s["phi_dot"] + s["psi_dot"] * sp.sin(theta)
    T = m / 2 * sum(s[f"base.v{x}"] ** 2 for x in "xyz")
    T += A / 2 * (s["theta_dot"] ** 2 + s["psi_dot"] ** 2 * sp.cos(theta) ** 2) + C / 2 * spin**2
    assert sp.simplify(e.T[0, 0] - T) == 0
    rows = sp.Matrix([
        [0, 0, 1, 0, r * sp.sin(theta), 0],
        [sp.cos(psi), sp.sin(psi), 0, -r * sp.sin(theta), 0, -r],
        [-sp.sin(psi), sp.cos(psi), 0, 0, r * sp.cos(theta), 0],
    ])  # fmt: skip
    assert sp.simplify(e.A - rows) == sp.zeros(3, 6)
    assert e.positive == (sp.cos(theta),)
    v_dot = sum((sp.diff(rows, x) * x_dot for x, x_dot in ((psi, s["psi_dot"]), (theta, s["theta_dot"]))), sp.zeros(3, 6))
    assert sp.simplify(e.b + v_dot * sp.Matrix(e.v)) == sp.zeros(3, 1)
    assert len(e.latex()) <= MOST


def test_a_double_pendulum_on_a_cart():
    p = parameters("M m_1 m_2 l_1 l_2")
    bodies = [pf.body("cart", p["M"]), *(pf.body(f"rod {i}", p[f"m_{i}"], com=(0, 0, -p[f"l_{i}"])) for i in (1, 2))]
    joints = [
        pf.joint("x", "prismatic", "world", "cart", axis=(1, 0, 0)),
        pf.joint("a", "revolute", "cart", "rod 1", axis=(0, 1, 0)),
        pf.joint("b", "revolute", "rod 1", "rod 2", axis=(0, 1, 0), placement=(0, 0, -p["l_1"])),
    ]
    e = pf.equations(pf.mechanism("cart", bodies, joints, parameters=list(p.values())))
    s = letters(e)
    M, m1, m2, l1, l2, a, b = (s[n] for n in ("M", "m_1", "m_2", "l_1", "l_2", "a", "b"))
    first = (m1 + m2) * l1 * sp.cos(a) + m2 * l2 * sp.cos(a + b)
    last = m2 * l2 * sp.cos(a + b)
    both, square = m2 * l1 * l2 * sp.cos(b), m2 * l2**2
    expected = sp.Matrix([
        [M + m1 + m2, -first, -last],
        [-first, (m1 + m2) * l1**2 + 2 * both + square, both + square],
        [-last, both + square, square],
    ])  # fmt: skip
    assert sp.simplify(e.M - expected) == sp.zeros(3, 3)
    weight = sp.Rational(981, 100) * sp.Matrix(
        [0, (m1 + m2) * l1 * sp.sin(a) + m2 * l2 * sp.sin(a + b), m2 * l2 * sp.sin(a + b)]
    )
    assert sp.simplify(lagrange(expected, e) + weight - e.c) == sp.zeros(3, 1)
    assert len(e.latex()) <= MOST


def lagrange(M: sp.Matrix, e) -> sp.Matrix:
    """M_dot v - d(v^T M v / 2)/dq, where velocities are the rates of the coordinates."""
    v = sp.Matrix(e.v)
    rate = sum((sp.diff(M, q) * x for q, x in zip(e.q, e.v, strict=True)), sp.zeros(*M.shape))
    return rate * v - sp.Matrix([sp.diff((v.T * M * v)[0, 0] / 2, q) for q in e.q])


def arm(base: str, length: str = "0") -> tuple[list, list, dict[str, pf.Parameter]]:
    """Bodies, joints and parameters of a planar two-link arm on a body."""
    p = parameters("m_1 m_2 l_1 l_2 I_1 I_2")
    bodies = [pf.body(f"link {i}", p[f"m_{i}"], (p[f"l_{i}"] / 2, 0, 0), p[f"I_{i}"]) for i in (1, 2)]
    joints = [
        pf.joint("a", "revolute", base, "link 1"),
        pf.joint("b", "revolute", "link 1", "link 2", placement=(p["l_1"], 0, 0)),
    ]
    return bodies, joints, p


def test_a_scara_arm():
    bodies, joints, p = arm("world")
    p |= parameters("m_3")
    bodies.append(pf.body("spindle", p["m_3"], inertia=0.1))
    joints.append(pf.joint("d", "prismatic", "link 2", "spindle", axis=(0, 0, 1), placement=(p["l_2"], 0, 0)))
    e = pf.equations(pf.mechanism("scara", bodies, joints, parameters=list(p.values())))
    s = letters(e)
    m1, m2, m3, l1, l2, I1, I2, b = (s[n] for n in ("m_1", "m_2", "m_3", "l_1", "l_2", "I_1", "I_2", "b"))
    quarter, tenth = sp.Rational(1, 4), sp.Rational(1, 10)
    own = I2 + tenth + m2 * l2**2 * quarter + m3 * l2**2
    across = (m2 / 2 + m3) * l1 * l2 * sp.cos(b)
    top = I1 + m1 * l1**2 * quarter + (m2 + m3) * l1**2 + own + 2 * across
    expected = sp.Matrix([[top, own + across, 0], [own + across, own, 0], [0, 0, m3]])
    assert sp.simplify(e.M - expected) == sp.zeros(3, 3)
    assert len(e.latex()) <= MOST


def test_a_planar_arm_on_a_free_base_fits_a_page_and_keeps_its_momentum():
    """The rows of linear momentum are those of the total mass; the rest is compared with numbers elsewhere."""
    bodies, joints, p = arm("hull")
    p |= parameters("m_0 l_0 I_0")
    joints[0] = pf.joint("a", "revolute", "hull", "link 1", placement=(p["l_0"], 0, 0))
    hull = pf.body("hull", p["m_0"], inertia=p["I_0"])
    flight = pf.joint("flight", "planar", "world", "hull")
    m = pf.mechanism("free", [hull, *bodies], [flight, *joints], parameters=list(p.values()), gravity=(0, 0, 0))
    e = pf.equations(m)
    s = letters(e)
    total = s["m_0"] + s["m_1"] + s["m_2"]
    assert sp.simplify(e.M[:2, :2] - total * sp.eye(2)) == sp.zeros(2, 2)
    a, b = s["a"], s["b"]
    lever = (
        s["l_0"] * (s["m_1"] + s["m_2"])
        + s["l_1"] * (s["m_1"] / 2 + s["m_2"]) * sp.cos(a)
        + s["m_2"] * s["l_2"] / 2 * sp.cos(a + b)
    )
    assert sp.simplify(e.M[1, 2] - lever) == 0
    latex = e.latex()
    assert len(latex) <= MOST and r"\omega_{z}" in latex and "texttt" not in latex


def test_a_sleigh():
    """[Neimark and Fufaev]: u_dot = a w^2, (I + m a^2) w_dot = -m a u w, on the blade."""
    p = parameters("m J a")
    body, ice = pf.body("sleigh", p["m"], com=(p["a"], 0, 0), inertia=p["J"]), pf.joint("ice", "planar", "world", "sleigh")
    blade = pf.rolling.knife_edge("blade", "sleigh", (1, 0, 0))
    e = pf.equations(pf.mechanism("sleigh", [body], [ice], constraints=[blade], parameters=list(p.values()), gravity=(0, 0, 0)))
    s = letters(e)
    on_blade = {s["ice.vy"]: 0}
    assert sp.Matrix([[0, 1, 0]]) == e.A and sp.simplify(e.M[2, 2] - s["J"] - s["m"] * s["a"] ** 2) == 0
    u, w = s["ice.vx"], s["ice.wz"]
    assert sp.simplify(e.c[0].subs(on_blade) + s["m"] * s["a"] * w**2) == 0
    assert sp.simplify(e.c[2].subs(on_blade) - s["m"] * s["a"] * u * w) == 0
    assert len(e.latex()) <= MOST


def test_a_machine_that_no_page_shows_is_refused_with_the_way_out(monkeypatch):
    monkeypatch.setattr(formulas, "LONGEST_TERM", 300)
    top = pf.mechanism("top", [pf.body("top", 1.0, (0, 0, 1), (1, 1, 2))], [pf.joint("base", "free", "world", "top")])
    with pytest.raises(pf.ModelError, match="describe attitudes by angles"):
        pf.equations(top)
