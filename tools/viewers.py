"""Pictures of five machines by this library, MuJoCo, meshcat and viser, from the same triangles and the same side.

python -m tools.viewers [FOLDER]    # into out/viewers: MACHINE-VIEWER.png, which docs/viewers.md compares

Each viewer shows what it shows by default, with what it offers of labels switched on. MuJoCo draws off-screen (EGL or OSMesa),
the browser's viewers in headless Chromium. Needs mujoco, meshcat, viser and Chromium; a viewer that is missing is named and
left out.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

import pfaffian as pf
from benchmarks import robots
from pfaffian.viewer import zoo
from pfaffian.viewer.build import scene
from pfaffian.viewer.camera import Camera, framing
from pfaffian.viewer.scene import Scene, state_of
from pfaffian.viewer.still import png
from tools.browser import opened

SIZE = 800, 600
MACHINES = ("panda", "walker", "satellite", "engine", "excavator_arm")
LAYERS = ("shapes", "joints", "contacts", "closures", "rotors")
LOADED = 6.0
"""Time that a viewer in the browser takes to receive what it shows [s]."""


class Shown(NamedTuple):
    """What is drawn.   parts: name, vertices (n, 3) in the world [m], faces (m, 3) and colour (4,) of each."""

    m: pf.Mechanism
    q: np.ndarray
    scene: Scene
    camera: Camera
    parts: list[tuple[str, np.ndarray, np.ndarray, tuple[float, ...]]]


def shown(name: str) -> Shown:
    """A machine of the zoo at its start, or the Panda with its elbow bent."""
    if name == "panda":
        m = pf.formats.read_urdf(robots.urdf("panda"))
        q = np.concatenate([robots.READY, np.full(m.nq - len(robots.READY), 0.02)])
    else:
        found = zoo.machine(name)
        m, start = found.m, zoo.start(found.m, found.settings)
        q = np.array([start.q[x] for x in found.m.q_names])
    s = scene(m, state_of(m, q), collision=False)
    drawn = [p for p in s.parts if p.layer in LAYERS and s.layers[p.layer]]
    place = [(np.eye(3), np.zeros(3)) if p.body < 0 else (s.rotations[0, p.body], s.positions[0, p.body]) for p in drawn]
    parts = [(p.name, p.solid.vertices @ R.T + x, p.solid.faces, p.colour) for p, (R, x) in zip(drawn, place, strict=True)]
    return Shown(m, q, s, framing(s, SIZE[0] / SIZE[1]), parts)


def by_pfaffian(x: Shown, file: Path) -> None:
    from pfaffian.viewer.picture import workspace
    from pfaffian.viewer.render import backdrop, batched, frame

    layers = frozenset(k for k, on in x.scene.layers.items() if on)
    behind = backdrop(x.scene, layers, x.camera, SIZE, workspace(SIZE))
    file.write_bytes(png(frame(x.scene, batched(x.scene, layers), layers, behind, 0)))


def by_our_page(x: Shown, file: Path) -> None:
    from pfaffian.viewer.page import page

    written = file.with_suffix(".html")
    written.write_text(page(x.scene), encoding="utf-8")
    with opened(written.resolve().as_uri()) as seen:
        seen.wait("state.drawn > 0")
        seen.picture(file)


def by_mujoco(x: Shown, file: Path) -> None:
    os.environ.setdefault("MUJOCO_GL", "egl")
    import mujoco

    spec = mujoco.MjSpec()
    spec.visual.global_.offwidth, spec.visual.global_.offheight = SIZE
    spec.visual.global_.fovy = 2 * np.rad2deg(np.arctan(0.3))
    spec.stat.extent = x.scene.size
    low = x.scene.bounds[0]
    spec.worldbody.add_light(
        pos=x.camera.target + x.scene.size * np.array([1.0, -1.0, 3.0]), dir=[-0.3, 0.3, -1], castshadow=True
    )
    checks = spec.add_texture(
        name="t", type=mujoco.mjtTexture.mjTEXTURE_2D, builtin=mujoco.mjtBuiltin.mjBUILTIN_CHECKER, width=300, height=300,
        rgb1=[0.2, 0.3, 0.4], rgb2=[0.1, 0.2, 0.3],
    )  # fmt: skip
    material = spec.add_material(name="m", texrepeat=[5, 5], reflectance=0.2)
    material.textures[mujoco.mjtTextureRole.mjTEXROLE_RGB] = checks.name
    spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=[0, 0, 1], pos=[0, 0, low[2]], material="m")
    for i, (name, vertices, faces, colour) in enumerate(x.parts):
        spec.add_mesh(
            name=f"{i}", uservert=vertices.ravel(), userface=faces.ravel(), inertia=mujoco.mjtMeshInertia.mjMESH_INERTIA_SHELL
        )
        body = spec.worldbody.add_body(name=f"{name} {i}")
        body.add_geom(type=mujoco.mjtGeom.mjGEOM_MESH, meshname=f"{i}", rgba=colour)
    model = spec.compile()
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    camera, option = mujoco.MjvCamera(), mujoco.MjvOption()
    to = x.camera.target - x.camera.eye
    camera.lookat, camera.distance = x.camera.target, float(np.linalg.norm(to))
    camera.azimuth = float(np.rad2deg(np.arctan2(to[1], to[0])))
    camera.elevation = float(np.rad2deg(np.arcsin(to[2] / camera.distance)))
    option.label = mujoco.mjtLabel.mjLABEL_BODY
    with mujoco.Renderer(model, SIZE[1], SIZE[0]) as renderer:
        renderer.update_scene(data, camera, option)
        file.write_bytes(png(renderer.render()))


def by_meshcat(x: Shown, file: Path) -> None:
    import meshcat

    view = meshcat.Visualizer()
    try:
        for i, (_, vertices, faces, colour) in enumerate(x.parts):
            mesh = meshcat.geometry.TriangularMeshGeometry(vertices, faces)
            paint = "".join(f"{round(255 * c):02x}" for c in colour[:3])
            look = meshcat.geometry.MeshPhongMaterial(color=int(paint, 16), opacity=colour[3], transparent=colour[3] < 1)
            view[f"{i}"].set_object(mesh, look)
        to = x.camera.target - x.camera.eye
        with opened(view.url()) as seen:
            view["/Cameras/default"].set_transform(meshcat.transformations.translation_matrix(x.camera.target))
            view["/Cameras/default/rotated/<object>"].set_property("position", [-to[0], -to[2], to[1]])  # its y is up
            time.sleep(LOADED)
            seen.picture(file)
    finally:
        view.delete()
        view.window.server_proc.kill()


def by_viser(x: Shown, file: Path) -> None:
    import viser

    server = viser.ViserServer(host="127.0.0.1", verbose=False)
    try:
        server.scene.add_grid("/grid", position=(0.0, 0.0, float(x.scene.bounds[0][2])))
        for i, (name, vertices, faces, colour) in enumerate(x.parts):
            server.scene.add_mesh_simple(
                f"/{i}", vertices, faces, color=colour[:3], opacity=colour[3] if colour[3] < 1 else None
            )
            server.scene.add_label(f"/{i}/name", name, position=vertices.mean(axis=0))

        @server.on_client_connect
        def _(client: viser.ClientHandle) -> None:
            client.camera.position, client.camera.look_at = x.camera.eye, x.camera.target

        with opened(f"http://127.0.0.1:{server.get_port()}") as seen:
            time.sleep(LOADED)
            seen.picture(file)
    finally:
        server.stop()


VIEWERS: dict[str, Callable[[Shown, Path], None]] = {
    "picture": by_pfaffian, "page": by_our_page, "mujoco": by_mujoco, "meshcat": by_meshcat, "viser": by_viser,
}  # fmt: skip


def main() -> None:
    options = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    options.add_argument("folder", nargs="?", type=Path, default=Path("out/viewers"))
    options.add_argument("--machines", nargs="*", default=MACHINES)
    options.add_argument("--viewers", nargs="*", default=tuple(VIEWERS), choices=tuple(VIEWERS))
    given = options.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    for machine in given.machines:
        x = shown(machine)
        for viewer in given.viewers:
            try:
                VIEWERS[viewer](x, given.folder / f"{machine}-{viewer}.png")
            except ImportError as error:
                print(f"{viewer}: {error}")


if __name__ == "__main__":
    main()
