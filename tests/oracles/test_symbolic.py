"""Expressions in SymPy: the same numbers as CasADi's, and formulas as a textbook has them. [chhabra14 ch. 2]"""

from __future__ import annotations

import sys
from functools import cache

import casadi as ca
import numpy as np
import pytest
import sympy as sp

import pfaffian as pf
from pfaffian.terms.symbolic import NEAR, exact, tidy
from tests.tolerance import ALGEBRA, close

X = ca.SX.sym("x", 3)
SMOOTH = ca.vertcat(
    ca.sin(X[0]) * ca.cos(X[1]) / (2 + X[2] ** 2), ca.exp(X[0]) - ca.sqrt(3 + X[1]), -ca.atan2(X[0], 2 + X[1]),
    ca.tan(X[0]) + ca.atan(X[1]) + ca.asin(X[2] / 4) + ca.acos(X[0] / 4), ca.log(3 + X[0]) ** 3, ca.sinh(X[0]) * ca.tanh(X[1]),
    (2 + X[2]) ** X[0] + 2 * X[0] + ca.cosh(X[2]) + X[1] / 3 + 0.7, 1 / (3 + X[1]), (2 + X[2]) ** 2.5,
)  # fmt: skip


def test_any_smooth_expression():
    found = pf.screws.to_sympy(ca.horzcat(SMOOTH, X[0] * SMOOTH))
    assert found.shape == (9, 2) and {s.name for s in found.free_symbols} == {"x_0", "x_1", "x_2"}
    f = ca.Function("f", [X], [ca.horzcat(SMOOTH, X[0] * SMOOTH)])
    for at in np.random.default_rng(1).uniform(-1, 1, (5, 3)):
        values = {s: at[int(s.name[-1])] for s in found.free_symbols}
        close(np.array(found.evalf(subs=values), dtype=float), np.array(f(at)), ALGEBRA, "value", 1)


def test_symbols_of_ones_own():
    l, a = sp.symbols("l alpha")
    assert pf.screws.to_sympy(X[0] * ca.cos(X[1]), {"x_0": l, "x_1": a})[0] == l * sp.cos(a)
    assert pf.screws.to_sympy(ca.DM([[1, 0], [0.5, 2]])) == sp.Matrix([[1, 0], [sp.Rational(1, 2), 2]])
    assert pf.screws.to_sympy(ca.if_else(ca.SX(1) < 2, X[0], X[1]))[0].name == "x_0"


def test_choices_between_numbers_are_made():
    """All of them as CasADi makes them; what rounds has no formula even so."""
    x, y = ca.SX.sym("x"), ca.SX.sym("y")
    choices = [x < y, x <= y, x == y, x != y, ca.logic_and(x < 1, y < 1), ca.logic_or(x < 1, y < 1), ca.logic_not(x < y)]
    chosen = ca.vertcat(*[ca.if_else(c, 2 + x, 3 + y) for c in choices])
    f = ca.Function("f", [x, y], [chosen])
    for a, b in ((0, 0), (0, 2), (2, 0), (2, 2), (0.5, 1)):
        found = pf.screws.to_sympy(chosen, {"x": a, "y": sp.Rational(b)})
        close(np.array(found, dtype=float), np.array(f(a, b)), ALGEBRA, f"x = {a}, y = {b}")
    with pytest.raises(pf.ModelError, match="contains a condition or rounding"):
        pf.screws.to_sympy(ca.floor(x), {"x": 1.5})
    with pytest.raises(pf.ModelError, match="symbol 'x': a SymPy expression or a number is needed, got 'x \\+ 1'"):
        pf.screws.to_sympy(x, {"x": "x + 1"})


@pytest.mark.parametrize(("x", "wanted"), [
    (0.0, 0), (3.0, 3), (-0.333, sp.Rational(-333, 1000)), (1 / 3, sp.Rational(1, 3)), (0.1 + 0.2, sp.Rational(3, 10)),
    (np.sqrt(0.5), sp.sqrt(2) / 2), (-np.sqrt(3) / 2, -sp.sqrt(3) / 2), (np.pi / 2, sp.pi / 2), (-np.pi / 12, -sp.pi / 12),
    (0.089159, sp.Rational(89159, 1000000)), (1e-17, sp.Rational(1, 10**17)),
])  # fmt: skip
def test_numbers_as_they_were_meant(x, wanted):
    assert exact(x) == wanted


