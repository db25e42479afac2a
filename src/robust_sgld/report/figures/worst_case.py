"""The data before and after the adversary."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator, PercentFormatter

from robust_sgld.report.style import INK, new_figure, styled
from robust_sgld.theory import BeforeAndAfter

AFTER = "#e08a00"
FILLED: dict[str, Any] = {"facecolor": AFTER, "alpha": 0.85, "linewidth": 0}
OUTLINED: dict[str, Any] = {"facecolor": "none", "edgecolor": INK, "linewidth": 0.9}
"""after and before the adversary; form tells them apart, colour only helps"""
MOST_FEATURES = 3
"""columns other than y that are drawn"""
LARGEST_DOT, PLANE = 13.0, 105.0
"""diameter of the largest mass, and about the side of a plane, in points"""


@styled
def worst_case(cases: Sequence[tuple[str, BeforeAndAfter]]) -> Figure:
    """A block for each case (label and numbers): the mass of y (left), of each z_i (above) and of both together.

    The first line of a label is set bold. Outlines are the data before, fillings after; masses are the areas of dots.
    Of more than three z_i those that move most are drawn. All blocks have the same scales.
    """
    pictures = [picture for _, picture in cases]
    features = _features(pictures)
    figure, panels = new_figure(
        7.2,
        0.75 + 2.25 * len(cases),
        2 * len(cases),
        1 + len(features),
        sharex="col",
        sharey="row",
        height_ratios=[1, 2.6] * len(cases),
        width_ratios=[1.15, *[1] * len(features)],
    )
    rows = np.array(panels).reshape(len(cases), 2, 1 + len(features))
    largest = max(float(max(p.before_joint[features].max(), p.after_joint[features].max())) for p in pictures)
    cells = max(np.ptp(_reach(pictures, column)) for column in (*features, -1)) / _step(pictures[0].axis)
    area = min(LARGEST_DOT, 1.6 * PLANE / cells) ** 2 / largest
    highest = max(float(max(p.before[features].max(), p.after[features].max())) for p in pictures)
    for (label, picture), (above, below) in zip(cases, rows, strict=True):
        _label(above[0], label, picture)
        _bars(below[0], picture, -1, horizontal=True)
        for strip, plane, i in zip(above[1:], below[1:], features, strict=True):
            _bars(strip, picture, i, horizontal=False)
            _strip(strip, f"mean shift of {_symbol(picture.columns[i])}: {picture.displacement[i]:.2f}", highest)
            _dots(plane, picture, i, area)
    _scales(rows, pictures, features)
    figure.legend(
        handles=[
            Line2D([], [], marker="o", markersize=8, color="none", markeredgecolor=INK, markeredgewidth=0.9),
            Line2D([], [], marker="o", markersize=8, color=AFTER, linestyle="none", alpha=0.85),
        ],
        labels=["before: the training data on the grid", "after: where the adversary has moved them"],
        loc="outside upper center",
        ncols=2,
    )
    return figure


def _features(pictures: Sequence[BeforeAndAfter]) -> list[int]:
    moved = np.sum([picture.displacement[:-1] for picture in pictures], axis=0)
    return sorted(np.argsort(-moved, kind="stable")[:MOST_FEATURES].tolist())


def _label(axes: Axes, label: str, picture: BeforeAndAfter) -> None:
    axes.set_axis_off()
    first, _, rest = label.partition("\n")
    more = [*rest.splitlines(), f"mean shift of {_symbol(picture.columns[-1])}: {picture.displacement[-1]:.2f}"]
    axes.text(0, 1, first, transform=axes.transAxes, va="top", fontsize=9.5, fontweight="bold")
    axes.text(0, 0.66, "\n".join(more), transform=axes.transAxes, va="top", fontsize=7.5, linespacing=1.35)


def _bars(axes: Axes, picture: BeforeAndAfter, column: int, *, horizontal: bool) -> None:
    half = 0.4 * _step(picture.axis)
    edges = np.column_stack([picture.axis - half, picture.axis + half]).ravel()
    for mass, style in ((picture.after[column], {"fill": True, **FILLED}), (picture.before[column], OUTLINED)):
        # one patch for all bars, with gaps: a patch for each takes several times as long to draw
        heights = np.full(len(edges) - 1, np.nan)
        heights[::2] = np.where(mass > 0, mass, np.nan)
        axes.stairs(heights, edges, orientation="horizontal" if horizontal else "vertical", **style)


def _strip(axes: Axes, text: str, highest: float) -> None:
    axes.set(ylim=(0, 1.55 * highest), yticks=[])
    axes.spines["left"].set_visible(False)
    axes.xaxis.set_visible(False)
    axes.text(0.02, 1, text, transform=axes.transAxes, va="top", fontsize=7.5)


def _dots(axes: Axes, picture: BeforeAndAfter, i: int, area: float) -> None:
    for mass, style in ((picture.after_joint[i], FILLED), (picture.before_joint[i], OUTLINED)):
        z, y = np.nonzero(mass)
        axes.scatter(picture.axis[z], picture.axis[y], s=area * mass[z, y], **style)


def _scales(rows: np.ndarray, pictures: Sequence[BeforeAndAfter], features: Sequence[int]) -> None:
    """The same axes in every block, as wide as what is drawn."""
    columns = pictures[0].columns
    for below in rows[:, 1]:
        below[0].set(ylim=_reach(pictures, -1), ylabel=_symbol(columns[-1]))
        below[0].yaxis.set_major_locator(MaxNLocator(7, integer=True))
    last = rows[-1, 1]
    last[0].set_xlabel("share of the mass")
    last[0].xaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    last[0].xaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10]))
    for axes, i in zip(last[1:], features, strict=True):
        axes.set(xlim=_reach(pictures, i), xlabel=_symbol(columns[i]))
        axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))


def _reach(pictures: Sequence[BeforeAndAfter], column: int) -> tuple[float, float]:
    axis = pictures[0].axis
    filled = np.any([(p.before[column] > 0) | (p.after[column] > 0) for p in pictures], axis=0)
    return float(axis[filled][0] - 0.9 * _step(axis)), float(axis[filled][-1] + 0.9 * _step(axis))


def _step(axis: np.ndarray) -> float:
    return float(axis[1] - axis[0]) if len(axis) > 1 else 1.0


def _symbol(column: str) -> str:
    """ "z1" and "y" as mathematics, a name as it is."""
    letter, number = column[:1], column[1:]
    if not letter.isalpha() or (number and not number.isdigit()):
        return column.replace("$", r"\$")
    return f"${letter}_{{{number}}}$" if number else f"${letter}$"
