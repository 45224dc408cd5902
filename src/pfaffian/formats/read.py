"""Reading a model file of any format: `read` recognises the format from the content and calls its reader."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from inspect import Parameter, signature
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, overload
from xml.parsers import expat

from pfaffian.errors import ModelError, brief, nearest
from pfaffian.formats.bundled import model_file
from pfaffian.formats.fmu.fmu_file import FMU
from pfaffian.formats.text.file import as_path, read_text
from pfaffian.formats.text.run_settings import RunSettings
from pfaffian.formats.text.strict_number import printable
from pfaffian.formats.text.xml import well_formed
from pfaffian.model.mechanism import Mechanism
from pfaffian.tables import Registry


class Format(NamedTuple):
    """A format of model files, a row of `FORMATS`. Functions may be given as "module:function", imported when needed.

    read: function (path, **options) -> Mechanism or (Mechanism, RunSettings); its keyword-only arguments are options of `read`.
    write: function (mechanism, path, settings or None) -> {path: text} of the files to write; None if there is none.
    suffixes: with a dot and in small letters, of the files that are written, and of files that only their suffix tells.
    root: root element, by which files in XML are recognised whatever their suffix; "" for other files.
    first: first bytes by which files are recognised whatever their suffix, one of several; none by default.
    others: more functions whose options `read` passes on.

    Example:
        A format whose files have one number, the mass of a ball:

        >>> import tempfile
        >>> from pathlib import Path
        >>> import pfaffian as pf
        >>> def read_ball(path, *, name="ball"):
        ...     z = pf.joint("z", "prismatic", "world", name)
        ...     return pf.mechanism(name, [pf.body(name, float(Path(path).read_text()))], [z])
        >>> def write_ball(m, path, settings):
        ...     return {path: str(float(m.bodies[0].mass))}
        >>> pf.formats.FORMATS["ball"] = pf.formats.Format(read_ball, write_ball, (".ball",))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = Path(folder, "a.ball")
        ...     n = file.write_text("2.5")
        ...     m, _ = pf.read(file, name="bob")
        ...     files = pf.write(m, Path(folder, "b.ball"))
        ...     files[0].read_text()
        '2.5'
        >>> del pf.formats.FORMATS["ball"]
    """

    read: Callable[..., Any] | str
    write: Callable[[Mechanism, Path, RunSettings | None], Mapping[Path, str]] | str | None
    suffixes: tuple[str, ...]
    root: str = ""
    first: tuple[bytes, ...] = ()
    others: tuple[str, ...] = ()

    def reader(self) -> tuple[Callable[..., Any], list[str]]:
        """The function that reads, and the names of its options."""
        reader, *others = (_loaded(f) for f in (self.read, *self.others))
        takes = [x for f in (*others, reader) for x in signature(f).parameters.values()]
        return reader, [x.name for x in takes if x.kind is Parameter.KEYWORD_ONLY]

    def writer(self) -> Callable[..., Mapping[Path, str]]:
        """The function that makes the texts of the files."""
        return _loaded(self.write)


def _loaded(f: Any) -> Callable[..., Any]:
    """A function of a row, imported if it is given by name."""
    if not isinstance(f, str):
        return f
    module, _, name = f.partition(":")
    return getattr(import_module(f"pfaffian.formats.{module}"), name)


def _check(name: str, row: Any) -> None:
    """Raise ModelError if the row of a user is no Format."""
    dotted = isinstance(row, Format) and isinstance(row.suffixes, tuple) and all(x[:1] == "." for x in row.suffixes)
    if not dotted or not all(f is None or callable(f) for f in (row.read, row.write)):
        raise ModelError(f"file format {name!r}: a Format(read, write, suffixes) of two functions is needed, got {brief(row)}")


FORMATS = Registry("file format", {
    "YAML": Format("yaml.yaml:read_yaml", "writers.yaml_write:yaml_files", (".yaml", ".yml")),
    "URDF": Format("urdf.urdf:read_urdf", "writers.urdf_write:urdf_files", (".urdf",), "robot",
                   others=("urdf.urdf:parse_urdf",)),
    "MJCF": Format("mjcf.mjcf:read_mjcf", "writers.mjcf_write:mjcf_files", (".xml", ".mjcf"), "mujoco",
                   others=("mjcf.mjcf:parse_mjcf",)),
    "SDF": Format("sdf.sdf:read_sdf", None, (".sdf", ".world"), "sdf", others=("sdf.sdf:parse_sdf",)),
    "OSIM": Format("osim.osim:read_osim", None, (".osim",), "OpenSimDocument", others=("osim.osim:parse_osim",)),
    "FMU": Format("fmu.fmu_file:read_fmu", None, (".fmu",), first=(b"PK\x03\x04",)),
    "USD": Format("usd.usd:read_usd", None, (".usd", ".usda", ".usdc"), first=(b"#usda", b"PXR-USDC")),
}, "give your own another name", _check)  # fmt: skip
"""Formats of model files by name. To add one: `pf.formats.FORMATS["mine"] = pf.formats.Format(read, write, (".mine",))`."""

TEXTS = FORMATS["YAML"].suffixes
"""Suffixes of YAML files, by which alone they are recognised."""

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
    b"\x89HDF": "this is a NetCDF or HDF5 file; pf.results.read_netcdf reads results",
    b"solid ": "this is a mesh (STL); read the model file that refers to it",
    b"\x7fELF": "this is a compiled program (ELF), not a model",
}
"""First bytes of files that describe no mechanism -> what they are and what to do."""


@overload
def read(path: str | Path, *, run_binary: bool, kind: str | None = None) -> FMU: ...
@overload
def read(path: str | Path, **options: Any) -> tuple[Mechanism, RunSettings]: ...
def read(path: str | Path, **options: Any) -> FMU | tuple[Mechanism, RunSettings]:
    """Read a mechanism, and the run that the file describes, from a model file: (Mechanism, RunSettings).

    URDF, MJCF, SDF, USD, OSIM files and FMUs are recognised by their content, whatever their name; YAML files by their suffix.
    Of an FMU, a component of another tool, this gives what it says about itself: `pf.bridges.fmu_law` makes it a part of a
    machine, if its binary may run, `pf.read("motor.fmu", run_binary=True)`.

    Args:
        path: of the file, or a machine of the zoo: "zoo:bennett", or "bennett" where there is no file of that name.
        options: those of `read_urdf`, `read_mjcf`, `read_sdf`, `read_usd`, `read_osim`, `read_yaml` or `read_fmu` in
            `pf.formats`, by the format.
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
    name = format_of(place)
    reader, known = FORMATS[name].reader()
    for option in options:
        if option not in known:
            raise ModelError(f"{printable(str(path))}: {name} has no option {option!r}; {nearest(option, known)}")
    made = reader(place, **options)
    return made if isinstance(made, (tuple, FMU)) else (made, RunSettings())


