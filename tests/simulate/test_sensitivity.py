"""Derivatives of steps and rollouts, against differences of the same steps, against each other, and through JAX and CasADi."""

from __future__ import annotations

import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import casadi as ca
import numpy as np
import pytest

import pfaffian as pf
from pfaffian import control
from pfaffian.differentiation.differentiable import pair_of
from pfaffian.errors import ModelError, RunError
from pfaffian.kernel.build.toolchain import find_compiler
from tests.tolerance import close

CALLS = {"backend": "interpreter"}
"""Settings with which nothing is compiled."""

EXPRESSION = {"backend": "casadi"}

H = 2e-3
BY_DIFFERENCES = 1e-8
"""Error of differences of order four of a step of 2 ms; what the fixed factors neglect is smaller."""

SAME = 1e-12
"""Tolerance for the same sums in another order."""


def five_bar() -> pf.Mechanism:
    """A closed loop with two motors, with a link's length as a parameter."""
    length = pf.Parameter("length", 0.5, "m")
    bodies = [pf.body(n, 1.0, com=(0.25, 0, 0), inertia=0.05) for n in "abcd"]
    hinge = {"kind": "revolute", "axis": (0, -1, 0)}
    joints = [
        pf.joint("left", parent="world", child="a", damping=0.1, **hinge),
        pf.joint("left elbow", parent="a", child="b", placement=(0.5, 0, 0), **hinge),
        pf.joint("right", parent="world", child="c", placement=(0.4, 0, 0), **hinge),
        pf.joint("right elbow", parent="c", child="d", placement=(0.5, 0, 0), **hinge),
    ]
    tip = pf.closure("tip", "spherical", "b", "d", placement_a=(length, 0, 0), placement_b=(0.5, 0, 0))  # one row is redundant
    motors = [pf.actuator(n, n) for n in ("left", "right")]
    return pf.mechanism("five-bar", bodies, joints, constraints=[tip], actuators=motors, parameters=[length])


@pytest.fixture(scope="module")
def bar() -> tuple[pf.Mechanism, np.ndarray, np.ndarray]:
    m = five_bar()
    q, v = pf.assemble(m, [1.8, -0.9, 1.2, 0.9], [0.3, 0.1, 0.2, 0.4])[:2]
    return m, np.ravel(q), np.ravel(v)


@pytest.fixture(scope="module")
def motion(bar):
    m, q, v = bar
    u = np.random.default_rng(0).normal(size=(60, 2))
    return pf.calculus.rollout(m, q, v, u, steps=60, step=H, **CALLS), u


def difference(f, size: float = 1e-3) -> np.ndarray:
    """Derivative of f at 0, of order four."""
    near, far = ((f(e) - f(-e)) / (2 * e) for e in (size / 2, size))
    return (4 * near - far) / 3


def by_differences(f, at: np.ndarray) -> np.ndarray:
    """Derivatives of f(x) at x = at, column by column."""
    return np.array([difference(lambda e, way=way: f(at + e * way)) for way in np.eye(len(at))]).T


def test_a_step_equals_differences(bar):
    m, q, v = bar
    u, p = np.array([0.4, -0.2]), np.array([0.5])
    s = pf.stepper(m, step=H, **CALLS)

    def end(all_of_it: np.ndarray) -> np.ndarray:
        q, v, u, p = np.split(all_of_it, [4, 8, 10])
        s.reset(q, v, parameters=p, correct_start=False)
        s.step(u)
        return np.concatenate([s.q, s.v])

    d = pf.calculus.step_derivatives(m, q, v, u, step=H, parameters=p, **CALLS)
    at = np.concatenate([q, v, u, p])
    assert np.array_equal(np.concatenate([d.q, d.v]), end(at))  # the step of run, to the bit
    close(np.hstack([d.A, d.B, d.P]), by_differences(end, at), BY_DIFFERENCES, "by q, v, u and p")
    assert np.abs(d.P).max() > 0.1  # the end is projected onto the longer link


