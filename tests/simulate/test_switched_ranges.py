"""A parameter that a run changes keeps the numbers of the machine within their ranges, or stops the run by name."""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np
import pytest

import pfaffian as pf
from pfaffian.maths.inertia import least_spread

HINGE = pf.joint("hinge", "revolute", "world", "arm", axis=(0, 1, 0))
ACROSS = 0.1
"""Angle at which the parameter changes [rad]."""

BETWEEN = 1e-5
"""Error of the angle by linear interpolation between records 1 ms apart: 10 rad/s^2 (1 ms)^2 / 8 [rad]."""


def _arm(part: str, e: pf.Parameter) -> pf.Mechanism:
    """A horizontal arm that falls, with a number that is e."""
    inertia = ca.diag(ca.vertcat(0.1, e.symbol, 0.1)) if part == "arm" else 0.1
    forces = {
        "head": lambda: [pf.forces.gear_loss("head", "hinge", e)],
        "end": lambda: [pf.forces.stop("end", "hinge", high=0.3, impact=1.5 * e)],
        "tip": lambda: [pf.forces.contact("tip", "arm", shape_a=(1.0, 0, 0), shape_b=pf.pose((0, 0, -0.3)), impact=e)],
    }
    motor, arm = pf.actuator("motor", "hinge"), pf.body("arm", 1.0, com=(0.5, 0, 0), inertia=inertia)
    made = forces[part]() if part in forces else []
    return pf.mechanism("arm", [arm], [HINGE], forces=made, actuators=[motor], parameters=[e])


@pytest.mark.parametrize(
    ("part", "good", "bad", "timing"),
    [
        ("head", 1.0, 1.2, {"step": 1e-3, "duration": 0.3}),
        ("end", 0.6, 0.7, {"step": 1e-3, "duration": 0.3}),
        ("tip", 1.0, 1.1, {"accuracy": 1e-6, "times": np.linspace(0.0, 0.3, 301)}),
        ("arm", 0.2, 0.21, {"accuracy": 1e-6, "times": np.linspace(0.0, 0.3, 301)}),
    ],
    ids=["efficiency", "stop", "contact", "inertia"],
)
def test_a_switch_that_puts_a_number_out_of_its_range_stops_the_run(
    part: str, good: float, bad: float, timing: dict[str, Any]
) -> None:
    """The part is named, at the instant of the switch; the last number within the range does not stop the run."""
    m = _arm(part, pf.Parameter("e", 0.1))

    def run(to: float) -> Any:
        return pf.run(
            m, switches={"e": lambda k: ca.if_else(k.joint("hinge") > ACROSS, to, 0.1)}, backend="interpreter", **timing
        )

    with pytest.warns(pf.RunWarning, match=rf"{part}.*must.*correct switches="):
        stopped = run(bad).stopped
    kept = run(good)
    assert kept.status == 0
    np.testing.assert_allclose(np.interp(stopped, kept.time, kept.q[:, 0]), ACROSS, atol=BETWEEN)


def test_the_least_minor_tells_whether_a_body_can_have_an_inertia() -> None:
    """Also where only the whole determinant is negative: S has rows such as (1, -0.6, -0.6)."""
    for coupling, possible in ((-0.4, True), (-0.6, False), (0.6, True)):
        S = np.full((3, 3), coupling) + (1 - coupling) * np.eye(3)
        I = np.trace(S) * np.eye(3) - S
        assert (float(least_spread(ca.SX(ca.DM(I)))) >= 0) == possible
        assert (np.linalg.eigvalsh(S)[0] >= 0) == possible
