"""A line on the terminal while a first run is traced and compiled."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from tqdm import tqdm

from pfaffian.kernel import listening

REFRESH = 0.2
"""Seconds between two updates of the line."""


@contextmanager
def progress_line(name: str, shown: bool) -> Iterator[None]:
    """While it is open, a line on stderr tells what is being done and for how long; it vanishes afterwards. Nothing if not
    `shown`."""
    if not shown:
        yield
        return
    with tqdm(bar_format="{desc} [{elapsed}]", leave=False) as line:
        drawn = [-REFRESH]

        def listener(message: str) -> None:
            line.set_description_str(f"{name}: {message}", refresh=False)
            if time.monotonic() - drawn[0] >= REFRESH:
                drawn[0] = time.monotonic()
                line.refresh()

        with listening(listener):
            yield
