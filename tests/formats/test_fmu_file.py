"""What FMUs say about themselves; and archives that no one should unpack, of which nothing is unpacked or run."""

from __future__ import annotations

import os
import re
import stat
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

import pfaffian as pf
from pfaffian.formats.fmu import fmu_contents

TWO = """<?xml version="1.0"?>
<fmiModelDescription fmiVersion="2.0" modelName="motor" guid="{1}" numberOfEventIndicators="2">
  <ModelExchange modelIdentifier="motor" completedIntegratorStepNotNeeded="true"/>
  <CoSimulation modelIdentifier="motor" canBeInstantiatedOnlyOncePerProcess="true"/>
  <ModelVariables>
    <ScalarVariable name="u" valueReference="3" causality="input"><Real unit="V" start="1.5"/></ScalarVariable>
    <ScalarVariable name="w" valueReference="4" causality="output"><Real unit="rad/s"/></ScalarVariable>
    <ScalarVariable name="on" valueReference="0" causality="parameter"><Boolean start="true"/></ScalarVariable>
  </ModelVariables>
  <ModelStructure><Derivatives><Unknown index="2"/></Derivatives></ModelStructure>
</fmiModelDescription>"""

THREE = """<fmiModelDescription fmiVersion="3.0" modelName="valve" instantiationToken="{2}">
  <CoSimulation modelIdentifier="valve"/>
  <ModelVariables>
    <Float64 name="p" valueReference="1" causality="input" unit="Pa"/>
    <Float64 name="field" valueReference="2" causality="input"><Dimension start="3"/></Float64>
    <Int32 name="n" valueReference="3" causality="parameter"/>
  </ModelVariables>
  <ModelStructure/>
</fmiModelDescription>"""


def packed(path: Path, text: str | None = TWO, others: Mapping[str, bytes] | None = None) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        if text is not None:
            archive.writestr("modelDescription.xml", text)
        for name, data in (others or {}).items():
            archive.writestr(name, data)
    return path


def test_variables_and_kinds_are_read(tmp_path: Path) -> None:
    motor = pf.read(packed(tmp_path / "motor.fmu"))
    assert (motor.kind, motor.version, motor.single, motor.run_binary) == ("co-simulation", "2.0", True, False)
    assert motor.named("input") == ["u"] and motor.named("output") == ["w"] and motor.variables["u"].unit == "V"
    assert motor.variables["on"].type == "flag" and motor.variables["w"].reference == 4
    assert "1 input, 1 output, binary not to be run" in repr(motor)
    other = pf.formats.read_fmu(motor.file, kind="model exchange")
    assert (other.states, other.indicators, other.completes, other.single) == (1, 2, False, False)
    valve = pf.read(packed(tmp_path / "without suffix", THREE))
    assert valve.named("input") == ["p"] and valve.variables["n"].type == "whole" and valve.token == "{2}"
    with pytest.raises(pf.ModelError, match="not for model exchange"):
        pf.read(tmp_path / "without suffix", kind="model exchange")


@pytest.mark.parametrize(
    "name", ["../evil.so", "/etc/evil", "binaries/../../evil", "c:\\evil", "a\\..\\evil", "binaries/linux64/..", "line\nbreak"]
)
def test_paths_out_of_the_archive_are_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "a").mkdir()
    file = packed(tmp_path / "a" / "x.fmu", TWO, {name: b"harmless"})
    before = sorted(tmp_path.rglob("*"))
    for opened in (lambda: pf.read(file, run_binary=True), lambda: fmu_contents.unpack(file, tmp_path / "a")):
        with pytest.raises(pf.ModelError, match="may lead out of the archive; nothing was unpacked"):
            opened()
    assert sorted(tmp_path.rglob("*")) == before


