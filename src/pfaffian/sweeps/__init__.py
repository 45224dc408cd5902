"""Sweeps that outgrow memory and machine: what `pf.sweep` runs, and what one does with its store.

samples                     axes that fill a box evenly
explain                     runs, bytes and seconds of a sweep, before it starts
open_store, damaged         what is in a store, and whether it is what was written
best, refine                the best runs; more and more runs around them
"""

from pfaffian import lazy
from pfaffian.sweeps.engine import explain as explain
from pfaffian.sweeps.ranked import best as best
from pfaffian.sweeps.ranked import refine as refine
from pfaffian.sweeps.space import samples as samples
from pfaffian.sweeps.store import damaged as damaged
from pfaffian.sweeps.store import open_store as open_store

__dir__ = lazy.lister(globals(), [])
