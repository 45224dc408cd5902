"""Fingerprints of equations: of a mechanism, and of any function of the caller's by the graph that it traces."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import Any

import casadi as ca
import numpy as np

from pfaffian.model.caller import answer, checked
from pfaffian.model.coordinates import residual
from pfaffian.model.digest import structure
from pfaffian.model.mechanism import Mechanism
from pfaffian.model.number import matrix
from pfaffian.terms.kinematics import Kinematics
from pfaffian.terms.terms import symbols


def digest(m: Mechanism) -> str:
    """sha256 of all that shapes the equations of a mechanism, its functions of the kinematics included."""
    k = symbols(m).kinematics
    said = structure(m, lambda f, what: of_function(f, what, k))
    if k.rates.plain and not m.coordinates:
        return said
    r, q, p = k.rates, k.q, m.p_symbols
    poses = [ca.vertcat(ca.vec(R), x) for R, x in (f(q, p) for f in r.pose.values())]
    normal = [residual(c, q[m.q_slices[c.name], 0], p) for c in m.coordinates if c.phi]
    return sha256((said + graph([q, p], [*r.maps(q, p), *poses, *normal])).encode()).hexdigest()


def of_function(f: Callable[[Kinematics], Any], what: str, k: Kinematics) -> str:
    """sha256 of the graph that a function of Kinematics traces at symbols k: two that compute alike have one.

    what: whose it is. Raises ModelError: it fails.
    """
    value = answer(f, what, k)
    value = float(value) if isinstance(value, (bool, np.bool_)) else value
    known = [k.q, k.v, k.t, k.mechanism.p_symbols]
    return graph(known, [checked(matrix(value, what), what, known)])


def graph(inputs: Sequence[ca.SX], outputs: Sequence[ca.SX]) -> str:
    """sha256 of expressions as functions of the inputs."""
    return sha256(ca.Function("graph", inputs, outputs).serialize().encode()).hexdigest()