@pytest.mark.parametrize(
    ("step", "scheme"), [(0.05, None), *[(0.01, pf.Scheme(integrator=name)) for name in ("tr-bdf2", "dopri5", "dop853")]]
)
def test_turning_bodies_move_along_their_velocities(step, scheme):
    """A free body whose q contains a unit quaternion: displacements are along v at both ends."""
    m = pf.mechanism(
        "top", [pf.body("top", 1.0, com=(0, 0, 0.1), inertia=(0.1, 0.2, 0.3))], [pf.joint("free", "free", "world", "top")]
    )
    random = np.random.default_rng(1)
    q, v = pf.random_configuration(m, random), random.normal(size=6)
    K = pf.compile_terms(m, {"K": lambda T: T.kinematics.kinematic_matrix}, backend="numpy")
    d = pf.calculus.step_derivatives(m, q, v, step=step, scheme=scheme, **CALLS)
    s = pf.stepper(m, step=step, scheme=scheme, **CALLS)

    def end(x: np.ndarray) -> np.ndarray:
        s.reset(q + K(q)["K"] @ x[:6], v + x[6:])
        s.step()
        return np.concatenate([np.linalg.pinv(K(d.q)["K"]) @ s.q, s.v])

    close(d.A, by_differences(end, np.zeros(12)), 1e-9, "A")


def test_a_law_in_the_loop_and_its_integrals():
    slide = pf.joint("x", "prismatic", "world", "cart", axis=(1, 0, 0))
    m = pf.mechanism("cart", [pf.body("cart", 2.0)], [slide], actuators=[pf.actuator("push", "x")])
    law = control.Control(lambda T, z, w, y: control.Command(-3 * T.q - 2 * z + w, z_dot=T.q), z=(0.5,), w_names=("set",))
    d = pf.calculus.step_derivatives(m, [0.2], [0.1], [0.3], step=0.01, control=law, z=[0.7], **CALLS)
    A = np.array([[0, 1, 0], [-1.5, 0, -1], [1, 0, 0]])  # x_dot of [x; v; z]
    h = 0.01
    exact = np.eye(3) + h * A + h**2 / 2 * A @ A + h**3 / 6 * A @ A @ A + h**4 / 24 * A @ A @ A @ A
    close(d.A[1:, 1:], exact[1:, 1:], 1e-8, "A of v and z")
    assert d.A.shape == (3, 3) and d.B.shape == (3, 1) and d.z.shape == (1,)
    close(d.B[1], [0.5 * (h - 1.5 * h**3 / 6)], 1e-7, "v by the set point")


def test_a_rollout_is_a_run_to_the_bit(bar, motion):
    m, q, v = bar
    r, u = motion
    run = pf.run(m, q, v, duration=60 * H, step=H, u=u, u_step=H, record=["q", "v"], error_bound=1.0, **CALLS)
    assert np.array_equal(run["q"].values, r.q) and np.array_equal(run["v"].values, r.v)
    close(r.time, run["time"].values, SAME, "time")


def test_jvp_and_vjp_of_a_rollout_agree(bar, motion):
    m, q, v = bar
    r, u = motion
    random = np.random.default_rng(1)
    dq, dv, du = random.normal(size=4), random.normal(size=4), random.normal(size=u.shape)
    weights = random.normal(size=r.q.shape), random.normal(size=r.v.shape)
    ahead, back = r.jvp(dq=dq, dv=dv, du=du, dp=[0.3]), r.vjp(q=weights[0], v=weights[1])
    forwards = (ahead.q * weights[0]).sum() + (ahead.v * weights[1]).sum()
    backwards = back.q @ dq + back.v @ dv + (back.u * du).sum() + back.parameters @ [0.3]
    close(backwards, forwards, 1e-11, "one number by jvp and by vjp", abs(forwards))

    def end(e: float) -> np.ndarray:
        return pf.calculus.rollout(m, q, v, u + e * du, steps=60, step=H, every=60, **CALLS).q[-1]

    only_u = r.jvp(du=du).q[-1]
    close(only_u, difference(end), BY_DIFFERENCES, "by the inputs", np.abs(only_u).max())


SIZES = 0.02 / 2.0 ** np.arange(3)
"""Sizes of the changes for differences of order six, in one batch of runs."""


