"""Mass properties of USD bodies, compared with usd-core's own computation and with closed forms."""

import casadi as ca
import numpy as np
import pytest

import pfaffian as pf
from pfaffian.errors import ModelError, ModelWarning
from pfaffian.formats import read_usd
from tests.tolerance import close

pytest.importorskip("pxr")
from pxr import Gf, Sdf, Usd, UsdGeom, UsdPhysics, UsdShade

SINGLE = 1e-5
"""Relative tolerance: usd-core computes with single precision, in some tens of operations."""

FACETS = 2e-3
"""Relative error of the volume and moments of a round solid that is replaced by 400 flat strips: (2 pi / 400)^2 10."""


def start(path, metre=1.0, kilogram=1.0):
    s = Usd.Stage.CreateNew(str(path))
    UsdGeom.SetStageMetersPerUnit(s, metre)
    UsdPhysics.SetStageKilogramsPerUnit(s, kilogram)
    UsdGeom.SetStageUpAxis(s, "Z")
    return s


def rigid(s, path="/b"):
    prim = UsdGeom.Xform.Define(s, path).GetPrim()
    UsdPhysics.RigidBodyAPI.Apply(prim)
    return prim


def solid(s, path, kind, at=(0, 0, 0), turn=(1, 0, 0, 0), scale=(1, 1, 1), **sizes):
    prim = getattr(UsdGeom, kind).Define(s, path)
    prim.AddTranslateOp().Set(Gf.Vec3d(*at))
    prim.AddOrientOp().Set(Gf.Quatf(*turn))
    prim.AddScaleOp().Set(Gf.Vec3f(*scale))
    UsdPhysics.CollisionAPI.Apply(prim.GetPrim())
    for name, x in sizes.items():
        prim.GetPrim().GetAttribute(name).Set(x)
    return prim.GetPrim()


def weigh(prim, **given):
    api = UsdPhysics.MassAPI.Apply(prim)
    for name, x in given.items():
        getattr(api, f"Create{name}Attr")(Gf.Vec3f(*x) if np.size(x) == 3 else Gf.Quatf(*x) if np.size(x) == 4 else float(x))


def floats(x):
    return np.array(ca.DM(x))


def by_usd(prim):
    """Mass, mass centre and inertia by usd-core, in the units of the stage, for boxes and balls."""

    def volume(part):
        T = np.array(UsdGeom.XformCache().ComputeRelativeTransform(part, prim)[0]).T
        scale = np.linalg.norm(T[:3, :3], axis=0)
        turn = T[:3, :3] / scale * np.sign(np.linalg.det(T[:3, :3]))
        found = UsdPhysics.RigidBodyAPI.MassInformation()
        if part.IsA(UsdGeom.Cube):
            edges = part.GetAttribute("size").Get() * scale
            found.volume = np.prod(edges)
            moments = (np.sum(edges**2) - edges**2) / 12 * found.volume
        else:
            radius = part.GetAttribute("radius").Get() * scale.max()
            found.volume = 4 / 3 * np.pi * radius**3
            moments = 0.4 * radius**2 * found.volume * np.ones(3)
        found.inertia = Gf.Matrix3f(*np.diag(moments).ravel().tolist())
        found.centerOfMass, found.localPos = Gf.Vec3f(0), Gf.Vec3f(*T[:3, 3])
        R = Gf.Matrix3d(*turn.T.ravel().tolist())
        found.localRot = Gf.Quatf(R.ExtractRotation().GetQuat())
        return found

    mass, moments, com, q = UsdPhysics.RigidBodyAPI(prim).ComputeMassProperties(volume)
    R = np.array(Gf.Matrix3d(Gf.Quatd(q).GetNormalized())).T
    return mass, np.array(com), R @ np.diag(moments) @ R.T


