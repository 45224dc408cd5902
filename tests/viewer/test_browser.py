"""The view in a browser, with a stand-in for the server that records calls; tools/browser.py checks the real one."""

from __future__ import annotations

import sys
from html import unescape
from types import SimpleNamespace

import numpy as np
import pytest

import pfaffian as pf
from pfaffian.viewer import browser
from pfaffian.viewer.browser import STILL, View
from tests.viewer.stand_in import Server


@pytest.fixture(scope="module")
def linkage() -> pf.Mechanism:
    """A four-bar with a spring; the length of its coupler is a Parameter."""
    c = pf.Parameter("c", 2.0, "m")
    bodies = [pf.body(n, 1.0, com=(0.1, 0, 0), inertia=0.1) for n in ("crank", "coupler", "rocker")]
    hinge = {"kind": "revolute", "axis": (0, -1, 0)}
    joints = [
        pf.joint("A", parent="world", child="crank", **hinge),
        pf.joint("B", parent="crank", child="coupler", placement=(1, 0, 0), **hinge),
        pf.joint("D", parent="world", child="rocker", placement=(2.5, 0, 0), limits=(-1, 3), **hinge),
    ]
    tie = pf.closure("C", body_a="coupler", body_b="rocker", placement_a=(c, 0, 0), placement_b=(2, 0, 0), **hinge)
    rope = pf.spring("rope", "world", "crank", point_a=(0, 0, 2), point_b=(1, 0, 0), stiffness=1)
    return pf.mechanism("four-bar", bodies, joints, constraints=[tie], forces=[rope], parameters=[c])


START = {"A": 1.2}


def frames(view: View) -> np.ndarray:
    return np.array([view.server.scene.made[f"/body{i}"].position for i in range(len(view.drawn.bodies))])


def test_without_a_result_the_machine_is_shown_on_its_constraints(open_view, linkage, capsys) -> None:
    view = open_view(linkage, q=START)
    assert view.server.host == "127.0.0.1" and view.url == "http://127.0.0.1:8123" and view.url in view._repr_html_()
    assert "showing 'four-bar' at http://127.0.0.1:8123" in capsys.readouterr().out
    start = pf.assemble(linkage, START)
    poses = pf.forward_kinematics(linkage, start.q)
    np.testing.assert_allclose(frames(view), [poses[b].position for b in view.drawn.bodies], atol=1e-12)
    assert set(view.sliders) == {"A", "B", "D", "c"} and (view.sliders["D"].min, view.sliders["D"].max) == (-1, 3)
    assert view.sliders["A"].value == pytest.approx(1.2) and view.sliders["c"].max == 6.0
    names = [n for n, h in view.server.scene.made.items() if h.kind == "add_label"]
    assert len(names) == 3 and not any(view.server.scene.made[n].visible for n in names)


def test_a_slider_moves_the_machine_and_the_loop_follows(open_view, linkage) -> None:
    view = open_view(linkage, q=START)
    view.sliders["A"].value = 1.5
    view.sliders["A"].call(SimpleNamespace(client=1))
    assert view.q[0] == 1.5 and view.message.content == ""
    tip = view.drawn.placed(1, np.array([[2.0, 0, 0]])) - view.drawn.placed(2, np.array([[2.0, 0, 0]]))
    np.testing.assert_allclose(tip, 0, atol=1e-8)
    assert view.sliders["B"].value == pytest.approx(view.q[1])
    rope = view.server.scene.made["/springs-lines"].points
    np.testing.assert_allclose(rope[-1, 1], [np.cos(1.5), 0, np.sin(1.5)], atol=1e-6)
    before = view.q.copy()
    view.sliders["A"].call(SimpleNamespace(client=None))  # values set by the view itself are not requests
    assert np.array_equal(before, view.q)


def test_values_that_a_loop_cannot_reach_give_a_message(open_view, linkage) -> None:
    view = open_view(linkage, q=START)
    before = view.q.copy()
    view.pose("c", 6.0)
    assert "'C.v" in unescape(view.message.content), view.message.content
    assert np.array_equal(before, view.q) and view.p.tolist() == [2.0]
    with pytest.raises(pf.ModelError, match="pose: 'E' is neither a coordinate nor a parameter"):
        view.pose("E", 1.0)


