"""Lines along paths, inputs within limits, friction that follows loads, and loads over states.

* Forces along a line through four points and round a cylinder, beside a spring between two points, of the same machine.
* Inverse dynamics of cable robots within limits, beside SciPy's bounded least squares with the motion as heavy rows; daqp, by
  its own time in C, is in the notes. Both get the matrices ready, while ours contains the kinematics of the machine.
* A step with pins whose friction follows their loads, beside the same step without friction.
* Peak loads of scissor lifts at ten states each, into a store.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import lsq_linear

import pfaffian as pf
from benchmarks.check import CheckFailed, agree
from benchmarks.closed_loop import STEPS, loop
from benchmarks.result import Comparison, Goal
from benchmarks.timing import Options, interleaved

F = pf.forces
EXAMPLES = Path(__file__).parents[1] / "examples"
SAME = 1e-4
"""Difference from SciPy, whose rows for the motion weigh HEAVY times those for the smallest inputs."""

HEAVY = 1e4
PEER = 64
"""Number of problems that SciPy solves in one call."""


def run(o: Options) -> Iterator[Comparison]:
    yield from lines(o)
    for m in (planar(),) if o.quick else (planar(), spatial()):
        yield within_limits(m, o)
    yield friction(o)
    yield loads(o)


def lines(o: Options) -> Iterator[Comparison]:
    """Forces along lines beside a spring."""
    law = {"stiffness": 30.0, "rest": 1.0, "damping": 0.7}
    ends = ("world", (0.3, -1.5, 1.0)), ("load", (0.7, 0.2, -0.8))
    spring = pf.spring("s", "world", "load", point_a=ends[0][1], point_b=ends[1][1], **law)
    between = {
        "through four points": [("world", (0, 1, 0)), ("world", (0, 1, 1))],
        "round a cylinder": [F.guide("world", 0.2, axis=(1, 1, 0))],
    }
    free, body = pf.joint("free", "free", "world", "load"), pf.body("load", 1.0, inertia=(0.1, 0.2, 0.3))
    q = np.tile([0.1, 0.2, 0.3, 0, 0, 0, 1.0], (o.runs, 1))
    q[:, :3] += np.random.default_rng(1).uniform(-0.2, 0.2, (o.runs, 3))
    for what, middle in between.items():
        line = F.path_spring("s", F.path([ends[0], *middle, ends[1]]), **law)
        machines = [pf.mechanism("load", [body], [free], forces=[force]) for force in (line, spring)]
        (ours, operations), (peer, fewer) = (loop(m, None, q, np.zeros((o.runs, 6)), backend=o.backend) for m in machines)
        times = interleaved({"": ours, "spring": peer}, o.runs * STEPS, o)
        notes = {"operations more": operations - fewer}
        yield Comparison(f"line {what}", "a step", times[""], times["spring"], None, notes)


def planar() -> pf.Mechanism:
    """A plate in a vertical plane on four cables."""
    ends = zip([(-0.05, -0.03), (0.05, -0.03), (0.05, 0.03), (-0.05, 0.03)], [(0, 0), (1, 0), (1, 1), (0, 1)], strict=True)
    ropes = [F.path([("world", (x, 0, z)), ("plate", (a, 0, b))]) for (a, b), (x, z) in ends]
    winches = [F.winch(f"w{i}", rope, limits=(2, 80)) for i, rope in enumerate(ropes)]
    plane = pf.joint("p", "planar", "world", "plate", axis=(0, -1, 0), placement=(0.5, 0, 0.5))
    return pf.mechanism("four cables", [pf.body("plate", 1.0, inertia=0.01)], [plane], actuators=winches)


def spatial() -> pf.Mechanism:
    """A box on eight cables from the corners of a room."""
    corners = list(product((-1, 1), repeat=3))
    ropes = [F.path([("world", (2 * x, 1.5 * y, 1 + z)), ("box", (0.1 * x, -0.15 * y, -0.2 * z))]) for x, y, z in corners]
    winches = [F.winch(f"w{i}", rope, limits=(5, 400)) for i, rope in enumerate(ropes)]
    free = pf.joint("free", "free", "world", "box", placement=(0, 0, 1))
    return pf.mechanism("eight cables", [pf.body("box", 5.0, inertia=(0.1, 0.12, 0.14))], [free], actuators=winches)


def within_limits(m: pf.Mechanism, o: Options) -> Comparison:
    """Tensions within limits beside SciPy and daqp."""
    random = np.random.default_rng(2)
    q, v, a = np.tile(m.neutral(), (o.runs, 1)), np.zeros((o.runs, m.nv)), random.normal(size=(o.runs, m.nv))
    q[:, :2] += random.uniform(-0.1, 0.1, (o.runs, 2))
    terms = pf.compile_terms(m, {"B": lambda T: T.B, "M": lambda T: T.M, "h": lambda T: T.c - T.f}, backend="numpy")(q, v)
    tau = np.einsum("bij,bj->bi", terms["M"], a) + terms["h"].reshape(o.runs, -1)
    low, high = m.u_limits.T
    n = m.nu

    def scipy() -> np.ndarray:
        rows = [np.vstack([HEAVY * B, np.eye(n)]) for B in terms["B"][:PEER]]
        goals = [np.r_[HEAVY * t, np.zeros(n)] for t in tau[:PEER]]
        return np.array([lsq_linear(A, b, (low, high), method="bvls").x for A, b in zip(rows, goals, strict=True)])

    def ours() -> Any:
        return pf.inverse_dynamics(m, q, v, a, limits="actuators", beyond="nan")

    found, answer = ours().u[:PEER], scipy()
    good = np.isfinite(found).all(axis=1)
    off = agree(m.name, found[good], answer[good], SAME)
    times = interleaved({"": ours}, o.runs, o) | {"scipy": interleaved({"scipy": scipy}, min(PEER, o.runs), o)["scipy"]}
    notes: dict[str, Any] = {"difference": off, "out of reach": int((~good).sum())}
    if find_spec("daqp"):
        notes["daqp in C [us]"] = in_daqp(terms["B"], tau, low, high)
        notes["times daqp"] = 1e3 * notes["daqp in C [us]"] / times[""].median
    return Comparison(f"inputs within limits, {m.name}", "a state", times[""], times["scipy"], Goal("ratio", ">=", 10), notes)


def in_daqp(B: np.ndarray, tau: np.ndarray, low: np.ndarray, high: np.ndarray) -> float:
    """daqp's own median time for a state, set-up included [us]."""
    from daqp import solve

    n, kinds = B.shape[2], np.r_[np.zeros(B.shape[2]), np.full(B.shape[1], 5)].astype(np.intc)
    spent = []
    for rows, goal in zip(B, tau, strict=True):
        given = np.eye(n), np.zeros(n), np.ascontiguousarray(rows), np.r_[high, goal], np.r_[low, goal], kinds
        info = solve(*given)[3]
        spent.append(info["solve_time"] + info["setup_time"])
    return 1e6 * float(np.median(spent))


