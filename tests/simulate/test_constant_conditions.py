"""Conditions that no motion changes are named, with what would do; those that change are not."""

import casadi as ca
import pytest

import pfaffian as pf

ON = pf.Parameter("latched", 0.0)


def pendulum(active=None):
    """A pendulum, with a brake that acts while a condition holds."""
    rod = pf.body("rod", 1.2, com=(0, 0, -0.4), inertia=0.03)
    pin = pf.joint("pin", "revolute", "world", "rod", axis=(0, 1, 0))
    brake = pf.nonholonomic("brake", lambda k: k.v[0] * (1 - ON))
    brakes = [pf.constraints.active_while(brake, active)] if active else []
    return pf.mechanism("pendulum", [rod], [pin], constraints=brakes, parameters=[ON])


def square(q):
    """(q + 1)^2, written out: rounding differs."""
    return q * q + 2 * q + 1


CONDITIONS = {
    "always acts": lambda k: ca.SX(1) > 0,
    "never acts": lambda k: k.q[0] > k.q[0],
    "equal everywhere": lambda k: square(k.q[0]) > (k.q[0] + 1) ** 2,
}
EQUALITIES = {
    "by ==": lambda k: k.q[0] == 0.2, "by !=": lambda k: k.v[0] != 0, "within others": lambda k: ca.logic_and(ON < 1, k.t == 1),
}  # fmt: skip
GUARDED = lambda k: ca.if_else(k.v[0] == 0, 0, k.q[0] / k.v[0]) > 1  # noqa: E731
CHANGING = (
    lambda k: k.q[0] > 0.5,
    lambda k: ca.fmin(k.q[0], 0) < 0,
    lambda k: ca.logic_or(ON > 0.5, k.v[0] < -20),
    lambda k: ca.logic_and(ON.symbol == 0, ca.floor(9 * k.q[0]) == 1),
    GUARDED,
)


@pytest.mark.parametrize("words", CONDITIONS)
@pytest.mark.parametrize("steps", [{"step": 0.01}, {"accuracy": 1e-4}], ids=["step", "accuracy"])
def test_conditions_that_no_motion_changes_are_named(words, steps):
    with pytest.warns(pf.RunWarning, match=f"'brake': active_while .*{words}.*change with the motion"):
        pf.run(pendulum(CONDITIONS[words]), {"pin": 0.3}, duration=0.02, backend="numpy", error=False, **steps)


@pytest.mark.parametrize("integrator", ["dopri5", "dop853"])
def test_a_condition_that_rounding_decides_ends_a_run_soon(integrator):
    """Nothing else stops it before the greatest number of steps: the numbers do not move, and neither do their parts."""
    with pytest.warns(pf.RunWarning, match="equal everywhere") as caught:
        scheme = pf.Scheme(integrator=integrator)
        r = pf.run(
            pendulum(CONDITIONS["equal everywhere"]), {"pin": 0.3}, duration=1.0, accuracy=1e-6, error=False, scheme=scheme
        )
    assert any("events follow one another without end" in str(x.message) and "'brake'" in str(x.message) for x in caught)
    assert int(r.steps) < 1000


@pytest.mark.parametrize("active", CHANGING)
def test_conditions_that_a_motion_may_change_are_not(active, recwarn):
    pf.run(pendulum(active), {"pin": 0.3}, duration=0.02, step=0.01, backend="numpy", error=False)
    assert not [x for x in recwarn if "everywhere" in str(x.message) or "==" in str(x.message)]


@pytest.mark.parametrize("kind", EQUALITIES)
def test_equalities_that_no_step_meets_are_named(kind):
    """A condition by == is true at single instants only, so that its constraint never acts, and no event is found."""
    with pytest.warns(pf.RunWarning, match="'brake': active_while compares by == or !=.*compare them by <= or >="):
        pf.run(pendulum(EQUALITIES[kind]), {"pin": 0.3}, duration=0.02, step=0.01, backend="interpreter", error=False)
    changes = {"latched": lambda k: ca.if_else(EQUALITIES[kind](k), 1, ON)}
    with pytest.warns(pf.RunWarning, match="switch 'latched' compares by == or !="):
        pf.run(pendulum(), {"pin": 0.3}, duration=0.02, step=0.01, switches=changes, backend="interpreter", error=False)


@pytest.mark.parametrize(
    ("following", "words"), [(lambda k: 1, "the same everywhere, 1"), (lambda k: CONDITIONS["equal everywhere"](k), "rounding")]
)
def test_switches_that_no_motion_changes_are_named(following, words):
    with pytest.warns(pf.RunWarning, match=f"switch 'latched'.*{words}"):
        pf.run(
            pendulum(),
            {"pin": 0.3},
            duration=0.02,
            step=0.01,
            switches={"latched": following},
            backend="interpreter",
            error=False,
        )
