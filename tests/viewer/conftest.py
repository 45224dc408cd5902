"""A small machine that several viewer tests draw."""

from __future__ import annotations

import pytest

import pfaffian as pf


@pytest.fixture(scope="session")
def pendulum() -> pf.Mechanism:
    """A pendulum on a floating base, with names that contain TeX; its coordinates have three units and a quaternion."""
    return pf.mechanism(
        r"$\frac{",
        [pf.body("base", 2.0, inertia=0.1), pf.body("bob", 1.0, com=(0.5, 0, 0), inertia=0.01)],
        [pf.joint("_float", "free", "world", "base"), pf.joint("$x_1$", "revolute", "base", "bob", axis=(0, 1, 0))],
    )
