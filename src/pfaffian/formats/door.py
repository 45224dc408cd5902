"""Which format a file is in, by what it contains: the one door to all readers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from inspect import Parameter, signature
from pathlib import Path
from typing import Any, NamedTuple, NoReturn
from xml.parsers import expat

from pfaffian.errors import ModelError, nearest
from pfaffian.formats.file import as_path, read_text
from pfaffian.formats.number import printable
from pfaffian.formats.run_settings import RunSettings
from pfaffian.formats.shelf import model_file
from pfaffian.model.mechanism import Mechanism


class Format(NamedTuple):
    """name: of the format.   reader: its module, and the function in it that reads a path.   others: in this module, whose
    options the reader takes too."""

    name: str
    reader: tuple[str, str]
    others: tuple[str, ...] = ()

    def load(self) -> tuple[Callable[..., Any], list[str]]:
        """The reader, imported when a file is in this format and not before, and its options."""
        module = import_module(f"pfaffian.formats.{self.reader[0]}")
        reader, *others = (getattr(module, name) for name in (self.reader[1], *self.others))
        takes = [x for f in (*others, reader) for x in signature(f).parameters.values()]
        return reader, [x.name for x in takes if x.kind is Parameter.KEYWORD_ONLY]


FORMATS: Mapping[str, Format] = {
    "robot": Format("URDF", ("urdf", "read_urdf"), ("parse_urdf",)),
    "mujoco": Format("MJCF", ("mjcf", "read_mjcf"), ("parse_mjcf",)),
    "sdf": Format("SDF", ("sdf", "read_sdf"), ("parse_sdf",)),
    ".yaml": Format("YAML", ("yaml", "read_yaml")),
    ".usd": Format("USD", ("usd", "read_usd")),
}
"""Root element of a file in XML, or the suffix of one that has none -> its format."""

TEXTS = (".yaml", ".yml")
"""Suffixes of files in YAML, which nothing else tells."""

STAGES = (b"#usda", b"PXR-USDC")
"""How files in USD begin."""

NO_MODEL = {
    "mujocoinclude": "it is a part of an MJCF file; read the file that includes it",
    "COLLADA": "it is a mesh (COLLADA), which a machine's file names",
    "svg": "it is a picture",
    "html": "it is a web page; download the file itself",
    "model": "it is Gazebo's model.config; read the .sdf file that it names",
    "package": "it is a package.xml; read the robot's own file",
    "launch": "it is a launch file; read the robot's own file",
}
"""Root element of files that describe no machine -> what they are."""

BEGINNINGS = {
    b"PK\x03\x04": "it is a zip archive; unpack it",
    b"\x89HDF": "it is a NetCDF or HDF5 file; pf.results.read_netcdf reads results",
    b"solid ": "it is a mesh (STL), which a machine's file names",
    b"\x7fELF": "it is a program",
}
"""First bytes of other files -> what they are."""


def read(path: str | Path, **options: Any) -> tuple[Mechanism, RunSettings]:
    """The mechanism of a file and the run that it describes: (Mechanism, RunSettings).

    URDF, MJCF, SDF and USD are told apart by what the file contains, whatever its name; YAML by its suffix.

    Args:
        path: of the file, or a machine of the zoo: "zoo:bennett", or "bennett" where there is no such file. The options are
            those of `read_urdf`, `read_mjcf`, `read_sdf`, `read_usd` or `read_yaml` in `pf.formats`.
    Raises ModelError: no such file or machine; a file that is none of these, and what it is; or what the reader finds.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> import pfaffian as pf
        >>> text = "{bodies: {ball: {mass: 2}}, joints: {z: {kind: prismatic, parent: world, child: ball}}, run: {duration: 3}}"
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = Path(folder, "ball.yaml")
        ...     n = file.write_text(text)
        ...     m, settings = pf.read(file)
        >>> m.q_names, settings.duration
        (('z',), 3.0)
        >>> pf.read("zoo:bennett")[0]
        <Mechanism 'Bennett': 3 bodies, 3 joints (nq 3, nv 3), 1 constraint, ...>
    """
    place = as_path(path)
    if place.suffix.lower() in ("", *TEXTS):
        place = model_file(place)
    found = FORMATS[kind_of(place)]
    reader, known = found.load()
    for option in options:
        if option not in known:
            raise ModelError(f"{printable(str(path))}: {found.name} has no option {option!r}; {nearest(option, known)}")
    made = reader(place, **options)
    return made if isinstance(made, tuple) else (made, RunSettings())


def kind_of(path: Path) -> str:
    """A key of FORMATS. Raises ModelError: the file is none of these."""
    where, suffix = printable(str(path)), path.suffix.lower()
    if suffix == ".xacro":  # its reader says what that is
        return "robot"
    if suffix not in TEXTS and path.is_file():
        with path.open("rb") as stream:
            first = stream.read(8)
        if first.startswith(STAGES):
            return ".usd"
        for beginning, what in BEGINNINGS.items():
            if first.startswith(beginning):
                raise ModelError(f"{where}: {what}")
    text, tags = read_text(path), [root for root in FORMATS if not root.startswith(".")]
    if not text.lstrip().startswith("<"):
        if suffix in TEXTS:
            return ".yaml"
        listed = ", ".join(f"{FORMATS[root].name} (<{root}>)" for root in tags)
        raise ModelError(f"{where}: it is none of {listed}, nor YAML by its suffix, {' or '.join(TEXTS)}")
    root = root_tag(text)
    if root not in tags:
        other = f"its root element <{printable(root)[1:-1]}> is none of {', '.join(f'<{r}>' for r in tags)}"
        raise ModelError(f"{where}: {NO_MODEL.get(root, other)}")
    return root


class _Found(Exception):
    """Ends the search for the root element."""


def root_tag(text: str) -> str:
    """Name of the root element of an XML text, whatever is in it; "robot" where there is none, so that its reader says why."""
    found: list[str] = []

    def start(tag: str, _: dict[str, str]) -> NoReturn:
        found.append(tag)
        raise _Found

    parser = expat.ParserCreate("utf-8")
    parser.SetParamEntityParsing(expat.XML_PARAM_ENTITY_PARSING_NEVER)
    parser.StartElementHandler = start
    try:
        for at in range(0, len(text), 1 << 16):
            parser.Parse(text[at : at + (1 << 16)].encode("utf-8", "replace"), False)
    except (_Found, expat.ExpatError):
        pass
    return found[0] if found else "robot"
