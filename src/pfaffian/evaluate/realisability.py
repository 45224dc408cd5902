"""Can the chosen control forces maintain the servo constraints? The decoupling matrix at a state, with names. [ider]"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from pfaffian.control.command import Reason
from pfaffian.control.reason import mainly, participation, weakest
from pfaffian.dynamics.controlforce import control_force, direction_names
from pfaffian.dynamics.motion import RANK_TOLERANCE
from pfaffian.errors import ModelError
from pfaffian.evaluate.arrays import configurations, parameter_values
from pfaffian.evaluate.compiled import Compiled, compile_terms
from pfaffian.evaluate.single_values import as_number, common_runs
from pfaffian.maths.tree_factor import solve_W
from pfaffian.model.mechanism import Mechanism, as_mechanism
from pfaffian.terms.pfaffian import row_names, servo_rows
from pfaffian.terms.terms import Terms, symbols
from pfaffian.terms.traced_now import remembered


class Realisability(NamedTuple):
    """Whether the control directions can maintain the servo rows at a state: result of `realisability`.

    realisable: by the criterion of a run.   rank: of the decoupling matrix; `size` is needed.
    smallest: its smallest singular value, with rows and directions of unit length in the metric of M: 0 if some motion cannot
        be produced, 1 for a single row with its ideal direction.
    rows: servo row -> share in the motion that is hardest to produce.   directions: control direction -> share in the force
        that has the least effect.
    G: (size, size) the decoupling matrix, with rows and directions in their units.
    """

    realisable: bool
    rank: int
    size: int
    smallest: float
    rows: dict[str, float]
    directions: dict[str, float]
    G: np.ndarray

    def __str__(self) -> str:
        rows, directions = _main(self.rows), _main(self.directions)
        rank = f"rank {self.rank} of {self.size}, smallest singular value {self.smallest:.3g}"
        if self.realisable:
            return f"realisable: {rank}; the weakest effect is that of {directions} on {rows}"
        return f"not realisable: {rank}; no control direction acts on {rows}; without effect: {directions}"


def realisability(m: Mechanism, q: Any = None, *, t: float = 0.0, parameters: Any = None) -> Realisability:
    """Whether the control forces of servo constraints can maintain them at q, and which rows and forces fail. [ider (17)]

    The criterion is the rank of the decoupling matrix G of the servo constraints; its smallest singular value is the margin.

    Args:
        m: the mechanism, with servo constraints.
        q: (nq,) array or {coordinate: number}; omitted coordinates are neutral. It must satisfy the geometric constraints.
        t: time [s].
        parameters: {name: value} or a (np,) array; defaults where left out.
    Returns:
        a named tuple that prints as a sentence: realisable (by the criterion of a run); rank of G, where `size` is needed; the
        smallest singular value of G with rows and directions of unit length in the metric of M (0 if some motion cannot be
        produced, 1 at best); shares of rows in the motion that is hardest to produce, and of directions in the force that has
        the least effect; G (size, size).
    Raises ModelError: the mechanism has no servo constraints; several configurations; wrong names, shapes or numbers.

    Example:
        >>> import pfaffian as pf
        >>> move, push = pf.joint("move", "planar-translation", "world", "bead"), pf.actuator("push", "move", component=0)
        >>> wire = pf.holonomic("wire", lambda k: k.q[1] - k.q[0])
        >>> place = pf.servo(pf.holonomic("place", lambda k: k.q[0] - 1), ["push"])
        >>> m = pf.mechanism("bead", [pf.body("bead", 2.0)], [move], constraints=[wire, place], actuators=[push])
        >>> print(pf.constraints.realisability(m))  # cos^2 of the 45 degrees between the push and the wire
        realisable: rank 1 of 1, smallest singular value 0.5; the weakest effect is that of 'push' on 'place'
    """
    as_mechanism(m)
    if not m.servos:
        raise ModelError(f"mechanism {m.name!r} has no servo constraints")
    at, p = configurations(m, q), parameter_values(m, parameters)
    if common_runs({"q": len(at), "parameters": len(p)}) > 1:
        raise ModelError("realisability takes one configuration at a time")
    return realisable_per_run(m, at, np.array([as_number(t, "t")]), p)[0]


def realisable_per_run(m: Mechanism, q: np.ndarray, t: np.ndarray, p: np.ndarray) -> list[Realisability]:
    """`Realisability` of the servo constraints for each of several runs: q (runs, nq), t (runs,), p (runs, np)."""
    outputs = _decoupling(m).kernel(q, np.zeros(m.nv), np.zeros(m.nu), p, t[:, None])
    names, motors = _rows(m), _directions(m)
    size, results = len(names), []
    for entries, realisable, rows, directions in zip(*outputs, strict=True):
        G = entries.reshape(size, size, order="F")
        lengths = np.outer(rows, directions)
        unit = np.divide(G, lengths, out=np.zeros_like(G), where=lengths > 0)
        rank, least = int((np.linalg.svd(unit, compute_uv=False) > RANK_TOLERANCE).sum()), weakest(unit)
        by_row, by_motor = _shares(names, participation(least.outputs)), _shares(motors, participation(least.inputs))
        results.append(Realisability(bool(realisable), rank, size, least.gain, by_row, by_motor, G))
    return results


def blamed(m: Mechanism, reason: Reason) -> Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray], list[str]]:
    """The function (q (runs, nq), v (runs, nv), p (runs, np), t (runs,)) -> cause of a fault in each of the runs, in words."""
    T = symbols(m)
    inputs, answers = [T.q, T.v, m.p_symbols, T.t], [ca.densify(f(T)) for f in reason.matrices.values()]
    of = ca.Function("blamed", inputs, answers)

    def words(q: np.ndarray, v: np.ndarray, p: np.ndarray, t: np.ndarray) -> list[str]:
        at_each = (map(np.array, of.call(x)) for x in zip(q, v, p, t, strict=True))
        return [reason.words(m, dict(zip(reason.matrices, x, strict=True))) for x in at_each]

    return words


@remembered(16)
def _decoupling(m: Mechanism) -> Compiled:
    """The compiled G, whether it is regular, and the lengths of rows and directions in the metric of M."""

    def lengths(X: Callable[[Terms], ca.SX]) -> Callable[[Terms], ca.SX]:
        return lambda T: ca.sqrt(ca.sum1(solve_W(T.factor, X(T).T) ** 2)).T

    parts = {
        "G": lambda T: control_force(T).G,
        "realisable": lambda T: control_force(T).realisable,
        "rows": lengths(lambda T: T.servo.A),
        "directions": lengths(lambda T: T.servo.Z),
    }
    return compile_terms(m, parts, lanes=1)


def _rows(m: Mechanism) -> tuple[str, ...]:
    """Names of the servo rows."""
    return row_names(symbols(m).kinematics, tuple(s.target for s in m.servos))


def _directions(m: Mechanism) -> tuple[str, ...]:
    """Names of the control directions."""
    T: Terms = symbols(m)
    counts = [servo_rows(symbols(m.with_(constraints=[*m.ideal, s])).kinematics, T.B).Z.shape[0] for s in m.servos]
    return tuple(n for s, count in zip(m.servos, counts, strict=True) for n in direction_names(s, count))


def _shares(names: tuple[str, ...], w: np.ndarray) -> dict[str, float]:
    """{name: share} from weights w (n,); a direction that is used twice gets the combined share of both."""
    shares = dict.fromkeys(names, 0.0)
    for name, part in zip(names, w, strict=True):
        shares[name] = float(np.hypot(shares[name], part))
    return shares


def _main(shares: dict[str, float]) -> str:
    """The names with the main shares, in words."""
    return mainly(np.array(list(shares.values())), [repr(name) for name in shares], len(shares))
