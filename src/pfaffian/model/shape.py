"""Shapes of bodies: solids that pictures draw, with mass, mass centre and inertia for a uniform density."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import Any, NamedTuple

import casadi as ca

from pfaffian.errors import ModelError, brief, is_one_of, nearest
from pfaffian.model import reprs
from pfaffian.model.data import data
from pfaffian.model.number import Scalar, constants, floats, positive, several, vector
from pfaffian.model.pose import IDENTITY, Pose, as_pose

ROLES = ("visual", "collision")
"""The purposes of a shape; pictures draw collision shapes only on request."""
SIZES = {
    "box": ("size",),
    "sphere": ("radius",),
    "cylinder": ("radius", "length"),
    "capsule": ("radius", "length"),
    "cone": ("radius", "length"),
    "mesh": ("file",),
}
"""Kind of shape -> the arguments of `shape` that give its size."""

Colour = tuple[float, ...]
"""Red, green, blue and opacity, each from 0 to 1."""

_COLOUR = re.compile(r"#(?:[0-9a-fA-F]{6}|[0-9a-fA-F]{8})")


@data
class Shape:
    """A solid that belongs to a body, made by `shape`.

    kind: box, sphere, cylinder, capsule, cone or mesh.
    size: (n, 1) three edges, a radius, or radius and length [m]; for a mesh the scales along its axes [1].
    placement: frame of the shape in the frame of the body.
    colour: (4,) red, green, blue and opacity from 0 to 1, or None.
    mass: (1, 1) [kg], or None for a shape that does not contribute to the mass of the body.
    role: visual or collision.
    file: path of a mesh, None if no file was found.
    label: name of a mesh in the file or call that refers to it.
    """

    kind: str
    size: ca.SX
    placement: Pose = IDENTITY
    colour: tuple[float, ...] | None = None
    mass: ca.SX | None = None
    role: str = "visual"
    file: str | None = None
    label: str = ""

    def __repr__(self) -> str:
        solid = f"{self.kind} {self.label!r}" if self.kind == "mesh" else f"{self.kind} {reprs.number(self.size, 'm')}"
        mass = [] if self.mass is None else [f"mass {reprs.number(self.mass, 'kg')}"]
        return reprs.words(self, solid, *mass, *([self.role] if self.role != "visual" else []))


class MassProperties(NamedTuple):
    """Mass (1, 1) [kg], mass centre (3, 1) [m] and inertia (3, 3) about the mass centre [kg m^2]."""

    mass: ca.SX
    com: ca.SX
    inertia: ca.SX


def shape(
    kind: str, *, size: Any = None, radius: Scalar | None = None, length: Scalar | None = None, file: Any = None,
    scale: Any = 1.0, placement: Any = IDENTITY, colour: Any = None, density: Scalar | None = None,
    mass: Scalar | None = None, role: str = "visual",
) -> Shape:  # fmt: skip
    """A solid for `body(..., shape=...)`, which pictures draw; with a density or a mass it also gives the body inertia.

        box       m = rho a b c,                I = m/12 (b^2 + c^2, c^2 + a^2, a^2 + b^2)
        sphere    m = rho 4/3 pi r^3,           I = 2/5 m r^2
        cylinder  m = rho pi r^2 l,             I_z = 1/2 m r^2,   I_x = m (3 r^2 + l^2) / 12
        cone      m = rho pi r^2 l / 3,         I_z = 3/10 m r^2,  I_x = 3/80 m (4 r^2 + l^2)
        capsule   a cylinder and two half spheres

    Cylinders, cones and capsules are along z with their middle at the origin. The apex of a cone is at l / 2, its mass centre
    at -l / 4.

    Args:
        kind: box, sphere, cylinder, capsule, cone or mesh.
        size: (3,) edges of a box [m], numbers or parameters.
        radius: of a sphere, cylinder, capsule or cone [m].
        length: of a cylinder, cone or capsule along z [m]; for a capsule without the two half spheres.
        file: path of a mesh: .stl, .obj, .ply, .off, .glb, .dae or .msh. It is opened when it is drawn, most kinds by trimesh.
        scale: of a mesh, one number or (3,); default 1.
        placement: frame of the shape in the frame of the body, a pose or a position; the body's frame by default.
        colour: (3,) or (4,) red, green, blue and opacity from 0 to 1, or "#rrggbb"; None, the default, for one of a palette.
        density: [kg/m^3], or None, the default.
        mass: [kg], instead of a density. Without either the shape weighs nothing. A mesh has neither.
        role: "visual", the default, or "collision", which pictures show on request.
    Raises ModelError: an unknown kind or role; a size that is missing, not above zero or not used by the kind; both density and
    mass; an invalid colour.

    Example:
        >>> import pfaffian as pf
        >>> bar = pf.shape("box", size=(0.4, 0.02, 0.01), placement=(0.2, 0, 0), density=2700)
        >>> pf.body("bar", shape=bar)
        <Body 'bar': mass 0.216 kg, com (0.2, 0, 0) m, inertia (9e-06, 0.0028818, 0.0028872) kg m^2, 1 shape>
        >>> r = pf.Parameter("r", 0.1, "m")
        >>> pf.shape("sphere", radius=r, colour="#0072b2")
        <Shape: sphere r m>
    """
    if not isinstance(kind, str) or kind not in SIZES:
        raise ModelError(f"shape: kind {brief(kind)} is unknown; {nearest(kind, [*SIZES])}")
    what = f"shape {kind!r}"
    if not is_one_of(role, ROLES):
        raise ModelError(f"{what}: role {brief(role)} is unknown; one of {', '.join(ROLES)}")
    sizes = {"size": size, "radius": radius, "length": length, "file": file}
    _check_sizes(kind, sizes, what)
    at, rgba = as_pose(placement, f"{what}: placement"), _colour(colour, what)
    if kind == "mesh":
        if density is not None or mass is not None:
            raise ModelError(f"{what}: a mesh has no density or mass; give the body its mass, com and inertia")
        return mesh(str(_file(file, what)), str(file), scale, at, rgba, role)
    if scale != 1.0:
        raise ModelError(f"{what}: scale is for a mesh")
    x = _edges(size, what) if kind == "box" else ca.vertcat(*[positive(sizes[k], f"{what}: {k}") for k in SIZES[kind]])
    if density is not None and mass is not None:
        raise ModelError(f"{what}: density and mass are alternatives; give one of them")
    m = None if mass is None else positive(mass, f"{what}: mass")
    if density is not None:
        m = positive(density, f"{what}: density") * volume(kind, x)
    return Shape(kind, ca.densify(x), at, rgba, m, role)


def mesh(
    file: str | None, label: str, scale: Any = 1.0, placement: Pose = IDENTITY, colour: Any = None, role: str = "visual"
) -> Shape:
    """A mesh from the path of its file.   file: None if no file was found for the name `label`."""
    what = f"shape {label!r}: scale"
    x = vector(scale if several(scale) else (scale,) * 3, 3, what)
    if not x.is_constant() or not constants(x).all():
        raise ModelError(f"{what}: one number or three are needed, none of them zero")
    return Shape("mesh", x, placement, colour, None, role, file, label)


def _file(file: Any, what: str) -> Any:
    """The file unchanged. Raises ModelError: it is not a path."""
    if isinstance(file, str) or hasattr(file, "__fspath__"):
        return file
    raise ModelError(f"{what}: file must be a path, got {brief(file)}")


def _check_sizes(kind: str, sizes: dict[str, Any], what: str) -> None:
    """Raise ModelError for a size that the kind needs but that is missing, or one that it does not use.

    sizes: name of each argument -> its value, or None.
    """
    for word, value in sizes.items():
        if value is None and word in SIZES[kind]:
            raise ModelError(f"{what}: it needs {' and '.join(SIZES[kind])}")
        if value is not None and word not in SIZES[kind]:
            raise ModelError(f"{what}: it has no {word}; it needs {' and '.join(SIZES[kind])}")


def _edges(size: Any, what: str) -> ca.SX:
    """The three edges (3, 1) of a box, checked [m]."""
    x = vector(size, 3, f"{what}: size")
    return ca.vertcat(*[positive(edge, f"{what}: size") for edge in ca.vertsplit(x)])


def _colour(colour: Any, what: str) -> tuple[float, ...] | None:
    """(4,) red, green, blue and opacity from 0 to 1, from numbers or "#rrggbb"; None for None."""
    if colour is None:
        return None
    if isinstance(colour, str) and _COLOUR.fullmatch(colour):
        parts = [int(colour[i : i + 2], 16) / 255 for i in range(1, len(colour), 2)]
    elif type(colour) is tuple and all(type(x) is float for x in colour):
        parts = list(colour)
    elif several(colour):
        parts = [float(x) for x in floats(list(colour), f"{what}: colour").ravel()]
    else:
        parts = []
    if len(parts) not in (3, 4) or not all(0 <= x <= 1 for x in parts):
        raise ModelError(f"{what}: colour {brief(colour)} is invalid; (red, green, blue) from 0 to 1, or '#rrggbb', is needed")
    return (*parts, 1.0)[:4]


def as_shapes(value: Any, what: str) -> tuple[Shape, ...]:
    """One shape or several as a tuple. Raises ModelError: anything else.   what: the label of the body in the message."""
    items = (value,) if isinstance(value, Shape) else tuple(value) if isinstance(value, Iterable) else (None,)
    for item in items:
        if not isinstance(item, Shape):
            raise ModelError(f"{what}: shape must be made by shape(...), or be a list of shapes, got {brief(value)}")
    return items


def volume(kind: str, x: ca.SX) -> ca.SX:
    """The volume (1, 1) of a solid [m^3].   x: (n, 1) its size [m]."""
    if kind == "box":
        return x[0] * x[1] * x[2]
    if kind == "sphere":
        return 4 / 3 * math.pi * x[0] ** 3
    part = {"cylinder": 1.0, "cone": 1 / 3, "capsule": 1.0}[kind] * math.pi * x[0] ** 2 * x[1]
    return part + (volume("sphere", x[:1]) if kind == "capsule" else 0)


def moments(shapes: Iterable[Shape]) -> MassProperties | None:
    """Mass, mass centre and inertia of all shapes that have a mass, in the frame of the body; None if no shape has one."""
    parts = [(s.mass, s.placement @ Pose(IDENTITY.R, _centre(s)), _inertia(s, s.mass)) for s in shapes if s.mass is not None]
    if not parts:
        return None
    m = sum((mass for mass, _, _ in parts), ca.SX(0))
    com = sum((mass * X.p for mass, X, _ in parts), ca.SX.zeros(3, 1)) / m
    I = ca.SX.zeros(3, 3)
    for mass, X, I_shape in parts:
        d = X.p - com
        I += X.R @ I_shape @ X.R.T + mass * (ca.dot(d, d) * ca.SX.eye(3) - d @ d.T)
    return MassProperties(ca.densify(m), ca.densify(com), ca.densify((I + I.T) / 2))


def _centre(s: Shape) -> ca.SX:
    """The mass centre (3, 1) of a shape, in its frame [m]."""
    return ca.vertcat(0, 0, -s.size[1] / 4) if s.kind == "cone" else ca.SX.zeros(3, 1)


def _inertia(s: Shape, m: ca.SX) -> ca.SX:
    """The inertia (3, 3) of a shape with mass m about its mass centre, along the axes of its frame [kg m^2]."""
    x = s.size
    if s.kind == "box":
        a, b, c = ca.vertsplit(x**2)
        return ca.diag(ca.vertcat(b + c, c + a, a + b)) * m / 12
    if s.kind == "sphere":
        return ca.SX.eye(3) * (2 / 5 * m * x[0] ** 2)
    r, l = x[0], x[1]
    if s.kind == "cylinder":
        along, across = m * r**2 / 2, m * (3 * r**2 + l**2) / 12
    elif s.kind == "cone":
        along, across = 3 / 10 * m * r**2, 3 / 80 * m * (4 * r**2 + l**2)
    else:
        # Parallel axis theorem: the mass centres of the half spheres are 3 r / 8 beyond the ends of the cylinder.
        ends = m * 4 * r / (3 * l + 4 * r)
        middle = m - ends
        along = middle * r**2 / 2 + ends * 2 / 5 * r**2
        across = middle * (3 * r**2 + l**2) / 12 + ends * (2 / 5 * r**2 + l**2 / 4 + 3 / 8 * l * r)
    return ca.diag(ca.vertcat(across, across, along))
