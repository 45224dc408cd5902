"""Contents of a scene: poses, solids on bodies, springs and rods between points, layers, the floor, several runs."""

from __future__ import annotations

from types import SimpleNamespace

import casadi as ca
import numpy as np
import pytest

import pfaffian as pf
from pfaffian.viewer.build import placed, scene
from pfaffian.viewer.camera import VIEW, framing
from pfaffian.viewer.drawing import COLOURS
from pfaffian.viewer.scene import Scene, combined, state_of, states_of, thinned
from pfaffian.viewer.sketch import attached, inertia_box

HINGE = {"kind": "revolute", "axis": (0, -1, 0)}


def of(m: pf.Mechanism, q: object = None, **given: object) -> Scene:
    return scene(m, state_of(m, q), **given)


def parts(made: Scene, layer: str) -> dict[str, list]:
    found: dict[str, list] = {}
    for p in made.parts:
        if p.layer == layer:
            found.setdefault(p.name, []).append(p)
    return found


def spread(part) -> np.ndarray:
    return np.ptp(part.solid.vertices, axis=0)


def test_poses_follow_the_run(pendulum: pf.Mechanism) -> None:
    result = pf.run(pendulum, {"$x_1$": 0.3}, duration=0.05, step=0.005, backend="numpy")
    made = scene(pendulum, states_of(pendulum, result))
    q = result["q"].values
    np.testing.assert_allclose(made.positions[:, 0], q[:, :3], atol=1e-14)
    half = np.array([[np.cos(0.3), 0, np.sin(0.3)], [0, 1, 0], [-np.sin(0.3), 0, np.cos(0.3)]])
    np.testing.assert_allclose(made.rotations[0, 1], made.rotations[0, 0] @ half, atol=1e-12)
    assert made.bodies == ("base", "bob") and np.array_equal(made.time, result["time"].values)


def four_bar(coupler: object = 2.0, kind: str = "revolute", **given: object) -> pf.Mechanism:
    bodies = [pf.body(n, 1.0, com=(0.1, 0, 0), inertia=0.1) for n in ("crank", "coupler", "rocker")]
    joints = [
        pf.joint("A", parent="world", child="crank", **HINGE),
        pf.joint("B", parent="crank", child="coupler", placement=(1, 0, 0), **HINGE),
        pf.joint("D", parent="world", child="rocker", placement=(2.5, 0, 0), **HINGE),
    ]
    tie = pf.closure("C", kind, "coupler", "rocker", placement_a=(coupler, 0, 0), placement_b=(2, 0, 0), **given)
    used = [coupler] if isinstance(coupler, pf.Parameter) else []
    return pf.mechanism("four-bar", bodies, joints, constraints=[tie], parameters=used)


def test_a_body_without_a_shape_is_drawn_as_rods_between_its_joints() -> None:
    made = of(four_bar())
    rods = parts(made, "shapes")
    for name, length in (("crank", 1.0), ("coupler", 2.0), ("rocker", 2.0)):
        (rod,) = rods[name]
        np.testing.assert_allclose(spread(rod)[0], length, rtol=1e-12)
        assert spread(rod)[1:].max() < 0.04 * made.size
    axes = parts(made, "joints")
    assert set(axes) == {"A", "B", "D"} and axes["B"][0].body == made.bodies.index("crank")
    long = spread(axes["A"][0])
    assert np.argmax(long) == 1 and long[1] < 0.1 * made.size, "a short cylinder along the axis"


@pytest.mark.parametrize("kind", ["weld", "revolute", "spherical", "prismatic", "planar", "point-on-line", "universal"])
def test_a_closure_is_drawn_at_its_place_in_the_size_of_a_joint(kind: str) -> None:
    axis = (0, 0, 1) if kind == "prismatic" else (1, 0, 0)  # along x it would be a ram, which shows itself
    given = {"axis": axis} | ({"axis_b": (0, 1, 0)} if kind == "universal" else {})
    made = of(four_bar(kind=kind, **given))
    for part in parts(made, "closures")["C"]:
        middle = (part.solid.vertices.min(axis=0) + part.solid.vertices.max(axis=0)) / 2
        assert made.bodies[part.body] == "coupler" and spread(part).max() < 0.5 * made.size
        np.testing.assert_allclose(middle, [2, 0, 0], atol=1e-9)


