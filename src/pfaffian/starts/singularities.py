"""How near a parallel machine is to its singular configurations. [Gosselin and Angeles 1990; Zlatanov et al. 1994]

The velocities that the constraints allow are v = Z y, with an orthonormal basis Z in which angles are multiplied by a length.
They move the inputs by S Z y and the output by J Z y. Where S Z loses rank the machine can move with its inputs locked, where
J Z loses rank it can move with its output at rest, and where the constraint rows lose rank it gains a motion.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from pfaffian.errors import ModelError, RunError, brief, is_one_of, nearest
from pfaffian.evaluate.arrays import configurations, parameter_values
from pfaffian.evaluate.compiled import compile_terms
from pfaffian.evaluate.given_state import check_on_constraints, off_constraints
from pfaffian.evaluate.single_values import as_flag
from pfaffian.maths.margins import Decision, closest
from pfaffian.maths.span import basis
from pfaffian.model.force import Actuator
from pfaffian.model.mechanism import Mechanism, as_mechanism, as_names
from pfaffian.model.number import as_float
from pfaffian.starts.assemble import assemble
from pfaffian.terms.generic_states import tell
from pfaffian.terms.terms import Terms, row_lengths
from pfaffian.terms.traced_now import present

DEPENDENT = 1e-7
"""Singular values of the rows, relative to their typical lengths, below which rows count as dependent.

