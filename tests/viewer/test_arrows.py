"""Every arrow of a picture is a force at its own instant: with its time, inputs, modes, parameters and run of the batch."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest
import xarray as xr

import pfaffian as pf
from pfaffian import control
from pfaffian.errors import ModelWarning
from pfaffian.model.constraint import Closure
from pfaffian.viewer.animate import drawn_runs
from pfaffian.viewer.fittings import ARROW
from pfaffian.viewer.scene import MovingPart, Scene, floor_square
from pfaffian.viewer.still import still
from tests.viewer.test_animate import data_of, doubles, floats

AGREE = {"rtol": 1e-9, "atol": 1e-9}
"""A force computed again from the recorded state differs from the recorded one by rounding alone, in N at about 10 N."""

SINGLE = 4e-6
"""Ends of an arrow on a page are float32: half a unit in the last place of each of two coordinates, over the arrow's length."""

DURATION, STEP = 0.6, 2e-3
RATE = 100.0


def telescope() -> tuple[pf.Mechanism, dict]:
    """A boom that a motor swings as a function of time, with a slide that a second servo extends, and a gust on its tip."""
    bodies = [pf.body("boom", 3.0, com=(0.4, 0, 0), inertia=0.2), pf.body("tube", 1.5, com=(0.3, 0, 0.05), inertia=0.1)]
    joints = [
        pf.joint("base", "revolute", "world", "boom", axis=(0, -1, 0), placement=(0.1, 0, 0.3)),
        pf.joint("slide", "prismatic", "boom", "tube", axis=(1, 0, 0), placement=(0.5, 0, 0)),
    ]
    drives = [pf.actuator("swing", "base"), pf.actuator("push", "slide")]
    holds = [
        pf.servo(pf.holonomic("turning", lambda k: k.q[0] - 0.3 * ca.sin(5 * k.t)), ["swing"]),
        pf.servo(pf.holonomic("reaching", lambda k: k.q[1] - 0.2 * k.t**2), ["push"]),
    ]
    gust = pf.wrench("gust", "tube", point=(0.6, 0, 0), value=lambda k: [8 * k.t, 0, 3 - 20 * k.t, 0, 0, 0])
    m = pf.mechanism("telescope", bodies, joints, actuators=drives, constraints=holds, forces=[gust])
    return m, {"q": {"base": 0.0}, "v": {"base": 1.5}}


def catch() -> tuple[pf.Mechanism, dict]:
    """A basket on an arm that takes a load when it passes the level, and rests on a stop from then on."""
    loaded, weight = pf.Parameter("loaded", 0.0), pf.Parameter("weight", 2.0, "kg")
    bodies = [pf.body("arm", 1.0, com=(0.5, 0, 0), inertia=0.1), pf.body("basket", 0.5 + weight * loaded, inertia=0.02)]
    joints = [
        pf.joint("A", "revolute", "world", "arm", axis=(0, -1, 0)),
        pf.joint("B", "revolute", "arm", "basket", axis=(0, -1, 0), placement=(1, 0, 0), damping=0.05),
    ]
    rest = pf.closure("rest", "point-on-plane", "world", "arm", placement_b=(0.8, 0, 0))
    stop = pf.constraints.active_while(rest, lambda k: loaded > 0.5)
    pull = pf.wrench("pull", "basket", axes="LOCAL", value=lambda k: [4 * loaded, 0, 1 - k.t, 0, 0, 0])
    tie = pf.spring("tie", "world", "basket", point_a=(1, 0, 1.5), point_b=(0.1, 0, 0), stiffness=20.0, rest=1.0)
    m = pf.mechanism("catch", bodies, joints, constraints=[stop], forces=[pull, tie], parameters=[loaded, weight])
    switch = {"loaded": lambda k: ca.if_else(k.q[0] < 0, 1, loaded)}
    return m, {"q": {"A": 0.6}, "switches": switch, "parameters": {"weight": 1.2}}