def test_a_distance_closure_is_drawn_as_a_rod_of_its_length() -> None:
    bodies = [pf.body(n, 1.0, com=(0.1, 0, 0), inertia=0.1) for n in "ab"]
    joints = [pf.joint(n, parent="world", child=n, placement=(x, 0, 0), **HINGE) for n, x in (("a", 0), ("b", 3))]
    rod = pf.closure("link", "distance", "a", "b", placement_a=(1, 0, 0), placement_b=(1, 0, 0), length=2.5)
    m = pf.mechanism("two cranks", bodies, joints, constraints=[rod])
    start = pf.assemble(m, {"a": 1.0}, backend="numpy")
    made = of(m, start.q)
    (moving,) = [x for x in made.moving if x.layer == "closures"]
    assert (moving.name, moving.kind) == ("link", "rod") and not parts(made, "closures")
    np.testing.assert_allclose(np.linalg.norm(np.diff(moving.ends, axis=1)), 2.5, atol=1e-9)
    np.testing.assert_allclose(moving.ends[0, 0], [np.cos(1), 0, np.sin(1)], atol=1e-12)


def test_springs_rotors_and_forces_are_drawn_where_they_act(pendulum: pf.Mechanism) -> None:
    thrusts = [pf.actuator("hinge", "$x_1$"), *[pf.forces.thruster(f"t{x}", "base", point=(x, 0, 0)) for x in (-1, 1)]]
    rope = pf.spring("rope", "world", "bob", point_a=(0, 0, 2), point_b=(1, 0, 0), stiffness=3)
    push = pf.wrench("push", "bob", value=(0, 0, 2, 0, 0, 0), axes="LOCAL", point=(0.5, 0, 0))
    m = pendulum.with_(actuators=thrusts, forces=[rope, push])
    result = pf.run(m, {"$x_1$": 0.3}, u={"t1": 4.0, "t-1": 1.0}, duration=0.01, step=0.01, backend="numpy")
    made = scene(m, states_of(m, result))
    moving = {x.name: x for x in made.moving if x.layer in ("springs", "forces")}
    assert {n: x.kind for n, x in moving.items()} == {"rope": "spring", "t-1": "arrow", "t1": "arrow", "push": "arrow"}
    down = np.array([np.cos(0.3), 0, -np.sin(0.3)])
    np.testing.assert_allclose(moving["rope"].ends[0], [[0, 0, 2], down], atol=1e-12)
    arrows = {n: np.diff(x.ends[0], axis=0)[0] for n, x in moving.items()}
    np.testing.assert_allclose(arrows["t1"], 4 * arrows["t-1"], atol=1e-12)
    np.testing.assert_allclose(
        arrows["push"], 2 * np.linalg.norm(arrows["t-1"]) * np.array([np.sin(0.3), 0, np.cos(0.3)]), atol=1e-12
    )
    np.testing.assert_allclose(moving["push"].ends[0, 0], 0.5 * down, atol=1e-12)
    disks = parts(made, "rotors")
    assert set(disks) == {"t-1", "t1"}
    np.testing.assert_allclose(disks["t1"][0].solid.vertices.mean(axis=0), [1, 0, 0], atol=1e-9)


def test_reactions_are_computed_only_on_request() -> None:
    bob = pf.body("bob", mass=2.0, com=(0, 0, -1))
    m = pf.mechanism("pendulum", [bob], [pf.joint("hinge", "revolute", "world", "bob", axis=(0, 1, 0))])
    states = states_of(m, pf.run(m, duration=0.0, backend="numpy"))
    assert "reactions" not in scene(m, states).layers
    (arrow,) = [x for x in scene(m, states, reactions=True).moving if x.layer == "reactions"]
    np.testing.assert_allclose(np.diff(arrow.ends[0], axis=0)[0] / np.linalg.norm(np.diff(arrow.ends[0], axis=0)), [0, 0, 1])


