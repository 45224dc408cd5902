"""`pfaffian docs`: list the pages of the manual, print one, copy its code, or open the site."""

from __future__ import annotations

import argparse
from pathlib import Path

from pfaffian.cli.terminal import DONE
from pfaffian.errors import ModelError
from pfaffian.output.plain import lines, table, text


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `pfaffian docs`."""
    add = parser.add_argument
    add("name", nargs="?", metavar="PAGE", help="a page, e.g. tutorials/vehicle")
    add("--site", action="store_true", help="open the site that `python -m tools.pages` built in a browser")
    add("--copy", metavar="PAGE", help="write the code of a page as a program into this folder")


def command(chosen: argparse.Namespace) -> int:
    """The command `pfaffian docs`: list the pages of the manual, print one, copy its code, or open the site."""
    import webbrowser

    from pfaffian.output.folder import write_file
    from pfaffian.viewer import manual

    if chosen.copy is not None:
        file = manual.page(chosen.copy)
        target = Path(f"{file.stem}.py")
        if target.exists():
            raise ModelError(f"{text(str(target))} exists already; move it away, or copy in another folder")
        print(f"written: {write_file(target, manual.program(file).encode('utf-8'))}")
    elif chosen.site:
        webbrowser.open(manual.site().as_uri())
    elif chosen.name is not None:
        print(lines(manual.page(chosen.name).read_text(encoding="utf-8")))
    else:
        print(table([(name, manual.title(file)) for name, file in manual.pages().items()], ("page", "title")))
        print("pfaffian docs PAGE prints one, pfaffian docs --copy PAGE writes its code as a program")
    return DONE
