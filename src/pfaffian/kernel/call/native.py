"""Calls of a compiled function by ctypes: batches of runs as arrays with strides, single runs through fixed buffers."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from itertools import accumulate

import numpy as np

from pfaffian.kernel.call import memory
from pfaffian.kernel.call.recipe import PortLengths
from pfaffian.kernel.call.tiers import Tier, Tiers


class Native:
    """The function pfaffian_evaluate of a Kernel, in the tier that is in use.   work: operations of one evaluation."""

    def __init__(self, tiers: Tiers, shape: PortLengths, lanes: int, work: int) -> None:
        self.tiers, self.shape, self.lanes, self.work = tiers, shape, lanes, work
        self.local = threading.local()

    def batch(self, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray], batch: int, threads: int) -> None:
        """Evaluate all runs and write their outputs; the arrays are (batch, n) or (n,), with any strides."""
        ports = [memory.port(a, 0 if a.ndim == 2 else None) for a in (*inputs, *outputs)]
        table = np.array(ports or [(0, 0, 0)], dtype=np.int64)
        first = table.ctypes.data
        second = first + 24 * len(inputs)
        tier = self.tiers.take(self.work * -(-batch // self.lanes))

        def work(begin: int, end: int) -> None:
            tier.call(first, second, batch, begin, end, memory.WORKSPACES.get(tier.doubles))

        memory.in_blocks(work, batch, self.lanes, threads)

    def single(self, arrays: Sequence[np.ndarray]) -> tuple[np.ndarray, ...] | None:
        """Evaluate one run, given as float64 arrays (n_i,), in a few microseconds; None if the arrays have another form."""
        tier = self.tiers.take(self.work)
        buffers = getattr(self.local, "buffers", None)
        if buffers is None or buffers.tier is not tier:
            buffers = self.local.buffers = _RunBuffers(self.shape, tier)
        if len(arrays) != len(buffers.inputs):
            return None
        for place, array in zip(buffers.inputs, arrays, strict=True):
            if type(array) is not np.ndarray or array.dtype is not memory.FLOAT or array.shape != place.shape:
                return None
            place[...] = array
        tier.call(*buffers.call)
        result = buffers.output.copy()
        return tuple([result[a:b] for a, b in buffers.edges])


class _RunBuffers:
    """Fixed buffers of one thread for the inputs and outputs of one run, with the arguments of the call."""

    def __init__(self, shape: PortLengths, tier: Tier) -> None:
        self.tier = tier
        sizes_in, sizes_out = shape
        edges_in, self.edges = _edges(sizes_in), _edges(sizes_out)
        self.input, self.output = np.zeros(sum(sizes_in)), np.zeros(sum(sizes_out))
        self.work = np.zeros(tier.doubles + 8)
        self.inputs = [self.input[a:b] for a, b in edges_in]
        ports = [memory.port(self.input[a:b], None) for a, b in edges_in]
        ports += [memory.port(self.output[a:b], None) for a, b in self.edges]
        self.table = np.array(ports or [(0, 0, 0)], dtype=np.int64)
        address, place = self.table.ctypes.data, (self.work.ctypes.data + 63) & ~63
        self.call = address, address + 24 * len(sizes_in), 1, 0, 1, place


def _edges(sizes: Sequence[int]) -> list[tuple[int, int]]:
    """(begin, end) of parts of these sizes in one array."""
    ends = list(accumulate(sizes))
    return [(end - size, end) for size, end in zip(sizes, ends, strict=True)]
