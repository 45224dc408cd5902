"""Equations linearised at a steady state: a bicycle and a top beside textbooks, others beside `pf.linearise`; refusals."""

from __future__ import annotations

from math import pi

import numpy as np
import pytest
import sympy as sp

import pfaffian as pf
from tests.tolerance import ALGEBRA, SATISFIED
from tests.viewer.test_textbooks import MOST, parameters

TILT = {"sin": 0.309016994374947424, "cos": 0.951056516295153572}
"""Of the steering axis of the benchmark, pi / 10."""

BENCHMARK = {
    "w": 1.02, "c": 0.08, "r_R": 0.3, "m_R": 2, "I_Rxx": 0.0603, "I_Ryy": 0.12, "x_B": 0.3, "z_B": -0.9, "m_B": 85,
    "I_Bxx": 9.2, "I_Byy": 11.0, "I_Bxz": 2.4, "I_Bzz": 2.8, "x_H": 0.9, "z_H": -0.7, "m_H": 4, "I_Hxx": 0.05892,
    "I_Hyy": 0.06, "I_Hxz": -0.00756, "I_Hzz": 0.00708, "r_F": 0.35, "m_F": 3, "I_Fxx": 0.1405, "I_Fyy": 0.28,
}  # fmt: skip
"""The benchmark bicycle [Meijaard, Papadopoulos, Ruina, Schwab 2007, table 1], z down."""


def bicycle(given: dict) -> tuple[pf.Mechanism, tuple]:
    """The Whipple bicycle, and its straight ride at speed v; lean and steer to the right are positive."""
    x, p = BENCHMARK | TILT | given, parameters("v g")

    def tensor(i: str) -> tuple:
        return ((x[f"I_{i}xx"], 0, -x[f"I_{i}xz"]), (0, x[f"I_{i}yy"], 0), (-x[f"I_{i}xz"], 0, x[f"I_{i}zz"]))

    def wheel(i: str) -> pf.Body:
        return pf.body(f"wheel {i}", x[f"m_{i}"], inertia=(x[f"I_{i}xx"], x[f"I_{i}yy"], x[f"I_{i}xx"]))

    bodies = [
        *(pf.body(n, 0.0) for n in ("lift", "course", "roll")),
        pf.body("frame", x["m_B"], (x["x_B"], 0, -x["z_B"] - x["r_R"]), tensor("B")),
        pf.body("fork", x["m_H"], (x["x_H"] - x["w"] - x["c"], 0, -x["z_H"]), tensor("H")),
        wheel("R"), wheel("F"),
    ]  # fmt: skip
    joints = [
        pf.joint("base", "translation", "world", "lift", placement=(0, 0, x["r_R"])),
        pf.joint("heading", "revolute", "lift", "course"),
        pf.joint("lean", "revolute", "course", "roll", axis=(1, 0, 0)),
        pf.joint("pitch", "revolute", "roll", "frame", axis=(0, 1, 0)),
        pf.joint(
            "steer", "revolute", "frame", "fork", axis=(x["sin"], 0, -x["cos"]), placement=(x["w"] + x["c"], 0, -x["r_R"])
        ),
        pf.joint("rear", "revolute", "frame", "wheel R", axis=(0, 1, 0)),
        pf.joint("front", "revolute", "fork", "wheel F", axis=(0, 1, 0), placement=(-x["c"], 0, x["r_F"])),
    ]
    edges = [pf.rolling.disk(f"edge {i}", f"wheel {i}", x[f"r_{i}"], axis=(0, 1, 0)) for i in "RF"]
    used = [n for n in (*p.values(), *x.values()) if isinstance(n, pf.Parameter)]
    m = pf.mechanism("bicycle", bodies, joints, constraints=edges, gravity=(0, 0, -p["g"]), parameters=used)
    return m, ({}, {"base.vx": p["v"], "rear": p["v"] / x["r_R"], "front": p["v"] / x["r_F"]})


