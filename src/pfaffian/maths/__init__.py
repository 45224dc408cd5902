"""Rotations (`so3`) and poses (`se3`), groups of motions (`subgroups`) and linear algebra (`linear`), as expressions."""

from pfaffian.maths import linear, se3, so3, subgroups

__all__ = ["linear", "se3", "so3", "subgroups"]
