"""An exported law compiles by zig for embedded processors and needs only arithmetic from them."""

import re
import subprocess
import sys

import pytest

import pfaffian as pf
from tests.embedded.conftest import FLAGS
from tests.embedded.test_export import LAWS

TARGETS = {
    "arm64": ("aarch64-freestanding", "generic"),
    "Cortex-M7": ("thumb-freestanding-eabihf", "cortex_m7+fp_armv8d16"),
    "Cortex-M4": ("thumb-freestanding-eabihf", "cortex_m4+vfp4d16sp"),
    "Cortex-M0": ("thumb-freestanding-eabi", "cortex_m0"),
}
ROOT = {"arm64": "fsqrt", "Cortex-M7": "vsqrt.f", "Cortex-M4": "vsqrt.f32", "Cortex-M0": None}
"""Instruction for square roots; the M4 has one in single precision only."""
ARITHMETIC = re.compile(r"__aeabi_\w+|__(add|sub|mul|div)[sd]f3|mem(cpy|set|clr)|__\w+[sd]f2|__ashldi3|__lshrdi3")
"""Functions that a compiler supplies: arithmetic that the processor lacks, and copies."""


@pytest.mark.parametrize("precision", ["double", "single"])
@pytest.mark.parametrize("target", TARGETS)
def test_a_law_compiles_and_needs_no_library(target, precision, tmp_path, monkeypatch):
    monkeypatch.setenv("ZIG_LOCAL_CACHE_DIR", str(tmp_path / "zig"))
    law, m = LAWS["integral"]()
    pf.export(law, m, tmp_path, name="law", precision=precision)
    triple, cpu = TARGETS[target]
    how = [*FLAGS, "-target", triple, f"-mcpu={cpu}", "-Os", "-ffreestanding", "-fno-sanitize=all"]
    how += ["-Wno-unused-command-line-argument", "-S", "law.c", "-o", "law.s"]
    subprocess.run([sys.executable, "-m", "ziglang", "cc", *how], cwd=tmp_path, check=True)
    text = (tmp_path / "law.s").read_text()
    defined = set(re.findall(r"^(\w+):", text, re.M))
    called = set(re.findall(r"^\s+(?:bl|b|b\.w|blx)\s+([A-Za-z_]\w*)", text, re.M)) - defined
    assert "law_step" in defined and not [name for name in called if not ARITHMETIC.fullmatch(name)], called
    by_hand = target == "Cortex-M0" or (target, precision) == ("Cortex-M4", "double")
    assert by_hand != bool(ROOT[target] and ROOT[target] in text)
    assert ("__aeabi_fmul" in called) == ((target, precision) == ("Cortex-M0", "single"))
