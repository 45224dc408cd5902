"""Rows of every closure kind and of users' functions: A, b and the residuals are derivatives of one another."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest
from hypothesis import given

import pfaffian as pf
from tests.identities.test_inertia import rate
from tests.random_mechanisms import (
    CLOSURES,
    SYMMETRIC,
    Case,
    closing,
    loops,
    matrices,
    on_velocity,
    placements,
    random_tree,
    reverse,
)  # fmt: skip
from tests.tolerance import ALGEBRA, DERIVATIVE, close

ROWS = {"weld": 6, "revolute": 5, "prismatic": 5, "helical": 5, "cylindrical": 4, "spherical": 3, "planar": 3, "universal": 4,
        "planar-translation": 4, "translation": 3, "schoenflies": 2, "planar-helical": 3,
        "point-on-line": 2, "point-on-plane": 1, "distance": 1}  # fmt: skip
PARTS = {
    "A": lambda T: T.A,
    "b": lambda T: T.b,
    "phi": lambda T: T.rows.phi,
    "eta": lambda T: T.rows.eta,
    "from eta": lambda T: ca.jacobian(T.rows.eta, T.v),
    "drift": lambda T: rate(T, T.rows.eta),
    "phi rate": lambda T: rate(T, T.rows.phi),
    "phi drift": lambda T: rate(T, rate(T, T.rows.phi)),
}


def chain(random: np.random.Generator) -> pf.Mechanism:
    return random_tree(random, ["free", "spherical", "revolute", "planar", "prismatic"], [-1, 0, 1, 0, -1])


@pytest.mark.parametrize("kind", CLOSURES)
@pytest.mark.parametrize("ends", [("world", "b2"), ("b4", "b3"), ("b2", "b3"), ("b0", "b2")])
def test_closure_rows(kind, ends):
    random = np.random.default_rng(5)
    m = chain(random)
    q = pf.random_configuration(m, random)
    closed = m.with_(constraints=[closing("c", kind, *ends, random, placements(m, q))])
    v = on_velocity(closed, q, random.normal(size=m.nv), 0.0)
    r = matrices(Case(closed, q, v, np.zeros(0), 0.0), PARTS)
    size = np.abs(r["A"]).max() * (1 + np.abs(v).sum()) ** 2
    assert len(r["A"]) == ROWS[kind]
    close(r["phi"], 0 * r["phi"], ALGEBRA, "placed closed", 10 if "helical" in kind else 1)  # metres that screws travelled
    close(r["eta"], 0 * r["eta"], ALGEBRA, "moving closed", size)
    close(r["from eta"], r["A"], DERIVATIVE, "A is the derivative of eta")
    close(r["phi rate"], r["eta"], DERIVATIVE, "eta is the rate of phi on the manifold", size)
    close(r["drift"], -r["b"], DERIVATIVE, "b is minus the drift of A v", size)
    close(r["phi drift"], -r["b"], DERIVATIVE, "b is minus the second rate of phi on the manifold", size)


@pytest.mark.parametrize("kind", [k for k in CLOSURES if k not in ("universal", "distance") and "helical" not in k])
def test_free_motions_of_a_closure_are_those_of_its_kind(kind):
    """A free body closed to the world retains exactly the motions that the kind names."""
    random = np.random.default_rng(6)
    m = random_tree(random, ["free"], [-1])
    free = {"weld": [], "revolute": [5], "prismatic": [2], "cylindrical": [2, 5], "spherical": [3, 4, 5],
            "planar": [0, 1, 5], "planar-translation": [0, 1], "translation": [0, 1, 2], "schoenflies": [0, 1, 2, 5],
            "point-on-line": [2, 3, 4, 5], "point-on-plane": [0, 1, 3, 4, 5]}[kind]  # fmt: skip
    axis = np.array([0.6, 0.0, 0.8])
    place = pf.pose((0.1, -0.3, 0.2), rpy=(0.4, 0.2, -1.0))
    c = pf.closure("c", kind, "world", "b0", placement_a=place, placement_b=place, axis=axis)
    bodies = [pf.body("b0", 1.0, inertia=1.0)]
    m = pf.mechanism("one", bodies, [pf.joint("j", "free", "world", "b0")], constraints=[c])
    r = matrices(Case(m, m.neutral(), np.zeros(6), np.zeros(0), 0.0), {"A": lambda T: T.A})
    R, p = m.value(place.R), m.value(place.p).ravel()
    z = R @ axis
    x = np.cross([0, 1, 0], z) / np.linalg.norm(np.cross([0, 1, 0], z))
    frame = np.column_stack([x, np.cross(z, x), z])
    for i in free:
        d = frame[:, i % 3]
        twist = np.concatenate([d, np.zeros(3)]) if i < 3 else np.concatenate([np.cross(p, d), d])
        close(r["A"] @ twist, np.zeros(len(r["A"])), ALGEBRA, f"{kind} leaves motion {i}")
    assert np.linalg.matrix_rank(r["A"], 1e-9) == 6 - len(free)


def test_reversed_ends_span_the_same_rows():
    random = np.random.default_rng(8)
    m = chain(random)
    q = pf.random_configuration(m, random)
    at = placements(m, q)
    for kind in SYMMETRIC:
        c = closing("c", kind, "b3", "b2", random, at)
        A = [matrices(Case(m.with_(constraints=[x]), q, np.zeros(m.nv), np.zeros(0), 0.0), {"A": lambda T: T.A})["A"]
             for x in (c, reverse(c))]  # fmt: skip
        assert np.linalg.matrix_rank(np.vstack(A), tol=1e-9) == len(A[0])


@given(loops())
def test_rows_of_mixed_constraints(case):
    r = matrices(case, PARTS | {"level": lambda T: ca.DM(T.rows.level)})
    level = r["level"].ravel()
    on, residual = level == 0, level < 2
    size = np.abs(r["A"]).max() * (1 + np.abs(case.v).sum()) ** 2 + 10
    close(r["from eta"][residual], r["A"][residual], DERIVATIVE, "A is the derivative of eta", size)
    close(r["phi rate"][on], r["eta"][on], DERIVATIVE, "eta is the rate of phi", size)
    if np.abs(r["eta"]).max() < 1e-10:
        close(r["drift"][residual], -r["b"][residual], DERIVATIVE, "b is minus the drift", size)
