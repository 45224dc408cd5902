"""Readable formulas: short forms of SymPy expressions, LaTeX of matrices, and names of symbols."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import count

import casadi as ca

from pfaffian.errors import ModelError
from pfaffian.model.mechanism import Mechanism
from pfaffian.output.plain import text
from pfaffian.terms.symbolic import SymPy, converted, flat, need_sympy, tidy
from pfaffian.viewer.latex import escaped, rounded, written

MAX_OPERATIONS = 6000
"""Largest number of operations of a term; nobody reads a longer one."""

PAGE = 2000
"""Characters of LaTeX of the letters from which on common parts have names."""

LONGEST_TERM = 40_000
"""Largest number of characters of a term as text."""

NAME_LENGTH, WORTH_A_NAME = 8, 30
"""Characters of the name of a common part, and characters of LaTeX that a name must save, without the line that explains it."""

ANGLES = 60
"""Largest number of operations of a part in which sin^2 + cos^2 = 1 is looked for while terms are computed."""

MAX_COLLECTED = 600
"""Largest number of operations of an entry that is also tried as a sum over sines and cosines."""

LONGEST_RATIO = 4000
"""Largest number of operations of an entry with sines or cosines below a fraction bar that is reduced."""

MAX_FLATTENED = 120
"""Largest number of operations of an entry that is also tried as a sum of products."""

_SIMPLE = re.compile(r"[A-Za-z]\d*|[A-Za-z]_[A-Za-z0-9]+|(?:" + "|".join((
    "alpha", "beta", "gamma", "delta", "epsilon", "eta", "theta", "kappa", "lambda", "mu", "nu", "xi", "rho", "sigma", "tau",
    "phi", "psi", "omega")) + r")(?:_?[A-Za-z0-9]{1,3})?")  # fmt: skip
"""Names that SymPy typesets as letters with indices."""

COMPONENTS = {"qw": "q_{w}", "qx": "q_{x}", "qy": "q_{y}", "qz": "q_{z}", "x": "x", "y": "y", "z": "z", "angle": r"\varphi"} | {
    f"{a}{b}": rf"{letter}_{{{b}}}" for a, letter in (("v", "v"), ("w", r"\omega")) for b in "xyz"
}
"""Component of a joint -> its LaTeX."""

LARGEST_DENOMINATOR = 24
"""Fractions with a larger denominator are written as decimals."""


def formula(m: Mechanism, letter: str, x: ca.SX, known: Sequence[ca.SX], values: list[SymPy], roots: Roots) -> SymPy:
    """A term as a SymPy matrix. Raises ModelError: it is too long to be read, or has no formula.

    letter: of the term.   known: its symbols in CasADi.   values: in SymPy.
    """
    sp = need_sympy()
    if not x.numel():
        return sp.zeros(*x.shape)
    operations = ca.Function("count", [ca.vertcat(*known)], [x]).n_instructions()
    if operations > MAX_OPERATIONS:
        raise ModelError(
            f"equations: {letter} of {m.name!r} has {operations} operations, too many to be read (up to {MAX_OPERATIONS}); "
            "convert parts of it by pf.screws.to_sympy"
        )
    try:
        return converted(x, known, values, tidied=roots)
    except ModelError as error:
        raise ModelError(f"equations: {letter} of {m.name!r}: {str(error).removeprefix('to_sympy: ')}") from error


def readable_matrix(x: SymPy, v: Sequence[SymPy]) -> SymPy:
    """A matrix with entries in their shortest form.   v: velocities, whose products are collected."""
    short = {e: readable(e, v) for e in set(x)}  # of a symmetric matrix each entry once
    return x.applyfunc(short.__getitem__)


def check_length(m: Mechanism, matrices: dict[str, SymPy]) -> None:
    """Raise ModelError if a term is too long to be read."""
    for letter, x in matrices.items():
        length = len(str(x))
        if length > LONGEST_TERM:
            attitude = (
                "describe attitudes by angles (revolute joints in series, with bodies of no mass between them) instead of "
                "quaternions, or " if any(n.endswith(".qw") for n in m.q_names) else ""
            )  # fmt: skip
            raise ModelError(
                f"equations: {letter} of {m.name!r} has {length} characters, more than can be read (up to {LONGEST_TERM}): "
                f"{attitude}convert parts of it by pf.screws.to_sympy"
            )


def typeset(lines: Mapping[str, SymPy], names: dict[SymPy, str], scalars: Collection[str] = ()) -> list[tuple[str, str]]:
    """(letter, LaTeX) of matrices. Where they are longer than a page, common parts have names, in lines of their own.

    scalars: letters whose matrices (1, 1) are written without brackets.
    """
    sp = need_sympy()
    exact = {letter: with_fractions(x) for letter, x in lines.items()}
    write = {letter: written_scalar if letter in scalars else matrix_latex for letter in exact}
    whole = [(letter, write[letter](x, names)) for letter, x in exact.items()]
    if sum(len(x) for _, x in whole) <= PAGE:
        return whole
    named, rest = _named_parts(list(exact.values()), names)
    short = [(sp.latex(s), written(x, names)) for s, x in named]
    short += [(letter, write[letter](x, names)) for letter, x in zip(exact, rest, strict=True)]
    return min((whole, short), key=lambda pairs: sum(len(a) + len(b) for a, b in pairs))


def entries(letter: str, x: SymPy) -> Iterator[str]:
    """The entries of a matrix that are not zero as lines of text."""
    for i in range(x.shape[0]):
        for k in range(x.shape[1]):
            if x[i, k] != 0:
                at = "" if x.shape == (1, 1) else f"[{i}]" if x.shape[1] == 1 else f"[{i}, {k}]"
                yield f"{letter}{at} = {text(need_sympy().sstr(rounded(undivided(x[i, k])), full_prec=False))}"


def unused(name: str, mark: str, used: set[str]) -> str:
    """The name, followed by `mark` as often as needed to differ from those in use; it is then in use too."""
    while name in used:
        name += mark
    used.add(name)
    return name


class Roots:
    """Rewrites results of operations: sin^2 + cos^2 is 1, and the root of a square is its base.

    positive: the bases of these roots, which are then assumed to be above zero.
    """

    def __init__(self) -> None:
        self.positive: set[SymPy] = set()

    def __call__(self, e: SymPy) -> SymPy:
        sp = need_sympy()
        if isinstance(e, sp.Abs):  # SymPy's own root of a square
            self.positive.add(e.args[0])
            return e.args[0]
        if e.is_Pow and abs(e.exp) == sp.Rational(1, 2):
            root = sp.sqrt(sp.factor(_pythagoras(e.base)))
            self.positive |= {x.args[0] for x in root.atoms(sp.Abs)}
            return root.replace(sp.Abs, lambda x: x) ** (2 * e.exp)
        if (e.is_Add or e.is_Mul) and e.count_ops() <= ANGLES and _has_squares(e):
            return min((e, _pythagoras(e)), key=lambda form: form.count_ops())
        return e


def _has_squares(e: SymPy) -> bool:
    """Whether an expression contains the square of a sine or cosine."""
    sp = need_sympy()
    return any(x.exp == 2 and isinstance(x.base, (sp.sin, sp.cos)) for x in e.atoms(sp.Pow))


def _pythagoras(e: SymPy) -> SymPy:
    """The shorter of two sums of products: with sin^2 replaced by 1 - cos^2, or cos^2 by 1 - sin^2."""
    from sympy.simplify.fu import TR5, TR6

    plain = e.expand()
    return min((plain, TR5(plain).expand(), TR6(plain).expand()), key=lambda form: form.count_ops())


def readable(e: SymPy, v: Sequence[SymPy]) -> SymPy:
    """The shortest form of an entry: as it is, with angles summed, or a sum of products, also collected or factored."""
    sp = need_sympy()
    if not e.args:
        return e
    e = _reduced(e)
    forms = [e]
    if e.count_ops() <= MAX_COLLECTED:
        forms += _by_angles(e, v)
    if e.count_ops() <= MAX_FLATTENED:
        forms.append(tidy(e))
        plain = flat(e)
        factored = sp.factor_terms(plain)
        squares = [a * b for i, a in enumerate(v) for b in v[i:] if e.has(a, b)]
        forms += [plain, factored, _angles(factored), *([sp.collect(plain, squares)] if squares else [])]
    return min(forms, key=lambda form: (form.count_ops(), len(str(form))))


def _reduced(e: SymPy) -> SymPy:
    """An entry that is a ratio of polynomials in sines and cosines, with sin^2 + cos^2 = 1 used throughout and cancelled."""
    sp = need_sympy()
    turns = e.atoms(sp.sin, sp.cos)
    angles = sorted({f.args[0] for f in turns}, key=str)
    divided = any(x.exp.is_negative and x.base.has(sp.sin, sp.cos) for x in e.atoms(sp.Pow))
    if not divided or e.count_ops() > LONGEST_RATIO or not all(a.is_Symbol for a in angles):
        return e
    s, c = ({a: sp.Dummy(f"{name}{a}") for a in angles} for name in "sc")
    there = {sp.sin(a): s[a] for a in angles} | {sp.cos(a): c[a] for a in angles}
    plain = e.xreplace(there)
    if not plain.is_rational_function(*s.values(), *c.values()):
        return e
    above, below = sp.fraction(sp.together(plain))
    for a in angles:
        one = s[a] ** 2 + c[a] ** 2 - 1
        above, below = (sp.rem(x.expand(), one, s[a]).expand() for x in (above, below))
    short = sp.cancel(above / below)
    for a in angles:
        short = sp.cancel(sp.rem(sp.fraction(short)[0], s[a] ** 2 + c[a] ** 2 - 1, s[a]) / sp.fraction(short)[1])
    back = {x: f for f, x in there.items()}
    return min((e, sp.factor_terms(short.xreplace(back))), key=lambda form: form.count_ops())


def _by_angles(e: SymPy, v: Sequence[SymPy]) -> list[SymPy]:
    """The expression in sines and cosines of sums of angles alone, collected by them and by the velocities."""
    from sympy.simplify.fu import TR8

    sp = need_sympy()
    if not e.has(sp.sin, sp.cos):
        return []
    sums = TR8(e.expand()).expand()
    turns = sorted(sums.atoms(sp.sin, sp.cos), key=str)
    by_turns = sp.collect(sums, turns, sp.factor)
    squares = [a * b for i, a in enumerate(v) for b in v[i:] if sums.has(a, b)]
    return [by_turns, *([sp.collect(sums, squares, sp.factor_terms)] if squares else [])]


def _angles(e: SymPy) -> SymPy:
    """The expression with products of sines and cosines collected into those of sums of angles."""
    from sympy.simplify.fu import TR10i

    return TR10i(e)


def _named_parts(matrices: list[SymPy], names: dict[SymPy, str]) -> tuple[list[tuple[SymPy, SymPy]], list[SymPy]]:
    """Common parts of matrices, each (name, expression), and the matrices with these names; short parts have no name."""
    sp = need_sympy()
    named, rest = sp.cse(matrices, symbols=(sp.Symbol(f"part{i}") for i in count()), list=False)
    worthwhile, within = list[tuple[SymPy, SymPy]](), dict[SymPy, SymPy]()
    for s, x in named:
        x = x.xreplace(within)
        uses = sum(y.count(s) for _, y in named) + sum(y.count(s) for m in rest for y in m)
        if (len(written(x, names)) - NAME_LENGTH) * (uses - 1) > WORTH_A_NAME:
            worthwhile.append((sp.Symbol(f"k_{{{len(worthwhile) + 1}}}"), x))
            within[s] = worthwhile[-1][0]
        else:
            within[s] = x
    return worthwhile, [m.xreplace(within) for m in rest]


def written_scalar(x: SymPy, names: dict[SymPy, str]) -> str:
    """LaTeX of the entry of a matrix (1, 1)."""
    return written(x[0, 0], names)


def matrix_latex(x: SymPy, names: dict[SymPy, str]) -> str:
    """LaTeX of a matrix; a symmetric one has dots below its diagonal."""
    sp = need_sympy()
    n = x.shape[0]
    if n < 2 or x.shape[1] != n or not x.is_symmetric(simplify=False):
        return written(x, names)
    dots = sp.Symbol("dots")
    upper = sp.Matrix(n, n, lambda i, k: dots if i > k and x[i, k] != 0 else x[i, k])
    return written(upper, names | {dots: r"\cdot"})


def symbol_names(symbols: Sequence[SymPy]) -> dict[SymPy, str]:
    """LaTeX of each symbol. A component of a joint, such as `base.qw`, has the name of its joint only where it needs one."""
    names = {s: _symbol_latex(s.name) for s in symbols}
    parts = {s: s.name.removesuffix("_dot").rpartition(".") for s in symbols}
    for s, (joint, _, component) in parts.items():
        letter = COMPONENTS.get(component)
        if not joint or letter is None:
            continue
        letter = rf"\dot{{{letter}}}" if s.name.endswith("_dot") else letter
        names[s] = letter if letter not in names.values() else rf"{{{letter}}}^{{{_symbol_latex(joint)}}}"
    return names


def with_fractions(x: SymPy) -> SymPy:
    """A matrix with small fractions as they are, and other numbers as decimals."""
    sp = need_sympy()
    x = undivided(x)
    small = {n: sp.Symbol(f"fraction{n.p}/{n.q}") for n in x.atoms(sp.Rational) if 1 < n.q <= LARGEST_DENOMINATOR}
    back = {s: n for n, s in small.items()}
    return rounded(x.xreplace(small)).xreplace(back)


def undivided(x: SymPy) -> SymPy:
    """An expression or a matrix in which no sum has a number before it that is written as a decimal: 4.905 inside a sum, not
    0.005 before it and 981 within."""
    sp = need_sympy()

    def inside(e: SymPy) -> SymPy:
        number, (total,) = e.args[0], [y for y in e.args if y.is_Add]
        return sp.Mul(*[y for y in e.args[1:] if not y.is_Add], sp.Add(*[number * term for term in total.args]))

    return x.replace(_divided_sum, inside)


def _divided_sum(e: SymPy) -> bool:
    """Whether e is a product of one sum and a fraction that is written as a decimal."""
    return e.is_Mul and e.args[0].is_Rational and e.args[0].q > LARGEST_DENOMINATOR and sum(y.is_Add for y in e.args) == 1


def _symbol_latex(whole: str) -> str:
    """LaTeX of a name: letters and Greek as they are, words upright, anything else escaped; a dot for a rate."""
    name, dot = (whole.removesuffix("_dot"), True) if whole.endswith("_dot") else (whole, False)
    if _SIMPLE.fullmatch(name):
        word = need_sympy().latex(need_sympy().Symbol(name))
    elif re.fullmatch("[A-Za-z]+", name):
        word = rf"\mathrm{{{name}}}"
    else:
        word = rf"\text{{{escaped(name)}}}"
    return rf"\dot{{{word}}}" if dot else word