def gradient_and_differences(m, start, way, steps: int, step: float, scheme=None) -> tuple[float, float]:
    """Derivative of a sum of final values along a change (dq, dv, du, dp) of (q, v, u, p), by vjp and by differences of
    runs."""
    e = np.array([0, *[sign * size for size in SIZES for sign in (1, -1)]])[:, None]
    q, v, p = (x + e * dx for x, dx in zip((start[0], start[1], start[3]), (way[0], way[1], way[3]), strict=True))
    u = start[2][:, None] + e * way[2][:, None]
    r = pf.calculus.rollout(m, q, v, u, steps=steps, step=step, every=100, parameters=p, scheme=scheme, **CALLS)
    weights = np.zeros(r.q.shape), np.zeros(r.v.shape)
    of = np.cos(np.arange(m.nq)), np.sin(1 + np.arange(m.nv))
    weights[0][-1, 0], weights[1][-1, 0] = of
    back = r.vjp(q=weights[0], v=weights[1])
    found = back.q[0] @ way[0] + back.v[0] @ way[1] + (back.u[:, 0] * way[2]).sum() + back.parameters[0] @ way[3]
    ends = r.q[-1] @ of[0] + r.v[-1] @ of[1]
    table = [(ends[1 + 2 * k] - ends[2 + 2 * k]) / (2 * size) for k, size in enumerate(SIZES)]
    for power in (4, 16):
        table = [(power * b - a) / (power - 1) for a, b in pairwise(table)]
    return found, table[0]


def test_a_gradient_through_a_thousand_steps_of_a_tree_equals_differences():
    """A crane with a load on a rod whose length is a parameter; all arguments change. The bound is the accuracy of the
    differences."""
    length = pf.Parameter("length", 0.7, "m")
    bodies = [pf.body("cart", 1.0), pf.body("load", 0.5, com=(0, 0, -length), inertia=0.01)]
    rail = pf.joint("x", "prismatic", "world", "cart", axis=(1, 0, 0))
    joints = [rail, pf.joint("swing", "revolute", "cart", "load", axis=(0, 1, 0))]
    m = pf.mechanism("crane", bodies, joints, actuators=[pf.actuator("drive", "x")], parameters=[length])
    t, random = 2e-3 * np.arange(1000), np.random.default_rng(0)
    start = np.array([0.1, 0.6]), np.array([0.2, -0.5]), np.sin(3 * t)[:, None], np.array([0.7])
    way = random.normal(size=2), random.normal(size=2), np.cos(2 * t)[:, None], np.array([0.5])
    found, expected = gradient_and_differences(m, start, way, 1000, 2e-3)
    close(found, expected, 1e-10, "the gradient", abs(expected))


def test_a_gradient_through_a_thousand_steps_of_a_loop_equals_differences(bar):
    """A swinging five-bar, along changes of speeds and torques. What fixed factors neglect is h^5 in each step, so h^4 of
    the motion."""
    m, q, v = bar
    A = pf.compile_terms(m, {"A": lambda T: T.A}, backend="numpy")(q)["A"]
    change = np.random.default_rng(0).normal(size=4)
    dv = change - np.linalg.pinv(A, rcond=1e-8) @ (A @ change)
    for steps, bound in ((1000, 2e-8), (2000, 1.5e-9)):
        t = np.linspace(0.0, 1.0, steps, endpoint=False)
        start = q, v, 2 * np.sin(np.outer(3 * t, [1, 1.3]) + [0, 1]), m.p_defaults
        way = np.zeros(4), dv, np.outer(np.cos(10 * t), [0.7, -1.1]), np.zeros(1)
        found, expected = gradient_and_differences(m, start, way, steps, 1.0 / steps)
        close(found, expected, bound, "the gradient", abs(expected))


def test_checkpoints_change_nothing(bar, motion):
    m, q, v = bar
    r, u = motion
    some = pf.calculus.rollout(m, q, v, u, steps=60, step=H, every=7, **CALLS)
    assert np.array_equal(some.q, r.q[::7])
    weights = np.random.default_rng(2).normal(size=some.q.shape)
    every = np.zeros(r.q.shape)
    every[::7] = weights
    for a, b in zip(some.vjp(q=weights), r.vjp(q=every), strict=True):
        assert np.array_equal(a, b)


def test_a_batch_of_rollouts_is_its_runs_to_the_bit(bar):
    m, q, v = bar
    u = np.random.default_rng(3).normal(size=(10, 9, 2))
    both = pf.calculus.rollout(m, np.tile(q, (9, 1)), v, u, steps=10, step=H, threads=2, **CALLS)
    last = pf.calculus.rollout(m, q, v, u[:, -1], steps=10, step=H, **CALLS)
    weights = np.random.default_rng(4).normal(size=both.q.shape)
    a, b = both.vjp(q=weights), last.vjp(q=weights[:, -1])
    assert np.array_equal(both.q[:, -1], last.q) and a.u.shape == (10, 9, 2) and a.q.shape == (9, 4)
    assert np.array_equal(a.u[:, -1], b.u) and np.array_equal(a.parameters[-1], b.parameters)
    du = np.ones((10, 2))
    assert np.array_equal(both.jvp(du=du).q[:, -1], last.jvp(du=du).q)


