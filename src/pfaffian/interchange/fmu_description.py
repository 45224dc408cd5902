"""modelDescription.xml of an FMU, in FMI 2.0 and 3.0, and the list of its sources."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple
from xml.sax.saxutils import quoteattr

from pfaffian.interchange.fmu_variables import FMUVariables, Variable, dependencies
from pfaffian.interchange.machine import FMUMachine

BASE: dict[str, tuple[dict[str, int], float]] = {
    "rad": ({"rad": 1}, 1.0), "m": ({"m": 1}, 1.0), "s": ({"s": 1}, 1.0), "kg": ({"kg": 1}, 1.0), "A": ({"A": 1}, 1.0),
    "K": ({"K": 1}, 1.0), "N": ({"kg": 1, "m": 1, "s": -2}, 1.0), "J": ({"kg": 1, "m": 2, "s": -2}, 1.0),
    "W": ({"kg": 1, "m": 2, "s": -3}, 1.0), "Pa": ({"kg": 1, "m": -1, "s": -2}, 1.0), "1": ({}, 1.0), "Hz": ({"s": -1}, 1.0),
    "V": ({"kg": 1, "m": 2, "s": -3, "A": -1}, 1.0), "mm": ({"m": 1}, 1e-3), "g": ({"kg": 1}, 1e-3),
}  # fmt: skip
"""Unit -> exponents of base units, and factor."""

TOLERANCE = 1e-10
"""Relative tolerance that model exchange proposes: errors of importers grow with the motion, and many importers take 1e-5 or
1e-6 where nothing is proposed."""


class Identity(NamedTuple):
    """What an FMU is called.   name: of the model.   identifier: of its files, a name in C.   token: its GUID."""

    name: str
    identifier: str
    token: str
    tool: str


def element(tag: str, attributes: Mapping[str, object], *inside: str) -> str:
    """An XML element; attributes that are None are left out."""
    words = "".join(f" {key}={quoteattr(xml_value(value))}" for key, value in attributes.items() if value is not None)
    return f"<{tag}{words}>" + "".join(inside) + f"</{tag}>\n" if inside else f"<{tag}{words}/>\n"


def xml_value(value: object) -> str:
    """A value as XML writes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value) if isinstance(value, float) else "".join(c if c.isprintable() else "?" for c in str(value))


def base_unit(unit: str) -> dict[str, object] | None:
    """Exponents and factor of a unit such as "kg m^2/s"; None if it has a part that is not known."""
    exponents, factor = dict[str, int](), 1.0
    above, *below = unit.split("/")
    for side, part in ((1, above), *((-1, words) for words in below)):
        for word in part.split():
            found = re.fullmatch(r"([A-Za-z1]+)(?:\^(-?[0-9]))?", word)
            if not found or found[1] not in BASE:
                return None
            n, (powers, scale) = side * int(found[2] or 1), BASE[found[1]]
            factor *= scale**n
            for base, power in powers.items():
                exponents[base] = exponents.get(base, 0) + n * power
    return {base: n for base, n in exponents.items() if n} | ({"factor": factor} if factor != 1.0 else {})


def units(variables: Sequence[Variable]) -> str:
    """The element UnitDefinitions."""
    used = sorted({v.unit for v in variables if v.unit})
    entries = []
    for unit in used:
        base = base_unit(unit)
        entries.append(element("Unit", {"name": unit}, *([] if base is None else [element("BaseUnit", base)])))
    return element("UnitDefinitions", {}, *entries) if entries else ""


def capabilities(machine: FMUMachine, identity: Identity, three: bool) -> dict[str, object]:
    """The attributes of the element CoSimulation or ModelExchange."""
    state = "FMUState" if three else "FMUstate"
    flags: dict[str, object] = {
        "modelIdentifier": identity.identifier,
        f"canGetAndSet{state}": True,
        f"canSerialize{state}": True,
    }
    if machine.timing.exchange:
        flags["providesDirectionalDerivatives" if three else "providesDirectionalDerivative"] = True
        return flags | ({"needsCompletedIntegratorStep": True, "providesAdjointDerivatives": True} if three else {})
    flags |= {"canHandleVariableCommunicationStepSize": True} | ({"hasEventMode": True} if machine.timing.clocked else {})
    return flags | ({"fixedInternalStepSize": float(machine.timing.step)} if three and machine.timing.accuracy is None else {})


