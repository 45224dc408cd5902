"""Every property in the schemas of UsdPhysics and Newton is read, refused, named or harmless: see tests/data/usd_facts.csv.

Each row gives the answer and a line of text with a value other than the default. A small stage that has this line in the prim
of its schema is read:

read        the mechanism or its start changes
refused     a ModelError
named       a warning tells more than for the stage without it
harmless    mechanism, start and warnings are the same

What is read of UsdPhysics gives the masses that usd-core computes; more of them are in test_usd_mass.py, what joints do is in
test_usd_joints.py.
"""

from __future__ import annotations

import csv
import warnings
from pathlib import Path

import pytest

import pfaffian as pf
from pfaffian.errors import ModelError, ModelWarning
from pfaffian.formats.usd.usd_names import NO_COLLIDER
from pfaffian.formats.usd.usd_stage import open_stage
from pfaffian.formats.usd.usd_start import ELSEWHERE

pytest.importorskip("pxr")

from tools.compare_files.usd import SINGLE, masses_apart

TABLE = Path(__file__).parents[1] / "data" / "usd_facts.csv"
ROWS = list(csv.DictReader(TABLE.read_text().splitlines()))

HERE = "@@"
"""Place for one more line in a prim."""


def prim(kind: str, name: str, api: str, *lines: str) -> str:
    applied = ", ".join(f'"{a}"' for a in api.split())
    head = f'def {kind} "{name}"' + (f" (prepend apiSchemas = [{applied}])" if applied else "")
    return "\n".join([head, "{", *lines, "}"])


def pair(kind: str, name: str, child: str, *lines: str, api: str = "", parent: str = "base") -> str:
    return prim(f"Physics{kind}Joint", name, api, f"rel physics:body0 = </{parent}>", f"rel physics:body1 = </{child}>", *lines)


RIGID, CUBE = "PhysicsRigidBodyAPI PhysicsMassAPI", ("Cube", "c", "PhysicsCollisionAPI PhysicsMassAPI MaterialBindingAPI")
MASS = ("float physics:mass = 2", "float3 physics:diagonalInertia = (1, 2, 2.5)")
TETRAHEDRON = (
    "int[] faceVertexCounts = [3, 3, 3, 3]", "int[] faceVertexIndices = [0, 2, 1, 0, 1, 3, 0, 3, 2, 1, 2, 3]",
    "point3f[] points = [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)]",
)  # fmt: skip
AXES = [f"{a}{x}" for a in ("trans", "rot") for x in "XYZ"]
LOCKS = [f"float limit:{a}:physics:{w} = {v}" for a in AXES if a != "rotX" for w, v in (("low", 1), ("high", -1))]

PRIMS = {
    "scene": prim("PhysicsScene", "scene", "", HERE),
    "material": prim("Material", "stuff", "PhysicsMaterialAPI", HERE),
    "group": prim("PhysicsCollisionGroup", "group", "", HERE),
    "motor": prim("Scope", "motor", "", HERE),
    "base": prim("Xform", "base", f"{RIGID} PhysicsArticulationRootAPI", *MASS, HERE),
    "weighed": prim("Xform", "weighed", f"{RIGID} NewtonMassAPI", HERE, prim(*CUBE, "double size = 1")),
    "collider": prim("Xform", "d", RIGID, prim(*CUBE, "double size = 1", "rel material:binding = </stuff>", HERE)),
    "mesh": prim("Xform", "e", RIGID, prim("Mesh", "m", "PhysicsCollisionAPI PhysicsMeshCollisionAPI", *TETRAHEDRON, HERE)),
    **{n: prim("Xform", n, RIGID, *MASS, HERE) for n in "rpsfgh"},
    "PhysicsRevoluteJoint": pair("Revolute", "turn", "r", HERE, api="PhysicsDriveAPI:angular NewtonMimicAPI"),
    "PhysicsPrismaticJoint": pair("Prismatic", "slide", "p", HERE),
    "PhysicsSphericalJoint": pair("Spherical", "ball", "s", HERE),
    "PhysicsFixedJoint": pair("Fixed", "weld", "f", HERE),
    "PhysicsJoint": pair("", "six", "g", *LOCKS, HERE, api=" ".join(f"PhysicsLimitAPI:{a}" for a in AXES)),
    "PhysicsDistanceJoint": pair("Distance", "rod", "p", "point3f physics:localPos0 = (1, 0, 0)",
                                 "float physics:minDistance = 1", "float physics:maxDistance = 1", HERE, parent="r"),
}  # fmt: skip
"""Prims of the stage."""

