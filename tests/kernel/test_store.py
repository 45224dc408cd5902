"""The store of compiled objects: many processes, kills, damage, pruning."""

import errno
import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import casadi as ca
import numpy as np
import pytest

from pfaffian import kernel
from pfaffian.errors import BuildError, notice_once
from pfaffian.kernel.build import object_store as store
from pfaffian.kernel.build import private_files
from tests.work import PATIENCE

SCRIPT = """
import casadi as ca, numpy as np
from pfaffian import kernel
x = ca.SX.sym("x", 3)
k = kernel.compile(ca.Function("f", [x], [ca.sin(x) * 7]), backend="c")
assert abs(k(np.ones(3))[0] - 7 * np.sin(1)).max() < 1e-12
"""


@pytest.fixture
def place(monkeypatch, tmp_path):
    monkeypatch.setenv("PFAFFIAN_CACHE", str(tmp_path / "store"))
    return tmp_path / "store" / f"pfaffian-{os.getuid()}"


def start(**options):
    return subprocess.Popen([sys.executable, "-c", SCRIPT], start_new_session=True, **options)


def entries(place):
    return sorted(p.name for p in place.glob("*.so")), sorted(p.name for p in place.glob("*.json"))


def small(factor=7):
    x = ca.SX.sym("x", 3)
    return ca.Function("f", [x], [ca.cos(x) * factor])


def test_processes_at_once_build_one_object(place):
    children = [start() for _ in range(4)]
    assert [c.wait(PATIENCE) for c in children] == [0] * 4
    assert [len(e) for e in entries(place)] == [3, 3]  # two are the interpreter and the passes
    assert not list(place.glob("tmp*"))


def test_killed_builds_leave_only_orphans(place):
    for delay in (0.35, 0.6):
        child = start()
        time.sleep(delay)
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()
    assert start().wait(PATIENCE) == 0
    assert [len(e) for e in entries(place)] == [3, 3]  # two are the interpreter and the passes


LONG = """
import casadi as ca
from pfaffian import kernel
from pfaffian.kernel.text import source
source.UNIT_STEPS = 5
x = ca.SX.sym("x", 12)
kernel.compile(ca.Function("f", [x], [ca.sin(x) * 7]), backend="c")
"""


@pytest.mark.parametrize("script", [SCRIPT, LONG], ids=["one unit", "several units"])
def test_an_interrupt_leaves_no_process_and_no_file(place, tmp_path, monkeypatch, script):
    """Ctrl-C while compilers and their child processes hang: the program ends and leaves no process and no file."""
    fake = tmp_path / "cc"
    answers = 'case " $* " in *" -E "*|*" --version "*) exec gcc "$@";; esac'
    fake.write_text(f"#!/bin/sh\n{answers}\ncd '{tmp_path}'; echo $$ > pid.$$; sleep 9999 & echo $! > pid.$!; wait")
    fake.chmod(0o700)
    monkeypatch.setenv("PFAFFIAN_CC", str(fake))
    child = subprocess.Popen([sys.executable, "-c", script], start_new_session=True, stderr=subprocess.DEVNULL)
    deadline = time.time() + PATIENCE
    while len(list(tmp_path.glob("pid.*"))) < 2 and time.time() < deadline:
        time.sleep(0.05)
    time.sleep(0.1)
    os.kill(child.pid, signal.SIGINT)
    assert child.wait(PATIENCE) != 0
    started = [int(path.read_text()) for path in tmp_path.glob("pid.*")]
    assert len(started) >= 2
    assert not [pid for pid in started if is_running(pid)]
    assert not list(place.rglob("tmp*")) and entries(place) == ([], [])


def is_running(pid):
    """Whether the process runs; a killed grandchild may remain as a zombie until init collects it."""
    try:
        return b") Z " not in Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return False


def test_a_suspended_builder_blocks_no_other_process(place, monkeypatch):
    """The lock only avoids duplicate work: after a while, other processes build the object themselves."""
    monkeypatch.setattr(store, "PATIENCE", 0.2)
    kernel.compile(small(17), backend="c")
    files = []
    for number in range(256):  # another process holds the lock of every key
        files.append((store.directory() / f"{number:02x}.lock").open("w"))
        fcntl.flock(files[-1], fcntl.LOCK_EX)
    assert kernel.compile(small(18), backend="c").provenance["backend"] == "c"
    for file in files:
        file.close()


def test_damage_is_detected_and_repaired(place):
    f = small()
    first = kernel.compile(f, backend="c")(np.ones(3))[0]
    (target,), (sidecar,) = place.glob("*.so"), place.glob("*.json")
    whole, sidecar_text = target.read_bytes(), sidecar.read_text()
    bad_objects = (b"", whole[:500], whole[:-1] + bytes([whole[-1] ^ 1]), b"garbage")
    bad_notes = ("", "[]", "{}", json.dumps({"sha256": 3}), json.dumps({"sha256": "../../x"}), "[" * 10**6, '{"a":' * 10**6)
    cases = [(target, whole, damage) for damage in bad_objects] + [
        (sidecar, sidecar_text.encode(), text.encode()) for text in bad_notes
    ]
    for path, good, damage in cases:
        path.unlink()  # a new file, since the loaded library must not change
        private_files.write(path, b"")
        path.write_bytes(damage)
        assert store.get(place, sidecar.stem) is None
        if damage in (bad_objects[1], b"[]", bad_notes[-1].encode()):
            assert np.array_equal(kernel.compile(f, backend="c")(np.ones(3))[0], first)
        path.write_bytes(good)
        assert store.get(place, sidecar.stem)


