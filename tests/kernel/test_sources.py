"""Code that comes from a file changed since the library was imported is never stored as that of the library."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import pfaffian

PACKAGE = Path(pfaffian.__file__).parent


def python(code: str, folder: Path, **environment: str) -> str:
    """What a new process prints that runs this code with the packages in a folder."""
    around = os.environ | {"PYTHONPATH": str(folder)} | environment
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=around, cwd=folder, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


FILES = {"__init__.py": "from pfaffian import sources", "a.py": "", "b.py": "", "room/__init__.py": "", "room/c.h": "1"}

PRELUDE = """
import importlib, json, os, pathlib
import pfaffian
from pfaffian.sources import changed, contents, read
a, b, c = (pathlib.Path(pfaffian.__file__).parent / name for name in ("a.py", "b.py", "room/c.h"))
"""

CASES = {
    "nothing happens": ("import pfaffian.a, pfaffian.room; read('room/c.h')", []),
    "edited before its import": ("a.write_text('x = 1'); import pfaffian.a", ["a.py"]),
    "edited after its import": ("import pfaffian.a; changed(); a.write_text('x = 1')", []),
    "edited after its import, before it was compared": ("import pfaffian.a; a.write_text('x = 1')", ["a.py"]),
    "the edit was undone": ("a.write_text('x = 1'); import pfaffian.a; a.write_text('')", ["a.py"]),
    "undone before the import": ("a.write_text('x = 1'); a.write_text(''); import pfaffian.a", ["a.py"]),
    "never imported": ("a.write_text('x = 1'); import pfaffian.b", []),
    "imported once more": ("import pfaffian.a as m; changed(); a.write_text('x = 1'); importlib.reload(m)", ["a.py"]),
    "a change stays known": ("a.write_text('x = 1'); import pfaffian.a; changed(); changed()", ["a.py"]),
    "a folder instead of a file": (
        "os.mkdir(b.with_suffix('')); (b.with_suffix('') / '__init__.py').touch(); import pfaffian.b", ["b/__init__.py"]
    ),
    "another file of the same times, moved back": (
        "s = os.stat(a); os.rename(a, 'kept'); a.write_text(''); os.utime(a, ns=(s.st_atime_ns, s.st_mtime_ns));"
        "import pfaffian.a; os.replace('kept', a)", ["a.py"]
    ),
    "removed after its import": ("import pfaffian.a; a.unlink()", ["a.py"]),
    "text edited before it was read": ("c.write_text('2'); read('room/c.h')", ["room/c.h"]),
    "text edited after it was read": ("read('room/c.h'); changed(); c.write_text('2')", []),
    "text read once more": ("read('room/c.h'); changed(); c.write_text('2'); read('room/c.h')", ["room/c.h"]),
}  # fmt: skip


@pytest.fixture
def small(tmp_path):
    """A folder with a small package that has the library's name and its module `sources`."""
    for name, text in FILES.items():
        path = tmp_path / "pfaffian" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    shutil.copy(PACKAGE / "sources.py", tmp_path / "pfaffian")
    return tmp_path


@pytest.mark.parametrize("case", CASES)
def test_changed_files(small, case):
    code, expected = CASES[case]
    assert json.loads(python(f"{PRELUDE}\n{code}\nprint(json.dumps(changed()))", small)) == expected


def test_contents_cover_every_file(small):
    seen = set()
    for name, text in (("a.py", ""), ("a.py", "x = 1"), ("d.py", "x = 1"), ("room/c.h", "2"), ("room/note.txt", "1")):
        (small / "pfaffian" / name).write_text(text)
        seen.add(python(f"{PRELUDE}\nprint(contents())", small))
    assert len(seen) == 4, "only the note leaves the contents as they are"


def test_files_that_vanish_count_as_empty(small):
    before = python(f"{PRELUDE}\nprint(contents())", small)
    assert python(f"{PRELUDE}\na.unlink(); print(contents())", small) == before


MACHINE = """
import pathlib, warnings
import numpy as np
import pfaffian as pf

bars = [pf.body(name, 1.0, com=(0.4, 0, 0), inertia=0.02) for name in "ab"]
hinges = [pf.joint("A", "revolute", "world", "a", axis=(0, 1, 0), damping=0.3),
          pf.joint("B", "revolute", "a", "b", axis=(0, 1, 0), placement=(0.8, 0, 0))]
m = pf.mechanism("double pendulum", bars, hinges)
slope = lambda: print(pf.derivatives(m, [0.3, -0.4], [1.0, 2.0]).v_dot.q[0, 0])
"""

SESSION = """
pf.forward_dynamics(m, [0.3, -0.4], [1.0, 2.0])
path = pathlib.Path(pf.__file__).parent / "evaluate" / "derivatives.py"
text = path.read_text()
edited = text.replace("return function_of(T, dict(zip(shapes, values, strict=True)))",
                      "return function_of(T, dict(zip(shapes, [2 * x for x in values], strict=True)))")
assert edited != text
path.write_text(edited)
warnings.simplefilter("error")
try:
    UNDONE
    slope()
    raise SystemExit("no warning")
except RuntimeWarning as warning:
    assert "evaluate/derivatives.py" in str(warning), warning
warnings.simplefilter("ignore")
slope()
path.write_text(text)
"""


@pytest.mark.parametrize("undone", ["pass", "import pfaffian.evaluate.derivatives; path.write_text(text)"])
def test_a_late_import_of_an_edited_module_reaches_no_other_process(tmp_path, undone):
    """The session that imports the edited module computes by it and says so; a later one gives what the files contain."""
    shutil.copytree(PACKAGE, tmp_path / "pfaffian")
    with (tmp_path / "pfaffian" / "lazy.py").open("a") as file:
        file.write("\n# other sources than those of the package that runs the tests\n")
    edited = float(python(MACHINE + SESSION.replace("UNDONE", undone), tmp_path))
    right = float(python(MACHINE + "slope()", tmp_path))
    assert float(python(MACHINE + "slope()", tmp_path, PFAFFIAN_CHECK="1")) == right
    assert edited == 2 * right
