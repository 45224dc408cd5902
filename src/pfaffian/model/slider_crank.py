"""The travel of a slider that a rod pushes: the length of a slider-crank transmission."""

from __future__ import annotations

from typing import Any

import casadi as ca

from pfaffian.model.data import data
from pfaffian.model.path import LinePiece, Pull
from pfaffian.model.pose import Pose
from pfaffian.model.ranges import Range


@data
class SliderCrank:
    """The travel of a slider along the z axis of a frame, with a rod between the slider and a point of the crank.

    With r from the frame to the point and z the axis, the slider is at l = r . z - sqrt((r . z)^2 + rod^2 - |r|^2). Where the
    rod is too short, l = r . z.

    slider: body with the `frame`.   crank: body with the `point` (3, 1).   rod: length [m].   falls: how often it counts.
    """

    slider: str
    frame: Pose
    crank: str
    point: ca.SX
    rod: ca.SX
    falls: ca.SX

    @property
    def bodies(self) -> tuple[str, ...]:
        return self.slider, self.crank

    @property
    def numbers(self) -> tuple[ca.SX, ...]:
        """All its numbers, for checks."""
        return self.frame.p, self.point, self.rod, self.falls

    @property
    def ranges(self) -> tuple[Range, ...]:
        """What its numbers must be: a transmission of a file may have any."""
        return ()

    def pieces(self, k: Any) -> list[LinePiece]:
        """The travel, and its pulls on the crank and on the body of the slider."""
        r = k.line(self.slider, self.crank, self.frame.p, self.point)
        z = (k.rotation(self.slider) @ self.frame.R)[:, 2]
        along = ca.dot(r, z)
        square = along**2 + self.rod**2 - ca.sumsqr(r)
        reaches = square > 0
        root = ca.sqrt(ca.if_else(reaches, square, 1))
        travel = along - ca.if_else(reaches, root, 0)
        pull = ca.if_else(reaches, -(r - travel * z) / root, -z)
        on_crank = Pull(self.crank, self.point, pull, None)
        return [LinePiece(travel, [on_crank, Pull(self.slider, self.frame.p, -pull, -ca.cross(r, pull))])]