def test_refusals(bar):
    m, q, v = bar
    floor = pf.constraints.active_while(pf.holonomic("floor", lambda k: k.q[0]), lambda k: k.q[1] > 0)
    with pytest.raises(ModelError, match="floor may switch on and off"):
        pf.calculus.step_derivatives(m.with_(constraints=[floor]), q, v)
    with pytest.raises(
        ModelError, match=r"takes the integrators rk4, euler, tr-bdf2, dopri5, dop853; 'midpoint' corrects the energy"
    ):
        pf.calculus.rollout(m, q, v, steps=2, scheme=pf.Scheme(integrator="midpoint"))
    pair = pf.Scheme(integrator="radau5")
    for refused in (
        lambda: pf.calculus.rollout(m, q, v, steps=2, scheme=pair),
        lambda: pf.calculus.step_derivatives(m, q, v, scheme=pair),
        lambda: pf.casadi_function(m, "step", step=0.01, scheme=pair),
    ):
        with pytest.raises(ModelError, match=r"'radau5' has stages that share one equation"):
            refused()
    with pytest.raises(ModelError, match="give its mechanism"):
        pf.calculus.step_derivatives(pf.reduction.hamiltonian(m), q, v)
    with pytest.raises(ModelError, match="off the constraints"):
        pf.calculus.rollout(m, q + 0.1, v, steps=2, **CALLS)
    with pytest.raises(ModelError, match=r"u has shape \(3, 2\)"):
        pf.calculus.rollout(m, q, v, np.zeros((3, 2)), steps=2, **CALLS)
    with pytest.raises(ModelError, match=r"q has shape \(2, 4\): \(3, 4\) is needed"):
        pf.calculus.rollout(m, q, v, steps=2, step=H, **CALLS).vjp(q=np.zeros((2, 4)))
    with pytest.raises(RunError, match=r"run 0 stopped after 0 steps: .*; there is no derivative"):
        pf.calculus.rollout(m, q, 1e9 * v, steps=2, step=0.1, **CALLS)


def test_a_start_in_a_singular_configuration_is_refused():
    plane = pf.joint("bead", "planar-translation", "world", "bead")
    wires = pf.holonomic("wires", lambda k: k.q[0] * k.q[1])
    m = pf.mechanism("crossing", [pf.body("bead", mass=1.0)], [plane], constraints=[wires])
    with pytest.raises(ModelError, match="singular configuration"):
        pf.calculus.rollout(m, [0.0, 0.0], [1.0, 0.0], steps=2, **CALLS)


# -- in other programs ----------------------------------------------------------------------------------------------------


def test_casadi_functions_give_casadi_these_derivatives(bar):
    m, q, v = bar
    u, p, x = np.array([0.4, -0.2]), m.p_defaults, np.concatenate([q, v])
    d = pf.derivatives(m, q, v, u, backend="numpy")
    f = pf.casadi_function(m, "forward_dynamics", wrt=["q", "v", "u", "p"], **EXPRESSION)(q=q, v=v, u=u, p=p)
    for of in ("v_dot", "reaction", "multipliers"):
        for by, there in zip(("q", "v", "u", "p"), ("q", "v", "u", "parameters"), strict=True):
            expected = getattr(getattr(d, of), there)
            close(f[f"{of}_by_{by}"], expected, 1e-11, f"{of} by {by}", max(1.0, np.abs(expected).max()))
    Q = ca.MX.sym("q", 4)
    rate = pf.casadi_function(m, "rate", **EXPRESSION)(ca.vertcat(Q, v), u, p, 0)
    slopes = ca.Function("slopes", [Q], [ca.jacobian(rate, Q), ca.jtimes(rate, Q, ca.DM.ones(8), True), ca.jtimes(rate, Q, q)])
    J, back, ahead = (np.array(y) for y in slopes(q))
    close(J[4:], d.v_dot.q, 1e-11, "rate by q", np.abs(J).max())
    close(back.ravel(), J.sum(axis=0), 1e-11, "back", np.abs(J).max())
    close(ahead.ravel(), J @ q, 1e-11, "ahead", np.abs(J).max())
    step = pf.casadi_function(m, "step", step=H, wrt=["x", "u"], **EXPRESSION)(x=x, u=u, p=p)
    s = pf.calculus.step_derivatives(m, q, v, u, step=H, **CALLS)
    close(step["x_next_by_x"], s.A, 1e-12, "A")
    close(step["x_next_by_u"], s.B, 1e-12, "B")
    on = pf.casadi_function(m, "constraints", **EXPRESSION)(q=q, v=v, p=p)
    assert np.abs(np.array(on["phi"])).max() < 1e-9 and np.abs(np.array(on["eta"])).max() < 1e-9
    smallest = pf.casadi_function(m, "inverse_dynamics", **EXPRESSION)(q=q, v=v, v_dot=d.motion.v_dot, p=p)["u"]
    close(smallest, u[:, None], 1e-9, "u")


