"""The equations of motion in letters: SymPy matrices in the machine's own names, as text and as LaTeX."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

import casadi as ca

from pfaffian.errors import ModelError
from pfaffian.model import reprs
from pfaffian.model.mechanism import Mechanism, as_mechanism
from pfaffian.output.plain import LONGEST, text
from pfaffian.terms.pfaffian import row_names
from pfaffian.terms.symbolic import SymPy, converted, flat, need_sympy, tidy
from pfaffian.terms.terms import Terms, has_losses, symbols
from pfaffian.viewer.latex import escaped, rounded, written

MAX_OPERATIONS = 6000
"""Largest number of operations of a term; nobody reads a longer one."""

PAGE = 2000
"""Characters of LaTeX of the letters from which on common parts have names."""

LONGEST_TERM = 40_000
"""Largest number of characters of a term as text."""

NAME_LENGTH, WORTH_A_NAME = 8, 30
"""Characters of the name of a common part, and characters of LaTeX that a name must save, without the line that explains it."""

SAME = 1e-9
"""Relative difference below which two energies count as equal: rounding makes 1e-14."""

KINETIC = r"\tfrac{1}{2} v^{T} M v"

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

LETTERS = {
    "M": "mass matrix", "c": "Coriolis, centrifugal and gravity force", "f": "applied forces other than inputs",
    "B": "input matrix", "A": "constraint rows", "b": "right-hand side of A v_dot = b",
    "V": "potential energy", "T": "kinetic energy",
}  # fmt: skip
"""Letter of a term -> its meaning."""


@dataclass(frozen=True, eq=False)
class Equations:
    """M v_dot + c = f + B u + A^T lambda, A v_dot = b in SymPy; made by `equations`.

    M: (nv, nv), c: (nv, 1), f: (nv, 1), B: (nv, nu), A: (rows, nv), b: (rows, 1), V, T: (1, 1) potential and kinetic energy.
    q, v, u, p: symbols of coordinates, velocities, inputs and parameters, in the mechanism's order.   t: symbol of time.
    rows: names of the rows of A.   mechanism: its name.
    positive: expressions above zero wherever the formulas hold, such as cos(lean): roots of their squares were taken.
    """

    M: SymPy
    c: SymPy
    f: SymPy
    B: SymPy
    A: SymPy
    b: SymPy
    V: SymPy
    T: SymPy
    q: tuple[SymPy, ...]
    v: tuple[SymPy, ...]
    u: tuple[SymPy, ...]
    p: tuple[SymPy, ...]
    t: SymPy
    rows: tuple[str, ...]
    mechanism: str
    positive: tuple[SymPy, ...] = ()

    def __repr__(self) -> str:
        sizes = f"{len(self.v)} velocities, {len(self.rows)} rows"
        return reprs.words(self, f"of {self.mechanism!r}", sizes)

    def __str__(self) -> str:
        lines = [f"{text(self.mechanism, LONGEST)}: M v_dot + c = f + B u + A^T lambda,  A v_dot = b"]
        lines += [f"{x} = ({', '.join(text(s.name) for s in getattr(self, x))})" for x in "vu" if getattr(self, x)]
        for letter, x in self._lines():
            for i in range(x.shape[0]):
                for k in range(x.shape[1]):
                    if x[i, k] != 0:
                        at = "" if x.shape == (1, 1) else f"[{i}]" if x.shape[1] == 1 else f"[{i}, {k}]"
                        lines.append(f"{letter}{at} = {text(rounded(x[i, k]))}")
        return "\n".join(lines)

    def latex(self) -> str:
        """The equations as LaTeX, one line for each letter; names from files are escaped."""
        names = symbol_names((*self.q, *self.v, *self.u, *self.p, self.t))
        head = [r"M \dot v + c = f + B u + A^{T} \lambda", r"A \dot v = b"] if self.rows else [r"M \dot v + c = f + B u"]
        columns = [f"{x} = {written(need_sympy().Matrix(getattr(self, x)), names)}" for x in "vu" if getattr(self, x)]
        blocks = [f"{letter} = {x}" for letter, x in self._typeset(names)]
        holds = [", ".join(f"{written(x, names)} > 0" for x in self.positive)] if self.positive else []
        return "\\begin{gather*}\n" + " \\\\\n".join([*head, *columns, *blocks, *holds]) + "\n\\end{gather*}"

    def _typeset(self, names: dict[SymPy, str]) -> list[tuple[str, str]]:
        """(letter, LaTeX) of each line. Where they are longer than a page, common parts have names, in lines of their own."""
        sp = need_sympy()
        lines = {letter: _with_fractions(x) for letter, x in self._lines()}
        if _is_quadratic(self.T, self.M, self.v):
            lines.pop("T", None)
        whole = [(letter, _matrix_latex(x, names)) for letter, x in lines.items()]
        if sum(len(x) for _, x in whole) > PAGE:
            named, rest = _named_parts(list(lines.values()), names)
            short = [(sp.latex(s), written(x, names)) for s, x in named]
            short += [(letter, _matrix_latex(x, names)) for letter, x in zip(lines, rest, strict=True)]
            whole = min((whole, short), key=lambda pairs: sum(len(a) + len(b) for a, b in pairs))
        return [*whole, ("T", KINETIC)] if "T" not in lines and not self.T.is_zero_matrix else whole

    def _repr_latex_(self) -> str:
        return f"$\\displaystyle {self.latex().replace('gather*', 'gathered')}$"

    def _lines(self) -> Iterator[tuple[str, SymPy]]:
        """The letters with their matrices, except those that are zero or empty."""
        for letter in LETTERS:
            x = getattr(self, letter)
            if len(x) and not x.is_zero_matrix:
                yield letter, x


def equations(m: Mechanism) -> Equations:
    """Write the equations of motion in letters and in the machine's own names. Needs SymPy.

        M v_dot + c = f + B u + A^T lambda,   A v_dot = b

    Coordinates, inputs and parameters are symbols with their names; a velocity that is the rate of a coordinate has its name
    with `_dot`. Sines and cosines of sums of angles are collected where that is shorter, and numbers that look exact are exact
    fractions. A notebook displays the result as formulas; print shows it as text.

    Args:
        m: the mechanism, small enough to be read.
    Returns:
        Equations: SymPy matrices M: (nv, nv), c: (nv, 1), f: (nv, 1) applied forces other than inputs, B: (nv, nu), A: (rows,
        nv), b: (rows, 1), V and T: (1, 1) energies; tuples of symbols q, v, u, p; the symbol t; `latex()` returns text.
    Raises ModelError: a term has too many operations to be read, or switches between formulas; friction follows the loads
        of joints; SymPy is not installed.

    Example:
        >>> import pfaffian as pf
        >>> mass, l = pf.Parameter("m", 2.0, "kg"), pf.Parameter("l", 1.0, "m")
        >>> bob, hinge = pf.body("bob", mass, com=(0, 0, -l)), pf.joint("theta", "revolute", "world", "bob", axis=(0, 1, 0))
        >>> e = pf.equations(pf.mechanism("pendulum", [bob], [hinge], parameters=[mass, l]))
        >>> e.M, e.c, e.V
        (Matrix([[l**2*m]]), Matrix([[981*l*m*sin(theta)/100]]), Matrix([[-981*l*m*cos(theta)/100]]))
        >>> print(e.latex().splitlines()[3])
        M = \\left(\\begin{matrix}l^{2} m\\end{matrix}\\right) \\\\
    """
    sp = need_sympy()
    T = symbols(as_mechanism(m))
    if has_losses(m):
        raise ModelError(
            f"mechanism {m.name!r}: friction that follows the loads of joints is solved with the motion, no formula; "
            "leave it out, m.with_(forces=[...])"
        )
    used: set[str] = set()

    def named(names: Iterable[str], mark: str) -> tuple[SymPy, ...]:
        return tuple(sp.Symbol(_unused(n, mark, used), real=True) for n in names)

    q = named(m.q_names, "_q")
    v = named([f"{n}_dot" if n in m.q_names else n for n in m.v_names], "_v")
    u, p = named(m.u_names, "_u"), named(m.p_names, "_p")
    (t,) = named(["t"], "_time")
    known = [T.q, T.v, T.u, m.p_symbols, T.t], [*q, *v, *u, *p, t]
    roots = Roots()
    matrices = {letter: _term(m, letter, ca.SX(x), *known, v, roots) for letter, x in _terms(T)}
    _check_length(m, matrices)
    where = tuple(sorted(roots.positive, key=str))
    return Equations(**matrices, q=q, v=v, u=u, p=p, t=t, rows=row_names(T.kinematics), mechanism=m.name, positive=where)


def _terms(T: Terms) -> Iterator[tuple[str, Any]]:
    """The letters with their expressions."""
    for letter in LETTERS:
        yield letter, getattr(T, letter)


def _unused(name: str, mark: str, used: set[str]) -> str:
    """The name, followed by `mark` as often as needed to differ from those in use; it is then in use too."""
    while name in used:
        name += mark
    used.add(name)
    return name


def _term(
    m: Mechanism, letter: str, x: ca.SX, known: Sequence[ca.SX], values: list[SymPy], v: Sequence[SymPy], roots: Roots
) -> SymPy:
    """A term as a SymPy matrix in readable form.   letter: of the term.   known: its symbols in CasADi.   values: in SymPy."""
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
        matrix = converted(x, known, values, tidied=roots)
    except ModelError as error:
        raise ModelError(f"equations: {letter} of {m.name!r}: {str(error).removeprefix('to_sympy: ')}") from error
    readable = {e: _readable(e, v) for e in set(matrix)}  # of a symmetric matrix each entry once
    return matrix.applyfunc(readable.__getitem__)


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


def _is_quadratic(T: SymPy, M: SymPy, v: Sequence[SymPy]) -> bool:
    """Whether the kinetic energy (1, 1) is v^T M v / 2, judged at two points that are not special."""
    sp = need_sympy()
    column = sp.Matrix(list(v))
    both = T[0, 0], (column.T * M * column)[0, 0] / 2 if v else sp.Integer(0)
    symbols = sorted(set().union(*(x.free_symbols for x in both)), key=str)
    for begin in (0.31, 0.47):
        at = {s: begin + 0.173 * i for i, s in enumerate(symbols)}
        a, b = (complex(x.evalf(subs=at)) for x in both)
        if abs(a - b) > SAME * abs(a):
            return False
    return True


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


def _matrix_latex(x: SymPy, names: dict[SymPy, str]) -> str:
    """LaTeX of a matrix; a symmetric one has dots below its diagonal."""
    sp = need_sympy()
    n = x.shape[0]
    if n < 2 or x.shape[1] != n or not x.is_symmetric(simplify=False):
        return written(x, names)
    dots = sp.Symbol("dots")
    upper = sp.Matrix(n, n, lambda i, k: dots if i > k and x[i, k] != 0 else x[i, k])
    return written(upper, names | {dots: r"\cdot"})


def _check_length(m: Mechanism, matrices: dict[str, SymPy]) -> None:
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


def _readable(e: SymPy, v: Sequence[SymPy]) -> SymPy:
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


COMPONENTS = {"qw": "q_{w}", "qx": "q_{x}", "qy": "q_{y}", "qz": "q_{z}", "x": "x", "y": "y", "z": "z", "angle": r"\varphi"} | {
    f"{a}{b}": rf"{letter}_{{{b}}}" for a, letter in (("v", "v"), ("w", r"\omega")) for b in "xyz"
}
"""Component of a joint -> its LaTeX."""


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


def _with_fractions(x: SymPy) -> SymPy:
    """A matrix with small fractions as they are, and other numbers as decimals."""
    sp = need_sympy()
    small = {n: sp.Symbol(f"fraction{n.p}/{n.q}") for n in x.atoms(sp.Rational) if 1 < n.q <= LARGEST_DENOMINATOR}
    back = {s: n for n, s in small.items()}
    return rounded(x.xreplace(small)).xreplace(back)


LARGEST_DENOMINATOR = 24
"""Fractions with a larger denominator are written as decimals."""


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