def same(m, wanted, metre=1.0, kilogram=1.0, label=""):
    mass, com, inertia = wanted
    b = m.bodies[0]
    size = max(np.abs(com).max(), 1.0) * metre
    close(m.value(b.mass).ravel() / (mass * kilogram), [1.0], SINGLE, f"mass {label}")
    close(m.value(b.com).ravel() / size, com * metre / size, SINGLE, f"mass centre {label}")
    scale = np.abs(inertia).max() * kilogram * metre**2
    close(m.value(b.inertia) / scale, inertia * kilogram * metre**2 / scale, SINGLE, f"inertia {label}")


@pytest.mark.filterwarnings("ignore::pfaffian.errors.ModelWarning")
@pytest.mark.parametrize("seed", range(24))
def test_any_mixture_of_masses_is_that_of_usd(tmp_path, seed):
    """Masses, densities, mass centres, moments and axes of the body, of up to three colliders and of materials, each given or
    not; colliders are turned, scaled, mirrored, disabled, or below an instance; the stage is in metres or in feet and pounds.
    """
    rng, sides = np.random.default_rng(seed), np.random.default_rng(seed + 100)
    metre, kilogram = [(1.0, 1.0), (0.3048, 0.4536)][seed % 2]

    def chance(p=0.4):
        return rng.random() < p

    def some():
        moments = {"DiagonalInertia": rng.uniform(2, 3, 3)} if chance(0.3) else {}
        axes = {"PrincipalAxes": _unit(rng.normal(size=4))} if chance(0.3) else {}
        return ({"Mass": rng.uniform(1, 9)} if chance() else {}) | ({"Density": rng.uniform(1, 9)} if chance() else {}) | (
            {"CenterOfMass": rng.normal(size=3)} if chance(0.3) else {}) | moments | axes  # fmt: skip

    s = start(tmp_path / "b.usda", metre, kilogram)
    body = rigid(s)
    weigh(body, **some())
    s.DefinePrim("/proto", "Xform")
    instance = s.DefinePrim("/b/many", "Xform")
    for k in range(int(rng.integers(1, 4))):
        below = "/proto" if chance(0.3) else "/b"
        kind = ("Cube", "Sphere")[int(rng.integers(2))]
        part = solid(s, f"{below}/c{k}", kind, rng.normal(size=3), _unit(rng.normal(size=4)),
                     rng.uniform(0.5, 1.5, 3) * sides.choice((-1, 1), 3),
                     **{{"Cube": "size", "Sphere": "radius"}[kind]: rng.uniform(0.5, 2)})  # fmt: skip
        if chance(0.6):
            weigh(part, **some())
        if chance(0.2) and k:
            UsdPhysics.CollisionAPI(part).CreateCollisionEnabledAttr(False)
        if chance():
            stuff = UsdShade.Material.Define(s, f"{below}/m{k}")
            UsdPhysics.MaterialAPI.Apply(stuff.GetPrim()).CreateDensityAttr(rng.uniform(1, 9))
            UsdShade.MaterialBindingAPI.Apply(part).Bind(stuff)
    instance.GetReferences().AddInternalReference("/proto")
    instance.SetInstanceable(True)
    s.Save()
    if (wanted := by_usd(body))[0] > 0:
        same(read_usd(tmp_path / "b.usda")[0], wanted, metre, kilogram)


def _unit(x):
    return (x / np.linalg.norm(x)).tolist()


def test_the_body_comes_before_its_colliders_and_these_before_materials(tmp_path):
    """Two unit cubes 4 m apart, one of 3 kg and one by the density of its material, in a body of 10 kg."""
    s = start(tmp_path / "b.usda")
    body = rigid(s)
    weigh(body, Mass=10)
    weigh(solid(s, "/b/a", "Cube", size=1.0), Mass=3, Density=9000)
    light = solid(s, "/b/c", "Cube", at=(4, 0, 0), size=1.0)
    stuff = UsdShade.Material.Define(s, "/stuff")
    UsdPhysics.MaterialAPI.Apply(stuff.GetPrim()).CreateDensityAttr(1.0)
    UsdShade.MaterialBindingAPI.Apply(light).Bind(stuff, materialPurpose="physics")
    s.Save()
    b = pf.read(tmp_path / "b.usda")[0].bodies[0]
    assert float(b.mass) == 10.0 and float(b.com[0]) == pytest.approx(1.0)  # 3 kg and 1 kg: at 4 / 4
    assert float(b.inertia[1, 1]) == pytest.approx(10 / 6 + 2.5 * (3 * 1 + 1 * 9))