It is above ZERO of `maths/margins.py` because q is given: at a singular configuration it is exact to the digits of a file, or
to the root of what is left of the constraints. Where a size is near it, this is told.
"""

NEAR, NEIGHBOURS = 0.02, 3
"""Size [rad, the caller's length] and number of the displacements to neighbouring states, where the rank is taken too."""


class Singularities(NamedTuple):
    """Measures of how near a state is to singular configurations.

    input: least singular value of S Z, from 0, where the machine can move with its inputs locked (type 2, parallel), to 1.
    output: least singular value of J Z, 0 where the machine can move with its output at rest (type 1, serial), and where the
        output has fewer rows than there are free motions.
    constraint: singular value of the rows, relative to their typical lengths, whose number in descending order is the rank at
        neighbouring states; 0 where a motion is gained.
    mobility: number of free motions at the state.   rank: of the rows.
    jacobian: (outputs, inputs) derivative of the output with respect to the inputs, nan where the inputs do not determine the
        motion; angles are multiplied by the length.
    """

    input: float
    output: float
    constraint: float
    mobility: int
    rank: int
    jacobian: np.ndarray

    def __repr__(self) -> str:
        measures = f"input {self.input:.4g}, output {self.output:.4g}, constraint {self.constraint:.4g}"
        return f"<Singularities: {measures}, mobility {self.mobility}, rank {self.rank}, jacobian {self.jacobian.shape}>"


def singularities(
    m: Mechanism, q: Any, body: str, *, length: float, inputs: Sequence[str] | None = None, point: Any = (0, 0, 0),
    turning: bool = True, parameters: Any = None,
) -> Singularities:  # fmt: skip
    """Input, output and constraint singularity of a closed machine at a state: how near to zero each measure is.

    Metres and radians, or forces and moments, are comparable only by a length, which the caller chooses: an angle counts as
    that length times the angle.

    Args:
        m: the mechanism.
        q: (nq,) or {coordinate: number}, on the constraints.
        body: name of the body that is the output, a platform or hand.
        length: characteristic length [m], such as the radius of the platform.
        inputs: names of the driven velocities; those of the actuators if None.
        point: (3,) the point whose velocity is the output, in the body's frame [m]; its origin by default.
        turning: whether the output includes the angular velocity; True by default.
        parameters: {name: value} or an array in the mechanism's order; defaults where left out.
    Returns: the measures, the mobility, the rank of the rows, and the Jacobian from inputs to output.
    Raises ModelError: unknown names, no inputs, a length that is not above zero, a batch, a state off the constraints.

    Example:
        An arm of two links is at an output singularity when it is stretched:

        >>> import pfaffian as pf
        >>> hinges = [pf.joint(n, "revolute", a, b, axis=(0, 1, 0), placement=(x, 0, 0))
        ...           for n, a, b, x in (("A", "world", "arm", 0), ("B", "arm", "hand", 1))]
        >>> m = pf.mechanism("arm", [pf.body("arm", 1.0, inertia=1.0), pf.body("hand", 1.0, inertia=1.0)], hinges)
        >>> reach = {"inputs": ["A", "B"], "point": (1, 0, 0), "turning": False, "length": 1.0}
        >>> [round(pf.constraints.singularities(m, {"B": b}, "hand", **reach).output, 6) for b in (0.0, 1.5707963268)]
        [0.0, 0.618034]
    """
    m = present(as_mechanism(m))
    L = as_float(length)
    if not (np.isfinite(L) and L > 0):
        raise ModelError(f"singularities: length must be above zero, got {length!r}")
    if not is_one_of(body, {b.name for b in m.bodies}):
        raise ModelError(f"singularities: there is no body {brief(body)}; {nearest(body, [b.name for b in m.bodies])}")
    qs, p = configurations(m, q), parameter_values(m, parameters)
    if len(qs) != 1 or len(p) != 1:
        raise ModelError("singularities takes one state at a time")
    names, rows = _driven(m, inputs), slice(0, 6 if as_flag(turning, "turning") else 3)
    at, J = _matrices(m, qs[0], p[0]), _output(m, body, point, qs[0], p[0])[rows]
    check_on_constraints(m, at.off[None])
    scale = np.array([1.0 if unit == "m/s" else L for unit in m.v_units])
    units = np.array([1.0, 1, 1, L, L, L])[rows]
    rank = max(_rank(x / scale) for x in (at.A, *_near(m, at, scale, p[0])))
    _, sizes, V = np.linalg.svd(at.A / scale, full_matrices=True)
    rank_here = Decision(int((sizes > DEPENDENT).sum()), closest(sizes, DEPENDENT), DEPENDENT)
    here = tell(m, "the rank of the constraint rows at this state", rank_here)
    Z = V[here:].T
    S = _inputs_along_v(m, names, qs[0], p[0]) / scale
    size = 1 / np.linalg.norm(S, axis=1)
    SZ, JZ = size[:, None] * S @ Z, units[:, None] * J @ (Z / scale[:, None])
    if len(names) == Z.shape[1] and _least(SZ) > DEPENDENT:
        through = JZ @ np.linalg.inv(SZ) * size
    else:
        through = np.full((len(units), len(names)), np.nan)
    last = float(sizes[rank - 1]) if rank else 1.0
    return Singularities(_least(SZ), _least(JZ), last, Z.shape[1], here, through)


def _least(X: np.ndarray) -> float:
    """The least singular value of X (rows, columns), zero if it has fewer rows than columns."""
    if X.shape[0] < X.shape[1]:
        return 0.0
    return float(np.linalg.svd(X, compute_uv=False).min(initial=1.0))


def _driven(m: Mechanism, inputs: Sequence[str] | None) -> list[tuple[str, int]]:
    """(joint, number of its velocity) of each input. Raises ModelError: a name is unknown, or nothing is driven."""
    if inputs is None:
        driven = [(a.joint, a.component) for a in m.actuators if isinstance(a, Actuator)]
    else:
        known = _velocities(m)
        for name in (names := as_names(inputs, "inputs")):
            if name not in known:
                raise ModelError(f"inputs: there is no velocity {name!r}; {nearest(name, list(known))}")
        driven = [known[name] for name in names]
    if not driven:
        raise ModelError("singularities: name the driven velocities, inputs=[...]; the machine has no actuators in joints")
    return driven


def _velocities(m: Mechanism) -> dict[str, tuple[str, int]]:
    """Name of each velocity -> (its joint, its number there), of closures too; ("", its number) where velocities are chosen."""
    if m.velocities is not None:
        return {name: ("", i) for i, name in enumerate(m.v_names)}
    movers = m.named_movers.values()
    return {(f"{j.name}.{n}" if n else j.name): (j.name, i) for j in movers for i, n in enumerate(j.v_names)}


def _inputs_along_v(m: Mechanism, driven: list[tuple[str, int]], q: np.ndarray, p: np.ndarray) -> np.ndarray:
    """(inputs, nv) rates of the inputs for unit velocities."""

    def rate(T: Terms, name: str, i: int) -> ca.SX:
        return (T.kinematics.joint_rate(name) if name else T.v)[i]

    S = {"S": lambda T: ca.vertcat(*[ca.jacobian(rate(T, *x), T.v) for x in driven])}
    return compile_terms(m, S, squeeze=False, backend="interpreter")(q, parameters=p)["S"]


def _output(m: Mechanism, body: str, point: Any, q: np.ndarray, p: np.ndarray) -> np.ndarray:
    """(6, nv) Jacobian of the output's twist."""
    J = {"J": lambda T: T.kinematics.jacobian(body, "LOCAL_WORLD_ALIGNED", point)}
    return compile_terms(m, J, squeeze=False, backend="interpreter")(q, parameters=p)["J"]


class _MatricesAt(NamedTuple):
    """Matrices at a configuration q (nq,): kinematic matrix K (nq, nv), constraint rows A (rows, nv) divided by their typical
    lengths, residuals `off` (rows, 4), see `off_constraints`."""

    q: np.ndarray
    K: np.ndarray
    A: np.ndarray
    off: np.ndarray


def _matrices(m: Mechanism, q: np.ndarray, p: np.ndarray) -> _MatricesAt:
    """The matrices at q (nq,) under the parameters p (np,)."""
    rows = lambda T: ca.diag(1 / row_lengths(T)) @ T.A  # noqa: E731
    terms = {"K": lambda T: T.kinematics.kinematic_matrix, "A": rows, "off": off_constraints}
    values = compile_terms(m, terms, squeeze=False, backend="interpreter")(q, parameters=p)
    return _MatricesAt(q, values["K"], values["A"], values["off"])


def _rank(rows: np.ndarray) -> int:
    """Number of independent rows."""
    return int((np.linalg.svd(rows, compute_uv=False) > DEPENDENT).sum()) if len(rows) else 0


def _near(m: Mechanism, at: _MatricesAt, scale: np.ndarray, p: np.ndarray) -> list[np.ndarray]:
    """The rows at neighbouring states on the constraints, where rows that are dependent only here are independent again."""
    random, neighbours = np.random.default_rng(11), []
    _, sizes, V = np.linalg.svd(at.A / scale, full_matrices=True)
    free = basis(V[int((sizes > DEPENDENT).sum()) :].T)
    for _ in range(NEIGHBOURS if free.size and len(at.A) else 0):
        y = free @ random.normal(size=free.shape[1])
        dy = NEAR * y / np.abs(y).max() / scale
        try:
            neighbours.append(_matrices(m, assemble(m, at.q + at.K @ dy, parameters=p).q, p).A)
        except RunError:
            continue
    return neighbours
