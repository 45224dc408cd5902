"""Reading a model file of any format: `read` recognises the format from the content and calls its reader."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from inspect import Parameter, signature
from pathlib import Path
from typing import Any, NamedTuple, NoReturn
from xml.parsers import expat

from pfaffian.errors import ModelError, nearest
from pfaffian.formats.bundled import model_file
from pfaffian.formats.text.file import as_path, read_text
from pfaffian.formats.text.run_settings import RunSettings
from pfaffian.formats.text.strict_number import printable
from pfaffian.model.mechanism import Mechanism


class Format(NamedTuple):
    """A format of model files.   name: for messages.   reader: its module, and the function there that reads a path.   others:
    functions of this module whose options the reader passes on."""

    name: str
    reader: tuple[str, str]
    others: tuple[str, ...] = ()

    def load(self) -> tuple[Callable[..., Any], list[str]]:
        """The reader and the names of its options. The module is imported only when a file is in this format."""
        module = import_module(f"pfaffian.formats.{self.reader[0]}")
        reader, *others = (getattr(module, name) for name in (self.reader[1], *self.others))
        takes = [x for f in (*others, reader) for x in signature(f).parameters.values()]
        return reader, [x.name for x in takes if x.kind is Parameter.KEYWORD_ONLY]


FORMATS: Mapping[str, Format] = {
    "robot": Format("URDF", ("urdf.urdf", "read_urdf"), ("parse_urdf",)),
    "mujoco": Format("MJCF", ("mjcf.mjcf", "read_mjcf"), ("parse_mjcf",)),
    "sdf": Format("SDF", ("sdf.sdf", "read_sdf"), ("parse_sdf",)),
    ".yaml": Format("YAML", ("yaml.yaml", "read_yaml")),
    ".usd": Format("USD", ("usd.usd", "read_usd")),
}
"""Root element of an XML file, or suffix of a file that is not XML -> its format."""

TEXTS = (".yaml", ".yml")
"""Suffixes of YAML files, by which alone they are recognised."""

STAGES = (b"#usda", b"PXR-USDC")
"""First bytes of USD files."""

NO_MODEL = {
    "mujocoinclude": "this is a part of an MJCF file; read the file that includes it",
    "COLLADA": "this is a mesh (COLLADA); read the model file that refers to it",
    "svg": "this is a picture (SVG), not a model",
    "html": "this is a web page; download the model file itself",
    "model": "this is Gazebo's model.config; read the .sdf file that it names",
    "package": "this is a package.xml; read the model file of the robot",
    "launch": "this is a launch file; read the model file of the robot",
}
"""Root element of XML files that describe no mechanism -> what they are and what to do."""

BEGINNINGS = {
    b"PK\x03\x04": "this is a zip archive; unpack it and read the model file in it",
    b"\x89HDF": "this is a NetCDF or HDF5 file; pf.results.read_netcdf reads results",
    b"solid ": "this is a mesh (STL); read the model file that refers to it",
    b"\x7fELF": "this is a compiled program (ELF), not a model",
}
"""First bytes of files that describe no mechanism -> what they are and what to do."""


def read(path: str | Path, **options: Any) -> tuple[Mechanism, RunSettings]:
    """Read a mechanism, and the run that the file describes, from a model file: (Mechanism, RunSettings).

    URDF, MJCF, SDF and USD files are recognised by their content, whatever their name; YAML files by their suffix.

    Args:
        path: of the file, or a machine of the zoo: "zoo:bennett", or "bennett" where there is no file of that name.
        options: those of `read_urdf`, `read_mjcf`, `read_sdf`, `read_usd` or `read_yaml` in `pf.formats`, by the format.
    Raises ModelError: no file or machine of this name; a file of another kind; an option that the format does not have; an
    error of the reader.

    Example:
        >>> import pfaffian as pf
        >>> m, settings = pf.read("zoo:bennett")
        >>> m
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
    """The key of FORMATS for a file. Raises ModelError: the file is in none of these formats."""
    where, suffix = printable(str(path)), path.suffix.lower()
    if suffix == ".xacro":  # read_urdf explains how to expand it
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
        raise ModelError(f"{where} is not a model file: it is neither XML for {listed}, nor a {' or '.join(TEXTS)} file")
    root = root_tag(text)
    if root not in tags:
        other = f"the root element is <{printable(root)[1:-1]}>; one of {', '.join(f'<{r}>' for r in tags)} is needed"
        raise ModelError(f"{where}: {NO_MODEL.get(root, other)}")
    return root


class _RootFound(Exception):
    """Ends the search for the root element."""


def root_tag(text: str) -> str:
    """Name of the root element of an XML text. "robot" if none is found, so that the URDF reader reports the error."""
    found: list[str] = []

    def start(tag: str, _: dict[str, str]) -> NoReturn:
        found.append(tag)
        raise _RootFound

    parser = expat.ParserCreate("utf-8")
    parser.SetParamEntityParsing(expat.XML_PARAM_ENTITY_PARSING_NEVER)
    parser.StartElementHandler = start
    try:
        for at in range(0, len(text), 1 << 16):
            parser.Parse(text[at : at + (1 << 16)].encode("utf-8", "replace"), False)
    except (_RootFound, expat.ExpatError):
        pass
    return found[0] if found else "robot"
