"""Fingerprints of equations: of a mechanism, and of any function of the caller's by the graph that it traces."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import Any

import casadi as ca
import numpy as np

from pfaffian.model.caller import answer, checked
from pfaffian.model.digest import structure
from pfaffian.model.mechanism import Mechanism
from pfaffian.model.number import matrix
from pfaffian.terms.kinematics import Kinematics
from pfaffian.terms.terms import symbols


def digest(m: Mechanism) -> str:
    """sha256 of all that shapes the equations of a mechanism, its functions of the kinematics included."""
    k = symbols(m).kinematics
    return structure(m, lambda f, what: of_function(f, what, k))


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
