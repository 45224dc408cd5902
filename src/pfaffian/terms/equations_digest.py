"""Digests of equations: of a mechanism, and of a caller's function by the expression graph that it returns."""

from __future__ import annotations

from pfaffian.kernel.remember import once_for
from pfaffian.model.mechanism import Mechanism
from pfaffian.model.mechanism_digest import structure
from pfaffian.model.traced_function import graph
from pfaffian.terms.traced_now import of_function, present

__all__ = ["digest", "graph", "of_function"]


def digest(m: Mechanism) -> str:
    """sha256 of a whole mechanism, with what its functions return now. Raises ModelError: one of them fails."""
    now = present(m)
    return once_for(now, "digest", lambda: structure(now))
