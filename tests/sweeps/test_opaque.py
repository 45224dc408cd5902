"""Sweeps with a law in Python: the store of one law is never continued with another, however the law is made."""

from __future__ import annotations

import functools
import subprocess
import sys
import threading
from types import ModuleType

import casadi as ca
import numpy as np
import pytest

import pfaffian as pf
import pfaffian.sweeps.engine as engine
from pfaffian import control, statistics
from pfaffian.errors import ModelError
from pfaffian.sweeps.opaque import UNKNOWN, content

RAIL = pf.joint("rail", "prismatic", "world", "cart", axis=(1, 0, 0))
MASS = pf.Parameter("mass", 2.0, "kg")
M = pf.mechanism("cart", [pf.body("cart", MASS)], [RAIL], actuators=[pf.actuator("motor", "rail")], parameters=[MASS])
SPACE = {"q:rail": np.linspace(-1.0, 1.0, 12)}
HOW = {"duration": 0.05, "step": 0.01, "backend": "interpreter", "block": 4, "keep": {"end": statistics.final("q")}}

GAIN, GAINS = 1.0, {"gain": np.array([1.0])}
OTHERS = ModuleType("others")
OTHERS.gain = 1.0


def push(q, gain):
    return np.full(q.shape, float(gain))


def by_global(t, q, v):
    return push(q, GAIN)


def by_dict(t, q, v):
    return push(q, GAINS["gain"][0])


def by_module(t, q, v):
    return push(q, OTHERS.gain)


def by_default(t, q, v, gain=GAINS):
    return push(q, gain["gain"][0])


def by_inner(t, q, v):
    return (lambda: by_global(t, q, v))()


def rarely(t, q, v):
    """Its gain matters at no state of the sweep."""
    return np.where(q > 5.0, GAIN, 1.0)


class Law:
    factor = 1.0

    def __init__(self):
        self.gain = [1.0]

    def __call__(self, t, q, v):
        return push(q, self.gain[0] * self.factor)

    def method(self, t, q, v):
        return self(t, q, v)


class Slotted:
    __slots__ = ("gain",)

    def __init__(self):
        self.gain = 1.0

    def __call__(self, t, q, v):
        return push(q, self.gain)


CELL, LAW, SLOTTED = [1.0], Law(), Slotted()


def enclosed():
    cell = CELL
    return lambda t, q, v: push(q, cell[0])


def change_globals(to):
    global GAIN
    GAIN = to
    GAINS["gain"][0], OTHERS.gain, CELL[0] = to, to, to
    LAW.gain[0], SLOTTED.gain = to, to


LAWS = {
    "a global": by_global,
    "an array in a dict": by_dict,
    "a module": by_module,
    "a default": by_default,
    "an inner function": by_inner,
    "a rare branch": rarely,
    "a closure": enclosed(),
    "a partial": functools.partial(lambda cell, t, q, v: push(q, cell[0]), CELL),
    "an object": LAW,
    "a bound method": LAW.method,
    "slots": SLOTTED,
    "a wrapper": functools.wraps(by_global)(lambda *given: by_global(*given)),
}


@pytest.fixture(autouse=True)
def restored():
    yield
    change_globals(1.0)
    Law.factor = 1.0


@pytest.mark.parametrize("case", LAWS)
def test_the_store_of_a_law_that_has_changed_is_refused(tmp_path, case):
    law = control.python_law(LAWS[case], 0.01)
    first = pf.sweep(M, SPACE, store=tmp_path / "a.zarr", control=law, shard="1/2", **HOW).load()
    change_globals(500.0)
    with pytest.raises(ModelError, match=r"is of another sweep: law in Python(, inputs of the law in Python)? differ"):
        pf.sweep(M, SPACE, store=tmp_path / "a.zarr", control=law, **HOW)
    change_globals(1.0)
    found = pf.sweep(M, SPACE, store=tmp_path / "a.zarr", control=law, **HOW).load()
    done = first["status"].values == 0
    assert done.any() and not done.all() and (found["status"].values == 0).all()
    np.testing.assert_array_equal(found["end"].values[done], first["end"].values[done])
    alone = pf.run(M, {"rail": SPACE["q:rail"][4:8]}, control=law, duration=0.05, step=0.01, backend="interpreter")
    np.testing.assert_array_equal(found["end"].values[4:8], alone["q"].values[:, -1])


def test_a_method_that_is_replaced_in_its_class_is_another_law(tmp_path):
    law = control.python_law(LAW, 0.01)
    pf.sweep(M, SPACE, store=tmp_path / "a.zarr", control=law, **HOW)
    Law.factor = 2.0
    with pytest.raises(ModelError, match="another sweep: law in Python"):
        pf.sweep(M, SPACE, store=tmp_path / "a.zarr", control=law, **HOW)


def test_data_that_no_digest_shows_are_noticed_by_what_the_law_gives(tmp_path):
    """The gain is in a file that the law reads."""
    (tmp_path / "gain").write_text("1")
    law = control.python_law(lambda t, q, v: push(q, (tmp_path / "gain").read_text()), 0.01)
    pf.sweep(M, SPACE, store=tmp_path / "a.zarr", control=law, **HOW)
    (tmp_path / "gain").write_text("2")
    with pytest.raises(ModelError, match="another sweep: inputs of the law in Python differ"):
        pf.sweep(M, SPACE, store=tmp_path / "a.zarr", control=law, **HOW)


def test_a_law_whose_numbers_depend_on_the_order_of_the_blocks_is_refused(tmp_path):
    calls = []
    draw = np.random.default_rng(1)
    for law in (lambda t, q, v: push(q, calls.append(t) or len(calls)), lambda t, q, v: draw.normal(size=q.shape)):
        with pytest.raises(ModelError, match="gives other inputs when the same runs are computed again"):
            pf.sweep(M, SPACE, store=tmp_path / "a.zarr", control=control.python_law(law, 0.01), **HOW)
    assert not (tmp_path / "a.zarr").exists()


