"""Sweeps that may be larger than memory and than one machine: functions for the spaces and the stores of `pf.sweep`.

samples                     axes whose points fill a box evenly
explain                     number of runs, bytes and seconds of a sweep, before it starts
open_store, damaged         the results in a store; the repair of a store that differs from what was written
best, refine                the best runs; further sweeps around the best run

at_states.py      states in place of runs
blocks.py         the blocks of a store: an array of each variable, whose chunks are blocks of runs
description.py    the description of a store, and a copy of its bytes
engine.py         `sweep`: a space, block by block, into a store
opaque.py         digest of a law in Python, of its code and all that this reaches
plan.py           the arguments of a sweep, checked
planned.py        a planned sweep: its runs and blocks, what is stored of each run
ranked.py         the best runs of a sweep, and further sweeps around the best run
space.py          the space of a sweep: axes and their dimensions
state_values.py   the compiled values of a state
store.py          the Zarr folder: created, written, read and repaired
"""

from pfaffian import lazy
from pfaffian.sweeps.engine import explain as explain
from pfaffian.sweeps.ranked import best as best
from pfaffian.sweeps.ranked import refine as refine
from pfaffian.sweeps.space import samples as samples
from pfaffian.sweeps.store import damaged as damaged
from pfaffian.sweeps.store import open_store as open_store

__dir__ = lazy.lister(globals(), [])
