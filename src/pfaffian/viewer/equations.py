"""The equations of motion in letters: SymPy matrices in the machine's own names, as text and as LaTeX."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import casadi as ca

from pfaffian.errors import ModelError
from pfaffian.model import reprs
from pfaffian.model.mechanism import Mechanism, as_mechanism
from pfaffian.output.plain import LONGEST, text
from pfaffian.terms.pfaffian import row_names
from pfaffian.terms.symbolic import SymPy, need_sympy
from pfaffian.terms.terms import Terms, has_losses, symbols
from pfaffian.viewer.formulas import Roots, check_length, entries, formula, readable_matrix, symbol_names, typeset, unused
from pfaffian.viewer.latex import written
from pfaffian.viewer.linear_equations import LinearisedEquations, linear_equations

SAME = 1e-9
"""Relative difference below which two energies count as equal: rounding makes 1e-14."""

KINETIC = r"\tfrac{1}{2} v^{T} M v"

LETTERS = {
    "M": "mass matrix", "c": "Coriolis, centrifugal and gravity force", "f": "applied forces other than inputs",
    "B": "input matrix", "A": "constraint rows", "b": "right-hand side of A v_dot = b",
    "V": "potential energy", "T": "kinetic energy",
}  # fmt: skip
"""Letter of a term -> its meaning."""

LOADS = {"f": "f", "B": "B u", "A": "A^T lambda"}
"""Letter of a term -> how it stands on the right of the equations of motion."""


@dataclass(frozen=True, eq=False)
class Equations:
    """M v_dot + c = f + B u + A^T lambda, A v_dot = b, q_dot = K v in SymPy; made by `equations`.

    M: (nv, nv), c: (nv, 1), f: (nv, 1), B: (nv, nu), A: (rows, nv), b: (rows, 1), V, T: (1, 1) potential and kinetic energy.
    K: (nq, nv) rates of the coordinates per velocity.
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
    K: SymPy
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
        lines = [f"{text(self.mechanism, LONGEST)}: {',  '.join(self._motion())}"]
        lines += [f"{x} = ({', '.join(text(s.name) for s in getattr(self, x))})" for x in "vu" if getattr(self, x)]
        for letter, x in self._lines():
            lines += entries(letter, x)
        for q, x in self._rates():
            lines += entries(f"{text(q.name)}_dot", need_sympy().Matrix([[x]]))
        return "\n".join(lines)

    def latex(self) -> str:
        """The equations as LaTeX, one line for each letter; names from files are escaped."""
        names = symbol_names((*self.q, *self.v, *self.u, *self.p, self.t))
        head = [x.replace("v_dot", r"\dot v").replace("A^T lambda", r"A^{T} \lambda") for x in self._motion()]
        columns = [f"{x} = ({', '.join(names[s] for s in of)})^{{T}}" for x in "vu" if (of := getattr(self, x))]
        blocks = [f"{letter} = {x}" for letter, x in self._typeset(names)]
        holds = [", ".join(f"{written(x, names)} > 0" for x in self.positive)] if self.positive else []
        return "\\begin{gather*}\n" + " \\\\\n".join([*head, *columns, *blocks, *holds]) + "\n\\end{gather*}"

    def _typeset(self, names: dict[SymPy, str]) -> list[tuple[str, str]]:
        """(letter, LaTeX) of each line."""
        lines = dict(self._lines())
        quadratic = _is_quadratic(self.T, self.M, self.v) and lines.pop("T", None) is not None
        rates = {rf"\dot{{{names[q]}}}": need_sympy().Matrix([[x]]) for q, x in self._rates()}
        return [*typeset(lines | rates, names, {"V", "T", *rates}), *([("T", KINETIC)] if quadratic else [])]

    def _repr_latex_(self) -> str:
        return f"$\\displaystyle {self.latex().replace('gather*', 'gathered')}$"

    def _motion(self) -> list[str]:
        """The equations with the letters that are not zero."""
        present = dict(self._lines())
        loads = " + ".join(term for letter, term in LOADS.items() if letter in present)
        rows = [f"A v_dot = {'b' if 'b' in present else '0'}"] if self.rows else []
        return [f"M v_dot{' + c' if 'c' in present else ''} = {loads or '0'}", *rows]

    def _lines(self) -> Iterator[tuple[str, SymPy]]:
        """The letters with their matrices, except those that are zero or empty."""
        for letter in LETTERS:
            x = getattr(self, letter)
            if len(x) and not x.is_zero_matrix:
                yield letter, x

    def _rates(self) -> Iterator[tuple[SymPy, SymPy]]:
        """The coordinates whose rates are not named after them, each with its rate."""
        rates = self.K * need_sympy().Matrix(list(self.v)) if self.v else []
        yield from ((q, x) for q, x in zip(self.q, rates, strict=True) if str(x) != f"{q}_dot")


