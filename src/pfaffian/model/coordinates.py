"""User-defined coordinates q, which may be redundant (phi(q) = 0), with minimal velocities v: q_dot = K(q) v."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import casadi as ca
import numpy as np

from pfaffian.errors import ModelError, brief, plural
from pfaffian.kernel.remember import remembered
from pfaffian.maths.margins import equilibrated
from pfaffian.model import reprs
from pfaffian.model.data import data
from pfaffian.model.number import Parameter, column, floats, matrix, several
from pfaffian.model.pose import Pose
from pfaffian.model.traced_function import TracedFunction, graph
from pfaffian.model.user_functions import call_for_value, in_symbols

RATE_UNITS = {"m": "m/s", "rad": "rad/s", "1": "1/s"}


@data
class Coordinates:
    """User-defined coordinates of a mechanism, made by `coordinates`: entries of q and v that belong to no joint.

    name: unique among joints and coordinates.
    q_names, v_names: names of the entries of q and v.
    q_units, v_units: unit of each entry.
    K: function of q (nq, 1) giving (nq, nv) with q_dot = K(q) v.
    phi: function of q giving a column that vanishes, or None.
    start: (nq,) a configuration with phi = 0, or near it.
    returns: rate [1/s] at which phi returns to zero, see `pf.constraints.stabilised`; None if a run corrects q to phi = 0.

    Example:
        >>> import pfaffian as pf
        >>> unit = lambda q: q[0]**2 + q[1]**2 - 1
        >>> turn = pf.coordinates("turn", ["c", "s"], ["w"], lambda q: [[-q[1]], [q[0]]], phi=unit, start=[1, 0])
        >>> turn.nq, turn.nv, turn.start, turn.v_units
        (2, 1, (1.0, 0.0), ('1/s',))
    """

    name: str
    q_names: tuple[str, ...]
    v_names: tuple[str, ...]
    q_units: tuple[str, ...]
    v_units: tuple[str, ...]
    K: Callable[[ca.SX], Any]
    phi: Callable[[ca.SX], Any] | None
    start: tuple[float, ...]
    returns: ca.SX | None = None

    def __repr__(self) -> str:
        on = [] if self.phi is None else [f"on phi(q) = 0 by {reprs.function(self.phi)}"]
        parts = [plural(self.nq, "coordinate"), f"q_dot = K v by {reprs.function(self.K)}", plural(self.nv, "velocity"), *on]
        return reprs.words(self, *parts, name=self.name)

    @property
    def nq(self) -> int:
        return len(self.q_names)

    @property
    def nv(self) -> int:
        return len(self.v_names)

    @property
    def plain(self) -> int:
        """Number of leading coordinates whose rates are velocities: zero, since K may be any matrix."""
        return 0


def coordinates(
    name: str,
    q: Any,
    v: Any,
    K: Callable[[ca.SX], Any],
    *,
    phi: Callable[[ca.SX], Any] | None = None,
    start: Any = None,
    q_units: Any = "1",
    v_units: Any = None,
) -> Coordinates:
    """User-defined coordinates, with their kinematics q_dot = K(q) v. [konz25 (2.1)-(2.4)]

    Poses of bodies follow from the coordinates by `edge`; energies and forces follow by functions of the kinematics. Runs keep
    phi = 0, in the same way as the unit length of quaternions. phi has no reaction, since no velocity v changes it.

    Args:
        name: unique among joints and coordinates.
        q, v: names of the entries; results call them name.entry.
        K: function of the column q (nq, 1), and of parameters, giving (nq, nv) of full column rank.
        phi: function of q giving a column with dphi/dq K = 0, whose rows may depend on each other; None if the coordinates are
            independent.
        start: (nq,) a configuration with phi = 0; zeros if None.
        q_units, v_units: one unit for all entries or one for each. Units of q are "1" by default. Units of v follow from them
            (m/s, rad/s, 1/s) where there are as many velocities as coordinates, else they are "1/s".
    Raises ModelError: names that are not a list of different texts, K or phi that is not a function, a start of the wrong size.
    `mechanism` checks the values of K and phi.

    Example:
        >>> import pfaffian as pf
        >>> unit = lambda q: q[0]**2 + q[1]**2 - 1
        >>> turn = pf.coordinates("turn", ["c", "s"], ["w"], lambda q: [[-q[1]], [q[0]]], phi=unit, start=[1, 0])
        >>> bead = pf.edge("ring", "world", "bead", lambda k: pf.pose((3 * k.q[0], 3 * k.q[1], 0)))
        >>> m = pf.mechanism("bead on a ring", [pf.body("bead", mass=2.0)], [bead], coordinates=[turn])
        >>> pf.mass_matrix(m, [0.6, 0.8]).round(9)  # m r^2
        array([[18.]])
    """
    what = f"coordinates {name!r}"
    q_names, v_names = _names(q, f"{what}: q"), _names(v, f"{what}: v")
    for word, f in (("K", K), *([] if phi is None else [("phi", phi)])):
        if not callable(f):
            raise ModelError(f"{what}: {word} must be a function of q, got {brief(f)}")
    nq, nv = len(q_names), len(v_names)
    units_q = _units(q_units, nq, f"{what}: q_units")
    rates = [RATE_UNITS.get(u, "1/s") for u in units_q] if nv == nq else "1/s"
    units_v = _units(rates if v_units is None else v_units, nv, f"{what}: v_units")
    q_start = floats(np.zeros(nq) if start is None else start, f"{what}: start")
    if q_start.shape != (nq,) or not np.isfinite(q_start).all():
        raise ModelError(f"{what}: start must be {nq} finite numbers, got {brief(start)}")
    return Coordinates(name, q_names, v_names, units_q, units_v, K, phi, tuple(q_start.tolist()))


def _names(x: Any, what: str) -> tuple[str, ...]:
    """The names as a tuple. Raises ModelError: not a list of different, non-empty texts."""
    names = tuple(x) if several(x) else ()
    if not names or not all(isinstance(n, str) and n for n in names):
        raise ModelError(f"{what} must be a list of names, got {brief(x)}")
    if len(set(names)) < len(names):
        raise ModelError(f"{what}: a name is used twice among {', '.join(names)}")
    return names


def _units(x: Any, count: int, what: str) -> tuple[str, ...]:
    """One unit for each of `count` entries, from one for all or a list. Raises ModelError: anything else."""
    units = (x,) * count if isinstance(x, str) else tuple(x) if several(x) else ()
    if len(units) != count or not all(isinstance(u, str) for u in units):
        raise ModelError(f"{what} must be one unit, or one for each of {count} entries, got {brief(x)}")
    return units


def kinematic_block(c: Coordinates, q: ca.SX, p: ca.SX) -> ca.SX:
    """K (nq, nv) at symbols q (nq, 1) and p (np, 1). Raises ModelError: the function fails, or returns another shape."""
    what = f"coordinates {c.name!r}: K"
    K = in_symbols(matrix(call_for_value(c.K, what, q), what), what, (q, p))
    if K.shape != (c.nq, c.nv):
        raise ModelError(f"{what} must give ({c.nq}, {c.nv}) for {c.nq} coordinates and {c.nv} velocities, got {K.shape}")
    return ca.sparsify(K)


def residual(c: Coordinates, q: ca.SX, p: ca.SX) -> ca.SX:
    """phi as a column at symbols q (nq, 1) and p (np, 1); without entries if the coordinates have no phi."""
    if c.phi is None:
        return ca.SX(0, 1)
    what = f"coordinates {c.name!r}: phi"
    return in_symbols(column(call_for_value(c.phi, what, q), what), what, (q, p))


def known(c: Coordinates, parameters: tuple[Parameter, ...]) -> Coordinates:
    """The coordinates with K and phi as functions that carry the digests of their present expressions.

    Raises ModelError: K or phi fails, or returns another shape.
    """
    if isinstance(c.K, TracedFunction):
        return c
    q, p = ca.SX.sym("q", c.nq), ca.vertcat(ca.SX(0, 1), *[x.symbol for x in parameters])
    K = TracedFunction(c.K, graph([q, p], [kinematic_block(c, q, p)]))
    return replace(c, K=K, phi=c.phi and TracedFunction(c.phi, graph([q, p], [residual(c, q, p)])))


ITERATIONS, STARTS = 50, 5
"""Iterations of Newton's method from each starting point, and number of starting points."""

