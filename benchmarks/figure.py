"""A measured number with its target, and how a list of them is printed."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True)
class Figure:
    """`least` or `most` is the target, where there is one; `aim` is what we would like beyond it."""

    name: str
    value: float
    unit: str
    least: float | None = None
    most: float | None = None
    aim: str = ""

    @property
    def met(self) -> bool | None:
        if self.least is not None:
            return self.value >= self.least
        return None if self.most is None else self.value <= self.most

    @property
    def target(self) -> str:
        bound = f"≥ {self.least:g}" if self.least is not None else f"≤ {self.most:g}" if self.most is not None else ""
        return f"{bound}, aim {self.aim}" if self.aim else bound


def best(work: Callable[[], object], repeats: int) -> float:
    """Processor seconds, on this thread, of the fastest of some repetitions: what else runs can only add."""
    return min(_seconds(work) for _ in range(repeats))


def typical(measure: Callable[[], float], repeats: int) -> float:
    """The median of some repetitions."""
    return median(measure() for _ in range(repeats))


def _seconds(work: Callable[[], object]) -> float:
    began = time.thread_time()
    work()
    return time.thread_time() - began


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns padded to their widest cell; the first is aligned left, the others right."""
    cells = [list(header), *[list(row) for row in rows]]
    widths = [max(len(row[i]) for row in cells) for i in range(len(header))]

    def line(row: Sequence[str]) -> str:
        return "  ".join(c.ljust(w) if i == 0 else c.rjust(w) for i, (c, w) in enumerate(zip(row, widths, strict=True)))

    return "\n".join([line(cells[0]), "  ".join("-" * w for w in widths), *map(line, cells[1:])])


def figure_table(figures: Sequence[Figure]) -> str:
    """One line a figure, its target beside it."""
    verdict = {True: "met", False: "MISSED", None: ""}
    rows = [(f.name, f"{f.value:.4g} {f.unit}".rstrip(), f.target, verdict[f.met]) for f in figures]
    return table(("", "measured", "target", ""), rows)
