"""Digests of equations: of a mechanism, and of any caller's function by the graph that it traces."""

from __future__ import annotations

from pfaffian.model.digest import structure
from pfaffian.model.mechanism import Mechanism
from pfaffian.model.traced_function import graph
from pfaffian.terms.present import of_function, present

__all__ = ["digest", "graph", "of_function"]


def digest(m: Mechanism) -> str:
    """sha256 of everything in a mechanism, with its functions as they are now. Raises ModelError: one of them fails."""
    now = present(m)
    notes = vars(now)
    if "_digest" not in notes:
        notes["_digest"] = structure(now)
    return notes["_digest"]
