"""The terms of the equations of motion: M v_dot + c = f + B u + A^T lambda, A v_dot = b.

Every formulation uses these and nothing else, so that the results of any two can be compared.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import casadi as ca
import numpy as np

from pfaffian.errors import ModelError, ModelWarning, brief, notice
from pfaffian.maths.margins import CLEAR
from pfaffian.maths.tree_factor import TreeFactor, factor_tree, solve_W
from pfaffian.maths.values import values
from pfaffian.model import reprs
from pfaffian.model.compound import each
from pfaffian.model.constraint import Closure, Servo
from pfaffian.model.load_loss import LoadLoss
from pfaffian.model.mechanism import Mechanism, random_configuration
from pfaffian.terms import connection
from pfaffian.terms.applied_forces import applied_force, input_matrix, potential_energy
from pfaffian.terms.articulated_inertia import check_inertia
from pfaffian.terms.dependence import RowSample, dependent_rows
from pfaffian.terms.hamel import added_inertia
from pfaffian.terms.kinematics import Kinematics
from pfaffian.terms.lengths import (
    PURE,
    inverse_scales,
    machine_length,
    row_units,
    scales_with_length,
    slides,
    squared_lengths,
    unknown_lengths,
)
from pfaffian.terms.loop_rotors import rotor_coriolis, rotor_inertia
from pfaffian.terms.pfaffian import LEVELS, Rows, ServoRows, constraint_rows, row_names, servo_rows
from pfaffian.terms.recursions import (
    Inertia,
    bias_force,
    coriolis_matrix,
    gravity_force,
    inverse_dynamics,
    kinetic_energy,
    mass_matrix,
)
from pfaffian.terms.traced_now import remembered


class JointLosses(NamedTuple):
    """Friction that follows the loads of joints.

    joints: their names.   values: (n, 1) friction along the rate of each.   force: (nv, 1) the sum along v.
    faults: (n + 1, 1) nonzero where a joint has no friction or several; and where the iterations left a residual.
    moved: v_dot (nv, 1) and the effect of the rows on it in mass-weighted coordinates (nv, 1), with which the friction was
        solved; None where v_dot was given.
    """

    joints: tuple[str, ...]
    values: ca.SX
    force: ca.SX
    faults: ca.SX
    moved: tuple[ca.SX, ca.SX] | None = None


LOAD_LOSSES = "load losses"
FOLLOWING: dict[str, Callable[[Terms], JointLosses]] = {}
"""How forces that follow the motion are found. The room `dynamics`, which solves for motions, enters its function here."""


def has_losses(m: Mechanism) -> bool:
    """Whether a joint of a mechanism has friction that follows its load."""
    return bool(m.forces) and any(isinstance(f, LoadLoss) for f in m.all_forces)


@dataclass(frozen=True, eq=False)
class Terms:
    """Terms of a mechanism's equations at symbols q (nq, 1), v (nv, 1), u (nu, 1), t; each is built once, on demand.

    M v_dot + c = f + B u + A^T lambda, A v_dot = b: M, c, f, B, A and b are expressions, and so are T and V, kinetic and
    potential energy. `symbols(m)` returns Terms; `compile_terms` and control laws pass them to the caller's functions. A term
    that no result needs costs nothing in the kernel.

    Example:
        >>> import pfaffian as pf
        >>> bob = pf.body("bob", mass=2.0, com=(0, 0, -1))
        >>> m = pf.mechanism("pendulum", [bob], [pf.joint("hinge", "revolute", "world", "bob", axis=(0, 1, 0))])
        >>> T = pf.symbols(m)
        >>> print(T.M, T.V)
        2 (-19.62*cos(q))
    """

    mechanism: Mechanism
    q: ca.SX
    v: ca.SX
    u: ca.SX
    t: ca.SX

    def __repr__(self) -> str:
        m = self.mechanism
        return reprs.words(self, f"of {m.name!r}", f"q ({m.nq}, 1), v ({m.nv}, 1), u ({m.nu}, 1), t")

    def under(self, u: ca.SX) -> Terms:
        """These terms with other inputs u (nu, 1); terms that are already built and do not depend on inputs are reused."""
        other = Terms(self.mechanism, self.q, self.v, u, self.t)
        of_inputs = ("u", "force", "generalised_input", *(("f", "losses") if has_losses(self.mechanism) else ()))
        vars(other).update({name: x for name, x in vars(self).items() if name not in of_inputs})
        return other

    def with_losses(self, losses: JointLosses) -> Terms:
        """These terms with friction that is known, in place of that of the motion under u."""
        other = self.under(self.u)
        vars(other)["losses"] = losses
        return other

    def anew(self) -> Terms:
        """New Terms at the same symbols, which reuse only the kinematics and the constraint rows."""
        other = Terms(self.mechanism, self.q, self.v, self.u, self.t)
        vars(other).update(kinematics=self.kinematics, rows=self.rows)
        return other

    def built(self, name: str) -> bool:
        """Whether the term of this name has been built."""
        return name in vars(self)

    @cached_property
    def kinematics(self) -> Kinematics:
        return Kinematics(self.mechanism, self.q, self.v, self.t)

    @cached_property
    def M(self) -> ca.SX:
        """(nv, nv) mass matrix [kg, kg m, kg m^2]."""
        M = mass_matrix(self.kinematics)
        return M if self.added is None else M + self.added.M

    @cached_property
    def added(self) -> Inertia | None:
        """Inertia in addition to that of the bodies and of the joints of the tree; None if there is none."""
        parts = [x for x in (self.of_energies, self.of_rotors) if x is not None]
        return None if not parts else parts[0] if len(parts) == 1 else Inertia(*[x + y for x, y in zip(*parts, strict=True)])

    @cached_property
    def of_energies(self) -> Inertia | None:
        """Inertia of the caller's kinetic energies; None if there are none."""
        return added_inertia(self.kinematics)

    @cached_property
    def of_rotors(self) -> Inertia | None:
        """Inertia of the rotors in joints that close loops; None if there are none."""
        return rotor_inertia(self.kinematics)

    @cached_property
    def factor(self) -> TreeFactor:
        """M = W W^T, sparse along the tree. Raises ModelError: a joint moves no inertia."""
        self.check_mass()
        return factor_tree(self.M, self.kinematics.parents)

    def check_mass(self) -> None:
        """Raise ModelError if a joint or a velocity moves no inertia."""
        if self.kinematics.rates.plain:
            for link in self.kinematics.tree.links:
                check_inertia(ca.diag(self.M)[link.v], link.joint.name)
        for i, name in enumerate(self.mechanism.v_names):
            if self.M[i, i].is_zero():
                raise ModelError(
                    f"velocity {name!r} moves no inertia; let a body's pose depend on it, or give it kinetic energy"
                )

    @cached_property
    def c(self) -> ca.SX:
        """(nv, 1) Coriolis, centrifugal and gravity force [N, N m]."""
        c = bias_force(self.kinematics)
        return c if self.added is None else c + self.added.c

    @cached_property
    def velocity_force(self) -> ca.SX:
        """(nv, 1) Coriolis and centrifugal force, the part of c without gravity [N, N m]."""
        return self.c - gravity_force(self.kinematics)

    def inertia_force(self, v_dot: ca.SX) -> ca.SX:
        """(nv, 1) M v_dot + c; the inertia of bodies enters by recursion, without M."""
        f = inverse_dynamics(self.kinematics, v_dot)
        return f if self.added is None else f + self.added.M @ v_dot + self.added.c

    @cached_property
    def C(self) -> ca.SX:
        """(nv, nv) with C + C^T = dM/dt; C v is the part of c that is quadratic in v."""
        C = coriolis_matrix(self.kinematics)
        if self.of_energies is not None:
            C += connection.coriolis_matrix(self.kinematics, self.of_energies.M)
        return C if self.of_rotors is None else C + rotor_coriolis(self.kinematics)

    @cached_property
    def f(self) -> ca.SX:
        """(nv, 1) applied forces that are not inputs: springs, dampers, wrenches, potentials, ... [N, N m].

        Friction that follows the loads of joints is included, for which the motion under the inputs u has to be solved.
        """
        return self.applied if self.losses is None else ca.densify(self.applied + self.losses.force)

    @cached_property
    def applied(self) -> ca.SX:
        """(nv, 1) the part of f that does not depend on the loads of joints."""
        return applied_force(self.kinematics)

    @cached_property
    def losses(self) -> JointLosses | None:
        """Friction that follows the loads of joints; None if there is none."""
        return FOLLOWING[LOAD_LOSSES](self) if has_losses(self.mechanism) else None

    @cached_property
    def B(self) -> ca.SX:
        """(nv, nu) input matrix."""
        return input_matrix(self.kinematics)

    @cached_property
    def force(self) -> ca.SX:
        """(nv, 1) f + B u - c: the sum of all forces but the reactions."""
        return self.generalised_input - self.c

    @cached_property
    def generalised_input(self) -> ca.SX:
        """(nv, 1) f + B u."""
        return self.f + self.B @ self.u

    @cached_property
    def rows(self) -> Rows:
        return constraint_rows(self.kinematics)

    @cached_property
    def servo(self) -> ServoRows:
        """Rows of servo constraints, which forces along chosen directions maintain."""
        return servo_rows(self.kinematics, self.B)

    @property
    def A(self) -> ca.SX:
        """(m, nv) constraint rows."""
        return self.rows.A

    @property
    def b(self) -> ca.SX:
        """(m, 1) right-hand side of A v_dot = b."""
        return self.rows.b

    @cached_property
    def A_dot(self) -> ca.SX:
        """(m, nv) dA/dt along the motion at v_dot = 0: complete, except for rows of an eta that is not affine in v."""
        A = ca.densify(self.A)
        along = ca.jtimes(ca.vec(A), self.q, self.kinematics.q_dot) + ca.jacobian(ca.vec(A), self.t)
        return ca.reshape(along, *A.shape)

    @cached_property
    def Lam(self) -> ca.SX:
        """(m, nv) A W^-T: the rows in mass-weighted coordinates. [aghili08 (19)]"""
        return solve_W(self.factor, self.A.T).T

    @cached_property
    def typical(self) -> Typical:
        return typical(self.mechanism)

    @cached_property
    def row_size(self) -> ca.SX:
        """(m, 1) squared length of each constraint row, relative to its typical one."""
        return relative_size(self, self.A)

    def inverse_scales(self, limit: float) -> ca.SX:
        """(m, 1) 1 / s of each row: a constraint is satisfied if |phi| / s <= limit, whatever the machine's size.

        See `terms.lengths.inverse_scale`.
        """
        known = ca.densify(row_lengths(self))
        known[list(self.typical.unknown), 0] = 0
        return inverse_scales(self.kinematics, self.rows, limit, known)

    @cached_property
    def groups(self) -> list[list[int]] | None:
        """Groups of all constraint rows, see `row_groups`."""
        return self.row_groups()

    def row_groups(self, rows: Sequence[int] | None = None) -> list[list[int]] | None:
        """The groups of all blocks of `row_blocks`, in the form that `maths.linear.orthogonalise` takes."""
        blocks = self.row_blocks(rows)
        return None if blocks is None else [group for block in blocks for group in block]

    def row_blocks(self, rows: Sequence[int] | None = None) -> list[list[list[int]]] | None:
        """Blocks of constraint rows, such that rows of different blocks are independent; None if every block is one row.

        Each block is a list of groups, one for each level. A velocity row that repeats the rate of a position row is thus in a
        later group and is the one that is dropped, as the correction of positions does not need it.

        rows: indices of the rows to be considered, all if not given; the blocks contain indices among these.
        """
        place = {row: i for i, row in enumerate(range(self.A.shape[0]) if rows is None else rows)}
        present_blocks = [[i for i in block if i in place and self.A[i, :].nnz()] for block in self.typical.dependent]
        several = [block for block in present_blocks if len(block) > 1]
        if not several:
            return None
        alone = [i for i in place if not any(i in block for block in several)]
        levels = [[[i for i in block if self.rows.level[i] == at] for at in LEVELS] for block in several]
        return [[[place[i]]] for i in alone] + [[[place[i] for i in group] for group in block if group] for block in levels]

    @property
    def counted(self) -> ca.DM | None:
        """(1, nv) weight of each column of Lam where lengths of rows are compared; None if all weights are equal."""
        return self.typical.counted

    @cached_property
    def V(self) -> ca.SX:
        """Potential energy [J]."""
        return potential_energy(self.kinematics)

    @cached_property
    def T(self) -> ca.SX:
        """Kinetic energy [J]; v^i dT/dv^i - T for a caller's kinetic energy T that is not purely quadratic in v."""
        T = kinetic_energy(self.kinematics)
        return T if self.added is None else T + self.added.energy