WITH = {
    "PhysicsScene": "scene", "PhysicsRigidBodyAPI": "base", "PhysicsMassAPI": "weighed", "PhysicsMaterialAPI": "material",
    "PhysicsCollisionAPI": "collider", "PhysicsMeshCollisionAPI": "mesh", "PhysicsCollisionGroup": "group",
    "PhysicsFilteredPairsAPI": "base", "PhysicsDriveAPI": "PhysicsRevoluteJoint", "PhysicsLimitAPI": "PhysicsJoint",
    "NewtonJointAPI": "PhysicsRevoluteJoint", "NewtonMimicAPI": "PhysicsRevoluteJoint", "NewtonMassAPI": "weighed",
    "NewtonArticulationRootAPI": "base", "NewtonMeshCollisionAPI": "mesh",
}  # fmt: skip
"""Schema -> the prim in which its properties are set, if that is not the one of the same name."""


def prim_of(schema: str, name: str) -> str:
    if name in ("newton:massModel", "newton:shellThickness"):
        return "collider"
    if schema in PRIMS or schema in WITH:
        return WITH.get(schema, schema)
    for part, prim in (("Scene", "scene"), ("Material", "material"), ("Collision", "collider"), ("Site", "collider")):
        if part in schema:
            return prim
    return "motor"


def stage(prim: str = "", line: str = "") -> str:
    """The text of the stage, with a line in one of its prims instead of those that set the same properties."""
    new = {word for part in line.split("\n") for word in part.split("=")[0].split() if ":" in word}
    made = []
    for name, text in PRIMS.items():
        kept = [x for x in text.splitlines() if name != prim or not new & set(x.split("=")[0].split())]
        made.append("\n".join(kept).replace(HERE, line if name == prim else ""))
    return '#usda 1.0\n(\n metersPerUnit = 1\n upAxis = "Z"\n)\n' + "\n".join(made) + "\n"


def read(folder: Path, prim: str = "", line: str = ""):
    file = folder / "s.usda"
    file.write_text(stage(prim, line))
    with warnings.catch_warnings(record=True, action="always") as caught:
        m, settings = pf.formats.read_usd(file)
    return m, settings, {part for w in caught if w.category is ModelWarning for part in str(w.message).split("; ")}


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    return read(tmp_path_factory.mktemp("usd"))


def answer(folder: Path, base, prim: str, line: str) -> str:
    try:
        m, settings, told = read(folder, prim, line)
    except ModelError:
        return "refused"
    if {x for x in told - base[2] if ELSEWHERE not in x and NO_COLLIDER not in x}:
        return "named"  # of the row itself: frames that it moves do not fit the places of bodies, nor masses a disabled one
    return "harmless" if (m, settings) == base[:2] else "read"


def test_every_property_of_the_schemas_has_an_answer():
    from tools.schema_names import unanswered, usd

    version, rows = usd()
    missing = unanswered("usd", rows)
    assert not missing, f"{version}: {len(missing)} without an answer, such as {missing[:5]}"


@pytest.mark.parametrize("row", ROWS, ids=lambda r: f"{r['schema']}-{r['property']}")
def test_each_property_does_what_the_table_says(tmp_path, base, row):
    line = row["line"].replace("\\n", "\n")
    assert answer(tmp_path, base, prim_of(row["schema"], row["property"]), line) == row["answer"]


READ = [r for r in ROWS if r["answer"] == "read" and r["schema"].startswith("Physics")]


@pytest.mark.filterwarnings("ignore::pfaffian.errors.ModelWarning")
@pytest.mark.parametrize("row", READ, ids=lambda r: f"{r['schema']}-{r['property']}")
def test_what_is_read_gives_the_masses_of_usd(tmp_path, row):
    line = row["line"].replace("\\n", "\n")
    m, _, _ = read(tmp_path, prim_of(row["schema"], row["property"]), line)
    found = masses_apart(open_stage(tmp_path / "s.usda"), m)
    assert len(found) > 5 and max(x for x in found.values() if x is not None) <= SINGLE


@pytest.mark.parametrize(
    ("place", "line"),
    [("PhysicsPrismaticJoint", "rel newton:mimicJoint = </turn>"), ("base", "double[] newton:inertia = [1, 1, 1, 0, 0, 0]")],
)
def test_what_newton_reads_of_its_own_schemas_alone_is_named(tmp_path, base, place, line):
    _, _, told = read(tmp_path, place, line)
    assert [x for x in told - base[2] if "unless NewtonMassAPI or NewtonMimicAPI is applied" in x]
