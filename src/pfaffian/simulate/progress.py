"""A line on the terminal while a first run traces and compiles."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from tqdm import tqdm

from pfaffian.kernel import listening

REFRESH = 0.2
"""Seconds between two looks of the line."""


@contextmanager
def told(name: str, shown: bool) -> Iterator[None]:
    """Within it, a line on stderr says what is being done, and for how long; it is gone afterwards. Nothing if not `shown`."""
    if not shown:
        yield
        return
    with tqdm(bar_format="{desc} [{elapsed}]", leave=False) as line:
        drawn = [-REFRESH]

        def listener(words: str) -> None:
            line.set_description_str(f"{name}: {words}", refresh=False)
            if time.monotonic() - drawn[0] >= REFRESH:
                drawn[0] = time.monotonic()
                line.refresh()

        with listening(listener):
            yield
