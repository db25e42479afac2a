"""What a maximum over runs hides: the distribution of n_es; and the final loss against η₂."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullLocator

from robust_sgld.report import published
from robust_sgld.report.figures.paths import reference_lines, short_label, small_log_labels, thousands
from robust_sgld.report.statistics import mean, quantile
from robust_sgld.report.style import INK, MUTED, VANILLA, new_figure, styled, trial_color
from robust_sgld.report.trials import ReportTrial


@styled
def hitting_times(trials: Sequence[ReportTrial]) -> Figure:
    """Share of the runs that have entered the band by update n; a curve that stops below 1 has runs that missed."""
    figure, (axes,) = new_figure(7.2, 3.6)
    printed = {(row.sampler, row.eta2): row.n_es for row in published.TABLE2}
    for trial in trials:
        result, color = trial.result, trial_color(*trial.method)
        hits = np.sort(result.n_es[result.reached])
        start = hits[:1] if hits.size else [1]
        at = np.concatenate([start, hits, [result.n_iter]])
        height = np.concatenate([np.arange(len(hits) + 1), [len(hits)]]) / trial.runs
        missed = trial.runs - len(hits)
        label = short_label(trial) + (f", {missed} of {trial.runs} missed" if missed else "")
        axes.step(
            at, height, where="post", color=color, label=label, linestyle="-" if trial.has_dual else (0, (4, 1.5))
        )
        n_es = printed.get(trial.method)
        if n_es is not None and n_es <= result.n_iter:
            axes.plot([n_es], [1.035], marker="v", color=color, markersize=6, linestyle="none", clip_on=False)
    if any(line.get_marker() == "v" for line in axes.lines):
        axes.plot([], [], marker="v", color=MUTED, linestyle="none", label=r"the paper's $n_{\mathrm{es}}$")
    axes.set(
        xscale="log", ylim=(0, 1.07), xlabel="update $n$ (log scale)", ylabel="share of runs inside the band by $n$"
    )
    first = min((int(t.result.n_es[t.result.reached].min()) for t in trials if t.result.reached.any()), default=1)
    axes.set_xlim(max(1, 0.8 * first), max(trial.result.n_iter for trial in trials))
    axes.xaxis.set_major_formatter(thousands)
    axes.xaxis.set_minor_formatter(FuncFormatter(lambda v, _: thousands(v) if f"{v:.0e}"[0] in "25" else ""))
    figure.legend(loc="outside right center")
    return figure


@styled
def final_mse_against_eta2(trials: Sequence[ReportTrial]) -> Figure:
    """Final and smallest test loss against η₂: mean and 5–95 % over the runs; vanilla and the references as lines."""
    figure, (axes,) = new_figure(7.2, 3.6)
    robust = sorted((t for t in trials if t.eta2 is not None), key=lambda t: t.eta2 or 0.0)
    eta2 = np.array([trial.eta2 for trial in robust], dtype=float)
    for name, marker, color, label in (
        ("final_loss", "o", INK, "after the last update"),
        ("smallest_loss", "s", "#1f78b4", "smallest of each run"),
    ):
        values = [getattr(trial.result, name) for trial in robust]
        ends = np.array([[quantile(v, 0.05), quantile(v, 0.95)] for v in values]).T
        # bars from the 5 to the 95 % quantile; with few runs the mean may lie outside
        axes.vlines(eta2, ends[0], ends[1], color=color, alpha=0.35, linewidth=4)
        axes.plot(eta2, [mean(v) for v in values], color=color, marker=marker, markersize=5, linewidth=1.2, label=label)
    for trial in trials:
        if trial.eta2 is None:
            level = mean(trial.result.final_loss)
            axes.axhline(level, color=VANILLA, linestyle=(0, (4, 1.5)), label=f"{trial.label}, after the last update")
    if trials:
        reference_lines(axes, trials[0].result)
    axes.set(xscale="log", yscale="log", xlabel=r"$\eta_2$ (log scale): stronger adversary $\rightarrow$")
    axes.set_ylabel("mean squared loss on test rows")
    axes.set_xticks(eta2, [f"{value:g}" for value in eta2])
    axes.xaxis.set_minor_locator(NullLocator())
    small_log_labels(axes.yaxis)
    figure.legend(loc="outside right center")
    return figure
