"""The C of FMUs under the sanitizers of gcc: `python -m tools.fmu_sanitizers` for more machines and instances."""

from __future__ import annotations

import re
import shutil
import sys
import zipfile
from pathlib import Path

import pytest

import pfaffian as pf
from tests.interchange.test_fmu_events import train
from tools.fmu_sanitizers import under

pytestmark = pytest.mark.skipif(sys.platform != "linux" or not shutil.which("gcc"), reason="needs gcc and its sanitizers")


def test_events_of_instances_in_several_threads_leave_nothing_for_a_sanitizer(tmp_path: Path) -> None:
    m, switches = train(edge=0.02)
    file = pf.fmu(m, tmp_path / "a.fmu", kind="model exchange", switches=switches, v={"b": 0.8}).file
    for sanitizer in ("address,undefined", "thread"):
        said = under(sanitizer, file, tmp_path / sanitizer, instances=3, steps=60)
        assert re.fullmatch(r"[1-9]\d* events, the same bits", said)

    # A fault in the text is found: instances that are not freed.
    with zipfile.ZipFile(file) as archive, zipfile.ZipFile(tmp_path / "wrong.fmu", "w") as wrong:
        for name in archive.namelist():
            text = archive.read(name).replace(b"free(i)", b"(void)i") if name.endswith(".c") else archive.read(name)
            wrong.writestr(name, text)
    with pytest.raises(RuntimeError, match="LeakSanitizer"):
        under("address,undefined", tmp_path / "wrong.fmu", tmp_path / "wrong", instances=1, steps=1)
