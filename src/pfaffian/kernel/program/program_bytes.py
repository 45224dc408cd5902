"""Programs to bytes and back, so that a Program that was traced once need not be traced again by another process."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

import numpy as np

from pfaffian.kernel.program.program import Program, WordSteps, callees_first


def pack(programs: Sequence[Program]) -> bytes:
    """The Programs and all their callees as bytes: the structure, then the constants."""
    constants = [c for p in callees_first(programs) for c in p.constants]
    return structure(programs) + np.array(constants, float).tobytes()


def structure(programs: Sequence[Program]) -> bytes:
    """The Programs and all their callees without the constants, as bytes: a count of integers, then the integers."""
    order = callees_first(programs)
    index = {program.digest(): i for i, program in enumerate(order)}
    numbers = [len(order), len(programs), *(index[program.digest()] for program in programs)]
    words = []
    for p in order:
        for part in (p.inputs, [index[c.digest()] for c in p.callees], [len(o) for o in p.outputs]):
            numbers += (len(part), *part)
        numbers += (len(p.constants), len(p.steps), len(p.words))
        numbers += [v for output in p.outputs for v in output]
        words.append(p.words)
    whole = np.concatenate([np.array([len(numbers), *numbers], np.int32), *words])
    return np.int64(len(whole)).tobytes() + whole.tobytes()


def unpack(data: bytes) -> tuple[Program, ...]:
    """The Programs that `pack` turned into bytes."""
    end = 8 + 4 * int(np.frombuffer(data[:8], np.int64)[0])
    whole, at = np.frombuffer(data[8:end], np.int32), 1 + int(np.frombuffer(data[8:12], np.int32)[0])
    numbers = iter(whole[1:at].tolist())
    constants = iter(np.frombuffer(data[end:]).tolist())
    count, tops = next(numbers), next(numbers)
    chosen = [next(numbers) for _ in range(tops)]
    unpacked: list[Program] = []
    for _ in range(count):
        inputs, callees, lengths = [tuple(islice(numbers, next(numbers))) for _ in range(3)]
        width, n_steps, n_words = islice(numbers, 3)
        outputs = tuple(tuple(islice(numbers, n)) for n in lengths)
        called = tuple(unpacked[i] for i in callees)
        sizes = tuple((c.n_in, c.n_out) for c in called)
        steps = WordSteps(whole[at : at + n_words], n_steps, sum(inputs) + width, sizes)
        unpacked.append(Program(inputs, tuple(islice(constants, width)), steps, outputs, called))
        at += n_words
    return tuple(unpacked[i] for i in chosen)