def drone() -> tuple[pf.Mechanism, dict]:
    """Two thrusters and an arm under a law in discrete time that measures with noise; a batch of three masses and gains."""
    mass, reach = pf.Parameter("mass", 2.0, "kg"), pf.Parameter("reach", 0.4, "m")
    bodies = [pf.body("hull", mass, inertia=0.1), pf.body("arm", 0.3, com=(0, 0, -reach), inertia=0.01)]
    joints = [
        pf.joint("fly", "planar", "world", "hull", axis=(0, -1, 0)),
        pf.joint("shoulder", "revolute", "hull", "arm", axis=(0, -1, 0), placement=(0, 0, -0.1)),
    ]
    props = [pf.forces.thruster(n, "hull", point=(x, 0, 0.05), axis=(0.1, 0, 1)) for n, x in (("left", -0.3), ("right", 0.3))]
    motor = pf.actuator("motor", "shoulder")
    m = pf.mechanism("drone", bodies, joints, actuators=[*props, motor], parameters=[mass, reach])
    law = control.discrete(
        lambda s: control.Command(ca.vertcat(9 + 2 * s["speed"], 12 - 2 * s["speed"], 3 * (0.4 - s["angle"]))), 0.01,
        measure={"angle": control.sensor(lambda k: k.q[3], 0.02), "speed": control.sensor(lambda k: k.v[2], 0.05)},
    )  # fmt: skip
    return m, {"control": law, "seed": 5, "parameters": {"mass": [1.5, 2.0, 3.5], "reach": [0.2, 0.4, 0.3]}, "record": "all"}


MACHINES = {"servo": telescope, "switch": catch, "law": drone}


def recorded_forces(m: pf.Mechanism) -> dict:
    """Outputs that record the reactions along the axes of the world."""
    names = [j.name for j in m.joints] + [c.name for c in m.constraints if isinstance(c, Closure)]
    return {f"through {name}": pf.reaction(name, "LOCAL_WORLD_ALIGNED") for name in names}


@pytest.fixture(scope="module", params=MACHINES)
def machine(request) -> tuple[pf.Mechanism, xr.Dataset]:
    m, how = MACHINES[request.param]()
    given = {"duration": DURATION, "step": STEP, "every": 3, "backend": "interpreter", "error_bound": np.inf}
    return m, pf.run(m, outputs=recorded_forces(m), **given | how)


def arrows(drawn: Scene, layer: str) -> dict[str, list[MovingPart]]:
    """Name -> the arrows of a layer, one for each run."""
    found: dict[str, list[MovingPart]] = {}
    for x in drawn.moving:
        if x.kind == "arrow" and x.layer == layer:
            found.setdefault(x.name, []).append(x)
    return found


def force(x: MovingPart) -> np.ndarray:
    return (x.ends[:, 1] - x.ends[:, 0]) / x.scale


def at_times(result: xr.Dataset, time: np.ndarray) -> xr.Dataset:
    """The batch of runs at the records from which a scene is drawn."""
    runs = result if "run" in result.dims else result.expand_dims("run")
    return runs.isel(time=np.searchsorted(result["time"].values, time - 1e-9)).transpose("run", "time", ...)


def test_drawn_reactions_are_those_of_the_run(machine) -> None:
    m, result = machine
    drawn = drawn_runs(m, result, None, RATE, False, True)
    runs, found = at_times(result, drawn.time), arrows(drawn, "reactions")
    assert {f"through {name}" for name in found} == set(recorded_forces(m)) and len(drawn.time) > 40
    varies = False
    for name, of_runs in found.items():
        expected = runs[f"through {name}"].values[:, :, :3]
        varies = varies or np.ptp(expected, axis=1).min(axis=0).max() > 1
        assert len(of_runs) == len(expected)
        joint = next((j for j in m.joints if j.name == name), None)
        for i, (x, F) in enumerate(zip(of_runs, expected, strict=True)):
            np.testing.assert_allclose(force(x), F, **AGREE)
            if joint is not None:
                body = i * len(m.bodies) + [b.name for b in m.bodies].index(joint.child)
                np.testing.assert_allclose(x.ends[:, 0], drawn.positions[:, body], atol=1e-12)
    assert varies and len({x.scale for of_runs in found.values() for x in of_runs}) == 1, "one scale for all runs"


def turned(m: pf.Mechanism, result: xr.Dataset, run: int, body: str, F: np.ndarray) -> np.ndarray:
    """Forces (n, 3) along the axes of a body, along those of the world."""
    p = result["parameters"].values[run] if "parameters" in result else None
    return (pf.forward_kinematics(m, result["q"].values[run], parameters=p)[body].rotation @ F[:, :, None])[:, :, 0]


