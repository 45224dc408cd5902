"""What the description of an FMU says, word for word, and which files stand beside it. Nothing is compiled here."""

from __future__ import annotations

import zipfile
from pathlib import Path
from xml.etree import ElementTree

import pytest

import pfaffian as pf
from pfaffian import control
from pfaffian.interchange import contents
from pfaffian.interchange.fmu_description import base_unit

Rows = dict[str, dict[str, str]]

REAL = {"variability": "continuous"}
INPUT = {"causality": "input", **REAL}
GIVEN = {"initial": "exact"}
FOUND = {"initial": "calculated"}

STATES: Rows = {
    "q.x": {"causality": "output", **REAL, **GIVEN, "start": "0.25", "unit": "m"},
    "q.swing": {"causality": "output", **REAL, **GIVEN, "start": "0.0", "unit": "rad"},
    "v.x": {"causality": "output", **REAL, **GIVEN, "start": "0.0", "unit": "m/s"},
    "v.swing": {"causality": "output", **REAL, **GIVEN, "start": "-0.5", "unit": "rad/s"},
}
RECORDED: Rows = {
    "energy": {"causality": "output", **REAL, **FOUND, "unit": "J"},
    "kinetic_energy": {"causality": "output", **REAL, **FOUND, "unit": "J"},
    "u.push": {"causality": "output", **REAL, **FOUND, "unit": "N"},
}
OF_MACHINE: Rows = {
    "time": {"causality": "independent", **REAL, "unit": "s"},
    "input.push": {**INPUT, "start": "0.0", "unit": "N"},
    "parameter.rod mass": {"causality": "parameter", "variability": "tunable", **GIVEN, "start": "1.5", "unit": "kg"},
    **STATES,
}
RATES: Rows = {
    f"der({name})": {"causality": "local", **REAL, **FOUND, "unit": unit, "derivative": name}
    for name, unit in (("q.x", "m/s"), ("q.swing", "rad/s"), ("v.x", "m/s^2"), ("v.swing", "rad/s^2"))
}

DEPENDENCIES = {
    **{name: {name} for name in STATES},
    "energy": {"q.swing", "v.x", "v.swing"}, "kinetic_energy": {"q.swing", "v.x", "v.swing"}, "u.push": {"input.push"},
    "der(q.x)": {"v.x"}, "der(q.swing)": {"v.swing"},
    "der(v.x)": {"input.push", "q.swing", "v.swing"}, "der(v.swing)": {"input.push", "q.swing", "v.swing"},
}  # fmt: skip
"""Rate or output -> on what it depends while the machine moves."""

WITH_MASS = ("energy", "kinetic_energy", "der(v.x)", "der(v.swing)")
"""Those that depend on the parameter too, which counts at the start."""

STATE_FLAGS = {"3.0": ("canGetAndSetFMUState", "canSerializeFMUState"), "2.0": ("canGetAndSetFMUstate", "canSerializeFMUstate")}
EXCHANGE_FLAGS = {
    "3.0": ("providesDirectionalDerivatives", "needsCompletedIntegratorStep", "providesAdjointDerivatives"),
    "2.0": ("providesDirectionalDerivative",),
}


def machine() -> pf.Mechanism:
    """A cart with a rod, whose mass is a parameter, and a name that is none in C."""
    mass = pf.Parameter("rod mass", 1.5, "kg")
    slide = pf.joint("x", "prismatic", "world", "cart", axis=(1, 0, 0))
    hinge = pf.joint("swing", "revolute", "cart", "rod", axis=(0, 1, 0))
    bodies = [pf.body("cart", 2.0), pf.body("rod", mass, com=(0, 0, -0.5), inertia=0.1)]
    return pf.mechanism("a <cart>", bodies, [slide, hinge], actuators=[pf.actuator("push", "x")], parameters=[mass])


class Exported:
    """An FMU of the machine.   root: its description.   files: their names.   names: of variables, by reference or index."""

    def __init__(self, folder: Path, **how: object) -> None:
        self.made = pf.fmu(machine(), folder / "cart.fmu", q={"x": 0.25}, v={"swing": -0.5}, step=0.01, **how)
        with zipfile.ZipFile(self.made.file) as archive:
            self.files = {name: archive.read(name).decode() for name in archive.namelist()}
        self.root = ElementTree.fromstring(self.files["modelDescription.xml"])
        self.three = self.root.get("fmiVersion") == "3.0"
        self.variables = list(self.root.find("ModelVariables"))
        key = (lambda v, k: v.get("valueReference")) if self.three else (lambda v, k: str(k))
        self.names = {key(v, k): v.get("name") for k, v in enumerate(self.variables, start=1)}

    def rows(self) -> Rows:
        """Attributes of the variables by name, the same in both versions."""
        found = {}
        for v in self.variables:
            row = dict(v.attrib) | ({} if self.three else dict(v.find("Real").attrib))
            del row["valueReference"]
            if "derivative" in row:
                row["derivative"] = self.names[row["derivative"]]
            found[row.pop("name")] = row
        return found

    def structure(self, three: str, two: str) -> dict[str, set[str] | None]:
        """Unknown -> on what it depends, None if nothing is said, of a part of the structure in FMI 3.0 and 2.0."""
        structure = self.root.find("ModelStructure")
        entries = structure.findall(three) if self.three else structure.findall(f"{two}/Unknown")
        key = "valueReference" if self.three else "index"
        on = [(self.names[e.get(key)], e.get("dependencies")) for e in entries]
        return {name: None if words is None else {self.names[w] for w in words.split()} for name, words in on}