def test_round_solids_with_two_radii(tmp_path):
    """A truncated cone and the hull of two balls, as sums of thin slices."""
    for kind, profile in (("Cylinder_1", _cone), ("Capsule_1", _two_balls)):
        s = start(tmp_path / f"{kind}.usda")
        rigid(s)
        prim = s.DefinePrim("/b/c", kind)
        UsdPhysics.CollisionAPI.Apply(prim)
        for name, x in {"height": 2.0, "radiusTop": 0.5, "radiusBottom": 1.0, "axis": "Y"}.items():
            prim.GetAttribute(name).Set(x)
        s.Save()
        with pytest.warns(ModelWarning, match="contact between shapes"):
            b = read_usd(tmp_path / f"{kind}.usda")[0].bodies[0]
        z = np.linspace(-2, 2, 4001)
        r, dz = profile((z[1:] + z[:-1]) / 2), z[1] - z[0]
        at = (z[1:] + z[:-1]) / 2
        volume = np.pi * np.sum(r**2) * dz
        centre = np.pi * np.sum(r**2 * at) * dz / volume
        across = np.pi * np.sum(r**4 / 4 + r**2 * (at - centre) ** 2) * dz
        wanted = [volume, 0, centre, 0, across, np.pi * np.sum(r**4 / 2) * dz, across]
        got = np.r_[[float(b.mass) / 1000], floats(b.com).ravel(), np.diag(floats(b.inertia)) / 1000]
        close(got, wanted, FACETS, kind)


def _cone(z):
    return np.where(np.abs(z) <= 1, 0.75 - 0.25 * z, 0.0)


def _two_balls(z):
    """Radius of the convex hull of balls of 1 m at -1 and 0.5 m at 1: the largest over all balls between."""
    t = np.linspace(0, 1, 2001)[:, None]
    return np.sqrt(np.maximum((1 - 0.5 * t) ** 2 - (z - (2 * t - 1)) ** 2, 0).max(axis=0))


def pyramid(s, path, faces, approximation=None, points=((0, 0, 0), (2, 0, 0), (2, 2, 0), (0, 2, 0), (1, 1, 3))):
    prim = UsdGeom.Mesh.Define(s, path)
    prim.CreatePointsAttr([Gf.Vec3f(*p) for p in points])
    prim.CreateFaceVertexCountsAttr([len(f) for f in faces])
    prim.CreateFaceVertexIndicesAttr([i for f in faces for i in f])
    UsdPhysics.CollisionAPI.Apply(prim.GetPrim())
    if approximation:
        UsdPhysics.MeshCollisionAPI.Apply(prim.GetPrim()).CreateApproximationAttr(approximation)
    return prim


SIDES = [(0, 1, 4), (1, 2, 4), (2, 3, 4), (3, 0, 4)]
BASE = (3, 2, 1, 0)
PYRAMID = 4.0, 0.75, 4.0 * (4 / 20 + 3 * 9 / 80)  # volume a^2 h / 3; centre h / 4; I_x = V (a^2 / 20 + 3 h^2 / 80)
BOX = 12.0, 1.5, 12.0 * (4 + 9) / 12
BALL = 4 / 3 * np.pi * 4.25**1.5, 1.5, 0.4 * 4.25 * 4 / 3 * np.pi * 4.25**1.5  # about the box of 2, 2 and 3 m


