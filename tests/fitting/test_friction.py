"""Friction laws by held-out error: whichever law was planted is proposed, with its numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pfaffian as pf
from pfaffian.fitting.friction_laws import _with_law

PLANTED: dict[str, dict[str, float]] = {
    "none": {}, "viscous": {"viscous": 0.15}, "dry": {"dry": 0.15}, "dry and viscous": {"dry": 0.1, "viscous": 0.1},
    "asymmetric": {"dry forwards": 0.25, "dry backwards": 0.05, "viscous": 0.05}, "load": {"load": 0.01},
    "Stribeck": {"dry": 0.1, "static": 0.4, "Stribeck rate": 0.5, "viscous": 0.05},
}  # fmt: skip

CLOSE = 0.15
"""Largest relative error of a planted number: noise moves the numbers of the richest law by a tenth."""


def rod() -> pf.Mechanism:
    """A driven pendulum without friction."""
    hinge = pf.joint("hinge", "revolute", "world", "rod", axis=(0, -1, 0))
    return pf.mechanism(
        "rod", [pf.body("rod", 2.0, (0, 0, -0.5), (0.2, 0.2, 0.01))], [hinge], actuators=[pf.actuator("motor", "hinge")]
    )


def records(law: str) -> list[dict[str, Any]]:
    """Two records of the pendulum with a law in its hinge."""
    m, rng, found = _with_law(rod(), law, ("hinge",), 0.1), np.random.default_rng(4), list[dict[str, Any]]()
    truth, t = {f"{name} hinge": value for name, value in PLANTED[law].items()}, np.arange(601) * 0.01
    for angle, w in ((1.0, 5.0), (-0.6, 4.0)):
        u = (3 * np.sin(w * t) + 4 * np.sin(1.3 * t + angle))[:, None]
        run = pf.run(
            m, {"hinge": angle}, u=np.repeat(u, 10, axis=0)[:6000], u_step=1e-3, duration=6.0, step=1e-3, every=10,
            parameters=truth, error_bound=np.inf,
        )  # fmt: skip
        found.append({"time": t, "u": u, "q": run.q.values + 3e-4 * rng.normal(size=run.q.shape)})
    return found


@pytest.mark.parametrize("law", PLANTED)
def test_the_planted_law_is_proposed(law: str) -> None:
    seen, unseen = records(law)
    table = pf.identification.compare_friction(rod(), seen, unseen, joints=["hinge"], horizon=1.0, size=0.1, unknown={})
    assert table["proposed"].idxmax() == law
    for name, value in PLANTED[law].items():
        assert abs(table["fit"][law].values[f"{name} hinge"] - value) < CLOSE * value, name


def test_friction_by_load_needs_a_pin_or_a_guide() -> None:
    ball = pf.mechanism("ball", [pf.body("ball", 1.0)], [pf.joint("ball", "spherical", "world", "ball")])
    t = np.arange(20) * 0.1
    with pytest.raises(pf.ModelError, match=r"'ball' is spherical.*revolute and prismatic"):
        pf.identification.compare_friction(ball, {"time": t}, {"time": t}, joints=["ball"], horizon=1.0, laws=["load"])
