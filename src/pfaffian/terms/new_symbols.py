"""Evaluate a caller's function at new symbols, to differentiate it, and then substitute the given expressions for these."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import casadi as ca

from pfaffian.terms.kinematics import Kinematics


def at_new_symbols(k: Kinematics) -> Kinematics:
    """Kinematics of the mechanism of k at new symbols q, v, t."""
    return replace(k).apart  # of a copy, which has not been asked yet


def placed(x: Sequence[ca.SX], s: Kinematics, k: Kinematics) -> list[ca.SX]:
    """Expressions x in the symbols of s, with the q, v, t of k substituted for these symbols."""
    p = k.mechanism.p_symbols
    f = ca.Function("x", [s.q, s.v, s.t, p], list(x))
    return f.call([k.q, k.v, k.t, p])