def test_a_shared_folder_stays_as_it_is(place):
    place.parent.mkdir()
    place.parent.chmod(0o1777)
    assert store.directory() == place
    assert place.stat().st_mode & 0o777 == 0o700 and place.parent.stat().st_mode & 0o7777 == 0o1777


@pytest.fixture
def refused(place):
    """Check after the test that the store is not used, that one warning appears, and that nothing in it changes."""
    place.mkdir(parents=True)
    notice_once.cache_clear()
    yield place
    before = place.lstat()
    with pytest.warns(RuntimeWarning, match="compiled code is not stored in") as caught:
        assert place not in (store.directory(), store.directory().parent)
        assert store.directory().stat().st_mode & 0o777 == 0o700
    assert len(caught) == 1 and place.lstat() == before and str(place) in str(caught[0].message)


def test_a_store_that_others_can_write_is_not_used(refused):
    refused.chmod(0o770)


def test_a_store_of_another_user_is_not_used(refused, monkeypatch):
    number = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: number + 1)
    monkeypatch.setattr(store, "_requested", lambda: refused)


def test_a_store_behind_the_link_of_another_user_is_not_used(refused, monkeypatch):
    refused.rmdir()
    refused.symlink_to(refused.parent)
    real = Path.lstat
    monkeypatch.setattr(Path, "lstat", lambda path: os.stat_result([*real(path)[:4], 12345, *real(path)[5:]]))


@pytest.mark.parametrize("what", ["*.so", "*.json"])
def test_objects_that_others_can_write_are_not_loaded(place, what):
    """A file that other users could have written is built again, even if its digest is correct."""
    f = small(13)
    kernel.compile(f, backend="c")
    (path,) = place.glob(what)
    assert path.stat().st_mode & 0o777 == 0o600
    found = next(place.glob("*.json")).stem
    assert store.get(place, found)
    for mode in (0o620, 0o602, 0o666):
        path.chmod(mode)
        assert store.get(place, found) is None
    other = place / "elsewhere"
    path.rename(other)
    other.chmod(0o600)
    path.symlink_to(other)
    assert store.get(place, found) is None
    assert kernel.compile(f, backend="c").provenance["backend"] == "c"
    assert store.get(place, found) and not path.is_symlink()


def test_the_second_compilation_comes_from_the_store(place, monkeypatch):
    kernel.compile(small(9), backend="c")
    monkeypatch.setattr("pfaffian.kernel.build.toolchain.compile_source", lambda *_: pytest.fail("compiled again"))
    assert kernel.compile(small(9), backend="c").provenance["backend"] == "c"


def test_orphans_and_old_entries_are_swept(place):
    kernel.compile(small(11), backend="c")
    orphan = place / "tmpold"
    orphan.mkdir()
    (sidecar,) = place.glob("*.json")
    for path in (orphan, sidecar):
        os.utime(path, (1.0, 1.0))
    store._sweep.cache_clear()
    assert store.directory() == place and not orphan.exists()
    day, now = 86400.0, time.time()
    ages = {"young.alias": 29, "old.alias": 31, "young.programs": 29, "old.programs": 31, "young.json": 29}
    for name, days in ages.items():
        (place / name).write_text("")
        os.utime(place / name, (now - days * day,) * 2)
    assert store.prune(30) == 1
    assert {name for name in ages if (place / name).exists()} == {"young.alias", "young.programs", "young.json"}
    (place / "young.json").unlink()
    assert entries(place) == ([], [])


def test_on_a_full_disk_a_private_store_of_the_process_is_used(place, monkeypatch):
    kernel.compile(small(), backend="c")
    before, x = entries(place), ca.SX.sym("x", 3)
    monkeypatch.setattr(store, "ROOM", 2**80)
    kernel.compile(small(), backend="c")  # an object that is already in the store is used without a warning
    with pytest.warns(RuntimeWarning, match=f"not stored in {place}: less than .* MB are left on its disk: make room. Or set"):
        found = kernel.compile(ca.Function("g", [x], [ca.cosh(x)]), backend="c")(np.zeros(3))[0]
    assert (found == 1).all() and entries(place) == before and not list(place.glob("tmp*"))


def full(*_, **__):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_disk_that_fills_while_building_gives_an_error_and_leaves_no_file(place, monkeypatch):
    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(
        BuildError, match=f"cannot write into the cache {place}: No space left on device; make room, or set PFAFF"
    ):
        kernel.compile(small(), backend="c")
    assert not list(place.glob("tmp*"))


def test_a_compiler_that_fails_on_a_full_disk_leaves_no_file(place, monkeypatch):
    """Compilers differ in their messages for a full disk. After any other error, the sources stay for inspection."""
    private_files.make_folder(place)
    for full_now, left, words in ((False, 1, "the compiler's words"), (True, 0, "No space left on device")):
        with pytest.raises(BuildError, match=words), store.building(place):
            monkeypatch.setattr(store, "_has_room", lambda path, full_now=full_now: not full_now)
            raise BuildError("the compiler's words")
        assert len(list(place.glob("tmp*"))) == left
        for path in place.glob("tmp*"):
            path.rmdir()


@pytest.mark.parametrize("forbidden", [os.W_OK, os.X_OK])
def test_a_folder_that_cannot_be_written_to_is_refused(tmp_path, monkeypatch, forbidden):
    """The check uses os.access, so that the test also works for root, whom no folder mode stops."""
    assert private_files.make_folder(tmp_path / "own") is None
    monkeypatch.setattr(os, "access", lambda path, mode: not mode & forbidden)
    assert private_files.make_folder(tmp_path / "own") == "it cannot be written to"


def test_a_file_that_cannot_be_written_leaves_no_temporary_file(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="No space left on device"):
        private_files.write(tmp_path / "note", b"words")
    assert not list(tmp_path.iterdir())