@pytest.fixture(autouse=True)
def compiler(monkeypatch: pytest.MonkeyPatch) -> list[tuple[list[str], str, str]]:
    """What would have been compiled, with which platform and processor."""
    calls: list[tuple[list[str], str, str]] = []

    def compiled(units: dict[str, str], name: str, processor: str) -> bytes:
        calls.append((list(units), name, processor))
        return name.encode()

    monkeypatch.setattr(contents, "compiled", compiled)
    return calls


@pytest.mark.parametrize("version", ["3.0", "2.0"])
def test_model_exchange_is_described(tmp_path: Path, version: str) -> None:
    it = Exported(tmp_path, kind="model exchange", version=version, start=2.0)
    assert it.rows() == OF_MACHINE | RATES | RECORDED
    assert list(it.rows()) == [*OF_MACHINE, *RATES, *RECORDED]
    assert it.structure("ContinuousStateDerivative", "Derivatives") == {n: DEPENDENCIES[n] for n in RATES}
    assert it.structure("Output", "Outputs") == {n: DEPENDENCIES[n] for n in [*STATES, *RECORDED]}
    at_start = {n: DEPENDENCIES[n] | ({"parameter.rod mass"} if n in WITH_MASS else set()) for n in [*RECORDED, *RATES]}
    assert it.structure("InitialUnknown", "InitialUnknowns") == at_start
    flags = dict.fromkeys(STATE_FLAGS[version] + EXCHANGE_FLAGS[version], "true")
    assert it.root.find("ModelExchange").attrib == {"modelIdentifier": "fmu_a__cart_", **flags}
    assert it.root.find("CoSimulation") is None
    assert it.root.find("DefaultExperiment").attrib == {"startTime": "2.0", "tolerance": "1e-10", "stepSize": "0.01"}
    assert it.made.variables == {n: row.get("unit", "") for n, row in it.rows().items()}


@pytest.mark.parametrize(("version", "accuracy"), [("3.0", None), ("2.0", None), ("3.0", 1e-6)])
def test_co_simulation_is_described(tmp_path: Path, version: str, accuracy: float | None) -> None:
    it = Exported(tmp_path, version=version, accuracy=accuracy)
    assert it.rows() == OF_MACHINE | RECORDED
    assert it.structure("Output", "Outputs") == dict.fromkeys([*STATES, *RECORDED])
    assert it.structure("InitialUnknown", "InitialUnknowns") == dict.fromkeys(RECORDED)
    assert not it.structure("ContinuousStateDerivative", "Derivatives")
    flags = dict.fromkeys((*STATE_FLAGS[version], "canHandleVariableCommunicationStepSize"), "true")
    fixed = {"fixedInternalStepSize": "0.01"} if version == "3.0" and accuracy is None else {}
    assert it.root.find("CoSimulation").attrib == {"modelIdentifier": "fmu_a__cart_", **flags, **fixed}
    assert it.root.find("ModelExchange") is None
    proposed = {} if accuracy is None else {"tolerance": "1e-06"}
    assert it.root.find("DefaultExperiment").attrib == {"startTime": "0.0", **proposed, "stepSize": "0.01"}
    said = dict(it.root.attrib)
    token = said.pop("instantiationToken" if version == "3.0" else "guid")
    assert f'#define TOKEN "{token}"' in it.files["sources/machine.c"] and len(token) == 38
    assert said.pop("generationTool").startswith("pfaffian ")
    counted = {} if version == "3.0" else {"numberOfEventIndicators": "0"}
    assert said == {"fmiVersion": version, "modelName": "a <cart>", "variableNamingConvention": "flat", **counted}


def test_clocks_are_inputs_with_their_periods(tmp_path: Path) -> None:
    def force(s: control.Sample) -> control.Command:
        return control.Command(-8 * s.terms.q[:1] + s["w"])

    law = control.discrete(force, 0.02, phase=0.01, inputs=["w"])
    it = Exported(tmp_path, control=law, clocks=True)
    rows = it.rows()
    assert rows.pop("clock.law") == {
        "causality": "input", "intervalVariability": "constant", "intervalDecimal": "0.02", "shiftDecimal": "0.01",
    }  # fmt: skip
    assert it.root.find("CoSimulation").get("hasEventMode") == "true"
    inputs = {"input.w": {**INPUT, "start": "0.0"}}
    assert rows == {n: row for n, row in OF_MACHINE.items() if n != "input.push"} | inputs | RECORDED
    again = Exported(tmp_path, control=law)
    assert "clock.law" not in again.rows() and again.root.find("CoSimulation").get("hasEventMode") is None
    with pytest.raises(pf.ModelError, match=r"clocks need version '3\.0'"):
        Exported(tmp_path, control=law, clocks=True, version="2.0")
    with pytest.raises(pf.ModelError, match="clocks are the periods of a law in discrete time, and there is none"):
        Exported(tmp_path, clocks=True)