def lean_and_steer(e) -> tuple[sp.Matrix, ...]:
    """M, C1, K0, K2 of lean and steer in M q_ddot + v C1 q_dot + (g K0 + v^2 K2) q = 0."""
    s = {x.name: x for x in e.p}
    assert [x.name for x in e.y[:2]] == ["lean", "steer"] and e.D.is_zero_matrix and sp.eye(3) == e.E
    for x in (e.M, e.C, e.K):  # the speed is apart
        assert x[:2, 2].is_zero_matrix and x[2, :2].is_zero_matrix
    M, C, K = (x[:2, :2] for x in (e.M, e.C, e.K))
    parts = M, sp.diff(C, s["v"]), sp.diff(K, s["g"]), sp.diff(K, s["v"], 2) / 2
    whole = s["v"] * parts[1] - C, s["g"] * parts[2] + s["v"] ** 2 * parts[3] - K
    assert all(x.applyfunc(sp.simplify).is_zero_matrix for x in whole)
    return parts


def test_the_benchmark_bicycle():
    """[Meijaard, Papadopoulos, Ruina, Schwab 2007, (5.3)-(5.6)] to the digits of the paper."""
    m, straight = bicycle({})
    e = pf.equations(m, about=straight)
    expected = (
        [[80.81722, 2.31941332208709], [2.31941332208709, 0.29784188199686]],
        [[0, 33.86641391492494], [-0.85035641456978, 1.68540397397560]],
        [[-80.95, -2.59951685249872], [-2.59951685249872, -0.80329488458618]],
        [[0, 76.59734589573222], [0, 2.65431523794604]],
    )
    for found, numbers in zip(lean_and_steer(e), expected, strict=True):
        np.testing.assert_allclose(np.array(found, dtype=float), numbers, rtol=0, atol=100 * ALGEBRA * 100)
    assert len(e.latex()) <= MOST and r"\dot y = w" in e.latex()


def test_a_bicycle_in_symbols():
    """[Meijaard et al. 2007, appendix A] with a vertical steering axis and a fork of no inertia, in nine symbols."""
    none = dict.fromkeys(("m_H", "I_Hxx", "I_Hyy", "I_Hzz", "I_Hxz", "sin"), 0.0) | {"cos": 1.0}
    names = ["w", "c", "x_B", "z_B", "m_B", "m_F", "I_Fyy"]
    given = {n: pf.Parameter(n, BENCHMARK[n]) for n in names}
    m, straight = bicycle(none | given)
    e = pf.equations(m, about=straight)
    s = {x.name: x for x in e.p}
    number = {n: sp.Rational(str(x)) for n, x in BENCHMARK.items()}
    w, c, x_B, z_B, m_B, m_F, I_F = (s[n] for n in names)
    r_R, m_R, I_R, r_F, I_Bxz = (number[n] for n in ("r_R", "m_R", "I_Ryy", "r_F", "I_Bxz"))
    mT, mx, mz = m_R + m_B + m_F, x_B * m_B + w * m_F, z_B * m_B - r_R * m_R - r_F * m_F
    xx = number["I_Rxx"] + number["I_Bxx"] + number["I_Fxx"] + m_R * r_R**2 + m_B * z_B**2 + m_F * r_F**2
    xz = I_Bxz - m_B * x_B * z_B + m_F * w * r_F
    zz = number["I_Rxx"] + number["I_Bzz"] + number["I_Fxx"] + m_B * x_B**2 + m_F * w**2
    A_z, mu, spin_F, spin = number["I_Fxx"], c / w, I_F / r_F, I_F / r_F + I_R / r_R
    arm = -c  # of the front wheel from the steering axis
    Axz, Azz = m_F * arm * r_F, A_z + m_F * arm**2
    S = m_F * arm + mu * mx
    first = (
        [[xx, Axz + mu * xz], [Axz + mu * xz, Azz + 2 * mu * (A_z + m_F * arm * w) + mu**2 * zz]],
        [[0, mu * spin + spin_F + xz / w - mu * mz], [-mu * spin - spin_F, (A_z + m_F * arm * w) / w + mu * (S + zz / w)]],
        [[mz, -S], [-S, 0]],
        [[0, (spin - mz) / w], [0, S / w]],
    )
    for found, expected in zip(lean_and_steer(e), first, strict=True):
        assert (found - sp.Matrix(expected)).applyfunc(sp.simplify).is_zero_matrix
    whole = sp.simplify(e.M[2, 2] - (I_F + I_R * r_F**2 / r_R**2 + mT * r_F**2))
    assert whole == 0 and len(e.latex()) <= MOST


