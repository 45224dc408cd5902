"""Cost of one forward dynamics evaluation against the number of bodies, on log-log axes with the fitted slope.

(a) A serial chain of revolute bodies with axes alternately along y and z, by the articulated-body algorithm, compared with
`pin.abaInParallel`.
(b) A ladder of four-bars with a closure for every second body: N + 1 uprights on the ground and N rungs, each attached to one
upright in the tree and closed to the next by a point, of whose three rows the planar mechanism needs two; by "gauss", compared
with `pin.constraintDynamics`, looped in Python, with the small regularisation (1e-10) that it needs for redundant rows.

Each length is timed alternately with its peer; the time to trace and compile into an empty cache is recorded. The slope is that
of the straight line through the logarithms. A series ends early where building would take more than PATIENCE.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from unittest import mock

import matplotlib
import numpy as np
import pinocchio as pin

import pfaffian as pf
from benchmarks.check import STATES, agree
from benchmarks.forward_dynamics import pinocchio_call
from benchmarks.ours import acceleration, prepared
from benchmarks.peers import pinocchio_closures, pinocchio_model, twin
from benchmarks.result import Comparison, Goal
from benchmarks.robots import random_states
from benchmarks.timing import Options, interleaved

matplotlib.use("Agg")


def chain(n: int) -> pf.Mechanism:
    """A serial chain of n equal bodies, one metre from joint to joint, every velocity actuated."""
    bodies = [pf.body(f"b{i}", 1.0, (0.5, 0.1, 0.05), (0.02, 0.1, 0.11)) for i in range(n)]
    joints = [
        pf.joint(f"j{i}", "revolute", f"b{i - 1}" if i else "world", f"b{i}",
                 axis=(0, 1, 0) if i % 2 else (0, 0, 1), placement=pf.pose((1, 0, 0) if i else (0, 0, 0)))
        for i in range(n)
    ]  # fmt: skip
    return pf.actuate_all(pf.mechanism(f"chain of {n}", bodies, joints))


def ladder(n: int) -> pf.Mechanism:
    """n four-bars side by side: n + 1 uprights and n rungs of one metre and one kilogram, 2 n + 1 bodies."""
    rod, bodies, joints, closures = 1 / 12, [], [], []
    for i in range(n + 1):
        bodies.append(pf.body(f"upright {i}", 1.0, (0, 0, 0.5), (rod, rod, 0)))
        ground = pf.pose((i, 0, 0))
        joints.append(pf.joint(f"foot {i}", "revolute", "world", f"upright {i}", axis=(0, 1, 0), placement=ground))
        if i < n:
            bodies.append(pf.body(f"rung {i}", 1.0, (0.5, 0, 0), (0, rod, rod)))
            top = pf.pose((0, 0, 1))
            joints.append(pf.joint(f"top {i}", "revolute", f"upright {i}", f"rung {i}", axis=(0, 1, 0), placement=top))
            closures.append(pf.coincide(f"corner {i}", f"rung {i}", (1, 0, 0), f"upright {i + 1}", (0, 0, 1)))
    return pf.actuate_all(pf.mechanism(f"ladder of {n}", bodies, joints, constraints=closures))


LENGTHS = (4, 8, 16, 32, 64, 128)
LINEAR = Goal("slope", "<=", 1.1)
PATIENCE = 30.0
"""Limit of tracing and compiling [s]; a length that is expected to take longer is left out, with all greater lengths."""
REGULARISED_SAME = 1e-6


def run(o: Options) -> Iterator[Comparison]:
    with tempfile.TemporaryDirectory() as cache, mock.patch.dict(os.environ, PFAFFIAN_CACHE=cache):
        yield from both(o)


def both(o: Options) -> Iterator[Comparison]:
    """The two series with their slopes, and the figure."""
    lengths = LENGTHS[:2] if o.quick else LENGTHS
    found = {}
    for what, peer, one, goal in (
        ("serial chain", "pin.abaInParallel", serial, LINEAR),
        ("ladder of four-bars", "pin.constraintDynamics", closed, None),
    ):
        rows = list(series(what, one, lengths, o))
        slope = fitted([c.notes["bodies"] for c in rows], [c.ours.median for c in rows])
        theirs = fitted([c.notes["bodies"] for c in rows], [c.peer.median for c in rows if c.peer])
        operations = fitted([c.notes["bodies"] for c in rows], [c.notes["operations"] for c in rows])
        last = rows[-1].notes | {"slope": slope, "slope of operations": operations, f"slope of {peer}": theirs}
        found[what, peer] = rows
        yield from rows[:-1]
        yield replace(rows[-1], goal=goal, notes=last)
    draw(found, o)


def series(what: str, one: Callable, lengths: tuple[int, ...], o: Options) -> Iterator[Comparison]:
    """One comparison for each length, as long as building takes no longer than PATIENCE."""
    took: list[float] = []
    for n in lengths:
        if len(took) > 1 and took[-1] ** 2 / took[-2] > PATIENCE:
            return
        c = one(what, n, o)
        took.append(c.notes["trace and compile [s]"])
        yield c


def serial(what: str, n: int, o: Options) -> Comparison:
    m, w = chain(n), twin(chain(n))
    states, start = random_states(m, o.runs), time.perf_counter()
    kernel = acceleration(m, "articulated")
    took = time.perf_counter() - start
    ours, out = prepared(kernel, m, *states)
    theirs, a = pinocchio_call(pinocchio_model(w), *(x.T for x in states))
    ours(), theirs()
    agree(f"{what} of {n}", out[:STATES], a.T[:STATES])
    times = interleaved({"": ours, "pin.abaInParallel": theirs}, o.runs, o)
    notes = {"bodies": n, "operations": kernel.program.n_ops, "trace and compile [s]": took}
    return Comparison(f"{what}, {n} bodies", "an evaluation", *times.values(), None, notes)


def closed(what: str, n: int, o: Options) -> Comparison:
    """n: twice the number of closures."""
    m = ladder(n // 2)
    states, start = leaning(m, o.runs), time.perf_counter()
    kernel = acceleration(m, "gauss")
    took = time.perf_counter() - start
    ours, out = prepared(kernel, m, *states)
    w = twin(m)
    v_dot, theirs = regularised(m, states)
    ours()
    agree(f"{what} of {n // 2}", out[:STATES, w.v_order], v_dot, REGULARISED_SAME)
    times = interleaved({"": ours, "pin.constraintDynamics": theirs}, o.runs, o)
    notes = {"bodies": len(m.bodies), "operations": kernel.program.n_ops, "trace and compile [s]": took}
    return Comparison(f"{what}, {len(m.bodies)} bodies", "an evaluation", *times.values(), None, notes)


def leaning(m: pf.Mechanism, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """q, v, u (count, n): all uprights of a run have the same lean, all rungs are level; never flat on the ground."""
    random = np.random.default_rng(7)
    side = np.array([1.0 if name.startswith("foot") else -1.0 for name in m.q_names])
    lean, rate = random.uniform(-1.2, 1.2, (count, 1)), random.normal(size=(count, 1))
    # A rung compensates the lean of its upright; the last upright has no rung.
    return lean * side, rate * side, random.normal(size=(count, m.nu))


def regularised(m: pf.Mechanism, states: tuple[np.ndarray, ...]) -> tuple[np.ndarray, Callable[[], object]]:
    """Pinocchio's accelerations at the first states, and a call that computes all of them."""
    w = twin(m)
    model = pinocchio_model(w)
    data, (models, datas) = model.createData(), pinocchio_closures(w, model)
    pin.initConstraintDynamics(model, data, models, datas)
    settings = pin.ProximalSettings(1e-12, 1e-12, 1e-10, 1)
    orders = (w.q_order, w.v_order, w.v_order)
    rows = list(zip(*(np.ascontiguousarray(x[:, i]) for x, i in zip(states, orders, strict=True)), strict=True))

    def one(row: tuple[np.ndarray, ...]) -> np.ndarray:
        return pin.constraintDynamics(model, data, *row, models, datas, settings)

    return np.array([np.array(one(row)) for row in rows[:STATES]]), lambda: [one(row) for row in rows]


