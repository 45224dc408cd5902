"""Every formulation against every other on random mechanisms, also with redundant, singular, driven, nonholonomic rows."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import assume, given

import pfaffian as pf
from pfaffian.dynamics.motion import RANK_TOLERANCE
from tests.random_mechanisms import Case, loops, matrices, random_forces, random_tree, small, trees
from tests.tolerance import ALGEBRA, CLEAR_OF_THRESHOLD, SATISFIED, close

CONSTRAINED = [n for n in pf.FORMULATIONS if n != "articulated"]
HEAVY = {"quasi-velocity-symmetric"}  # an iterated matrix square root: half a minute of tracing at 16 velocities
SQUARES = {"multipliers"}  # works with A M^-1 A^T, so the condition of the rows enters twice


def affordable(m: pf.Mechanism) -> list[str]:
    """Formulations for constrained mechanisms that can be traced in about a second."""
    if m.nv > 9:
        return ["gauss", "multipliers", "projection", "quasi-velocity"]
    return [n for n in CONSTRAINED if n not in HEAVY or m.nv <= 5]


def motions(case: Case, names: list[str], **parts) -> dict[str, np.ndarray]:
    """v_dot, reaction and rank by each formulation, with the terms that they use."""
    made: dict = {}

    def part(name, i):
        return lambda T: made.setdefault(name, pf.FORMULATIONS[name](T))[i]

    results = {(n, what): part(n, i) for n in names for i, what in enumerate(("v_dot", "reaction", "rank"))}
    terms = {"M": lambda T: T.M, "A": lambda T: T.A, "b": lambda T: T.b, "force": lambda T: T.force,
             "eta": lambda T: T.rows.eta, "phi": lambda T: T.rows.phi, "size": lambda T: T.row_size}  # fmt: skip
    return matrices(case, results | terms | parts)


def unit_rows(A: np.ndarray, size: np.ndarray) -> np.ndarray:
    """Rows of unit length, shorter where a row is below its typical length; rank is measured on them."""
    length = np.linalg.norm(A, axis=1, keepdims=True)
    return A / np.where(length > 0, length, 1) * np.minimum(1, np.sqrt(size))


def remainders(A: np.ndarray, size: np.ndarray) -> np.ndarray:
    """Length that remains of each row after those before it, by least squares."""
    rows = unit_rows(A, size)
    left = []
    for i, row in enumerate(rows):
        before = rows[:i][np.linalg.norm(rows[:i], axis=1) > CLEAR_OF_THRESHOLD[0]]
        fit = np.linalg.lstsq(before.T, row, rcond=1e-6)[0] if len(before) else np.zeros(0)
        left.append(np.linalg.norm(row - before.T @ fit))
    return np.array(left)


def condition(A: np.ndarray, size: np.ndarray) -> float:
    """Condition of the rows over their nonzero singular values."""
    s = np.linalg.svd(unit_rows(A, size), compute_uv=False)
    s = s[s > CLEAR_OF_THRESHOLD[0]]
    return s[0] / s[-1] if len(s) else 1.0


def weighted(r: dict) -> np.ndarray:
    return np.linalg.solve(np.linalg.cholesky(r["M"]), r["A"].T).T


def well_posed(r: dict) -> None:
    """Keep examples that satisfy their constraints and whose rank is clear."""
    low, high = CLEAR_OF_THRESHOLD
    assume(max(np.abs(r["eta"]).max(), np.abs(r["phi"]).max()) < SATISFIED)
    for A in (r["A"], weighted(r)):
        left = remainders(A, r["size"])
        assume(((left < low) | (left > high)).all())


@given(loops())
def test_formulations_agree(case):
    chosen = affordable(case.m)
    r = motions(case, chosen)
    well_posed(r)
    rows = max(condition(A, r["size"]) for A in (r["A"], weighted(r)))
    r["free"] = np.linalg.solve(r["M"], r["force"])
    for name in chosen:
        check_equations(r, name, rows)
    for one, other in itertools.combinations(chosen, 2):
        compare(r, one, other, rows)
    expected = np.linalg.matrix_rank(unit_rows(r["A"], r["size"]), tol=RANK_TOLERANCE)
    assert r["gauss", "rank"] == expected


def compare(r: dict, one: str, other: str, rows: float) -> None:
    """Compare acceleration, reaction and rank by two formulations; rows: condition of the constraint rows."""
    allowed = ALGEBRA * np.linalg.cond(r["M"]) * rows * (rows if {one, other} & SQUARES else 1.0)
    largest = max(np.abs(r["free"]).max(), np.abs(r[one, "v_dot"]).max())
    close(r[other, "v_dot"], r[one, "v_dot"], allowed, f"v_dot by {one} and {other}", largest)
    forces = np.abs(r["force"]).max() + np.abs(r["M"]).max() * largest
    close(r[other, "reaction"], r[one, "reaction"], allowed, f"reaction by {one} and {other}", forces)
    assert r[one, "rank"] == r[other, "rank"]


def check_equations(r: dict, name: str, rows: float) -> None:
    """Check A v_dot = b, M v_dot = force + reaction, and that the reaction is a combination of the rows."""
    v_dot, reaction = r[name, "v_dot"], r[name, "reaction"]
    allowed = ALGEBRA * np.linalg.cond(r["M"]) * rows * (rows if name in SQUARES else 1.0)
    largest = max(np.abs(v_dot).max(), np.abs(r["free"]).max())
    size = np.abs(r["A"]).max() * largest + np.abs(r["b"]).max()
    close(r["A"] @ v_dot, r["b"], allowed, f"A v_dot = b by {name}", size)
    size = np.abs(r["M"]).max() * largest + np.abs(r["force"]).max()
    close(r["M"] @ v_dot, r["force"] + reaction, allowed, f"M v_dot = force + reaction by {name}", size)
    onto_rows = np.linalg.pinv(r["A"], rcond=CLEAR_OF_THRESHOLD[0]) @ r["A"]
    close(onto_rows @ reaction, reaction, allowed, f"reaction among the rows by {name}", size)


@given(small())
def test_a_program_computes_what_its_expressions_do(case):
    """The tests of this file evaluate terms by CasADi, whereas users get them from Programs."""
    parts = {"M": lambda T: T.M, "c": lambda T: T.c, "A": lambda T: T.A, "b": lambda T: T.b, "force": lambda T: T.force}
    parts["v_dot"] = lambda T: pf.FORMULATIONS["gauss"](T).v_dot
    program = pf.compile_terms(case.m, parts, backend="numpy", lanes=1).matrices(case.q, case.v, case.u, t=case.t)
    for name, expected in matrices(case, parts).items():
        close(program[name], expected, ALGEBRA * np.linalg.cond(program["M"]), f"{name} by a Program")


@given(trees())
def test_trees_agree(drawn):
    random, kinds, parents = drawn
    m = random_forces(random, random_tree(random, kinds, parents))
    case = Case(m, pf.random_configuration(m, random), random.normal(size=m.nv), random.normal(size=m.nu), 0.0)
    chosen = ["articulated", *affordable(m)]
    r = motions(case, chosen)
    expected = np.linalg.solve(r["M"], r["force"])
    for name in chosen:
        allowed = ALGEBRA * np.linalg.cond(r["M"])
        close(r[name, "v_dot"], expected, allowed, f"v_dot of a tree by {name}")
        size = np.abs(r["M"]).max() * np.abs(expected).max() + np.abs(r["force"]).max()
        close(r[name, "reaction"], 0 * expected, allowed, f"no reaction in a tree by {name}", size)
        assert r[name, "rank"] == 0


def test_articulated_refuses_constraints():
    random = np.random.default_rng(0)
    m = random_tree(random, ["revolute"], [-1])
    m = m.with_(constraints=[pf.holonomic("hold", lambda k: k.joint("j0"))])
    with pytest.raises(pf.ModelError, match="'random' has constraints"):
        pf.forward_dynamics(m, m.neutral(), formulation="articulated")
