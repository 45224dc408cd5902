"""Spatial inertia compared with point masses and with the adjoint, and the limits of physical inertias."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pfaffian.errors import ModelError
from pfaffian.maths import inertia, se3
from tests.matrices import near

EPS = np.finfo(float).eps
ALGEBRA = 64 * EPS  # sums over some ten points of products of four factors, times their size

coordinate = st.floats(-2, 2)
points = st.lists(st.tuples(st.floats(0.01, 5), coordinate, coordinate, coordinate), min_size=1, max_size=8)
twists = st.lists(st.floats(-3, 3), min_size=6, max_size=6).map(np.array)
derandomized = settings(derandomize=True, deadline=None, max_examples=100)


def cloud(masses):
    """Mass, mass centre and inertia about it of point masses (m, x, y, z); the masses; their positions."""
    masses = np.array(masses)
    m, x = masses[:, 0], masses[:, 1:]
    com = m @ x / m.sum()
    d = x - com
    S = (m * d.T) @ d
    S = (S + S.T) / 2
    return (m.sum(), com, np.trace(S) * np.eye(3) - S), m, x


@derandomized
@given(points)
def test_pseudo_inertia_is_the_second_moment_of_homogeneous_points(masses):
    body, m, x = cloud(masses)
    X = np.c_[x, np.ones(len(m))]
    P = inertia.pseudo(*inertia.moments(*body))
    near(P, (m * X.T) @ X, ALGEBRA, 4 * m.sum())
    near(inertia.pseudos(*(np.array([x]) for x in body))[0], P, ALGEBRA, 4 * m.sum())
    assert inertia.is_physical(P) is None


@derandomized
@given(points, twists)
def test_kinetic_energy_is_that_of_the_points(masses, V):
    body, m, x = cloud(masses)
    M = se3.Vee(inertia.pseudo(*inertia.moments(*body)))
    speeds = V[:3] + np.cross(V[3:], x)
    near(V @ M.full() @ V / 2, (m * (speeds**2).sum(axis=1)).sum() / 2, ALGEBRA, 16 * m.sum() * (1 + V @ V))


@derandomized
@given(points, twists)
def test_transforms_agree_with_moving_the_points(masses, xi):
    body, m, x = cloud(masses)
    R, p = se3.exp(xi)
    moved, *_ = cloud(np.c_[m, x @ R.full().T + p.full().T])
    shifted, *_ = cloud(np.c_[m, x + p.full().T])
    reach = m.sum() * (4 + np.abs(xi).max()) ** 2
    found = inertia.translate_moments(*inertia.moments(*body), p)
    for moment, expected in zip(found, inertia.moments(*shifted), strict=True):
        near(moment, expected, ALGEBRA, reach)
    g = se3.homogeneous(R, p)
    near(g @ inertia.pseudo(*inertia.moments(*body)) @ g.T, inertia.pseudo(*inertia.moments(*moved)), ALGEBRA, reach)


def pseudo_of(mass, com, principal):
    return inertia.pseudo(*inertia.moments(mass, com, np.diag(principal)))


@pytest.mark.parametrize("far", [0, 1, 1000])
@pytest.mark.parametrize("scale", [1e-6, 1, 1e6])
@pytest.mark.parametrize(
    ("principal", "reason"),
    [
        ((1, 1, 1), None),
        ((1, 1, 2), None),  # a plate
        ((0, 1, 1), None),  # a thin rod
        ((0, 0, 0), None),  # a point
        ((1, 1, 2.1), "triangle"),
        ((3, 1, 1), "triangle"),
        ((-0.1, 1, 1), "negative"),
        ((-1, -1, -1), "negative"),
    ],
)
def test_physical_and_unphysical_inertias(principal, reason, scale, far):
    found = inertia.is_physical(pseudo_of(scale, (far, -far, 0.5), scale * np.array(principal)))
    assert found is None if reason is None else reason in found


def test_unphysical_masses_and_moments():
    assert inertia.is_physical(np.zeros((4, 4))) is None
    assert inertia.is_physical(pseudo_of(0, (0, 0, 0), (1, 1, 1))) is None  # a rotor without mass
    assert "negative" in inertia.is_physical(pseudo_of(-1, (0, 0, 0), (1, 1, 1)))
    first = np.diag([1.0, 1, 1, 0])
    first[0, 3] = first[3, 0] = 0.1
    assert "first moment" in inertia.is_physical(first)
    skewed = np.eye(4)
    skewed[0, 1] = 0.1
    assert "symmetric" in inertia.is_physical(skewed)
    skewed = np.eye(4)
    skewed[0, 3] = 0.1
    assert "symmetric" in inertia.is_physical(skewed)
    assert "finite" in inertia.is_physical(np.diag([1, 1, np.nan, 1]))
    assert "finite" in inertia.is_physical(np.diag([1, 1, 1, np.inf]))
    with pytest.raises(ModelError, match="4 x 4"):
        inertia.is_physical(np.eye(6))
