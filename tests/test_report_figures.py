"""Every figure function draws its data, and nothing lies outside the view."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import matplotlib
import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PathCollection, PolyCollection
from matplotlib.figure import Figure
from matplotlib.quiver import Quiver

import robust_sgld as rs
from robust_sgld.report import figures
from robust_sgld.report.displacement import displacement, displacements, dro_of, typical_run
from robust_sgld.report.style import VANILLA, new_figure, styled, trial_color
from robust_sgld.report.trials import ReportTrial, sweep
from tests.report_samples import THETA_STAR, made_up


@pytest.fixture
def trials() -> list[ReportTrial]:
    return [made_up((900, 0, 400), eta2=0.5), made_up((300, 200, 250), eta2=2.0), made_up((0, 0, 0), eta2=None)]


def lines(axes: Axes, count: int) -> list[np.ndarray]:
    """(n, 2) the points of lines with more than two points, which must be `count`."""
    found = [line.get_xydata() for line in axes.lines if len(line.get_xydata()) > 2]
    assert len(found) == count
    return [np.asarray(points) for points in found]


def in_view(axes: Axes, points: np.ndarray) -> bool:
    (left, right), (bottom, top) = axes.get_xlim(), sorted(axes.get_ylim())
    return bool(((points >= [left, bottom]) & (points <= [right, top])).all())


def level(axes: Axes, height: float) -> bool:
    """Whether there is a horizontal line at this height."""
    return any(len(line.get_ydata()) == 2 and np.allclose(line.get_ydata(), height) for line in axes.lines)


def texts(figure: Figure) -> list[str]:
    return [text.get_text() for legend in figure.legends for text in legend.get_texts()]


def test_figure1_draws_the_mean_objective_of_robust_trials_with_bands(trials: Sequence[ReportTrial]) -> None:
    figure = figures.figure1(trials)
    whole, late = figure.axes
    for axes in (whole, late):
        drawn = lines(axes, 2)
        for trial, points in zip(trials, drawn, strict=False):
            np.testing.assert_allclose(points[:, 0], trial.result.objective_axis)
            np.testing.assert_allclose(points[:, 1], trial.result.objective.mean(axis=0), rtol=1e-12)
        assert sum(isinstance(c, PolyCollection) for c in axes.collections) == 2
    assert all(in_view(whole, points) for points in lines(whole, 2))
    assert whole.get_xscale() == "log"
    assert texts(figure) == [r"$\eta_2 = 2$", r"$\eta_2 = 0.5$"]


def test_figure2_draws_every_method_the_band_and_the_second_panel(trials: Sequence[ReportTrial]) -> None:
    figure = figures.figure2(trials)
    top, bottom = figure.axes
    for points, trial in zip(lines(top, 3), trials, strict=True):
        np.testing.assert_allclose(points[:, 1], trial.result.losses.mean(axis=0), rtol=1e-12)
        assert in_view(top, points)
    vanilla, strongest = lines(bottom, 2)
    np.testing.assert_allclose(vanilla[:, 1], trials[2].result.losses.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(strongest[:, 1], trials[1].result.losses.mean(axis=0), rtol=1e-12)
    for axes in (top, bottom):
        assert level(axes, 0.005014)
        assert level(axes, 0.0025)
        (band,) = axes.patches
        assert (band.get_y(), band.get_y() + band.get_height()) == pytest.approx((0.99 * 0.005014, 1.01 * 0.005014))
        assert axes.get_yscale() == "log"
    assert bottom.get_title(loc="left") == "robust SGLD, η₂ = 2 against vanilla SGLD"


def test_runs_that_diverged_drop_out_of_the_bands() -> None:
    losses = np.full((3, 9), 0.1)
    losses[0, 4:] = np.nan
    one = made_up((0, 0, 0), losses=losses)
    (points,) = lines(figures.figure2([one]).axes[0], 1)
    np.testing.assert_allclose(points[:, 1], 0.1)
    gone = made_up((0, 0, 0), losses=np.where(np.arange(9) > 4, np.nan, losses[1:2].repeat(3, axis=0)))
    (points,) = lines(figures.figure2([gone]).axes[0], 1)
    assert np.isnan(points[5:, 1]).all()


def test_theta_has_a_panel_for_each_component_with_its_truth(trials: Sequence[ReportTrial]) -> None:
    figure = figures.theta_paths(trials)
    assert [axes.get_ylabel() for axes in figure.axes] == ["$w_{1}$", "$w_{2}$", "$w_{3}$", "$b_0$"]
    for i, axes in enumerate(figure.axes):
        assert level(axes, THETA_STAR[i])
        assert level(axes, trials[0].result.clean_minimiser[i])
        for points, trial in zip(lines(axes, 3), trials, strict=True):
            np.testing.assert_allclose(points[:, 1], np.median(trial.result.theta[..., i], axis=0)[::2], rtol=1e-12)


def test_theta_without_a_known_truth() -> None:
    figure = figures.theta_paths([made_up(theta_star=np.full(4, np.nan))])
    assert texts(figure) == [r"$\eta_2 = 1$", "clean-risk minimiser"]


def test_hitting_times_rise_to_the_share_that_reached(trials: Sequence[ReportTrial]) -> None:
    figure = figures.hitting_times(trials)
    (axes,) = figure.axes
    steps = [line for line in axes.lines if line.get_drawstyle() == "steps-post"]
    assert [line.get_ydata()[-1] for line in steps] == pytest.approx([2 / 3, 1.0, 0.0])
    np.testing.assert_array_equal(steps[0].get_xdata(), [400, 400, 900, 25_000])
    np.testing.assert_allclose(steps[0].get_ydata(), [0, 1 / 3, 2 / 3, 2 / 3])
    triangles = [line.get_xdata()[0] for line in axes.lines if line.get_marker() == "v" and len(line.get_xdata())]
    assert triangles == [20353, 2427]
    assert texts(figure)[0] == r"$\eta_2 = 0.5$, 1 of 3 missed"


def test_hitting_times_of_short_trials_have_no_mark_beyond_their_end() -> None:
    (axes,) = figures.hitting_times([made_up((0, 0), n_iter=200, eta2=2.0)]).axes
    assert not [line for line in axes.lines if line.get_marker() == "v"]


def test_final_loss_against_eta2_in_ascending_order(trials: Sequence[ReportTrial]) -> None:
    figure = figures.final_mse_against_eta2([trials[1], made_up(eta2=6.0), *trials[::2]])
    (axes,) = figure.axes
    final, smallest = lines(axes, 2)
    np.testing.assert_allclose(final[:, 0], [0.5, 2.0, 6.0])
    np.testing.assert_allclose(final[:, 1], trials[0].result.final_loss.mean(), rtol=1e-12)
    np.testing.assert_allclose(smallest[:, 1], 0.0035, rtol=1e-12)
    assert sum(isinstance(c, LineCollection) for c in axes.collections) == 2
    assert level(axes, trials[2].result.final_loss.mean())
    assert in_view(axes, final)


def test_comparison_has_a_row_for_each_method() -> None:
    records = [
        {"method": "oracle", "kind": "oracle", "mse": 0.0025, "seconds": 0.01},
        {"method": "cauchy", "kind": "robust regression", "mse": 0.0026, "seconds": 0.02},
        {"method": "vanilla SGLD", "kind": "sampler", "mse": 0.008, "seconds": 0.3},
        {"method": "diverged", "kind": "sampler", "mse": np.nan, "seconds": 0.3},
    ]
    loss, cost = figures.comparison(records, 0.0024).axes
    marks = [line for line in loss.lines if line.get_marker() != "None"]
    assert [(line.get_xdata()[0], line.get_ydata()[0]) for line in marks] == [(0.0025, 0), (0.0026, 1), (0.008, 2)]
    assert marks[2].get_color() == VANILLA
    assert len(cost.lines) == 4
    assert [label.get_text() for label in loss.get_yticklabels()] == [r["method"] for r in records]
    assert all(in_view(loss, np.asarray(line.get_xydata())) for line in marks)


def swept(key: str, values: Sequence[float], eta2: float | None = 2.0) -> list[ReportTrial]:
    return [
        made_up(
            (100, 0 if value > 0.3 else 50),
            eta2=eta2,
            digest=str(value) if key == "data.q" else "d",
            params={key: value},
        )
        for value in values
    ]


@pytest.mark.parametrize(
    ("draw", "key", "values"),
    [
        (figures.corruption, "data.q", [0.0, 0.25, 0.5]),
        (figures.smoothing, "dro.delta", [0.01, 0.1, 0.5]),
        (figures.grid_cost, "dro.j", [0, 1, 2]),
    ],
)
def test_sweeps_draw_loss_and_more_against_the_parameter(
    draw: Callable[..., Figure], key: str, values: list[float]
) -> None:
    trials = swept(key, values) + (swept(key, values, None) if key == "data.q" else [])
    series = sweep(trials, key)
    assert len(series) == 1 + (key == "data.q")
    figure = draw(series)
    loss, other = figure.axes
    for axes in (loss, other):
        for points in lines(axes, len(series)):
            np.testing.assert_allclose(points[:, 0], values)
            assert in_view(axes, points)
    np.testing.assert_allclose(lines(loss, len(series))[0][:, 1], trials[0].result.final_loss.mean(), rtol=1e-12)
    heights = lines(other, len(series))[0][:, 1]
    np.testing.assert_allclose(heights, [1.5] * 3 if key == "dro.j" else [1, 1, 0.5])
    assert loss.lines[0].get_color() == trial_color("robust_sgld", 2.0)
    # series stand side by side: each is moved by a few points to the side and not at all in height
    figure.draw_without_rendering()
    for line in loss.lines:
        points = np.asarray(line.get_xydata())
        moved = line.get_transform().transform(points) - loss.transData.transform(points)
        assert np.abs(moved[:, 0]).max() <= 3 / 72 * figure.dpi
        np.testing.assert_allclose(moved[:, 1], 0, atol=1e-9)


@pytest.fixture
def few_rows() -> rs.Dataset:
    return rs.contaminated_dataset(n_train=60, n_test=20, seed=3)


def test_displacement_is_the_softmax_mean_of_the_grid(few_rows: rs.Dataset) -> None:
    trial = made_up(eta2=1.5, params={"dro.delta": 0.3, "dro.j": 0, "dro.p": 2})
    found = displacement(trial, few_rows)
    assert found is not None
    theta, alpha = found.state[:4], found.state[4]
    points = rs.Grid(4, 3, 0, (-3.0, 3.0)).points()
    s = 1 / (1 + np.exp(-(points[:, :3] @ theta[:3] + theta[3])))
    for i in (0, len(found.atoms) - 1):
        distance = ((points - found.atoms[i]) ** 2).sum(axis=1)
        weight = np.exp(((points[:, 3] - s) ** 2 - np.log(np.cosh(alpha)) * distance) / 0.3)
        weight /= weight.sum()
        # sums of 7^4 positive terms: rounding stays below 2401 ulp
        np.testing.assert_allclose(found.moved[i], weight @ points, rtol=1e-11, atol=1e-12)
        np.testing.assert_allclose(found.cost[i], weight @ distance, rtol=1e-11)
    assert found.weights.sum() == pytest.approx(1.0, rel=1e-12)
    share = found.weights @ found.outlier_share
    assert few_rows.outlier is not None
    assert share == pytest.approx(few_rows.outlier.mean(), rel=1e-12)


def test_displacement_takes_the_run_with_the_median_final_loss() -> None:
    assert typical_run(made_up((0, 0, 0), final_loss=np.array([0.3, 0.1, 0.2])).result) == 2
    assert typical_run(made_up((0, 0, 0), final_loss=np.array([np.nan, 0.1, 0.2])).result) == 1
    assert typical_run(made_up((0, 0), final_loss=np.full(2, np.nan)).result) is None


def test_displacement_is_left_out_where_it_cannot_be(few_rows: rs.Dataset) -> None:
    assert displacement(made_up(eta2=None), few_rows) is None
    assert displacement(made_up(params={"problem.name": "Mine"}), few_rows) is None
    assert displacement(made_up(params={"dro.j": 4}), few_rows) is None  # 97^4 grid points


def test_the_dro_of_a_trial_is_its_own() -> None:
    trial = made_up(eta2=0.5, params={"dro.delta": "0.2", "dro.support": "[-2.0, 2.5]", "dro.j": 2})
    assert dro_of(trial) == rs.DRO(eta2=0.5, delta=0.2, support=(-2.0, 2.5), j=2)


def test_adversary_draws_an_arrow_for_each_atom_inside_the_view(few_rows: rs.Dataset) -> None:
    known = displacements([made_up(eta2=eta2) for eta2 in (1.0, 0.1, 2.0, 0.5)], few_rows)
    assert [one.trial.eta2 for one in known] == [0.1, 1.0, 2.0]
    figure = figures.adversary(known)
    assert len(figure.axes) == 3
    one, axes = known[-1], figure.axes[-1]
    arrows = [c for c in axes.collections if isinstance(c, Quiver)]
    dots = [c for c in axes.collections if isinstance(c, PathCollection)]
    assert sum(len(arrow.U) for arrow in arrows) == sum(len(dot.get_offsets()) for dot in dots) == len(one.atoms)
    ends = np.column_stack([one.index(one.moved), one.moved[:, -1]])
    assert in_view(axes, ends)
    assert len(figures.adversary(known[:1]).axes) == 1


def test_drawing_neither_reads_nor_changes_the_callers_settings(trials: Sequence[ReportTrial]) -> None:
    with matplotlib.rc_context({"lines.linewidth": 9.0, "axes.grid": False}):
        figure = figures.figure2(trials)
        assert matplotlib.rcParams["lines.linewidth"] == 9.0
    assert figure.axes[0].lines[0].get_linewidth() == 1.5


def test_style_is_restored_after_an_error() -> None:
    @styled
    def fails() -> Figure:
        raise RuntimeError("drawing failed")

    before = dict(matplotlib.rcParams)
    with pytest.raises(RuntimeError, match="drawing failed"):
        fails()
    assert dict(matplotlib.rcParams) == before


def test_no_text_of_a_figure_overlaps_its_legend(trials: Sequence[ReportTrial]) -> None:
    for draw in (figures.figure1, figures.figure2, figures.theta_paths, figures.hitting_times):
        figure = draw(trials)
        figure.draw_without_rendering()
        (legend,) = figure.legends
        box = legend.get_window_extent()
        assert not any(box.overlaps(axes.get_window_extent()) for axes in figure.axes)


def test_new_figure_has_no_pyplot_behind_it() -> None:
    figure, axes = new_figure(4, 3, 2, 2)
    assert len(axes) == 4
    assert figure.canvas.manager is None


def test_cost_against_dimension_draws_what_was_measured() -> None:
    measured = {"dense": [(3, 400.0), (4, 9000.0)], "chain": [(3, 9.0), (4, 12.0), (33, 130.0)]}
    figure = figures.cost_against_dimension(measured, 13)
    costs, sizes = figure.axes
    np.testing.assert_array_equal(costs.get_lines()[1].get_xydata(), measured["chain"])
    points = sizes.get_lines()[0].get_xydata()
    np.testing.assert_allclose(points[-1], [33, 33 * np.log10(13)])
    assert costs.get_yscale() == "log"