def turning(T: Terms) -> list[int]:
    """Indices of the constraint rows that depend on v, those of an eta that is not affine in v; T is at symbols."""
    return [i for i in range(T.A.shape[0]) if ca.depends_on(T.A[i, :], T.v)]


def as_terms(T: Terms) -> Terms:
    """Return T. Raises ModelError: it is not an object of type Terms."""
    if not isinstance(T, Terms):
        raise ModelError(f"Terms are needed, as symbols(mechanism) or compile_terms provides them, got {brief(T)}")
    return T


class Typical(NamedTuple):
    """Typical properties of the constraint rows of a mechanism.

    lengths: (m, 1) root mean square length of each row in its unit (`row_units`), where a slide by the machine's length counts
        as a turn by 1 rad. A row is short relative to this length; its length at one configuration is no scale, as it may
        vanish at a singular one.
    counted: (1, nv) weight of each column of Lam = A W^-T where lengths of rows are compared, None if all weights are equal.
    grows: for each row whether its length scales with the machine's.   unknown: rows without a typical length.
    dependent: blocks of rows that depend on each other where the constraints are satisfied.
    places: configurations (nq,) on the constraints; empty if the search found none.
    nothing: name and relative length of each row that counts as zero though it is not, nor rounding beside its constraint.
    """

    lengths: ca.DM
    counted: ca.DM | None
    grows: tuple[bool, ...]
    unknown: tuple[int, ...]
    dependent: tuple[tuple[int, ...], ...]
    places: tuple[np.ndarray, ...]
    nothing: tuple[tuple[str, float], ...] = ()