def test_casadi_calls_the_library_and_does_not_differentiate_the_expression(bar):
    """No derivative of a square root appears, so no factorisation is differentiated."""
    f = pf.casadi_function(bar[0], "forward_dynamics", **EXPRESSION)
    for derivative in (f.forward(1), f.reverse(1)):
        roots = [i for i in range(derivative.n_instructions()) if derivative.instruction_id(i) == ca.OP_SQRT]
        values = [i for i in range(f.n_instructions()) if f.instruction_id(i) == ca.OP_SQRT]
        assert len(roots) == len(values)  # those of its own factorisation
        assert derivative.name_in()[0] == "i0"  # CasADi's own derivatives would name their inputs


def test_a_model_for_acados_is_data_and_files(bar, tmp_path):
    m, q, v = bar
    x, u, p = np.concatenate([q, v]), [0.4, -0.2], m.p_defaults
    model = pf.bridges.acados_model(m, step=0.01, name="five_bar")
    f = ca.Function("f", [model.x, model.u, model.p, model.t, model.xdot], [model.f_impl_expr, model.disc_dyn_expr])
    rate = np.array(pf.casadi_function(m, "rate", **EXPRESSION)(x=x, u=u, p=p)["x_dot"])
    rest, after = f(x, u, p, 0, rate)
    d = pf.calculus.step_derivatives(m, q, v, u, step=0.01, **CALLS)
    assert np.abs(np.array(rest)).max() < 1e-12 and model.x_names[4] == "v left" and model.p_values == (0.5,)
    close(np.array(after).ravel(), np.concatenate([d.q, d.v]), 1e-13, "the step")
    files = {path.name: path for path in model.write(tmp_path)}
    read = ca.Function.load(str(files["five_bar_step.casadi"]))
    close(read(x=x, u=u, p=p)["x_next_by_x"], d.A, 1e-12, "read again")
    library = tmp_path / "model.so"
    subprocess.run([*find_compiler().argv, "-O0", "-shared", "-fPIC", "-o", library, files["five_bar.c"], "-lm"], check=True)
    compiled = ca.external("five_bar_step", str(library))
    close(compiled(x=x, u=u, p=p)["x_next_by_u"], d.B, 1e-12, "as C")
    with pytest.raises(ModelError, match="acados_model: name"):
        pf.bridges.acados_model(m, step=0.01, name="Five bar")


@pytest.mark.parametrize("what", ["forward_dynamics", "inverse_dynamics", "constraints", "rate", "step"])
def test_omitted_parameters_give_nan(bar, what):
    """CasADi takes zero for any input that a call by name omits, which here would be a link without length."""
    m, q, v = bar
    how = {"step": H} if what == "step" else {}
    f = pf.casadi_function(m, what, **how, **EXPRESSION)
    known = {"q": q, "v": v, "x": np.concatenate([q, v])}
    given = {name: known[name] for name in f.name_in() if name in known}
    first = f.name_out()[0]
    assert np.isnan(f.default_in(f.index_in("p"))) and f.default_in(0) == 0
    if what != "inverse_dynamics":  # its rows of NaN count as dependent
        assert np.isnan(np.array(f(**given)[first])).any()
    assert np.isfinite(np.array(f(**given, p=m.p_defaults)[first])).all()


