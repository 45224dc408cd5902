"""The indexes of equations in docs/: every file, test and study that they name exists."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
INDEXES = [ROOT / "docs" / "konz.md", ROOT / "docs" / "chhabra.md"]
NAMES = [
    (page, name)
    for page in INDEXES
    for name in sorted(set(re.findall(r"`([\w/]+(?:\.py|\.md)?(?:::\w+)?)`", page.read_text())))
    if page is INDEXES[0] or "/" in name  # the second page names functions too
]


@pytest.mark.parametrize(("page", "name"), NAMES, ids=[name for _, name in NAMES])
def test_files_that_an_index_names_exist(page, name):
    file, _, test = name.partition("::")
    if "/" not in file:
        file = f"studies/{file}.py"
    places = [ROOT / "src" / "pfaffian" / file, ROOT / "tests" / file, ROOT / file]
    found = [p for p in places if p.exists()]
    assert len(found) == 1, f"{page.name}: {name}"
    if test:
        assert f"def {test}(" in found[0].read_text(), f"{page.name}: {name}"


def test_an_index_names_every_study_of_its_thesis():
    for page, key in zip(INDEXES, ("konz", "chhabra"), strict=True):
        text = page.read_text()
        missing = [p.stem for p in (ROOT / "studies").glob(f"{key}_*.py") if p.stem not in text]
        assert not missing, f"{page.name} does not name {', '.join(missing)}"
