"""Convert expressions to SymPy, for papers and lectures: any expression, and open chains in screw parameters.

Numbers that are short decimals, fractions, square roots or parts of pi become exact, so that terms that should vanish do
vanish; other numbers stay as they are. SymPy is an optional package: `pip install sympy`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import casadi as ca

from pfaffian.errors import ModelError, brief, optional, plural
from pfaffian.maths import se3
from pfaffian.model import reprs
from pfaffian.model.body import WORLD
from pfaffian.model.graph import GraphMatrices, graph_matrices
from pfaffian.model.mechanism import Mechanism
from pfaffian.model.number import parameter_of
from pfaffian.model.pose import Pose
from pfaffian.terms.product_of_exponentials import Exponentials, exponentials

SymPy = Any
"""A matrix, a symbol or an expression of SymPy."""

DECIMALS = 7
"""Number of significant digits of a decimal that counts as exact."""

PLACES = 6
"""Number of digits after the decimal point of an exact decimal, where numbers are rounded to near ones."""

ROUNDING = 1e-13
"""Largest relative distance of a number from the exact one that replaces it."""

NEAR = 1e-9
"""Largest distance of a number from the exact one, in poses at home [m, 1]: files write right angles with ten digits."""

LONGEST = 150
"""Largest number of operations of an entry in which sums of angles are searched for."""


def need_sympy() -> Any:
    """The package sympy. Raises ModelError: it is not installed; the message says how to install it."""
    return optional("sympy", "sympy", "symbolic expressions need")


# -- any expression ---------------------------------------------------------------------------------------------------


def to_sympy(x: Any, symbols: Mapping[str, Any] | None = None) -> SymPy:
    """Convert a CasADi expression to a SymPy matrix, with exact numbers where they look exact.

    Args:
        x: casadi.SX or DM (n, k), of smooth functions.
        symbols: {name of a CasADi symbol or of a Parameter: SymPy symbol, expression or number}; other symbols become real
            symbols of the same name.
    Returns:
        a SymPy matrix (n, k).
    Raises ModelError: x is not an expression; it contains conditions or rounding, which have no formula; two symbols have the
    same name; a value in `symbols` is unknown to SymPy; SymPy is not installed.

    Example:
        >>> import casadi as ca
        >>> import pfaffian as pf
        >>> pf.screws.to_sympy(ca.SX.sym("x") ** 2 / 3)
        Matrix([[x**2/3]])
        >>> length, mass = pf.Parameter("l", 1.0, "m"), pf.Parameter("m", 2.0, "kg")
        >>> pf.screws.to_sympy(mass * length**2)
        Matrix([[l**2*m]])
    """
    sp = need_sympy()
    if not isinstance(x, (ca.SX, ca.DM)):
        raise ModelError(f"to_sympy: an expression of type casadi.SX is needed, got {brief(x)}")
    found = ca.symvar(ca.SX(x))
    owners = [parameter_of(s) for s in found]
    names = [p.name if p else s.name() for s, p in zip(found, owners, strict=True)]
    if len(set(names)) < len(names):
        twice = next(n for n in names if names.count(n) > 1)
        raise ModelError(f"to_sympy: two symbols are called {brief(twice)}: rename one of them")
    given = {n: _value(value, n) for n, value in (symbols or {}).items()}
    return converted(ca.SX(x), found, [given[n] if n in given else sp.Symbol(n, real=True) for n in names])


def _value(value: Any, name: str) -> SymPy:
    """The value of a symbol in SymPy. Raises ModelError: SymPy does not know it, or it is text, which would run as Python."""
    sp = need_sympy()
    try:
        return sp.sympify(value, strict=True)
    except sp.SympifyError:
        raise ModelError(f"to_sympy: symbol {name!r}: a SymPy expression or a number is needed, got {brief(value)}") from None


def converted(
    x: ca.SX, symbols: Sequence[ca.SX], values: list[Any], *, closed: bool = False, near: float = 0.0,
    tidied: Callable[[SymPy], SymPy] | None = None,
) -> SymPy:  # fmt: skip
    """x as a SymPy matrix, with `values` substituted for the entries of its symbols.

    closed: whether to use the closed form of functions that are computed by a series near zero.
    near: as in `exact`.
    tidied: function that rewrites the result of each operation; None: results stay as they are.
    """
    sp = need_sympy()
    f = ca.Function("x", [ca.vertcat(ca.SX(0, 1), *symbols)], [ca.vec(ca.densify(x))])
    work: dict[int, Any] = {}
    out = [sp.Integer(0)] * x.numel()
    for i in range(f.n_instructions()):
        code, read, write = f.instruction_id(i), f.instruction_input(i), f.instruction_output(i)
        if code == ca.OP_INPUT:
            work[write[0]] = values[read[1]]
        elif code == ca.OP_CONST:
            work[write[0]] = exact(f.instruction_constant(i), near)
        elif code == ca.OP_OUTPUT:
            out[write[1]] = work[read[0]]
        else:
            value = _operation(code, [work[k] for k in read], closed)
            work[write[0]] = value if tidied is None else tidied(value)
    return sp.Matrix(x.shape[1], x.shape[0], out).T


def _operation(code: int, arguments: list[Any], closed: bool) -> Any:
    """The result of one operation of CasADi in SymPy. Raises ModelError: it has no formula."""
    sp = need_sympy()
    if code in _SMOOTH:
        return _SMOOTH[code](sp, *arguments)
    if code in _CHOOSING:
        numbers = all(a.is_number for a in arguments)
        if numbers or (closed and code in (ca.OP_LT, ca.OP_LE)):
            return sp.Integer(int(bool(_CHOOSING[code](*arguments)) if numbers else 0))
    if code == ca.OP_IF_ELSE_ZERO and arguments[0].is_number:
        return arguments[1] if arguments[0] else sp.Integer(0)
    raise ModelError(
        "to_sympy: the expression contains a condition or rounding, which has no formula: convert its smooth parts"
    )


_SMOOTH: dict[int, Callable[..., Any]] = {
    ca.OP_ASSIGN: lambda sp, a: a,
    ca.OP_ADD: lambda sp, a, b: a + b,
    ca.OP_SUB: lambda sp, a, b: a - b,
    ca.OP_MUL: lambda sp, a, b: a * b,
    ca.OP_DIV: lambda sp, a, b: a / b,
    ca.OP_NEG: lambda sp, a: -a,
    ca.OP_INV: lambda sp, a: 1 / a,
    ca.OP_SQ: lambda sp, a: a**2,
    ca.OP_TWICE: lambda sp, a: 2 * a,
    ca.OP_POW: lambda sp, a, b: a**b,
    ca.OP_CONSTPOW: lambda sp, a, b: a**b,
    ca.OP_SQRT: lambda sp, a: sp.sqrt(a),
    ca.OP_EXP: lambda sp, a: sp.exp(a),
    ca.OP_LOG: lambda sp, a: sp.log(a),
    ca.OP_SIN: lambda sp, a: sp.sin(a),
    ca.OP_COS: lambda sp, a: sp.cos(a),
    ca.OP_TAN: lambda sp, a: sp.tan(a),
    ca.OP_ASIN: lambda sp, a: sp.asin(a),
    ca.OP_ACOS: lambda sp, a: sp.acos(a),
    ca.OP_ATAN: lambda sp, a: sp.atan(a),
    ca.OP_ATAN2: lambda sp, a, b: sp.atan2(a, b),
    ca.OP_SINH: lambda sp, a: sp.sinh(a),
    ca.OP_COSH: lambda sp, a: sp.cosh(a),
    ca.OP_TANH: lambda sp, a: sp.tanh(a),
}
"""Code of a CasADi operation -> the operation in SymPy."""

_CHOOSING: dict[int, Callable[..., Any]] = {
    ca.OP_LT: lambda a, b: a < b,
    ca.OP_LE: lambda a, b: a <= b,
    ca.OP_EQ: lambda a, b: a == b,
    ca.OP_NE: lambda a, b: a != b,
    ca.OP_NOT: lambda a: not a,
    ca.OP_AND: lambda a, b: a and b,
    ca.OP_OR: lambda a, b: a or b,
}


def exact(x: float, near: float = 0.0) -> SymPy:
    """The exact number that x approximates: a short decimal, a fraction, the root of one, or a part of pi; else x itself.

    near: largest distance from the exact number, if more than rounding is allowed.
    """
    sp = need_sympy()
    if not math.isfinite(x):
        raise ModelError(f"to_sympy: {x} is not a finite number")
    room = max(near, ROUNDING * abs(x))
    if abs(x) <= room:
        return sp.Integer(0)
    decimal = f"{x:.{PLACES}f}" if near else f"{x:.{DECIMALS}g}"
    if abs(float(decimal) - x) <= room:
        return sp.Rational(decimal)
    simple, part, square = _fraction(x, room, 100), _fraction(x / math.pi, room, 24), _fraction(x * x, room * abs(x), 16)
    if simple is not None or part is not None:
        return part * sp.pi if simple is None else simple
    return sp.Float(x, 17) if square is None else sp.sqrt(square) * (1 if x > 0 else -1)


def _fraction(x: float, room: float, largest: int) -> SymPy | None:
    """x as a fraction with a denominator up to `largest`; None if none is within `room` of x."""
    found = Fraction(x).limit_denominator(largest)
    return need_sympy().Rational(found.numerator, found.denominator) if abs(found - Fraction(x)) <= room else None


def tidy(e: SymPy) -> SymPy:
    """An expression with its products of sines and cosines written by sums of angles, where that is shorter."""
    sp = need_sympy()
    turns = e.atoms(sp.sin, sp.cos)
    if len(turns) < 2 or any(f.args[0].is_positive for f in turns) or e.count_ops() > LONGEST:
        return e  # the norm of rotation parameters does not occur in sums of angles
    return min((e, _angles_summed(e.expand()), flat(e)), key=lambda form: form.count_ops())


def flat(e: SymPy) -> SymPy:
    """An expression as a sum of products, with the lowest powers of sine and cosine of each angle."""
    from sympy.simplify.fu import TR5  # sin^2 = 1 - cos^2

    return _angles_summed(TR5(e.expand()).expand()).expand()


def _angles_summed(e: SymPy) -> SymPy:
    """An expression with its products of sines and cosines written by sums of angles."""
    from sympy.simplify.fu import TR10i

    return TR10i(e)


# -- an open chain ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class SymbolicKinematics:
    """An open chain in screw parameters, in SymPy's symbols; made by `symbolic_kinematics`. Entries are computed on demand.

    labels: for each factor the number of its joint, with a letter where a joint has several factors: 1, 2a, 2b, 3.
    s: symbols of the screw parameters, in the order of `exponentials(m).s_names`: s_1, or s_1_1, s_1_2, ... where a factor has
        several.   p: symbols p_1, ... of the parameters.
    norms: symbol theta_1 -> the angle that it represents in entries, for each factor that turns about any axis.

    Entries are closed forms; where such an angle, or that of a planar motion, is zero, they are valid in the limit. Numbers in
    poses at home are replaced by exact ones within 1e-9.
    """

    expressions: Exponentials
    labels: tuple[str, ...]
    s: tuple[SymPy, ...]
    p: tuple[SymPy, ...]
    norms: dict[SymPy, SymPy]

    def __repr__(self) -> str:
        return reprs.words(
            self, f"of {self.expressions.mechanism.name!r}", f"s ({len(self.s)}, 1)", plural(len(self.p), "parameter")
        )

    @cached_property
    def graph(self) -> GraphMatrices:
        return graph_matrices(self.expressions.mechanism)

    def home(self, body: str) -> SymPy:
        """(4, 4) pose of a body in the world where all parameters are zero."""
        return self._homogeneous(self.expressions.home(body))

    def twists(self, joint: str) -> SymPy:
        """(6, k) tau of a joint, its twists at home in the world frame. [chhabra14 def. 2.1.4]"""
        return self._converted(self.expressions.twists(joint))

    def tau(self, factor: int) -> SymPy:
        """(6, k) twists of a factor, by its index."""
        return self._converted(self.expressions.factors[factor].tau)

    def parameters_of(self, factor: int) -> SymPy:
        """(k, 1) screw parameters of a factor; in terms of others where its joint follows these."""
        return self._converted(self.expressions.factors[factor].ratios @ self.expressions.s)

    def norm(self, factor: int) -> SymPy | None:
        """The symbol of a factor's angle, if it turns about any axis."""
        angle = need_sympy().Symbol(f"theta_{self.labels[factor]}", positive=True)
        return angle if angle in self.norms else None

    def exponential(self, factor: int) -> SymPy:
        """(4, 4) exp(hat(tau_j s_j)) of a factor, by its index."""
        home = self._homogeneous(self.expressions.factors[factor].home)
        return (home @ self._motion(factor)[0] @ _inverse(home)).applyfunc(tidy)

    def pose(self, body: str) -> SymPy:
        """(4, 4) pose of a body in the world. [chhabra14 thm. 2.2.3]"""
        factor, X = self.expressions.place(body)
        after = self.frames(factor)[1] if factor >= 0 else need_sympy().eye(4)
        return (after @ self._homogeneous(X)).applyfunc(tidy)

    def jacobian(self, body: str, *, relative_to: str = WORLD, frame: str = WORLD) -> SymPy:
        """(6, ns) J with [v; w] = J s_dot; arguments as in `Exponentials.jacobian`. [chhabra14 (2.3.7), (2.3.11), (2.3.12)]"""
        J = self._spatial(self.expressions.place(body)[0]) - self._spatial(self.expressions.place(relative_to)[0])
        return (J if frame == WORLD else _Ad(_inverse(self.pose(frame))) @ J).applyfunc(tidy)

    def modified_jacobian(self, body: str, *, relative_to: str = WORLD, frame: str = WORLD) -> SymPy:
        """(6, n) J Sigma. [chhabra14 (2.3.13)]"""
        return (self.jacobian(body, relative_to=relative_to, frame=frame) @ self.Sigma).applyfunc(tidy)

    @cached_property
    def Sigma(self) -> SymPy:
        """(ns, n) s_dot = Sigma v_bar, the blocks `speeds` of the joints. [chhabra14 (2.1.5)]"""
        return need_sympy().diag(*[self.speeds(j.name) for j in self.expressions.mechanism.joints if j.nq])

    def speeds(self, joint: str) -> SymPy:
        """(k, n) block of Sigma for a joint with independent parameters; the unit matrix without a distribution."""
        sp, j = need_sympy(), self.expressions.mechanism.joint(joint)
        if j.distribution is None:
            return sp.eye(0 if j.mimic else j.kind.nv)
        i, f = next((i, f) for i, f in enumerate(self.expressions.factors) if f.joint.name == j.name)
        t = ca.SX.sym("t", f.subgroup.nv)
        D = self._closed(f.subgroup.dexp_right_inv(t) @ j.distribution, t, list(self.parameters_of(i)), i)
        return D.applyfunc(sp.simplify)

    # -- from CasADi ------------------------------------------------------------------------------------------------

    @cached_property
    def _computed(self) -> dict[Any, Any]:
        """Motions and frames computed so far."""
        return {}

    def _motion(self, factor: int) -> tuple[SymPy, SymPy]:
        """For a factor, in its frame: exp(hat(S s_j)) (4, 4), and S dexp_left(s_j) (6, k)."""
        if ("motion", factor) not in self._computed:
            f = self.expressions.factors[factor]
            t, parameters = ca.SX.sym("t", f.subgroup.nv), list(self.parameters_of(factor))
            both = se3.homogeneous(*f.subgroup.exp(t)), f.subgroup.S @ f.subgroup.dexp_left(t)
            motion, left = (self._closed(x, t, parameters, factor).applyfunc(tidy) for x in both)
            self._computed["motion", factor] = motion, left
        return self._computed["motion", factor]

    def frames(self, factor: int) -> tuple[SymPy, SymPy]:
        """(4, 4) frame of a factor in the world, before and after it moves: exp(tau s) home = home exp(S s)."""
        if ("frames", factor) not in self._computed:
            f = self.expressions.factors[factor]
            if f.before < 0:
                before = self._homogeneous(f.home)
            else:
                between = self.expressions.factors[f.before].home.inverse() @ f.home
                before = (self.frames(f.before)[1] @ self._homogeneous(between)).applyfunc(tidy)
            self._computed["frames", factor] = before, (before @ self._motion(factor)[0]).applyfunc(tidy)
        return self._computed["frames", factor]

    def _spatial(self, factor: int) -> SymPy:
        """(6, ns) Jacobian, in the world frame, of what a factor carries."""
        J = need_sympy().zeros(6, len(self.s))
        while factor >= 0:
            f = self.expressions.factors[factor]
            J += _Ad(self.frames(factor)[0]) @ self._motion(factor)[1] @ self._converted(f.ratios)
            factor = f.before
        return J

    def _converted(self, x: ca.SX) -> SymPy:
        """An expression of CasADi in s and the parameters, as SymPy's."""
        known = [self.expressions.s, self.expressions.mechanism.p_symbols]
        return converted(ca.SX(x), known, [*self.s, *self.p], near=NEAR)

    def _homogeneous(self, X: Pose) -> SymPy:
        """(4, 4) matrix of a pose that does not depend on s."""
        return self._converted(se3.homogeneous(X.R, X.p))

    def _closed(self, x: Any, t: ca.SX, values: list[SymPy], factor: int) -> SymPy:
        """An entire function x of a factor's parameters t in closed form at `values`: derived for t > 0, valid for all t."""
        sp = need_sympy()
        rows = [sp.Symbol(f"t_{k}", positive=True) for k in range(len(values))]
        found = converted(ca.SX(x), [t, self.expressions.mechanism.p_symbols], [*rows, *self.p], closed=True)
        if (angle := self.norm(factor)) is not None:
            found = found.subs(sum(a**2 for a in rows[-3:]), angle**2)
        return found.subs(dict(zip(rows, values, strict=True)), simultaneous=True)


