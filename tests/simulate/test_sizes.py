"""Sizes 0, 1 and 2 of everything: coordinates, rows, inputs, parameters, runs, records, integrated states, faults."""

import casadi as ca
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pfaffian as pf
from pfaffian.control.command import Command
from pfaffian.control.law import Control
from pfaffian.formats.text.run_settings import RunSettings
from pfaffian.simulate.step.integrators import INTEGRATORS
from pfaffian.viewer.describe import describe
from tests.random_mechanisms import Case, moving, random_body, random_pose, random_tree, small
from tests.tolerance import ALGEBRA, close

pytestmark = pytest.mark.filterwarnings("ignore:running in NumPy")
few = st.integers(0, 2)
STEP = 1e-3


@pytest.fixture(autouse=True, scope="module")
def without_a_compiler():
    """Compile nothing, since shapes are decided before."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PFAFFIAN_CC", "no compiler")
        yield


def law(m: pf.Mechanism, states: int, faults: int, inputs: int) -> Control:
    """A law that sends the first inputs of the run to the first motors, with states that count time and faults that never
    occur."""

    def answer(T, z, w, y):
        u = ca.SX.zeros(m.nu, 1)
        for i in range(min(inputs, len(m.actuators))):
            u[i] = w[i]
        return Command(u, ca.SX.ones(states, 1), ca.SX.zeros(faults, 1), {"clock": z} if states else {})

    names = tuple(f"w{i}" for i in range(inputs))
    return Control(answer, (0.5,) * states, names, ("never",) * faults)


@given(small(), st.integers(1, 2), few, few, few, few, st.sampled_from(tuple(INTEGRATORS)))
def test_run(case, runs, steps, states, faults, inputs, integrator):
    """Each signal has its shape and is finite, and the first step agrees with `forward_dynamics`."""
    m = case.m
    control = law(m, states, faults, inputs) if states or faults or inputs else None
    q, v = (np.tile(x, (runs, 1)) for x in (case.q, case.v))
    motors = len(m.actuators)
    w = np.ones(inputs + m.nu - motors if control else m.nu)  # wrenches from outside remain inputs of the run under a law
    r = pf.run(m, q, v, duration=steps * STEP, step=STEP, u=w, control=control, backend="numpy", squeeze=False, record="all",
               scheme=pf.Scheme(integrator=integrator))  # fmt: skip
    assert set(pf.results.causes(r)) == {"finished"}
    for name, size in {"q": m.nq, "v": m.nv, "u": m.nu, "clock": states}.items():
        shape = (runs, steps + 1, size) if name != "clock" or size != 1 else (runs, steps + 1)
        assert r[name].shape == shape if size else name not in r
    # The error of a run is not estimated in most of a batch.
    open_ended = ("stopped", "error")
    assert all(np.isfinite(r[name]).all() for name in r.data_vars if name not in open_ended)
    if states:
        clock = r["clock"].values.reshape(runs, steps + 1, states)
        close(clock, np.broadcast_to((0.5 + r["time"].values)[:, None], clock.shape), ALGEBRA, "integrated time")
    u = np.ones(m.nu)
    u[inputs if control else motors : motors] = 0.0
    v_dot = pf.forward_dynamics(m, r["q"].values[:, 0], r["v"].values[:, 0], u).v_dot
    if steps:
        gained = (r["v"].values[:, 1] - r["v"].values[:, 0]) / STEP
        close(
            gained, v_dot, OVER_A_STEP, "acceleration of the first step", np.abs(v_dot).max() + (1 + np.abs(case.v).sum()) ** 4
        )


OVER_A_STEP = 0.1
"""Bound on the change of a signal over one step of 1 ms: jerk times h, relative to |v_dot| + (1 + |v|)^4."""


@settings(max_examples=15)
@given(small())
def test_single_calls(case):
    """One state as (n,) and as (1, n), alone and in pairs, gives the same numbers; inverse dynamics reproduces the
    acceleration."""
    m = case.m
    alone = pf.forward_dynamics(m, case.q, case.v, case.u)
    pair = pf.forward_dynamics(m, np.array([case.q, case.q]), case.v, case.u)
    assert alone.v_dot.shape == alone.reaction.shape == (m.nv,) and alone.rank.shape == ()
    assert pair.v_dot.shape == pair.reaction.shape == (2, m.nv) and pair.rank.shape == (2,)
    assert np.array_equal(pair.v_dot, [alone.v_dot] * 2)
    x = pf.inverse_dynamics(m.with_(forces=[], actuators=[]), case.q, case.v, alone.v_dot)
    back = pf.forward_dynamics(pf.actuate_all(m.with_(forces=[], actuators=[])), case.q, case.v, x.u)
    size = 1 + np.abs(alone.v_dot).max() + np.abs(x.u).max()
    close(back.v_dot, alone.v_dot, INVERTED, "acceleration under the inputs of inverse dynamics", size)


INVERTED = 1e-9
"""Bound for forward after inverse dynamics with up to two rows: rounding times the condition of random inertias and rows."""


@settings(max_examples=6)
@given(small())
def test_description_and_figure(case):
    """`info` and the figures accept machines that have one of everything, or nothing."""
    text = describe(case.m, RunSettings({}, {}, {}))
    assert all(b.name in text for b in case.m.bodies)
    r = pf.run(case.m, case.q, case.v, duration=STEP, step=STEP, backend="numpy")
    pf.overview(r)


@pytest.mark.parametrize("kind", ["revolute", "prismatic", "spherical"])
@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_a_mount_changes_nothing(kind, integrator):
    """A joint on a fixed body moves as the same joint on the world."""
    random = np.random.default_rng(3)
    one = random_tree(random, [kind], [-1])
    mount, X = random_body(random, "mount"), random_pose(random)
    j = one.joints[0]
    on_it = pf.joint("j0", kind, "mount", "b0", placement=X.inverse() @ j.placement, child_placement=j.child_placement,
                     damping=j.damping, armature=j.armature, stiffness=j.stiffness, rest=j.rest)  # fmt: skip
    mounted = pf.mechanism("mounted", [mount, *one.bodies], [pf.joint("bolt", "fixed", "world", "mount", placement=X), on_it],
                           gravity=one.gravity)  # fmt: skip
    q, v = pf.random_configuration(one, random), random.normal(size=one.nv)
    keep = dict(duration=5 * STEP, step=STEP, backend="numpy", scheme=pf.Scheme(integrator=integrator))
    free, on_mount = (pf.run(m, q, v, **keep) for m in (one, mounted))
    close(on_mount["q"].values, free["q"].values, 10 * ALGEBRA, "motion on a mount")
    assert moving(mounted) == ["b0"] and on_mount["q"].shape == free["q"].shape


def test_a_fixed_joint_has_no_coordinate():
    """A caller's function that reads it gets an empty column, also if the mechanism has one coordinate."""
    m = random_tree(np.random.default_rng(0), ["fixed", "revolute"], [-1, 0])
    k = pf.symbols(m).kinematics
    assert k.joint("j0").shape == k.joint_rate("j0").shape == (0, 1)
    assert k.joint("j1").shape == k.joint_rate("j1").shape == (1, 1)


def test_hybrid_force_on_one_row():
    """With one row, one joint on it and every joint driven, slices of a column turn into rows."""
    from pfaffian.control import hybrid_force, joints, set_point

    random = np.random.default_rng(1)
    tree = pf.actuate_all(random_tree(random, ["revolute", "prismatic"], [-1, 0]))
    m = tree.with_(constraints=[pf.holonomic("stop", lambda k: k.joint("j1") - 0.2)])
    control = hybrid_force(joints("j0"), set_point([0.3]), set_point([2.0]), ["stop"], stiffness=4.0, damping=4.0)
    case = Case(m, np.array([0.3, 0.2]), np.zeros(2), np.zeros(2), 0.0)
    r = pf.run(m, case.q, case.v, duration=2 * STEP, step=STEP, control=control, backend="numpy")
    assert pf.results.causes(r) == ["finished"]
    close(r["multiplier"].values.ravel(), np.full(3, 2.0), INVERTED, "the wanted force")