def equations(m: Mechanism, *, about: Any = None) -> Equations | LinearisedEquations:
    """Write the equations of motion in letters and in the machine's own names. Needs SymPy.

        M v_dot + c = f + B u + A^T lambda,   A v_dot = b,   q_dot = K v

    Coordinates, inputs and parameters are symbols with their names; a velocity that is the rate of a coordinate has its name
    with `_dot`. Sines and cosines of sums of angles are collected where that is shorter, and numbers that look exact are exact
    fractions. A notebook displays the result as formulas; print shows it as text.

    Near a steady state `about`, an equilibrium or a motion at constant speeds, they are linear in the changes y of the
    independent coordinates, measured along velocities, and w of the independent velocities:

        M w_dot + C w + K y = B du,   y_dot = D y + E w

    Constraints are eliminated, also those of rolling: the velocities that come last in the mechanism's order are independent.

    Args:
        m: the mechanism, small enough to be read.
        about: None, or a steady state: (q, v), (q, v, u) or an object with q, such as an equilibrium; each an array, or {name:
            number} with the other coordinates neutral and the other velocities zero. Numbers may be expressions of the
            mechanism's parameters.
    Returns:
        Equations: SymPy matrices M: (nv, nv), c: (nv, 1), f: (nv, 1) applied forces other than inputs, B: (nv, nu), A: (rows,
        nv), b: (rows, 1), V and T: (1, 1) energies, K: (nq, nv); tuples of symbols q, v, u, p; the symbol t; `latex()` returns
        text.
        With `about`, LinearisedEquations: M, C: (l, l), K: (l, k), B: (l, nu), D: (k, k), E: (k, l); symbols y, w, u, p.
    Raises ModelError: a term has too many operations to be read, or switches between formulas; friction follows the loads
        of joints; SymPy is not installed; the state `about` is off the constraints, not steady, or so for the defaults of the
        parameters alone; the equations contain the time.

    Example:
        >>> import pfaffian as pf
        >>> mass, l = pf.Parameter("m", 2.0, "kg"), pf.Parameter("l", 1.0, "m")
        >>> bob, hinge = pf.body("bob", mass, com=(0, 0, -l)), pf.joint("theta", "revolute", "world", "bob", axis=(0, 1, 0))
        >>> e = pf.equations(pf.mechanism("pendulum", [bob], [hinge], parameters=[mass, l]))
        >>> e.M, e.c, e.V
        (Matrix([[l**2*m]]), Matrix([[981*l*m*sin(theta)/100]]), Matrix([[-981*l*m*cos(theta)/100]]))
        >>> print(e.latex().splitlines()[3])
        M = \\left(\\begin{matrix}l^{2} m\\end{matrix}\\right) \\\\

        The same pendulum upside down, about its other equilibrium:

        >>> from math import pi
        >>> m = pf.mechanism("pendulum", [bob], [hinge], parameters=[mass, l])
        >>> pf.equations(m, about=({"theta": pi}, {})).K
        Matrix([[-981*l*m/100]])
    """
    sp = need_sympy()
    T = symbols(as_mechanism(m))
    if has_losses(m):
        raise ModelError(
            f"mechanism {m.name!r}: friction that follows the loads of joints is solved with the motion, no formula; "
            "leave it out, m.with_(forces=[...])"
        )
    if about is not None:
        return linear_equations(m, about)
    used: set[str] = set()

    def named(names: Iterable[str], mark: str) -> tuple[SymPy, ...]:
        return tuple(sp.Symbol(unused(n, mark, used), real=True) for n in names)

    q = named(m.q_names, "_q")
    v = named([f"{n}_dot" if n in m.q_names else n for n in m.v_names], "_v")
    u, p = named(m.u_names, "_u"), named(m.p_names, "_p")
    (t,) = named(["t"], "_time")
    known = [T.q, T.v, T.u, m.p_symbols, T.t], [*q, *v, *u, *p, t]
    roots = Roots()
    terms = {letter: formula(m, letter, ca.SX(x), *known, roots) for letter, x in _terms(T)}
    matrices = {letter: readable_matrix(x, v) for letter, x in terms.items()}
    check_length(m, matrices)
    where = tuple(sorted(roots.positive, key=str))
    return Equations(**matrices, q=q, v=v, u=u, p=p, t=t, rows=row_names(T.kinematics), mechanism=m.name, positive=where)


def _terms(T: Terms) -> Iterator[tuple[str, Any]]:
    """The letters with their expressions."""
    for letter in LETTERS:
        yield letter, getattr(T, letter)
    yield "K", T.kinematics.kinematic_matrix


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
