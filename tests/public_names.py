"""The public names, collected in one place for the tests of promises about them."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pfaffian as pf
from tools.api import public_names

ROOMS = {name: getattr(pf, name) for name in public_names(pf) if isinstance(getattr(pf, name), ModuleType)}

PUBLIC: dict[str, Any] = {name: getattr(pf, name) for name in public_names(pf) if name not in ROOMS} | {
    f"{room}.{name}": getattr(module, name) for room, module in ROOMS.items() for name in public_names(module)
}
"""Name with its room -> value."""
