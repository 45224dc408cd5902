"""Programs printed as C99 give the interpreter's bits in double and single precision, also with square roots in integers."""

import ctypes
import re
import subprocess
import sys

import casadi as ca
import numpy as np
import pytest

from pfaffian.kernel.functions.angle_reduction import limbs, reduce_huge
from pfaffian.kernel.functions.elementary import FUNCTIONS
from pfaffian.kernel.functions.transcendental import EXP
from pfaffian.kernel.program.interpret import evaluate
from pfaffian.kernel.program.ops import OPS
from pfaffian.kernel.program.passes import optimise
from pfaffian.kernel.program.program import Program, Step
from pfaffian.kernel.program.trace import guarded, trace
from pfaffian.kernel.text.portable import PRECISIONS, portable_source

STRICT = ("-std=c99", "-pedantic", "-Wall", "-Wextra", "-Wconversion", "-Werror")
BUILDS = {
    "O2": ["-O2"],
    "root": ["-O0", "-DPLAIN_SQRT"],
    "contracting": ["-O3", "-march=native", "-std=gnu11", "-ffp-contract=fast"],
}
KIND = {"double": np.float64, "single": np.float32}


def written(program, precision, folder, change=("", ""), part_size=100):
    """Write the Program as a C file, with a function `run` that calls it n times, and return the path."""
    made, V = portable_source([program], precision, part_size), f"V{PRECISIONS[precision].suffix}"
    text = made.text.replace(*change) if change[0] else made.text
    assert change[0] in made.text
    run = f"void run(const {V} *x, {V} *y, int n);\nvoid run(const {V} *x, {V} *y, int n) {{\n"
    run += f"  static {V} w[{max(1, *made.work)}];\n"
    run += f"  for (int i = 0; i < n; i++) {made.names[0]}(x + i * {program.n_in}, y + i * {program.n_out}, w);\n}}\n"
    source = folder / "a.c"
    source.write_text(f"{text}\n{run}")
    return source


def compiled(program, precision, folder, flags, change=("", ""), part_size=100):
    """Compile the Program; returns a function from (n, n_in) inputs to (n, n_out) outputs."""
    source = written(program, precision, folder, change, part_size)
    library = folder / f"{len(list(folder.glob('*.so')))}.so"
    subprocess.run(["gcc", *STRICT, *flags, "-shared", "-fPIC", str(source), "-o", str(library)], check=True)
    lib, kind = ctypes.CDLL(str(library)), KIND[precision]

    def call(x):
        x = np.ascontiguousarray(x, kind)
        y = np.empty((len(x), program.n_out), kind)
        lib.run(x.ctypes.data_as(ctypes.c_void_p), y.ctypes.data_as(ctypes.c_void_p), len(x))
        return y

    return call


def differ(a, b):
    word = f"i{a.dtype.itemsize}"
    return (a.view(word) != b.view(word)) & ~(np.isnan(a) & np.isnan(b))


def interpreted(program, x):
    return np.hstack(evaluate(program, np.split(x, np.cumsum(program.inputs)[:-1], axis=1), x.dtype.type))


@pytest.mark.parametrize("build", BUILDS)
@pytest.mark.parametrize("precision", PRECISIONS)
def test_random_programs(precision, build, random_program, awkward, tmp_path):
    for seed in (2, 3):  # in these, no copysign takes the sign of a NaN, which is unspecified
        program = random_program(seed, 300, (random_program(seed + 100, 12),))
        with np.errstate(all="ignore"):
            x = np.hstack([awkward(2000, 3), awkward(2001, 2)[:2000]]).astype(KIND[precision])
        found = compiled(program, precision, tmp_path, BUILDS[build])(x)
        assert not differ(found, interpreted(program, x)).any()


def each():
    """A Program that applies every operation to two numbers."""
    steps, known = [], 2
    for name, op in OPS.items():
        steps.append(Step(name, (0, 1, 0)[: op.arity], known))
        known += op.results
    return Program((2,), (), tuple(steps), (tuple(range(known)),)).check()


@pytest.mark.parametrize("precision", PRECISIONS)
def test_every_operation(precision, awkward, tmp_path):
    program = each()
    with np.errstate(all="ignore"):
        x = np.vstack([awkward(4096, 2), 1e3 * awkward(4097, 2)]).astype(KIND[precision])
    for flags in BUILDS.values():
        assert not differ(compiled(program, precision, tmp_path, flags)(x), interpreted(program, x)).any()


@pytest.mark.parametrize("precision", PRECISIONS)
def test_roots_by_integers(precision, tmp_path):
    """Square roots in integer arithmetic are exact to the bit, also next to squares and for the smallest numbers."""
    kind, random = KIND[precision], np.random.default_rng(1)
    program = Program((1,), (), (Step("sqrt", (0,), 1),), ((1,),)).check()
    r = random.uniform(1, 4, 200_000).astype(kind)
    near = np.concatenate([r, (r * r).astype(kind)])
    near = np.concatenate([near, np.nextafter(near, kind(0)), np.nextafter(near, kind(9))])
    word = np.dtype(f"u{near.itemsize}")
    any_bits = random.integers(0, np.iinfo(word).max, 400_000, word, endpoint=True).view(kind)
    x = np.concatenate([near, any_bits, np.arange(1000, dtype=word).view(kind)])[:, None]
    found = compiled(program, precision, tmp_path, BUILDS["root"])(x)
    with np.errstate(all="ignore"):
        assert not differ(found, np.sqrt(x)).any()


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("op", ["sqrt", "fmod", "exp"])
def test_clang_warns_of_nothing_unused(op, precision, tmp_path, monkeypatch):
    """Compiled by zig's clang. Processors with a square root instruction do not need the helpers of the integer root."""
    monkeypatch.setenv("ZIG_LOCAL_CACHE_DIR", str(tmp_path / "zig"))
    program = Program((2,), (), (Step(op, (0, 1)[: OPS[op].arity], 2),), ((2,),)).check()
    how = [*STRICT, "-Wno-unused-command-line-argument", "-S", str(written(program, precision, tmp_path)), "-o", "a.s"]
    subprocess.run([sys.executable, "-m", "ziglang", "cc", *how], cwd=tmp_path, check=True)