class Integral:
    """A law with a memory that it clears at the first instant of each run."""

    def __init__(self):
        self.sum, self.threads = 0.0, set()

    def __call__(self, t, q, v):
        self.threads.add(threading.get_ident())
        self.sum = q if t == 0 else self.sum + q
        return -self.sum


def test_runs_with_a_law_in_python_are_one_at_a_time(tmp_path):
    """Blocks on several threads would mix what the law remembers of each."""
    kept = Integral()
    found = pf.sweep(M, SPACE, store=tmp_path / "a.zarr", control=control.python_law(kept, 0.01), threads=4, **HOW).load()
    alone = pf.sweep(M, SPACE, store=tmp_path / "b.zarr", control=control.python_law(Integral(), 0.01), threads=1, **HOW).load()
    assert found.identical(alone) and len(kept.threads) > 1
    with pytest.raises(ModelError, match="what a law in Python remembers from earlier runs is part of it: make it anew"):
        pf.sweep(M, SPACE, store=tmp_path / "a.zarr", control=control.python_law(kept, 0.01), **HOW)


def test_a_law_that_cannot_be_read_is_never_continued(tmp_path):
    lock = threading.Lock()

    def locked(t, q, v):
        with lock:
            return push(q, 1.0)

    law = control.python_law(locked, 0.01)
    assert (pf.sweep(M, SPACE, store=tmp_path / "a.zarr", control=law, **HOW)["status"].values == 0).all()
    with pytest.raises(
        ModelError, match=rf"another sweep: law in Python \('{UNKNOWN}, since it holds .*lock.* cannot be pickled"
    ):
        pf.sweep(M, SPACE, store=tmp_path / "a.zarr", control=law, **HOW)


def test_a_law_made_anew_continues_the_store(tmp_path, monkeypatch):
    how = HOW | {"store": tmp_path / "a.zarr", "threads": 1}
    pf.sweep(M, SPACE, control=control.python_law(by_dict, 0.01), shard="2/3", **how)
    computed, blocks = engine.computed, []
    monkeypatch.setattr(engine, "computed", lambda sweep, k, threads: (blocks.append(k), computed(sweep, k, threads))[1])
    pf.sweep(M, SPACE, control=control.python_law(by_dict, 0.01), **how)
    assert blocks == [0, 2]


WALKED = """
import functools, sys
sys.path.insert(0, {place!r})
import settings
from pfaffian.sweeps.opaque import content
import pfaffian as pf
names, length = {{"b", "a", "zz", "c"}}, pf.Parameter("length", 1.0)
m = pf.mechanism("box", [pf.body("box", length)], [pf.joint("x", "prismatic", "world", "box")], parameters=[length])
def law(t, q, v):
    return [len(n) for n in names] + settings.gain * q + m.parameters[0].default
print(content(functools.partial(law, 1.0)))
"""


def test_the_digest_of_a_law_is_the_same_in_every_process(tmp_path):
    """Whatever the hashes of texts, the identities of parameters and the lines of a file are."""
    running = []
    for seed in ("1", "2"):
        (tmp_path / seed).mkdir()
        (tmp_path / seed / "settings.py").write_text("#\n" * int(seed) + "gain = 2\n")
        argv = [sys.executable, "-B", "-c", "\n" * int(seed) + WALKED.format(place=str(tmp_path / seed))]
        env = {"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)}
        running.append(subprocess.Popen(argv, env=env, stdout=subprocess.PIPE, text=True))
    first, second = (process.communicate()[0].strip() for process in running)
    assert first == second and len(first) == 64


def test_what_the_digest_of_a_function_covers():
    def same(x):
        return lambda t: x

    class Node:
        def __init__(self):
            self.own = self

    for x, y, equal in (
        (1, 1, True), (1, 1.0, False), (0.0, -0.0, False), ("1", b"1", False), ([1], (1,), False), ({1, 2}, {2, 1}, True),
        ({"a": 1}, {"a": 2}, False), (np.arange(3), np.arange(3), True), (np.arange(3), np.arange(3.0), False),
        (np.zeros((2, 3)), np.zeros((3, 2)), False), (Node(), Node(), True), (range(3), range(4), False),
        (np.sin, np.cos, False),
        (ca.DM([1, 2]), ca.DM([1, 2]), True), (ca.DM([1, 2]), ca.DM([1, 3]), False), (len, len, True),
        ([].append, [1].append, False),
        (pf.Parameter("a", 1.0), pf.Parameter("a", 1.0), True), (pf.Parameter("a", 1.0), pf.Parameter("a", 2.0), False),
        (M, M.with_(name="other"), False), (lambda: 1, lambda: 2, False), (property(len), property(repr), False),
    ):  # fmt: skip
        assert (content(same(x)) == content(same(y))) == equal, (x, y)
    assert not content(same(M)).startswith(UNKNOWN)


def test_a_law_of_expressions_is_compared_by_its_graph(tmp_path):
    for make in (
        lambda: control.Control(lambda T, z, w, y: control.Command(GAINS["gain"][0])),
        lambda: control.discrete(lambda s: control.Command(-s.terms.q * GAIN), 0.01),
    ):
        place = tmp_path / f"{len([*tmp_path.iterdir()])}.zarr"
        pf.sweep(M, SPACE, store=place, control=make(), **HOW)
        change_globals(500.0)
        with pytest.raises(ModelError, match="another sweep: mechanism, law, scheme, outputs and switches differ"):
            pf.sweep(M, SPACE, store=place, control=make(), **HOW)
        change_globals(1.0)