TOLERANCE = 1e-14
"""Largest |phi| that counts as zero, relative to the terms of its first order, |dphi/dq| times the size of q."""

RANK = 1e-8
"""Singular values below this fraction of the largest one count as zero, of rows and columns of unit length."""

SAMPLES = 3
"""Number of random configurations near the start at which the kinematics are checked."""

KEEPS = 1e-9
"""Largest rate of phi for a unit velocity, relative to the terms that it is the sum of."""


@remembered(256)
def _functions(c: Coordinates, parameters: tuple[Parameter, ...], symbols: tuple[int, ...]) -> ca.Function:
    """phi, dphi/dq and K as one function of q and p.

    symbols: hashes of the parameters' symbols, part of the cache key because equal parameters may have different symbols.
    """
    q, p = ca.SX.sym("q", c.nq), ca.vertcat(ca.SX(0, 1), *[x.symbol for x in parameters])
    phi = residual(c, q, p)
    return ca.Function("coordinates", [q, p], [phi, ca.densify(ca.jacobian(phi, q)), ca.densify(kinematic_block(c, q, p))])


def _at(c: Coordinates, q: np.ndarray, parameters: tuple[Parameter, ...]) -> list[np.ndarray]:
    """The values of phi, dphi/dq and K at q (nq,), with the parameters at their defaults."""
    f = _functions(c, parameters, tuple(x.symbol.element_hash() for x in parameters))
    return [np.array(x) for x in f(q, [x.default for x in parameters])]


