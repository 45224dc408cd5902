"""Names of all elements and attributes that a format has, from its engine: python -m tools.schema_names FORMAT [PLACE]

    mjcf          from MuJoCo's own schema (package mujoco)
    usd           from the schemas of UsdPhysics (package usd-core), and of Newton (newton-usd-schemas) if it is installed
    sdf FOLDER    from SDFormat's descriptions, a folder such as sdf/1.12 of its repository
    urdf [FILE]   from urdf.xsd of urdfdom, by default the one in package trimesh
    osim          from the classes that OpenSim has registered (package opensim), and their properties
    answers       how many rows of each table of facts have which answer

Prints the source with its version, and one row for each name: element,attribute. The tables of facts in tests/data say what
each of them does to the motion. A name that a table lacks, as after a new release, is marked, and the exit status is 1 then.
The tests ask this of MJCF, USD and URDF, whose packages they have; OpenSim's and SDFormat's names are asked by hand.
"""

from __future__ import annotations

import csv
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from xml.etree import ElementTree

Row = tuple[str, str]
"""Path of an element, and one of its attributes; the attribute is empty for the element itself."""


def mjcf() -> tuple[str, list[Row]]:
    """MuJoCo's version, and its names. What <default> repeats of other elements is left out."""
    import mujoco

    rows, path = list[Row](), list[str]()
    for line in mujoco.mj_printSchema(False, False).splitlines():
        found = re.match(r"( *)(\S+) \(.\)(.*)", line)
        if found and len(found[1]) < 27:
            path[len(found[1]) // 3 :] = [found[2].replace("(world)body", "body")]
            rows.append(("/".join(path[1:]), ""))
        words = found[3] if found else line
        rows += [("/".join(path[1:]), word) for word in words.split()]
    kept = dict.fromkeys((p, a) for p, a in rows if not p.startswith("default/"))
    return f"mujoco {mujoco.__version__}", list(kept)


def usd() -> tuple[str, list[Row]]:
    """Versions of usd-core and newton-usd-schemas, and the properties of each schema."""
    from importlib import metadata

    with suppress(ImportError):
        import newton_usd_schemas  # noqa: F401  registers its schemas
    from pxr import Plug, Tf, Usd

    registry, rows, sources = Usd.SchemaRegistry(), list[Row](), ["usd-core"]
    for kind in Tf.Type.FindByName("UsdSchemaBase").GetAllDerivedTypes():
        plugin = Plug.Registry().GetPluginForType(kind)
        name = Usd.SchemaRegistry.GetSchemaTypeName(kind)
        if plugin is None or not (plugin.name == "usdPhysics" or name.startswith("Newton")):
            continue
        known = registry.FindConcretePrimDefinition(name) or registry.FindAppliedAPIPrimDefinition(name)
        for p in known.GetPropertyNames() if known else ():
            short = str(p).replace("__INSTANCE_NAME__", "*")
            if ":" in short and not short.startswith("collection:"):
                rows.append((name, short))
        if name.startswith("Newton") and len(sources) == 1:
            sources.append("newton-usd-schemas")
    return ", ".join(f"{s} {metadata.version(s)}" for s in sources), sorted(rows)


def sdf(folder: Path) -> tuple[str, list[Row]]:
    """The version of SDFormat, and its elements and attributes; each included description once, below its own name."""
    rows = list[Row]()

    def walk(element: ElementTree.Element, path: str) -> None:
        rows.append((path, ""))
        rows.extend((path, a.attrib["name"]) for a in element.findall("attribute"))
        for child in element.findall("element"):
            if "name" in child.attrib and "ref" not in child.attrib:
                walk(child, f"{path}/{child.attrib['name']}")
        rows.extend((f"{path}/{_included(folder, i.attrib['filename'])}", "") for i in element.findall("include"))

    for file in sorted(folder.glob("*.sdf")):
        root = ElementTree.parse(file).getroot()
        walk(root, root.attrib["name"])
    return f"SDFormat {folder.name}", list(dict.fromkeys(rows))


def _included(folder: Path, file: str) -> str:
    return ElementTree.parse(folder / file).getroot().attrib["name"]


def urdf(file: Path | None = None) -> tuple[str, list[Row]]:
    """The file, and the elements and attributes of its types, elements as they are nested below <robot>."""
    source = "" if file is None else file.name
    if file is None:
        import trimesh

        file = Path(trimesh.__file__).parent / "resources" / "schema" / "urdf.xsd"
        source = f"urdf.xsd of trimesh {trimesh.__version__}"
    x = "{http://www.w3.org/2001/XMLSchema}"
    root = ElementTree.parse(file).getroot()
    types = {t.attrib["name"]: t for t in root.findall(f"{x}complexType")}
    rows = list[Row]()

    def walk(element: ElementTree.Element, path: str) -> None:
        here = f"{path}/{element.attrib['name']}".strip("/")
        rows.append((here, ""))
        kind = types.get(element.attrib.get("type", ""), element.find(f"{x}complexType"))
        for e in kind.iter() if kind is not None else ():
            if e.tag == f"{x}attribute":
                rows.append((here, e.attrib["name"]))
            elif e.tag == f"{x}element":
                walk(e, here)

    for e in root.findall(f"{x}element"):
        walk(e, "")
    return source, list(dict.fromkeys(rows))


def osim() -> tuple[str, list[Row]]:
    """OpenSim's version, and the properties of each class; the element of a property has its name."""
    from importlib import metadata

    import opensim

    opensim.Logger.setLevelString("off")
    names, rows = opensim.ArrayStr(), list[Row]()
    opensim.OpenSimObject.getRegisteredTypenames(names)
    for name in sorted(names.get(i) for i in range(names.getSize())):
        made = opensim.OpenSimObject.newInstanceOfType(name)
        rows += [(name, "")]
        rows += [(name, made.getPropertyByIndex(i).getName()) for i in range(made.getNumProperties())]
    return f"opensim {metadata.version('opensim')}", rows


FORMATS: dict[str, Callable[..., tuple[str, list[Row]]]] = {"mjcf": mjcf, "usd": usd, "sdf": sdf, "urdf": urdf, "osim": osim}


ANSWERS = ("read", "refused", "named", "harmless")


def _table(kind: str) -> list[list[str]]:
    """Rows of the table of facts of a format: element, attribute, answer and more."""
    table = Path(__file__).parents[1] / "tests" / "data" / f"{kind}_facts.csv"
    return list(csv.reader(table.read_text(encoding="utf-8").splitlines()))[1:]


def counted() -> Iterator[str]:
    """Lines of a table: how many rows of each format have which answer."""
    yield "format " + " ".join(f"{a:>9}" for a in (*ANSWERS, "rows"))
    for kind in FORMATS:
        count = Counter(answer for _, _, answer, *_ in _table(kind))
        yield f"{kind:6} " + " ".join(f"{n:9}" for n in (*(count[a] for a in ANSWERS), count.total()))


def unanswered(kind: str, rows: list[Row]) -> list[Row]:
    """The names that the table of facts of a format lacks.

    A row with the attribute "*" answers for all attributes of its element and for what is within it. Elements that have
    children or attributes only hold them, and an included description answers below its own name.
    """
    known = {(first, second) for first, second, *_ in _table(kind)}
    holders = {"/".join(p.split("/")[:n]) for p, _ in rows for n in range(1, p.count("/") + 1)} | {p for p, a in rows if a}
    roots = {p.split("/")[0] for p, _ in rows}

    def covered(path: str, attribute: str) -> bool:
        parts = path.split("/")
        if (path, attribute) in known or any(("/".join(parts[:n]), "*") in known for n in range(1, len(parts) + 1)):
            return True
        return not attribute and (path in holders or parts[-1] in roots)

    return [row for row in rows if not covered(*row)]


def main(words: list[str]) -> int:
    """Print the names or the counts: 1 if a table lacks names, 2 for a wrong call."""
    if words == ["answers"]:
        print("\n".join(counted()))
        return 0
    if not words or words[0] not in FORMATS:
        print(__doc__)
        return 2
    source, rows = FORMATS[words[0]](*map(Path, words[1:]))
    lacking = set(unanswered(words[0], rows))
    print(f"# {source}")
    for path, attribute in rows:
        print(f"{path},{attribute}" + ("  # no answer" if (path, attribute) in lacking else ""))
    return int(bool(lacking))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
