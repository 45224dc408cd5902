"""Joint momentum of several bodies, and tops: symmetries that are not those of one first joint. [chhabra14 3.3, 4.4]

Three bodies are each connected to the world by a free joint. A spring with a damper pulls two of them together, and a ball
joint closed by a constraint connects two. No body conserves its own momentum, but their total momentum is conserved: the
library reduces by it as if it belonged to one first joint. Lagrange's top conserves its momentum about the vertical and its
spin; the first belongs to a motion of its joint on the world's side, the second to one on the body's side. The thesis has no
such machines; masses and lengths are ours.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import casadi as ca
import numpy as np
import xarray as xr

import pfaffian as pf
from pfaffian.study import Claim, blank_figure

DURATION, STEP, EVERY = 4.0, 8e-3, 10

A, C, SPIN_UP = 0.09, 0.02, 45.0
"""Top: inertia about its peg, across and about its axis [kg m^2], and spin at the start [rad/s]."""

WEIGHT, ARM = 1.2 * 9.80665, 0.2


def mechanism() -> pf.Mechanism:
    """The three bodies; the two that the closure connects satisfy it at home."""
    bodies = [
        pf.body("tug", 12.0, com=(0.1, 0, 0.05), inertia=(1.0, 1.4, 1.2)),
        pf.body("load", 5.0, com=(0, 0.05, 0), inertia=(0.3, 0.5, 0.4)),
        pf.body("panel", 2.0, com=(0.3, 0, 0), inertia=(0.02, 0.2, 0.21)),
    ]
    joints = [pf.joint(f"{b.name} flies", "free", "world", b.name) for b in bodies]
    tether = pf.spring(
        "tether", "tug", "load", point_a=(0.4, 0.1, 0), point_b=(-0.2, 0.1, 0.1), stiffness=150.0, rest=0.8, damping=2.0
    )
    grip = pf.coincide("grip", "load", (0.3, 0, 0), "panel", (-0.1, 0, 0))
    return pf.mechanism("tug and load", bodies, joints, forces=[tether], constraints=[grip], gravity=(0, 0, 0))


def top() -> pf.Mechanism:
    """Lagrange's top; its inertia about the mass centre, across the axis, is A - m l^2."""
    m = WEIGHT / 9.80665
    body = pf.body("top", m, com=(0, 0, ARM), inertia=(A - m * ARM**2, A - m * ARM**2, C))
    return pf.mechanism("Lagrange's top", [body], [pf.joint("peg", "spherical", "world", "top")], gravity=(0, 0, -9.80665))


def start(m: pf.Mechanism) -> tuple[np.ndarray, np.ndarray]:
    q = {"load flies.x": 1.6, "panel flies.x": 2.0}
    v = {"tug flies.vx": 0.2, "tug flies.wz": 1.5, "load flies.vy": 0.8, "load flies.wx": 2.0, "panel flies.wy": -3.0}
    there = pf.assemble(m, q, v)
    return there.q, there.v


def momentum(m: pf.Mechanism, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """(times, 6) momentum of all bodies about their mass centre, summed from R (m v) and R (I w) of each body."""
    total = np.zeros((len(q), 6))
    mass = np.array([float(ca.DM(b.mass)) for b in m.bodies])
    centres, carried, turning = [], [], []
    for b, body_mass in zip(m.bodies, mass, strict=True):
        com, I, at = np.array(ca.DM(b.com)).ravel(), np.array(ca.DM(b.inertia)), pf.forward_kinematics(m, q)[b.name]
        u, w = (v[:, m.v_slices[f"{b.name} flies"]][:, i : i + 3] for i in (0, 3))
        centres.append(at.position + at.rotation @ com)
        carried.append(body_mass * np.einsum("tij,tj->ti", at.rotation, u + np.cross(w, com)))
        turning.append(np.einsum("tij,tj->ti", at.rotation, w @ I))
    middle = np.einsum("b,bti->ti", mass, np.array(centres)) / mass.sum()
    for c, p, L in zip(centres, carried, turning, strict=True):
        total += np.hstack([p, L + np.cross(c - middle, p)])
    return total


def run() -> xr.Dataset:
    m, spinning = mechanism(), top()
    q, v = start(m)
    keep = {"duration": DURATION, "step": STEP, "every": EVERY, "error_bound": 1.0}
    out: dict[str, tuple] = {}
    for name, system in (("full", m), ("reduced", pf.reduce(m))):
        r = pf.run(system, q, v, **keep)
        all_of_it = momentum(m, r["q"].values, r["v"].values)
        out[f"{name} momentum"] = (("time", "entry"), all_of_it)
        out[f"{name} q"] = (("time", "coordinate"), r["q"].values)
        one = r["v"].values[:, m.v_slices["load flies"]][:, :3]
        out[f"{name} load"] = ("time", 5.0 * np.linalg.norm(one, axis=1))
    tilt = np.array([np.sin(0.3), 0, 0, np.cos(0.3)])
    for name, system in (("full", spinning), ("reduced", pf.reduce(spinning))):
        r = pf.run(system, tilt, [0.4, 0.3, SPIN_UP], **keep)
        x, y, z, w = r["q"].values.T
        up = np.stack([2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)], axis=1)  # the vertical in the body
        L = r["v"].values * [A, A, C]
        kinetic = (L * r["v"].values).sum(axis=1) / 2
        conserved = np.stack([L[:, 2], (L * up).sum(axis=1), kinetic + WEIGHT * ARM * up[:, 2]], axis=1)
        out[f"{name} top"] = (("time", "what"), conserved)
    return xr.Dataset(out, coords={"time": r["time"].values, "what": ["spin", "vertical", "energy"]})


