"""Description of the machine on which the numbers were measured."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import pfaffian as pf

PACKAGES = (
    "pfaffian", "casadi", "numpy", "xarray", "pin", "mujoco", "example-robot-data", "daqp", "quadprog", "proxsuite",
    "crazyflow", "jax",
)  # fmt: skip


def describe(core: int | None) -> dict[str, Any]:
    """Processor with its flags, system, versions, compiler, threads, load."""
    compiled = _compiled()
    return {
        "processor": _cpu("model name") or platform.processor(),
        "cores": os.cpu_count(),
        "cpu_flags": _cpu("flags").split(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "versions": {name: _version(name) for name in PACKAGES},
        "commit": _commit(),
        "compiler": compiled.get("compiler"),
        "compiler_flags": compiled.get("flags"),
        "pinned_to_core": core,
        "threads": {k: os.environ.get(k) for k in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "XLA_FLAGS")},
        "load_at_start": list(os.getloadavg()) if hasattr(os, "getloadavg") else None,
        "clock": "processor time of the pinned process; wall time in fresh processes (build_time)",
        "turbo": "as the system has it, not changed",
    }


def _compiled() -> dict[str, Any]:
    """Compiler command for a small function; empty without a compiler."""
    m = pf.mechanism("cart", [pf.body("cart", 1.0)], [pf.joint("slide", "prismatic", "world", "cart")])
    try:
        return pf.compile_terms(m, {"M": lambda T: T.M}, backend="c").kernel.provenance
    except pf.BuildError:
        return {}


def headline(about: dict[str, Any]) -> str:
    """Two lines above the table."""
    v = ", ".join(f"{k} {x}" for k, x in about["versions"].items())
    wide = [f for f in ("avx2", "avx512f") if f in about["cpu_flags"]]
    return (
        f"{about['processor']} ({' '.join(wide)}), core {about['pinned_to_core']} of {about['cores']}, one thread, "
        f"processor time, float64, load {about['load_at_start'][0] if about['load_at_start'] else '?'}\n"
        f"python {about['python']}, {v}; {about['compiler']}"
    )


def _cpu(field: str) -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            return next((line.split(":", 1)[1].strip() for line in file if line.startswith(field)), "")
    except OSError:
        return ""


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _commit() -> str | None:
    git = shutil.which("git")
    if git is None:
        return None
    answer = subprocess.run([git, "describe", "--always", "--dirty"], capture_output=True, text=True, check=False)
    return answer.stdout.strip() or None
