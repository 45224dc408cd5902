"""Second derivatives of CasADi functions against second differences of their values, at states on the constraints and off
them.

At a crank angle of zero Jansen's leg has bodies in a straight line, where a factorisation is not differentiable.
"""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest

import pfaffian as pf
from pfaffian import control
from tests.simulate.test_sensitivity import five_bar
from tests.tolerance import close

BY_DIFFERENCES = 1e-7
"""Error of second differences of order six."""


def jansen() -> tuple[pf.Mechanism, np.ndarray, np.ndarray]:
    m, settings = pf.read("zoo:jansen_leg")[:2]
    q, v = pf.assemble(m, dict(settings.q), settings.v, guess=settings.guess, backend="interpreter")[:2]
    return m, np.ravel(q), np.ravel(v)


def bar() -> tuple[pf.Mechanism, np.ndarray, np.ndarray]:
    """A five-bar with a redundant row."""
    m = five_bar()
    q, v = pf.assemble(m, [1.8, -0.9, 1.2, 0.9], [0.3, 0.1, 0.2, 0.4], backend="interpreter")[:2]
    return m, np.ravel(q), np.ravel(v)


def rolling() -> tuple[pf.Mechanism, np.ndarray, np.ndarray]:
    """A free body on a blade in a wind: q contains a quaternion, and the linear velocity is integrated along other axes."""
    free = pf.joint("free", "free", "world", "body")
    blade = pf.nonholonomic("blade", lambda k: k.velocity("body", (0.1, 0.2, 0.3))[1] - 0.1 * ca.cos(k.t))
    m = pf.mechanism("blade", [pf.body("body", 1.0, inertia=(0.1, 0.2, 0.3))], [free], constraints=[blade])
    random = np.random.default_rng(2)
    return m, pf.random_configuration(m, random), random.normal(size=m.nv)


def pendulum() -> tuple[pf.Mechanism, np.ndarray, np.ndarray]:
    hinge = pf.joint("hinge", "revolute", "world", "bob", axis=(0, 1, 0))
    m = pf.mechanism("pendulum", [pf.body("bob", 2.0, com=(0, 0, -1))], [hinge], actuators=[pf.actuator("motor", "hinge")])
    return m, np.array([0.7]), np.array([0.4])


LAW = control.Control(lambda T, z, w, y: control.Command(-3 * ca.sin(T.q) * z + w, z_dot=T.q * z), z=(0.5,), w_names=("set",))
EULER = pf.Scheme(integrator="euler")
CASES = {
    "rate of a straight leg": (jansen, "rate", {}),
    "dynamics of a straight leg": (jansen, "forward_dynamics", {}),
    "step of a loop": (bar, "step", {"step": 0.01}),
    "semi-implicit step of a loop": (bar, "step", {"step": 0.01, "scheme": EULER}),
    "dynamics of a loop": (bar, "forward_dynamics", {}),
    "step of a body": (rolling, "step", {"step": 0.05}),
    "step under a law": (pendulum, "step", {"step": 0.05, "control": LAW}),
}


@pytest.mark.parametrize("name", CASES)
def test_hessians_equal_second_differences(name):
    make, what, how = CASES[name]
    m, q, v = make()
    f = pf.casadi_function(m, what, backend="casadi", **how)
    known = {"q": q, "v": v, "x": [*q, *v, *(LAW.z if "control" in how else ())], "u": 0.3, "p": m.p_defaults, "t": 0.2}
    at = [np.broadcast_to(known[n], f.size1_in(i)).ravel().astype(float) for i, n in enumerate(f.name_in())]
    x = ca.MX.sym("x", sum(map(len, at)))
    values = f.call(ca.vertsplit(x, np.cumsum([0, *map(len, at)]).tolist()))
    total = sum(ca.dot(ca.DM(np.cos(1.0 + np.arange(y.numel()))), y) for y in values)
    H = ca.hessian(total, x)[0]
    found, value = ca.Function("H", [x], [H]), ca.Function("value", [x], [total])
    start, way = np.concatenate(at), np.sin(2.0 + np.arange(x.numel()))
    bent = [float(value(start + e * way) - 2 * value(start) + value(start - e * way)) / e**2 for e in (8e-3, 4e-3, 2e-3)]
    near, far = (4 * bent[2] - bent[1]) / 3, (4 * bent[1] - bent[0]) / 3
    close(way @ np.array(found(start)) @ way, (16 * near - far) / 15, BY_DIFFERENCES, name, max(1.0, abs(near)))


def test_second_derivatives_agree_in_every_mode():
    """Forward and reverse mode in any order: CasADi takes whichever costs less."""
    m, q, v = bar()
    f, x = pf.casadi_function(m, "step", step=0.01, backend="casadi"), np.concatenate([q, v])
    X, way = ca.MX.sym("x", 8), np.sin(np.arange(8.0))
    weights, y = np.cos(np.arange(8.0)), f(X, [0.2, -0.1], m.p_defaults, 0)
    back, ahead = ca.jtimes(y, X, weights, True), ca.jtimes(y, X, way)
    ways = [ca.jtimes(back, X, way), ca.jtimes(back, X, way, True), ca.jtimes(ahead, X, weights * 0 + way)]
    first, second, third = (np.array(z).ravel() for z in ca.Function("ways", [X], ways)(x))
    twice = ca.gradient(ca.dot(weights, ahead), X)
    close(second, first, 1e-11, "reverse twice")
    close(np.array(ca.Function("twice", [X], [twice])(x)).ravel(), first, 1e-11, "reverse of forward")
    close(weights @ third, way @ first, 1e-11, "forward twice")
