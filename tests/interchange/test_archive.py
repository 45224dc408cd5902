"""How the binaries of an FMU are compiled, and how its files are packed; the commands are read, not run."""

from __future__ import annotations

import importlib.util
import io
import sys
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import pfaffian as pf
from pfaffian.interchange import archive
from pfaffian.kernel.build import processes
from pfaffian.kernel.build.toolchain import Compiler

ZIG = [sys.executable, "-m", "ziglang", "cc", "-target"]


def on(monkeypatch: pytest.MonkeyPatch, system: str, processor: str) -> None:
    """Let this machine have another system and processor, for the archive alone."""
    monkeypatch.setattr(archive, "sys", SimpleNamespace(platform=system, executable=sys.executable))
    monkeypatch.setattr(archive, "platform", SimpleNamespace(machine=lambda: processor))


@pytest.fixture(autouse=True)
def on_linux(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with Linux and gcc, whatever this one has; and zig."""
    on(monkeypatch, "linux", "x86_64")
    monkeypatch.setattr(archive, "needed_compiler", lambda: Compiler(("gcc",), "gcc", "", ""))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: name == "ziglang" or None)


def test_this_platform_is_linux_on_one_kind_of_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    assert archive.here() == "linux64"
    for system, processor in (("linux", "aarch64"), ("darwin", "x86_64")):
        on(monkeypatch, system, processor)
        assert archive.here() is None


def test_other_platforms_are_compiled_by_zig(monkeypatch: pytest.MonkeyPatch) -> None:
    assert archive.compiler_for("linux64").argv == ("gcc",)
    for name, target in (("win64", "x86_64-windows-gnu"), ("darwin64", "x86_64-macos")):
        compiler = archive.compiler_for(name)
        assert compiler.argv == (*ZIG, target) and compiler.kind == "zig"
    on(monkeypatch, "linux", "aarch64")
    assert archive.compiler_for("linux64").argv == (*ZIG, "x86_64-linux-gnu.2.17")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(pf.BuildError, match=r"a binary for win64 needs zig: .*or leave win64 out of platforms"):
        archive.compiler_for("win64")


@pytest.mark.parametrize(
    ("name", "level", "begin", "suffix"),
    [
        ("linux64", "x86-64-v3", ["gcc"], ".so"),
        ("win64", "x86_64_v3", [*ZIG, "x86_64-windows-gnu"], ".dll"),
        ("darwin64", "x86_64_v3", [*ZIG, "x86_64-macos"], ".dylib"),
    ],
)
def test_commands_that_compile(name: str, level: str, begin: list[str], suffix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[Any] = []

    def run(commands: list[list[str]], timeout: float, *, environment: dict[str, str], hint: str, activity: str) -> None:
        texts = [Path(c[-1]).read_text(encoding="utf-8") for c in commands if "-c" in c]
        said.append((commands, texts, environment))
        if not texts:
            target = Path(commands[0][commands[0].index("-o") + 1])
            target.write_bytes(b"library")

    monkeypatch.setattr(processes, "run", run)
    assert archive.compiled({"a.c": "int a;", "b.c": "int µ;"}, name, "x86-64-v3") == b"library"
    (alone, texts, environment), ((link,), nothing, _) = said
    assert texts == ["int a;", "int µ;"] and not nothing and environment["LC_ALL"] == "C"
    assert environment["ZIG_LOCAL_CACHE_DIR"] == f"{environment['TMPDIR']}/zig"
    n = len(begin)
    for command, file in zip(alone, ("a.c", "b.c"), strict=True):
        assert command[:n] == begin and "-shared" not in command and {"-fvisibility=hidden", f"-march={level}"} <= set(command)
        assert command[-4:-2] == ["-c", "-o"] and command[-2] == f"{command[-1]}.o" and Path(command[-1]).name == file
    assert link[:n] == begin and {"-shared", "-s", "-fvisibility=hidden"} <= set(link)
    end = ["-lm"] if name == "linux64" else []
    objects = [command[-2] for command in alone]
    place = link.index("-o")
    assert Path(link[place + 1]).name == f"binary{suffix}" and link[place + 2 :] == [*objects, *end]


def test_packed_files_have_no_time_and_are_readable_by_all() -> None:
    data = archive.packed([("b", b"1" * 1000), ("a/c", b"2")])
    with zipfile.ZipFile(io.BytesIO(data)) as found:
        entries = found.infolist()
        assert [(e.filename, found.read(e)) for e in entries] == [("b", b"1" * 1000), ("a/c", b"2")]
    assert {e.date_time for e in entries} == {(1980, 1, 1, 0, 0, 0)} and {e.external_attr >> 16 for e in entries} == {0o644}
    assert {e.compress_type for e in entries} == {zipfile.ZIP_DEFLATED} and entries[0].compress_size < 100
