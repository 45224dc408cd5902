"""Sweeps that may be larger than memory and than one machine: functions for the spaces and the stores of `pf.sweep`.

samples                     axes whose points fill a box evenly
explain                     number of runs, bytes and seconds of a sweep, before it starts
open_store, damaged         the results in a store; the repair of a store that differs from what was written
best, refine                the best runs; further sweeps around the best run
"""

from pfaffian import lazy
from pfaffian.sweeps.engine import explain as explain
from pfaffian.sweeps.ranked import best as best
from pfaffian.sweeps.ranked import refine as refine
from pfaffian.sweeps.space import samples as samples
from pfaffian.sweeps.store import damaged as damaged
from pfaffian.sweeps.store import open_store as open_store

__dir__ = lazy.lister(globals(), [])
