"""A check that the records of a run fit into memory."""

from __future__ import annotations

import os
from pathlib import Path

from pfaffian.errors import ModelError

SMALL = 2**22
"""Bytes that are assumed to be available without a query, which takes longer than a short run."""

UNKNOWN = 2**40
"""Bytes that are assumed to be available where the system does not report them."""


def available() -> int:
    """Bytes of memory available without swapping, as far as the system reports them."""
    limits = []
    try:
        fields = Path("/proc/meminfo").read_text(encoding="ascii").split("MemAvailable:")[1].split()
        limits.append(int(fields[0]) * 1024)
    except (OSError, ValueError, IndexError):
        if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
            limits.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    try:  # the limit of a container
        group = Path("/sys/fs/cgroup")
        limit, used = ((group / name).read_text(encoding="ascii") for name in ("memory.max", "memory.current"))
        limits.append(int(limit) - int(used))
    except (OSError, ValueError):
        pass
    return min(limits, default=UNKNOWN)


def check_memory(records: int, runs: int, signals: int, states: int) -> None:
    """Raise ModelError if records of `signals` numbers and states of `states` numbers do not fit into the available memory."""
    needed = 8 * runs * (records * signals + 4 * states)
    if needed > SMALL and needed > (free := available()):
        raise ModelError(
            f"this run needs {needed} bytes ({needed / 1e9:.3g} GB) for {records} records of {signals} numbers in "
            f"{runs} run(s), and {free} bytes ({free / 1e9:.3g} GB) are available: record less often (every=...), "
            "fewer signals (record=[...]), or compute fewer runs at a time"
        )
