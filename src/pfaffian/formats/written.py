"""Functions given by expressions in a file, of coordinates, their rates, the time and parameters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import casadi as ca

from pfaffian.errors import ModelError
from pfaffian.formats.expression import expression
from pfaffian.model.data import data
from pfaffian.model.mechanism import Mechanism


@data
class Written:
    """A function f(k) given by a column of expressions: "m*g*l*cos(hinge)", "base.vz", "sin(2*t)", "hinge'" for a rate.

    texts: one expression per row.   names, values: names of the parameters, and (n, 1) their symbols.
    """

    texts: tuple[str, ...]
    names: tuple[str, ...]
    values: ca.SX

    def __repr__(self) -> str:
        return f"<Written: {', '.join(self.texts)[:60]}>"

    def __call__(self, k: Any) -> ca.SX:
        known = self._known(k.mechanism, k.q, k.v, k.t)
        return ca.vertcat(*[expression(text, known, "its expression") for text in self.texts])

    def check(self, m: Mechanism) -> None:
        """Raise ModelError if an expression uses an unknown name, or if a name is ambiguous in this mechanism."""
        twice = [n for n, count in Counter(self._names(m)).items() if count > 1]
        if twice:
            raise ModelError(
                f"the name {twice[0]!r} is ambiguous among parameters, coordinates, rates and the time t; rename one of them"
            )
        known = self._known(m, ca.SX.sym("q", m.nq), ca.SX.sym("v", m.nv), ca.SX.sym("t"))
        for text in self.texts:
            expression(text, known, "its expression")

    def _names(self, m: Mechanism) -> tuple[str, ...]:
        """All names that expressions can use, in the order parameters, coordinates, rates, time."""
        rates = [f"{n}'" if n in m.q_names else n for n in m.v_names]
        return (*self.names, *m.q_names, *rates, "t")

    def _known(self, m: Mechanism, q: ca.SX, v: ca.SX, t: ca.SX) -> Mapping[str, ca.SX]:
        """Name -> symbol, for all names that expressions can use."""
        return dict(zip(self._names(m), ca.vertsplit(ca.vertcat(self.values, q, v, t)), strict=True))