def description(machine: FMUMachine, variables: FMUVariables, identity: Identity, version: str, files: Sequence[str]) -> str:
    """The text of modelDescription.xml."""
    three, listed, timing = version == "3.0", variables.listed(), machine.timing
    structure = (structure_three if three else structure_two)(variables, dependencies(machine, variables))
    kind = "ModelExchange" if timing.exchange else "CoSimulation"
    head: dict[str, object] = {"fmiVersion": version, "modelName": identity.name}
    head["instantiationToken" if three else "guid"] = identity.token
    head |= {"generationTool": identity.tool, "variableNamingConvention": "flat"}
    if not three:
        head["numberOfEventIndicators"] = len(variables.sides)
    named = [element("SourceFiles", {}, *[element("File", {"name": name}) for name in files])] if not three else []
    categories = [element("Category", {"name": "logStatusError"})]
    tolerance = TOLERANCE if timing.exchange else timing.accuracy
    experiment = {"startTime": float(timing.start), "tolerance": tolerance, "stepSize": float(timing.step)}
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + element(
        "fmiModelDescription",
        head,
        element(kind, capabilities(machine, identity, three), *named),
        units(listed),
        element("LogCategories", {}, *categories),
        element("DefaultExperiment", experiment),
        element("ModelVariables", {}, *(variable_three(v) if three else variable_two(v, listed) for v in listed)),
        element("ModelStructure", {}, *structure),
    )


def variable_three(v: Variable) -> str:
    """A variable in FMI 3.0."""
    if v.interval is not None:
        times = {"intervalVariability": "constant", "intervalDecimal": v.interval, "shiftDecimal": v.shift}
        return element("Clock", {"name": v.name, "valueReference": v.reference, "causality": v.causality, **times})
    attributes = {
        "name": v.name, "valueReference": v.reference, "causality": v.causality, "variability": v.variability,
        "initial": None if v.causality == "input" else v.initial, "start": v.start, "unit": v.unit or None,
        "derivative": v.rate_of,
    }  # fmt: skip
    return element("Float64", attributes)


def variable_two(v: Variable, listed: Sequence[Variable]) -> str:
    """A variable in FMI 2.0."""
    of = None if v.rate_of is None else 1 + next(i for i, x in enumerate(listed) if x.reference == v.rate_of)
    attributes = {
        "name": v.name, "valueReference": v.reference, "causality": v.causality, "variability": v.variability,
        "initial": None if v.causality == "input" else v.initial,
    }  # fmt: skip
    return element("ScalarVariable", attributes, element("Real", {"start": v.start, "unit": v.unit or None, "derivative": of}))


def shared_structure(variables: FMUVariables) -> tuple[list[Variable], list[Variable]]:
    """The outputs, and the unknowns of the initialisation."""
    outputs = [v for v in variables.listed() if v.causality == "output"]
    return outputs, [v for v in (*outputs, *variables.rates) if v.initial == "calculated"]


def structure_three(variables: FMUVariables, known: Mapping[int, Sequence[int]]) -> list[str]:
    """The entries of ModelStructure in FMI 3.0. Without dependencies, an unknown may depend on all knowns.

    known: value reference of an unknown -> those on which it depends.
    """
    outputs, unknown = shared_structure(variables)
    parameters = {v.reference for v in variables.parameters}
    kinds = {"Output": outputs, "ContinuousStateDerivative": variables.rates, "InitialUnknown": unknown}
    entries = []
    for tag, several in {**kinds, "EventIndicator": variables.sides}.items():
        for v in several:
            on = known.get(v.reference)
            on = None if on is None else [r for r in on if tag == "InitialUnknown" or r not in parameters]
            entries.append(element(tag, {"valueReference": v.reference, "dependencies": joined(on)}))
    return entries


def structure_two(variables: FMUVariables, known: Mapping[int, Sequence[int]]) -> list[str]:
    """The entries of ModelStructure in FMI 2.0.   known: as in `structure_three`."""
    outputs, unknown = shared_structure(variables)
    index = {v.reference: i for i, v in enumerate(variables.listed(), start=1)}
    parameters = {v.reference for v in variables.parameters}
    entries = []
    for tag, several in {"Outputs": outputs, "Derivatives": variables.rates, "InitialUnknowns": unknown}.items():
        unknowns = []
        for v in several:
            on = known.get(v.reference)
            on = None if on is None else [index[r] for r in on if tag == "InitialUnknowns" or r not in parameters]
            unknowns.append(element("Unknown", {"index": index[v.reference], "dependencies": joined(on)}))
        if unknowns:
            entries.append(element(tag, {}, *unknowns))
    return entries


def joined(numbers: Sequence[int] | None) -> str | None:
    """The numbers as XML lists them; None stays None."""
    return None if numbers is None else " ".join(map(str, numbers))


def build_description(identity: Identity, files: Sequence[str], flags: str) -> str:
    """The text of sources/buildDescription.xml of FMI 3.0."""
    sources = [element("SourceFile", {"name": name}) for name in files]
    of_files = element("SourceFileSet", {"language": "C11", "compiler": "gcc", "compilerOptions": flags}, *sources)
    configuration = element("BuildConfiguration", {"modelIdentifier": identity.identifier}, of_files)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + element("fmiBuildDescription", {"fmiVersion": "3.0"}, configuration)
