"""The pages of the manual from a terminal, and their outputs that are kept between builds of the site."""

import pytest

import pfaffian as pf
from pfaffian.cli.main import main
from pfaffian.viewer import manual
from tools import pages


def test_pages_are_listed_printed_and_copied(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["docs"]) == 0 and "tutorials/spacecraft" in capsys.readouterr().out
    assert main(["docs", "spacecraft"]) == 0 and "## The machine" in capsys.readouterr().out
    assert main(["docs", "--copy", "tutorials/spacecraft"]) == 0
    text = (tmp_path / "spacecraft.py").read_text(encoding="utf-8")
    compile(text, "spacecraft.py", "exec")
    assert text.startswith('"""For people who work on spacecraft"""') and "```" not in text
    assert main(["docs", "--copy", "tutorials/spacecraft"]) == 2, "nothing is overwritten"


def test_the_site_is_opened_where_it_is_built(capsys, tmp_path, monkeypatch):
    opened = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    monkeypatch.setattr(manual, "shelf", lambda name: tmp_path / name)
    assert main(["docs", "--site"]) == 2 and "the site is not built; run `python -m tools.pages`" in capsys.readouterr().err
    first = tmp_path / "out" / "site" / "index.html"
    first.parent.mkdir(parents=True)
    first.touch()
    assert main(["docs", "--site"]) == 0 and opened == [first.resolve().as_uri()]


def test_an_unknown_page_is_refused_with_the_nearest_ones():
    with pytest.raises(pf.ModelError, match="spacecraft"):
        manual.page("spacecrafts")
    with pytest.raises(pf.ModelError, match="how/index"):
        manual.page("how/indexx")


def test_outputs_are_kept_until_the_code_of_the_page_changes(tmp_path, monkeypatch):
    runs = []
    monkeypatch.setattr(pages, "KEPT", tmp_path / "kept")
    monkeypatch.setattr(pages, "DOCS", tmp_path)
    monkeypatch.setattr(pages, "run_page", lambda page: runs.append(page) or [pages.Ran(0, "out", {"0.png": b"png"})])
    file = tmp_path / "how" / "a.md"
    file.parent.mkdir()
    page = "# A\n\nWords\n\n```python\nx = 1\n```\n"
    for text, times in (
        (page, 1),
        (page.replace("Words", "Other words"), 1),
        (page.replace("x = 1", "x = 2"), 2),
        (page.replace("```p", "## Anew\n\n```p"), 3),
    ):
        file.write_text(text, encoding="utf-8")
        assert pages.outputs(file) == [pages.Ran(len(text) - 1, "out", {"0.png": b"png"})] and len(runs) == times
    monkeypatch.setattr(pages, "code_digest", lambda: "other code")
    assert pages.outputs(file) and len(runs) == 4


def test_packages_of_the_pages_are_checked_before_the_first_page(capsys, monkeypatch):
    monkeypatch.setattr(pages.extras, "missing", lambda extra: ["no-such-package>=1"] if extra == "docs" else [])
    monkeypatch.setattr(pages, "build", lambda: pytest.fail("a page was built"))
    assert pages.main([]) == 1 and "the pages need no-such-package>=1: run `pip install" in capsys.readouterr().out
