"""Counter-based random numbers: exact integers, uniform, and independent between runs, signals, samples and seeds."""

import casadi as ca
import numpy as np
import pytest
from scipy import stats

from pfaffian import kernel
from pfaffian.maths import random

W = int(random.WORD)


def compiled(inputs, output, **how):
    return kernel.compile(ca.Function("random", inputs, [output]), **how)


@pytest.fixture(scope="module")
def words():
    c, k = ca.SX.sym("c", 4), ca.SX.sym("k", 2)
    return compiled([c, k], ca.vertcat(*random.words(tuple(ca.vertsplit(c)), tuple(ca.vertsplit(k)))), backend="numpy")


def drawn(count=2, **how):
    x = ca.SX.sym("x", 5)  # low, high, run, signal, sample
    return compiled([x], random.normals(count, random.Stream(x[0], x[1], x[2]), x[3], x[4]), **how)


def requests(**who):
    """Rows (n, 5) of low, high, run, signal, sample, with zeros where nothing is given."""
    rows = np.broadcast_arrays(*(np.asarray(who.get(n, 0), float) for n in ("low", "high", "run", "signal", "sample")))
    return np.stack(rows, axis=-1).reshape(-1, 5)


def network(counter, key):
    """The words that `random.words` gives, computed with Python's integers."""
    a, b, c, d = map(int, counter)
    for i in range(random.ROUNDS):
        k = [(int(key[j]) + i * random.TURNS[j]) % W for j in range(2)]
        p, r = random.FACTORS[0] * a, random.FACTORS[1] * c
        a, b, c, d = (r // W + b + k[0]) % W, r % W, (p // W + d + k[1]) % W, p % W
    return [a, b, c, d]


def test_words_agree_with_python_integers(words):
    r = np.random.default_rng(1)
    counter, key = r.integers(0, W, (200, 4)), r.integers(0, W, (200, 2))
    counter[0], key[0] = W - 1, W - 1
    assert words(counter, key)[0].tolist() == [network(c, k) for c, k in zip(counter, key, strict=True)]


def test_every_bit_of_counter_and_key_flips_half_of_all_bits(words):
    r = np.random.default_rng(2)
    n = 1000
    # Small numbers, as in use; a weak network would not mix them.
    given = np.column_stack(
        [np.arange(n), np.zeros(n), r.integers(0, 5000, n), np.full(n, 3), r.integers(0, 9, n), np.zeros(n)]
    )
    given = given.astype(np.int64)
    before = words(given[:, :4], given[:, 4:])[0].astype(np.int64)
    for word in range(6):
        for bit in range(26):
            other = given.copy()
            other[:, word] ^= 1 << bit
            turned = before ^ words(other[:, :4], other[:, 4:])[0].astype(np.int64)
            share = np.array([((turned >> k) & 1).mean(axis=0) for k in range(26)])
            assert np.abs(share - 0.5).max() < 6 * 0.5 / np.sqrt(n), (word, bit)


def test_uniform_to_chi_square(words):
    n = 200_000
    counter = np.zeros((n, 4))
    counter[:, 0] = np.arange(n)
    found = words(counter, np.zeros(2))[0]
    for word in found.T:
        for part in (word // (W // 256), word % 256):  # the upper and the lower bits of each word
            assert 1e-4 < stats.chisquare(np.bincount(part.astype(int), minlength=256)).pvalue < 1 - 1e-4
    pairs = np.bincount((found[:-1, 0] // (W // 64) * 64 + found[1:, 0] // (W // 64)).astype(int), minlength=4096)
    assert 1e-4 < stats.chisquare(pairs).pvalue < 1 - 1e-4


def test_normal():
    n = 200_000
    x = drawn(backend="numpy")(requests(low=7, sample=np.arange(n)))[0]
    for column in x.T:
        assert stats.kstest(column, "norm").pvalue > 1e-3
        assert abs(column.mean()) < 4 / np.sqrt(n) and abs(column.var() - 1) < 4 * np.sqrt(2 / n)
        assert abs(stats.kurtosis(column)) < 4 * np.sqrt(24 / n)
    assert 3.9 < np.abs(x).max() < 8.6


@pytest.mark.parametrize("neighbour", ["low", "high", "run", "signal", "sample"])
def test_neighbouring_streams_are_uncorrelated(neighbour):
    n, draw = 100_000, drawn(3, backend="numpy")
    who = {"sample": np.arange(n)} if neighbour != "sample" else {"run": np.arange(n)}
    a, b = (draw(requests(**who | {neighbour: i}))[0] for i in (4, 5))
    assert np.abs(np.corrcoef(a.T, b.T) - np.eye(6)).max() < 5 / np.sqrt(n)
    assert np.abs(np.corrcoef(a.T**2, b.T**2) - np.eye(6)).max() < 5 / np.sqrt(n)


def test_large_counts_and_seeds_give_distinct_numbers():
    draw = drawn(3, backend="numpy")
    samples = np.array([0, 1, W - 1, W, W + 1, 2.0**38 - 1])
    x = draw(requests(sample=samples))[0]
    assert len({*x.ravel()}) == x.size
    assert random.split_seed(0) == (0, 0) and random.split_seed(2**52 - 1) == (W - 1, W - 1)
    assert random.split_seed(W + 5) == (5, 1)


def test_same_bits_compiled():
    given = requests(low=3, run=np.arange(65) % 5, signal=9, sample=np.arange(65))
    results = [drawn(3, **how)(given)[0] for how in ({"backend": "c"}, {"backend": "c", "lanes": 1}, {"backend": "numpy"})]
    assert all(np.array_equal(results[0], r) for r in results[1:])
