"""Rigid bodies: mass, mass centre, inertia and shapes."""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np

from pfaffian.errors import ModelError, brief, plural
from pfaffian.maths.inertia import pseudo_to_moments
from pfaffian.model import reprs
from pfaffian.model.data import data
from pfaffian.model.number import Scalar, are_plain, is_symmetric, matrix, scalar, vector
from pfaffian.model.shape import Shape, as_shapes, moments

WORLD = "world"
ORIGIN = (0, 0, 0)


@data
class Body:
    """A rigid body of a mechanism, made by `body`. The joint or edge that leads to the body places its frame.

    name: unique among the bodies.
    mass: (1, 1) [kg].
    com: (3, 1) mass centre in the body frame [m].
    inertia: (3, 3) about the mass centre, along the body axes [kg m^2].
    shapes: solids that pictures draw; the equations do not use them.

    Example:
        >>> import pfaffian as pf
        >>> rod = pf.body("rod", mass=2.0, com=(0, 0, -0.5), inertia=0.1)
        >>> m = pf.mechanism("pendulum", [rod], [pf.joint("hinge", "revolute", "world", "rod", axis=(0, 1, 0))])
        >>> m.body("rod")
        <Body 'rod': mass 2 kg, com (0, 0, -0.5) m, inertia (0.1, 0.1, 0.1) kg m^2>
        >>> float(m.body("rod").mass)
        2.0
    """

    name: str
    mass: ca.SX
    com: ca.SX
    inertia: ca.SX
    shapes: tuple[Shape, ...] = ()

    def __repr__(self) -> str:
        I = self.inertia
        products = ca.vertcat(I[0, 1], I[0, 2], I[1, 2])
        tensor = ca.diag(I) if ca.densify(products).is_zero() else ca.vertcat(ca.diag(I), products)
        com, inertia = reprs.number(self.com, "m"), reprs.number(tensor, "kg m^2")
        parts = [f"mass {reprs.number(self.mass, 'kg')}", f"com {com}", f"inertia {inertia}"]
        parts += [plural(len(self.shapes), "shape")] if self.shapes else []
        return reprs.words(self, *parts, name=self.name)


def body(name: str, mass: Scalar = 0.0, com: Any = ORIGIN, inertia: Any = 0.0, *, pseudo: Any = None, shape: Any = ()) -> Body:
    """A rigid body from numbers or parameters. `mechanism` checks whether its mass and inertia are physically possible.

    Args:
        name: unique among the bodies; "world" is the fixed frame.
        mass: [kg], zero by default.
        com: (3,) mass centre in the body frame [m], its origin by default.
        inertia: about the mass centre [kg m^2], zero by default: one number (isotropic), (3,) principal moments along the
            body axes, (6,) xx yy zz xy xz yz, or (3, 3).
        pseudo: (4, 4) pseudo-inertia [[S, h], [h^T, m]] in place of mass, com and inertia, with S = sum m x x^T [kg m^2],
            h = sum m x [kg m] and m [kg]. [konz25 (3.91)]
        shape: solids that pictures draw: one made by `shape`, or a list of them; none by default. Shapes with a density or a
            mass determine the body's mass, mass centre and inertia, in place of the arguments above.
    Raises ModelError: a name that is not text, the wrong number of values, a pseudo-inertia or shapes with mass given together
    with mass, com or inertia, or a pseudo-inertia that is not symmetric or has no mass.

    Example:
        >>> import pfaffian as pf
        >>> rod = pf.body("rod", mass=2.0, com=(0, 0, -0.5), inertia=0.1)
        >>> m = pf.mechanism("pendulum", [rod], [pf.joint("hinge", "revolute", "world", "rod", axis=(0, 1, 0))])
        >>> pf.mass_matrix(m).round(9)  # 0.1 + 2 * 0.5^2
        array([[0.6]])
    """
    if not isinstance(name, str) or not name:
        raise ModelError(f"body(name, mass, com, inertia): the name must be text, got {brief(name)}")
    if name == WORLD:
        raise ModelError("'world' is the fixed frame; call the body something else")
    what = f"body {name!r}"
    shapes = as_shapes(shape, what) if shape != () else ()
    from_shapes = moments(shapes) if shapes else None
    if from_shapes is not None:
        if not _are_defaults(mass, com, inertia) or pseudo is not None:
            raise ModelError(f"{what}: its shapes give mass, mass centre and inertia; leave these out, or the shapes' density")
        return Body(name, *from_shapes, shapes)
    if pseudo is not None:
        return _body_of_pseudo(name, _are_defaults(mass, com, inertia), pseudo, shapes)
    m, c = scalar(mass, f"{what}: mass"), vector(com, 3, f"{what}: com")
    return Body(name, m, c, tensor(inertia, f"{what}: inertia"), shapes)


def _are_defaults(mass: Any, com: Any, inertia: Any) -> bool:
    """Whether mass, com and inertia all have their default values, as when `body` is called without them."""
    return com is ORIGIN and all(isinstance(x, (int, float)) and x == 0 for x in (mass, inertia))


OF_PSEUDO = ("m", "m", "m", "1")
"""Lengths by which the rows of a pseudo-inertia are multiplied."""


def _body_of_pseudo(name: str, defaults: bool, pseudo: Any, shapes: tuple[Shape, ...]) -> Body:
    """The body with a pseudo-inertia (4, 4).   defaults: whether mass, com and inertia are left at their defaults."""
    what = f"body {name!r}: pseudo"
    if not defaults:
        raise ModelError(f"{what} contains mass, mass centre and inertia; leave these out")
    P = matrix(pseudo, what)
    if P.shape != (4, 4) or not is_symmetric(P, OF_PSEUDO):
        raise ModelError(f"{what} must be a symmetric (4, 4) matrix [[S, h], [h^T, m]]")
    m, h, I = pseudo_to_moments(P)
    if m.is_zero():
        raise ModelError(f"{what} has zero mass, its last entry, and so no mass centre")
    c = h / m
    return Body(name, ca.SX(m), ca.densify(c), ca.densify(I - m * (ca.dot(c, c) * ca.SX.eye(3) - c @ c.T)), shapes)


def tensor(value: Any, what: str) -> ca.SX:
    """A symmetric (3, 3) tensor from one number (isotropic), (3,) principal moments, (6,) xx yy zz xy xz yz or (3, 3).

    what: the label of the value in error messages.
    """
    plain = [value] * 3 if type(value) is float else value
    if are_plain(plain) and len(plain) in (3, 6):
        xx, yy, zz, xy, xz, yz = (*plain, 0.0, 0.0, 0.0)[:6]
        return ca.SX(np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]], dtype=float))
    I = matrix(value, what)
    shape = I.shape
    if shape in ((1, 3), (1, 6)):
        I, shape = I.T, shape[::-1]
    if shape == (1, 1):
        return ca.densify(I * ca.SX.eye(3))
    if shape == (3, 1):
        return ca.densify(ca.diag(I))
    if shape == (6, 1):
        return ca.reshape(I[[0, 3, 4, 3, 1, 5, 4, 5, 2]], 3, 3)
    if shape != (3, 3):
        got = " x ".join(str(n) for n in shape if n > 1)
        raise ModelError(f"{what}: one number, 3, 6 (xx yy zz xy xz yz) or a (3, 3) matrix is needed, got {got}")
    if not is_symmetric(value if isinstance(value, np.ndarray) else I):
        raise ModelError(f"{what}: the matrix is not symmetric")
    return I if I.is_dense() else ca.densify(I)
