"""A first run reports its stages if this is requested or the wait is long; otherwise it prints nothing."""

from __future__ import annotations

import threading
import time

import casadi as ca
import pytest

import pfaffian as pf
from pfaffian import kernel
from pfaffian.evaluate import progress
from pfaffian.evaluate.progress import progress_line
from pfaffian.kernel.build.waiting import tell


def pendulum(length: float) -> pf.Mechanism:
    bob = pf.body("bob", 1.0, (0, 0, -length), 0.01)
    return pf.mechanism("pendulum", [bob], [pf.joint("hinge", "revolute", "world", "bob", axis=(0, 1, 0))])


def tip() -> ca.Function:
    T = pf.symbols(pendulum(1.03))
    return ca.Function("f", [T.q, T.v], [T.kinematics.position("bob")])


@pytest.fixture
def empty_store(tmp_path, monkeypatch):
    monkeypatch.setenv("PFAFFIAN_CACHE", str(tmp_path))


def test_a_first_run_reports_its_stage(empty_store, capfd):
    pf.run(pendulum(1.01), duration=0.01, progress=True)
    printed = capfd.readouterr().err
    assert "pendulum: deriving the equations" in printed
    assert "10/10" in printed
    pf.run(pendulum(1.02), duration=0.01)
    assert capfd.readouterr().err == ""


def test_each_stage_is_reported_unless_the_code_is_known(empty_store):
    heard: list[str] = []

    def compiled() -> None:
        function = kernel.compile(tip, key="a key of this test", backend="c")
        function(*[[0.1] * n for n in function.shape.inputs])

    with kernel.listening(heard.append):
        compiled()
        assert heard[0] == "deriving the equations"
        assert heard[1] == "compiling, once, 0 of 1 pieces done"
        assert heard[-1] == "testing the compiled code"
        assert heard.count("compiling, once, 0 of 1 pieces done") > 1, "repeated while it lasts"
        heard.clear()
        compiled()
        assert heard == []
    with kernel.listening(heard.append):
        pass
    kernel.compile(tip, backend="numpy")
    assert heard == [], "no report after the listener is removed"


def test_a_long_wait_is_reported_without_a_request(empty_store, capfd, monkeypatch):
    monkeypatch.setattr(progress, "LONG", 0.0)
    with progress_line("an \x1b arm", False), progress_line("a part of it", True):
        kernel.compile(tip, key="another key", backend="c")
    printed = capfd.readouterr().err.splitlines()
    assert "pfaffian: an \\x1b arm: compiling, this once ..." in printed and len(printed) == len(set(printed)) <= 3
    with progress_line("an arm", False):
        kernel.compile(tip, key="another key", backend="c")
    assert capfd.readouterr().err == "", "nothing is compiled"


def watching() -> threading.Thread:
    """The thread that watches waits, alone."""
    (found,) = progress._WATCHING
    return found


def test_one_thread_watches_the_waits_of_many_calls(capfd, monkeypatch):
    """It prints while a long activity tells nothing more, and ends when none waits."""
    monkeypatch.setattr(progress, "LONG", 60.0)
    monkeypatch.setattr(progress, "_WATCHING", [])
    seen = []
    for _ in range(5):
        with progress_line("quick", False):
            tell("deriving")
            seen.append(watching())
    assert len(set(seen)) == 1 and seen[0].daemon
    monkeypatch.setattr(progress, "LONG", 0.05)
    for name in ("slow", "slow again"):
        monkeypatch.setattr(progress, "_WATCHING", [])
        with progress_line(name, False):
            tell("deriving")
            thread = watching()
            while not (printed := capfd.readouterr().err):
                time.sleep(0.01)
        thread.join()
        assert printed == f"pfaffian: {name}: deriving, this once ...\n" and progress._WATCHING == []