FORCES = {
    "telescope": {"gust": lambda m, r, i: np.stack([8 * r.time, 0 * r.time, 3 - 20 * r.time], axis=1)},
    "catch": {"pull": lambda m, r, i: turned(m, r, i, "basket", np.stack([4 * r.loaded[i], 0 * r.time, 1 - r.time], axis=1))},
    "drone": {
        name: lambda m, r, i, j=j: turned(m, r, i, "hull", r.u.values[i, :, j, None] * np.array([0.1, 0, 1]) / np.hypot(1, 0.1))
        for j, name in enumerate(("left", "right"))
    },
}
"""Machine -> force -> its values (n, 3) along the world's axes in run i, from its definition and the recorded signals."""


def test_drawn_forces_follow_time_modes_and_inputs(machine) -> None:
    m, result = machine
    drawn = drawn_runs(m, result, None, RATE, False, False)
    runs, found = at_times(result, drawn.time), arrows(drawn, "forces")
    assert set(found) == set(FORCES[m.name])
    for name, of_runs in found.items():
        for i, x in enumerate(of_runs):
            np.testing.assert_allclose(force(x), FORCES[m.name][name](m, runs, i), **AGREE)


def test_the_arrow_of_a_contact_is_its_whole_force_where_it_presses() -> None:
    """Two feet of a tilted plate that slides: the arrows balance its acceleration and its turning, and one foot lifts."""
    fly = pf.joint("fly", "planar-translation", "world", "carriage", axis=(0, -1, 0))
    pitch = pf.joint("pitch", "revolute", "carriage", "plate", axis=(0, -1, 0))
    soft = {"stiffness": 3e3, "exponent": 1.3, "damping": 0.4, "friction": 0.6}
    ball = pf.shape("sphere", radius=0.02, placement=(-0.2, 0, -0.1))
    pad = pf.shape("box", size=(0.1, 0.1, 0.05), placement=(0.3, 0, -0.1))
    feet = [
        pf.forces.contact("rear foot", "plate", shape_a=ball, **soft),
        pf.forces.contact("front foot", "plate", shape_a=pad, **soft),
    ]
    m = pf.mechanism("skid", [pf.body("carriage"), pf.body("plate", 3.0, inertia=0.2)], [fly, pitch], forces=feet)
    how = {"duration": 0.3, "step": 1e-3, "every": 5, "scheme": pf.Scheme(integrator="tr-bdf2"), "error_bound": np.inf}
    r = pf.run(m, {"fly.y": 0.13, "pitch": 0.05}, {"fly.vx": 1.0, "fly.vy": -0.5}, backend="interpreter", **how)
    drawn = drawn_runs(m, r, None, 1 / 5e-3, False, False)
    runs, found = at_times(r, drawn.time), arrows(drawn, "forces")
    assert set(found) == {"rear foot", "front foot"}
    q, v = runs.q.values[0], runs.v.values[0]
    a = pf.forward_dynamics(m, q, v).v_dot
    F = sum(force(x) for (x,) in found.values())
    at = np.stack([q[:, 0], 0 * q[:, 0], q[:, 1]], axis=1)
    moment = sum(np.cross(x.ends[:, 0] - at, force(x)) for (x,) in found.values())
    np.testing.assert_allclose(F[:, [0, 2]], 3.0 * (a[:, :2] + [0, 9.81]), **AGREE)
    one = np.linalg.norm(force(found["front foot"][0]), axis=1) == 0  # the box has several points of contact, the ball one
    np.testing.assert_allclose(-moment[one, 1], 0.2 * a[one, 2], **AGREE)
    assert 3 < one.sum() < len(one) and np.ptp(F[:, 2]) > 10
    pad_x = q[:, 0] + 0.3 * np.cos(q[:, 2]) + 0.1 * np.sin(q[:, 2])
    np.testing.assert_allclose(found["front foot"][0].ends[:, 0, 0], pad_x, atol=0.07, err_msg="lifted too, it is at the foot")


