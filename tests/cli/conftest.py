"""Fixtures that call the command line in this process, in a temporary folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from pfaffian.cli.main import main

PENDULUM = """\
name: pendulum
parameters: {mass: {default: 2, unit: kg}}
bodies: {rod: {mass: mass, com: [0.5, 0, 0], inertia: 0.1}}
joints: {hinge: {kind: revolute, parent: world, child: rod, axis: [0, 1, 0]}}
actuators: {motor: {joint: hinge}}
run: {duration: 0.1, step: 0.01, q: {hinge: 0.5}}
"""


class Completed(NamedTuple):
    """A finished command.   status: exit status.   out, err: text of standard output and of standard error."""

    status: int
    out: str
    err: str


Cli = Callable[..., Completed]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder: a temporary one that contains only pendulum.yaml."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pendulum.yaml").write_text(PENDULUM)
    return tmp_path


@pytest.fixture
def cli(here: Path, capsys: pytest.CaptureFixture[str]) -> Cli:
    def call(*arguments: str) -> Completed:
        status = main(arguments)
        return Completed(status, *capsys.readouterr())

    return call
