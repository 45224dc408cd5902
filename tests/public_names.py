"""The public names, gathered in one place for the promises about them."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pfaffian as pf

ROOMS = {name: getattr(pf, name) for name in pf.__all__ if isinstance(getattr(pf, name), ModuleType)}

PUBLIC: dict[str, Any] = {name: getattr(pf, name) for name in pf.__all__ if name not in ROOMS} | {
    f"{room}.{name}": getattr(module, name) for room, module in ROOMS.items() for name in module.__all__
}
"""Name, with its room -> value."""
