"""Where the adversary moves the data."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from robust_sgld.data import sigmoid
from robust_sgld.report.displacement import Displacement
from robust_sgld.report.style import CLEAN, INK, OUTLIER, new_figure, styled


@styled
def adversary(found: Sequence[Displacement]) -> Figure:
    """Arrows from each atom of μ_{0,ℓ,j} to its softmax-weighted mean position.

    One panel for each, in the plane of the index ⟨w,z⟩+b₀ and y, because
    the loss depends on these two alone. Dots have the weight of their atom as area.
    """
    figure, panels = new_figure(7.2, 4.2, 1, len(found), sharex=True, sharey=True)
    for axes, one in zip(panels, found, strict=True):
        _plane(axes, one)
    panels[0].set_ylabel("$y$")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=3)
    return figure


def _plane(axes: Axes, one: Displacement) -> None:
    start, end = one.index(one.atoms), one.index(one.moved)
    outlier = one.outlier_share > 0.5
    for color, which, label in ((CLEAN, ~outlier, "clean atoms"), (OUTLIER, outlier, "outlier atoms")):
        if not which.any():
            continue
        axes.scatter(
            start[which],
            one.atoms[which, -1],
            s=5 + 700 * one.weights[which],
            color=color,
            alpha=0.75,
            linewidth=0,
            label=label,
        )
        axes.quiver(
            start[which], one.atoms[which, -1], (end - start)[which], (one.moved - one.atoms)[which, -1],
            angles="xy", scale_units="xy", scale=1, color=color, alpha=0.45, width=0.004,
        )  # fmt: skip
    # arrows do not count in the automatic limits
    axes.update_datalim(np.column_stack([end, one.moved[:, -1]]))
    axes.autoscale_view()
    reach = np.linspace(min(start.min(), end.min()) - 0.2, max(start.max(), end.max()) + 0.2, 200)
    axes.plot(
        reach, sigmoid(reach), color=INK, linewidth=1.2, label=r"$\sigma_1(\langle w,z\rangle + b_0)$ of this run"
    )
    axes.set_xlabel(r"$\langle w,z\rangle + b_0$")
    axes.set_title(rf"$\eta_2 = {one.trial.eta2:g}$,  $\iota(\alpha) = {one.iota_alpha:.2f}$", fontweight="normal")
