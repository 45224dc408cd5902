"""Which packages and tools for pfaffian this computer has, and whether each backend computes the right numbers."""

from __future__ import annotations

import importlib.util
import math
import os
import platform
import stat
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import NamedTuple

import numpy as np

from pfaffian import kernel
from pfaffian.errors import BuildError, MiscompiledError, install
from pfaffian.kernel.build.processor import processor
from pfaffian.output.plain import text

PACKAGES = ("pfaffian", "casadi", "numpy", "xarray", "h5netcdf")
EXTRAS = {
    "ziglang": "a C compiler",
    "matplotlib": "figures",
    "scipy": "samples of sweeps",
    "viser": "3D in a browser",
    "trimesh": "meshes of robots",
    "imageio-ffmpeg": "animations as .mp4",
    "sympy": "formulas for LaTeX",
    "zarr": "stores of sweeps",
    "dask": "results of sweeps",
    "distributed": "sweeps on clusters",
    "gymnasium": "environments for learning",
    "pin": "oracle of the tests",
    "mujoco": "MJCF files",
    "example-robot-data": "robots of the examples",
}
BACKENDS = (
    ("NumPy", "numpy", 1),
    ("interpreter, 1 lane", "interpreter", 1),
    ("interpreter, 8 lanes", "interpreter", 8),
    ("compiled, 1 lane", "c", 1),
    ("compiled, 8 lanes", "c", 8),
)


class Check(NamedTuple):
    """The check of one backend.   verdict: PASS, FAIL (wrong numbers) or NONE (the backend is not available)."""

    backend: str
    verdict: str
    reason: str = ""


def examine() -> tuple[str, bool]:
    """The report of `pfaffian doctor`, and True unless a backend gave wrong numbers."""
    machine = kernel.diagnose()
    checks = [check(*b) for b in BACKENDS]
    parts: list[tuple[str, list[tuple[str, ...]]]] = [
        ("versions", [("python", platform.python_version()), *((p, _version(p) or "missing") for p in PACKAGES)]),
        (
            "machine",
            [
                ("processor", f"{processor().model}, {processor().architecture}, {os.cpu_count()} cores"),
                ("features", _features()),
            ],
        ),
        ("compiler", [(k, machine[k]) for k in ("compiler", "version", "flags") if machine.get(k)]),
        ("store of compiled programs", list(_store(Path(machine["store"])))),
        ("backends, strict", [tuple(c) for c in checks]),
        ("extras", [(p, _version(p) or f"not installed: {why}, {install(p)}") for p, why in EXTRAS.items()]),
    ]
    report = "\n\n".join(f"{title}\n{_pairs(rows)}" for title, rows in parts)
    return f"{report}\n\n{_advice(checks)}", all(c.verdict != "FAIL" for c in checks)


def _pairs(rows: list[tuple[str, ...]]) -> str:
    """Rows of two or three entries as text in columns, the last one not padded."""
    widths = [max(len(r[i]) for r in rows) for i in range(len(rows[0]) - 1)]
    whole = [[*(c.ljust(w) for c, w in zip(r, widths, strict=False)), text(r[-1], 400)] for r in rows]
    return "\n".join(("  " + "  ".join(line)).rstrip() for line in whole)


def check(name: str, backend: str, lanes: int) -> Check:
    """Compile three formulas for a backend, evaluate them at eleven points at once, and compare with Python's `math`."""
    import casadi as ca

    x = ca.SX.sym("x", 3)
    a, b, c = ca.vertsplit(x)
    f = ca.Function("doctor", [x], [ca.vertcat(ca.sin(a) * ca.sqrt(b), c / b - a, ca.exp(a) + ca.atan2(b, c))])
    points = np.random.default_rng(1).uniform(0.5, 2.0, (11, 3))
    expected = [[math.sin(a) * math.sqrt(b), c / b - a, math.exp(a) + math.atan2(b, c)] for a, b, c in points]
    try:
        program = kernel.compile(f, backend=backend, lanes=lanes)  # type: ignore[arg-type]
        computed = program(points)[0]
        exact = kernel.evaluate(program.program, [points])[0]
    except MiscompiledError as error:
        return Check(name, "FAIL", str(error))
    except BuildError as error:
        return Check(name, "NONE", str(error))
    if not np.allclose(computed, expected, rtol=1e-14, atol=1e-15):
        return Check(name, "FAIL", f"wrong by {np.abs(computed - expected).max():.2g}")
    if not np.array_equal(computed, exact):
        return Check(name, "FAIL", "last bits differ from NumPy")
    return Check(name, "PASS")


def _version(package: str) -> str:
    """Version of a package, "installed" where it has none, and "" if it is missing."""
    try:
        return version(package)
    except PackageNotFoundError:
        return "installed" if importlib.util.find_spec(package.replace("-", "_")) else ""


def _features() -> str:
    """The processor's vector instructions, where the system reports them."""
    cpu = processor()
    none = "no vector extension known to us" if cpu.features else "not reported by this system"
    return " ".join(cpu.vector) or none


def _store(place: Path) -> Iterator[tuple[str, ...]]:
    """Folder, contents and permissions of the store of compiled programs."""
    yield "folder", str(place)
    try:
        sizes = [f.stat().st_size for f in place.iterdir() if f.is_file()]
        mode = stat.S_IMODE(place.stat().st_mode)
    except OSError as error:
        yield "state", f"cannot be read: {error.strerror}"
        return
    programs = len(list(place.glob("*.so")))
    yield "holds", f"{programs} compiled programs, {sum(sizes) / 1e6:.1f} MB; delete the folder to start afresh"
    yield "permissions", f"{mode:04o}" + ("" if mode == 0o700 else ", should be 0700: others could place code there")


def _advice(checks: list[Check]) -> str:
    """What the checks of the backends mean, and the way out."""
    verdicts = {c.verdict for c in checks}
    if "FAIL" in verdicts:
        return "a backend gives wrong numbers: do not trust its results; try another compiler with PFAFFIAN_CC"
    if "NONE" in verdicts:
        return f"runs in NumPy are about 100 times slower: install gcc or clang, or {install('ziglang')}"
    return "all is well"
