"""Studies and the zoo of examples: beside src/ in a checkout, inside the package after an ordinary install."""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path

from pfaffian.errors import ModelError
from pfaffian.formats.number import printable

ZOO = "zoo:"
"""Before the name of a machine of the zoo, where a file of that name is not meant."""


def shelf(kind: str) -> Path:
    """The folder of "studies" or "examples" that came with this package. Raises ModelError: there is none."""
    package = Path(__file__).resolve().parents[1]
    for place in (package / f"_{kind}", package.parents[1] / kind):
        if place.is_dir():
            return place
    raise ModelError(f"this copy of the package came without its {kind}; they are in a checkout of the source")


def examples() -> dict[str, Path]:
    """Name -> file of each machine of the zoo."""
    return {f.stem: f for f in sorted(shelf("examples").glob("*.yaml"))}


def example(name: str) -> Path:
    """The file of a machine of the zoo, as `four_bar` or `four-bar`. Raises ModelError: there is none, and the nearest one."""
    known = examples()
    if name.replace("-", "_") in known:
        return known[name.replace("-", "_")]
    raise ModelError(f"the zoo has no machine {printable(name)}{_near(name, known)}; `pfaffian zoo` lists them")


def model_file(given: Path) -> Path:
    """The given file, or if there is none the machine of that name, as `four_bar`, `zoo:four_bar` or `examples/four_bar.yaml`.

    Raises ModelError: there is neither; the message has the nearest name.
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
        f"there is no file {printable(str(given))}{hint}; `pfaffian zoo` lists the machines that came with this package"
    )


def _exists(path: Path) -> bool:
    """Whether there is one; a name that no file can have has none."""
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def _near(name: str, known: dict[str, Path]) -> str:
    near = get_close_matches(name[:64].replace("-", "_"), known, 1)
    return f"; did you mean {near[0]!r}?" if near else ""