def test_other_numbers_stay():
    assert exact(np.e).is_Float and float(exact(np.e)) == np.e
    assert exact(4.9e-12, near=1e-9) == 0 and exact(-1 + 4.9e-12, near=1e-9) == -1 and exact(4.9e-12) != 0
    assert exact(0.5 + 1e-8, near=1e-9) != sp.Rational(1, 2)


def test_what_has_no_formula():
    x = ca.SX.sym("x")
    for expression, said in (
        (ca.if_else(x < 1, x, 2 * x), "contains a condition or rounding"),
        (ca.floor(x), "contains a condition or rounding"),
        (ca.if_else(x, 1, 2), "contains a condition or rounding"),
        (x + ca.SX.sym("x"), "two symbols are called 'x'"),
        (ca.MX.sym("x"), "type casadi.SX is needed"),
        (x * np.inf, "inf is not a finite number"),
    ):
        with pytest.raises(pf.ModelError, match=said):
            pf.screws.to_sympy(expression)


def test_without_sympy(monkeypatch):
    monkeypatch.setitem(sys.modules, "sympy", None)
    for ask in (
        lambda: pf.screws.to_sympy(X),
        lambda: pf.screws.symbolic_kinematics(planar()),
        lambda: pf.screws.kinematics_latex(planar()),
    ):
        with pytest.raises(pf.ModelError, match="sympy: run `pip install sympy`"):
            ask()


def test_sums_of_angles():
    a, b, c = sp.symbols("a b c", real=True)
    product = sp.expand_trig(sp.cos(a + b + c))
    assert tidy(product) == sp.cos(a + b + c)
    assert tidy(sp.sin(a) ** 2 * c + sp.cos(a) ** 2 * c) == c


# -- chains -----------------------------------------------------------------------------------------------------------


@cache
def planar() -> pf.Mechanism:
    """Two links in the x-y plane, with a hand."""
    l = [pf.Parameter(f"l{i}", 1.0 / i, "m") for i in (1, 2)]
    bodies = [pf.body(n, 1.0, inertia=0.1) for n in ("arm", "forearm", "hand")]
    joints = [
        pf.joint("shoulder", "revolute", "world", "arm"),
        pf.joint("elbow", "revolute", "arm", "forearm", placement=(l[0], 0, 0)),
        pf.joint("palm", "fixed", "forearm", "hand", placement=(l[1], 0, 0)),
    ]
    return pf.mechanism("planar", bodies, joints, parameters=l)


def test_the_textbook_arm():
    k = pf.screws.symbolic_kinematics(planar())
    (s1, s2), (l1, l2) = k.s, k.p
    c1, c12, d1, d12 = sp.cos(s1), sp.cos(s1 + s2), sp.sin(s1), sp.sin(s1 + s2)
    p = sp.Matrix([l1 * c1 + l2 * c12, l1 * d1 + l2 * d12, 0])
    R = sp.Matrix([[c12, -d12, 0], [d12, c12, 0], [0, 0, 1]])
    assert k.pose("hand") == R.row_join(p).col_join(sp.Matrix([[0, 0, 0, 1]]))
    assert k.jacobian("hand") == sp.Matrix([[0, l1 * d1], [0, -l1 * c1], [0, 0], [0, 0], [0, 0], [1, 1]])
    assert k.twists("elbow") == sp.Matrix([0, -l1, 0, 0, 0, 1])
    assert k.home("hand")[:3, 3] == sp.Matrix([l1 + l2, 0, 0]) and k.graph.extremities == ("hand",)
    assert k.exponential(1)[:3, 3] == sp.Matrix([l1 - l1 * sp.cos(s2), -l1 * sp.sin(s2), 0])
    body = k.jacobian("hand", frame="hand")
    assert body == sp.Matrix([[l1 * sp.sin(s2), 0], [l1 * sp.cos(s2) + l2, l2], [0, 0], [0, 0], [0, 0], [1, 1]])
    assert k.jacobian("hand", relative_to="arm")[:, 0] == sp.zeros(6, 1)