def test_links_encryption_and_names_given_twice_are_refused(tmp_path: Path) -> None:
    link = zipfile.ZipInfo("binaries/linux64/motor.so")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(tmp_path / "link.fmu", "w") as archive:
        archive.writestr("modelDescription.xml", TWO)
        archive.writestr(link, "/bin/true")
    with pytest.raises(pf.ModelError, match="is a link; nothing was unpacked"):
        pf.read(tmp_path / "link.fmu")
    whole = bytearray(packed(tmp_path / "plain.fmu").read_bytes())
    whole[whole.index(b"PK\x01\x02") + 8] |= 1
    (tmp_path / "encrypted.fmu").write_bytes(whole)
    with pytest.raises(pf.ModelError, match="is encrypted; nothing was unpacked"):
        pf.read(tmp_path / "encrypted.fmu")
    with pytest.warns(UserWarning, match="Duplicate"):
        twice = packed(tmp_path / "twice.fmu", TWO, {"modelDescription.xml": THREE.encode()})
    with pytest.raises(pf.ModelError, match="is in it twice"):
        pf.read(twice)


def test_sizes_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = packed(tmp_path / "x.fmu", TWO, {"resources/a": b"0" * 1000})
    for bound, value, words in (
        ("MOST_FILES", 1, "has 2 files"), ("MOST_UNPACKED", 999, "bytes when unpacked"),
        ("MAX_BYTES", 20, "may have at most 20"),
    ):  # fmt: skip
        with monkeypatch.context() as patch, pytest.raises(pf.ModelError, match=words):
            patch.setattr(fmu_contents, bound, value)
            pf.read(file)


