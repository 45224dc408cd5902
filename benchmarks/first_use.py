"""Machines whose first run is timed: loops and laws, where tracing and compiling take most of the waiting time."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial

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


def rope_of_20() -> First:
    """A drone on which a rope of 20 segments hangs, each on a universal joint: 46 velocities."""
    numbers = {"mass": 1.0, "inertia": (0.02, 0.02, 0.03), "arm": 0.2, "thrust": 1e-5, "torque": 2e-7}
    drone = pf.multicopters.thrust_multicopter("drone", np.arange(4) * np.pi / 2, [1, -1, 1, -1], **numbers)
    bodies, joints = [*drone.bodies], [*drone.joints]
    for i in range(20):
        at = pf.pose((0, 0, -0.1 if i else 0))
        joints.append(pf.joint(f"joint {i}", "universal", bodies[-1].name, f"segment {i}", placement=at))
        bodies.append(pf.body(f"segment {i}", 0.02, (0, 0, -0.05), (2e-5, 2e-5, 1e-6)))
    m = drone.with_(bodies=bodies, joints=joints)
    q = m.neutral()
    q[m.q_slices["joint 0"]] = 0.1, 0.2
    return m, None, q


def framework(n: int) -> First:
    """Dixon's framework: n + n particles that slide on two lines at right angles, each pair joined by a rod."""
    at = {f"{line}{i}": first + 0.3 * i for line, first in (("a", 1.0), ("b", 0.8)) for i in range(n)}
    axes = {"a": (1, 0, 0), "b": (0, 1, 0)}
    bodies = [pf.body(name, 1.0) for name in at]
    joints = [pf.joint(f"slide {name}", "prismatic", "world", name, axis=axes[name[0]]) for name in at]
    rods = [pf.closure(f"rod {i} {j}", "distance", f"a{i}", f"b{j}", length=float(np.hypot(at[f"a{i}"], at[f"b{j}"])))
            for i in range(n) for j in range(n)]  # fmt: skip
    m = pf.mechanism("framework", bodies, joints, constraints=rods, gravity=(0, 0, 0))
    return m, None, np.array([*at.values()])


def net() -> First:
    """3 x 3 particles in a plane, joined by 17 rods where 15 would make them rigid."""
    return _rods([(x + 0.05 * np.sin(3 * x + 5 * y), y + 0.04 * np.cos(2 * x + 7 * y)) for y in range(3) for x in range(3)],
                 [(0, 1), (1, 2), (3, 4), (4, 5), (6, 7), (7, 8), (0, 3), (1, 4), (2, 5), (3, 6), (4, 7), (5, 8),
                  (0, 4), (1, 5), (3, 7), (4, 8), (1, 3)])  # fmt: skip


def braced_square() -> First:
    """Four particles in a plane, joined by four sides and both diagonals."""
    return _rods([(0, 0), (1, 0), (1, 1), (0, 1)], [(0, 1), (1, 2), (2, 3), (3, 0), (0, 2), (1, 3)])


def _rods(points: list[tuple[float, float]], pairs: list[tuple[int, int]]) -> First:
    """Particles that slide along x and y, some pairs of which are joined by rods."""
    bodies, joints = list[pf.Body](), list[pf.Joint]()
    for i in range(len(points)):
        bodies += [pf.body(f"slide {i}"), pf.body(f"particle {i}", 1.0)]
        joints.append(pf.joint(f"x{i}", "prismatic", "world", f"slide {i}", axis=(1, 0, 0)))
        joints.append(pf.joint(f"y{i}", "prismatic", f"slide {i}", f"particle {i}", axis=(0, 1, 0)))
    lengths = [float(np.hypot(*np.subtract(points[i], points[j]))) for i, j in pairs]
    rods = [pf.closure(f"rod {i} {j}", "distance", f"particle {i}", f"particle {j}", length=length)
            for (i, j), length in zip(pairs, lengths, strict=True)]  # fmt: skip
    return pf.mechanism("rods", bodies, joints, constraints=rods, gravity=(0, 0, 0)), None, np.array(points, float).ravel()


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
    "rope": ("drone on a rope of 20 segments", rope_of_20, 3.0),
    "square": ("braced square of rods", braced_square, 3.0),
    "framework 3": ("framework of 3 + 3 particles, 9 rods", partial(framework, 3), 3.0),
    "framework 4": ("framework of 4 + 4 particles, 16 rods", partial(framework, 4), 5.0),
    "net": ("3 x 3 particles, two rods too many", net, 7.0),
}
"""By name: description, maker, and the goal for the processor time of its first run [s]."""