def friction(o: Options) -> Comparison:
    """A step of a four-bar with friction in all of its pins beside a step without."""
    plain = pf.read(EXAMPLES / "four_bar.yaml")[0]
    hinges = [*(j.name for j in plain.joints), *plain.loop_joints]
    rough = plain.with_(forces=[F.pin_friction(f"{n} pin", n, 0.1, 0.01, smooth=0.05) for n in hinges])
    q = np.tile(pf.assemble(plain).q, (o.runs, 1))
    (ours, operations), (peer, fewer) = (loop(m, None, q, np.zeros((o.runs, m.nv)), backend=o.backend) for m in (rough, plain))
    times = interleaved({"": ours, "without": peer}, o.runs * STEPS, o)
    if not np.isfinite(ours()).all():
        raise CheckFailed("four-bar on pins: not all numbers are finite")
    notes = {"operations": operations, "without friction": fewer}
    return Comparison("friction of four pins", "a step", times[""], times["without"], Goal("ratio", ">=", 1 / 1.5), notes)


def loads(o: Options) -> Comparison:
    """Peak loads of scissor lifts at ten states each."""
    m, count = pf.read(EXAMPLES / "scissor_lift.yaml")[0], o.runs if o.quick else 10**5
    stroke, guess = {"q:a": np.linspace(0.3, 1.0, 10)}, {"slide": 0.866, "b": 2.618, "platform": -2.618}

    def ours() -> Any:
        with tempfile.TemporaryDirectory() as folder:
            space = {"load": np.linspace(20, 60, count)}
            how = {"store": Path(folder) / "loads.zarr", "keep": "loads", "states": stroke, "guess": guess, "threads": 1}
            return float(pf.loads(pf.sweep(m, space, backend=o.backend, **how))["force"].max())

    if not np.isfinite(ours()):
        raise CheckFailed("scissor lifts: not all loads are finite")
    times = interleaved({"": ours}, 10 * count, o)
    return Comparison(f"loads of {count} scissor lifts", "a state", times[""], None, Goal("median", "<=", 5e3))
