"""Conversion of a page to a Jupyter notebook with its text, its code, and the printed and drawn outputs."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tools.pages import BLOCK, MADE, Ran


def notebook(page: Path, ran: Sequence[Ran] = ()) -> str:
    """The page as a notebook in nbformat 4; ran: outputs of its blocks in order, or none for empty outputs."""
    meta = {
        "kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"},
        "language_info": {"name": "python"},
    }
    cells = [cell | {"id": f"cell-{i}"} for i, cell in enumerate(_cells(page.read_text(encoding="utf-8"), ran))]
    return json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": meta, "cells": cells}, indent=1) + "\n"


def _cells(text: str, ran: Sequence[Ran]) -> Iterator[dict[str, Any]]:
    end = 0
    for i, block in enumerate(BLOCK.finditer(text)):
        yield from _markdown(text[end : block.start()])
        kind, code = block.groups()
        source = code if kind == "python" else f"m, settings = pf.formats.parse_yaml({code!r})"
        outputs = list(_outputs(ran[i], i + 1)) if ran else []
        yield {"cell_type": "code", "metadata": {}, "execution_count": i + 1 if ran else None, "source": source.rstrip(),
               "outputs": outputs}  # fmt: skip
        end = block.end()
    yield from _markdown(text[end:])


def _markdown(text: str) -> Iterator[dict[str, Any]]:
    """A cell of text. Pictures that the code writes are outputs of its cell."""
    if source := MADE.sub("", text).strip():
        yield {"cell_type": "markdown", "metadata": {}, "source": source}


def _outputs(block: Ran, count: int) -> Iterator[dict[str, Any]]:
    if block.text:
        yield {"output_type": "stream", "name": "stdout", "text": block.text}
    for name, picture in block.pictures.items():
        kind = f"image/{name.rpartition('.')[2]}"
        data = {kind: b64encode(picture).decode("ascii"), "text/plain": f"<picture {count}>"}
        yield {"output_type": "display_data", "metadata": {}, "data": data}
