"""Build the documentation as a site: run the code of its pages, insert the printed and drawn outputs, and call Sphinx.

python -m tools.pages                # builds out/site/index.html, without a network; needs the extra `docs`
python -m tools.pages how/loops.md   # runs the code of that page of docs/ alone, and prints what it prints

Every block marked `python` runs, from top to bottom of its page; a block marked `yaml` is read into m and settings. In the
folders of `ALONE` each heading starts with an empty namespace, so that every recipe runs alone. Sphinx gets copies of the pages
with the outputs below the code, together with the pages of the interface (`tools/api.py`). A picture that the code writes,
as by `figure.savefig("forces.png")`, stands where the page says `![what it shows](forces.png)`: a page may begin with it.
"""

from __future__ import annotations

import base64
import contextlib
import functools
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tools import extras

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
SITE = ROOT / "out" / "site"

KEPT = ROOT / "out" / "pages"
"""The folder of outputs that are kept from build to build, each named by a digest of what makes it."""

EXTRA = "docs"
"""The extra of `pyproject.toml` that installs everything that the pages and the site need."""

ALONE = ("how", "gallery")
"""Folders of docs/ in whose pages each heading of the second level starts with an empty namespace."""
NOTEBOOKS = "tutorials"
"""The folder of docs/ whose pages can also be downloaded as notebooks."""
WIDTH = 84
"""Most columns of code and of printed text; `docs/ruff.toml` formats the code accordingly."""
MORE = {"studies/errata.md": "errata.md", "CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md"}
"""Pages of the site from outside docs/."""

BLOCK = re.compile(r"^```(python|yaml)\n(.*?)^```$", re.M | re.S)
"""A block of code that runs: its kind and its text."""
PICTURES = (".png", ".gif")
"""Endings of the files of pictures."""
MADE = re.compile(r"^!\[([^\]]*)\]\(([\w-]+\.(?:png|gif))\)$", re.M)
"""A picture in a page that the code of the page writes: it has no folder."""
_PART = re.compile(r"^## .*$", re.M)
_LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(([^)\s]+)\)")


class Ran(NamedTuple):
    """Output of a block.   end: its end in the page.   text: printed text.   pictures: name -> bytes of the files of pictures
    that the code has written, or else of the figures that it has drawn, which are numbered."""

    end: int
    text: str
    pictures: dict[str, bytes]


def pages() -> list[Path]:
    """The written pages of docs/."""
    return sorted(DOCS.rglob("*.md"))


def page_name(page: Path) -> str:
    return page.relative_to(DOCS).as_posix()


def has_code(page: Path) -> bool:
    return bool(BLOCK.search(page.read_text(encoding="utf-8")))


def run_page(page: Path) -> list[Ran]:
    """Run the blocks of a page in an empty folder with a copy of the examples. A warning or an exception of a block is an
    error."""
    text = page.read_text(encoding="utf-8")
    starts = [p.start() for p in _PART.finditer(text)] if page.parent.name in ALONE else []
    ran, known, part = [], _fresh(), 0
    for block in BLOCK.finditer(text):
        now = sum(start < block.start() for start in starts)
        if now != part:
            known, part = _fresh(), now
        kind, code = block.groups()
        if kind == "yaml":
            code = f"m, settings = pf.formats.parse_yaml({code!r})"
            known.setdefault("pf", __import__("pfaffian"))
        line = text.count("\n", 0, block.start()) + 1
        ran.append(Ran(block.end(), *_run(f"{page_name(page)}", line, code, known, page.parent.name == "gallery")))
    return ran


def outputs(page: Path) -> list[Ran]:
    """What `run_page` returns, kept from an earlier build where no code has changed since: neither the page's nor any other."""
    found = kept(page_name(page), code_of(page), lambda: _as_json(run_page(page)))
    ends = (block.end() for block in BLOCK.finditer(page.read_text(encoding="utf-8")))
    return [
        Ran(end, text, {name: base64.b64decode(data) for name, data in pictures.items()})
        for end, (text, pictures) in zip(ends, found, strict=True)
    ]


def keep(page: Path, ran: Sequence[Ran]) -> None:
    """Keep what `run_page` has returned for the next build."""
    kept(page_name(page), code_of(page), lambda: _as_json(ran))


def code_of(page: Path) -> str:
    """The code of a page with the headings that start it anew: what its outputs depend on. Other words may change."""
    text = page.read_text(encoding="utf-8")
    marks = [*BLOCK.finditer(text), *(_PART.finditer(text) if page.parent.name in ALONE else ())]
    return "\0".join(mark[0] for mark in sorted(marks, key=lambda mark: mark.start()))


