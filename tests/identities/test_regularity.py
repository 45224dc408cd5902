"""`regularity` is a number of the constraints, not of how they are written: frames, order, and the way it is computed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import casadi as ca
import numpy as np
import pytest

import pfaffian as pf
from pfaffian.dynamics.regularity import regularity
from pfaffian.maths import minimum_norm
from pfaffian.maths.subgroups import SUBGROUPS
from pfaffian.model.mechanism import random_configuration
from pfaffian.terms.terms import symbols
from tests.linkages import storeys
from tests.random_mechanisms import allowed, closing, placements, random_tree
from tests.tolerance import close

KINDS = [kind for kind in (*SUBGROUPS, "weld") if kind not in ("free", "fixed")]
TREE = ["revolute", "prismatic", "spherical", "cylindrical", "revolute"], [-1, 0, 1, 2, 1]


def regular(m: pf.Mechanism, q: Sequence[float] | np.ndarray) -> float:
    T = symbols(m)
    f = ca.Function("f", [T.q, T.v, T.t, m.p_symbols], [regularity(T)])
    return float(f(q, np.zeros(m.nv), 0, m.p_defaults))


@pytest.mark.parametrize("kind", KINDS)
def test_regularity_knows_neither_frames_nor_order(kind: str) -> None:
    """Both frames of a closure anywhere on the motions that it leaves, its bodies hung by slides and turns."""
    for seed in range(2):
        random = np.random.default_rng(seed)
        tree = random_tree(random, *TREE)
        q = random_configuration(tree, random, 1.0)
        at = placements(tree, q)
        first, second = closing("first", kind, "b0", "b3", random, at), closing("second", "distance", "b4", "b3", random, at)
        own = regular(tree.with_(constraints=[first, second]), q)
        pitch = {"pitch": first.number} if "helical" in kind else {}
        a, b = (allowed(kind, random, pitch) for _ in range(2))
        moved = replace(first, placement_a=first.placement_a @ a, placement_b=first.placement_b @ b)
        assert 1e-3 < own < 1
        close(regular(tree.with_(constraints=[second, moved]), q), own, 1e-8, f"regularity of {kind}, seed {seed}")


def test_rows_without_entries_do_not_count() -> None:
    """Of a hinge that closes a loop in a plane two rows are left, of a ball joint there the same two."""
    R, q = np.eye(3), [0.3, -1.1, 0.4, 0.2, 0.7, -0.5]
    m = storeys(2, R)
    balls = [replace(c, kind="spherical") for c in m.constraints]
    close(regular(m.with_(constraints=balls), q), regular(m, q), 1e-9, "regularity of hinges and balls")


def test_regularity_by_orthonormal_rows_and_by_their_products(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chains of loops take A A^T, all else orthonormal rows: one number."""
    R = np.linalg.qr(np.random.default_rng(4).normal(size=(3, 3)))[0]
    m = storeys(3, R * np.sign(np.linalg.det(R)))
    found = []
    for angle in (0.4, 1.2, 1.5):
        q = pf.assemble(m, {f"{leg} {i}": angle for i in range(3) for leg in ("left", "right")}).q[0]
        for fill in (2.0, -1.0):
            monkeypatch.setattr(minimum_norm, "FILL_ACCEPTED", fill)
            found.append(regular(m, q))
        close(found[-1], found[-2], 1e-9, f"regularity at {angle} rad")
    assert np.ptp(found[::2]) > 0.05