def changes(result: xr.Dataset, name: str) -> np.ndarray:
    """Absolute change of each column since the start."""
    x = result[name].values
    return np.abs(x - x[0])


def figures(result: xr.Dataset) -> dict[str, Any]:
    figure = blank_figure(9.0, 4.0)
    bodies, tops = figure.subplots(1, 2)
    floor, t = 1e-17, result["time"]
    for name, style in (("full", "C1"), ("reduced", "C0")):
        of_all = changes(result, f"{name} momentum")
        bodies.semilogy(t, np.linalg.norm(of_all[:, :3], axis=1) + floor, style + ":", label=f"{name}: linear [N s]")
        bodies.semilogy(t, np.linalg.norm(of_all[:, 3:], axis=1) + floor, style + "-", label=f"{name}: angular [N m s]")
        of_top = changes(result, f"{name} top")
        tops.semilogy(t, of_top[:, 0] + floor, style + ":", label=f"{name}: spin")
        tops.semilogy(t, of_top[:, 1] + floor, style + "-", label=f"{name}: about the vertical")
    bodies.set(
        xlabel="time [s]",
        ylabel="change (1e-17: none)",
        title="momentum of three bodies, a spring, a closure",
        ylim=(1e-18, 1e-2),
    )
    tops.set(xlabel="time [s]", ylabel="change [N m s] (1e-17: none)", title="momenta of Lagrange's top", ylim=(1e-18, 1e-2))
    for ax in (bodies, tops):
        ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=2, fontsize="small")
    return {"momenta": figure}


def claims(result: xr.Dataset) -> Iterator[Claim]:
    here = "[chhabra14 (3.3.35)]"
    for name, bound, how in (("reduced", 1e-12, "at most"), ("full", 1e-9, "at least")):
        worst = float(changes(result, f"{name} momentum").max())
        target, tolerance = (0, bound) if how == "at most" else (bound, 0)
        more = () if how == "at most" else (how,)
        yield Claim(f"{name}: change of the momentum of all bodies", worst, target, tolerance, here, *more)
    yield Claim("change of the load's momentum [N s]", float(np.ptp(result["full load"].values)), 0.5, 0, here, "at least")
    off = float(np.abs(result["reduced q"].values - result["full q"].values).max())
    yield Claim("reduced minus full, q [m, 1]", off, 0, 1e-6, here)
    spin, vertical, energy = changes(result, "reduced top").max(axis=0)
    yield Claim("reduced: change of the spin [N m s]", float(spin), 0, 1e-12, "[chhabra14 (4.4.32)]")
    yield Claim("reduced: change about the vertical [N m s]", float(vertical), 0, 1e-12, here)
    _, vertical_full, energy_full = changes(result, "full top").max(axis=0)
    yield Claim("full: change about the vertical [N m s]", float(vertical_full), 1e-9, 0, here, "at least")
    yield Claim("ratio of energy errors, reduced to full", float(energy / energy_full), 0.1, 0, "(ours)", "at most")
