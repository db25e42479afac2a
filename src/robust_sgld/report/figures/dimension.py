"""What one sum over the grid costs, by engine, against the dimension of the data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure

from robust_sgld.report.style import INK, MUTED, VANILLA, new_figure, styled

LOOKS = {"dense": (MUTED, "s"), "pruned": (VANILLA, "o"), "chain": (INK, "D")}


@styled
def cost_against_dimension(measured: Mapping[str, Sequence[tuple[int, float]]], points_per_axis: int) -> Figure:
    """Microseconds an update for each engine's (m, microseconds), and the number of grid points on the second axis."""
    figure, (axes,) = new_figure(6.4, 3.8)
    for engine, pairs in measured.items():
        m, cost = np.array(pairs).T
        color, marker = LOOKS[engine]
        axes.plot(m, cost, color=color, marker=marker, markersize=4, label=f"engine {engine}")
    dimensions = np.array(sorted({m for pairs in measured.values() for m, _ in pairs}))
    axes.set(xlabel="m, columns of the data", ylabel="microseconds an update", yscale="log")
    axes.set_xticks(dimensions)
    size = axes.twinx()
    size.plot(
        dimensions, dimensions * np.log10(points_per_axis), color=MUTED, linestyle=":", label="points of the grid"
    )
    size.set_ylabel("log10 of the number of grid points")
    size.grid(False)
    handles = [*axes.get_lines(), *size.get_lines()]
    axes.legend(handles, [str(line.get_label()) for line in handles], loc="lower right")
    return figure