def _as_json(ran: Sequence[Ran]) -> list[tuple[str, dict[str, str]]]:
    return [(block.text, {name: _encoded(data) for name, data in block.pictures.items()}) for block in ran]


def kept(name: str, content: str, make: Callable[[], Any]) -> Any:
    """The result of make() as JSON, from a file of an earlier build with the same name, content and code if there is one."""
    from pfaffian.output.folder import prepare, write_file

    key = hashlib.sha256("\0".join([name, content, code_digest()]).encode()).hexdigest()
    file = prepare(KEPT) / f"{key}.json"
    if file.exists():
        return json.loads(file.read_text(encoding="utf-8"))
    found = make()
    write_file(file, json.dumps(found).encode())
    return found


def _encoded(picture: bytes) -> str:
    return base64.b64encode(picture).decode("ascii")


@functools.cache
def code_digest() -> str:
    """A digest of all code that a page may run: the library, its examples and studies, this file, and the versions of the
    packages of the extra."""
    digest = hashlib.sha256(Path(__file__).read_bytes())
    for folder in ("src", "examples", "studies"):
        for file in sorted(f for f in (ROOT / folder).rglob("*") if f.suffix in (".py", ".pyi", ".h", ".html", ".yaml", ".md")):
            digest.update(file.read_bytes())
    versions = sorted(f"{name} {version}" for name, version in extras.closure(EXTRA).items())
    return hashlib.sha256(digest.digest() + "\n".join(versions).encode()).hexdigest()


def _fresh() -> dict[str, Any]:
    return {"__name__": "page"}


def _run(name: str, line: int, code: str, known: dict[str, Any], sketched: bool) -> tuple[str, dict[str, bytes]]:
    """Printed text and pictures of a block; in the gallery also a picture of the machine m in its run r."""
    import matplotlib

    matplotlib.use("Agg")
    compiled = compile("\n" * line + code, name, "exec", dont_inherit=True)
    with _folder() as folder, warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()) as output:
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", category=DeprecationWarning, module=r"(?!page$).*")
        exec(compiled, known)
        written = {file.name: file.read_bytes() for file in sorted(folder.iterdir()) if file.suffix in PICTURES}
        drawn = list(_drawn())
        if sketched and "m" in known and "r" in known:
            from pfaffian.viewer.still import still

            drawn.insert(0, still(known["m"], known["r"]))
        return output.getvalue(), written or {f"{i}.png": picture for i, picture in enumerate(drawn)}


def _drawn() -> Iterator[bytes]:
    """The open figures as PNG, which are then closed."""
    from matplotlib import pyplot as plt

    for number in plt.get_fignums():
        file = io.BytesIO()
        plt.figure(number).savefig(file, format="png", dpi=90, bbox_inches="tight")
        plt.close(number)
        yield file.getvalue()


