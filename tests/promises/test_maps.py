"""What docs/ says of files: every path, test and study that a map names is there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MAPS = [ROOT / "docs" / "konz.md", ROOT / "docs" / "chhabra.md"]
NAMES = [
    (page, name)
    for page in MAPS
    for name in sorted(set(re.findall(r"`([\w/]+(?:\.py|\.md)?(?:::\w+)?)`", page.read_text())))
    if page is MAPS[0] or "/" in name  # the other names functions too
]


@pytest.mark.parametrize(("page", "name"), NAMES, ids=[name for _, name in NAMES])
def test_what_a_map_names_is_there(page, name):
    file, _, test = name.partition("::")
    if "/" not in file:
        file = f"studies/{file}.py"
    places = [ROOT / "src" / "pfaffian" / file, ROOT / "tests" / file, ROOT / file]
    found = [p for p in places if p.exists()]
    assert len(found) == 1, f"{page.name}: {name}"
    if test:
        assert f"def {test}(" in found[0].read_text(), f"{page.name}: {name}"


def test_a_map_names_every_study_of_its_paper():
    for page, key in zip(MAPS, ("konz", "chhabra"), strict=True):
        text = page.read_text()
        missing = [p.stem for p in (ROOT / "studies").glob(f"{key}_*.py") if p.stem not in text]
        assert not missing, f"{page.name} says nothing of {', '.join(missing)}"
