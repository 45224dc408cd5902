"""Closed chains on a base that floats: closures between bodies push back, and momentum does not notice."""

import numpy as np
import pytest

import pfaffian as pf
from pfaffian.model.constraint import Constraint
from tests.tolerance import close

KEEP = {"duration": 0.3, "step": 1e-3, "every": 20, "u": {"motor": 0.1}}


def four_bar(*closures: Constraint) -> pf.Mechanism:
    """A planar four-bar of unlike rods on a hull that turns in space."""
    rod = {"com": (0.1, 0.02, 0), "inertia": np.diag([0.02, 0.03, 0.04])}
    bodies = [pf.body("hull", 5.0, inertia=np.diag([1, 1.2, 1.5])), *[pf.body(n, 1.0, **rod) for n in "abc"]]
    joints = [
        pf.joint("flight", "free", "world", "hull"),
        pf.joint("j1", "revolute", "hull", "a", placement=(0.2, 0, 0)),
        pf.joint("j2", "revolute", "a", "b", placement=(0.3, 0, 0)),
        pf.joint("j3", "revolute", "hull", "c", placement=(0.5, 0, 0)),
    ]
    return pf.mechanism(
        "four-bar", bodies, joints, constraints=closures, actuators=[pf.actuator("motor", "j1")], gravity=(0, 0, 0)
    )


def pin(k: pf.Kinematics) -> object:
    """The two rows of the loop in its plane."""
    return (k.pose("hull").R.T @ (k.position("b", (0.35, 0, 0)) - k.position("c", (0.3, 0, 0))))[:2]


LOOPS = {
    "spherical": pf.coincide("close", "b", (0.35, 0, 0), "c", (0.3, 0, 0)),
    "revolute": pf.closure("close", "revolute", "b", "c", placement_a=(0.35, 0, 0), placement_b=(0.3, 0, 0)),
}


@pytest.mark.parametrize("kind", LOOPS)
def test_rows_across_a_planar_loop_are_rounding_wherever_the_hull_turns(kind):
    """They have rank 2, and the motion is that of the loop said by two rows; reduced it is the same with its momentum kept."""
    m, plain = four_bar(LOOPS[kind]), four_bar(pf.holonomic("close", pin))
    q = pf.assemble(m, {"j1": 1.0}).q
    v = pf.assemble(m, q, np.random.default_rng(1).normal(size=m.nv) / 2).v
    full, reduced, two = (pf.run(x, q, v, **KEEP) for x in (m, pf.reduce(m), plain))
    for run in (full, reduced, two):
        assert pf.causes(run) == ["finished"]
        assert (run["rank"] == 2).all()
    for what in ("q", "v"):
        close(full[what], two[what], 1e-11, what)
        close(reduced[what], full[what], 1e-11, what)
    kept = reduced["momentum"].values[:, :6]
    close(kept, np.tile(pf.momentum_map(m, q, v), (len(kept), 1)), 1e-12, "momentum")
    assert float(np.abs(reduced["momentum_drift"]).max()) < 1e-12