def test_a_parameter_rebuilds_the_parts(open_view, linkage) -> None:
    view = open_view(linkage, q=START)
    coupler = next(h for n, h in view.server.scene.made.items() if n.startswith("/body1/part"))
    assert np.ptp(coupler.given[0][:, 0]) == pytest.approx(2.0)
    view.pose("c", 2.2)
    assert coupler.removed
    again = next(h for n, h in view.server.scene.made.items() if n.startswith("/body1/part") and not hasattr(h, "removed"))
    assert np.ptp(again.given[0][:, 0]) == pytest.approx(2.2)


def test_a_switch_hides_only_its_layer(open_view, linkage) -> None:
    view = open_view(linkage, q=START)
    assert {"shapes", "joints", "closures", "springs", "floor", "frames", "names"} <= set(view.switches)
    for layer in ("joints", "springs", "floor"):
        others = [h.visible for name, every in view.layers.items() if name != layer for h in every]
        view.switches[layer].value = False
        view.switches[layer].call(None)
        assert view.layers[layer] and not any(h.visible for h in view.layers[layer])
        assert [h.visible for name, every in view.layers.items() if name != layer for h in every] == others
        view.switches[layer].value = True
        view.switches[layer].call(None)
    view.switches["names"].value = True
    view.switches["names"].call(None)
    assert all(h.visible for h in view.layers["names"])


@pytest.fixture(scope="module")
def swing() -> tuple:
    hinge = pf.joint("hinge", "revolute", "world", "rod", axis=(0, 1, 0))
    m = pf.mechanism("pendulum", [pf.body("rod", 1.0, com=(0, 0, -0.5), inertia=0.01)], [hinge])
    return m, pf.run(m, {"hinge": 1.0}, duration=0.5, step=0.01, backend="numpy")


def test_a_result_plays_seeks_and_pauses(open_view, swing) -> None:
    m, result = swing
    view = open_view(m, result)
    assert view.playing.value and view.clock.max == pytest.approx(0.5)
    view.seek(0.3)
    i = int(np.searchsorted(view.run.time, 0.3 - 1e-9))
    w = view.server.scene.made["/body0"].wxyz
    at = result["q"].sel(time=view.run.time[i]).values.item()
    np.testing.assert_allclose(np.abs(w), np.abs([np.cos(at / 2), 0, np.sin(at / 2), 0]), atol=1e-9)
    view.clock.call(SimpleNamespace(client=3))
    assert not view.playing.value, "moving the slider by hand pauses the player"
    view.play()
    assert view.playing.value
    view.pose("hinge", 0.2)
    assert not view.playing.value and len(view.drawn.time) == 1
    view.seek(0.1)
    assert len(view.drawn.time) > 1, "seeking returns to the run"


def test_the_player_follows_the_clock_and_starts_again(monkeypatch, swing) -> None:
    m, result = swing
    monkeypatch.setitem(sys.modules, "viser", SimpleNamespace(ViserServer=Server))
    clock = iter(np.arange(0, 100, 0.1))
    monkeypatch.setattr(browser.time, "monotonic", lambda: next(clock))
    real = View._play
    monkeypatch.setattr(View, "_play", lambda self: None)
    view = pf.view(m, result, block=False)
    seen = []
    view._over = SimpleNamespace(
        wait=lambda _: seen.append(view.clock.value) or len(seen) > 8, set=lambda: None, is_set=lambda: True
    )
    view.speed.value = "0.5"
    real(view)
    np.testing.assert_allclose(seen, [0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4], atol=1e-9)
    view.clock.value, seen[:] = 0.48, []
    real(view)
    np.testing.assert_allclose(seen[:3], [0.48, 0.0, 0.05], atol=1e-9)
    view.stop()
    assert view.server.stopped


def test_the_camera_follows_a_body(open_view) -> None:
    ball = pf.mechanism(
        "ball", [pf.body("ball", 1.0, inertia=1e-3)], [pf.joint("fly", "free", "world", "ball")], gravity=(0, 0, 0)
    )
    view = open_view(ball, pf.run(ball, v={"fly.vx": 3.0}, duration=0.2, step=0.01, backend="numpy"))
    camera = SimpleNamespace(position=np.array([0.0, -2.0, 1.0]), look_at=None)
    view.server.clients[0] = SimpleNamespace(camera=camera)
    assert "fly.qx" not in view.sliders and "fly.x" in view.sliders
    view.draw()
    assert camera.look_at is None and view.follow.value == STILL
    view.follow.value = "ball"
    view.seek(0.0)
    np.testing.assert_allclose(camera.position, [0, -2, 1])
    view.seek(0.2)
    np.testing.assert_allclose(camera.position, [0.6, -2, 1], atol=1e-9)
    np.testing.assert_allclose(camera.look_at, [0.6, 0, 0], atol=1e-9)