def format_of(path: Path) -> str:
    """The name of the format of a file. Raises ModelError: the file is in none of the FORMATS."""
    where, suffix = printable(str(path)), path.suffix.lower()
    if suffix == ".xacro":  # read_urdf explains how to expand it
        return "URDF"
    suffixed = [name for name, f in FORMATS.items() if suffix in f.suffixes and not (f.root or f.first)]
    if suffixed and FORMATS.is_added(suffixed[0]):
        return suffixed[0]
    if not suffixed and path.is_file():
        with path.open("rb") as stream:
            first = stream.read(8)
        for name, f in FORMATS.items():
            if f.first and first.startswith(f.first):
                return name
        for beginning, what in BEGINNINGS.items():
            if first.startswith(beginning):
                raise ModelError(f"{where}: {what}")
    text, roots = read_text(path), {f.root: name for name, f in FORMATS.items() if f.root}
    if not text.lstrip().startswith("<"):
        if suffixed:
            return suffixed[0]
        listed = ", ".join(f"{name} (<{root}>)" for root, name in roots.items())
        by_suffix = " or ".join(x for f in FORMATS.values() if not (f.root or f.first) for x in f.suffixes)
        raise ModelError(f"{where} is not a model file: it is neither XML for {listed}, nor a {by_suffix} file")
    root = root_tag(text)
    if root not in roots:
        other = f"the root element is <{printable(root)[1:-1]}>; one of {', '.join(f'<{r}>' for r in roots)} is needed"
        raise ModelError(f"{where}: {NO_MODEL.get(root, other)}")
    return roots[root]


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
    text = well_formed(text)
    try:
        for at in range(0, len(text), 1 << 16):
            parser.Parse(text[at : at + (1 << 16)].encode("utf-8", "replace"), False)
    except (_RootFound, expat.ExpatError):
        pass
    return found[0] if found else "robot"
