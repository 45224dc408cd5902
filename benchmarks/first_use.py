"""Machines whose first run is timed: loops and laws, where tracing and compiling take most of the waiting time."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np

import pfaffian as pf
from benchmarks.chain_length import chain, ladder
from benchmarks.robots import urdf, welded
from pfaffian.control import Control
from studies import humanoid_standing, stewart_platform, two_pandas

First = tuple[pf.Mechanism, Control | None, np.ndarray]
"""A mechanism, its law, and q near a configuration that closes."""


def ur5_welded() -> First:
    m = _read("ur5")
    q = m.neutral()
    q[:6] = 0.3, -1.2, 1.5, -0.8, 0.5, 0.2
    return pf.actuate_all(welded(m, "world", "tool0", q)), None, q


def go2_pinned() -> First:
    """Go2 on four feet, each fixed at a point."""
    m = _read("go2", base="free")
    q = m.neutral()
    q[2] = 0.3
    for name, at in m.q_slices.items():
        q[at] = 0.8 if "thigh" in name else -1.5 if "calf" in name else q[at]
    feet = [b.name for b in m.bodies if b.name.endswith("foot")]
    places = pf.forward_kinematics(m, q, bodies=feet)
    pins = [pf.coincide(f"pin {foot}", "world", places[foot].position, foot, (0, 0, 0)) for foot in feet]
    return pf.actuate_all(m.with_(constraints=pins)), None, q


def two_pandas_hybrid() -> First:
    m = two_pandas.mechanism()
    return m, two_pandas.law(m, m.parameters[0].symbol), two_pandas.off_start(m)


def stewart_servo() -> First:
    m = stewart_platform.steered()
    return m, None, m.neutral()


def talos_on_two_feet() -> First:
    m = humanoid_standing.mechanism()
    return m, humanoid_standing.law(m), humanoid_standing.stance(m)


def ladder_of_100() -> First:
    """Four-bars side by side: 201 bodies and 300 rows of rank 200."""
    m = ladder(100)
    return m, None, m.neutral()


def chain_of_500() -> First:
    m = chain(500)
    return m, None, m.neutral()


def _read(name: str, **how: str) -> pf.Mechanism:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pf.ModelWarning)
        return pf.formats.read_urdf(urdf(name), **how)


MACHINES: dict[str, tuple[str, Callable[[], First], float]] = {
    "ur5": ("UR5, hand welded", ur5_welded, 3.5),
    "go2": ("Go2 pinned on four feet", go2_pinned, 12.0),
    "pandas": ("two Pandas, hybrid force", two_pandas_hybrid, 16.0),
    "stewart": ("Stewart platform, servo constraint", stewart_servo, 25.0),
    "talos": ("Talos on two feet, projected", talos_on_two_feet, 50.0),
    "ladder": ("ladder of 100 four-bars", ladder_of_100, 60.0),
    "chain": ("chain of 500 bodies", chain_of_500, 30.0),
}
"""By name: description, maker, and the goal for the processor time of its first run [s]."""
