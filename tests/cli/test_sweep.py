"""pfaffian sweep: what a file says of a sweep, in parts, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import pfaffian as pf
from pfaffian import statistics
from pfaffian.errors import ModelError
from tests.cli.conftest import PENDULUM
from tests.cli.test_run import EXAMPLES

SWEEP = """
sweep:
  axes: {mass: {from: 1, to: 3, count: 5}, v:hinge: {values: [0, 2], along: other}, u:motor: {values: [1, -1], along: other}}
  samples: {ranges: {q:hinge: [-1, 1]}, count: 4, method: halton, seed: 2}
  keep: {fastest: {maximum: v}, zero: {first_crossing: q, level: 0.1, direction: falling},
         spent: {histogram: q, edges: [-9, 0, 9]}}
  block: 16
"""


def test_a_sweep_in_two_parts_is_that_of_the_function(cli, here):
    (here / "pendulum.yaml").write_text(PENDULUM + SWEEP)
    said = cli("sweep", "pendulum.yaml", "--explain")
    assert said.status == 0 and "40 runs in 3 blocks, 40 of them to do" in said.out and not (here / "out").exists()
    said = cli("sweep", "pendulum.yaml", "--shard", "2/2", "--threads", "1")
    assert said.status == 0 and "40 runs in out/pendulum.zarr, 2 blocks left to other parts" in said.out.replace("\\", "/")
    said = cli("sweep", "pendulum.yaml", "--shard", "1/2")
    assert said.status == 0 and "complete" in said.out
    m, settings = pf.formats.read_yaml(here / "pendulum.yaml")
    space = {"mass": np.linspace(1, 3, 5), "v:hinge": ("other", [0.0, 2.0]), "u:motor": ("other", [1.0, -1.0])}
    space |= pf.sweeps.samples({"q:hinge": (-1.0, 1.0)}, 4, method="halton", seed=2)
    keep = {"fastest": statistics.maximum("v"), "zero": statistics.first_crossing("q", 0.1, "falling"),
            "spent": statistics.histogram("q", [-9, 0, 9])}  # fmt: skip
    same = pf.sweep(m, space, store=here / "same.zarr", keep=keep, block=16, duration=0.1, step=0.01).load()
    found = pf.sweeps.open_store(here / "out" / "pendulum.zarr").load()
    for name in ("space", "fastest", "zero", "spent", "status"):
        np.testing.assert_array_equal(found[name], same[name])
    assert settings.duration == 0.1 and settings.sweep.block == 16


def test_what_the_command_line_changes_is_another_sweep(cli, here):
    (here / "pendulum.yaml").write_text(PENDULUM + SWEEP)
    assert cli("sweep", "pendulum.yaml", "--store", "a.zarr", "--set", "v:hinge=1").status == 0
    said = cli("sweep", "pendulum.yaml", "--store", "a.zarr", "--set", "mass=9", "--set", "u:motor=3")
    assert said.status == 2 and "is of another sweep: arguments of run differ" in said.err


def test_a_sweep_starts_where_a_run_does(cli, here):
    text = (EXAMPLES / "suspension.yaml").read_text(encoding="utf-8").replace("duration: 1", "duration: 0.002")
    assert "guess: {upper: 0.1, ball.qx: -0.05}" in text, "a part of a quaternion"
    sweep = "sweep:\n  axes: {k: {values: [30000, 20000]}}\n  keep: {q: true, fastest: {maximum: v}}\n"
    (here / "suspension.yaml").write_text(text.replace("record_every: 5", "record_every: 1") + sweep)
    said = cli("sweep", "suspension.yaml")
    assert said.status == 0, said.err
    swept = pf.sweeps.open_store(here / "out" / "suspension.zarr").load()["q"].values
    for run, k in enumerate(("30000", "20000")):
        said = cli("run", "suspension.yaml", "--no-figure", "--set", f"k={k}")
        assert said.status == 0 and said.err == ""
        np.testing.assert_array_equal(swept[run], pf.results.read_netcdf(here / "out" / "suspension.nc")["q"].values)


@pytest.mark.parametrize("command", ["run", "sweep"])
@pytest.mark.parametrize("terminal", [True, False])
@pytest.mark.parametrize(("option", "shown"), [("--progress", True), ("--no-progress", False), ("", None)])
def test_a_progress_bar_is_shown_on_a_terminal_or_as_told(cli, here, monkeypatch, command, option, shown, terminal):
    (here / "pendulum.yaml").write_text(PENDULUM + SWEEP)
    seen = []

    def stopped(*_, progress, **others):
        seen.append(progress)
        raise ModelError("enough")

    monkeypatch.setattr(pf, command, stopped)
    monkeypatch.setattr("sys.stderr.isatty", lambda: terminal)
    assert "enough" in cli(command, "pendulum.yaml", *filter(None, [option])).err
    assert seen == [terminal if shown is None else shown]


def test_commands_that_do_not_fit_are_refused(cli, here):
    said = cli("sweep", "pendulum.yaml")
    assert said.status == 2 and "pendulum.yaml: there is no section `sweep:`" in said.err
    (here / "pendulum.yaml").write_text(PENDULUM + SWEEP)
    for options, words in {
        ("--shard", "3/2"): "there are shards 1 to 2",
        ("--threads", "none"): "--threads: a whole number from 1 on",
        ("--scheduler", "nowhere"): "--scheduler 'nowhere': no Dask scheduler answers",
    }.items():
        said = cli("sweep", "pendulum.yaml", *options)
        assert said.status == 2 and words in said.err


WRONG = {
    "axes: {mass: {from: 0, to: 1}}, keep: {a: {maximum: v}}": "an axis needs either `from`, `to` and `count`, or `values`",
    "axes: {mass: {from: 0, to: 1, count: 2, values: [1]}}, keep: {a: {maximum: v}}": "an axis needs either `from`",
    "axes: {mass: {from: 0, to: 1, count: 1e9}}, keep: {a: {maximum: v}}": "a whole number from 1 to 1e\\+07",
    "axes: {mass: [1]}": "the key 'keep' is missing",
    "keep: {a: {maximum: v}}": "a sweep needs axes or samples",
    "axes: {mass: [1]}, keep: {a: {maximun: v}}": "did you mean 'maximum'",
    "axes: {mass: [1]}, keep: {a: {maximum: v, mean: v}}": "one statistic is needed",
    "axes: {mass: [1]}, keep: {a: {maximum: v, level: 1}}": "maximum lacks these options",
    "axes: {mass: [1]}, keep: {a: {histogram: v}}": "a histogram needs edges",
    "axes: {mass: [1]}, keep: {a: false}": "write true, or a statistic",
    "axes: {mass: [1]}, keep: {a: {first_crossing: v, direction: up}}": "there are rising, falling, either",
    "samples: {ranges: {mass: [0, 1]}, count: 0.5}, keep: {a: true}": "a whole number from 1",
    "samples: {ranges: {mass: [0, 1]}, count: 4, method: best}, keep: {a: true}": "there are sobol, halton, latin",
    "samples: {ranges: {mass: [0, 1, 2]}, count: 4}, keep: {a: true}": "a list of length 2 is needed",
}


@pytest.mark.parametrize("text", WRONG)
def test_a_wrong_section_is_refused_with_its_line(text):
    with pytest.raises(ModelError, match=f"YAML line 7.*{WRONG[text]}"):
        pf.formats.parse_yaml(PENDULUM + f"sweep: {{{text}}}")


def test_lists_and_signals_over_time():
    sweep = pf.formats.parse_yaml(PENDULUM + "sweep: {axes: {mass: [1, 2]}, keep: {q: true, a: {mean: v}}}")[1].sweep
    assert sweep.listed == {"mass": ("mass", (1.0, 2.0))} and sweep.keep == {"q": True, "a": ("mean", "v", ())}
