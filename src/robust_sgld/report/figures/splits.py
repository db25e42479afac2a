"""Methods over random splits: every split, the mean and its interval."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from robust_sgld.report.formats import Record
from robust_sgld.report.real_data import half_width
from robust_sgld.report.style import HAIRLINE, INK, OTHER, PAPER, VANILLA, new_figure, styled

COLOR = {"robust SGLD": "#1f78b4", "vanilla SGLD": VANILLA, "alternative": OTHER, "oracle": INK}


@styled
def splits(records: Sequence[Record], labels: Sequence[str]) -> Figure:
    """A row for each method, best first; a panel for each score. Small dots: splits; large: mean and interval."""
    figure, panels = new_figure(7.2, 0.9 + 0.3 * len(records), 1, len(labels), sharey=True)
    for axes, label in zip(panels, labels, strict=True):
        for place, record in enumerate(records):
            values, color = record["scores"][label], COLOR[record["kind"]]
            # in the order of the splits, a little apart, so that none hides another
            apart = place + np.linspace(-0.25, 0.25, len(values))
            axes.plot(values, apart, ".", color=color, alpha=0.35, markersize=4, markeredgewidth=0)
            width = half_width(values, record["ratio"])
            axes.plot([values.mean() - width, values.mean() + width], [place, place], color=color, linewidth=1.6)
            face = PAPER if record["kind"] == "oracle" else color
            axes.plot([values.mean()], [place], "o", color=color, markerfacecolor=face, markersize=6)
        everything = np.concatenate([record["scores"][label] for record in records])
        if 0 < 20 * everything.min() < everything.max():
            axes.set_xscale("log")
            axes.set_xlim(everything.min() / 1.3, everything.max() * 1.3)
        axes.set_xlabel(label)
        axes.grid(axis="y", color=HAIRLINE)
        axes.tick_params(axis="y", length=0)
    panels[0].set_yticks(range(len(records)), [record["method"] for record in records])
    panels[0].set_ylim(len(records) - 0.5, -0.5)
    return figure