def top(spin: pf.Parameter) -> tuple[pf.Mechanism, tuple]:
    """A top on a ball joint, upright, spinning about its axis."""
    p = parameters("m l A C") | {spin.name: spin}
    body = pf.body("top", p["m"], (0, 0, p["l"]), (p["A"], p["A"], p["C"]))
    m = pf.mechanism("top", [body], [pf.joint("tip", "spherical", "world", "top")], parameters=list(p.values()))
    return m, ({}, {"tip.wz": spin})


def test_a_sleeping_top_in_quaternions():
    """[Goldstein, Classical Mechanics]: in space (A + m l^2) s^2 - i C spin s - m g l = 0; in the body s is less by i spin."""
    m, upright = top(pf.Parameter("spin", 10.0))
    e = pf.equations(m, about=upright)
    k = {x.name: x for x in e.p}
    x, y = (sp.Symbol(n) for n in ("x", "y"))
    n = len(e.y) + len(e.w)
    rates = sp.Matrix.vstack(e.D.row_join(e.E), (-e.M.inv() * e.K).row_join(-e.M.inv() * e.C))
    found = sp.factor(rates.charpoly(x).as_expr())
    around, weight = k["A"] + k["m"] * k["l"] ** 2, sp.Rational(981, 100) * k["m"] * k["l"]
    s = x + sp.I * k["spin"]
    one = around * s**2 - sp.I * k["C"] * k["spin"] * s - weight
    both = sp.expand(one * sp.conjugate(one.subs(x, sp.Symbol("x", real=True))).subs(sp.Symbol("x", real=True), x))
    expected = sp.expand(both / around**2) * x ** (n - 4)
    assert sp.simplify(sp.expand(found) - expected) == 0 and y not in found.free_symbols


def test_an_equilibrium_and_quaternions_of_any_length_are_states():
    m, _ = top(pf.Parameter("spin", 10.0))
    first, second = (pf.equations(m, about=([0, 0, 0, w], None)) for w in (1.0, 2.0))
    assert first.K == second.K != sp.zeros(3, 3)
    with pytest.raises(pf.ModelError, match="quaternion"):
        pf.equations(m, about=([0, 0, 0, 0], None))
    bar = four_bar()
    found, neutral = (pf.equations(bar, about=x).K[0, 0] for x in (pf.equilibrium(bar), ({}, {})))
    np.testing.assert_allclose(float(found), float(neutral), rtol=SATISFIED)


def eigenvalues(e) -> np.ndarray:
    """Of the linear equations with parameters at 1, sorted."""
    one = dict.fromkeys(e.p, 1)
    M, C, K, D, E = (np.array(x.subs(one), dtype=float) for x in (e.M, e.C, e.K, e.D, e.E))
    A = np.block([[D, E], [-np.linalg.solve(M, K), -np.linalg.solve(M, C)]])
    return np.sort_complex(np.linalg.eigvals(A))


