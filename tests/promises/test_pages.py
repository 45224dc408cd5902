"""The pages that show how to write one's own: their code runs as it stands, top to bottom."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGES = sorted((Path(__file__).parents[2] / "docs").glob("own_*.md"))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("page", PAGES, ids=[page.stem for page in PAGES])
def test_the_code_of_a_page_runs(page: Path) -> None:
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.S)
    assert len(PAGES) == 3 and len(blocks) >= 2 and all("assert" in page.read_text(encoding="utf-8") for page in PAGES)
    exec(compile("\n".join(blocks), page.name, "exec"), {"__name__": page.stem})
