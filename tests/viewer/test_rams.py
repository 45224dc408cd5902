"""Tubes and rods of two bodies, drawn as one part that telescopes; and names of bodies in pictures."""

from __future__ import annotations

import numpy as np
import pytest

import pfaffian as pf
from pfaffian.viewer.animate import need_pillow
from pfaffian.viewer.build import placed, scene
from pfaffian.viewer.camera import VIEW, Camera
from pfaffian.viewer.names import named, places
from pfaffian.viewer.scene import Scene, motion_of, state_of, states_of
from pfaffian.viewer.sketch import rams

ROUNDING = 1e-9
"""Points of a machine of one metre, by forward kinematics and rotations."""


def jack(
    cut: bool = False, pin: tuple[float, float, float] = (0.0, 0.0, 0.0), limits: tuple[float, float] = (0.6, 0.9)
) -> pf.Mechanism:
    """A tube on a hinge, and a rod that slides in it along an oblique axis, its pin 0.1 m along it from the rod's frame.

    cut: whether the loop is cut at the slide, by a closure, with the rod on a hinge of its own.
    pin: another place of the tube, at which a spring pulls.
    """
    axis = np.array([0.6, 0.0, 0.8])
    bodies = [
        pf.body("tube", 2.0, com=0.2 * axis, inertia=0.1),
        pf.body("stem", 1.0, inertia=0.1),
        pf.body("load", 5.0, inertia=1.0),
    ]
    foot = pf.joint("foot", "revolute", "world", "tube", axis=(0, 1, 0))
    spring = pf.spring("spring", "world", "tube", point_a=(0, 0, 2), point_b=pin, stiffness=1.0)
    if cut:
        top = pf.joint("top", "revolute", "world", "load", axis=(0, 1, 0), placement=0.8 * axis)
        head = pf.joint("head", "revolute", "load", "stem", axis=(0, 1, 0))
        slide = pf.closure("slide", "prismatic", "tube", "stem", axis=axis)
        return pf.mechanism("jack", bodies, [foot, top, head], constraints=[slide], forces=[spring])
    slide = pf.joint("slide", "prismatic", "tube", "stem", axis=axis, limits=limits)
    load = pf.joint("head", "revolute", "stem", "load", axis=(0, 1, 0), placement=0.1 * axis)
    return pf.mechanism("jack", bodies, [foot, slide, load], forces=[spring])


def solids(made: Scene, body: str) -> list[np.ndarray]:
    """Vertices in the world (n, 3) of the shapes of a body at the first record."""
    i = made.bodies.index(body)
    return [
        p.solid.vertices @ made.rotations[0, i].T + made.positions[0, i]
        for p in made.parts
        if p.body == i and p.layer == "shapes"
    ]


@pytest.mark.parametrize("stroke", [0.6, 0.75, 0.9])
def test_a_rod_stays_in_its_tube_and_both_end_at_their_pins(stroke: float) -> None:
    """One solid each, on one line; over the whole stroke that the limits allow the rod's end is inside the tube."""
    m = jack()
    made = scene(m, state_of(m, {"foot": 0.3, "slide": stroke}))
    (tube,), (stem,) = solids(made, "tube"), solids(made, "stem")
    c, s = np.cos(0.3), np.sin(0.3)
    axis = np.array([c * 0.6 + s * 0.8, 0.0, -s * 0.6 + c * 0.8])
    (t0, t1), (s0, s1) = [(float((x @ axis).min()), float((x @ axis).max())) for x in (tube, stem)]
    assert t0 == pytest.approx(0.0, abs=ROUNDING) and s1 == pytest.approx(stroke + 0.1, abs=ROUNDING), "from pin to pin"
    assert t0 < s0 < t1 < s1, "the rod ends inside the tube and comes out of it"
    radius = [float(np.linalg.norm(x - np.outer(x @ axis, axis), axis=1).max()) for x in (tube, stem)]
    assert radius[1] < 0.6 * radius[0], "on the same line, thinner than the tube"
    assert not [p for p in made.parts if p.name == "slide"], "the slide has no bar of its own"


def test_a_ram_is_the_same_wherever_its_loop_is_cut() -> None:
    m = jack(cut=True)
    q = {"foot": 0.0, "top": 0.0, "head": 0.0}
    (ram,) = rams(placed(m, state_of(m, q)))
    assert ram.slide.name == "slide" and ram.distances == pytest.approx((0.8, 0.8))
    made = scene(m, state_of(m, q))
    assert [len(solids(made, body)) for body in ("tube", "stem")] == [1, 1]
    assert not [p for p in made.parts if p.name == "slide"]


def test_pins_count_as_one_by_the_size_of_the_machine() -> None:
    """A jack of a kilometre, pulled a tenth of a millimetre beside its pin."""
    axis = 1000 * np.array([0.6, 0.0, 0.8])
    bodies = [pf.body("tube", 2.0, com=0.2 * axis, inertia=1e5), pf.body("stem", 1.0, inertia=1e5), pf.body("load", 5.0)]
    joints = [
        pf.joint("foot", "revolute", "world", "tube", axis=(0, 1, 0)),
        pf.joint("slide", "prismatic", "tube", "stem", axis=axis),
        pf.joint("head", "revolute", "stem", "load", axis=(0, 1, 0), placement=0.1 * axis),
    ]
    pulled = pf.spring("spring", "world", "tube", point_a=(0, 0, 2000), point_b=(1e-4, 0, 0), stiffness=1.0)
    m = pf.mechanism("jack", bodies, joints, forces=[pulled])
    assert len(rams(placed(m, state_of(m, {"slide": 700.0})))) == 1


