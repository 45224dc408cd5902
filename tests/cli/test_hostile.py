"""Hostile names in files reach no path, no terminal control and no TeX; they reach the result as data."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import pfaffian as pf

NAMES = ['"); system("', "</script>", "../../x", "$\\input{/etc/passwd}$", "%n%s", "a" * 128, "_hidden", "日本", "a:b=c"]
FILES = ["$x$.yaml", "-rf.yaml", "a b;c.yaml", "\x1b[2J.yaml", "\u202etxt.yaml", "...yaml", ".yaml.yaml", "x" * 200 + ".yaml"]


def text(name: str, title: str) -> str:
    n = json.dumps(name)
    return f"""
name: {json.dumps(title)}
parameters: {{{n}: {{default: 1, unit: {n}}}}}
bodies: {{{n}: {{mass: 1, com: [1, 0, 0]}}, other: {{mass: 1, com: [1, 0, 0]}}}}
joints:
  {n}: {{kind: revolute, parent: world, child: {n}, axis: [0, 1, 0]}}
  other: {{kind: revolute, parent: {n}, child: other, axis: [0, 1, 0]}}
constraints: {{{n}: {{kind: point-on-plane, body_a: world, body_b: other}}}}
actuators: {{{n}: {{joint: {n}}}}}
run: {{duration: 0.02, step: 0.01, u: {{{n}: 1}}}}
"""


def files(folder: Path) -> set[str]:
    return {str(p.relative_to(folder)) for p in folder.rglob("*")}


@pytest.mark.parametrize("name", NAMES)
def test_hostile_names(cli, here: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "m.yaml").write_text(text(name, name), encoding="utf-8")
    done = cli("info", "m.yaml")
    if done.status == 2:  # the reader may refuse a name by a message
        assert done.err.count("\n") == 1
        return
    run = cli("run", "m.yaml")
    assert run.status == 0, run.err
    assert files(here) == {"pendulum.yaml", "m.yaml", "out", "out/m.nc", "out/m.png"}
    result = pf.results.read_netcdf(here / "out" / "m.nc")
    assert result["coordinate"].values[0] == name and result.attrs["mechanism"] == name
    for line in (done.out + run.out + done.err + run.err).split("\n"):
        assert line.isprintable()


@pytest.mark.parametrize("title", ["\x1b[31mred\x07", "\u202egnp", "a\nb", "../../x", "$\\frac{$", "\x9b31m"])
def test_hostile_name_of_the_mechanism(cli, here: Path, title: str) -> None:
    (here / "m.yaml").write_text(text("a", title), encoding="utf-8")
    for command in ("info", "run"):
        done = cli(command, "m.yaml", *(["--no-progress"] if command == "run" else []))
        assert done.status in (0, 2)
        assert all(line.isprintable() for line in (done.out + done.err).split("\n"))
    assert files(here) <= {"pendulum.yaml", "m.yaml", "out", "out/m.nc", "out/m.png"}


@pytest.mark.parametrize("name", FILES)
def test_hostile_names_of_files(cli, here: Path, name: str) -> None:
    source = here / "pendulum.yaml"
    source.rename(here / name)
    done = cli("run", "--no-figure", "--", name)
    assert done.status in (0, 2)
    assert all(line.isprintable() for line in (done.out + done.err).split("\n"))
    made = files(here) - {name, "out"}
    assert all(re.fullmatch(r"out/[A-Za-z0-9_-]{1,60}\.nc", p) for p in made)


def test_hostile_urdf_name(cli, here: Path) -> None:
    inertia = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
    links = f'<link name="a">{inertia}</link><link name="&lt;/script&gt;&#x202e;">{inertia}</link>'
    ends = '<parent link="a"/><child link="&lt;/script&gt;&#x202e;"/>'
    joint = f'<joint name="&quot;); system(&quot;" type="continuous">{ends}</joint>'
    (here / "r.urdf").write_text(f'<robot name="../../&#x202e;x">{links}{joint}</robot>')
    done = cli("run", "r.urdf", "--duration", "0.01")
    assert all(line.isprintable() for line in (done.out + done.err).split("\n"))
    assert files(here) <= {"pendulum.yaml", "r.urdf", "out", "out/r.nc", "out/r.png"}
