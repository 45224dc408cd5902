"""Bodies: mass, mass centre, inertia."""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np

from pfaffian.errors import ModelError
from pfaffian.model.data import data
from pfaffian.model.number import Scalar, scalar, vector

WORLD = "world"


@data
class Body:
    """A rigid body.   mass: [kg].   com: (3, 1) mass centre in the body frame [m].
    inertia: (3, 3) about the mass centre, along the body axes [kg m^2]."""

    name: str
    mass: ca.SX
    com: ca.SX
    inertia: ca.SX


def body(name: str, mass: Scalar = 0.0, com: Any = (0, 0, 0), inertia: Any = 0.0) -> Body:
    """A rigid body from numbers or parameters.

    Args:
        name: unique among the bodies.   mass: [kg].   com: (3,) mass centre in the body frame [m].
        inertia: about the mass centre [kg m^2]: one number (isotropic), (3,) principal along the axes,
            (6,) xx yy zz xy xz yz, or (3, 3).
    Raises ModelError: a name that is no text, numbers of the wrong count. Physical sense is checked by `mechanism`.
    """
    if not isinstance(name, str) or not name:
        raise ModelError(f"a body needs a name, got {name!r}")
    if name == WORLD:
        raise ModelError("'world' is the fixed frame; call the body something else")
    what = f"body {name!r}"
    return Body(name, scalar(mass, f"{what}: mass"), vector(com, 3, f"{what}: com"), _inertia(inertia, what))


def _inertia(value: Any, what: str) -> ca.SX:
    what = f"{what}: inertia"
    if isinstance(value, (np.ndarray, list, tuple)) and len(value) == 3 and isinstance(value[0], (np.ndarray, list, tuple)):
        I = ca.vertcat(*[vector(row, 3, what).T for row in value])
        if not ca.is_equal(I, I.T, 2) and not (I.is_constant() and np.allclose(ca.DM(I), ca.DM(I).T, rtol=1e-12, atol=0)):
            raise ModelError(f"{what}: the matrix is not symmetric")
        return I
    if isinstance(value, (np.ndarray, list, tuple)) and len(value) == 6:
        xx, yy, zz, xy, xz, yz = ca.vertsplit(vector(value, 6, what))
        return ca.blockcat([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    if isinstance(value, (np.ndarray, list, tuple)):
        if len(value) != 3:
            raise ModelError(f"{what}: one number, 3, 6 (xx yy zz xy xz yz) or a (3, 3) matrix is needed, got {len(value)}")
        return ca.densify(ca.diag(vector(value, 3, what)))
    if isinstance(value, ca.SX) and value.shape == (3, 3):
        return ca.densify(value)
    return ca.densify(scalar(value, what) * ca.SX.eye(3))
