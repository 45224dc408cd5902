"""Sweep settings in a file: only data, which the room `sweeps` uses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from pfaffian.formats.text.yaml_tree import Node

Method = Literal["sobol", "halton", "latin"]
"""Sequence of the samples that fill a space."""
MOST = 2.0**47
STATISTICS = ("maximum", "minimum", "mean", "integral", "final", "time_of_maximum", "at_maximum")

OPTIONS = {"first_crossing": ("level", "direction"), "histogram": ("edges",), "at_maximum": ("of",)}
"""Kind of statistic -> its options."""


@dataclass(frozen=True)
class SweepSettings:
    """A sweep as described in a file.

    listed: label -> (dimension, values) of each axis with listed values.
    ranges: label -> (lowest, highest) of each axis that samples fill.
    count, method, seed: number of samples, their sequence, and its seed.
    keep: name -> (kind of statistic, signal, options), or True to keep the signal of this name over time; or "loads".
    states: label -> (dimension, values) of each axis of states in place of runs; empty for runs.
    block: number of runs in a block; None, the default, for the library's choice.

    Example:
        >>> import pfaffian as pf
        >>> ball, joint = "ball: {mass: 2}", "z: {kind: prismatic, parent: world, child: ball}"
        >>> sweep = "sweep: {axes: {v:z: {from: 0, to: 3, count: 4}}, keep: {top: {maximum: q}}}"
        >>> m, settings = pf.formats.parse_yaml(f"{{bodies: {{{ball}}}, joints: {{{joint}}}, {sweep}}}")
        >>> settings.sweep.listed["v:z"], settings.sweep.keep
        (('v:z', (0.0, 1.0, 2.0, 3.0)), {'top': ('maximum', 'q', ())})
    """

    listed: Mapping[str, tuple[str, tuple[float, ...]]] = field(default_factory=dict)
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    count: int = 0
    method: Method = "sobol"
    seed: int = 0
    keep: Mapping[str, Any] | str = field(default_factory=dict)
    states: Mapping[str, tuple[str, tuple[float, ...]]] = field(default_factory=dict)
    block: int | None = None


def read_sweep(node: Node) -> SweepSettings:
    """Read the `sweep:` section, with the keys axes, samples, states, keep and block."""
    f = node.fields(("axes", "samples", "states", "keep", "block"), required=("keep",))
    listed, states = (
        {label: _axis(label, x) for label, x in (f[key].map() if key in f else {}).items()} for key in ("axes", "states")
    )
    keep = _keep(f["keep"])
    given: dict[str, Any] = {}
    if "samples" in f:
        s = f["samples"].fields(("ranges", "count", "method", "seed"), required=("ranges", "count"))
        given["ranges"] = {label: x.constants(2) for label, x in s["ranges"].map().items()}
        given["count"] = _whole(s["count"])
        given |= {"method": s["method"].choice(get_args(Method))} if "method" in s else {}
        given |= {"seed": _whole(s["seed"], 0)} if "seed" in s else {}
    if not (listed or given or states):
        raise node.error("a sweep needs axes, samples or states")
    return SweepSettings(listed=listed, keep=keep, states=states, block=_whole(f["block"]) if "block" in f else None, **given)


def _axis(label: str, node: Node) -> tuple[str, tuple[float, ...]]:
    """An axis: `{from, to, count}` or `{values: [...]}`, optionally with `along: DIMENSION`; or just a list of values."""
    if isinstance(node.value, list):
        return label, tuple(x.constant() for x in node.items())
    f = node.fields(("from", "to", "count", "values", "along"))
    dim = f["along"].text() if "along" in f else label
    if "values" in f and not {"from", "to", "count"} & set(f):
        return dim, tuple(x.constant() for x in f["values"].items())
    if "values" in f or not {"from", "to", "count"} <= set(f):
        raise node.error("an axis needs either `from`, `to` and `count`, or `values`")
    a, b, n = f["from"].constant(), f["to"].constant(), _whole(f["count"], most=1e7)
    return dim, tuple(a + (b - a) * i / max(n - 1, 1) for i in range(n))


def _keep(node: Node) -> dict[str, Any] | str:
    """What is stored of each run: `loads`, or a statistic or true for each name."""
    if isinstance(node.value, str):
        return node.choice(("loads",))
    return {name: _record(x) for name, x in node.map().items()}


def _record(node: Node) -> Any:
    """A statistic: `{maximum: q}`, `{first_crossing: q, level: 0, direction: rising}`, `{histogram: q, edges: [...]}`; or
    true."""
    if isinstance(node.value, str):
        if not node.truth():
            raise node.error("write true, or a statistic such as {maximum: q}")
        return True
    f = node.fields((*STATISTICS, "first_crossing", "histogram", *[option for of in OPTIONS.values() for option in of]))
    kinds = [name for name in f if not any(name in of for of in OPTIONS.values())]
    if len(kinds) != 1:
        raise node.error("one statistic is needed, such as {maximum: q}")
    kind = kinds[0]
    if set(f) - {kind} - set(OPTIONS.get(kind, ())):
        belongs = ", ".join(f"{' and '.join(of)} to {name}" for name, of in OPTIONS.items())
        raise node.error(f"{kind} lacks these options; {belongs}")
    more: tuple[Any, ...] = ()
    if kind == "at_maximum":
        if "of" not in f:
            raise node.error("at_maximum needs of: the signal whose maximum counts")
        more = (f["of"].text(),)
    if kind == "first_crossing":
        way = f["direction"].choice(("rising", "falling", "either")) if "direction" in f else "either"
        more = f["level"].constant() if "level" in f else 0.0, way
    if kind == "histogram":
        if "edges" not in f:
            raise node.error("a histogram needs edges: [...]")
        more = (tuple(x.constant() for x in f["edges"].items()),)
    return kind, f[kind].text(), more


def _whole(node: Node, least: int = 1, most: float = MOST) -> int:
    value = node.constant()
    if not least <= value <= most or value != int(value):
        raise node.error(f"a whole number from {least} to {most:g} is needed")
    return int(value)