def _newton(c: Coordinates, q: np.ndarray, parameters: tuple[Parameter, ...], free: np.ndarray) -> np.ndarray | None:
    """(nq,) a solution of phi(q) = 0 by Newton's method from q, or None.   free: (nq,) 1 for entries that may change, or 0."""
    for _ in range(ITERATIONS):
        phi, rows, _ = _at(c, q, parameters)
        if not (np.isfinite(phi).all() and np.isfinite(rows).all()):
            return None
        if _off(c, phi, rows, q) <= TOLERANCE:
            return q
        q = q - free * np.linalg.lstsq(rows * free, phi, RANK)[0][:, 0]
    return q if _off(c, phi, rows, q) <= np.sqrt(TOLERANCE) else None


def _off(c: Coordinates, phi: np.ndarray, rows: np.ndarray, q: np.ndarray) -> float:
    """The largest |phi| relative to the terms of its first order at q (nq,); 0 where phi vanishes, whatever these are."""
    size = (np.abs(rows) @ np.maximum(np.abs(q), _spread(c)))[:, None]
    return float(np.divide(np.abs(phi), size, out=np.where(phi == 0, 0.0, np.inf), where=size > 0).max(initial=0.0))


def _spread(c: Coordinates) -> np.ndarray:
    """(nq,) typical sizes of the coordinates: the largest number of the start with the same unit, or 1."""
    start, units = np.abs(np.array(c.start)), np.array(c.q_units)
    return np.array([start[units == unit].max() or 1.0 for unit in c.q_units])


def closest(c: Coordinates, q: np.ndarray, parameters: tuple[Parameter, ...], fixed: np.ndarray | None = None) -> np.ndarray:
    """(nq,) a configuration with phi = 0 near q, by Newton's method; q itself if phi vanishes there.

    fixed: (nq,) bool, the entries that must not change.
    Raises ModelError: no such configuration is found from q or from random points around it.
    """
    if c.phi is None:
        return q
    c = known(c, parameters)
    free = np.ones(c.nq) if fixed is None else 1.0 - fixed
    random, guess = np.random.default_rng(3), q  # starts of a search: they decide nothing about the coordinates
    for _ in range(STARTS):
        solution = _newton(c, guess, parameters, free)
        if solution is not None:
            return solution
        guess = q + free * _spread(c) * random.normal(
            size=c.nq
        )  # Newton's method takes no step where the rows of dphi/dq vanish.
    keeping = "" if fixed is None or not fixed.any() else f" that keeps {', '.join(np.array(c.q_names)[fixed])}"
    raise ModelError(
        f"coordinates {c.name!r}: no q with phi(q) = 0{keeping} was found near {brief(q.tolist())}; "
        "give other values, or values of more coordinates"
    )