@pytest.mark.parametrize(
    ("faces", "approximation", "wanted", "words"),
    [
        ([BASE, *SIDES], None, PYRAMID, "contact"),
        ([f[::-1] for f in (BASE, *SIDES)], "meshSimplification", PYRAMID, "contact"),
        (SIDES, None, PYRAMID, "meshes that are not closed is that of their convex hull: '/b/c'"),
        (SIDES, "convexHull", PYRAMID, "contact"),
        (SIDES, "boundingCube", BOX, "contact"),
        (SIDES, "boundingSphere", BALL, "contact"),
    ],
)
def test_meshes(tmp_path, faces, approximation, wanted, words):
    s = start(tmp_path / "m.usda")
    rigid(s)
    pyramid(s, "/b/c", faces, approximation)
    s.Save()
    with pytest.warns(ModelWarning, match=words):
        b = read_usd(tmp_path / "m.usda")[0].bodies[0]
    assert [float(b.mass), float(b.com[2]), float(b.inertia[0, 0])] == pytest.approx(
        [1000 * wanted[0], wanted[1], 1000 * wanted[2]]
    )


@pytest.mark.parametrize("side", [(1, 1, 1), (1, 1, -1), (-1, -1, -1)])
def test_mirrored_colliders_are_where_they_are_seen(tmp_path, side):
    """A pyramid, a cone, and a pillar with another mass centre; each mirrored about its own place."""
    s = start(tmp_path / "m.usda")
    rigid(s)
    pyramid(s, "/b/c", [BASE, *SIDES]).AddScaleOp().Set(Gf.Vec3f(*side))
    solid(s, "/b/d", "Cone", at=(3, 0, 0), scale=side, radius=0.5, height=2.0)
    weigh(solid(s, "/b/e", "Cylinder_1", at=(0, 4, 0), scale=side, radiusTop=0.2, height=2.0), CenterOfMass=(0.1, 0.2, 0.3))
    s.Save()
    with pytest.warns(ModelWarning, match="contact between shapes"):
        b = read_usd(tmp_path / "m.usda")[0].bodies[0]
    cone, pillar = np.pi / 6 * 1000, np.pi * (1 + 0.2 + 0.04) / 1.5 * 1000
    places = (0, 0, 0), (3, 0, 0), (0, 4, 0)
    within = (1, 1, 0.75), (0, 0, -0.5), (0.1, 0.2, 0.3)
    moment = np.array([4000, cone, pillar]) @ (np.array(places) + np.array(side) * within)
    close(np.r_[float(b.mass), float(b.mass) * floats(b.com).ravel()], np.r_[4000 + cone + pillar, moment], SINGLE, "moment")


@pytest.mark.parametrize(
    ("kind", "turn", "moments", "named"),
    [
        ("Sphere", (0.8, 0.6, 0, 0), (1, 2, 2.5), True),
        ("Cylinder", (0.5, 0.5, 0.1, 0.7), (1, 2, 2.5), True),
        ("Cylinder", (0.8, 0, 0.6, 0), (2, 2, 2), False),
        ("Cube", (1, 0, 0, 0), (1, 2, 2.5), False),
    ],
)
def test_moments_whose_axes_rounding_chooses_are_named(tmp_path, kind, turn, moments, named):
    """UsdPhysics gives moments without principalAxes the axes of the colliders; a ball, or a bar across, has none."""
    s = start(tmp_path / "b.usda")
    weigh(rigid(s), Mass=2, DiagonalInertia=moments)
    solid(s, "/b/c", kind, turn=_unit(turn))
    s.Save()
    with pytest.warns(ModelWarning) as caught:
        read_usd(tmp_path / "b.usda")
    assert ("of which rounding chooses two: '/b'" in str(caught[0].message)) == named


def test_a_mirrored_body_is_refused(tmp_path):
    s = start(tmp_path / "b.usda")
    body = rigid(s)
    UsdGeom.Xformable(body).AddScaleOp().Set(Gf.Vec3f(1, -1, 1))
    solid(s, "/b/c", "Cube")
    s.Save()
    with pytest.raises(ModelError, match="'/b': its transform mirrors; only colliders and shapes below a body may be mirrored"):
        read_usd(tmp_path / "b.usda")


