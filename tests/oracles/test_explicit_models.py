"""The general algorithm against machines with printed equations. [konz25 4.7.4, 4.7.6, 4.8.1]"""

from __future__ import annotations

import numpy as np
import pytest

import pfaffian as pf
from tests.tolerance import DERIVATIVE, close

STILL = {"gravity": (0, 0, 0)}


def planar():
    """Planar body of (4.89) with the mass centre at (s_x, s_y) and Theta about the frame."""
    m, s, about = 1.7, np.array([0.3, -0.2]), 0.4
    moment = about + m * s @ s
    machine = pf.mechanism(
        "planar", [pf.body("b", m, com=(*s, 0), inertia=about)], [pf.joint("j", "planar", "world", "b")], **STILL
    )

    def known(q, v):
        x, y, w = v
        M = [[m, 0, -m * s[1]], [0, m, m * s[0]], [-m * s[1], m * s[0], moment]]
        return M, [-m * (y + s[0] * w) * w, m * (x - s[1] * w) * w, m * (s[0] * x + s[1] * y) * w]

    return machine, known


def scara():
    """Arm of (4.102) with a(theta_2) = m2 l1 (s_x cos theta_2 - s_y sin theta_2)."""
    l, m2, s = 0.4, 0.7, np.array([0.12, 0.05])
    about = (0.02, 0.008)
    bodies = [pf.body("a", 1.2, com=(0.18, 0, 0), inertia=about[0]), pf.body("b", m2, com=(*s, 0), inertia=about[1])]
    joints = [pf.joint("p", "revolute", "world", "a"), pf.joint("q", "revolute", "a", "b", placement=(l, 0, 0))]
    T1, T2 = about[0] + 1.2 * 0.18**2, about[1] + m2 * s @ s

    def known(q, v):
        a = m2 * l * (s[0] * np.cos(q[1]) - s[1] * np.sin(q[1]))
        slope = -m2 * l * (s[0] * np.sin(q[1]) + s[1] * np.cos(q[1]))
        M = [[T1 + T2 + m2 * l**2 + 2 * a, T2 + a], [T2 + a, T2]]
        return M, [slope * (2 * v[0] * v[1] + v[1] ** 2), -slope * v[0] ** 2]

    return pf.mechanism("scara", bodies, joints, **STILL), known


def two_masses():
    """Two masses on a spring: diag(m1, m2), and the spring's force."""
    k, m = 5.0, (1.5, 0.8)
    joints = [pf.joint(n, "prismatic", "world", n, axis=(1, 0, 0)) for n in "ab"]
    spring = pf.spring("k", "a", "b", stiffness=k)
    machine = pf.mechanism("two", [pf.body(n, x) for n, x in zip("ab", m, strict=True)], joints, forces=[spring], **STILL)
    return machine, lambda q, v: (np.diag(m), k * np.array([[1, -1], [-1, 1]]) @ q)


@pytest.mark.parametrize("make", [planar, scara, two_masses])
def test_m_and_c_are_those_printed(make):
    machine, known = make()
    random = np.random.default_rng(89)
    f = pf.compile_terms(machine, {"M": lambda T: T.M, "c": lambda T: T.c - T.f}, backend="numpy", lanes=1)
    for _ in range(5):
        q, v = random.normal(size=machine.nq), random.normal(size=machine.nv)
        M, c = known(q, v)
        found = f(q, v)
        close(found["M"], M, DERIVATIVE, "M")
        close(found["c"], c, DERIVATIVE, "c")