@pytest.mark.parametrize("method, right", {0: True, 16: True, 32: True, -1: False, 1: False, 2: False}.items())
def test_evaluation_in_another_type_than_written_is_refused(method, right, tmp_path):
    """FLT_EVAL_METHOD: gcc sets 16 on processors with _Float16 and extensions on; 1 and 2 are wider types, -1 is unknown."""
    text, source = portable_source([each()], "double").text, tmp_path / "a.c"
    included = "#include <float.h>\n"
    source.write_text(text.replace(included, f"{included}#undef FLT_EVAL_METHOD\n#define FLT_EVAL_METHOD {method}\n"))
    compilation = subprocess.run(["gcc", "-std=gnu11", "-fsyntax-only", str(source)], capture_output=True, text=True)
    assert (compilation.returncode == 0) is right and right is ("this needs IEEE arithmetic" not in compilation.stderr)


def test_huge_angles(tmp_path):
    """The angle reduction without 128-bit integers agrees with that of reduction.py."""
    program = Program((1,), (), (Step("sincos", (0,), 1),), ((1, 2),)).check()
    x = np.random.default_rng(2).integers(0x4130 << 48, 0x7FF0 << 48, 20_000).view(np.float64)
    x = np.concatenate([x, -x, [float.fromhex("0x1.6ac5b262ca1ffp+849"), 2.0**20, 2.0**1023]])[:, None]
    assert np.isfinite([reduce_huge(y) for y in x[:, 0]]).all()
    assert not differ(compiled(program, "double", tmp_path, ["-O1"])(x), interpreted(program, x)).any()


MUTATIONS = {
    "a bit of a coefficient": (EXP[1].hex(), np.nextafter(EXP[1], 1).item().hex()),
    "a word of 2/pi": (f"{limbs()[9]}", f"{limbs()[9] ^ 1}"),
    "a sign": ("COPYSIGN(V a, V b) { return REAL((BITS(a) & ~SIGN)", "COPYSIGN(V a, V b) { return REAL((BITS(a) & SIGN)"),
    "a rounding": ("s += rest > s;", "s += rest >= s + s;"),
    "a turn": ("if (m == 0) return REAL(sign);", "if (m == 0) return REAL(0);"),
}


@pytest.mark.parametrize("what", MUTATIONS)
def test_a_wrong_bit_is_detected(what, awkward, tmp_path):
    program, x = each(), awkward(4096, 2)
    assert differ(compiled(program, "double", tmp_path, BUILDS["root"], MUTATIONS[what])(x), interpreted(program, x)).any()


def test_a_rolled_call_is_printed_as_a_loop(tmp_path):
    """Heron's method for square roots, with at most forty turns."""
    turn = Program((1, 1), (0.5,), (Step("div", (1, 0), 3), Step("add", (0, 3), 4), Step("mul", (4, 2), 5)), ((5,),)).check()
    calls, known = [], 3
    for _ in range(40):
        calls.append(Step("call", (known - 1 if calls else 2, 0), known, 0))
        known += 1
    program = optimise(Program((1, 1), (1.0,), tuple(calls), ((known - 1,),), (turn,)).check())
    x = np.random.default_rng(0).uniform(0, 9, (300, 2))
    made = portable_source([program], "double")
    assert "k < 40" in made.text and len(re.findall(r"p0\(w", made.text)) == 1
    assert not differ(compiled(program, "double", tmp_path, ["-O2"])(x), interpreted(program, x)).any()


def test_a_guarded_call_is_left_out(tmp_path):
    """The root of what is above 1, else the number itself; the call is made above 1 only."""
    x, guard, given = (ca.SX.sym(name) for name in ("x", "guard", "given"))
    root = guarded("root", [guard, given], [ca.sqrt(given)])
    program = optimise(trace(ca.Function("f", [x], [ca.if_else(x > 1, root(x > 1, x), x)])))
    x = np.random.default_rng(0).uniform(0, 9, (300, 1))
    assert re.search(r"if \(w\[\d+\] != 0\) p0\(w", portable_source([program], "double").text)
    np.testing.assert_array_equal(compiled(program, "double", tmp_path, ["-O2"])(x), np.where(x > 1, np.sqrt(x), x))


def test_unused_functions_are_not_printed():
    program = Program((2,), (), (Step("add", (0, 1), 2),), ((2,),)).check()
    text = portable_source([program], "double").text
    assert not [name for name in (*FUNCTIONS, "SQRT", "FMOD", "SEL", "TWO_OVER_PI") if re.search(rf"\b(pf_)?{name}\(", text)]
