"""Mechanisms that are compared, and their states."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import casadi as ca
import numpy as np

import pfaffian as pf

EXAMPLES = Path(__file__).parents[1] / "examples"
READY = (0.3, -0.8, 0.2, -2.3, 0.4, 1.6, 0.8)
"""A configuration of the Panda arm with its elbow bent [rad]."""

URDF = {
    "panda": "panda_description/urdf/panda.urdf",
    "baxter": "baxter_description/urdf/baxter.urdf",
    "talos_reduced": "talos_data/robots/talos_reduced.urdf",
    "talos_full_v2": "talos_data/robots/talos_full_v2.urdf",
    "ur5": "ur_description/urdf/ur5_robot.urdf",
    "go2": "go2_description/urdf/go2.urdf",
}


def urdf(name: str) -> Path:
    """The robot's file in the installed package example-robot-data."""
    return pf.formats.installed("example-robot-data", URDF[name], "benchmarks")


def robot(name: str) -> pf.Mechanism:
    """A robot without joint damping, which Pinocchio's algorithms leave out; Talos has a floating base."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pf.ModelWarning)
        m = pf.formats.read_urdf(urdf(name), base="free" if name.startswith("talos") else "fixed")
    return undamped(m)


def undamped(m: pf.Mechanism) -> pf.Mechanism:
    return m.with_(joints=tuple(replace(j, damping=ca.SX(0)) for j in m.joints))


def locked(m: pf.Mechanism, at: Mapping[str, float]) -> pf.Mechanism:
    """The mechanism with one-dof joints fixed at the given q and without their motors."""
    joints = [pf.locked(j, at[j.name]) if j.name in at else j for j in m.joints]
    return m.with_(joints=joints, actuators=tuple(a for a in m.actuators if a.joint not in at))


def panda_arm() -> pf.Mechanism:
    """The seven joints of the Panda; hand and fingers are one body with the last link."""
    return locked(robot("panda"), {"panda_finger_joint1": 0.0, "panda_finger_joint2": 0.0})


def welded(m: pf.Mechanism, a: str, b: str, q: np.ndarray, copies: int = 1) -> pf.Mechanism:
    """The mechanism with body b welded to body a at its pose at q (nq,); with `copies` > 1 every row is repeated."""
    place = pf.compile_terms(m, {"G": lambda T: _relative(T.kinematics, a, b)}, lanes=1)(q)["G"]
    X = pf.pose(place[:, 3], rotation=place[:, :3])
    return m.with_(constraints=tuple(pf.closure(f"weld {i}", "weld", a, b, placement_a=X) for i in range(copies)))


def _relative(k: pf.Kinematics, a: str, b: str) -> ca.SX:
    X = k.pose(a).inverse() @ k.pose(b)
    return ca.horzcat(X.R, X.p)


def ready(m: pf.Mechanism) -> np.ndarray:
    """q (nq,) with the Panda's arm in READY and the fingers at zero."""
    q = m.neutral()
    q[:7] = READY
    return q


def baxter_ready(m: pf.Mechanism) -> np.ndarray:
    """q (nq,) of Baxter with both hands in front of it, as in examples/baxter_bar.yaml."""
    _, settings = pf.formats.read_yaml(EXAMPLES / "baxter_bar.yaml")
    q = m.neutral()
    for name, value in settings.start.items():
        q[m.q_slices[name]] = value
    return q


def random_states(m: pf.Mechanism, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """q, v, u: (count, n) each, random and all different."""
    random = np.random.default_rng(7)
    q = np.array([pf.random_configuration(m, random) for _ in range(count)])
    return q, random.normal(size=(count, m.nv)), random.normal(size=(count, m.nu))


def closed_states(m: pf.Mechanism, q: np.ndarray, count: int, spread: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """q, v, u (count, n) on the constraints near q (nq,): random within `spread` [rad, m], then projected onto the
    constraints."""
    random = np.random.default_rng(7)
    qs = q + spread * random.uniform(-1, 1, (count, m.nq))
    qs, vs = pf.assemble(m, qs, random.normal(size=(count, m.nv)))[:2]
    return qs, vs, random.normal(size=(count, m.nu))
