"""`read_fmu`: what an FMU says about itself, without running anything of it."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from platform import machine
from typing import Any, NamedTuple

from pfaffian.errors import ModelError, brief, is_one_of
from pfaffian.formats.fmu.fmu_contents import DESCRIPTION, described
from pfaffian.formats.text.file import as_path
from pfaffian.formats.text.strict_number import number, printable
from pfaffian.formats.text.xml import Element, parse_xml

TYPES = {"Real": "real", "Float64": "real", "Integer": "whole", "Int32": "whole", "Boolean": "flag"}
"""Type of a variable in FMI 2.0 or 3.0 -> what it is; of others only the name is read."""

KINDS = {"CoSimulation": "co-simulation", "ModelExchange": "model exchange"}
"""Element of the description -> kind of FMU, the preferred one first."""

FOLDERS = {
    ("linux", "x86_64"): ("linux64", "x86_64-linux", ".so"),
    ("linux", "aarch64"): ("aarch64-linux", "aarch64-linux", ".so"),
    ("win32", "AMD64"): ("win64", "x86_64-windows", ".dll"),
    ("darwin", "x86_64"): ("darwin64", "x86_64-darwin", ".dylib"),
    ("darwin", "arm64"): ("darwin64", "aarch64-darwin", ".dylib"),
}
"""Platform and processor -> folder of binaries in FMI 2.0, in FMI 3.0, and suffix of libraries."""

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,200}")


class FMUVariable(NamedTuple):
    """A variable of an FMU.

    reference: its value reference.   type: "real", "whole", "flag" or another.   causality, variability: as in its file.
    unit: "" where it has none.   start: its text in the file, None without one.   array: whether it has dimensions.
    """

    reference: int
    type: str
    causality: str
    variability: str
    unit: str
    start: str | None
    array: bool


@dataclass(frozen=True, eq=False)
class FMU:
    """A Functional Mock-up Unit of another tool, as its file describes it; `pf.bridges.fmu_law` makes it a part of a machine.

    file: its path.   name: of the model.   version: of FMI, "2.0" or "3.0".   kind: "co-simulation" or "model
    exchange".   variables: {name: FMUVariable}.   run_binary: whether its binary may run.
    identifier, token: what its binary is called, and its GUID.   folder, suffix: of its binary in the archive.
    single: whether a process may have one instance only.   states: number of its continuous states.
    indicators: number of event indicators.   completes: whether it wants to be told of each step of an integrator.

    Example:
        >>> import tempfile, pfaffian as pf
        >>> fall = pf.mechanism("fall", [pf.body("stone", 2.0)], [pf.joint("down", "prismatic", "world", "stone")])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     stone = pf.read(pf.fmu(fall, f"{folder}/fall.fmu", step=0.01).file)
        >>> stone, stone.variables["q.down"].unit
        (<FMU 'fall': co-simulation, FMI 3.0, 0 inputs, 4 outputs, binary not to be run>, 'm')
    """

    file: Path
    name: str
    version: str
    kind: str
    variables: Mapping[str, FMUVariable] = field(repr=False)
    run_binary: bool
    identifier: str
    token: str
    folder: str
    suffix: str
    single: bool
    states: int
    indicators: int
    completes: bool

    def __repr__(self) -> str:
        counts = [f"{n} {c}{'s' * (n != 1)}" for c in ("input", "output") for n in [len(self.named(c))]]
        may = "binary may run" if self.run_binary else "binary not to be run"
        return f"<FMU {brief(self.name)}: {', '.join([self.kind, f'FMI {self.version}', *counts, may])}>"

    def named(self, causality: str) -> list[str]:
        """Names of the real variables with a causality, "input", "output" or "parameter"."""
        return [n for n, v in self.variables.items() if v.causality == causality and v.type == "real" and not v.array]


def read_fmu(path: str | Path, *, run_binary: bool = False, kind: str | None = None) -> FMU:
    """Read what an FMU says about itself: its variables, its kind, and whether it has a binary for this platform.

    The archive is checked first: paths out of it, links, sizes. Only modelDescription.xml is read, as untrusted text; nothing
    is unpacked or run. A binary of others has all rights of this process when it runs, so that `run_binary=True` is needed
    for that, which `pf.bridges.fmu_law` asks for.

    Args:
        path: of the file.
        run_binary: whether the binary in it may run in this process, False by default.
        kind: "co-simulation" or "model exchange" for an FMU that has both; None: the first of these that it has.
    Returns:
        FMU.
    Raises ModelError: no archive, or one with paths that lead out of it or that is too large; no description, or one that is
    not FMI 2.0 or 3.0; not of this kind; with run_binary, no binary for this platform.

    Example:
        >>> import tempfile, pfaffian as pf
        >>> motor, hinge = pf.actuator("motor", "hinge"), pf.joint("hinge", "revolute", "world", "rod", axis=(0, 1, 0))
        >>> m = pf.mechanism("pendulum", [pf.body("rod", 2.0, com=(0, 0, -1))], [hinge], actuators=[motor])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     rod = pf.formats.read_fmu(pf.fmu(m, f"{folder}/rod.fmu", kind="model exchange").file)
        >>> rod.kind, rod.named("input")
        ('model exchange', ['input.motor'])
    """
    file = as_path(path)
    if not isinstance(run_binary, bool):
        raise ModelError(f"{printable(file.name)}: run_binary is True or False, got {brief(run_binary)}")
    text, names = described(file)
    root, where = parse_xml(text, f"{file.name}, {DESCRIPTION}"), printable(file.name)
    version = root.attributes.get("fmiVersion", "")
    if root.tag != "fmiModelDescription" or not re.fullmatch(r"2\.0|3\.0(\..*)?", version):
        raise ModelError(f"{where}: FMI {printable(version)} is not read; FMI 2.0 and 3.0 are")
    version = version[:3]
    if kind is not None and not is_one_of(kind, KINDS.values()):
        raise ModelError(f"{where}: kind {brief(kind)} is unknown; one of {', '.join(KINDS.values())}")
    found = next((e for tag in KINDS for e in root.all(tag) if kind in (None, KINDS[tag])), None)
    if found is None:
        raise ModelError(f"{where}: it is not for {kind or ' or '.join(KINDS.values())}")
    identifier = found.text("modelIdentifier")
    if not _IDENTIFIER.fullmatch(identifier):
        raise found.error(f"the modelIdentifier {printable(identifier)} is no name in C, and would be a path of a library")
    two, three, suffix = FOLDERS.get((sys.platform, machine()), ("none", "none", ""))
    folder = f"binaries/{two if version == '2.0' else three}"
    if run_binary and f"{folder}/{identifier}{suffix}" not in names:
        has = sorted({n.split("/")[1] for n in names if n.startswith("binaries/") and n.count("/") > 1})
        raise ModelError(
            f"{where}: there is no binary {folder}/{identifier}{suffix} in it for this platform; it has "
            f"{', '.join(map(printable, has)) or 'none at all'}: export it for this platform"
        )
    of_version = variables_two if version == "2.0" else variables_three
    needs, needless = "needsCompletedIntegratorStep", "completedIntegratorStepNotNeeded"
    completes = _flag(found, needs) if version == "3.0" else not _flag(found, needless)
    states, indicators = _counts(root, version)
    return FMU(
        file, root.attributes.get("modelName", identifier), version, KINDS[found.tag], of_version(root), run_binary,
        identifier, root.text("guid" if version == "2.0" else "instantiationToken"), folder, suffix,
        _flag(found, "canBeInstantiatedOnlyOncePerProcess"), states, indicators,
        completes,
    )  # fmt: skip


def _flag(element: Element, name: str) -> bool:
    """Whether a flag of an element is set."""
    return element.attributes.get(name, "false").strip() in ("true", "1")


def _counts(root: Element, version: str) -> tuple[int, int]:
    """Numbers of continuous states and of event indicators."""
    structure = root.only("ModelStructure")
    children = structure.children if structure else []
    if version == "3.0":
        tags = [c.tag for c in children]
        return tags.count("ContinuousStateDerivative"), tags.count("EventIndicator")
    derivatives = next((c for c in children if c.tag == "Derivatives"), None)
    indicators = number(root.attributes.get("numberOfEventIndicators", "0"), "numberOfEventIndicators")
    if not (0 <= indicators < 2**32 and indicators == int(indicators)):
        raise root.error(f"numberOfEventIndicators {indicators:g} is no whole number from 0 to 2^32 - 1")
    return len(derivatives.children) if derivatives else 0, int(indicators)


def _variable(element: Element, typed: Element, units: Mapping[str, str], array: bool) -> FMUVariable:
    """A variable from its element, and from that of its type in FMI 2.0.   units: of the types that may be declared."""
    reference = element.number("valueReference")
    if reference != int(reference) or not 0 <= reference < 2**32:
        raise element.error(f"valueReference {reference:g} is no whole number from 0 to 2^32 - 1")
    a = element.attributes
    unit = typed.attributes.get("unit", units.get(typed.attributes.get("declaredType", ""), ""))
    described = a.get("causality", "local"), a.get("variability", "continuous"), unit
    return FMUVariable(int(reference), TYPES.get(typed.tag, "other"), *described, typed.attributes.get("start"), array)


def variables_two(root: Element) -> dict[str, FMUVariable]:
    """The variables of an FMU in FMI 2.0 by name."""
    units = _declared_units((t.attributes.get("name", ""), typed) for t in _types(root) for typed in t.children)
    of: dict[str, FMUVariable] = {}
    for element in _listed(root):
        if element.tag == "ScalarVariable":
            typed = next((c for c in element.children if c.tag in TYPES), element)
            _add(of, element, _variable(element, typed, units, False))
    return of


def variables_three(root: Element) -> dict[str, FMUVariable]:
    """The variables of an FMU in FMI 3.0 by name, and by its aliases."""
    units = _declared_units((t.attributes.get("name", ""), t) for t in _types(root))
    of, owners = dict[str, FMUVariable](), dict[int, str]()
    for element in _listed(root):
        variable = _variable(element, element, units, bool(element.all("Dimension")))
        for named in (element, *element.all("Alias")):
            _add(of, named, variable)
        owner = owners.setdefault(variable.reference, element.text("name"))
        if owner != element.text("name"):
            raise element.error(
                f"valueReference {variable.reference} is that of {printable(owner)}; each has its own in FMI 3.0"
            )
    return of


def _types(root: Element) -> list[Element]:
    """The elements of the types that variables may declare."""
    types = root.only("TypeDefinitions")
    return types.children if types else []


def _declared_units(types: Iterable[tuple[str, Element]]) -> dict[str, str]:
    """Name of a type -> its unit, for those that have one."""
    return {name: typed.attributes["unit"] for name, typed in types if "unit" in typed.attributes}


def _listed(root: Element) -> list[Element]:
    """The elements of all variables."""
    variables = root.only("ModelVariables")
    if variables is None:
        raise root.error("there are no ModelVariables")
    return variables.children


def _add(of: dict[str, FMUVariable], element: Element, variable: FMUVariable) -> None:
    """Add a variable by its name. Raises ModelError: another has it."""
    name: Any = element.text("name")
    if name in of:
        raise element.error("another variable has this name")
    of[name] = variable
