"""One parameter varied, the rest held: contamination q, smoothing δ, mesh j."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import NullLocator, PercentFormatter
from matplotlib.transforms import ScaledTranslation

from robust_sgld.report.figures.paths import small_log_labels
from robust_sgld.report.statistics import mean, quantile
from robust_sgld.report.style import new_figure, styled, trial_color
from robust_sgld.report.trials import ReportTrial, Series, method_label


def _panel(axes: Axes, series: Sequence[Series], value: Callable[[ReportTrial], np.ndarray]) -> None:
    """Mean over the runs of `value` (R,) against the swept parameter, with bars from 5 to 95 %."""
    for place, one in enumerate(series):
        samples = [value(trial) for trial in one.trials]
        color = trial_color(*one.method)
        low, high = [quantile(s, 0.05) for s in samples], [quantile(s, 0.95) for s in samples]
        bars = axes.vlines(one.values, low, high, color=color, alpha=0.35, linewidth=3)
        line = _line(axes, one, [mean(s) for s in samples])
        # side by side, 3 points apart, so that no bar hides another; after the axes have seen the data as they are
        aside = ScaledTranslation((place - (len(series) - 1) / 2) * 3 / 72, 0, axes.figure.dpi_scale_trans)
        for artist in (bars, line):
            artist.set_transform(axes.transData + aside)


def _line(axes: Axes, one: Series, heights: Sequence[float]) -> Line2D:
    dashes = "-" if one.method[1] is not None else (0, (4, 1.5))
    label, color = method_label(*one.method), trial_color(*one.method)
    (line,) = axes.plot(one.values, heights, color=color, marker="o", markersize=4.5, linestyle=dashes, label=label)
    return line


def _loss_and_reached(series: Sequence[Series], label: str) -> tuple[Figure, list[Axes]]:
    figure, (loss, reached) = new_figure(7.2, 3.2, 1, 2)
    _panel(loss, series, lambda trial: trial.result.final_loss)
    loss.set(yscale="log", ylabel="test loss after the last update", xlabel=label)
    small_log_labels(loss.yaxis)
    for one in series:
        _line(reached, one, [float(trial.result.reached.mean()) for trial in one.trials])
    reached.set(ylim=(-0.04, 1.04), ylabel="share of runs that reached the band", xlabel=label)
    reached.yaxis.set_major_formatter(PercentFormatter(1.0))
    handles, labels = loss.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=4)
    return figure, [loss, reached]


@styled
def corruption(series: Sequence[Series]) -> Figure:
    """Final loss and share of runs that reached the band against the contamination rate q."""
    return _loss_and_reached(series, "contamination rate $q$")[0]


@styled
def smoothing(series: Sequence[Series]) -> Figure:
    """The same against Nesterov's smoothing δ."""
    figure, panels = _loss_and_reached(series, r"smoothing $\delta$ (log scale)")
    values = sorted({value for one in series for value in one.values})
    for axes in panels:
        axes.set_xscale("log")
        axes.set_xticks(values, [f"{value:g}" for value in values])
        axes.xaxis.set_minor_locator(NullLocator())
    return figure


@styled
def grid_cost(series: Sequence[Series]) -> Figure:
    """Final loss and seconds a run against the mesh exponent j."""
    figure, (loss, cost) = new_figure(7.2, 3.2, 1, 2)
    _panel(loss, series, lambda trial: trial.result.final_loss)
    _panel(cost, series, lambda trial: trial.result.seconds)
    loss.set(yscale="log", ylabel="test loss after the last update")
    small_log_labels(loss.yaxis)
    cost.set(yscale="log", ylabel="seconds a run, one core")
    small_log_labels(cost.yaxis)
    values = sorted({value for one in series for value in one.values})
    for axes in (loss, cost):
        axes.set_xticks(values, [f"{value:g}" for value in values])
        axes.set_xlabel(r"$j$: mesh $2^{-j}$")
    handles, labels = loss.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=4)
    return figure