def test_casadi_function_refusals(bar):
    m = bar[0]
    with pytest.raises(ModelError, match="give the length of a step"):
        pf.casadi_function(m, "step", **EXPRESSION)
    with pytest.raises(ModelError, match=r"^step must be above 0"):
        pf.casadi_function(m, "step", step=0, **EXPRESSION)
    assert pf.casadi_function(m, "constraints", wrt=["q"], **EXPRESSION).name_out()[2:] == ["phi_by_q", "eta_by_q"]
    with pytest.raises(ModelError, match="'rate' takes no step"):
        pf.casadi_function(m, "rate", step=0.1)
    with pytest.raises(ModelError, match="what 'stepp' is unknown"):
        pf.casadi_function(m, "stepp", **EXPRESSION)
    with pytest.raises(ModelError, match="wrt 'w' is unknown"):
        pf.casadi_function(m, "rate", wrt=["w"], **EXPRESSION)


@pytest.mark.parametrize("function", ["jax_function", "torch_function"])
def test_functions_of_other_libraries_name_what_differentiates_whole_runs(bar, function):
    with pytest.raises(ModelError, match=f"^{function} takes no whole run: .*calculus.accurate_rollout"):
        pair_of(bar[0], "run", None, None, 1, "numpy", function)


@pytest.mark.parametrize(
    "differentiated",
    [
        lambda m, **how: pf.calculus.step_derivatives(m, [0.0] * m.nq, **how),
        lambda m, **how: pf.calculus.rollout(m, [0.0] * m.nq, **how),
        pf.bridges.jax_function,
        pf.bridges.torch_function,
        lambda m, **how: pf.casadi_function(m, "step", **how),
    ],
    ids=["step_derivatives", "rollout", "jax_function", "torch_function", "casadi_function"],
)
def test_what_takes_steps_of_one_length_refuses_an_accuracy(bar, request, differentiated):
    name = request.node.callspec.id
    for how in ({}, {"step": H}):
        with pytest.raises(ModelError, match=f"^{name} takes steps of one length and no accuracy: .*calculus.accurate_rollout"):
            differentiated(bar[0], accuracy=1e-6, **how)
    if name == "rollout":
        with pytest.raises(ModelError, match="steps must"):
            differentiated(bar[0])


def test_jax(bar):
    jax = pytest.importorskip("jax")
    with jax.enable_x64(False), pytest.raises(ModelError, match="double precision"):
        pf.bridges.jax_function(bar[0], step=H)
    with jax.enable_x64(True):
        check_jax(jax, *bar)


def check_jax(jax, m, q, v) -> None:
    u, x = np.random.default_rng(5).normal(size=(20, 2)), np.concatenate([q, v])
    step = pf.bridges.jax_function(m, step=H, **CALLS)

    @jax.jit
    def cost(x, u, p):
        return jax.lax.scan(lambda x, u: (step(x, u, p), None), x, u)[0][0]

    by_x, by_u, by_p = jax.grad(cost, (0, 1, 2))(x, u, m.p_defaults)
    r = pf.calculus.rollout(m, q, v, u, steps=20, step=H, every=20, **CALLS)
    weights = np.zeros(r.q.shape)
    weights[-1, 0] = 1.0
    by_vjp = r.vjp(q=weights)
    assert float(cost(x, u, m.p_defaults)) == r.q[-1, 0]
    close(by_u, by_vjp.u, 1e-13, "by u", np.abs(by_vjp.u).max())
    close(by_x, np.concatenate([by_vjp.q, by_vjp.v]), 1e-12, "by x")
    close(by_p, by_vjp.parameters, 1e-12, "by p")
    f = pf.bridges.jax_function(m, "forward_dynamics", **CALLS)
    many = jax.vmap(f, (0, None, None))(np.stack([q, q + 0.1]), v, u[0])
    d = pf.derivatives(m, [q, q + 0.1], v, u[0], **CALLS)
    close(many, d.motion.v_dot, 1e-12, "a batch", 10.0)
    close(jax.jacfwd(f)(q, v, u[0]), d.v_dot.q[0], 1e-12, "jacfwd", 10.0)
    assert np.array_equal(f(np.ones(4), np.zeros(4, int), [0, 1]), f(np.ones(4), np.zeros(4), np.array([0.0, 1.0])))
    with pytest.raises(ModelError, match="double precision, got an array of float32"):
        f(jax.numpy.asarray(q, dtype="float32"), v, u[0])
    for call in (f, jax.jit(f)):
        with pytest.raises(ModelError, match=r"five-bar: u has shape \(3,\): \(2,\) is needed"):
            call(q, v, np.zeros(3))
        with pytest.raises(ModelError, match=r"five-bar: q has shape \(2, 4\): \(4,\) is needed; jax.vmap makes a batch"):
            call(np.stack([q, q]), v, u[0])
    with pytest.raises(ModelError, match=r"five-bar: u has shape \(\): \(2,\) is needed"):
        step(x, 1.0)
    for wrong in (None, "fast", np.array([1j, 0.0])):
        with pytest.raises(ModelError, match=r"jax_function: .* is not an array of real numbers"):
            step(x, wrong)
    for twice in (jax.hessian, lambda f: jax.grad(lambda u: jax.grad(f)(u).sum())):
        with pytest.raises(ModelError, match="jax_function has no second derivatives"):
            twice(lambda u: (step(x, u) ** 2).sum())(u[0])