def fitted(bodies: list[int], cost: list[float]) -> float:
    """Exponent of cost against the number of bodies."""
    return float(np.polyfit(np.log(bodies), np.log(cost), 1)[0])


def draw(found: dict[tuple[str, str], list[Comparison]], o: Options) -> None:
    """chain_length.png in the folder of figures."""
    from matplotlib import pyplot as plt
    from matplotlib.ticker import FuncFormatter, NullLocator, ScalarFormatter

    figure, (cost, build) = plt.subplots(1, 2, figsize=(11, 5), layout="constrained")
    for ((what, peer), rows), colour in zip(found.items(), ("tab:blue", "tab:orange"), strict=True):
        bodies = np.array([c.notes["bodies"] for c in rows])
        sides = (("pfaffian", [c.ours.median for c in rows], "o-"), (peer, [c.peer.median for c in rows if c.peer], "s--"))
        for name, ns, style in sides:
            label = f"{what}, {name}: slope {fitted(list(bodies), ns):.2f}"
            cost.loglog(bodies, np.array(ns) / 1e3, style, color=colour, label=label)
        build.loglog(bodies, [c.notes["trace and compile [s]"] for c in rows], "o-", color=colour, label=what)
    cost.set(xlabel="bodies", ylabel="time of one evaluation [us]", title="Forward dynamics, one core")
    build.set(xlabel="bodies", ylabel="trace and compile [s]", title="Building the kernel")
    for ax in (cost, build):
        ax.set_xticks(LENGTHS[: 2 if o.quick else None])
        ax.xaxis.set_major_formatter(ScalarFormatter())
        ax.xaxis.set_minor_locator(NullLocator())
        ax.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:g}"))
        ax.grid(True, which="major", alpha=0.4)
        ax.spines[["top", "right"]].set_visible(False)
    figure.legend(*cost.get_legend_handles_labels(), loc="outside lower center", ncols=2, fontsize=9, frameon=False)
    o.out.mkdir(parents=True, exist_ok=True)
    figure.savefig(o.out / "chain_length.png", dpi=150)
    plt.close(figure)
