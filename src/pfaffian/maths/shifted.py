"""Solutions of (mu - J) x = b for a real or complex shift mu, by elimination whose row exchanges are selections."""

from __future__ import annotations

from typing import NamedTuple

import casadi as ca

from pfaffian.maths.reflection import NOTHING


class Complex(NamedTuple):
    """A matrix re + i im. Of a real one im is zero, so that CasADi drops all operations with it."""

    re: ca.SX
    im: ca.SX

    def __mul__(self, other: Complex) -> Complex:  # type: ignore[override]
        """The product of a scalar and a matrix."""
        return Complex(self.re * other.re - self.im * other.im, self.re * other.im + self.im * other.re)

    def less(self, other: Complex) -> Complex:
        """The difference self - other."""
        return Complex(self.re - other.re, self.im - other.im)

    def at(self, i: int) -> Complex:
        """Entry i of a row or column."""
        return Complex(self.re[i], self.im[i])

    def inverse(self) -> Complex:
        """1 / self of a scalar."""
        size = ca.fmax(self.re * self.re + self.im * self.im, NOTHING)
        return Complex(self.re / size, -self.im / size)

    def size(self) -> ca.SX:
        """|re| + |im| of a scalar."""
        return ca.fabs(self.re) + ca.fabs(self.im)


class RowOperation(NamedTuple):
    """Row `row` less `factor` times row `pivot`, after the two were exchanged where `exchanged` is true (None: never)."""

    pivot: int
    row: int
    exchanged: ca.SX | None
    factor: Complex


class Elimination(NamedTuple):
    """A matrix turned into a triangular one.   rows: of the triangular matrix.   inverse: of its diagonal.   operations: that
    turned it."""

    rows: list[Complex]
    inverse: list[Complex]
    operations: list[RowOperation]

    def solve(self, b: Complex) -> Complex:
        """(n, 1) x with A x = b (n, 1)."""
        of = [b.at(i) for i in range(len(self.rows))]
        for step in self.operations:
            of[step.pivot], below = _exchanged(step.exchanged, of[step.pivot], of[step.row])
            of[step.row] = below.less(step.factor * of[step.pivot])
        for k in reversed(range(len(of))):
            for j in range(k + 1, len(of)):
                of[k] = of[k].less(self.rows[k].at(j) * of[j])
            of[k] = self.inverse[k] * of[k]
        return Complex(ca.vertcat(*[x.re for x in of]), ca.vertcat(*[x.im for x in of]))


def shifted(J: ca.SX, mu: complex, first: int = 0) -> Elimination:
    """The elimination of mu - J for a matrix J (n, n) of real numbers.

    It exchanges each row below with that of the pivot where its entry is larger (pairwise pivoting), so that no factor
    exceeds 1 much.   first: number of columns whose pivots are those on the diagonal, as they are near mu.

    Example:
        >>> import casadi as ca
        >>> from pfaffian.maths.shifted import Complex, shifted
        >>> J = ca.SX([[0, 1], [-4, 0]])
        >>> x = shifted(J, 2j).solve(Complex(ca.SX([0, 0]), ca.SX([0, 1])))
        >>> x = shifted(J, 1.0).solve(Complex(ca.SX([5, 0]), ca.SX(2, 1)))
        >>> print(x.re)
        [1, -4]
    """
    n, re = J.shape[0], ca.SX.eye(J.shape[0]) * complex(mu).real - J
    im = ca.SX.eye(n) * complex(mu).imag if complex(mu).imag else ca.SX(n, n)
    rows, operations, inverse = [Complex(re[i, :], im[i, :]) for i in range(n)], [], []
    for k in range(n):
        below = [i for i in range(k + 1, n) if rows[i].re[k].nnz() or rows[i].im[k].nnz()]
        later = []
        for i in below:
            exchanged = rows[i].at(k).size() > rows[k].at(k).size() if k >= first else None
            rows[k], rows[i] = _exchanged(exchanged, rows[k], rows[i])
            if k < first:
                later.append((i, exchanged))
                continue
            operations.append(_cleared(rows, k, i, exchanged, rows[k].at(k).inverse()))
        inverse.append(rows[k].at(k).inverse())
        operations += [_cleared(rows, k, i, exchanged, inverse[-1]) for i, exchanged in later]
    return Elimination(rows, inverse, operations)


def _cleared(rows: list[Complex], k: int, i: int, exchanged: ca.SX | None, inverse: Complex) -> RowOperation:
    """Clear entry k of row i by row k, and return how."""
    factor = rows[i].at(k) * inverse
    rows[i] = rows[i].less(factor * rows[k])
    rows[i].re[k], rows[i].im[k] = 0, 0
    return RowOperation(k, i, exchanged, factor)


def _exchanged(condition: ca.SX | None, above: Complex, below: Complex) -> tuple[Complex, Complex]:
    """Two rows, exchanged where the condition is true."""
    if condition is None:
        return above, below
    first = Complex(*(ca.if_else(condition, b, a) for a, b in zip(above, below, strict=True)))
    return first, Complex(*(ca.if_else(condition, a, b) for a, b in zip(above, below, strict=True)))
