"""The terms of a mechanism at new symbols, for expressions of the user's own."""

from __future__ import annotations

import pfaffian.dynamics.load_losses  # noqa: F401  # enters the friction that is a part of Terms.f
from pfaffian.model.mechanism import Mechanism, as_mechanism
from pfaffian.terms import terms
from pfaffian.terms.terms import Terms


def symbols(m: Mechanism) -> Terms:
    """Terms of a mechanism at new symbols q, v, u, t: expressions to differentiate, print or compile.

    Args:
        m: the mechanism.
    Returns:
        Terms, with the mass matrix M, the bias force c, the input matrix B, the constraint rows A, ... as expressions in q, v,
        u, t and the mechanism's parameters.
    Raises ModelError: m is not a mechanism.

    Example:
        >>> import casadi as ca
        >>> import pfaffian as pf
        >>> bob = pf.body("bob", mass=2.0, com=(0, 0, -1))
        >>> m = pf.mechanism("pendulum", [bob], [pf.joint("hinge", "revolute", "world", "bob", axis=(0, 1, 0))])
        >>> T = pf.symbols(m)
        >>> moment = ca.Function("moment", [T.q], [ca.gradient(T.V, T.q)])
        >>> round(float(moment(ca.pi / 2)), 2)  # m g l
        19.62
    """
    return terms.symbols(as_mechanism(m))
