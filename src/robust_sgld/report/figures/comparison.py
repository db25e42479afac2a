"""The alternatives beside the samplers: test loss and seconds."""

from __future__ import annotations

import math
from collections.abc import Sequence

from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from robust_sgld.report.figures.paths import small_log_labels
from robust_sgld.report.formats import Record
from robust_sgld.report.style import HAIRLINE, INK, OTHER, PAPER, VANILLA, new_figure, styled

KIND = {
    "sampler": ("o", "#1f78b4"),
    "sampler, other loss": ("s", "#1f78b4"),
    "robust regression": ("D", OTHER),
    "oracle": ("D", PAPER),
}


@styled
def comparison(records: Sequence[Record], clean_minimum: float) -> Figure:
    """A row for each method, best first: test loss (left) and seconds of one fit or run (right), both logarithmic."""
    figure, (loss, cost) = new_figure(7.2, 0.9 + 0.27 * len(records), 1, 2, sharey=True, width_ratios=[1.2, 1])
    for place, record in enumerate(records):
        marker, color = KIND[record["kind"]]
        if record["method"].startswith("vanilla"):
            color = VANILLA
        edge = INK if record["kind"] == "oracle" else color
        for axes, key in ((loss, "mse"), (cost, "seconds")):
            if math.isfinite(record[key]):
                axes.plot(
                    [record[key]],
                    [place],
                    marker=marker,
                    color=color,
                    markeredgecolor=edge,
                    markersize=6,
                    linestyle="none",
                )
    loss.axvline(clean_minimum, color=INK, linewidth=1, linestyle=":")
    loss.annotate(
        r"smallest of any $\theta$", (clean_minimum, 1), (4, 3), xycoords=("data", "axes fraction"),
        textcoords="offset points", fontsize=7.5, va="bottom",
    )  # fmt: skip
    loss.set(xscale="log", xlabel="test MSE (log scale)")
    cost.set(xscale="log", xlabel="seconds, one core (log scale)")
    cost.xaxis.set_minor_formatter(NullFormatter())
    loss.set_yticks(range(len(records)), [record["method"] for record in records])
    loss.set_ylim(len(records) - 0.5, -0.5)
    for axes in (loss, cost):
        axes.margins(x=0.07)
        axes.grid(axis="y", color=HAIRLINE)
        axes.tick_params(axis="y", length=0)
    small_log_labels(loss.xaxis)
    return figure