def four_bar() -> pf.Mechanism:
    """A four-bar of equal rods hanging as a rectangle, with a spring, a damper and a motor."""
    bodies = [pf.body(n, 1.0, (0, 0, -0.5), 0.1) for n in ("a", "c")] + [pf.body("b", 1.0, (0.75, 0, 0), 0.2)]
    y = {"kind": "revolute", "axis": (0, 1, 0)}
    joints = [
        pf.joint("A", parent="world", child="a", stiffness=3.0, damping=0.4, **y),
        pf.joint("B", parent="a", child="b", placement=(0, 0, -1), **y),
        pf.joint("C", parent="world", child="c", placement=(1.5, 0, 0), **y),
    ]
    pin = pf.closure("pin", "spherical", "b", "c", placement_a=(1.5, 0, 0), placement_b=(0, 0, -1))
    return pf.mechanism("four-bar", bodies, joints, constraints=[pin], actuators=[pf.actuator("motor", "C")])


def test_a_loop_beside_numbers():
    m = four_bar()
    e = pf.equations(m, about=(m.neutral(), None))
    near = pf.linearise(m)
    np.testing.assert_allclose(eigenvalues(e), np.sort_complex(near.eigenvalues), rtol=0, atol=1000 * ALGEBRA)
    (w,) = e.w
    speed = near.dv[m.v_names.index(w.name.removesuffix("_dot"))]
    np.testing.assert_allclose(float(e.B[0, 0] / e.M[0, 0]), (speed @ near.B).item(), rtol=1000 * ALGEBRA)


def test_an_arm_held_by_its_motor_needs_the_input():
    rod, p = pf.body("rod", 2.0, (1, 0, 0), 0.1), parameters("load")
    hinge = pf.joint("lift", "revolute", "world", "rod", axis=(0, -1, 0))
    tip = pf.forces.potential("load", lambda k: p["load"] * k.position("rod", (2, 0, 0))[2])
    m = pf.actuate_all(pf.mechanism("arm", [rod], [hinge], forces=[tip], parameters=list(p.values())))
    up = {"lift": pi / 6}
    torque = (2 * 9.81 + 2 * p["load"]) * np.sqrt(3) / 2
    e = pf.equations(m, about=(up, {}, [torque]))
    (load,) = e.p
    assert sp.simplify(e.K[0, 0] + sp.Rational(981, 100) + load) == 0 and sp.Matrix([[1]]) == e.B
    with pytest.raises(pf.ModelError, match=r"no equilibrium and no steady motion: 'lift' accelerates"):
        pf.equations(m, about=(up, {}))
    with pytest.raises(
        pf.ModelError, match="is steady for the defaults of the parameters alone; with others 'lift' accelerates"
    ):
        pf.equations(m, about=(up, {}, [(2 * 9.81 + 2) * np.sqrt(3) / 2]))


def test_states_that_are_not_steady_are_refused():
    swing = pf.mechanism("swing", [pf.body("bob", 1.0, (0, 0, -1))],
                         [pf.joint("a", "revolute", "world", "bob", axis=(0, 1, 0))])  # fmt: skip
    with pytest.raises(pf.ModelError, match="no steady motion: 'a' accelerates"):
        pf.equations(swing, about=({}, {"a": 1.0}))  # at its lowest point nothing accelerates, but only for this instant
    with pytest.raises(pf.ModelError, match=r"about: q: there is no 'b'; .*there are a"):
        pf.equations(swing, about=({"b": 1.0}, {}))
    with pytest.raises(pf.ModelError, match=r"about: a state \(q, v\)"):
        pf.equations(swing, about=3.0)
    with pytest.raises(pf.ModelError, match=r"off the constraint row 'pin\.v[xz]'"):
        pf.equations(four_bar(), about=({"A": 0.2}, {}))
    with pytest.raises(pf.ModelError, match="'b' is no parameter of 'swing'"):
        pf.equations(swing, about=({"a": pf.Parameter("b", 1.0)}, {}))
    with pytest.raises(pf.ModelError, match="leave no motion"):
        pf.equations(swing.with_(constraints=[pf.holonomic("lock", lambda k: k.q[0])]), about=({}, {}))
    shaken = swing.with_(forces=[pf.forces.potential("shake", lambda k: k.t * k.q[0])])
    with pytest.raises(pf.ModelError, match="contain the time"):
        pf.equations(shaken, about=({}, {}))