def test_parts_are_slender_and_their_colours_are_colours(machine) -> None:
    m, result = machine
    drawn = drawn_runs(m, result, None, RATE, False, True)
    assert {x.kind for x in drawn.moving} <= {"arrow", "spring", "trail", "rod"} and "arrow" in {x.kind for x in drawn.moving}
    for x in drawn.moving:
        assert 0.004 * drawn.size < x.radius < 0.03 * drawn.size, x.kind
    assert all(0 <= c <= 1 for x in (*drawn.moving, *drawn.parts) for c in x.colour)


def test_a_page_has_the_forces_of_its_frames(machine) -> None:
    m, result = machine
    found = data_of(pf.animate(m, result, show="reactions").data)
    runs = at_times(result, doubles(found["time"]))
    seen: dict[str, int] = {}
    for x in found["moving"]:
        if x["layer"] == "reactions":
            i = seen[x["name"]] = seen.get(x["name"], -1) + 1
            ends = floats(x["ends"]).reshape(-1, 2, 3).astype(float)
            expected = runs[f"through {x['name']}"].values[i, :, :3]
            np.testing.assert_allclose((ends[:, 1] - ends[:, 0]) / x["scale"], expected, rtol=0, atol=SINGLE / x["scale"])
    assert set(seen) == {name.removeprefix("through ") for name in recorded_forces(m)} and found["layers"]["reactions"]


def test_a_view_has_the_force_of_the_time_that_it_shows(machine, open_view) -> None:
    m, result = machine
    view = open_view(m, result, reactions=True)
    for t in (0.1, 0.37, 0.55):
        view.seek(t)
        i = int(np.searchsorted(view.drawn.time, t - 1e-9))
        runs = at_times(result, view.drawn.time[i : i + 1])
        named = [x for x in view.drawn.moving if x.layer == "reactions"]
        points = view.server.scene.made["/reactions-arrows"].points.astype(float)
        order: dict[str, int] = {}
        for x, ends in zip(named, points, strict=True):
            run = order[x.name] = order.get(x.name, -1) + 1
            F = runs[f"through {x.name}"].values[run, 0, :3]
            np.testing.assert_allclose((ends[1] - ends[0]) / x.scale, F, rtol=0, atol=SINGLE / x.scale)


def test_arrows_of_a_run_are_not_left_at_a_machine_that_is_moved_by_hand(open_view) -> None:
    m, how = drone()
    result = pf.run(m, duration=0.1, step=STEP, backend="interpreter", error_bound=np.inf, **how).isel(run=2)
    view = open_view(m, result, reactions=True)
    handles = {n: view.server.scene.made[n] for n in ("/forces-arrows", "/reactions-arrows")}
    assert view.p.tolist() == [3.5, 0.3], "the parameters of the run that is shown"
    view.pose("shoulder", 0.4)
    assert all(h.removed for h in handles.values()) and not view.layers["forces"] and not view.layers["reactions"]
    view.seek(0.05)
    assert not hasattr(view.server.scene.made["/forces-arrows"], "removed")


def test_parameters_given_for_a_batch_are_those_of_each_run() -> None:
    m, how = drone()
    result = pf.run(m, duration=0.05, step=STEP, backend="interpreter", error_bound=np.inf, **how)
    given = {"mass": [1.0, 5.0, 9.0], "reach": 0.5}
    drawn = drawn_runs(m, result, given, RATE, False, True)
    for i, x in enumerate(arrows(drawn, "reactions")["shoulder"]):
        p = {"mass": given["mass"][i], "reach": 0.5}
        at = at_times(result, drawn.time).isel(run=i)
        for n, t in enumerate(drawn.time):
            q, v, u = (at[k].values[n] for k in "qvu")
            F = pf.reaction_wrench(m, "shoulder", q, v, u, t=t, parameters=p, frame="LOCAL_WORLD_ALIGNED").wrench[:3]
            np.testing.assert_allclose(force(x)[n], F, **AGREE)
    with pytest.raises(pf.ModelError, match="numbers of runs differ: the result has 3, parameters has 2"):
        pf.animate(m, result, parameters={"mass": [1.0, 2.0]})


