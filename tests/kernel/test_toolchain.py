"""A missing, failing, hanging or miscompiling compiler: one warning and the interpreter, or a BuildError."""

import stat
import sys
import time
from pathlib import Path

import casadi as ca
import numpy as np
import pytest

from pfaffian import kernel
from pfaffian.errors import BuildError, notice_once
from pfaffian.kernel.build import object_store as store
from pfaffian.kernel.build import processes, toolchain
from tests.work import PATIENCE

X = np.array([[0.5, 2.0], [1.0, 3.0]])


def function(factor=1.0):
    x = ca.SX.sym("x", 2)
    return ca.Function("f", [x], [factor * ca.sin(x[0]) * x[1]])


@pytest.fixture
def fresh(monkeypatch, tmp_path):
    """An empty store, with no warning given yet."""
    monkeypatch.setenv("PFAFFIAN_CACHE", str(tmp_path / "store"))
    notice_once.cache_clear()
    toolchain._identify.cache_clear()
    return tmp_path


REAL = 'case " $* " in *" --version "*|*" -E "*) exec gcc "$@";; esac\nout=; previous=\n' + (
    'for a in "$@"; do [ "$previous" = -o ] && out=$a; previous=$a; source=$a; done\n'
    'for a in "$@"; do case $a in *.c) source=$a;; esac; done\n'
)
FAKES = {
    "fails": REAL + "echo boom >&2; exit 1",
    "hangs": REAL + "sleep 60 & wait",
    "prints without end": REAL + "yes",
    "complains without end": REAL + "yes >&2",
    "writes nothing": REAL + "exit 0",
    "writes garbage": REAL + "head -c 5000 /dev/urandom > $out",
    "writes half": REAL + 'gcc "$@" && head -c 3000 $out > $out.x && mv $out.x $out',
    "miscompiles": REAL + 'sed -i "s/ \\* \\([vr]\\)/ + \\1/; s/known++/known += 2/" $source; exec gcc "$@"',
    "drops functions": REAL + 'sed -i s/pfaffian_/other_/ $source; exec gcc "$@"',
    "crashes when run": REAL + "sed -i 's/FP_ENTER;\\|int64_t counts.3./*(volatile int *)0 = 1; &/' $source; exec gcc \"$@\"",
    "does not answer": "exit 1",
}
ENDLESS = "hangs", "prints without end", "complains without end"
MESSAGES = {
    "fails": "boom", "hangs": "longer than", "prints without end": "wrote more than", "complains without end": "longer than",
    "writes nothing": "wrote no object", "writes garbage": "invalid ELF", "miscompiles": "miscompiles",
    "drops functions": "undefined symbol", "crashes when run": "status -11", "does not answer": "no C compiler",
}  # fmt: skip


@pytest.mark.parametrize("name", FAKES)
def test_fake_compilers(name, fresh, monkeypatch):
    script = fresh / "cc with space"
    script.write_text(f"#!/bin/sh\n{FAKES[name]}\n")
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PFAFFIAN_CC", str(script))
    if name in ENDLESS:
        monkeypatch.setattr(toolchain, "TIMEOUT", 2.0)
    with pytest.warns(RuntimeWarning, match="in NumPy"):
        fallback = kernel.compile(function())
    assert fallback.provenance["backend"] == "numpy"
    np.testing.assert_allclose(fallback(X)[0][:, 0], np.sin(X[:, 0]) * X[:, 1])
    with pytest.raises(BuildError) as info:
        kernel.compile(function(), backend="c")
    assert MESSAGES.get(name, "") in str(info.value)
    assert not list(store.directory().glob("*.so"))


def test_no_compiler(fresh, monkeypatch):
    monkeypatch.setenv("PFAFFIAN_CC", str(fresh / "absent"))
    with pytest.raises(BuildError, match="install gcc"):
        kernel.compile(function(), backend="c")
    with pytest.warns(RuntimeWarning) as caught:
        for factor in (1.0, 2.0):
            kernel.compile(function(factor))
    assert len(caught) == 1
    assert "no C compiler" in kernel.diagnose()["compiler"]


def test_read_only_or_absent_home(fresh, monkeypatch):
    blocked = fresh / "file"
    blocked.write_text("")
    monkeypatch.setenv("PFAFFIAN_CACHE", str(blocked / "store"))
    notice_once.cache_clear()
    with pytest.warns(RuntimeWarning, match="not stored.*Not a directory.*PFAFFIAN_CACHE") as caught:
        assert kernel.compile(function(), backend="c")(X)[0].shape == (2, 1)
    assert len(caught) == 1


def test_unknown_choices():
    for change in ({"backend": "cuda"}, {"lanes": 3}):
        with pytest.raises(BuildError):
            kernel.compile(function(), **change)


def test_diagnose_reports_a_working_compiler():
    assert kernel.diagnose()["kernel"].startswith("compiles")
    assert sys.executable  # the trial of an object runs in this interpreter


def test_children_without_waitid(monkeypatch):
    """Systems without os.waitid, which cannot examine a process without collecting it."""
    monkeypatch.delattr("os.waitid")
    assert processes.run([["cat"]], PATIENCE, feed=b"said") == [b"said"]
    with pytest.raises(BuildError, match="status 3"):
        processes.run([["sh", "-c", "exit 3"]], PATIENCE)
    with pytest.raises(BuildError, match="longer than"):
        processes.run([["sleep", "60"]], 0.2)


def test_processes_started_by_a_child_end_with_it():
    """Grandchildren keep the child's pipes open, but nothing waits for them."""
    (output,) = processes.run([["sh", "-c", "sleep 9999 & echo $!"]], PATIENCE)
    status = Path(f"/proc/{int(output)}/cmdline")  # empty for a process that is dead but not collected yet
    deadline = time.monotonic() + PATIENCE
    while status.exists() and status.read_bytes() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not status.exists() or not status.read_bytes()