def _chain(*kinds: str, **options) -> pf.Mechanism:
    at = [pf.pose((0.1, -0.2, 0.3), rpy=(0, np.pi / 2, 0)), pf.pose((0.4, 0, 0), rpy=(0.3, 0, np.pi / 4))]
    bodies = [pf.body(f"b{i}", 1.0, inertia=0.1) for i in range(len(kinds))]
    joints = [
        pf.joint(f"j{i}", kind, f"b{i - 1}" if i else "world", f"b{i}", placement=at[i % 2], **options.get(kind, {}))
        for i, kind in enumerate(kinds)
    ]
    return pf.mechanism("chain", bodies, joints)


CHAINS = {
    "slides and turns": _chain("prismatic", "revolute", "cylindrical", "helical", helical={"pitch": 0.2}),
    "a rover": _chain("planar", "revolute", planar={"distribution": ["vx", "wz"]}),
    "a universal joint that follows": _chain("universal", "revolute"),
    "a ball": _chain("spherical"),
    "a free body": _chain("free"),
    "a press": _chain("planar-helical", "planar-translation", **{"planar-helical": {"pitch": -0.3}}),
    "a gripper": pf.mechanism(
        "gripper",
        [pf.body(n, 1.0, inertia=0.1) for n in ("a", "b", "c")],
        [
            pf.joint("one", "revolute", "world", "a", axis=(1, 0, 0)),
            pf.joint("two", "prismatic", "a", "b", placement=(0, 0.1, 0), mimic=pf.mimic({"one": -0.5}, 0.1)),
            pf.joint("three", "schoenflies", "a", "c", placement=(0, 0.1, 0.2)),
        ],
    ),
}


@pytest.mark.parametrize("name", CHAINS)
def test_the_numbers_of_the_expressions(name):
    m = CHAINS[name]
    k, E = pf.screws.symbolic_kinematics(m), pf.screws.exponentials(m)
    s = np.random.default_rng(2).uniform(-1, 1, len(k.s))
    at = dict(zip(k.s, s, strict=True))
    at |= {angle: float(length.subs(at)) for angle, length in k.norms.items()}

    def compare(symbolic: sp.Matrix, expression: ca.SX, what: str) -> None:
        value = np.array(ca.Function("x", [E.s], [ca.densify(ca.SX(expression))])(s))
        close(np.array(symbolic.evalf(subs=at), dtype=float), value, 8 * NEAR, what, 1)

    assert len(k.s) == len(E.s_names) and len(set(k.s)) == len(k.s) and len(set(k.labels)) == len(k.labels)
    compare(k.Sigma, E.Sigma, "Sigma")
    for i, gamma in enumerate(E.exponentials):
        compare(k.exponential(i)[:3, :], ca.horzcat(gamma.R, gamma.p), f"factor {i}")
        compare(k.tau(i), E.factors[i].tau, f"twists {i}")
    for b in (m.bodies[-1].name, m.bodies[0].name):
        X = E.pose(b)
        compare(k.pose(b)[:3, :], ca.horzcat(X.R, X.p), f"pose of {b}")
        compare(k.home(b)[:3, :], ca.horzcat(E.home(b).R, E.home(b).p), f"home of {b}")
        compare(k.jacobian(b), E.jacobian(b), f"Jacobian of {b}")
        compare(k.modified_jacobian(b), E.modified_jacobian(b), f"modified Jacobian of {b}")
    if len(m.bodies) > 1:
        last, first = m.bodies[-1].name, m.bodies[0].name
        compare(k.jacobian(last, relative_to=first), E.jacobian(last, relative_to=first), "relative Jacobian")
        compare(k.jacobian(last, frame=first), E.jacobian(last, frame=first), "Jacobian in a frame")


def test_a_closed_chain_is_refused():
    loop = pf.coincide("shut", "hand", (0, 0, 0), "world", (1, 0, 0))
    for ask in (pf.screws.symbolic_kinematics, pf.screws.kinematics_latex):
        with pytest.raises(pf.ModelError, match="closure 'shut' from 'hand' to 'world' closes the chain"):
            ask(planar().with_(constraints=[loop]))