def _inverse(X: SymPy) -> SymPy:
    """Inverse of a pose (4, 4)."""
    sp, R = need_sympy(), X[:3, :3].T
    return R.row_join(-R @ X[:3, 3]).col_join(sp.Matrix([[0, 0, 0, 1]]))


def _Ad(X: SymPy) -> SymPy:
    """(6, 6) adjoint matrix [[R, hat(p) R], [0, R]] of a pose (4, 4)."""
    sp, R, p = need_sympy(), X[:3, :3], X[:3, 3]
    hat = sp.Matrix([[0, -p[2], p[1]], [p[2], 0, -p[0]], [-p[1], p[0], 0]])
    return R.row_join(hat @ R).col_join(sp.zeros(3).row_join(R))


def symbolic_kinematics(m: Mechanism) -> SymbolicKinematics:
    """An open chain of displacement subgroups in screw parameters, as SymPy expressions for reading and for LaTeX.

    [chhabra14 ch. 2]

    Args:
        m: the mechanism, an open chain.
    Returns:
        an object with the symbols `s` of the screw parameters and `p` of the parameters, and SymPy matrices: `pose(body)` and
        `home(body)` (4, 4), `twists(joint)` (6, k), `jacobian(body)` (6, ns), `Sigma` (ns, n).
    Raises ModelError: m is a closed chain, has an edge, or has coordinates that belong to no joint; SymPy is not installed.

    Example:
        >>> import pfaffian as pf
        >>> bodies = [pf.body("upper", 1.0, (1, 0, 0)), pf.body("lower", 1.0, (1, 0, 0))]
        >>> elbow = pf.joint("elbow", "revolute", "upper", "lower", placement=(1, 0, 0))
        >>> m = pf.mechanism("arm", bodies, [pf.joint("shoulder", "revolute", "world", "upper"), elbow])
        >>> pf.screws.symbolic_kinematics(m).pose("lower")[:3, 3].T
        Matrix([[cos(s_1), sin(s_1), 0]])
    """
    sp = need_sympy()
    E = exponentials(m)
    numbers = {j.name: str(i + 1) for i, j in enumerate(m.joints)}
    count = Counter(f.joint.name for f in E.factors)
    used, labels, s, norms = Counter[str](), list[str](), list[SymPy](), dict[SymPy, SymPy]()
    for f in E.factors:
        name, k = f.joint.name, f.subgroup.nv
        labels.append(numbers[name] + ("abc"[used[name]] if count[name] > 1 else ""))
        used[name] += 1
        if not f.joint.mimic:
            symbol_names = [f"s_{labels[-1]}"] if k == 1 else [f"s_{labels[-1]}_{i + 1}" for i in range(k)]
            s += [sp.Symbol(n, real=True) for n in symbol_names]
        if len(f.subgroup.rotation.axes) == 3:
            norms[sp.Symbol(f"theta_{labels[-1]}", positive=True)] = sp.sqrt(sum(x**2 for x in s[-3:]))
    p = tuple(sp.Symbol(f"p_{i + 1}", real=True) for i in range(len(m.parameters)))
    return SymbolicKinematics(E, tuple(labels), tuple(s), p, norms)
