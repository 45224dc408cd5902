"""What export refuses and by which message, and how a caller's names reach the C code."""

import os
import re
from pathlib import Path

import casadi as ca
import numpy as np
import pytest

import pfaffian as pf
from pfaffian import control
from pfaffian.cli.main import main
from pfaffian.control import Command
from pfaffian.embedded.text import comment
from pfaffian.errors import ModelError
from tests.embedded.conftest import run_written_test

NASTY = [
    "*/ int main(void){}",
    "/* /*",
    "a\\",
    "??/",
    "x\n#include </etc/passwd>",
    '"; system("true"); //',
    "ü€",
    "\x1b[31m",
    "$(id)",
]


def cart(name="cart", motor="motor"):
    body, rail = pf.body("a", 1.0), pf.joint("x", "prismatic", "world", "a", axis=(1, 0, 0))
    gain = pf.Parameter("gain", 5.0)
    return pf.mechanism(name, [body], [rail], actuators=[pf.actuator(motor, "x")], parameters=[gain], gravity=(0, 0, 0))


CART = cart()
LAW = control.discrete(lambda s: Command(-s.terms.mechanism.p_symbols[0] * s.terms.q), 0.01)
FLOWING = control.Control(lambda T, z, w, y: Command(-T.q - z, z_dot=T.q), z=(0.0,))
REFUSED = {
    "a law in Python": (control.python_law(lambda t, q, v: [0.0], 0.01), {}, "a law in Python cannot be translated to C"),
    "no law": (lambda s: 0, {}, "a control law is needed"),
    "it integrates": (FLOWING, {}, "say how often it is called: period=0.005"),
    "half of it flows": (control.several(a=FLOWING, b=LAW), {}, "a part of this law is in continuous time"),
    "a period of its own": (LAW, {"period": 0.01}, "leave out `period`"),
    "tick: no part of the period": (LAW, {"tick": 0.003}, "period 0.01 s .* must be a whole number of steps of 0.003 s"),
    "tick: longer": (LAW, {"tick": 0.02}, "must be a whole number of steps"),
    "tick: none": (LAW, {"tick": 0.0}, "tick must be a time above zero"),
    "tick: text": (LAW, {"tick": "fast"}, "export: tick"),
    "tunable": (LAW, {"tunable": ["gian"]}, "there is no parameter 'gian'.*gain"),
    "parameters": (LAW, {"parameters": {"gian": 1}}, "'gian'.*gain"),
    "parameters of runs": (LAW, {"parameters": [[1.0], [2.0]]}, "one value for each is needed"),
    "precision": (LAW, {"precision": "half"}, "precision 'half' is unknown; one of double, single"),
    "vectors: shape": (LAW, {"vectors": {"q": np.zeros((3, 2))}}, r"vectors 'q': \(calls, 1\) is needed, got \(3, 2\)"),
    "vectors: missing": (LAW, {"vectors": {"v": np.zeros(3)}}, "vectors: the ports q are needed, no other, .* got v"),
    "vectors: surplus": (LAW, {"vectors": {"q": np.zeros((3, 1)), "speed": np.zeros(3)}}, "no other, .* got q, speed"),
    "what acts": (control.discrete(lambda s: Command(-s.acting), 0.1), {}, "let a sensor measure those that it needs"),
    "nothing comes out": (control.discrete(lambda s: Command(ca.SX(0, 1)), 0.1), {}, "neither inputs nor signals"),
    **{
        f"name {n!r}": (LAW, {"name": n}, "cannot be a prefix of names in C")
        for n in ("", "A", "1a", "a-b", "../a", "a.c", "stdio", "é", 3, "a" * 41)
    },
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_refused_export_writes_nothing(what, tmp_path):
    law, how, message = REFUSED[what]
    with pytest.raises(ModelError, match=f"(?s){message}"):
        pf.export(law, CART, tmp_path / "out", **how)
    assert not (tmp_path / "out").exists() or not list((tmp_path / "out").iterdir())


def test_only_unchanged_files_of_export_are_overwritten(tmp_path):
    pf.export(LAW, CART, tmp_path)
    again = pf.export(LAW, CART, tmp_path, parameters={"gain": 6.0})
    assert "0x1.8000000000000p+2" in again.files[1].read_text()
    words = again.files[1].read_text()
    again.files[1].write_text(words + "\n")
    before = {f: f.read_bytes() for f in again.files}
    with pytest.raises(ModelError, match=r"law.c' was changed since it was exported; move it away, or choose another"):
        pf.export(LAW, CART, tmp_path)
    again.files[1].unlink()
    again.files[1].mkdir()
    with pytest.raises(ModelError, match=r"law.c' exists but cannot be read"):
        pf.export(LAW, CART, tmp_path)
    again.files[1].rmdir()
    again.files[2].write_text("int main(void) { return 0; }\n")
    with pytest.raises(ModelError, match=r"law_test.c' was not written by pfaffian export"):
        pf.export(LAW, CART, tmp_path)
    assert again.files[0].read_bytes() == before[again.files[0]] and not again.files[1].exists()


def test_folders_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ModelError, match="cannot write into"):
        pf.export(LAW, CART, tmp_path / "file" / "deeper")
    with pytest.raises(ModelError, match="the folder to export to"):
        pf.export(LAW, CART, 3)


