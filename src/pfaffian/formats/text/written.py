"""Functions given by expressions in a file, of coordinates, their rates, the time and parameters."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from typing import Any

import casadi as ca

from pfaffian.errors import ModelError
from pfaffian.formats.text.expression import expression, words
from pfaffian.model.data import data
from pfaffian.model.mechanism import Mechanism


@data
class Written:
    """A function f(k) given by a column of expressions: "m*g*l*cos(hinge)", "base.vz", "sin(2*t)", "hinge'" for a rate.

    texts: one expression per row.   names, values: names of the parameters in them, and (n, 1) their symbols.
    """

    texts: tuple[str, ...]
    names: tuple[str, ...]
    values: ca.SX

    def __repr__(self) -> str:
        return f"<Written: {', '.join(self.texts)[:60]}>"

    def __call__(self, k: Any) -> ca.SX:
        return self._value(k.mechanism, lambda of, i: (k.q if of == "q" else k.v)[i], k.t)

    def check(self, m: Mechanism) -> None:
        """Raise ModelError if an expression uses a name that is unknown, or ambiguous in this mechanism."""
        self._value(m, lambda of, i: ca.SX.sym(of), ca.SX.sym("t"))

    def _value(self, m: Mechanism, entry: Callable[[str, int], ca.SX], t: ca.SX) -> ca.SX:
        """The column of values. Only names that occur in a text are looked up, since a mechanism may have very many.

        entry: gives an entry of "q" or "v".
        """
        known = dict(zip(self.names, ca.vertsplit(self.values), strict=True)) if self.names else {}
        for name in words(self.texts):
            where = [entry(of, i) for of, i in m.places.get(name, ())] + ([t] if name == "t" else [])
            if len(where) + (name in known) > 1:
                raise ModelError(
                    f"the name {name!r} is ambiguous among parameters, coordinates, rates and the time t; rename one of them"
                )
            if where:
                known[name] = where[0]
        return ca.vertcat(*[expression(x, known, "its expression", chain(m.p_names, m.places, "t")) for x in self.texts])