def test_runs_of_a_batch_are_shown_together(open_view, swing) -> None:
    m, _ = swing
    runs = pf.run(m, {"hinge": [0.1, 0.5]}, duration=0.05, step=0.01, backend="numpy")
    view = open_view(m, runs, beside=True)
    assert view.drawn.bodies == ("rod (run 0)", "rod (run 1)") and len(frames(view)) == 2
    assert frames(view)[1, 1] > 0.5


def test_a_script_waits_and_a_notebook_does_not(monkeypatch, swing, capsys) -> None:
    m, result = swing
    monkeypatch.setitem(sys.modules, "viser", SimpleNamespace(ViserServer=Server))
    monkeypatch.setattr(View, "_play", lambda self: None)
    waited = []
    monkeypatch.setattr(browser.time, "sleep", lambda s: waited.append(s) or (_ for _ in ()).throw(KeyboardInterrupt))
    monkeypatch.delattr(sys, "ps1", raising=False)
    assert pf.view(m, result).server.stopped and len(waited) == 1 and "Ctrl-C ends it" in capsys.readouterr().out
    monkeypatch.setattr(sys, "ps1", ">>> ", raising=False)
    view = pf.view(m, result)
    assert not view.server.stopped and len(waited) == 1 and "Ctrl-C" not in capsys.readouterr().out
    view.stop()


def test_wrong_arguments_and_missing_packages_are_named(open_view, pendulum, monkeypatch) -> None:
    result = pf.run(pendulum, duration=0.01, step=0.01, backend="numpy")
    other = pf.mechanism("other", [pf.body("b", 1.0, inertia=1.0)], [pf.joint("j", "free", "world", "b")])
    for m, given, words in (
        (result, {"result": pendulum}, "a Mechanism is needed"),
        (pendulum, {"result": pendulum}, "not the result of a run"),
        (other, {"result": result}, "the result is of another mechanism"),
        (pendulum, {"result": result, "q": [0]}, "q is only for a machine without a result"),
        (pendulum, {"beside": 1}, "beside must be True or False"),
    ):
        with pytest.raises(pf.ModelError, match=words):
            open_view(m, **given)
    monkeypatch.setitem(sys.modules, "viser", None)
    with pytest.raises(pf.ModelError, match="viser: run `pip install viser`"):
        open_view(pendulum, result)


def test_a_click_on_a_part_shows_its_name(open_view, linkage):
    view = open_view(linkage)
    meshes = [h for h in view.server.scene.made.values() if h.kind == "add_mesh_simple"]
    messages = set()
    for mesh in meshes:
        mesh.click(None)
        messages.add(view.message.content)
    assert {"crank", "coupler", "rocker", "A"} <= messages and len(meshes) == len(view.drawn.parts)


def test_a_slider_of_a_parameter_starts_a_new_run(open_view):
    length = pf.Parameter("length", 1.0, "m")
    bob = pf.body("bob", 1.0, com=(0, 0, -length))
    m = pf.mechanism("p", [bob], [pf.joint("h", "revolute", "world", "bob", axis=(0, 1, 0))], parameters=[length])
    requests = []

    def rerun(p):
        requests.append(p)
        if p["length"] > 2:
            raise pf.RunError("too long")
        return pf.run(m, {"h": 1.0}, duration=0.1 * p["length"], every=10, parameters=p, backend="numpy")

    view = open_view(m, rerun({"length": 1.0}), rerun=rerun)
    view.seek(0.05)
    before = view.places[0].wxyz
    view.pose("length", 2.0)
    assert requests[-1] == {"length": 2.0} and view.clock.max == pytest.approx(0.2) and view.p.tolist() == [2.0]
    assert view.clock.value == pytest.approx(0.05) and (view.places[0].wxyz != before).any()
    view.seek(0.2)
    assert view.clock.value == pytest.approx(0.2) and view.drawn is view.run
    view.pose("length", 2.5)
    assert view.message.content == "too long" and view.p.tolist() == [2.0] and view.clock.max == pytest.approx(0.2)
    view.pose("h", 0.3)
    assert len(requests) == 3 and len(view.drawn.time) == 1


@pytest.mark.parametrize("given", [{"rerun": len}, {"rerun": 3}])
def test_rerun_needs_a_result_and_a_function(open_view, linkage, given):
    with pytest.raises(pf.ModelError, match="view: rerun is a function"):
        open_view(linkage, **given)