@contextlib.contextmanager
def _folder() -> Iterator[Path]:
    """Change into a new temporary folder with a copy of the examples."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as place:
        shutil.copytree(ROOT / "examples", Path(place, "examples"))
        os.chdir(place)
        try:
            yield Path(place)
        finally:
            os.chdir(before)


def with_outputs(page: Path, ran: Sequence[Ran], pictures: Path) -> str:
    """The text of a page with the outputs below its blocks; pictures are written into that folder next to the pages.

    A written picture that the page refers to stands there, and not below its block. References to others are left out: the
    code did not run.
    """
    text, end, out, placed = page.read_text(encoding="utf-8"), 0, "", dict[str, str]()
    wanted = {found[2] for found in MADE.finditer(text)}
    for i, block in enumerate(ran):
        out += text[end : block.end]
        end = block.end
        if block.text:
            out += f"\n\n```{{code-block}} text\n:class: output\n\n{block.text.rstrip()}\n```"
        for name, picture in block.pictures.items():
            file = pictures / f"{page_name(page)[:-3].replace('/', '-')}-{i}-{name}"
            file.write_bytes(picture)
            if name in wanted:
                placed[name] = f"/{pictures.name}/{file.name}"
            else:
                out += f"\n\n![what the code above draws](/{pictures.name}/{file.name})"
    return MADE.sub(lambda found: f"![{found[1]}]({placed[found[2]]})" if found[2] in placed else "", out + text[end:])


ZOO = "<!-- zoo -->"
"""The line of a page that is replaced by the machines of the zoo."""


def zoo_text(pictures: Path, *, run: bool) -> str:
    """Section for each machine of the zoo: description, number and file, and with `run` its picture, written into that
    folder."""
    from pfaffian.errors import plural
    from pfaffian.formats.bundled import example
    from pfaffian.viewer import zoo

    parts = []
    for name in zoo.machines():
        found, source = zoo.machine(name), example(name).read_text(encoding="utf-8")
        words = f"## {found.m.name}\n\n{found.title}\n\n`zoo:{name}`: {plural(zoo.mobility(name), 'degree')} of freedom."
        if run:
            checked, picture = kept(f"zoo {name}", source, lambda found=found: _shown(found))
            (pictures / f"zoo-{name}.png").write_bytes(base64.b64decode(picture))
            words += f" {checked}"
            words += f"\n\n![{found.m.name} in motion](/{pictures.name}/zoo-{name}.png)"
        parts.append(f"{words}\n\n```yaml\n{source.rstrip()}\n```")
    return "\n\n".join(parts)


def _shown(found: Any) -> list[str]:
    """The checked number of a machine of the zoo in words, and its picture."""
    from pfaffian.viewer import zoo
    from pfaffian.viewer.still import still

    at = zoo.start(found.m, found.settings)
    claim = zoo.claim(found, at)
    words = f"{claim.name}: {claim.value:.6g}, and {claim.expected:.6g} by: {claim.source}."
    return [words, _encoded(still(found.m, zoo.motion(found, at)))]


def stage(target: Path, *, run: bool) -> None:
    """Copy everything that Sphinx needs to a folder: pages, with outputs if `run`, pictures, settings, interface."""
    from tools.api import api_pages
    from tools.equations import with_indexes
    from tools.notebook import notebook

    shutil.copytree(DOCS, target, ignore=shutil.ignore_patterns("*.md", "__pycache__"))
    (target / "pictures").mkdir()
    for page in pages():
        ran = outputs(page) if run and has_code(page) else []
        text = with_outputs(page, ran, target / "pictures")
        if page.parent.name == NOTEBOOKS and has_code(page):
            _write(target / page_name(page).replace(".md", ".ipynb"), notebook(page, ran))
            text = f"{text.rstrip()}\n\n{{download}}`This page as a notebook <{page.stem}.ipynb>`\n"
        text = text.replace(ZOO, zoo_text(target / "pictures", run=run)) if ZOO in text else text
        _write(target / page_name(page), _relinked(with_indexes(text), page))
    for source, name in MORE.items():
        _write(target / name, _relinked((ROOT / source).read_text(encoding="utf-8"), ROOT / source))
    for name, text in api_pages().items():
        _write(target / name, text)


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


def _relinked(text: str, source: Path) -> str:
    """Redirect links to files that are pages of the site; links to other files of the repository become plain text."""
    here = _place(source)

    def link(found: re.Match[str]) -> str:
        words, (goal, mark, part) = found[1], found[2].partition("#")
        if "://" in found[2] or not goal:
            return found[0]
        there = _place((source.parent / goal).resolve())
        if there is None or here is None:
            return words
        return f"[{words}]({os.path.relpath(there, Path(here).parent)}{mark}{part})"

    return _LINK.sub(link, text)


def _place(file: Path) -> str | None:
    """Path of a repository file in the site, or None."""
    if file.is_relative_to(DOCS):
        return file.relative_to(DOCS).as_posix()
    return MORE.get(file.relative_to(ROOT).as_posix()) if file.is_relative_to(ROOT) else None


def build(site: Path = SITE, *, run: bool = True) -> str:
    """Build the site into a folder, and return the complaints of Sphinx, or "".

    Args:
        site: the folder.
        run: whether the code of the pages runs and shows its output.
    """
    with tempfile.TemporaryDirectory() as place:
        stage(Path(place, "pages"), run=run)
        command = ("-m", "sphinx", "-q", "-W", "--keep-going", "-d", f"{place}/trees", f"{place}/pages", str(site))
        found = subprocess.run([sys.executable, *command], capture_output=True, text=True)
        complaints = found.stderr.replace(place, "").strip()
        return complaints or ("" if found.returncode == 0 else f"sphinx ended with {found.returncode}")


def main(names: Sequence[str]) -> int:
    for name in names:
        for block in run_page(DOCS / name):
            print(block.text, end="")
            print("".join(f"[{name}, a picture of {len(p)} bytes]\n" for name, p in block.pictures.items()), end="")
    if names:
        return 0
    if lacking := extras.missing(EXTRA):
        print(f"the pages need {', '.join(lacking)}: run `pip install -e '.[{EXTRA}]'`")
        return 1
    complaints = build()
    print(complaints or f"{os.path.relpath(SITE)}/index.html")
    return bool(complaints)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
