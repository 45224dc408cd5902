"""Counter-based random numbers as expressions: each is a function of its signal and sample number, so runs repeat to the bit.

The generator is a Feistel network like Philox, on words of 26 bits that are stored in doubles. Products stay below 2^53 and
are therefore exact; addition modulo 2^26 replaces the exclusive or of Philox.
"""

from __future__ import annotations

from typing import NamedTuple

import casadi as ca

WORD = 2.0**26
"""Words are whole numbers from 0 to WORD - 1."""

FACTORS = (0x3A8B5E5, 0x2545F4B)
"""Odd words by which the network multiplies."""

TURNS = (0x278DDE7, 0x2ED9EBB)
"""Increments of the key from round to round, from the fractional parts of the golden ratio and of sqrt(3)."""

ROUNDS = 14
"""Number of rounds. From 12 on, flipping any bit of counter or key flips each bit of the words in half of all cases."""


class Stream(NamedTuple):
    """Identifies the random numbers of one run.   low, high: words of the seed.   run: number of the run."""

    low: ca.SX
    high: ca.SX
    run: ca.SX


def words(counter: tuple[ca.SX, ca.SX, ca.SX, ca.SX], key: tuple[ca.SX, ca.SX]) -> tuple[ca.SX, ca.SX, ca.SX, ca.SX]:
    """Four random words from four words of a counter and two of a key. All are scalars."""
    a, b, c, d = counter
    low, high = key
    for i in range(ROUNDS):
        k = (_modulo(low + float(i * TURNS[0] % int(WORD))), _modulo(high + float(i * TURNS[1] % int(WORD))))
        (up_a, down_a), (up_c, down_c) = _product(FACTORS[0], a), _product(FACTORS[1], c)
        a, b, c, d = _modulo(up_c + b + k[0]), down_c, _modulo(up_a + d + k[1]), down_a
    return a, b, c, d


def normals(count: int, stream: Stream, signal: ca.SX | float, sample: ca.SX) -> ca.SX:
    """(count, 1) independent normal numbers of mean 0 and variance 1 for one sample of one signal, by Box and Muller.

    signal: a word that identifies the signal.   sample: its number, whole and below 2^38.
    """
    high, low = _parted(sample)
    drawn: list[ca.SX] = []
    for pair in range((count + 1) // 2):
        counter = (low, _modulo(high + 4096.0 * pair), _modulo(stream.run), ca.SX(signal))
        a, b, c, d = words(counter, (stream.low, stream.high))
        radius, angle = ca.sqrt(-2 * ca.log(_uniform(a, b))), 2 * ca.pi * _uniform(c, d)
        drawn += [radius * ca.cos(angle), radius * ca.sin(angle)]
    return ca.vertcat(ca.SX(0, 1), *drawn[:count])


def split_seed(seed: int) -> tuple[float, float]:
    """The words (low, high) of a seed from 0 to 2^52 - 1."""
    return float(seed % int(WORD)), float(seed // int(WORD))


def _uniform(high: ca.SX, low: ca.SX) -> ca.SX:
    """A number between 0 and 1, both excluded, from two words."""
    return (high * WORD + low + 0.5) * 2.0**-52


def _product(factor: int, x: ca.SX) -> tuple[ca.SX, ca.SX]:
    """The words (high, low) of factor x."""
    return _parted(float(factor) * x)


def _parted(x: ca.SX) -> tuple[ca.SX, ca.SX]:
    """The words (high, low) of a whole number x."""
    high = ca.floor(x * (1 / WORD))
    return high, x - high * WORD


def _modulo(x: ca.SX) -> ca.SX:
    """x modulo WORD."""
    return x - ca.floor(x * (1 / WORD)) * WORD
