"""The equations of motion in letters: SymPy matrices in the machine's own names, as text and as LaTeX."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
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

MAX_FLATTENED = 250
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
        names = {s: _symbol_latex(s) for s in (*self.q, *self.v, *self.u, *self.p, self.t)}
        head = [r"M \dot v + c = f + B u + A^{T} \lambda", r"A \dot v = b"] if self.rows else [r"M \dot v + c = f + B u"]
        columns = [f"{x} = {written(need_sympy().Matrix(getattr(self, x)), names)}" for x in "vu" if getattr(self, x)]
        blocks = [*head, *columns, *(f"{letter} = {written(rounded(x), names)}" for letter, x in self._lines())]
        return "\\begin{gather*}\n" + " \\\\\n".join(blocks) + "\n\\end{gather*}"

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
    matrices = {letter: _term(m, letter, ca.SX(x), *known, v) for letter, x in _terms(T)}
    return Equations(**matrices, q=q, v=v, u=u, p=p, t=t, rows=row_names(T.kinematics), mechanism=m.name)


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


def _term(m: Mechanism, letter: str, x: ca.SX, known: Sequence[ca.SX], values: list[SymPy], v: Sequence[SymPy]) -> SymPy:
    """A term as a SymPy matrix in readable form.   letter: of the term.   known: its symbols in CasADi.   values: in SymPy."""
    sp = need_sympy()
    if not x.numel():
        return sp.zeros(*x.shape)
    count = ca.Function("count", [ca.vertcat(*known)], [x]).n_instructions()
    if count > MAX_OPERATIONS:
        raise ModelError(
            f"equations: {letter} of {m.name!r} has {count} operations, too many to be read (up to {MAX_OPERATIONS}); convert "
            "parts of it by pf.screws.to_sympy"
        )
    try:
        matrix = converted(x, known, values)
    except ModelError as error:
        raise ModelError(f"equations: {letter} of {m.name!r}: {str(error).removeprefix('to_sympy: ')}") from error
    return matrix.applyfunc(lambda e: _readable(e, v))


def _readable(e: SymPy, v: Sequence[SymPy]) -> SymPy:
    """The shortest form of an entry: as it is, with angles summed, or a sum of products, also collected or factored."""
    sp = need_sympy()
    if not e.args:
        return e
    forms = [e, tidy(e)]
    if e.count_ops() <= MAX_FLATTENED:
        plain = flat(e)
        factored = sp.factor_terms(plain)
        squares = [a * b for i, a in enumerate(v) for b in v[i:] if e.has(a, b)]
        forms += [plain, factored, _angles(factored), *([sp.collect(plain, squares)] if squares else [])]
    return min(forms, key=lambda form: (form.count_ops(), len(str(form))))


def _angles(e: SymPy) -> SymPy:
    """The expression with products of sines and cosines collected into those of sums of angles."""
    from sympy.simplify.fu import TR10i

    return TR10i(e)


def _symbol_latex(s: SymPy) -> str:
    """LaTeX of a symbol: letters and Greek as they are, words upright, anything else escaped; a dot for a rate."""
    name, dot = (s.name[: -len("_dot")], True) if s.name.endswith("_dot") else (s.name, False)
    if _SIMPLE.fullmatch(name):
        word = need_sympy().latex(need_sympy().Symbol(name))
    elif re.fullmatch("[A-Za-z]+", name):
        word = rf"\mathrm{{{name}}}"
    else:
        word = rf"\text{{{escaped(name)}}}"
    return rf"\dot{{{word}}}" if dot else word