def test_runs_share_the_longest_arrow_and_all_layers_and_keep_their_numbers() -> None:
    """Of four runs the first cannot start, since its law gives no number, and the second has no thrust."""
    thrust, rod = pf.Parameter("thrust", 0.0), pf.Parameter("rod", 1.0, "m")
    fly = pf.joint("fly", "prismatic", "world", "jet", axis=(1, 0, 0))
    swing = pf.joint("swing", "revolute", "jet", "bob", axis=(0, 1, 0))
    bodies = [pf.body("jet", 1.0), pf.body("bob", 1.0, com=(0, 0, -rod))]
    nozzle = pf.forces.thruster("nozzle", "jet", axis=(1, 0, 0))
    m = pf.mechanism("jet", bodies, [fly, swing], actuators=[nozzle], parameters=[thrust, rod])
    law = control.Control(lambda T, z, w, y: control.Command(ca.sqrt(thrust)))
    how = {"control": law, "parameters": {"thrust": [-1.0, 0.0, 4.0, 100.0]}, "error_bound": np.inf, "record": "all"}
    with pytest.warns(pf.RunWarning, match="1 of 4 runs stopped"):
        result = pf.run(m, duration=0.1, step=0.01, backend="interpreter", **how)
    drawn = drawn_runs(m, result, None, RATE, False, True)
    assert drawn.bodies == tuple(f"{b} (run {i})" for i in (1, 2, 3) for b in ("jet", "bob"))
    thrusts = arrows(drawn, "forces")["nozzle"]
    assert drawn.layers["forces"] and [force(x)[0, 0].round(9) for x in thrusts] == [2.0, 10.0]
    longest = [max(np.linalg.norm(x.ends[:, 1] - x.ends[:, 0], axis=1).max() for x in arrows(drawn, layer)[name])
               for layer, name in (("forces", "nozzle"), ("reactions", "swing"))]  # fmt: skip
    assert longest[0] == pytest.approx(ARROW * drawn.size) and longest[1] <= ARROW * drawn.size * (1 + 1e-12)
    assert still(m, result.isel(run=[2, 3])) == still(m, result.isel(run=2)) != still(m, result.isel(run=3))


def test_reactions_are_those_of_the_formulation_of_the_run(monkeypatch) -> None:
    def doubled(terms):
        motion = pf.FORMULATIONS["gauss"](terms)
        return motion._replace(v_dot=2 * motion.v_dot)

    monkeypatch.setitem(pf.FORMULATIONS, "doubled for the arrows", doubled)
    m = telescope()[0].with_(constraints=())
    scheme = pf.Scheme(formulation="doubled for the arrows")
    run = {"duration": 0.05, "step": 0.01, "scheme": scheme, "backend": "interpreter", "error_bound": np.inf}
    result = pf.run(m, outputs=recorded_forces(m), **run)
    drawn = drawn_runs(m, result, None, RATE, False, True)
    for name, (x,) in arrows(drawn, "reactions").items():
        np.testing.assert_allclose(force(x), at_times(result, drawn.time)[f"through {name}"].values[0, :, :3], **AGREE)


def test_a_new_run_is_drawn_with_its_own_parameters(open_view) -> None:
    """A function that limits what a slider asks for."""
    m, how = drone()
    how |= {"duration": 0.05, "step": STEP, "backend": "interpreter", "error_bound": np.inf}

    def rerun(p):
        return pf.run(m, **how | {"parameters": {"mass": 2.0, "reach": min(p["reach"], 0.6)}})

    view = open_view(m, rerun({"reach": 0.5}), rerun=rerun)
    view.pose("reach", 1.0)
    arm = view.run.bodies.index("arm")
    assert view.run.centres[arm].tolist() == [0, 0, -0.6]


def test_what_a_run_did_not_record_is_told() -> None:
    m, how = catch()
    given = {"duration": 0.02, "step": STEP, "backend": "interpreter", "error_bound": np.inf}
    lean = pf.run(m, record=["q", "v"], **given | how)
    with pytest.raises(pf.ModelError, match=r"no 'loaded': run with record=\['q', 'v', 'loaded'\]"):
        pf.animate(m, lean, show="reactions")
    with pytest.warns(ModelWarning, match="'loaded' changed during the run, which does not record it"):
        pf.animate(m, lean)
    boom, how = telescope()
    with pytest.raises(pf.ModelError, match=r"no 'v', 'u': run with record=\['q', 'v', 'u'\]"):
        pf.animate(boom, pf.run(boom, record=["q"], **given | how), show="reactions")
    with pytest.raises(pf.ModelError, match="view: reactions are drawn along a run"):
        pf.view(boom, reactions=True)


