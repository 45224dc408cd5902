"""What every formulation returns."""

from __future__ import annotations

from typing import NamedTuple

import casadi as ca

RANK_TOLERANCE = 1e-8
"""A row counts as dependent when what is left of it is this part of its length (default of every formulation)."""


class Motion(NamedTuple):
    """v_dot: (nv, 1) acceleration.   reaction: (nv, 1) A^T lambda [N, N m], M v_dot + c = f + B u + reaction.
    rank: (1, 1) independent constraint rows."""

    v_dot: ca.SX
    reaction: ca.SX
    rank: ca.SX
