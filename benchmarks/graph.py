"""A robot written as a graph, with poses as functions of the user's coordinates, compared with a tree of joints.

Forward dynamics of both, and the seconds and operations of tracing mass matrix and bias force.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import casadi as ca
import numpy as np

import pfaffian as pf
from benchmarks.check import STATES, agree
from benchmarks.ours import acceleration, prepared
from benchmarks.result import Comparison
from benchmarks.robots import panda_arm, random_states
from benchmarks.timing import Options, interleaved


def run(o: Options) -> Iterator[Comparison]:
    tree = pf.actuate_all(panda_arm())
    graphs = {"edges": as_graph(tree), "edges, other v": pf.actuate_all(turned(as_graph(tree)))}
    states = random_states(tree, o.runs)
    kernel = acceleration(tree, "articulated")
    ours, reference = prepared(kernel, tree, *states)
    calls, found, notes = {"": ours}, {}, {"": {"operations": kernel.program.n_ops} | traced(tree)}
    for what, m in graphs.items():
        made = acceleration(m, "articulated" if pf.symbols(m).kinematics.rates.plain else "gauss")
        T = chosen(m)
        q, v, u = states
        calls[what], v_dot = prepared(made, m, q, v @ np.linalg.inv(T).T, u)
        found[what] = (v_dot, T)
        notes[what] = {"operations": made.program.n_ops} | traced(m)
    for call in calls.values():
        call()
    for what, (v_dot, T) in found.items():
        notes[what]["difference"] = agree(what, (v_dot @ T.T)[:STATES], reference[:STATES])
    times = interleaved(calls, o.runs, o)
    yield Comparison("Panda arm, tree of joints", "an evaluation", times[""], None, None, notes[""])
    for what in graphs:
        yield Comparison(f"Panda arm, {what}", "an evaluation", times[what], times[""], None, notes[what])


def traced(m: pf.Mechanism) -> dict[str, float]:
    """Operations of M and c, and the processor time of tracing them [s]."""
    start = time.process_time()
    T = pf.symbols(m)
    f = ca.Function("terms", [T.q, T.v, m.p_symbols], [T.M, T.c], {"cse": True})
    return {"M and c": f.n_instructions(), "seconds to trace them": time.process_time() - start}


def as_graph(m: pf.Mechanism) -> pf.Mechanism:
    """A robot of revolute and prismatic joints as a graph: its joint values as coordinates, every joint a pose as a function
    of them."""
    moving = [j for j in m.joints if j.nv]
    names = [j.name for j in moving]
    x = pf.coordinates("x", names, names, lambda q: ca.SX.eye(len(names)), q_units=[j.q_units[0] for j in moving])

    def pose(j: pf.Joint, i: int):
        def of(k):
            a, sliding = k.q[i], j.kind.name == "prismatic"
            R = ca.SX.eye(3) if sliding else ca.blockcat([[ca.cos(a), -ca.sin(a), 0], [ca.sin(a), ca.cos(a), 0], [0, 0, 1]])
            return j.placement @ pf.Pose(R, ca.vertcat(0, 0, a if sliding else 0)) @ j.child_placement.inverse()

        return of

    joints = [pf.edge(j.name, j.parent, j.child, pose(j, names.index(j.name))) if j.nv else j for j in m.joints]
    return pf.actuate_all(pf.mechanism(f"{m.name} as a graph", m.bodies, joints, coordinates=[x], gravity=m.gravity))


def chosen(m: pf.Mechanism) -> np.ndarray:
    """T (nv, nv) of v0 = T v: running sums, each joint's rate the difference of two, where velocities are chosen."""
    n = m.nv
    return np.eye(n) - np.eye(n, k=-1) if m.velocities else np.eye(n)


def turned(m: pf.Mechanism) -> pf.Mechanism:
    """The graph with the running sums of the rates as velocities."""
    n = m.nv
    T = ca.sparsify(ca.DM(np.eye(n) - np.eye(n, k=-1)))
    return m.with_(velocities=pf.velocities(lambda k: ca.SX(T), [f"sum {i}" for i in range(n)], "rad/s"))
