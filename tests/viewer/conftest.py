"""A small machine that several viewer tests draw."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

import pfaffian as pf
from pfaffian.viewer.browser import View
from tests.viewer.stand_in import Server


@pytest.fixture(scope="session")
def pendulum() -> pf.Mechanism:
    """A pendulum on a floating base, with names that contain TeX; its coordinates have three units and a quaternion."""
    return pf.mechanism(
        r"$\frac{",
        [pf.body("base", 2.0, inertia=0.1), pf.body("bob", 1.0, com=(0.5, 0, 0), inertia=0.01)],
        [pf.joint("_float", "free", "world", "base"), pf.joint("$x_1$", "revolute", "base", "bob", axis=(0, 1, 0))],
    )


@pytest.fixture
def open_view(monkeypatch):
    """A function that opens a view without a browser. Views left open are closed after the test."""
    monkeypatch.setitem(sys.modules, "viser", SimpleNamespace(ViserServer=Server))
    monkeypatch.setattr(View, "_play", lambda self: None)
    opened = []

    def show(*given, **options) -> View:
        opened.append(pf.view(*given, **({"block": False} | options)))
        return opened[-1]

    yield show
    for view in opened:
        view.stop()
