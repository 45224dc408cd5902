"""The zoo: each machine closes, has its stated mobility and satisfies its claim; it is found by name, listed and drawn."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

import pfaffian as pf
from pfaffian.cli.main import main
from pfaffian.formats.bundled import examples
from pfaffian.viewer import zoo
from pfaffian.viewer.build import scene
from pfaffian.viewer.scene import states_of
from pfaffian.viewer.still import INSTANTS, drawn, frozen, still
from tests.tolerance import close

ROBOTS = {"baxter_bar", "panda_welded"}
"""Machines whose bodies are in example-robot-data."""


machine = cache(zoo.machine)
"""The machine of the zoo by name; each file is read once."""


@pytest.mark.parametrize("name", zoo.machines())
def test_a_machine_has_its_degrees_of_freedom_and_satisfies_its_claim(name: str) -> None:
    found = machine(name)
    at = zoo.start(found.m, found.settings)
    rank = pf.forward_dynamics(found.m, at.q, at.v, at.u, parameters=at.p).rank
    assert found.m.nv - int(rank) == zoo.mobility(name)
    claim = zoo.claim(found, at)
    assert claim.holds, f"{claim.name}: {claim.value} is not {claim.expected}"
    assert claim.tolerance <= 1e-5 * max(abs(claim.expected), 0.1) and claim.source, (
        "the tolerance is tight and the source given"
    )
    assert len(found.title) > 40 and found.settings.duration > 0


def test_the_zoo_contains_all_examples_that_need_no_other_package() -> None:
    assert set(zoo.machines()) == set(examples()) - ROBOTS and len(zoo.machines()) >= 40


def test_the_comment_and_docstring_of_a_file_describe_it() -> None:
    assert machine("bennett").title.startswith("Bennett's linkage: four skew hinges")
    assert zoo.description("sarrus") == "Height of the plate [m]"
    claim = zoo.claim(machine("sarrus"), zoo.start(*machine("sarrus")[2:]))
    assert claim.name == "Height of the plate [m]" and claim.source == "2 link sin(angle)"


@pytest.mark.parametrize("name", zoo.machines())
def test_a_machine_is_equal_when_written_and_read_again(name: str, tmp_path: Path) -> None:
    """In YAML. Other formats refuse parameters, and the error names YAML."""
    m, settings = machine(name).m, machine(name).settings
    assert pf.read(pf.write(m, tmp_path / "again.yaml", settings)[0]) == (m, settings)
    if name == "stewart":
        for suffix in ("urdf", "xml"):
            with pytest.raises(
                pf.ModelError, match="it depends on a parameter, and only YAML files have parameters; write YAML, or use"
            ):
                pf.write(m, tmp_path / f"other.{suffix}")


@pytest.mark.parametrize("path", ["zoo:bennett", "bennett", "bennett.yaml", "examples/bennett.yaml"])
def test_a_machine_is_read_by_its_name(path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert pf.read(path)[0] == machine("bennett").m


def test_a_file_has_priority_over_a_machine_of_its_name_unless_prefixed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    mine = "{name: mine, bodies: {b: {mass: 1}}, joints: {z: {kind: prismatic, parent: world, child: b}}}"
    Path("bennett.yaml").write_text(mine)
    assert pf.read("bennett.yaml")[0].name == "mine" and pf.read("zoo:bennett")[0].name == "Bennett"


@pytest.mark.parametrize("path", ["zoo:benett", "benett", "zoo:", "zoo:../zoo", "other/bennett.yaml"])
def test_an_unknown_name_is_refused(path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(pf.ModelError, match="pfaffian zoo") as error:
        pf.read(path)
    assert ("'bennett'" in str(error.value)) == ("nett" in path)


def test_the_command_lists_the_zoo(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pfaffian.viewer.zoo.machine", machine)
    assert main(["zoo"]) == 0
    printed = capsys.readouterr().out
    assert all(name in printed for name in examples()) and "Height of the plate [m]" in printed
    assert [line.split()[:3] for line in printed.split("\n") if line.startswith("  sarrus ")] == [["sarrus", "5", "1"]]


def test_the_command_shows_a_machine(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    film = tmp_path / "film.html"
    assert main(["zoo", "scotch-yoke", "--out", str(tmp_path), "--animate", str(film)]) == 0
    printed = capsys.readouterr().out
    assert "2 bodies, 1 degree of freedom" in printed and "1 of 1 claim hold" in printed
    assert (tmp_path / "scotch_yoke.png").read_bytes()[1:4] == b"PNG" and film.stat().st_size > 10_000
    assert main(["zoo", "scotch-joke"]) == 2
    assert "did you mean 'scotch_yoke'" in capsys.readouterr().err


# -- its pictures ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def pendulum() -> tuple[pf.Mechanism, object]:
    hinge = pf.joint("hinge", "revolute", "world", "rod", axis=(0, 1, 0))
    m = pf.mechanism("pendulum", [pf.body("rod", 1.0, com=(0, 0, -1), inertia=0.01)], [hinge])
    return m, pf.run(m, {"hinge": 1.0}, duration=0.4, every=20, backend="numpy")


def test_a_still_shows_the_end_opaque_and_earlier_instants_faint(pendulum) -> None:
    m, r = pendulum
    made = scene(m, states_of(m, r))
    parts, moving = frozen(made, 0, 0.1)
    on_rod = [p for p in made.parts if p.body == 0]
    assert len(parts) == len(on_rod) and all(p.body == -1 and p.colour[3] == pytest.approx(0.1) for p in parts) and not moving
    at = made.placed(0, on_rod[0].solid.vertices)[0]
    close(parts[0].solid.vertices, at, 1e-12, "a frozen part where the body was")
    alone = drawn(
        made._replace(time=made.time[-1:], positions=made.positions[-1:], rotations=made.rotations[-1:], moving=()), (120, 90)
    )
    whole = drawn(made, (120, 90))
    assert whole.shape == (90, 120, 3) and (whole != alone).any() and INSTANTS > 2
    assert np.isfinite(made.points).all() and still(m, r, (120, 90))[:4] == b"\x89PNG"


# -- ellipsoids that roll -------------------------------------------------------------------------------------------------


def test_a_round_ellipsoid_rolls_as_a_ball() -> None:
    ball, base = (
        pf.body("ball", 1.0, com=(0.01, 0.02, -0.01), inertia=(0.003, 0.002, 0.004)),
        pf.joint("base", "free", "world", "ball"),
    )
    where = {"centre": (0.0, 0.01, 0.0), "plane": pf.rolling.plane(normal=(0.1, 0.2, 1.0), rate=0.7)}
    v_dot = []
    for contact in (pf.rolling.sphere("c", "ball", 0.1, **where), pf.rolling.ellipsoid("c", "ball", (0.1, 0.1, 0.1), **where)):
        m = pf.mechanism("ball", [ball], [base], constraints=[contact])
        q = pf.assemble(m, [0.1, 0.2, 0.1, 0.3, -0.2, 0.1, 0.9], [0.3, 0.1, 0, 1, -2, 3], backend="numpy")
        v_dot.append(pf.forward_dynamics(m, q.q, q.v).v_dot)
    close(v_dot[1], v_dot[0], 1e-9, "acceleration of a round ellipsoid")


@pytest.mark.parametrize("half", [(0.1, 0, 0.1), (0.1, -1, 0.1), (0.1, 0.1), "x"])
def test_semi_axes_must_be_positive(half) -> None:
    with pytest.raises(pf.ModelError, match="constraint 'egg': semi_axes"):
        pf.rolling.ellipsoid("egg", "b", half)
