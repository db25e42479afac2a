"""Paths over the updates: the dual objective (Figure 1), the test loss (Figure 2), the components of θ."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import XAxis, YAxis
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter, NullLocator

from robust_sgld.losses import band
from robust_sgld.report.style import INK, MUTED, new_figure, styled, trial_color
from robust_sgld.report.trials import ReportTrial
from robust_sgld.result import TrialResult, bands

MOST_COMPONENTS = 8
"""of θ that are drawn"""


def short_label(trial: ReportTrial) -> str:
    """For a legend."""
    return trial.label if trial.eta2 is None else rf"$\eta_2 = {trial.eta2:g}$"


def draw_path(axes: Axes, trial: ReportTrial, axis: np.ndarray, paths: np.ndarray, *, statistic: str = "mean") -> None:
    """Mean or median over the runs as a line, 5–95 % as a shade; runs that diverged drop out."""
    summary = {name: np.where(np.isfinite(values), values, np.nan) for name, values in bands(paths).items()}
    color = trial_color(*trial.method)
    order = 2.5 if trial.has_dual else 2.4
    axes.fill_between(axis, summary["q05"], summary["q95"], color=color, alpha=0.18, linewidth=0, zorder=order - 0.5)
    dashes = "-" if trial.has_dual else (0, (4, 1.5))
    axes.plot(axis, summary[statistic], color=color, linestyle=dashes, label=short_label(trial), zorder=order)


@styled
def figure1(trials: Sequence[ReportTrial]) -> Figure:
    """E[v^{δ,ℓ,j}] along the updates (fig:robustsgldobjpath): mean over the runs and 5–95 %, whole and magnified."""
    trials = [trial for trial in trials if trial.result.objective.shape[1]]
    figure, (whole, late) = new_figure(7.2, 3.4, 1, 2, width_ratios=[1, 1.25])
    for trial in trials:
        draw_path(late, trial, trial.result.objective_axis, trial.result.objective)
        draw_path(whole, trial, trial.result.objective_axis, trial.result.objective)
        # the line between two dots is no data: on a logarithmic axis the first updates are far apart
        early = int((trial.result.objective_axis <= 1000).sum())
        whole.lines[-1].set(marker=".", markersize=3.5, markevery=slice(0, early), linewidth=1)
    whole.set(xscale="log", xlabel="update $n$ (log scale)", title="whole path")
    whole.set_ylabel(r"$\mathrm{E}\,[\,v^{\delta,\ell,j}(\hat{\bar{\theta}}_n)\,]$", fontsize=10)
    late.set(xlabel="update $n$", title="after the first fall")
    late.xaxis.set_major_formatter(thousands)
    settled = [bands(t.result.objective[:, t.result.objective_axis > _first_fall(t.result)]) for t in trials]
    ends = np.concatenate([np.concatenate([part["q05"], part["q95"]]) for part in settled])
    ends = ends[np.isfinite(ends)]
    if ends.size and np.ptp(ends) > 0:
        margin = 0.06 * np.ptp(ends)
        late.set_ylim(ends.min() - margin, ends.max() + margin)
    from_start(late, trials)
    handles, labels = whole.get_legend_handles_labels()
    figure.legend(handles[::-1], labels[::-1], loc="outside right center", title=r"robust SGLD")
    return figure


def _first_fall(result: TrialResult) -> int:
    """The first fall of the objective is over by this update."""
    return min(150, result.n_iter // 4)


@styled
def figure2(trials: Sequence[ReportTrial]) -> Figure:
    """Test loss along the updates (fig:mseloss): every method; below, the largest η₂ against vanilla."""
    figure, (top, bottom) = new_figure(7.2, 6.2, 2, 1, sharex=True, sharey=True)
    robust = [trial for trial in trials if trial.has_dual]
    pair = [trial for trial in trials if not trial.has_dual] + robust[-1:]
    for axes, shown in ((top, trials), (bottom, pair)):
        for trial in shown:
            draw_path(axes, trial, trial.result.axis, trial.result.losses)
        if shown:
            reference_lines(axes, shown[0].result)
        axes.set(yscale="log", ylabel="mean squared loss on test rows")
    handles, labels = top.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right center")
    small_log_labels(top.yaxis)
    from_start(top, trials)
    top.set_title("every method: mean over the runs, 5–95 % shaded")
    bottom.set_title(" against ".join(trial.label for trial in reversed(pair)))
    bottom.set_xlabel("update $n$")
    bottom.xaxis.set_major_formatter(thousands)
    return figure


@styled
def trial_losses(trial: ReportTrial) -> Figure:
    """Test loss along the updates of one trial: mean over the runs and 5–95 %."""
    figure, (axes,) = new_figure(7.2, 3.2)
    draw_path(axes, trial, trial.result.axis, trial.result.losses)
    reference_lines(axes, trial.result)
    axes.set(yscale="log", ylabel="mean squared loss on test rows", xlabel="update $n$", title=trial.run_name)
    axes.xaxis.set_major_formatter(thousands)
    figure.legend(*axes.get_legend_handles_labels(), loc="outside right center")
    small_log_labels(axes.yaxis)
    from_start(axes, [trial])
    return figure


def from_start(axes: Axes, trials: Sequence[ReportTrial]) -> None:
    """The axis of the updates, from 0 to the last."""
    axes.set_xlim(0, 1.01 * max((trial.result.n_iter for trial in trials), default=1))


def reference_lines(axes: Axes, result: TrialResult) -> None:
    """The loss at θ*, the band around it, and the smallest loss that any θ has."""
    low, high = band(result.reference, result.tolerance)
    axes.axhspan(
        low, high, color=MUTED, alpha=0.45, linewidth=0, label=f"reference ± {100 * result.tolerance:g} %", zorder=2
    )
    axes.axhline(result.reference, color=INK, linewidth=0.6, label=r"reference: loss at $\theta^*$", zorder=2.8)
    axes.axhline(
        result.clean_minimum, color=MUTED, linewidth=1, linestyle=":", label=r"smallest of any $\theta$", zorder=2.8
    )


@styled
def theta_paths(trials: Sequence[ReportTrial]) -> Figure:
    """Components of θ along the updates: median and 5–95 % over the runs; θ* and the clean-risk minimiser as lines."""
    result = trials[0].result
    count = min(len(result.clean_minimiser), MOST_COMPONENTS)
    rows = (count + 1) // 2
    figure, axes = new_figure(7.2, 0.7 + 2.1 * rows, rows, 2, sharex=True)
    for i, panel in enumerate(axes):
        if i >= count:
            panel.set_visible(False)
            continue
        for trial in trials:
            few = slice(None, None, 2)  # half of the kept updates fill a panel this small
            draw_path(panel, trial, trial.result.axis[few], trial.result.theta[:, few, i], statistic="median")
        if np.isfinite(result.theta_star[i]):
            panel.axhline(result.theta_star[i], color=INK, linewidth=1, label=r"$\theta^*$", zorder=3)
        panel.axhline(
            result.clean_minimiser[i], color=INK, linewidth=1, linestyle=":", label="clean-risk minimiser", zorder=3
        )
        last = i == len(result.clean_minimiser) - 1
        panel.set_ylabel(r"$b_0$" if last else rf"$w_{{{i + 1}}}$", rotation=0, labelpad=10, fontsize=10)
        panel.xaxis.set_major_formatter(thousands)
        from_start(panel, trials)
        if i >= count - 2:
            panel.set_xlabel("update $n$")
            panel.tick_params(labelbottom=True)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=5)
    return figure


def _thousands(value: float, _: int = 0) -> str:
    return f"{value:,.0f}".replace(",", "\u2009")


thousands = FuncFormatter(_thousands)


def small_log_labels(axis: XAxis | YAxis) -> None:
    """Plain numbers on a logarithmic axis of losses or seconds, as many as its range needs; for when all is drawn."""
    low, high = sorted(axis.get_view_interval())
    axis.set_minor_formatter(NullFormatter())
    if high < 3 * low:
        axis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
        axis.set_minor_locator(NullLocator())
    else:
        axis.set_major_locator(LogLocator(subs=(1, 2, 5) if high > 20 * low else (1, 1.5, 2, 3, 5, 7)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