def test_a_policy_learns_through_a_four_bar_in_jax():
    """Feedback for a motor that turns eight cranks to a goal, learned from gradients through 40 steps of the machine."""
    jax = pytest.importorskip("jax")
    m = pf.read(Path(__file__).parents[2] / "examples" / "four_bar.yaml")[0]
    m = m.with_(actuators=[pf.actuator("motor", "crank")], gravity=(0, 0, 0))
    at = pf.assemble(m, {"crank": np.linspace(0.6, 1.0, 8)}, backend="interpreter").q
    start, goal = np.hstack([at, np.zeros((8, m.nv))]), 1.2
    with jax.enable_x64(True):
        step = jax.vmap(pf.bridges.jax_function(m, step=0.02, **CALLS))

        def cost(gains):
            def closed(x, _):
                return step(x, gains[0] * (x[:, :1] - goal) + gains[1] * x[:, m.nq : m.nq + 1]), None

            x = jax.lax.scan(closed, start, None, length=40)[0]
            return ((x[:, 0] - goal) ** 2 + 0.1 * x[:, m.nq] ** 2).mean()

        slope, gains, costs = jax.jit(jax.value_and_grad(cost)), np.zeros(2), []
        for _ in range(25):
            now, by_gains = slope(gains)
            gains, costs = gains - 4.0 * by_gains, [*costs, float(now)]
    assert costs[-1] < 0.05 * costs[0] and gains[0] < 0 and gains[1] < 0


def test_tensors_of_single_precision_are_refused(monkeypatch):
    """Uses a stand-in for PyTorch, which is not installed with the tests."""

    class Tensor(SimpleNamespace):
        dtype = "float64"

        def is_complex(self):
            return self.dtype == "complex128"

        def is_floating_point(self):
            return self.dtype.startswith("float")

        def double(self):
            return Tensor(shape=self.shape)

    m = five_bar()
    rule = type("Function", (), {"apply": classmethod(lambda *tensors: tensors[1:])})
    stand_in = SimpleNamespace(
        float64="float64",
        is_tensor=lambda x: isinstance(x, Tensor),
        autograd=SimpleNamespace(Function=rule),
        tensor=lambda x: Tensor(shape=x.shape, dtype=str(x.dtype)),
        compiler=SimpleNamespace(disable=lambda f: f),
    )
    monkeypatch.setitem(sys.modules, "torch", stand_in)
    f = pf.bridges.torch_function(m, "forward_dynamics", backend="numpy")
    given = [Tensor(shape=(1, n)) for n in (m.nq, m.nv, m.nu, len(m.parameters))]
    assert f(*given) == tuple(given)
    for list_ in ([0.5, 1.0], [0, 1]):
        assert [x.dtype for x in f(given[0], given[1], list_)[2:]] == ["float64"] * 2
    for dtype, words in {
        "float32": r"double precision, got a tensor of float32; call x\.double",
        "complex128": "takes real numbers, got a tensor of complex128",
    }.items():
        given[1].dtype = dtype
        with pytest.raises(ModelError, match=words):
            f(*given)
    with pytest.raises(ModelError, match="torch_function: 'fast' is not an array of real numbers"):
        f(given[0], "fast")
    with pytest.raises(ModelError, match="threads must be a whole number from 1 to 1024, got 0"):
        pf.bridges.torch_function(m, "forward_dynamics", threads=0, backend="numpy")


def test_without_pytorch_the_error_names_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ModelError, match=r"torch_function needs the package torch: run `pip install torch`"):
        pf.bridges.torch_function(five_bar(), "forward_dynamics", backend="numpy")