@pytest.mark.parametrize("name", NASTY)
def test_names_stay_in_comments(name, gcc, tmp_path):
    """A signal's name may be any text: the code compiles without a warning, and the text stays within comments."""
    printable = name if name.isprintable() else "plain"

    def law_function(s):
        state_name = "z" + name
        return Command(-s.terms.q, signals={name: s.terms.v, "z": s[state_name]}, d_next={state_name: s.terms.q})

    law = control.discrete(law_function, 0.01, state={"z" + name: [0.5]})
    made = pf.export(law, cart(printable, printable), tmp_path)
    assert run_written_test(gcc, tmp_path, "law", "-O1").returncode == 0
    for file in made.files:
        text = re.sub(r"/\*.*?\*/", "", file.read_bytes().decode("ascii"), flags=re.S)
        assert not re.search(r"passwd|system|int main\(void\)\{|\$|\"true", text)


def test_a_comment_is_one_line_of_plain_text():
    for name in NASTY:
        assert re.fullmatch(r"[ -)+->@-\[\]-~]*", comment(name)), comment(name)
    assert len(comment("n" * 500)) <= 100


# -- the command line ------------------------------------------------------------------------------------------------------

GOOD = """\
import casadi as ca
import pfaffian as pf
from pfaffian import control
def mechanism():
    return pf.mechanism("m", [pf.body("a", 1.0)], [pf.joint("x", "prismatic", "world", "a")],
                        actuators=[pf.actuator("push", "x")], parameters=[pf.Parameter("gain", 2.0)])
def law():
    return control.Control(lambda T, z, w, y: control.Command(-T.mechanism.p_symbols[0] * T.q - z, z_dot=T.q), z=(0.0,))
"""


@pytest.fixture
def cli(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("My-law.py").write_text(GOOD)

    def call(*words):
        status = main(["export", *words])
        return status, *capsys.readouterr()

    return call


@pytest.mark.usefixtures("measuring")
def test_a_file_of_python(cli, gcc):
    status, out, err = cli("My-law.py", "--period", "0.01", "--set", "gain=3", "--out", "c", "--stack")
    assert (status, err) == (0, "") and sorted(os.listdir("c")) == ["my_law.c", "my_law.h", "my_law_test.c"]
    assert re.search(r"operations +\d+ a call at most", out) and re.search(r"stack +\d+ bytes at most", out)
    assert "wrote c/my_law.h" in out and "the deepest calls, as the compiler reports with -O2" in out
    assert "0x1.8000000000000p+1" in Path("c/my_law.c").read_text()
    assert run_written_test(gcc, Path("c"), "my_law").returncode == 0
    status, out, _ = cli(
        "My-law.py", "--period", "0.01", "--precision", "single", "--name", "small", "--tunable", "gain", "--draws", "64"
    )
    assert status == 0 and "over 64 calls" in out and "as the compiler reports" not in out
    assert "float p[1]" in Path("out/small.h").read_text()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["My-law.py"], "say how often it is called"),
        (["My-law.py", "--period", "0"], "--period: a time above zero"),
        (["My-law.py", "--period", "1e-2", "--set", "q:x=1"], "export takes values of parameters alone"),
        (["My-law.py", "--period", "1e-2", "--set", "gian=1"], "there is no parameter 'gian'"),
        (["My-law.py", "--period", "1e-2", "--name", "../x"], "cannot be a prefix of names in C"),
        (["nothing.py"], "there is no file 'nothing.py'"),
        (["four_bar.yaml"], "names no law.*a .yaml or .urdf file holds none"),
        (["no-such-study"], "there is no study 'no-such-study'"),
        (["slider-crank"], "study 'slider-crank' has no function law"),
        (["empty.py"], r"file 'empty.py' has no function mechanism\(\)"),
        (["broken.py"], r"file 'broken.py' in broken.py line 2: its function raised ValueError: no"),
        (["failing.py"], r"file 'failing.py': law\(\) in failing.py line 2: its function raised KeyError"),
        (["../../\n"], "names no law"),
    ],
)
def test_wrong_commands_are_refused(words, message, cli):
    Path("empty.py").write_text("")
    Path("broken.py").write_text("x = 1\nraise ValueError('no')\n")
    Path("failing.py").write_text("mechanism = int\ndef law(): return {}[1]\n")
    status, out, err = cli(*words)
    assert status == 2 and out == "" and err.count("\n") == 1 and re.search(message, err), err
