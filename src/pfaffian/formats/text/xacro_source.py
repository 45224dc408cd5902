"""Expanding xacro files, the source code of URDF files, with the package xacro."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path

from pfaffian.errors import ModelError, optional
from pfaffian.formats.text.strict_number import printable

WAY_OUT = (
    "xacro is source code of URDF; if you trust it, expand=True expands it with the package xacro, or expand it first: "
    "xacro robot.xacro > robot.urdf"
)


def expanded(path: Path) -> str:
    """The URDF text of a xacro file. The package xacro runs its expressions and opens the files that it includes.

    Raises ModelError: xacro is not installed, or cannot expand the file.
    """
    xacro = optional("xacro", "xacro", f"{printable(path.name)[1:-1]}: xacro files need")
    words = io.StringIO()
    try:
        with contextlib.redirect_stderr(words):
            return xacro.process_file(str(path)).toxml()
    except (Exception, SystemExit) as error:  # code in the file may raise anything
        reason = printable(" ".join(f"{error} {words.getvalue()}".split()))[1:-1]
        raise ModelError(f"{printable(path.name)[1:-1]}: xacro cannot expand it: {reason}") from None
