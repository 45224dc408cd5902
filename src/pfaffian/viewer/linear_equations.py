"""The equations of motion linearised at a state, in letters: SymPy matrices, as text and as LaTeX."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from pfaffian.errors import ModelError, brief
from pfaffian.evaluate.arrays import unknown
from pfaffian.model import reprs
from pfaffian.model.mechanism import Mechanism, check_configuration
from pfaffian.model.number import parameter_of, scalar, vector
from pfaffian.output.plain import LONGEST, text
from pfaffian.terms.connection import refuse_distributions
from pfaffian.terms.pfaffian import ACCELERATION, POSITION, row_names
from pfaffian.terms.symbolic import SymPy, need_sympy
from pfaffian.terms.terms import Terms, symbols
from pfaffian.viewer.formulas import Roots, check_length, entries, formula, readable_matrix, symbol_names, typeset, unused
from pfaffian.viewer.latex import written

STEADY = 1e-6
"""Forces of a steady state and residuals of its constraints, relative to their parts: as for the state of a run."""

ROUNDING = 1e-12
"""Entry of a matrix, relative to its largest one, that is rounding of other numbers."""

SPREAD = (0.0, 0.11)
"""Relative changes of the parameters from their defaults at which a state is judged."""


@dataclass(frozen=True, eq=False)
class LinearisedEquations:
    """M w_dot + C w + K y = B du, y_dot = D y + E w in SymPy, near a steady state; made by `equations(m, about=...)`.

    w: (l,) changes of the independent velocities.   y: (k,) changes of the independent coordinates, measured along velocities.
    M: (l, l), C: (l, l), K: (l, k), B: (l, nu).   D: (k, k), E: (k, l).   u: (nu,) changes of the inputs.   p: parameters.
    mechanism: its name.
    positive: as in `Equations`.
    """

    M: SymPy
    C: SymPy
    K: SymPy
    B: SymPy
    D: SymPy
    E: SymPy
    y: tuple[SymPy, ...]
    w: tuple[SymPy, ...]
    u: tuple[SymPy, ...]
    p: tuple[SymPy, ...]
    mechanism: str
    positive: tuple[SymPy, ...] = ()

    def __repr__(self) -> str:
        sizes = f"{len(self.y)} coordinates, {len(self.w)} velocities"
        return reprs.words(self, f"of {self.mechanism!r}", sizes)

    def __str__(self) -> str:
        lines = [f"{text(self.mechanism, LONGEST)}: {self._motion()},  {'y_dot = w' if self._rates() else 'y_dot = D y + E w'}"]
        lines += [f"{x} = ({', '.join(text(s.name) for s in getattr(self, x))})" for x in "ywu" if getattr(self, x)]
        for letter, x in self._lines():
            lines += entries(letter, x)
        return "\n".join(lines)

    def latex(self) -> str:
        """The equations as LaTeX, one line for each letter; names from files are escaped."""
        sp = need_sympy()
        names = symbol_names((*self.y, *self.w, *self.u, *self.p))
        head = self._motion().replace("w_dot", r"\dot w").replace("du", r"\, \delta u")
        rates = r"\dot y = w" if self._rates() else r"\dot y = D y + E w"
        columns = [f"{x} = {written(sp.Matrix(getattr(self, x)), names)}" for x in "ywu" if getattr(self, x)]
        blocks = [f"{letter} = {x}" for letter, x in typeset(dict(self._lines()), names)]
        holds = [", ".join(f"{written(x, names)} > 0" for x in self.positive)] if self.positive else []
        return "\\begin{gather*}\n" + " \\\\\n".join([head, rates, *columns, *blocks, *holds]) + "\n\\end{gather*}"

    def _repr_latex_(self) -> str:
        return f"$\\displaystyle {self.latex().replace('gather*', 'gathered')}$"

    def _motion(self) -> str:
        """The equation of motion with the letters that are not zero."""
        parts = [f"{x} {y}" for x, y in (("M", "w_dot"), ("C", "w"), ("K", "y")) if not getattr(self, x).is_zero_matrix]
        return f"{' + '.join(parts)} = {'B du' if self.u else '0'}"

    def _rates(self) -> bool:
        """Whether w are the rates of y, one by one."""
        return self.D.is_zero_matrix and need_sympy().eye(len(self.y)) == self.E

    def _lines(self) -> Iterator[tuple[str, SymPy]]:
        """The letters with their matrices, except those that are zero or empty, or say no more than y_dot = w."""
        for letter in "MCKB" if self._rates() else "MCKBDE":
            x = getattr(self, letter)
            if len(x) and not x.is_zero_matrix:
                yield letter, x


def linear_equations(m: Mechanism, about: Any) -> LinearisedEquations:
    """The equations of motion linearised at a steady state; `pf.equations` documents arguments and errors."""
    refuse_distributions(m, "equations")
    sp, T = need_sympy(), symbols(m)
    if T.rows.at(ACCELERATION):
        name = row_names(T.kinematics)[T.rows.at(ACCELERATION)[0]]
        raise ModelError(f"equations: row {name!r} of {m.name!r} holds accelerations alone, so that no state fulfils it")
    state = _state(m, about)
    _check_on_constraints(T, state)
    used: set[str] = set()
    p, u, w, y = (_named(sp, names, mark, used) for names, mark in (
        (m.p_names, "_p"), (m.u_names, "_u"), (_rate_names(m), "_v"), (_turn_names(m), "_q")))  # fmt: skip
    roots = Roots()
    near = _DerivativesAt.of(T, state, p, roots)
    free = _reduced_rows(near.A[T.rows.at(POSITION), :])
    motion = _reduced_rows(near.A)
    if not motion.free:
        raise ModelError(f"equations: the constraints of {m.name!r} leave no motion at this state")
    parts = _linear(near, free, motion)
    _check_steady(
        T, state, p, parts, motion.N.T * near.F, sp.Matrix(len(free.free), 1, [near.v[i] for i in free.free]), motion.free
    )
    needed = _needed(parts, free.free, motion.free)
    matrices = {
        "M": parts.M, "C": parts.C, "K": parts.K[:, needed], "B": parts.B,
        "D": parts.D[needed, needed], "E": parts.E[needed, :],
    }  # fmt: skip
    matrices = {letter: _shortened(x) for letter, x in matrices.items()}
    check_length(m, matrices)
    where = tuple(sorted(roots.positive, key=str))
    coordinates, speeds = [y[free.free[k]] for k in needed], [w[i] for i in motion.free]
    return LinearisedEquations(**matrices, y=tuple(coordinates), w=tuple(speeds), u=u, p=p, mechanism=m.name, positive=where)


def _named(sp: Any, names: Sequence[str], mark: str, used: set[str]) -> tuple[SymPy, ...]:
    """Real symbols of these names, all different."""
    return tuple(sp.Symbol(unused(n, mark, used), real=True) for n in names)


def _rate_names(m: Mechanism) -> list[str]:
    """Names of changes of the velocities, as in `equations`."""
    return [f"{n}_dot" if n in m.q_names else n for n in m.v_names]


def _turn_names(m: Mechanism) -> list[str]:
    """Names of changes of the coordinates along the velocities: base.vx is the rate of base.x, base.wx that of base.turn_x."""
    found = []
    for n in m.v_names:
        joint, _, component = n.rpartition(".")
        known = {f"v{a}": a for a in "xyz"} | {f"w{a}": f"turn_{a}" for a in "xyz"}
        found.append(f"{joint}.{known[component]}" if joint and component in known else n)
    return found


class _SteadyState(NamedTuple):
    """A state in terms of the parameters.   q: (nq, 1).   v: (nv, 1).   u: (nu, 1)."""

    q: ca.SX
    v: ca.SX
    u: ca.SX

    def put(self, T: Terms, x: Sequence[Any]) -> list[ca.SX]:
        """Expressions of terms at this state, at time zero."""
        here = ca.vertcat(T.q, T.v, T.u, T.t), ca.vertcat(*self, 0)
        return [ca.substitute(ca.densify(ca.SX(e)), *here) for e in x]


def _state(m: Mechanism, about: Any) -> _SteadyState:
    """The state that a user gives: an object with q, and v and u if it has them, or (q, v) or (q, v, u)."""
    parts = (about.q, getattr(about, "v", None), getattr(about, "u", None)) if hasattr(about, "q") else about
    if not isinstance(parts, (tuple, list)) or len(parts) not in (2, 3):
        raise ModelError(f"about: a state (q, v) or (q, v, u) is needed, each an array or {{name: number}}, got {brief(about)}")
    names, defaults = (m.q_names, m.v_names, m.u_names), (m.neutral(), np.zeros(m.nv), np.zeros(m.nu))
    both = zip((*parts, None)[:3], names, defaults, ("about: q", "about: v", "about: u"), strict=True)
    q, v, u = (_column(*x) for x in both)
    strange = [s for s in ca.symvar(ca.vertcat(q, v, u)) if not ca.depends_on(m.p_symbols, s)]
    if strange:
        owner = parameter_of(strange[0])
        name = owner.name if owner else strange[0].name()
        raise ModelError(f"about: {name!r} is no parameter of {m.name!r}: list it in the mechanism's parameters")
    if q.is_constant():
        q = ca.SX(check_configuration(m, np.array(ca.DM(q)).T)[0])
    return _SteadyState(q, v, u)


def _column(value: Any, names: Sequence[str], default: np.ndarray, what: str) -> ca.SX:
    """(n, 1) numbers or expressions of parameters, in any of the forms of a state."""
    if value is None:
        return ca.SX(default)
    if not isinstance(value, Mapping):
        return vector(value, len(names), what)
    column = ca.SX(default)
    for name, entry in value.items():
        if name not in names:
            raise unknown(name, names, what)
        column[list(names).index(name)] = scalar(entry, f"{what}[{name!r}]")
    return column


def _parameter_sets(m: Mechanism) -> list[np.ndarray]:
    """Parameters at which a state is judged: the defaults, and others, each changed by another factor."""
    p = np.array(m.p_defaults, dtype=float)
    return [p * (1 + spread * (1 + np.arange(len(p)) / max(len(p), 1))) for spread in SPREAD]


def _check_on_constraints(T: Terms, state: _SteadyState) -> None:
    """Raise ModelError unless the state fulfils the constraints, whatever the parameters are."""
    m = T.mechanism
    inverse = T.inverse_scales(STEADY)
    off = ca.horzcat(T.rows.phi * inverse, T.rows.eta / (1 / inverse + ca.sqrt((T.A**2) @ T.v**2)))
    residuals = ca.Function("residuals", [m.p_symbols], state.put(T, [off]))
    for p, where in zip(_parameter_sets(m), ("", "; it is on them for the defaults of the parameters alone"), strict=True):
        found = np.abs(np.array(residuals(p)))
        if found.size and not found.max() <= STEADY:
            row = row_names(T.kinematics)[int(np.nan_to_num(found.max(axis=1), nan=np.inf).argmax())]
            raise ModelError(f"about: the state is off the constraint row {row!r}{where}: {_ADVICE}")


_ADVICE = (
    "take numbers from pf.assemble or pf.equilibrium and leave the parameters of geometry out of the mechanism, or give the "
    "state as expressions of the parameters, such as ca.acos(g / l)"
)


class _DerivativesAt(NamedTuple):
    """Terms and derivatives at a state, in SymPy. With G = M v_dot + c - f - B u - A^T lambda and H = A v_dot - b:

    F: (nv, 1) M v_dot + c - f - B u at independent velocities that do not change.
    G_y, G_v: (nv, nv) derivatives of G by a displacement along v, and by v.   H_y, H_v: (m, nv) of H.   eta_y: (m, nv).
    X: (nv, nv) change of the rate of a displacement by that displacement.   v: (nv, 1).
    """

    M: SymPy
    A: SymPy
    B: SymPy
    F: SymPy
    G_y: SymPy
    G_v: SymPy
    H_y: SymPy
    H_v: SymPy
    eta_y: SymPy
    X: SymPy
    v: SymPy

    @classmethod
    def of(cls, T: Terms, state: _SteadyState, p: tuple[SymPy, ...], roots: Roots) -> _DerivativesAt:
        """The terms of a machine at a state."""
        sp, m = need_sympy(), T.mechanism
        rows = T.A.shape[0]
        a, multipliers = ca.SX.sym("a", m.nv), ca.SX.sym("l", rows)
        A = ca.densify(T.A)
        K = ca.densify(T.kinematics.kinematic_matrix)
        F = T.M @ a + T.c - T.generalised_input
        G, H = F - A.T @ multipliers, A @ a - T.b
        _refuse_time(m, T, ca.vertcat(F, H, ca.vec(A)))
        along = {f"{name}_y": ca.jacobian(x, T.q) @ K for name, x in (("G", G), ("H", H), ("eta", T.rows.eta))}
        turned = ca.jacobian(K @ T.v, T.q) @ K - ca.reshape(ca.jtimes(ca.vec(K), T.q, K @ T.v), *K.shape)
        parts = {"M": T.M, "A": A, "B": T.B, "F": F, "b": T.b, "v": T.v, "K": K, "X": turned} | along
        parts |= {"G_v": ca.jacobian(G, T.v), "H_v": ca.jacobian(H, T.v)}
        accelerations, reactions = ([sp.Dummy() for _ in range(n)] for n in (m.nv, rows))
        known, values = [a, multipliers, m.p_symbols], [*accelerations, *reactions, *p]
        here = zip(parts, state.put(T, list(parts.values())), strict=True)
        found = {name: formula(m, name, x, known, values, roots) for name, x in here}
        K = found.pop("K")
        found["X"] = (K.T * K).inv() * K.T * found["X"]
        reduced = _reduced_rows(found["A"])
        steady = dict(zip(accelerations, reduced.placed(found.pop("b")), strict=True))
        found = {name: x.xreplace(steady) for name, x in found.items()}
        forces = dict(zip(reactions, reduced.multipliers(found["F"]), strict=True))
        return cls(**{name: x.xreplace(forces) for name, x in found.items()})


def _refuse_time(m: Mechanism, T: Terms, x: ca.SX) -> None:
    """Raise ModelError if the equations contain the time."""
    if ca.depends_on(x, T.t):
        raise ModelError(f"equations: those of {m.name!r} contain the time, so that no state is steady; leave `about` out")


class _Eliminated(NamedTuple):
    """Rows solved for the first velocities that they determine: v_dependent = across v_free + E r where A v = r.

    dependent, free: indices of velocities.   N: (nv, free) a basis of the velocities with A v = 0.   E: (dependent, rows).
    """

    dependent: list[int]
    free: list[int]
    N: SymPy
    E: SymPy

    def placed(self, r: SymPy) -> SymPy:
        """(nv, k) the solution of A v = r, (rows, k), in which the free velocities are zero."""
        found = need_sympy().zeros(self.N.shape[0], r.shape[1])
        solved = self.E * r
        for i, k in enumerate(self.dependent):
            found[k, :] = solved[i, :]
        return found

    def multipliers(self, F: SymPy) -> SymPy:
        """(rows, 1) lambda with A^T lambda = F in the dependent velocities."""
        return self.E.T * need_sympy().Matrix([F[i] for i in self.dependent] or need_sympy().zeros(0, 1))


def _reduced_rows(A: SymPy) -> _Eliminated:
    """Eliminate velocities, the first ones first, so that those of the joints farther from the ground remain."""
    sp = need_sympy()
    m, n = A.shape
    rows, dependent = A.row_join(sp.eye(m)), list[int]()
    for k in range(n):
        done = len(dependent)
        candidates = [i for i in range(done, m) if not _is_zero(rows[i, k])]
        if candidates:
            rows.row_swap(done, min(candidates, key=lambda i: rows[i, k].count_ops()))
            rows[done, :] = (rows[done, :] / rows[done, k]).applyfunc(sp.cancel)
            for i in range(m):
                if i != done and rows[i, k] != 0:
                    rows[i, :] = (rows[i, :] - rows[i, k] * rows[done, :]).applyfunc(sp.cancel)
            dependent.append(k)
    free = [k for k in range(n) if k not in dependent]
    N = sp.zeros(n, len(free))
    for j, k in enumerate(free):
        N[k, j] = 1
        for i, d in enumerate(dependent):
            N[d, j] = -rows[i, k]
    return _Eliminated(dependent, free, N, rows[: len(dependent), n:])


def _is_zero(e: SymPy) -> bool:
    """Whether an expression is zero for all values of its symbols, judged at two points that are not special."""
    symbols = sorted(e.free_symbols, key=str)
    points = [{s: begin + 0.173 * i for i, s in enumerate(symbols)} for begin in (0.31, 0.47)]
    return e == 0 or all(abs(complex(e.evalf(subs=at))) < ROUNDING for at in points)


class _LinearMatrices(NamedTuple):
    """M w_dot + C w + K y = B du, y_dot = D y + E w, with all coordinates that the constraints leave."""

    M: SymPy
    C: SymPy
    K: SymPy
    B: SymPy
    D: SymPy
    E: SymPy


def _linear(x: _DerivativesAt, free: _Eliminated, motion: _Eliminated) -> _LinearMatrices:
    """The linear equations, projected onto the motions that the constraints allow.

    With a displacement N_y y, velocities change by N w + V y, where A V = -eta_y N_y, and accelerations by N w_dot minus the
    solution of A a = H_y N_y y + H_v (N w + V y); N^T removes the change of the reactions.
    """
    N, N_y = motion.N, free.N
    V = -motion.placed(x.eta_y * N_y)

    def force(y: SymPy, v: SymPy) -> SymPy:
        """N^T times the change of G with a displacement and a velocity."""
        return N.T * (x.G_y * y + x.G_v * v - x.M * motion.placed(x.H_y * y + x.H_v * v))

    rates = need_sympy().Matrix.vstack(need_sympy().zeros(0, N_y.shape[1]), *[(V + x.X * N_y)[i, :] for i in free.free])
    speeds = need_sympy().Matrix.vstack(need_sympy().zeros(0, N.shape[1]), *[N[i, :] for i in free.free])
    return _LinearMatrices(N.T * x.M * N, force(need_sympy().zeros(*N.shape), N), force(N_y, V), N.T * x.B, rates, speeds)


def _needed(x: _LinearMatrices, coordinates: Sequence[int], speeds: Sequence[int]) -> list[int]:
    """Indices of the coordinates y to be written: those of the independent velocities, and all on which the motion depends."""
    needed = {k for k, i in enumerate(coordinates) if i in speeds or any(e != 0 for e in x.K[:, k])}
    while True:
        more = {j for k in needed for j in range(len(coordinates)) if x.D[k, j] != 0} - needed
        if not more:
            return sorted(needed)
        needed |= more


def _check_steady(
    T: Terms, state: _SteadyState, p: tuple[SymPy, ...], x: _LinearMatrices, force: SymPy, along: SymPy, free: list[int]
) -> None:
    """Raise ModelError unless the forces at the state balance, and keep doing so as it moves, whatever the parameters are.

    force: (l, 1) that accelerates the independent velocities.   along: (k, 1) rates of y at the state.   free: indices of
        the independent velocities.
    """
    m = T.mechanism
    names = [m.v_names[i] for i in free]
    sizes = _forces(T, state)
    numbers = need_sympy().lambdify(p, [x.M, force, x.K * along, x.K, along], "numpy")
    for values, how in zip(
        _parameter_sets(m),
        ("is no equilibrium and no steady motion:", "is steady for the defaults of the parameters alone; with others"),
        strict=True,
    ):
        M, now, later, K, rates = (np.array(part, dtype=float).reshape(shape) for part, shape in zip(
            numbers(*values), (x.M.shape, force.shape, force.shape, x.K.shape, along.shape), strict=True))  # fmt: skip
        strength, speed = np.array(sizes(values)).ravel()
        accelerations = [np.sqrt(max((r.T @ np.linalg.solve(M, r)).item(), 0.0)) for r in (now, later)]
        rounding = ROUNDING * np.abs(K).max(initial=0) * np.abs(rates).max(initial=0)
        if accelerations[0] > STEADY * strength or accelerations[1] > STEADY * strength**2 / (speed or 1.0) + rounding:
            worst = int(np.abs(now if accelerations[0] > STEADY * strength else later).argmax())
            raise ModelError(f"about: the state {how} {names[worst]!r} accelerates; {_ADVICE}")


def _forces(T: Terms, state: _SteadyState) -> ca.Function:
    """(2,) norms in mass-weighted coordinates, as a function of the parameters: of the forces and weight, and of the speed."""
    m = T.mechanism
    mass = sum((link.mass for link in T.kinematics.tree.links), ca.SX(0))
    parts = ca.horzcat(T.c, T.f, T.B @ T.u)
    norms = ca.sqrt(ca.sum1(parts * ca.solve(T.M, parts)))
    weight = ca.sqrt(mass) * ca.norm_2(m.gravity)
    x = ca.vertcat(ca.sum2(norms) + weight, ca.sqrt(T.v.T @ T.M @ T.v))
    return ca.Function("forces", [m.p_symbols], state.put(T, [x]))


def _shortened(x: SymPy) -> SymPy:
    """A matrix with short entries, without what is rounding of others."""
    sp = need_sympy()
    numbers = [abs(n) for n in x.atoms(sp.Float)]
    if numbers:
        least = ROUNDING * max(abs(t.as_coeff_Mul()[0]) for e in x for t in sp.Add.make_args(e.expand()))
        x = x.applyfunc(lambda e: sp.Add(*[t for t in sp.Add.make_args(e.expand()) if abs(t.as_coeff_Mul()[0]) > least]))
    short = readable_matrix(x, ())
    return sp.Matrix(
        *x.shape,
        [min(pair, key=lambda e: (e.count_ops(), len(str(e)))) for pair in zip(short, x.applyfunc(sp.factor), strict=True)],
    )