def test_a_body_without_other_parts_is_drawn_as_its_inertia() -> None:
    """The box has the mass and the inertia of the body, for any principal axes."""
    edges, R = np.array([0.3, 0.5, 0.9]), np.array(ca.DM(pf.pose(rpy=(0.4, 0.2, -1.0)).R))
    I = R @ np.diag([edges[1] ** 2 + edges[2] ** 2, edges[0] ** 2 + edges[2] ** 2, edges[0] ** 2 + edges[1] ** 2]) @ R.T / 12
    m = pf.mechanism(
        "stone", [pf.body("stone", 3.0, com=(0.1, 0, 0), inertia=3 * I)], [pf.joint("j", "free", "world", "stone")]
    )
    k = placed(m, state_of(m))
    (box,) = inertia_box(k, m.body("stone"))
    seen = (box.vertices - [0.1, 0, 0]) @ R
    np.testing.assert_allclose(np.ptp(seen, axis=0), edges, rtol=1e-9)
    (part,) = parts(of(m), "shapes")["stone"]
    np.testing.assert_allclose(part.solid.vertices, box.vertices)
    ball = pf.mechanism("ball", [pf.body("b", 1.0, inertia=0.4 * 0.25)], [pf.joint("j", "free", "world", "b")])
    np.testing.assert_allclose(spread(parts(of(ball), "shapes")["b"][0]), 1.0, rtol=0.01)
    assert attached(k, m.body("stone")) == []


@pytest.mark.parametrize("inertia", [0.5, (0.5, 0.4, 0.3)])
def test_a_hub_does_not_hide_the_arms_that_are_joined_to_its_middle(inertia) -> None:
    """Its ball or box, of half a metre by its inertia, is made smaller than the arms; it keeps its middle."""
    arms = [pf.joint(n, parent="hub", child=n, **HINGE) for n in ("left", "right")]
    bodies = [pf.body("hub", 1.0, inertia=inertia), *[pf.body(j.child, 1.0, com=(0, 0, -0.6)) for j in arms]]
    m = pf.mechanism("governor", bodies, [pf.joint("shaft", "revolute", "world", "hub"), *arms])
    found = parts(of(m), "shapes")
    corners = found["hub"][0].solid.vertices
    assert np.linalg.norm(corners, axis=1).max() < 0.25 * spread(found["left"][0]).max()
    np.testing.assert_allclose(corners.mean(axis=0), 0, atol=1e-12)
    alone = parts(of(m.with_(bodies=bodies[:1], joints=[pf.joint("shaft", "revolute", "world", "hub")])), "shapes")["hub"]
    assert (spread(alone[0]) > 4 * spread(found["hub"][0])).all(), "alone it hides nothing"


@pytest.mark.parametrize(("inertia", "count", "end"), [(2.0 / 12, 1, 1.0), (0.5, 2, 0.7), (0.0, 2, 0.535)])
def test_the_last_link_is_drawn_as_a_slender_rod_or_a_rod_with_a_ball(inertia: float, count: int, end: float) -> None:
    """With the moment 2 1^2 / 12 it is a rod of 1 m; otherwise it has a ball with a radius of at most 0.4 of its distance."""
    link = pf.body("link", 2.0, (0.5, 0, 0), inertia)
    found = parts(of(pf.mechanism("arm", [link], [pf.joint("j", parent="world", child="link", **HINGE)])), "shapes")["link"]
    assert len(found) == count
    assert max(p.solid.vertices[:, 0].max() for p in found) == pytest.approx(end, abs=0.02)


def test_a_bushing_is_attached_to_both_bodies() -> None:
    bodies = [pf.body("frame", 2.0), pf.body("arm", 1.0, com=(0, 0.2, 0))]
    joints = [pf.joint("j", "free", "world", "frame"), pf.joint("k", "free", "frame", "arm")]
    rubber = pf.forces.bushing("rubber", "frame", "arm", stiffness=np.eye(6), damping=np.eye(6), rest=(0.3, 0, 0.1))
    k = placed(m := pf.mechanism("mount", bodies, joints, forces=[rubber]), state_of(m))
    np.testing.assert_array_equal(attached(k, m.body("frame")), [[0, 0, 0], [0.3, 0, 0.1]])
    np.testing.assert_array_equal(attached(k, m.body("arm")), [[0, 0, 0]])


