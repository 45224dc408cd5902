"""Shapes: their masses and inertias, and that they do not affect the equations in any other way."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest

import pfaffian as pf
from pfaffian.maths import so3
from pfaffian.model.mechanism_digest import structure
from pfaffian.viewer.meshes import simplified
from pfaffian.viewer.solids import MAKERS, Solid, box, capsule, cone, cylinder, sphere, turned

ROUND = 6e-2
"""Relative error of the volume and the moments of a drawn solid, which has few flat sides."""

FINE = 1e-3
"""Relative error of the volume and the moments of a solid with hundreds of flat sides."""

SIZES = {
    "box": {"size": (0.1, 0.2, 0.3)},
    "sphere": {"radius": 0.3},
    "cylinder": {"radius": 0.1, "length": 0.4},
    "capsule": {"radius": 0.1, "length": 0.4},
    "cone": {"radius": 0.1, "length": 0.4},
}


def integrals(solid: Solid) -> tuple[float, np.ndarray, np.ndarray]:
    """Volume, centre and second moments (3, 3) about it of a solid bounded by triangles, as a sum over tetrahedra."""
    a, b, c = solid.vertices[solid.faces].swapaxes(0, 1)
    V = np.einsum("ij,ij->i", a, np.cross(b, c)) / 6
    first = np.einsum("i,ij->j", V, a + b + c) / 4
    s = a + b + c
    second = np.einsum("i,ij,ik->jk", V, s, s) + sum(np.einsum("i,ij,ik->jk", V, x, x) for x in (a, b, c))
    x = first / V.sum()
    return float(V.sum()), x, second / 20 - V.sum() * np.outer(x, x)


def inertia_of(second: np.ndarray) -> np.ndarray:
    return np.trace(second) * np.eye(3) - second


@pytest.mark.parametrize("kind", SIZES)
def test_mass_centre_and_inertia_agree_with_the_drawn_solid(kind: str) -> None:
    """The closed forms, for a shape that is rotated and moved, agree with integrals over its triangles."""
    at = pf.pose((0.3, -0.2, 0.5), rpy=(0.4, -1.1, 2.0))
    b = pf.body("b", shape=pf.shape(kind, **SIZES[kind], density=700.0, placement=at))
    R, p = np.array(ca.DM(at.R)), np.array(ca.DM(at.p)).ravel()
    V, centre, second = integrals(MAKERS[kind](np.ravel(list(SIZES[kind].values()))).moved(R, p))
    np.testing.assert_allclose(float(b.mass), 700 * V, rtol=ROUND)
    np.testing.assert_allclose(np.array(ca.DM(b.com)).ravel(), centre, atol=ROUND * 0.1)
    expected = 700 * inertia_of(second)
    np.testing.assert_allclose(np.array(ca.DM(b.inertia)), expected, atol=1.5 * ROUND * np.abs(expected).max())


def test_the_box_is_exact_and_finer_solids_converge() -> None:
    b = pf.body("b", shape=pf.shape("box", **SIZES["box"], mass=2.0))
    V, _, second = integrals(box(SIZES["box"]["size"]))
    np.testing.assert_allclose(np.array(ca.DM(b.inertia)), 2 / V * inertia_of(second), rtol=1e-12, atol=1e-15)
    exact = float(pf.body("b", shape=pf.shape("cylinder", **SIZES["cylinder"], density=1.0)).mass)
    coarse, fine = (abs(integrals(cylinder(0.1, 0.4, n))[0] - exact) for n in (24, 96))
    assert fine < coarse / 12  # the error of a regular polygon falls with the square of its number of sides
    arc = np.linspace(0, np.pi / 2, 100)
    cap = [(0.1 * np.sin(a), 0.2 + 0.1 * np.cos(a)) for a in arc]
    cap[0] = (0.0, 0.3)
    ball = [(0.3 * np.sin(a), -0.3 * np.cos(a)) for a in np.linspace(0, np.pi, 200)]
    ball[0], ball[-1] = (0.0, -0.3), (0.0, 0.3)
    profiles = {
        "capsule": [(r, -z) for r, z in cap] + cap[::-1],
        "cone": [(0, -0.2), (0.1, -0.2), (0, 0.2)],
        "sphere": ball,
        "cylinder": [(0, -0.2), (0.1, -0.2), (0.1, 0.2), (0, 0.2)],
    }
    for kind, profile in profiles.items():
        V, centre, second = integrals(turned(profile, 300))
        b = pf.body("b", shape=pf.shape(kind, **SIZES[kind], density=1.0))
        np.testing.assert_allclose(float(b.mass), V, rtol=FINE)
        np.testing.assert_allclose(np.array(ca.DM(b.com)).ravel(), centre, atol=1e-12)
        np.testing.assert_allclose(np.array(ca.DM(b.inertia)), inertia_of(second), atol=FINE * second.max())
    outside = turned([(0, -1), (1, -1), (1, 1), (0, 1)])
    assert integrals(outside)[0] > 0, "triangle normals must point outwards"


def test_trimesh_gives_the_same() -> None:
    trimesh = pytest.importorskip("trimesh")
    for kind, maker in (("box", box(SIZES["box"]["size"])), ("cone", cone(0.1, 0.4)), ("capsule", capsule(0.1, 0.4)),
                        ("sphere", sphere(0.3))):  # fmt: skip
        twin = trimesh.Trimesh(maker.vertices, maker.faces)
        b = pf.body("b", shape=pf.shape(kind, **SIZES[kind], density=1.0))
        assert twin.is_watertight
        np.testing.assert_allclose(float(b.mass), twin.volume, rtol=ROUND)
        np.testing.assert_allclose(np.array(ca.DM(b.com)).ravel(), twin.center_mass, atol=1e-3)
        expected = twin.moment_inertia
        np.testing.assert_allclose(np.array(ca.DM(b.inertia)), expected, atol=2.5 * ROUND * np.abs(expected).max())


def test_the_inertia_of_several_shapes_is_their_sum() -> None:
    """Two halves of a bar weigh as much as the whole bar, and a shape without density adds nothing."""
    whole = pf.body("b", shape=pf.shape("box", size=(0.4, 0.1, 0.2), density=500, placement=(0.1, 0, 0)))
    half = [pf.shape("box", size=(0.2, 0.1, 0.2), density=500, placement=(x, 0, 0)) for x in (0.0, 0.2)]
    both = pf.body("b", shape=[*half, pf.shape("sphere", radius=9.0)])
    for x, y in ((whole.mass, both.mass), (whole.com, both.com), (whole.inertia, both.inertia)):
        np.testing.assert_allclose(np.array(ca.DM(x)), np.array(ca.DM(y)), atol=1e-14)
    turn = so3.rpy_to_matrix((0.3, 0.2, 0.1))
    tilted = pf.body("b", shape=pf.shape("box", size=(0.4, 0.1, 0.2), density=500, placement=pf.pose(rpy=(0.3, 0.2, 0.1))))
    np.testing.assert_allclose(np.array(ca.DM(tilted.inertia)), np.array(ca.DM(turn @ whole.inertia @ turn.T)), atol=1e-14)


def test_a_size_may_be_a_parameter() -> None:
    l = pf.Parameter("l", 1.0, "m")
    rod = pf.body("rod", shape=pf.shape("box", size=(0.01, 0.01, l), density=1e4, placement=(0, 0, -l / 2)))
    hinge = pf.joint("hinge", "revolute", "world", "rod", axis=(0, 1, 0))
    m = pf.mechanism("rod", [rod], [hinge], parameters=[l])
    found = [pf.mass_matrix(m, parameters={"l": x}).item() for x in (1.0, 2.0)]
    np.testing.assert_allclose(found, [x * (x**2 / 3 + 0.01**2 / 12) for x in (1.0, 2.0)], rtol=1e-12)
    with pytest.raises(pf.ModelError, match="body 'rod': shapes uses a Parameter that is not among"):
        seen = pf.body("rod", 1.0, inertia=1.0, shape=pf.shape("sphere", radius=l))
        pf.mechanism("rod", [seen], [hinge])


def test_shapes_count_for_equality_but_not_for_the_digest() -> None:
    """Bodies with different shapes are unequal, but share the equations if mass and inertia agree."""
    hinge = pf.joint("hinge", "revolute", "world", "b", axis=(0, 1, 0))
    ball = pf.shape("sphere", radius=0.2, colour="#ff8000")
    plain, seen = (pf.mechanism("m", [pf.body("b", 1.0, inertia=1.0, shape=s)], [hinge]) for s in ((), ball))
    assert plain != seen and structure(plain) == structure(seen)
    heavy = pf.mechanism("m", [pf.body("b", shape=pf.shape("sphere", radius=0.2, mass=1.0))], [hinge])
    assert structure(heavy) != structure(plain)
    assert seen.body("b").shapes[0].colour == (1.0, 128 / 255, 0.0, 1.0)


BALL = {"kind": "sphere", "radius": 1}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"kind": "ball"}, "kind 'ball' is unknown"),
        ({"kind": "box"}, "it needs size"),
        ({"kind": "cylinder", "radius": 1}, "it needs radius and length"),
        ({"kind": "sphere", "radius": 0}, "must be above zero"),
        ({"kind": "box", "size": (1, -1, 1)}, "must be above zero"),
        (BALL | {"length": 2}, "it has no length"),
        (BALL | {"density": 1, "mass": 1}, "give one of them"),
        (BALL | {"mass": 0}, "must be above zero"),
        (BALL | {"scale": 2}, "scale is for a mesh"),
        (BALL | {"role": "ghost"}, "role 'ghost' is unknown"),
        (BALL | {"colour": "red"}, "colour 'red' is invalid"),
        (BALL | {"colour": (0, 1, 2)}, "is invalid"),
        ({"kind": "mesh", "file": 3}, "file must be a path"),
        ({"kind": "mesh", "file": "a.stl", "mass": 1}, "a mesh has no density or mass"),
        ({"kind": "mesh", "file": "a.stl", "scale": (1, 0, 1)}, "none of them zero"),
    ],
)
def test_a_wrong_shape_is_refused(given: dict, words: str) -> None:
    with pytest.raises(pf.ModelError, match=words):
        pf.shape(**given)


def test_a_body_takes_its_mass_from_one_source() -> None:
    ball = pf.shape("sphere", radius=1, mass=1)
    for other in ({"mass": 1}, {"com": (1, 0, 0)}, {"inertia": 1}, {"pseudo": np.eye(4)}):
        with pytest.raises(pf.ModelError, match="its shapes give mass, mass centre and inertia"):
            pf.body("b", **other, shape=ball)
    with pytest.raises(pf.ModelError, match=r"shape must be made by shape\(...\)"):
        pf.body("b", shape=[ball, "box"])


def test_a_fine_mesh_is_simplified_without_losing_its_form() -> None:
    fine = turned([(np.sin(a), -np.cos(a)) for a in np.linspace(0, np.pi, 200)][1:-1], 200)
    coarse = simplified(fine, 3000)
    assert len(fine.faces) > 70_000 and 500 < len(coarse.faces) <= 3000
    np.testing.assert_allclose(np.ptp(coarse.vertices, axis=0), 2.0, rtol=0.1)
    assert len(simplified(box((1, 2, 3)), 3000).faces) == 12
    left = [len(np.unique(np.sort(simplified(fine, n).faces, axis=1), axis=0)) for n in (60, 300, 1000, 3000, 10_000, 10**6)]
    assert left == sorted(set(left)), "the more triangles are allowed, the more are left, each once"
    assert all(a <= n for a, n in zip(left, (60, 300, 1000, 3000, 10_000, 10**6), strict=True)) and left[-1] == len(fine.faces)
    assert not len(simplified(Solid(np.ones((3, 3)), np.array([[0, 1, 2]])), 3000).faces), "a degenerate triangle disappears"