def test_damaged_and_foreign_files_are_refused_by_name(tmp_path: Path) -> None:
    whole = packed(tmp_path / "x.fmu").read_bytes()
    (tmp_path / "half.fmu").write_bytes(whole[: len(whole) // 2])
    damaged = bytearray(whole)
    damaged[60:70] = b"0123456789"
    (tmp_path / "damaged.fmu").write_bytes(damaged)
    with zipfile.ZipFile(tmp_path / "deflated.fmu", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("modelDescription.xml", TWO)
    deflated = bytearray((tmp_path / "deflated.fmu").read_bytes())
    deflated[50] = 0xFF  # the kind of the first block of the compressed text, which does not exist
    (tmp_path / "deflated.fmu").write_bytes(deflated)
    bomb = '<!DOCTYPE a [<!ENTITY b "cccc">]>' + TWO.partition("?>")[2]
    for file, words in (
        (tmp_path / "half.fmu", "'half.fmu': it is no zip archive"),
        (tmp_path / "damaged.fmu", "'damaged.fmu': 'modelDescription.xml' cannot be unpacked"),
        (tmp_path / "deflated.fmu", "'deflated.fmu': 'modelDescription.xml' cannot be unpacked"),
        (packed(tmp_path / "none.fmu", None, {"a": b""}), "this is a zip archive without modelDescription.xml"),
        (packed(tmp_path / "bomb.fmu", bomb), "document types and entities are not allowed"),
        (packed(tmp_path / "one.fmu", TWO.replace('"2.0"', '"1.0"')), "FMI '1.0' is not read"),
        (packed(tmp_path / "up.fmu", TWO.replace('modelIdentifier="motor"', 'modelIdentifier="../../motor"')), "no name in C"),
        (packed(tmp_path / "same.fmu", TWO.replace('name="w"', 'name="u"')), "another variable has this name"),
        (
            packed(tmp_path / "i.fmu", TWO.replace('Indicators="2"', 'Indicators="-7e99"')),
            "numberOfEventIndicators -7e+99 is no",
        ),
        (packed(tmp_path / "r.fmu", TWO.replace('valueReference="4"', 'valueReference="-4"')), "no whole number"),
    ):
        with pytest.raises(pf.ModelError, match=words.replace("(", r"\(").replace(".", r"\.").replace("+", r"\+")):
            pf.read(file)


def test_names_that_cannot_be_files_and_unknown_kinds_of_archives_are_refused(tmp_path: Path) -> None:
    for k, names in enumerate((["binaries/x", "binaries/x/y"], ["binaries/" + "a" * 300], ["resources/" + "a/" * 3000 + "b"])):
        file = packed(tmp_path / f"{k}.fmu", TWO, dict.fromkeys(names, b"harmless"))
        with pytest.raises(pf.ModelError, match="cannot be unpacked"):
            fmu_contents.unpack(file, tmp_path / f"at{k}")
    whole = bytearray(packed(tmp_path / "plain.fmu").read_bytes())
    whole[whole.index(b"PK\x01\x02") + 6] = 90  # version of zip that is needed
    (tmp_path / "newer.fmu").write_bytes(whole)
    with pytest.raises(pf.ModelError, match="it is no zip archive, as FMUs are"):
        pf.read(tmp_path / "newer.fmu")


def test_binary_for_this_platform_is_needed_to_run(tmp_path: Path) -> None:
    file = packed(tmp_path / "x.fmu", TWO, {"binaries/os2/motor.dll": b"no program"})
    assert pf.read(file).name == "motor"
    with pytest.raises(pf.ModelError, match=r"no binary .* for this platform; it has 'os2'"):
        pf.read(file, run_binary=True)
    with pytest.raises(pf.ModelError, match="run_binary is True or False"):
        pf.read(file, run_binary=1)


def test_what_a_description_says_of_types_aliases_and_references_is_read(tmp_path: Path) -> None:
    types = '<TypeDefinitions><SimpleType name="Speed"><Real unit="m/s"/></SimpleType><SimpleType/></TypeDefinitions>'
    two = TWO.replace("<ModelVariables>", types + "<ModelVariables>").replace(
        '<Real unit="rad/s"/>', '<Real declaredType="Speed"/>'
    )
    motor = pf.read(packed(tmp_path / "two.fmu", two))
    assert motor.variables["w"].unit == "m/s" and motor.variables["on"].unit == "" and motor.variables["u"].unit == "V"
    types = '<TypeDefinitions><Float64Type name="Speed" unit="m/s"/><Int32Type name="Count"/></TypeDefinitions>'
    alias = 'unit="Pa" declaredType="Speed"><Alias name="pressure"/></Float64>'
    three = THREE.replace("<ModelVariables>", types + "<ModelVariables>").replace('unit="Pa"/>', alias)
    declared = three.replace('valueReference="3"', 'valueReference="3" declaredType="Speed"')
    valve = pf.read(packed(tmp_path / "three.fmu", declared))
    assert valve.variables["pressure"] == valve.variables["p"] and valve.variables["p"].unit == "Pa"
    assert valve.variables["n"].unit == "m/s" and valve.named("input") == ["p", "pressure"]
    for text, words in (
        (three.replace('valueReference="3"', 'valueReference="1"'), "<Int32> 'n': valueReference 1 is that of 'p'"),
        (three.replace('name="pressure"', 'name="n"'), "<Int32> 'n': another variable has this name"),
        (THREE.replace('valueReference="3"', 'valueReference="2.5"'), "valueReference 2.5 is no whole number"),
        (THREE.replace('valueReference="3"', 'valueReference="-1"'), "valueReference -1 is no whole number"),
        (THREE.replace('valueReference="3"', 'valueReference="4294967296"'), "no whole number from 0 to 2"),
        (TWO.replace('Indicators="2"', 'Indicators="4294967296"'), "no whole number from 0 to 2"),
        (TWO.replace('Indicators="2"', 'Indicators="-1"'), "no whole number from 0 to 2"),
        (THREE.replace("ModelVariables", "Others"), "no ModelVariables"),
        (THREE.replace('fmiVersion="3.0"', 'fmiVersion="3.1"'), "FMI '3.1' is not read"),
        (THREE.replace('fmiVersion="3.0"', 'fmiVersion="2.0.1"'), "FMI '2.0.1' is not read"),
        (THREE.replace('modelIdentifier="valve"', ""), "attribute 'modelIdentifier' is missing"),
        (THREE.replace('instantiationToken="{2}"', ""), "attribute 'instantiationToken' is missing"),
    ):  # fmt: skip
        with pytest.raises(pf.ModelError, match=re.escape(words)):
            pf.read(packed(tmp_path / "wrong.fmu", text))
    last = pf.read(packed(tmp_path / "last.fmu", THREE.replace('valueReference="3"', 'valueReference="4294967295"')))
    assert last.variables["n"].reference == 2**32 - 1
    shared = TWO.replace('valueReference="4"', 'valueReference="3"')  # in FMI 2.0 variables may have the same number
    assert pf.read(packed(tmp_path / "shared.fmu", shared)).variables["w"].reference == 3


def test_defaults_of_a_description_are_those_of_the_standard(tmp_path: Path) -> None:
    bare = """<fmiModelDescription fmiVersion="3.0.1" instantiationToken="{3}"><ModelExchange modelIdentifier="it"/>
      <ModelVariables><Float64 name="x" valueReference="1"/></ModelVariables></fmiModelDescription>"""
    it = pf.read(packed(tmp_path / "bare.fmu", bare))
    assert (it.name, it.version, it.kind, it.identifier) == ("it", "3.0", "model exchange", "it")
    assert (it.single, it.completes, it.states, it.indicators) == (False, False, 0, 0)
    assert it.variables == {"x": (1, "real", "local", "continuous", "", None, False)}
    said = bare.replace('modelIdentifier="it"', 'modelIdentifier="it" needsCompletedIntegratorStep=" 1 "')
    structure = '<ModelStructure><ContinuousStateDerivative valueReference="1"/><EventIndicator valueReference="1"/><Output/>'
    said = said.replace("</fmiModelDescription>", f"{structure}<EventIndicator/></ModelStructure></fmiModelDescription>")
    it = pf.read(packed(tmp_path / "said.fmu", said))
    assert (it.completes, it.states, it.indicators) == (True, 1, 2)
    old = TWO.replace(' completedIntegratorStepNotNeeded="true"', "").replace(' numberOfEventIndicators="2"', "")
    it = pf.formats.read_fmu(packed(tmp_path / "old.fmu", old), kind="model exchange")
    assert (it.completes, it.indicators, it.states) == (True, 0, 1)
    none = pf.formats.read_fmu(packed(tmp_path / "none.fmu", old.replace("Derivatives", "Outputs")), kind="model exchange")
    assert none.states == 0


def test_a_name_of_any_length_is_shown_short(tmp_path: Path) -> None:
    long = packed(tmp_path / "long.fmu", TWO.replace('modelName="motor"', f'modelName="{"m" * 5_000_000}"'))
    fmu = pf.read(long)
    assert len(fmu.name) == 5_000_000 and len(repr(fmu)) < 300
    with pytest.raises(pf.ModelError, match="may not run") as caught:
        pf.bridges.fmu_law(fmu, 0.1)
    assert len(str(caught.value)) < 400


def test_a_pipe_and_a_folder_are_no_fmus(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.fmu")
    (tmp_path / "folder.fmu").mkdir()
    for name in ("pipe.fmu", "folder.fmu"):
        with pytest.raises(pf.ModelError, match=f"'{name}' is not a regular file"):
            pf.formats.read_fmu(tmp_path / name)
    with pytest.raises(pf.ModelError, match=r"'none\.fmu': the file cannot be read"):
        pf.formats.read_fmu(tmp_path / "none.fmu")


def test_only_what_runs_is_unpacked(tmp_path: Path) -> None:
    others = {"binaries/linux64/motor.so": b"1", "resources/a/b": b"2", "sources/c.c": b"3", "binaries/": b""}
    fmu_contents.unpack(packed(tmp_path / "x.fmu", TWO, others), tmp_path / "at")
    found = {str(f.relative_to(tmp_path / "at")): f.read_bytes() for f in (tmp_path / "at").rglob("*") if f.is_file()}
    assert found == {"binaries/linux64/motor.so": b"1", "resources/a/b": b"2"}
    with pytest.raises(pf.ModelError, match=r"'binaries/linux64/motor\.so' cannot be unpacked"):
        (tmp_path / "file").write_bytes(b"")
        fmu_contents.unpack(tmp_path / "x.fmu", tmp_path / "file")