def test_shapes_replace_the_sketch_and_collision_shapes_have_their_layer() -> None:
    shapes = [
        pf.shape("box", size=(1, 2, 3), placement=(0, 0, 1), colour="#ff0000"),
        pf.shape("sphere", radius=2, role="collision"),
    ]
    hinge = pf.joint("hinge", "revolute", "world", "b", axis=(0, 1, 0))
    made = of(pf.mechanism("m", [pf.body("b", 1.0, inertia=1, shape=shapes)], [hinge]))
    (box,), (ball,) = parts(made, "shapes")["b"], parts(made, "collision")["b"]
    assert box.colour == (1.0, 0.0, 0.0, 1.0) and spread(box).tolist() == [1, 2, 3] and box.solid.vertices[:, 2].min() == -0.5
    assert spread(ball)[2] == 4
    assert made.layers["shapes"] and not made.layers["collision"] and not made.layers["joints"]
    alone = of(pf.mechanism("m", [pf.body("b", 1.0, inertia=1, shape=shapes[1])], [hinge]))
    assert "collision" not in alone.layers and parts(alone, "shapes")["b"], "a robot with only collision shapes must be visible"


def test_a_rolling_body_is_round_and_stands_on_the_floor() -> None:
    coin, base = pf.body("coin", mass=2.0, inertia=(0.005, 0.01, 0.005)), pf.joint("base", "free", "world", "coin")
    edge = pf.rolling.disk("edge", "coin", 0.1, axis=(0, 1, 0), plane=pf.rolling.plane(through=(0, 0, 0.5)))
    made = of(pf.mechanism("coin", [coin], [base], constraints=[edge]), [0, 0, 0.6, 0, 0, 0, 1])
    wheel, *_ = parts(made, "shapes")["coin"]
    np.testing.assert_allclose(spread(wheel), [0.2, 0.012, 0.2], rtol=0.01)
    assert (
        made.floor and made.floor.real and made.floor.point.tolist() == [0, 0, 0.5] and made.floor.normal.tolist() == [0, 0, 1]
    )


def test_a_grid_is_below_the_motion_if_there_is_gravity() -> None:
    made = of(four_bar())
    assert made.floor and not made.floor.real
    below = min((p.solid.vertices @ made.rotations[0, p.body].T)[:, 2].min() for p in made.parts if p.body >= 0)
    assert made.floor.point[2] < below
    floating = of(four_bar().with_(gravity=(0, 0, 0)))
    assert floating.floor is None and "floor" not in floating.layers and made.layers["floor"], "no switch for an absent floor"
    tilted = of(four_bar().with_(gravity=(0, -9.81, 0)))
    assert tilted.floor is not None and tilted.floor.normal.tolist() == tilted.up.tolist() == [0, 1, 0]


def test_the_camera_shows_the_whole_motion() -> None:
    m = four_bar().with_(constraints=())
    made = scene(m, states_of(m, pf.run(m, [1.2, -0.9, 1.5], duration=0.2, step=0.01, backend="numpy")))
    for aspect in (4 / 3, 0.5, 3.0):
        camera = framing(made, aspect)
        seen = (made.points - camera.eye) @ camera.axes.T
        np.testing.assert_allclose(camera.axes @ camera.axes.T, np.eye(3), atol=1e-12)
        half = VIEW / 2 * -seen[:, 2]
        assert (half > 0).all() and (np.abs(seen[:, 1]) < half).all() and (np.abs(seen[:, 0]) < half * aspect).all()
        assert max((np.abs(seen[:, 1]) / half).max(), (np.abs(seen[:, 0]) / half / aspect).max()) > 0.6, "not too far away"


@pytest.mark.parametrize("up", [2, 1])
@pytest.mark.parametrize("lying", [True, False])
def test_the_camera_is_in_front_and_above(up, lying) -> None:
    """In front means along -y, or along -x if y points upward, for a flat motion and for one in space."""
    front, extent = (1 if up == 2 else 0), np.array([2.0, 3.0, 2.5])
    extent[up] = 0.01 if lying else 1.0
    corners = extent * np.array(list(np.ndindex(2, 2, 2)))
    camera = framing(SimpleNamespace(points=corners, up=np.eye(3)[up], size=3.0))
    away = camera.eye - camera.target
    assert away[up] > 0 and away[front] < 0


@pytest.mark.parametrize("up", [2, 1])
def test_the_camera_goes_round_the_machine_to_the_left(up: int) -> None:
    """By a quarter: what was to the left is now in front; as high as before, and with everything in view."""
    corners = np.array([2.0, 3.0, 2.5]) * np.array(list(np.ndindex(2, 2, 2)))
    made = SimpleNamespace(points=corners, up=np.eye(3)[up], size=3.0)
    before, after = framing(made), framing(made, around=-np.pi / 2)
    level, turned = (x.axes[2] - (x.axes[2] @ made.up) * made.up for x in (before, after))
    np.testing.assert_allclose(turned, -before.axes[0] * np.linalg.norm(level), atol=1e-12)
    assert after.axes[2] @ made.up == pytest.approx(before.axes[2] @ made.up)
    seen = (corners - after.eye) @ after.axes.T
    assert (np.abs(seen[:, 1]) < VIEW / 2 * -seen[:, 2]).all()