def test_a_part_whose_shape_the_run_changes_is_told() -> None:
    out = pf.Parameter("out", 0.5, "m")
    bodies = [pf.body("arm", 1.0, com=(0.5, 0, 0), inertia=0.1), pf.body("bob", 1.0, inertia=0.1)]
    joints = [
        pf.joint("A", "revolute", "world", "arm", axis=(0, 1, 0)),
        pf.joint("B", "revolute", "arm", "bob", axis=(0, 1, 0), placement=(out, 0, 0)),
    ]
    m = pf.mechanism("crane", bodies, joints, parameters=[out])
    run = {"duration": 0.1, "step": 0.01, "backend": "interpreter", "error_bound": np.inf}
    with pytest.warns(ModelWarning, match="drawn throughout as at the start, although the run changes out: arm, B"):
        pf.animate(m, pf.run(m, switches={"out": lambda k: out + 0.01}, **run))
    pf.animate(m, pf.run(m, switches={"out": lambda k: out}, **run))


def test_a_run_that_starts_late_keeps_its_frames_apart() -> None:
    """A float32 at 1e6 s is good to 0.06 s."""
    m = telescope()[0].with_(constraints=(), forces=())
    result = pf.run(m, start=1e6, duration=0.1, step=1e-2, every=2, backend="interpreter", error_bound=np.inf)
    found = data_of(pf.animate(m, result).data)
    np.testing.assert_array_equal(doubles(found["time"]), result["time"].values)


def test_a_page_of_a_machine_in_orbit_has_its_forces() -> None:
    """Seven thousand kilometres from the origin a float32 is good to half a metre; the machine is two metres long."""
    far = (0.0, 7e6, 4e5)
    bodies = [pf.body("hull", 5.0, inertia=1.0), pf.body("arm", 1.0, com=(0.5, 0, 0), inertia=0.1)]
    joints = [
        pf.joint("orbit", "free", "world", "hull", placement=far),
        pf.joint("elbow", "revolute", "hull", "arm", axis=(0, 1, 0), placement=(1, 0, 0)),
    ]
    m = pf.mechanism("satellite", bodies, joints, gravity=(0, 0, 0))
    run = {"duration": 0.2, "step": 0.01, "every": 2, "backend": "interpreter", "error_bound": np.inf}
    result = pf.run(m, v={"elbow": 3.0}, outputs=recorded_forces(m), **run)
    found = data_of(pf.animate(m, result, show="reactions").data)
    (x,) = [x for x in found["moving"] if x["layer"] == "reactions"]
    ends = floats(x["ends"]).reshape(-1, 2, 3).astype(float)
    at = at_times(result, doubles(found["time"]))
    np.testing.assert_allclose(
        (ends[:, 1] - ends[:, 0]) / x["scale"], at["through elbow"].values[0, :, :3], atol=SINGLE / x["scale"]
    )
    poses = floats(found["poses"]).reshape(-1, 2, 7)
    offset = poses[:, 1, :3].astype(float) - poses[:, 0, :3]
    R = pf.forward_kinematics(m, at["q"].values[0])["hull"].rotation
    np.testing.assert_allclose(offset, R[:, :, 0], atol=SINGLE)
    assert np.abs(poses[:, :, :3]).max() < 3 and np.linalg.norm(np.array(found["camera"]["eye"])) < 20


def test_a_scene_moves_as_a_whole_and_arrows_grow_with_the_machine() -> None:
    hinge = pf.joint("hinge", "revolute", "world", "rod", axis=(0, 1, 0))
    m = pf.mechanism("tall", [pf.body("rod", 1.0, com=(0, 0, -50), inertia=800.0)], [hinge])
    result = pf.run(m, {"hinge": 1.0}, duration=0.1, step=0.01, backend="interpreter")
    drawn = drawn_runs(m, result, None, RATE, False, True)
    (arrow,) = [x for x in drawn.moving if x.kind == "arrow"]
    assert drawn.size > 20 and arrow.radius == pytest.approx(0.009 * drawn.size)
    by = np.array([1.0, -2.0, 30.0])
    there = drawn.moved(by)
    np.testing.assert_allclose(there.points, drawn.points + by, atol=1e-12)
    np.testing.assert_allclose(floor_square(there)[0], floor_square(drawn)[0] + by, atol=1e-12)
