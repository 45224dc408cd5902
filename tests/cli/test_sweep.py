"""pfaffian sweep: the section of a file, shards, and refusals."""

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


def test_a_sweep_in_two_shards_equals_that_of_the_function(cli, here):
    (here / "pendulum.yaml").write_text(PENDULUM + SWEEP)
    done = cli("sweep", "pendulum.yaml", "--explain")
    assert done.status == 0 and "40 runs in 3 blocks, 40 of them to do" in done.out and not (here / "out").exists()
    done = cli("sweep", "pendulum.yaml", "--shard", "2/2", "--threads", "1")
    assert done.status == 0 and "40 runs in out/pendulum.zarr, 2 blocks left to other parts" in done.out.replace("\\", "/")
    done = cli("sweep", "pendulum.yaml", "--shard", "1/2")
    assert done.status == 0 and "complete" in done.out
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


def test_options_that_change_a_sweep_need_another_store(cli, here):
    (here / "pendulum.yaml").write_text(PENDULUM + SWEEP)
    assert cli("sweep", "pendulum.yaml", "--store", "a.zarr", "--set", "v:hinge=1").status == 0
    done = cli("sweep", "pendulum.yaml", "--store", "a.zarr", "--set", "mass=9", "--set", "u:motor=3")
    assert done.status == 2 and "is of another sweep: arguments of run differ" in done.err


def test_a_sweep_starts_at_the_start_of_a_run(cli, here):
    text = (EXAMPLES / "suspension.yaml").read_text(encoding="utf-8").replace("duration: 1", "duration: 0.002")
    assert "guess: {upper: 0.1, ball.qx: -0.05}" in text, "the guess contains part of a quaternion"
    sweep = "sweep:\n  axes: {k: {values: [30000, 20000]}}\n  keep: {q: true, fastest: {maximum: v}}\n"
    (here / "suspension.yaml").write_text(text.replace("record_every: 5", "record_every: 1") + sweep)
    done = cli("sweep", "suspension.yaml")
    assert done.status == 0, done.err
    swept = pf.sweeps.open_store(here / "out" / "suspension.zarr").load()["q"].values
    for run, k in enumerate(("30000", "20000")):
        done = cli("run", "suspension.yaml", "--no-figure", "--set", f"k={k}")
        assert done.status == 0 and done.err == ""
        np.testing.assert_array_equal(swept[run], pf.results.read_netcdf(here / "out" / "suspension.nc")["q"].values)


@pytest.mark.parametrize("command", ["run", "sweep"])
@pytest.mark.parametrize("terminal", [True, False])
@pytest.mark.parametrize(("option", "expected"), [("--progress", True), ("--no-progress", False), ("", None)])
def test_a_progress_bar_is_drawn_on_a_terminal_or_by_option(cli, here, monkeypatch, command, option, expected, terminal):
    (here / "pendulum.yaml").write_text(PENDULUM + SWEEP)
    seen = []

    def stopped(*_, progress, **others):
        seen.append(progress)
        raise ModelError("enough")

    monkeypatch.setattr(pf, command, stopped)
    monkeypatch.setattr("sys.stderr.isatty", lambda: terminal)
    assert "enough" in cli(command, "pendulum.yaml", *filter(None, [option])).err
    assert seen == [terminal if expected is None else expected]


def test_wrong_options_are_refused(cli, here):
    done = cli("sweep", "pendulum.yaml")
    assert done.status == 2 and "pendulum.yaml: there is no section `sweep:`" in done.err
    (here / "pendulum.yaml").write_text(PENDULUM + SWEEP)
    for options, words in {
        ("--shard", "3/2"): "there are shards 1 to 2",
        ("--threads", "none"): "--threads: a whole number from 1 on",
        ("--scheduler", "nowhere"): "--scheduler 'nowhere': no Dask scheduler answers",
    }.items():
        done = cli("sweep", "pendulum.yaml", *options)
        assert done.status == 2 and words in done.err


WRONG = {
    "axes: {mass: {from: 0, to: 1}}, keep: {a: {maximum: v}}": "an axis needs either `from`, `to` and `count`, or `values`",
    "axes: {mass: {from: 0, to: 1, count: 2, values: [1]}}, keep: {a: {maximum: v}}": "an axis needs either `from`",
    "axes: {mass: {from: 0, to: 1, count: 1e9}}, keep: {a: {maximum: v}}": "a whole number from 1 to 1e\\+07",
    "axes: {mass: [1]}": "the key 'keep' is missing",
    "keep: {a: {maximum: v}}": "a sweep needs axes, samples or states",
    "axes: {mass: [1]}, keep: {a: {maximun: v}}": "did you mean 'maximum'",
    "axes: {mass: [1]}, keep: {a: {maximum: v, mean: v}}": "one statistic is needed",
    "axes: {mass: [1]}, keep: {a: {maximum: v, level: 1}}": "maximum lacks these options",
    "axes: {mass: [1]}, keep: {a: {histogram: v}}": "a histogram needs edges",
    "axes: {mass: [1]}, keep: {a: {at_maximum: v}}": "at_maximum needs of",
    "axes: {mass: [1]}, keep: {a: {maximum: v, of: q}}": "maximum lacks these options.*of to at_maximum",
    "axes: {mass: [1]}, keep: everything": "there are loads",
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


def test_loads_over_states_in_a_terminal(cli, here):
    """A pendulum that its motor holds: the loads of its pivot over a stroke, and a statistic beside another signal."""
    section = "sweep: {axes: {mass: [1, 3]}, states: {'q:hinge': {from: 0, to: 1, count: 3}}, keep: loads}"
    (here / "pendulum.yaml").write_text(PENDULUM + section)
    assert cli("sweep", "pendulum.yaml", "--store", "loads.zarr").status == 0
    table = pf.loads(pf.sweeps.open_store(here / "loads.zarr")).load()
    np.testing.assert_allclose(table["force"][:, 0], 9.81 * np.array([1, 3]), rtol=1e-12)
    alone = "sweep: {states: {'q:hinge': [0, 1]}, keep: loads}"
    (here / "alone.yaml").write_text(PENDULUM + alone)
    assert cli("sweep", "alone.yaml", "--store", "alone.zarr").status == 0
    mass = float(pf.formats.parse_yaml(PENDULUM)[0].p_defaults[0])
    np.testing.assert_allclose(pf.loads(pf.sweeps.open_store(here / "alone.zarr")).load()["force"], 9.81 * mass, rtol=1e-12)
    section = "sweep: {axes: {mass: [1]}, keep: {a: {at_maximum: q, of: v}, b: {time_of_maximum: v}}}"
    assert pf.formats.parse_yaml(PENDULUM + section)[1].sweep.keep == {
        "a": ("at_maximum", "q", ("v",)), "b": ("time_of_maximum", "v", ())
    }  # fmt: skip