def test_other_slides_are_no_rams() -> None:
    """A tube that is pulled elsewhere, pins beside the axis, a body with a shape, a slide on the world."""
    assert len(rams(placed(jack(), state_of(jack(), {"slide": 0.7})))) == 1
    pulled = jack(pin=(0.3, 0.0, 0.0))
    assert rams(placed(pulled, state_of(pulled, {"slide": 0.7}))) == []
    aside = jack().with_(
        joints=[
            j if j.name != "head" else pf.joint("head", "revolute", "stem", "load", axis=(0, 1, 0), placement=(0.2, 0, 0))
            for j in jack().joints
        ]
    )
    assert rams(placed(aside, state_of(aside, {"slide": 0.7}))) == []
    boxes = [
        pf.body(b.name, 1.0, inertia=1.0, shape=pf.shape("box", size=(0.1, 0.1, 0.1))) if b.name == "stem" else b
        for b in jack().bodies
    ]
    shaped = jack().with_(bodies=boxes)
    assert rams(placed(shaped, state_of(shaped, {"slide": 0.7}))) == []
    ball = pf.closure("ball", "spherical", "tube", "stem")
    bodies, ends = [pf.body(n, 1.0) for n in ("tube", "stem")], [pf.joint(n, "free", "world", n) for n in ("tube", "stem")]
    loops = [ball, pf.closure("rail", "prismatic", "world", "stem")]
    tied = pf.mechanism("tied", bodies, ends, constraints=loops)
    assert rams(placed(tied, state_of(tied, None))) == []
    rail = pf.mechanism("rail", [pf.body("cart", 1.0)], [pf.joint("x", "prismatic", "world", "cart")])
    assert rams(placed(rail, state_of(rail, None))) == []


def test_without_limits_a_ram_is_as_long_as_the_motion_needs() -> None:
    m = jack(limits=(-np.inf, np.inf))
    (ram,) = rams(placed(m, state_of(m, {"slide": -0.7})))
    wide = jack(limits=(0.0, 5.0))
    assert rams(placed(wide, state_of(wide, {"slide": 0.5})))[0].distances == pytest.approx((0.6, 0.6)), "not of one tube"
    assert ram.distances == pytest.approx((0.6, 0.6)) and ram.axis == pytest.approx([-0.6, 0.0, -0.8])


@pytest.mark.parametrize(("mass", "reach"), [(40.0, 3.0), (0.0, 0.5)])
def test_a_rail_reaches_as_far_as_what_slides_along_it(mass: float, reach: float) -> None:
    """The trolley of a crane, below its jib; a body without mass stands for coordinates, so it has none."""
    bodies = [pf.body("jib", mass, com=(1.0, 0, 0), inertia=1.0 if mass else 0.0), pf.body("trolley", 2.0)]
    slew = pf.joint("slew", "revolute", "world", "jib", axis=(0, 0, 1))
    trolley = pf.joint("trolley", "prismatic", "jib", "trolley", axis=(1, 0, 0), placement=(0.5, 0, -0.2))
    m = pf.mechanism("crane", bodies, [slew, trolley])
    t = np.linspace(0, 1, 5)
    way = pf.assemble(m, {"slew": 0.0 * t, "trolley": 1.0 + 1.5 * t}, t=t, along=True, backend="numpy")
    drawn = [
        x for x in solids(scene(m, states_of(m, motion_of(m, way))), "jib") if x[:, 2].mean() < -0.1 and np.ptp(x[:, 0]) > 1
    ]
    assert len(drawn) == bool(mass)
    for x in drawn:
        assert (x[:, 0].min(), x[:, 0].max()) == pytest.approx((0.5, reach), abs=ROUNDING)


def test_names_are_at_the_mass_centres_in_a_picture() -> None:
    pytest.importorskip("PIL")
    m = jack()
    made = scene(m, state_of(m, {"foot": 0.3, "slide": 0.5}))
    camera = Camera(np.array([0.2, -3.0, 0.5]), np.array([0.2, 0.0, 0.5]), np.array([0.0, 0.0, 1.0]))
    at = places(made, camera, (240, 320), 0)
    R, x = made.rotations[0, 0], made.positions[0, 0]
    centre = x + R @ np.array([0.12, 0.0, 0.16])
    scale = 240 / VIEW / 3.0
    np.testing.assert_allclose(at[0], [160 + (centre[0] - 0.2) * scale, 120 - (centre[2] - 0.5) * scale, 3.0], atol=ROUNDING)
    blank = np.full((240, 320, 3), 250, np.uint8)
    written = (named(blank, made, camera, 0) != blank).any(axis=2)
    rows, columns = np.nonzero(written)
    assert len(rows) and at[:, 1].min() - 12 < rows.min() <= rows.max() < at[:, 1].max() + 12
    assert columns.min() < at[:, 0].min() < at[:, 0].max() < columns.max()
    close = camera._replace(eye=np.array([0.2, -0.95, 0.5]))
    assert (named(blank, made, close, 0) != blank).any(), "a metre before it"
    behind = camera._replace(eye=np.array([0.2, 3.0, 0.5]), target=np.array([0.2, 6.0, 0.5]))
    assert (named(blank, made, behind, 0) == blank).all(), "nothing behind the camera"


def test_a_film_with_names_differs_from_one_without() -> None:
    pytest.importorskip("PIL")
    m = jack()
    still = pf.run(m, {"slide": 0.5}, duration=0.0, backend="numpy")
    films = [pf.animate(m, still, None, show=show).data for show in ((), ("names",))]
    assert b'"names":false' in films[0] and b'"names":true' in films[1]
    need_pillow("names in a film need", "leave out show='names'")