ROUNDING = 1e-12
"""A row or column whose typical length is below this fraction of the longest is rounding, like a row perpendicular to the
plane of a planar loop on a hull that turns in space.
"""

FLAT = 1e-5
"""A closure's row whose typical length is below this fraction of its longest row of the same unit is rounding of the data: in a
file with five digits for its angles, the axes of a planar loop are parallel to some 1e-7. As an independent row it would lock
the loop.
"""

LIGHT = 1e3
"""Largest ratio of a column of Lam to the shortest one at which the column has its full weight.

A direction of small inertia has a long column, sqrt(1 / 1e-12) times that of others for a rod as thin as a thread. Rows that
contain it consist almost of that direction alone in the metric of M, and their other entries would fall below RANK_TOLERANCE
although they are far above rounding. Columns of robots differ by less than 100.
"""


@remembered(256)
def typical(m: Mechanism) -> Typical:
    """Typical properties of the constraint rows of a mechanism, with its parameters at their defaults."""
    return typical_at(m, np.array(m.p_defaults))


def typical_at(m: Mechanism, p: np.ndarray) -> Typical:
    """Typical properties of the constraint rows of a mechanism, over 32 random configurations at parameters p (np,).

    Slides are within the machine's length; speeds are about 1 rad/s, or that length per second.
    """
    if not m.ideal:
        return Typical(ca.DM(0, 1), None, (), (), (), ())
    T = shared(always_active(m))
    grows = scales_with_length(m, T.rows)
    numbers = ca.Function("numbers", [m.p_symbols], [machine_length(m), row_units(m, T.rows.counts, grows)])
    length, units = (np.array(x) for x in numbers(p))
    long = float(length.item()) or 1.0
    unit_speeds = np.where(slides(m), long, 1.0)
    outputs = [T.A, T.M, T.rows.phi, T.kinematics.kinematic_matrix]
    terms = ca.Function("terms", [T.q, T.v, T.t, m.p_symbols], [ca.densify(x) for x in outputs])
    random, speeds = np.random.default_rng(20), np.random.default_rng(21)

    def at(q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        A, M, phi, K = values(terms, q, unit_speeds * v, 0, p)
        return A * unit_speeds / units, M * np.outer(unit_speeds, unit_speeds), phi / units, K * unit_speeds

    def sample(q: np.ndarray) -> RowSample:
        A, _, phi, K = at(q, np.cos(np.arange(m.nv)))
        return RowSample(A, phi[:, 0], K)

    samples = [at(random_configuration(m, random, long), speeds.normal(size=m.nv))[:2] for _ in range(32)]
    mean = np.mean([(A * A).sum(1, keepdims=True) for A, _ in samples], axis=0)
    known = np.where(np.isfinite(mean), mean, 0.0)
    absent, of_function = known <= _rounded(m, T.rows.counts, known), _longest_of_functions(m, T.rows.counts, known)
    lengths = np.sqrt(np.where(absent, np.where(of_function > ROUNDING**2 * known.max(), of_function, 1.0), known))
    dependent, places = dependent_rows(m, sample, lengths, long)
    weighted = [Lam for A, M in samples if (Lam := mass_weighted(A / lengths, M)) is not None]
    blocks = tuple(map(tuple, dependent))
    lost = np.flatnonzero(absent & (known > (ROUNDING / CLEAR) ** 2 * of_function) & (known < lengths**2))
    nothing = tuple((row_names(T.kinematics)[i], float(np.sqrt(known[i, 0] / known.max()))) for i in lost)
    return Typical(ca.DM(lengths), _counted(weighted), grows, unknown_lengths(m, T.rows), blocks, tuple(places), nothing)


def _rounded(m: Mechanism, counts: tuple[int, ...], known: np.ndarray) -> np.ndarray:
    """(m, 1) mean squared length of each row up to which it is rounding.   known: (m, 1) mean squared lengths of all rows."""
    found, first = np.full(known.shape, ROUNDING**2 * known.max(initial=0.0)), 0
    for c, count in zip(m.ideal, counts, strict=True):
        indices = slice(first, first + count)
        if isinstance(c, Closure):
            pure = np.array([row in PURE for row in c.holds.rows])
            for same_unit in (pure, ~pure):
                found[indices][same_unit] = np.maximum(
                    found[indices][same_unit], FLAT**2 * known[indices][same_unit].max(initial=0.0)
                )
        first += count
    return found


def _longest_of_functions(m: Mechanism, counts: tuple[int, ...], known: np.ndarray) -> np.ndarray:
    """(m, 1) for each row of a user's function the longest of that function, 0 for rows of closures, whose units are known.

    known: (m, 1) mean squared lengths of all rows.
    """
    rows = np.split(known, np.cumsum(counts)[:-1])
    longest = [0.0 if isinstance(c, Closure) else x.max(initial=0.0) for c, x in zip(m.ideal, rows, strict=True)]
    return np.repeat(longest, counts)[:, None]


def tell_rows_of_nothing(m: Mechanism) -> None:
    """Warn of a constraint of the user that counts as nothing beside others: rounding, or numbers in another unit."""
    of_user = any(not isinstance(c, Closure) for c in m.ideal)
    for name, relative in typical(m).nothing[:1] if of_user else ():
        notice(
            f"{m.name!r}: constraint row {name!r} counts as nothing, since it is {relative:.1e} of the longest row; leave it "
            "out, or multiply it so that rows are of similar length",
            ModelWarning,
        )


def always_active(m: Mechanism) -> Mechanism:
    """The mechanism with every constraint active, whatever its condition."""
    return replace(m, constraints=each(m.constraints, lambda c: c if isinstance(c, Servo) else replace(c, active=None)))


def row_lengths(T: Terms) -> ca.SX:
    """(m, 1) typical lengths of constraint rows, where a slide by the machine's length counts as a turn by 1 rad."""
    return _row_lengths(T.mechanism, T.rows.counts)


@remembered(64, quick=True)
def _row_lengths(m: Mechanism, counts: tuple[int, ...]) -> ca.SX:
    found = typical(m)
    return found.lengths * row_units(m, counts, found.grows)


def relative_size(T: Terms, A: ca.SX, rows: Sequence[int] | None = None) -> ca.SX:
    """(rows, 1) squared lengths of constraint rows A (rows, nv), relative to their typical lengths.

    rows: their indices, all if not given.
    """
    indices = list(range(T.A.shape[0]) if rows is None else rows)
    size = squared_lengths(T.mechanism, A) / row_lengths(T)[indices, 0] ** 2
    size[[i for i, row in enumerate(indices) if row in T.typical.unknown], 0] = 1
    return size


def mass_weighted(A: np.ndarray, M: np.ndarray) -> np.ndarray | None:
    """A W^-T as numbers; None if a coordinate has no inertia, which every formulation reports as an error."""
    try:
        W = np.linalg.cholesky(M[::-1, ::-1])[::-1, ::-1]
    except np.linalg.LinAlgError:
        return None
    return np.linalg.solve(W, A.T).T if np.isfinite(A).all() and np.isfinite(W).all() else None


def _counted(samples: list[np.ndarray]) -> ca.DM | None:
    """Weights of the columns of A W^-T, from samples of it with rows of typical length one; None if all are equal."""
    columns = np.sqrt(np.mean([(Lam * Lam).sum(0) for Lam in samples], axis=0)) if samples else np.ones(1)
    used = columns[columns > ROUNDING * columns.max(initial=0.0)]
    if not used.size or used.max() <= LIGHT * used.min():
        return None
    return ca.DM(np.minimum(1, LIGHT * used.min() / np.maximum(columns, used.min()))).T


def symbols(m: Mechanism) -> Terms:
    """Terms of a mechanism at new symbols q, v, u, t. `pf.symbols` checks its argument first."""
    return Terms(m, ca.SX.sym("q", m.nq), ca.SX.sym("v", m.nv), ca.SX.sym("u", m.nu), ca.SX.sym("t"))


@remembered(16)
def shared(m: Mechanism) -> Terms:
    """Terms of a mechanism at symbols that all callers share, so that terms that several of them need are built once."""
    return symbols(m)