def check_coordinates(c: Coordinates, parameters: tuple[Parameter, ...]) -> None:
    """Raise ModelError unless K spans the motions that phi allows, at the start and at random configurations near it."""
    c = known(c, parameters)
    start = closest(c, np.array(c.start), parameters)
    random = np.random.default_rng(11)
    guesses = [start] + [start + _spread(c) * random.normal(size=c.nq) for _ in range(SAMPLES)]
    for i, near in enumerate(guesses):
        try:
            q = closest(c, near, parameters)
        except ModelError:
            if i:
                continue  # There may be no phi = 0 near a random point.
            raise
        _, rows, K = _at(c, q, parameters)
        if not (np.isfinite(rows).all() and np.isfinite(K).all()):
            if i:
                continue
            raise ModelError(f"coordinates {c.name!r}: K or dphi/dq is not finite at the start; choose another start")
        error = np.abs(rows @ K)
        if (error > KEEPS * (np.abs(rows) @ np.abs(K))).any():
            raise ModelError(
                f"coordinates {c.name!r}: K does not keep phi = 0, |dphi/dq K| = {error.max():.3g} at q = {brief(q.tolist())}; "
                "choose K so that dphi/dq K = 0 wherever phi = 0"
            )
        rank = _rank(rows)
        if i == 0 and c.nv != c.nq - rank:
            raise ModelError(
                f"coordinates {c.name!r}: {c.nq} coordinates less {rank} independent rows of phi move in {c.nq - rank} "
                f"directions, but {c.nv} velocities are given"
            )
        if i == 0 and _rank(K) < c.nv:
            raise ModelError(
                f"coordinates {c.name!r}: the columns of K depend on each other at the start; choose another start"
            )


def _rank(x: np.ndarray) -> int:
    """The rank of a matrix whose rows and columns may have any units."""
    return int(np.linalg.matrix_rank(equilibrated(x), rtol=RANK)) if x.any() else 0


@data
class Velocities:
    """A choice of velocities v, made by `velocities`: v0 = T(q) v, where v0 are those of joints and coordinates as written."""

    names: tuple[str, ...]
    units: tuple[str, ...]
    T: Callable[[Any], Any]

    def __repr__(self) -> str:
        return reprs.words(
            self, plural(len(self.names), "velocity"), f"T by {reprs.function(self.T)}", reprs.listed(self.names)
        )


def velocities(T: Callable[[Any], Any], names: Any, units: Any = "1/s") -> Velocities:
    """A choice of velocities v for a mechanism: v0 = T(q) v, where v0 are those of its joints and coordinates.
    [konz25 1.3]

    Examples are absolute instead of relative angular velocities, velocities of a free body along the world axes, or the rates
    of the coordinates. Motion and energies stay the same; velocities, forces and reactions are then listed along v.

    Args:
        T: function of the kinematics (poses and q; no velocities) giving an invertible (nv, nv).
        names: (nv,) names of the new velocities.
        units: one unit for all velocities or one for each, "1/s" by default.
    Raises ModelError: T is not a function, or names are not a list of different texts. The values of T are checked when the
    equations are made.

    Example:
        >>> import pfaffian as pf
        >>> rods = [pf.body(n, mass=2.0, com=(0.5, 0, 0), inertia=0.1) for n in ("upper", "lower")]
        >>> A = pf.joint("A", "revolute", "world", "upper")
        >>> B = pf.joint("B", "revolute", "upper", "lower", placement=(1, 0, 0))
        >>> absolute = pf.velocities(lambda k: [[1, 0], [-1, 1]], ["upper", "lower"], "rad/s")
        >>> m = pf.mechanism("double pendulum", rods, [A, B], velocities=absolute)
        >>> pf.mass_matrix(m, [0, 0]).round(9)
        array([[2.6, 1. ],
               [1. , 0.6]])
    """
    if not callable(T):
        raise ModelError(f"velocities: T must be a function of the kinematics, got {brief(T)}")
    v_names = _names(names, "velocities: names")
    return Velocities(v_names, _units(units, len(v_names), "velocities: units"), T)


class Inverted:
    """The inverse of a pose function, for an edge that is traversed from child to parent."""

    def __init__(self, pose: Callable[[Any], Pose]) -> None:
        self.pose = pose

    def __call__(self, k: Any) -> Any:
        G = self.pose(k)
        return G.inverse() if isinstance(G, Pose) else G

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Inverted) and other.pose == self.pose

    def __hash__(self) -> int:
        return hash(("inverted", self.pose))
