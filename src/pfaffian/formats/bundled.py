"""Finding the studies and the zoo of examples: next to src/ in a checkout, inside the package when it is installed."""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path

from pfaffian.errors import ModelError
from pfaffian.formats.text.strict_number import printable

ZOO = "zoo:"
"""Prefix of the name of a machine of the zoo, to tell it from a file of that name."""


def shelf(kind: str) -> Path:
    """The folder of "studies" or "examples" that comes with this package. Raises ModelError: there is none."""
    package = Path(__file__).resolve().parents[1]
    for place in (package / f"_{kind}", package.parents[1] / kind):
        if place.is_dir():
            return place
    raise ModelError(f"this copy of the package has no {kind}; they are in a checkout of the source")


def examples() -> dict[str, Path]:
    """Name of each machine of the zoo -> its file."""
    return {f.stem: f for f in sorted(shelf("examples").glob("*.yaml"))}


def example(name: str) -> Path:
    """The file of a machine of the zoo, such as `four_bar` or `four-bar`. Raises ModelError: there is no such machine."""
    known = examples()
    if name.replace("-", "_") in known:
        return known[name.replace("-", "_")]
    raise ModelError(f"the zoo has no machine {printable(name)}{_near(name, known)}; `pfaffian zoo` lists them")


def model_file(given: Path) -> Path:
    """The given file if it exists, else the file of a machine: `four_bar`, `zoo:four_bar` or `examples/four_bar.yaml`.

    Raises ModelError: there is neither a file nor a machine; the message names the nearest machine.
    """
    if str(given).startswith(ZOO):
        return example(str(given).removeprefix(ZOO))
    if _exists(given):
        return given
    known = examples()
    alone = given.parts == (given.name,) or given.parts == ("examples", given.name)
    name = given.stem if given.suffix in ("", ".yaml") else ""
    if alone and name.replace("-", "_") in known:
        return known[name.replace("-", "_")]
    hint = _near(given.stem, known)
    raise ModelError(
        f"there is no file {printable(str(given))}{hint}; `pfaffian zoo` lists the machines that come with this package"
    )


def _exists(path: Path) -> bool:
    """Whether a file or folder exists; False for a name that no file can have."""
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def _near(name: str, known: dict[str, Path]) -> str:
    """The end of a message with the nearest known name, empty if none is near."""
    near = get_close_matches(name[:64].replace("-", "_"), known, 1)
    return f"; did you mean {near[0]!r}?" if near else ""
