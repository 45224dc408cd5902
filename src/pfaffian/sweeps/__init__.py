"""Sweeps that outgrow memory and machine: what `pf.sweep` runs, and what one does with its store.

samples                     axes that fill a box evenly
explain                     runs, bytes and seconds of a sweep, before it starts
open_store, damaged         what is in a store, and whether it is what was written
best, refine                the best runs; more and more runs around them
"""

from pfaffian.sweeps.engine import explain
from pfaffian.sweeps.ranked import best, refine
from pfaffian.sweeps.space import samples
from pfaffian.sweeps.store import damaged, open_store

__all__ = ["best", "damaged", "explain", "open_store", "refine", "samples"]


def __dir__() -> list[str]:
    return __all__