def test_records_are_thinned_evenly_with_both_ends() -> None:
    m = four_bar().with_(constraints=())
    states = states_of(m, pf.run(m, [1.2, -0.9, 1.5], duration=0.2, step=0.002, backend="numpy"))
    few = thinned(states, 50)
    assert few.time[0] == 0 and few.time[-1] == states.time[-1] and len(few.time) == 11
    np.testing.assert_allclose(np.diff(few.time), 0.02, atol=2.1e-3)
    assert len(thinned(states, 1e9).time) == len(states.time)


def test_runs_of_a_batch_are_side_by_side_or_ghosts() -> None:
    m = four_bar().with_(constraints=())
    made = [of(m, {"A": x}) for x in (0.1, 0.5, 0.9)]
    numbered = dict(enumerate(made))
    beside, ghosts = combined(numbered, True), combined(numbered, False)
    assert len(beside.bodies) == 9 and beside.bodies[3] == "crank (run 1)" and len(beside.parts) == 3 * len(made[0].parts)
    shift = beside.positions[0, 3:6] - made[1].positions[0]
    assert np.ptp(shift, axis=0).max() < 1e-12 and shift[0, 1] > np.ptp(made[0].points, axis=0).max()
    np.testing.assert_array_equal(ghosts.positions[0, 6:], made[2].positions[0])
    opacity = {p.body // 3: p.colour[3] for p in ghosts.parts if p.body >= 0}
    assert opacity[0] == 1 and opacity[1] == opacity[2] == 0.25
    np.testing.assert_array_equal(ghosts.rotations[0, 3:6], made[1].rotations[0])


def test_the_scene_uses_the_parameters_of_the_run() -> None:
    l = pf.Parameter("l", 1.0, "m")
    hinges = [
        pf.joint(n, "revolute", p, c, axis=(0, 1, 0), placement=(x, 0, 0))
        for n, p, c, x in (("A", "world", "a", 0.0), ("B", "a", "b", l))
    ]
    m = pf.mechanism("m", [pf.body(n, 1.0, com=(0.5, 0, 0)) for n in "ab"], hinges, parameters=[l])
    result = pf.run(m, duration=0.0, backend="numpy", parameters={"l": 3.0})
    for given, length in (({"l": 2.0}, 2.0), (None, 3.0)):
        made = scene(m, states_of(m, result, given))
        assert made.positions[0, 1].tolist() == [length, 0.0, 0.0]
        assert spread(parts(made, "shapes")["a"][0])[0] == pytest.approx(length)


def test_solids_have_the_sizes_and_colours_of_their_kinds() -> None:
    """Symbols in units of the machine's size, softened colours of the palette, bounds that are the corners of a box."""
    kinds = {
        "revolute": (0.044, 0.044, 0.088),
        "prismatic": (0.0264, 0.0264, 0.198),
        "planar-translation": (0.088, 0.088, 0.0066),
    }
    for kind, size in kinds.items():
        m = pf.mechanism("m", [pf.body("b", 1.0, com=(0.5, 0, 0), inertia=0.1)], [pf.joint("j", kind, "world", "b")])
        made = of(m)
        np.testing.assert_allclose(np.array(spread(parts(made, "joints")["j"][0])), np.array(size) * made.size, rtol=0.02)
    bar = pf.shape("box", size=(1, 2, 3))
    made = of(pf.mechanism("m", [pf.body("b", 1.0, inertia=1.0, shape=bar)], [pf.joint("j", "free", "world", "b")]))
    assert np.unique(made.points.round(9), axis=0).tolist() == sorted(
        [[x, y, z] for x in (-0.5, 0.5) for y in (-1, 1) for z in (-1.5, 1.5)] + [[0, 0, 0]]
    )
    first = [int(COLOURS[0][i : i + 2], 16) / 255 for i in (1, 3, 5)]
    assert parts(made, "shapes")["b"][0].colour == pytest.approx((*[0.2 + 0.75 * x for x in first], 1.0))
