"""Results of a benchmark: timings of both sides with a goal, as a table for people and as JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any


class Missing(Exception):
    """A requirement of a benchmark is missing: nothing failed, and nothing is measured."""


@dataclass(frozen=True)
class Timing:
    """Samples of one call.   samples: [ns] for each unit of work."""

    name: str
    samples: tuple[float, ...]

    @property
    def median(self) -> float:
        return median(self.samples)

    @property
    def minimum(self) -> float:
        return min(self.samples)


@dataclass(frozen=True)
class Goal:
    """A goal for a number of the comparison.   of: ratio, median [ns] or a note.   sense: ">=" or "<="."""

    of: str
    sense: str
    bound: float

    def __str__(self) -> str:
        bound = formatted(self.bound) if self.of == "median" else f"{self.bound:g}"
        return f"{'' if self.of == 'median' else self.of + ' '}{self.sense} {bound}"

    def met(self, value: float) -> bool:
        return value >= self.bound if self.sense == ">=" else value <= self.bound


@dataclass(frozen=True)
class Comparison:
    """One row: description, our timing, the peer's and the goal if there are any, and notes with more numbers."""

    what: str
    unit: str
    ours: Timing
    peer: Timing | None = None
    goal: Goal | None = None
    notes: dict[str, Any] = field(default_factory=dict)

    @property
    def ratio(self) -> float | None:
        """Ratio of the peer's median to ours."""
        return self.peer.median / self.ours.median if self.peer else None

    @property
    def ratio_of_minima(self) -> float | None:
        """Ratio of the minima, which depends less on other load of the machine."""
        return self.peer.minimum / self.ours.minimum if self.peer else None

    @property
    def met(self) -> bool | None:
        if self.goal is None:
            return None
        numbers = {"ratio": self.ratio, "median": self.ours.median} | self.notes
        return self.goal.met(float(numbers[self.goal.of]))

    def cells(self, judged: bool) -> list[str]:
        met = "" if self.goal is None else "not judged" if not judged else "yes" if self.met else "NO"
        return [
            f"{self.what} [{self.unit}]",
            f"{formatted(self.ours.median)} {self.ours.name}",
            f"{formatted(self.peer.median)} {self.peer.name}" if self.peer else "",
            f"{self.ratio:.1f}" if self.ratio else "",
            f"{self.ratio_of_minima:.1f}" if self.ratio_of_minima else "",
            str(self.goal or ""),
            met,
        ]

    def record(self, benchmark: str, judged: bool) -> dict[str, Any]:
        """The comparison as data for JSON; all times in ns."""
        goal = None if self.goal is None else {"of": self.goal.of, "sense": self.goal.sense, "bound": self.goal.bound}
        return {
            "benchmark": benchmark,
            "what": self.what,
            "unit": f"ns {self.unit}",
            "ours": _record(self.ours),
            "peer": _record(self.peer) if self.peer else None,
            "ratio_of_medians": self.ratio,
            "ratio_of_minima": self.ratio_of_minima,
            "goal": goal,
            "met": self.met if judged else None,
            "notes": self.notes,
        }


def _record(t: Timing) -> dict[str, Any]:
    return {"name": t.name, "median_ns": t.median, "minimum_ns": t.minimum, "samples_ns": list(t.samples)}


def formatted(ns: float) -> str:
    """A time with three digits and its unit."""
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if ns >= size:
            return f"{ns / size:.3g} {unit}" if ns < 1e3 * size else f"{ns / size:.0f} {unit}"
    return f"{ns:.3g} ns"


HEAD = ["what [time of]", "ours, median", "peer, median", "ratio", "of minima", "goal", "met"]


def table(rows: Iterable[tuple[str, Comparison]], judged: bool) -> str:
    """The comparisons in columns, notes below each benchmark."""
    rows = list(rows)
    cells = [HEAD] + [c.cells(judged) for _, c in rows]
    widths = [max(len(line[i]) for line in cells) for i in range(len(HEAD))]

    def line(parts: list[str]) -> str:
        return "  ".join(p.ljust(w) for p, w in zip(parts, widths, strict=True)).rstrip()

    out = [line(HEAD), line(["-" * w for w in widths])]
    for benchmark in dict.fromkeys(name for name, _ in rows):
        comparisons = [c for name, c in rows if name == benchmark]
        out += ["", benchmark] + [line(c.cells(judged)) for c in comparisons]
        out += [f"    {c.what}: " + ", ".join(f"{k} {_plain(v)}" for k, v in c.notes.items()) for c in comparisons if c.notes]
    return "\n".join(out)


def _plain(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def write_json(path: Path, about: dict[str, Any], rows: Iterable[tuple[str, Comparison]], failed: dict[str, str]) -> None:
    """All results of a call, as JSON.   failed: reason of the failed check by benchmark."""
    judged = not about["quick"]
    results = [c.record(name, judged) for name, c in rows]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(about | {"results": results, "failed": failed}, indent=1, allow_nan=False) + "\n")