def test_a_mesh_beside_other_colliders_counts(tmp_path):
    s = start(tmp_path / "m.usda")
    weigh(rigid(s), Mass=6)
    pyramid(s, "/b/c", [BASE, *SIDES])
    solid(s, "/b/d", "Cube", at=(0, 0, -2), size=2.0)
    s.Save()
    b = read_usd(tmp_path / "m.usda")[0].bodies[0]
    assert floats(b.com).ravel() == pytest.approx([1 / 3, 1 / 3, (4 * 0.75 - 8 * 2) / 12])


def test_the_tensor_of_newton_comes_before_moments(tmp_path):
    s = start(tmp_path / "b.usda", metre=0.1)
    body = rigid(s)
    weigh(body, Mass=2, CenterOfMass=(0, 0, 0), DiagonalInertia=(1, 1, 1))
    body.CreateAttribute("newton:inertia", Sdf.ValueTypeNames.DoubleArray).Set([300.0, 400.0, 500.0, 10.0, 20.0, 30.0])
    s.Save()
    I = floats(read_usd(tmp_path / "b.usda")[0].bodies[0].inertia)
    assert pytest.approx(np.array([[3, 0.1, 0.2], [0.1, 4, 0.3], [0.2, 0.3, 5]])) == I


def test_bodies_without_colliders_are_named(tmp_path):
    s = start(tmp_path / "b.usda")
    weigh(rigid(s), Mass=5)
    UsdPhysics.RigidBodyAPI(rigid(s, "/base")).CreateKinematicEnabledAttr(True)
    s.Save()
    with pytest.warns(ModelWarning, match=r"a ball of 0\.1 m, as in UsdPhysics: '/b'; .* no mass, since .*: '/base'"):
        b = read_usd(tmp_path / "b.usda")[0].bodies[0]
    assert float(b.inertia[0, 0]) == pytest.approx(0.4 * 5 * 0.01)


def test_bodies_that_move_without_a_mass_are_refused_with_the_reason(tmp_path):
    """The only collider of the second body is disabled, the first has none; what hangs on a body may carry it."""
    s = start(tmp_path / "b.usda")
    rigid(s, "/a")
    UsdPhysics.CollisionAPI(solid(s, "/b/skin", "Sphere")).CreateCollisionEnabledAttr(False)
    rigid(s, "/b")
    j = UsdPhysics.RevoluteJoint.Define(s, "/j")
    j.CreateBody0Rel().SetTargets(["/a"])
    j.CreateBody1Rel().SetTargets(["/b"])
    s.Save()
    with pytest.raises(ModelError, match=r"'/b': it moves, but has no mass: .* enabled collider .*; give it a mass"):
        read_usd(tmp_path / "b.usda")
    weigh(s.GetPrimAtPath("/b"), Mass=1)
    s.Save()
    assert read_usd(tmp_path / "b.usda")[0].nv == 7


def test_broken_meshes_are_refused(tmp_path):
    s = start(tmp_path / "m.usda")
    rigid(s)
    pyramid(s, "/b/c", [BASE, (0, 1, 9)])
    s.Save()
    with pytest.raises(ModelError, match=r"'/b/c': its points and faces do not fit together"):
        read_usd(tmp_path / "m.usda")


def test_a_mesh_collides_as_it_says_only_where_its_schema_is_applied(tmp_path):
    """Without it UsdPhysics takes the mesh itself, which is a third of its box."""
    s = start(tmp_path / "m.usda")
    rigid(s)
    pyramid(s, "/b/c", [BASE, *SIDES], "boundingCube")
    mesh = s.GetPrimAtPath("/b/c")
    boxed = float(read_usd_quietly(s, tmp_path)[0].mass)
    mesh.RemoveAPI(UsdPhysics.MeshCollisionAPI)
    with pytest.warns(ModelWarning, match=r"no effect, as in UsdPhysics: '/b/c\.physics:approximation'"):
        alone = float(read_usd_quietly(s, tmp_path)[0].mass)
    assert boxed == pytest.approx(3 * alone)


def read_usd_quietly(s, folder):
    s.Save()
    return read_usd(folder / "m.usda")[0].bodies
