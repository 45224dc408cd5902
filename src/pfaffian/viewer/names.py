"""Names of bodies written into pictures, at their mass centres."""

from __future__ import annotations

import numpy as np

from pfaffian.output.plain import text
from pfaffian.viewer.camera import VIEW, Camera
from pfaffian.viewer.scene import Scene

INK, HALO = (40, 40, 46), (255, 255, 255)
"""Colours of the letters and of what sets them off from the picture."""

LETTERS = 36
"""Height of a picture over the size of its letters."""


def named(picture: np.ndarray, scene: Scene, camera: Camera, i: int) -> np.ndarray:
    """The picture (height, width, 3) of a scene at record i with the name of each body in view at its mass centre."""
    from PIL import Image, ImageDraw, ImageFont

    image = Image.fromarray(picture)
    pen, size = ImageDraw.Draw(image), max(picture.shape[0] // LETTERS, 10)
    font = ImageFont.load_default(size)
    for name, (x, y, away) in zip(scene.bodies, places(scene, camera, picture.shape[:2], i), strict=True):
        if away > 0:
            pen.text((x, y), text(name, 60), INK, font, "mm", stroke_width=2, stroke_fill=HALO)
    return np.asarray(image)


def places(scene: Scene, camera: Camera, size: tuple[int, int], i: int) -> np.ndarray:
    """(bodies, 3) column and row of the mass centres at record i [pixels], and their distances from the camera's plane [m].

    size: height and width of the picture [pixels].
    """
    centres = scene.positions[i] + (scene.rotations[i] @ scene.centres[:, :, None])[:, :, 0]
    right, above, back = ((centres - camera.eye) @ camera.axes.T).T
    away = np.where(back == 0, 1e-300, -back)
    scale = size[0] / VIEW / away
    return np.stack([size[1] / 2 + right * scale, size[0] / 2 - above * scale, away], axis=1)
