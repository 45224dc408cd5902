"""Symbolic equations, compared with the numbers of the same machine, and their text and LaTeX."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp

import pfaffian as pf
from pfaffian.errors import ModelError
from pfaffian.viewer import equations as module
from pfaffian.viewer import formulas
from tests.tolerance import ALGEBRA

LETTERS = {x: lambda T, x=x: getattr(T, x) for x in module.LETTERS} | {"K": lambda T: T.kinematics.kinematic_matrix}


def check(m: pf.Mechanism, e, random: np.random.Generator) -> None:
    """Compare every term at two random states, for random values of the parameters."""
    at = pf.compile_terms(m, LETTERS, backend="numpy", lanes=1, squeeze=False)
    every = [*e.q, *e.v, *e.u, *e.p, e.t]
    numbers = {x: sp.lambdify(every, getattr(e, x), "numpy") for x in LETTERS}
    for _ in range(2):
        q, v, u = pf.random_configuration(m, random), random.normal(size=m.nv), random.normal(size=m.nu)
        p, t = m.p_defaults * random.uniform(0.8, 1.2, len(m.p_names)), random.uniform()
        expected = at(q, v, u, t=t, parameters=p)
        for x in LETTERS:
            found = np.reshape(np.array(numbers[x](*q, *v, *u, *p, t), dtype=float), expected[x].shape)
            scale = max(np.abs(expected[x]).max(initial=0), 1.0)
            np.testing.assert_allclose(found, expected[x], rtol=0, atol=100 * ALGEBRA * scale, err_msg=x)


def arm(kind: str, **given) -> pf.Mechanism:
    """A joint of the given kind below a hinge. Masses and lengths are parameters, one with the name of a coordinate."""
    mass, length = pf.Parameter("m_1", 1.5, "kg"), pf.Parameter("turn", 0.7, "m")
    bodies = [pf.body("a", mass, (length / 2, 0, 0), 0.2), pf.body("b", 2 * mass, (0.1, 0, 0), (0.1, 0.2, 0.2))]
    joints = [pf.joint("turn", "revolute", "world", "a", axis=(0, 1, 0), damping=0.3),
              pf.joint("next", kind, "a", "b", placement=(length, 0, 0), **given)]  # fmt: skip
    m = pf.mechanism("arm", bodies, joints, parameters=[mass, length])
    return pf.actuate_all(m)


@pytest.mark.parametrize("kind", ["prismatic", "helical", "universal", "planar"])
def test_terms_agree_with_numbers_for_every_kind_of_joint(kind):
    m = arm(kind, **{"pitch": 0.2} if kind == "helical" else {})
    e = pf.equations(m)
    assert [s.name for s in e.p] == ["m_1", "turn_p"] and e.v[0].name == "turn_dot" and e.q[0].name == "turn"
    check(m, e, np.random.default_rng(len(kind)))


def test_terms_of_a_ball_joint_with_quaternions():
    mass = pf.Parameter("m", 2.0)
    m = pf.mechanism("top", [pf.body("ball", mass, (0, 0, 0.3), 0.4)], [pf.joint("s", "spherical", "world", "ball")],
                     parameters=[mass])  # fmt: skip
    check(m, pf.equations(m), np.random.default_rng(0))


def test_terms_with_constraints_springs_and_time():
    l = pf.Parameter("l", 1.0, "m")
    rods = [pf.body(n, 1.0, (l / 2, 0, 0), 0.1) for n in ("crank", "rod")]
    joints = [pf.joint("theta", "revolute", "world", "crank", axis=(0, -1, 0)),
              pf.joint("phi", "revolute", "crank", "rod", axis=(0, -1, 0), placement=(l, 0, 0))]  # fmt: skip
    spring = pf.spring("s", "world", "rod", point_a=(0, 0, 2), stiffness=3.0, rest=0.5, damping=0.2)
    slide = pf.closure("slide", "point-on-plane", "world", "rod", axis=(0, 0, 1), placement_b=(l, 0, 0))
    moved = pf.holonomic("moved", lambda k: k.joint("theta") * k.t - l * k.joint("phi"))
    m = pf.mechanism("crank", rods, joints, constraints=[slide, moved], forces=[spring], parameters=[l])
    e = pf.equations(m)
    assert e.rows == ("slide.vz", "moved")
    check(m, e, np.random.default_rng(3))


def test_a_double_pendulum_reads_as_in_a_textbook():
    m1, m2, l1, l2, g = (pf.Parameter(n, 1.0) for n in ("m_1", "m_2", "l_1", "l_2", "g"))
    bodies = [pf.body("a", m1, (l1, 0, 0)), pf.body("b", m2, (l2, 0, 0))]
    y = {"kind": "revolute", "axis": (0, -1, 0)}
    joints = [pf.joint("q1", parent="world", child="a", **y), pf.joint("q2", parent="a", child="b", placement=(l1, 0, 0), **y)]
    m = pf.mechanism("double", bodies, joints, gravity=(0, 0, -g), parameters=[m1, m2, l1, l2, g])
    e = pf.equations(m)
    q1, q2 = e.q
    p = dict(zip(m.p_names, e.p, strict=True))
    assert sp.cos(q1 + q2) in e.c[1].atoms(sp.cos) and not e.c[1].has(sp.sin(q1))
    expected = p["m_2"] * p["l_2"] * (p["g"] * sp.cos(q1 + q2) + p["l_1"] * e.v[0] ** 2 * sp.sin(q2))
    assert sp.simplify(e.c[1] - expected) == 0 and e.c[1].count_ops() <= expected.count_ops()
    assert e.M[1, 1] == p["m_2"] * p["l_2"] ** 2 and "M[1, 1] = l_2**2*m_2" in str(e)
    assert r"\dot{q_{1}}" in e.latex() and r"\cos(q_{1} + q_{2})" in e.latex()
    assert e._repr_latex_().startswith("$") and "gather*" not in e._repr_latex_()


def test_names_become_symbols_words_or_escaped_text():
    bad = r"\input{x}$_1<b>"
    m = pf.mechanism("m", [pf.body("a", 1.0, (1, 0, 0)), pf.body("c", 1.0, (1, 0, 0))],
                     [pf.joint(bad, "revolute", "world", "a"), pf.joint("elbow", "revolute", "a", "c")])  # fmt: skip
    e = pf.equations(m)
    words = e.latex()
    assert r"\input" not in words and r"\mathrm{elbow}" in words and r"\textbackslash{}input" in words
    assert bad in str(e)


def test_switching_and_long_expressions_are_refused(monkeypatch):
    jump = pf.forces.potential("jump", lambda k: (k.q[0] > 0) * k.q[0])
    m = arm("revolute").with_(forces=[jump])
    with pytest.raises(ModelError, match="of 'arm': the expression contains a condition"):
        pf.equations(m)
    monkeypatch.setattr(formulas, "MAX_OPERATIONS", 10)
    with pytest.raises(ModelError, match=r"equations: M of 'arm' has \d+ operations, too many to be read \(up to 10\)"):
        pf.equations(arm("revolute"))


def test_to_sympy_with_several_parameters():
    m = arm("prismatic")
    M = pf.screws.to_sympy(pf.symbols(m).M)
    assert {"m_1", "turn"} <= {s.name for s in M.free_symbols}
    named = pf.screws.to_sympy(pf.symbols(m).M, {"m_1": 3})
    assert named == M.subs(sp.Symbol("m_1", real=True), 3)


def test_a_number_is_written_in_one_way_in_all_terms() -> None:
    """A mass of 0.3 kg: a fraction beside a long decimal too, and as text without zeros at its end."""
    ball = pf.joint("x", "prismatic", "beam", "ball", axis=(1, 0, 0), placement=(0, 0, 0.03))
    beam = pf.joint("theta", "revolute", "world", "beam", axis=(0, -1, 0))
    bodies = [pf.body("beam", 2.0, inertia=(0.01, 0.1, 0.1)), pf.body("ball", 0.3, inertia=1e-4)]
    e = pf.equations(pf.mechanism("ball on beam", bodies, [beam, ball]))
    assert "M[1, 1] = 0.3\n" in str(e) and "M[0, 1] = -0.009\n" in str(e)
    assert r"\frac{3 x^{2}}{10} + 0.10037" in e.latex() and r"0.3 x" not in e.latex()


def test_rates_of_coordinates_are_written_where_they_are_no_velocities() -> None:
    """A barge that moves ahead and turns, with a crane on it: its three coordinates have two velocities."""
    float_ = pf.joint("water", "planar", "world", "barge", distribution=["vx", "wz"])
    slew = pf.joint("slew", "revolute", "barge", "boom", placement=(1, 0, 0))
    bodies = [pf.body("barge", 5.0, inertia=2.0), pf.body("boom", 1.0, (0.5, 0, 0), 0.1)]
    e = pf.equations(pf.mechanism("barge", bodies, [float_, slew], gravity=(0, 0, 0)))
    x, y, angle, _ = e.q
    ahead, turn, _ = e.v
    assert sp.Matrix([[sp.cos(angle), 0, 0], [sp.sin(angle), 0, 0], [0, 1, 0], [0, 0, 1]]) == e.K
    words, lines = e.latex(), str(e).splitlines()
    assert {f"{x}_dot = {ahead}*cos({angle})", f"{y}_dot = {ahead}*sin({angle})", f"{angle}_dot = {turn}"} <= set(lines)
    assert r"\dot{y} = v_{x} \sin {\varphi} \\" in words and r"\dot{\varphi} = \omega_{z} \\" in words
    assert str(e).splitlines()[0].endswith(": M v_dot + c = 0") and words.splitlines()[1] == r"M \dot v + c = 0 \\"
    assert "slew_dot = " not in str(e) and words.count(r"\dot{\mathrm{slew}} =") == 0


def test_no_formula_has_a_small_decimal_before_a_sum() -> None:
    """A uniform arm on a carriage that is driven up a wall: half of 9.81 stays one number."""
    m, l = pf.Parameter("m", 1.0, "kg"), pf.Parameter("l", 1.0, "m")
    bodies = [pf.body("carriage", 2.0), pf.body("arm", m, (l / 2, 0, 0), m * l**2 / 12)]
    joints = [
        pf.joint("z", "prismatic", "world", "carriage", axis=(0, 0, 1)),
        pf.joint("a", "revolute", "carriage", "arm", axis=(0, -1, 0)),
        pf.joint("b", "revolute", "arm", "tip", axis=(0, -1, 0), placement=(l, 0, 0)),
    ]
    e = pf.equations(pf.mechanism("wall", [*bodies, pf.body("tip", m, (l / 2, 0, 0))], joints, parameters=[m, l]))
    for words in (str(e), e.latex()):
        assert "0.005" not in words and "981 " not in words and "4.905" in words
    bent, turned = sp.symbols("b a", real=True)
    expected = e.p[0] * e.p[1] * (e.p[1] * e.v[1] ** 2 * sp.sin(bent) + sp.Rational(981, 100) * sp.cos(turned + bent)) / 2
    assert sp.simplify(e.c[2] - expected) == 0