def test_a_parameter_that_a_run_changes_is_an_output_and_no_parameter(tmp_path: Path) -> None:
    switches = {"rod mass": lambda k: 1.5 + (k.q[0] > 1)}
    it = Exported(tmp_path, kind="model exchange", version="2.0", switches=switches)
    rows = it.rows()
    assert "parameter.rod mass" not in rows and rows["rod mass"]["causality"] == "output"
    assert int(it.root.get("numberOfEventIndicators")) == sum(n.startswith("event.") for n in rows) > 0
    three = Exported(tmp_path, kind="model exchange", switches=switches)
    on = three.structure("EventIndicator", "none")
    assert on == {n: {"q.x"} for n in rows if n.startswith("event.")}
    assert rows["event.0"] == {"causality": "local", **REAL, **FOUND}
    with pytest.raises(pf.ModelError, match="switches that change gradually: rod mass"):
        Exported(tmp_path, kind="model exchange", switches={"rod mass": lambda k: 1.5 + 0.1 * k.q[0]})


@pytest.mark.parametrize("version", ["3.0", "2.0"])
def test_files_of_an_fmu(tmp_path: Path, version: str, compiler: list[tuple[list[str], str, str]]) -> None:
    names = ["win64", "darwin64", "win64"]
    it = Exported(tmp_path, version=version, platforms=names, processor="x86-64-v3")
    assert it.made.platforms == {"win64": 5, "darwin64": 8}
    folders = ("x86_64-windows", "x86_64-darwin") if version == "3.0" else ("win64", "darwin64")
    binaries = {f"binaries/{folder}/fmu_a__cart_{end}" for folder, end in zip(folders, (".dll", ".dylib"), strict=True)}
    built = {"sources/buildDescription.xml"} if version == "3.0" else set()
    assert set(it.files) == {"modelDescription.xml", "sources/machine.c"} | binaries | built
    assert compiler == [(["machine.c"], name, "x86-64-v3") for name in ("win64", "darwin64")]
    if version == "2.0":
        assert [f.get("name") for f in it.root.find("CoSimulation/SourceFiles")] == ["machine.c"]
        return
    build = ElementTree.fromstring(it.files["sources/buildDescription.xml"])
    (configuration,) = build
    assert build.get("fmiVersion") == "3.0" and configuration.get("modelIdentifier") == "fmu_a__cart_"
    (of,) = configuration
    assert [f.get("name") for f in of] == ["machine.c"]
    assert {"-ffp-contract=off", "-fvisibility=hidden"} <= set(of.get("compilerOptions").split())


def test_units_are_told_by_base_units(tmp_path: Path) -> None:
    it = Exported(tmp_path)
    of = {u.get("name"): u.find("BaseUnit").attrib for u in it.root.find("UnitDefinitions")}
    used = {row["unit"] for row in it.rows().values() if "unit" in row}
    assert set(of) == used and of["N"] == {"kg": "1", "m": "1", "s": "-2"} and of["rad/s"] == {"rad": "1", "s": "-1"}
    for unit, base in (
        ("kg m^2/s", {"kg": 1, "m": 2, "s": -1}), ("1/s", {"s": -1}), ("1", {}), ("N m/N", {"m": 1}),
        ("mm^2", {"m": 2, "factor": 1e-3**2}), ("N/mm", {"kg": 1, "s": -2, "factor": 1e-3**-1}),
        ("m^-2", {"m": -2}), ("V/A", {"kg": 1, "m": 2, "s": -3, "A": -2}), ("Pa", {"kg": 1, "m": -1, "s": -2}),
        ("W", {"kg": 1, "m": 2, "s": -3}), ("furlong", None), ("m^x", None), ("m/furlong", None), ("J/K/s", base_unit("W/K")),
    ):  # fmt: skip
        assert base_unit(unit) == base, unit


def test_units_of_entries_are_those_of_their_coordinates(tmp_path: Path) -> None:
    plain = machine()
    hold = pf.nonholonomic("hold", lambda k: k.v[0])
    m = pf.mechanism("held", plain.bodies, plain.joints, constraints=[hold], parameters=plain.parameters)
    units = pf.fmu(m, tmp_path / "held.fmu", record="all").variables
    assert (units["reaction.x"], units["reaction.swing"]) == ("N", "N m")
    assert (units["violation"], units["rank"], units["q.swing"], units["v.swing"]) == ("", "1", "rad", "rad/s")
