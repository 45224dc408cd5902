"""Passages of a run through singular configurations, and changes of rank."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pfaffian.errors import ModelError
from pfaffian.model.number import named_float
from pfaffian.simulate.record.result import as_result, recorded

if TYPE_CHECKING:
    import xarray as xr

NEAR = 0.02
"""Regularity below which a minimum of the regularity counts as a singular passage."""


class Passage(NamedTuple):
    """A passage through a singular configuration, or a change of rank.

    time: [s] instant of the smallest regularity.   regularity: [1] at that instant.
    ranks: ranks recorded before, at and after it.
    """

    time: float
    regularity: float
    ranks: tuple[int, int, int]


def singular_passages(result: xr.Dataset, near: float = NEAR) -> list[Passage]:
    """The instants at which a run came closest to losing rank, and its recorded changes of rank, in order.

    Args:
        result: the result of one run with constraints, recorded often enough to resolve the passage (`every` = 1 is best).
        near: regularity [1] below which a minimum counts.
    Returns:
        list of Passage: time [s], regularity at that time, and the ranks recorded before, at and after it.
    Raises ModelError: the result is a batch, or of a mechanism without constraints.

    Example:
        A bead on two crossing wires, x y = 0, passes the crossing after 0.5 s:

        >>> import pfaffian as pf
        >>> plane = pf.joint("bead", "planar-translation", "world", "bead")
        >>> wires = pf.holonomic("wires", lambda k: k.q[0] * k.q[1])
        >>> m = pf.mechanism("crossing", [pf.body("bead", mass=1.0)], [plane], constraints=[wires])
        >>> result = pf.run(m, [-0.5, 0.0], [1.0, 0.0], duration=1.0, step=0.01, backend="numpy")
        >>> [round(passage.time, 6) for passage in pf.results.singular_passages(result)]
        [0.5]
    """
    near = named_float(near, "near")
    if not as_result(result).sizes.get("row") or "run" in result.dims:
        raise ModelError(
            "singular_passages takes the result of one run of a mechanism with constraints; pick one with .isel(run=...)"
        )
    recorded(result, "regularity", "rank")
    r, rank, t = (result[n].values for n in ("regularity", "rank", "time"))
    rank = np.nan_to_num(rank).astype(int)
    inner = np.arange(1, len(t) - 1)
    dips = inner[(r[inner] < near) & (r[inner] <= r[inner - 1]) & (r[inner] < r[inner + 1])]
    changes = inner[rank[inner] != rank[inner - 1]]
    instants = sorted(set(dips) | set(changes))
    return [Passage(float(t[i]), float(r[i]), (int(rank[i - 1]), int(rank[i]), int(rank[i + 1]))) for i in instants]
