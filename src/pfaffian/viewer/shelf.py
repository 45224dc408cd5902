"""Studies and examples: beside src/ in a checkout, inside the package after an ordinary install."""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path

from pfaffian.errors import ModelError
from pfaffian.output.plain import text


def shelf(kind: str) -> Path:
    """The folder of "studies" or "examples" that came with this package. Raises ModelError: there is none."""
    package = Path(__file__).resolve().parents[1]
    for place in (package / f"_{kind}", package.parents[1] / kind):
        if place.is_dir():
            return place
    raise ModelError(f"this copy of the package came without its {kind}; they are in a checkout of the source")


def examples() -> dict[str, Path]:
    """Name -> file of each example."""
    return {f.stem: f for f in sorted(shelf("examples").glob("*.yaml"))}


def model_file(given: Path) -> Path:
    """The given file, or if there is none the example of that name, as `four_bar` or `examples/four_bar.yaml`.

    Raises ModelError: there is neither; the message lists the examples.
    """
    if given.exists():
        return given
    known = examples()
    alone = given.parts == (given.name,) or given.parts == ("examples", given.name)
    name = given.stem if given.suffix in ("", ".yaml") else ""
    if alone and name.replace("-", "_") in known:
        return known[name.replace("-", "_")]
    near = get_close_matches(given.stem[:64], known, 1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    where = text(shelf("examples"))
    raise ModelError(f"there is no file {text(given, 200)!r}{hint}; the examples are {', '.join(known)}, by name or in {where}")
