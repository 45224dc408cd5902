"""Inertia of a body by unknown numbers, of which every choice is physically possible."""

from __future__ import annotations

import casadi as ca
import numpy as np

from pfaffian.errors import ModelError
from pfaffian.maths.inertia import moments, pseudo
from pfaffian.model.body import Body
from pfaffian.model.body import body as new_body
from pfaffian.model.number import Parameter, at_defaults

LOG_CHOLESKY = ("alpha", "d1", "d2", "d3", "s12", "s23", "s13", "t1", "t2", "t3")
"""The numbers of a body: the logarithm of its scale, logarithms of stretches, shears, and the mass centre's place."""


def free_inertia(body: Body) -> tuple[Body, tuple[Parameter, ...]]:
    """A body with ten parameters in place of its inertia, of which every choice is physically possible.

        P = exp(2 alpha) U U^T,   U = [[exp(d1), s12, s13, t1], [0, exp(d2), s23, t2], [0, 0, exp(d3), t3], [0, 0, 0, 1]]

    P is the pseudo-inertia (4, 4), positive definite for all values of the parameters (log-Cholesky). A fit of these parameters
    never meets a negative mass or principal moments that violate the triangle inequality, and needs no bounds.

    Args:
        body: with numbers or parameters for mass, mass centre and inertia; at the defaults the new body equals it.
    Returns:
        the new body, and its parameters "name alpha" ... "name t3", for `mechanism(..., parameters=[...])`.
    Raises ModelError: the body has no mass, or an inertia on the edge of the possible, such as a point mass.

    Example:
        >>> import numpy as np, pfaffian as pf
        >>> rod = pf.body("rod", mass=2.0, com=(0, 0, -0.5), inertia=(0.1, 0.1, 0.02))
        >>> free, ten = pf.identification.free_inertia(rod)
        >>> hinge = pf.joint("hinge", "revolute", "world", "rod", axis=(0, 1, 0))
        >>> m = pf.mechanism("pendulum", [free], [hinge], parameters=ten)
        >>> pf.mass_matrix(m).round(9), len(ten)  # 0.1 + 2 * 0.5^2
        (array([[0.6]]), 10)
    """
    P = at_defaults(pseudo(*moments(body.mass, body.com, body.inertia)))
    if P is None or not np.linalg.eigvalsh(P)[0] > 0:
        raise ModelError(f"free_inertia: body {body.name!r} needs a mass and an inertia that some body with extent has")
    turned = np.linalg.cholesky(P[::-1, ::-1])[::-1, ::-1]  # P = U U^T with U upper triangular
    U = turned / turned[3, 3]
    values = [np.log(turned[3, 3]), *np.log(np.diag(U)[:3]), U[0, 1], U[1, 2], U[0, 2], *U[:3, 3]]
    units = ("1",) * 4 + ("m",) * 6
    numbers = tuple(Parameter(f"{body.name} {n}", float(x), u) for n, x, u in zip(LOG_CHOLESKY, values, units, strict=True))
    alpha, d1, d2, d3, s12, s23, s13, t1, t2, t3 = (x.symbol for x in numbers)
    top = ca.vertcat(ca.horzcat(ca.exp(d1), s12, s13, t1), ca.horzcat(0, ca.exp(d2), s23, t2), ca.horzcat(0, 0, ca.exp(d3), t3))
    U_now = ca.vertcat(top, ca.horzcat(0, 0, 0, 1))
    made = new_body(body.name, pseudo=ca.exp(2 * alpha) * (U_now @ U_now.T))
    return Body(made.name, made.mass, made.com, made.inertia, body.shapes), numbers
