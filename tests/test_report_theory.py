"""The theory page: what was recorded, what is computed for it, what is said of both, and the worst case drawn."""

from __future__ import annotations

import csv
import io
import math
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from matplotlib.collections import PathCollection
from matplotlib.figure import Figure
from matplotlib.patches import StepPatch
from scipy.optimize import minimize

import robust_sgld as rs
from robust_sgld.report import ReportTrial, figures, theory_words
from robust_sgld.report.formats import Table, as_csv, as_latex
from robust_sgld.report.sections import contents
from robust_sgld.report.theory_page import (
    TrialTheory,
    excess_table,
    moved_along_z,
    pictures,
    quadrature_table,
    theories,
    theory_of,
    trial_worst_case,
    worst_case_table,
)
from robust_sgld.theory import BeforeAndAfter, before_and_after, frontier_of, robust_value, worst_case
from tests import literal
from tests.report_samples import made_up

COARSE = {"dro.j": 0, "problem.name": "SigmoidRegression"}
"""7 points an axis: everything is quick"""
RECORDED = {
    "excess_risk": 0.25,
    "excess_risk_low": 0.2,
    "excess_risk_high": 0.3,
    "smoothed_excess_risk": 0.5,
    "smoothed_excess_risk_low": 0.4,
    "smoothed_excess_risk_high": 0.6,
    "robust_value": 1.25,
    "smallest_robust_value": 1.0,
    "smallest_objective": 0.125,
    "step_size_over_max": 3.0,
}


@pytest.fixture(scope="module")
def few_rows() -> rs.Dataset:
    return rs.contaminated_dataset(n_train=60, n_test=20, seed=3)


def trial(eta2: float = 1.0, metrics: dict[str, float] | None = None, **fields: Any) -> ReportTrial:
    params = COARSE | fields.pop("params", {})
    return replace(made_up(eta2=eta2, params=params, **fields), metrics=metrics or {})


@pytest.fixture(scope="module")
def found(few_rows: rs.Dataset) -> list[TrialTheory]:
    """Three trials, strongest first and without recorded numbers."""
    return theories([trial(2.0), trial(0.01, RECORDED), trial(0.5, RECORDED), made_up(eta2=None)], few_rows)


def cells(table: Table, label: str) -> list[str]:
    (column,) = [c for c in table.columns if c.label == label]
    return [column.text(record) for record in table.records]


def test_robust_trials_come_by_eta2(found: list[TrialTheory]) -> None:
    assert [one.trial.eta2 for one in found] == [0.01, 0.5, 2.0]


def test_values_are_those_of_the_typical_runs_last_state(few_rows: rs.Dataset) -> None:
    """Not of a mean over runs: with α = ±1 that would be 0, where the adversary moves for nothing."""
    one = made_up((0, 0, 0), eta2=0.5, params=COARSE | {"dro.delta": 0.3}, final_loss=np.array([0.3, 0.1, 0.2]))
    one.result.states[:, -1, -1] = [1.0, -1.0, -0.8]
    got = theory_of(one, few_rows)
    state = one.result.states[2, -1]
    assert got.state is not None
    np.testing.assert_array_equal(got.state, state)
    assert got.values is not None
    assert got.case is not None
    xi = literal.grid(4, 3, 0, (-3.0, 3.0))
    u = (xi[:, 3] - 1 / (1 + np.exp(-(xi[:, :3] @ state[:3] + state[3])))) ** 2
    exponents = [
        u - math.log(math.cosh(-0.8)) * ((x - xi) ** 2).sum(1) for x in literal.floored(few_rows.train, 3, 0)
    ]  # fmt: skip
    soft = [0.3 * (np.log(np.exp((e - e.max()) / 0.3).mean())) + e.max() for e in exponents]
    # rounding of 60 sums of 2401 terms
    assert got.values.smoothing_error == pytest.approx(np.mean([e.max() for e in exponents]) - np.mean(soft), abs=1e-10)
    assert got.values.smoothing_bound == pytest.approx(0.3 * 4 * math.log(7), rel=1e-12)
    np.testing.assert_array_equal(got.case.theta, state[:4])


def test_the_step_size_is_the_trials_own(few_rows: rs.Dataset) -> None:
    usual = theory_of(made_up(eta2=1.0), few_rows)
    # log10(0.01 / 1.4767874e-20), which is known to 8 digits
    assert math.log10(usual.step_ratio) == pytest.approx(17.830682, abs=1e-6)
    small = theory_of(made_up(eta2=1.0, params={"sampler.step_size": "1e-21"}), few_rows)
    assert small.step_ratio == pytest.approx(0.1 / 1.4767874, rel=1e-7)
    assert usual.bound is not None
    # √m/2^j C5 with m = 4, j = 1
    assert float(usual.bound.dominating_printed.value) == pytest.approx(2.377570e11, rel=1e-6)


def test_the_excess_table_shows_what_was_recorded_and_dashes_elsewhere(found: list[TrialTheory]) -> None:
    table = excess_table(found)
    assert cells(table, "excess risk (95 %)") == ["0.2500 (0.2000–0.3000)", "0.2500 (0.2000–0.3000)", "–"]
    assert cells(table, "smoothed excess risk (95 %)")[1:] == ["0.5000 (0.4000–0.6000)", "–"]
    assert cells(table, "robust value") == ["1.250", "1.250", "–"]
    assert cells(table, "smallest robust value") == ["1.000", "1.000", "–"]
    assert cells(table, "log₁₀ λ/λ_max") == ["17.8"] * 3
    assert cells(table, "δ log N") == [f"{0.1 * 4 * math.log(7):.3f}"] * 3
    assert cells(table, "sum") == ["1.6e+29"] * 3
    assert cells(table, "which") == ["moments"] * 3
    assert any(note.startswith("–: not recorded") for note in table.notes)
    assert any("“moments” is √m/2^j C5." in note for note in table.notes)
    rows = list(csv.DictReader(io.StringIO(as_csv(table))))
    assert (rows[1]["excess_risk_low"], rows[2]["excess_risk_low"]) == ("0.2", "")
    assert float(rows[1]["smoothing_error"]) == found[1].values.smoothing_error  # type: ignore[union-attr]


def test_one_run_has_no_interval(few_rows: rs.Dataset) -> None:
    lonely = trial(metrics=RECORDED | {"excess_risk_low": math.nan, "excess_risk_high": math.nan})
    assert cells(excess_table(theories([lonely], few_rows)), "excess risk (95 %)") == ["0.2500"]


def test_the_worst_case_table_adds_up(found: list[TrialTheory], few_rows: rs.Dataset) -> None:
    table = worst_case_table(found)
    for one, record in zip(found, table.records, strict=True):
        assert one.case is not None
        theta, eta2 = one.case.theta, record["eta2"]
        value = record["worst_case_loss"] - record["penalty"] + 0.5e-3 * theta @ theta
        assert record["robust_value"] == pytest.approx(value, abs=1e-8)
        assert record["transport_cost"] == pytest.approx(eta2 * record["a"], abs=1e-7)
        for key, rows in (("clean_loss", few_rows.test), ("empirical_loss", few_rows.train)):
            s = 1 / (1 + np.exp(-(rows[:, :3] @ theta[:3] + theta[3])))
            assert record[key] == pytest.approx(((rows[:, 3] - s) ** 2).mean(), rel=1e-10)
        assert 0 <= record["moved_z"] <= record["moved"] <= 1
    assert table.records[0]["moved"] < table.records[2]["moved"]


def test_latex_of_both_tables_is_plain(found: list[TrialTheory]) -> None:
    for table in (excess_table(found), worst_case_table(found)):
        text = as_latex(table)
        assert text.isascii()
        assert len(re.findall(r"(?<!\\)\$", text)) % 2 == 0


def test_what_cannot_be_computed_is_a_dash(few_rows: rs.Dataset) -> None:
    large = theory_of(trial(params={"dro.j": 4}), few_rows)  # 97^4 grid points
    gone = theory_of(trial(final_loss=np.full(3, np.nan)), few_rows)
    for one in (large, gone):
        assert one.known
        assert (one.values, one.case, one.picture) == (None, None, None)
        assert cells(excess_table([one]), "measured") == ["–"]
        assert cells(worst_case_table([one]), "worst case") == ["–"]
        assert pictures([one]) == []
        assert len(theory_words.sentences([one], few_rows)) == 1


def test_a_users_own_problem_has_what_was_recorded_and_nothing_else(paper: rs.Dataset) -> None:
    mine = trial(metrics=RECORDED, params={"problem.name": "Mine"})
    found = contents([mine], paper)
    (part,) = [part for part in found.parts if part.id == "theory"]
    assert [table.name for table in part.tables] == ["excess_risk"]
    assert list(part.drawings) == []
    assert cells(part.tables[0], "log₁₀ λ/λ_max") == ["0.5"]
    assert cells(part.tables[0], "sum") == ["–"]
    assert part.text == [
        "The convergence theorem guarantees nothing about these runs: it asks for λ below λ_max, and λ is too large by "
        "a factor of 3. That does not say that the runs fail, only that the proof does not reach them.",
        "Measured, the excess risk of the last states is 0.250, 25\u202f% of the smallest robust value, at η₂ = 1.",
    ]
    assert part.text[0] in found.summary


def test_the_guarantee_in_words(few_rows: rs.Dataset) -> None:
    inside, outside = (theory_of(trial(params={"sampler.step_size": s}), few_rows) for s in (1e-21, 0.01))
    (text,) = theory_words.guarantee([inside])
    assert text == "The convergence theorem applies to every robust trial here: λ lies below λ_max."
    (text,) = theory_words.guarantee([outside])
    assert "nothing about these runs" in text
    assert "by more than 17 orders of magnitude" in text
    (text,) = theory_words.guarantee([inside, outside])
    assert "nothing about 1 of these 2 trials" in text
    (text,) = theory_words.bound([outside])
    # at j = 0 the factor √m/2^j is 2 instead of 1: log10(2 · 2.377570e11) = 11.68
    assert "would be 10^(1.6e+29)" in text
    assert "√m/2^j C5 is the largest, up to 10^11.7. No loss here" in text


def test_smoothing_in_words(few_rows: rs.Dataset) -> None:
    weak, strong = trial(0.5), trial(1.0)
    weak.result.states[:, -1, -1], strong.result.states[:, -1, -1] = 3.0, -0.5
    found = theories([weak, strong], few_rows)
    errors = sorted(one.values.smoothing_error for one in found if one.values is not None)
    bound = 0.1 * 4 * math.log(7)
    (text,) = theory_words.smoothing(found)
    assert text.startswith(
        f"The smoothing error is {errors[0]:.3f} to {errors[1]:.3f}, which is {100 * errors[0] / bound:.0f} to "
        f"{100 * errors[1] / bound:.0f} % of its bound δ log N = {bound:.3f}."
    )
    assert f"{errors[0]:.3f}" != f"{errors[1]:.3f}"
    (text,) = theory_words.smoothing(found[:1])
    assert text.startswith(f"The smoothing error is {errors[1]:.3f}, which is {100 * errors[1] / bound:.0f} % of")


BY_MESH = {"robust_value_at_j0": 2.0, "robust_value_at_j1": 1.6, "quadrature_error": 0.4, "quadrature_bound": 5e3}


def test_the_error_of_the_grid_is_shown_as_recorded(few_rows: rs.Dataset) -> None:
    finer = {"robust_value_at_j1": 3.0, "robust_value_at_j2": 2.5, "robust_value_at_j0": 4.25}
    finer |= {"quadrature_error": 0.5, "quadrature_bound": math.nan}
    own = trial(2.0, finer, params={"dro.j": 1})
    alone = trial(3.0, {"robust_value_at_j0": 1.0})  # no finer mesh was affordable
    found = theories([own, trial(1.0, BY_MESH), trial(0.5), alone], few_rows)
    table = quadrature_table(found)
    assert cells(table, "η₂") == ["1", "2", "3"]
    assert cells(table, "trial's j") == ["0", "1", "0"]
    assert cells(table, "j = 0") == ["2.000", "4.250", "1.000"]
    assert cells(table, "j = 2") == ["–", "2.500", "–"]
    assert cells(table, "measured") == ["0.400", "0.500", "–"]
    assert cells(table, "bound") == ["5.0·10³", "–", "–"]
    assert as_latex(table).isascii()
    assert any(note.startswith("–: that mesh") for note in table.notes)


def test_the_error_of_the_grid_in_words(few_rows: rs.Dataset) -> None:
    plain = theories([trial(1.0, BY_MESH)], few_rows)
    assert theory_words.quadrature(plain) == [
        "Refining the grid from j = 0 to j = 1 changes the robust value of the mean last θ by 0.400, 20 % of it; the "
        "bound allows 5.0·10³, at least 4 orders of magnitude more."
    ]
    # from j = 0 to 2 it is 4.25 - 2.5 = 3.5 times the 0.5 from j = 1
    values = {"robust_value_at_j0": 4.25, "robust_value_at_j1": 3.0, "robust_value_at_j2": 2.5}
    values |= {"quadrature_error": 0.5, "excess_risk": 0.3}
    (text,) = theory_words.quadrature(theories([trial(1.0, values, params={"dro.j": 1})], few_rows))
    assert text == (
        "Refining the grid from j = 1 to j = 2 changes the robust value of the mean last θ by 0.500, 17 % of it. On "
        "the next coarser mesh it is 3.5 times as large. In every trial that is more than the excess risk: the grid is "
        "the larger error."
    )
    assert theory_words.quadrature(theories([trial(1.0)], few_rows)) == []


def test_the_adversary_in_words(few_rows: rs.Dataset) -> None:
    def words(theta: tuple[float, ...], eta2: float) -> str:
        one = trial(eta2)
        one.result.states[:, -1] = [*theta, 1.0]
        (text,) = theory_words.adversary(theories([one], few_rows))
        return text

    assert words((0.1, 0.1, 0.1, 0.0), 2.0).startswith("The adversary moves y alone: a step of y changes the residual")
    # with a steep sigmoid a short step of z turns 0 into 1
    assert words((4.0, 4.0, 4.0, 0.0), 2.0).startswith("The adversary moves both y and z (z changes for ")


def taken_apart(data: rs.Dataset, **metrics: float) -> tuple[TrialTheory, theory_words.Shares]:
    one = theory_of(trial(metrics={"smallest_robust_value": 0.0, "excess_risk": 0.0} | metrics), data)
    assert one.state is not None
    return one, theory_words.shares(one, one.state, data)


def test_the_shares_of_the_excess_are_values_at_two_minima(few_rows: rs.Dataset) -> None:
    """Found again by another method in other coordinates: BFGS over (θ, α) with differences for a gradient."""
    one, found = taken_apart(few_rows, excess_risk=0.7)
    problem, dro = rs.SigmoidRegression(4), rs.DRO(j=0)
    dual, frontier = rs.RobustSGLD(problem, dro).dual, frontier_of(problem, dro, few_rows.train)
    raw = few_rows.train, np.full(60, 1 / 60)
    u = []
    for measure in ((frontier.atoms, frontier.weights), raw):
        end = minimize(lambda state, m=measure: float(dual.integral(state, *m)), one.state, options={"gtol": 1e-6})
        u.append(robust_value(frontier, end.x[:4]).value)
    # differences of step 1e-8 leave the gradient wrong by 1e-8, so θ by about 1e-6 where v is flat, and u with it
    assert found.smoothing == pytest.approx(u[0], abs=1e-5)
    assert found.grid == pytest.approx(u[1] - u[0], abs=1e-5)
    assert abs(u[1] - u[0]) > 0.02
    assert found.sampler == pytest.approx(0.7 - u[1], abs=1e-5)


def test_data_on_the_grid_have_no_share_of_the_grid(few_rows: rs.Dataset) -> None:
    """Rows that are their own floor: the sampler then sees what the objective is over."""
    on_grid = replace(few_rows, train=rs.DRO(j=0).grid(4).floor(few_rows.train), outlier=None)
    # L-BFGS-B stops where v is flat to 1e-13 of itself, so θ is known to about 1e-6 and u, with slope 1, too
    assert taken_apart(on_grid)[1].grid == pytest.approx(0.0, abs=1e-5)


def test_the_excess_in_words(few_rows: rs.Dataset) -> None:
    _, found = taken_apart(few_rows)
    smallest = found.smoothing - 0.001
    whole = found.grid + 0.001
    one, _ = taken_apart(few_rows, smallest_robust_value=smallest, excess_risk=whole)
    (text,) = theory_words.excess([one], few_rows)
    assert text.startswith(f"Measured, the excess risk of the last states is {whole:.3f}, ")
    assert f"At η₂ = 1 the {whole:.3f} is made of 0.001 for smoothing" in text
    assert "Most of the excess is the grid's, and no number of updates removes it." in text
    assert "The runs end about where the objective that they see is smallest." in text
    far, _ = taken_apart(few_rows, smallest_robust_value=smallest, excess_risk=10 * whole)
    (text,) = theory_words.excess([one, far], few_rows)
    assert f"is between {whole:.3f}, " in text
    assert f" and {10 * whole:.3f}, " in text
    assert f"{found.grid:.3f} for the grid" in text
    assert f"{9 * whole:.3f} for the sampler itself. Flooring alone" in text


def marginals(figure: Figure, row: int, columns: int) -> list[list[np.ndarray]]:
    """The bars of the axes in that row, (after, before) each, without gaps."""
    axes = figure.axes[row * columns : (row + 1) * columns]
    steps = [[patch.get_data().values[::2] for patch in one.patches if isinstance(patch, StepPatch)] for one in axes]
    return [[np.nan_to_num(values) for values in one] for one in steps]


def test_the_figure_draws_every_mass(found: list[TrialTheory]) -> None:
    drawn = pictures(found)
    assert [label.splitlines()[0] for label, _ in drawn] == ["η₂ = 0.01", "η₂ = 0.5", "η₂ = 2"]
    figure = figures.worst_case(drawn)
    assert len(figure.axes) == 3 * 2 * 4
    largest = max(p.before_joint.max() for _, p in drawn), max(p.after_joint.max() for _, p in drawn)
    for i, (_, picture) in enumerate(drawn):
        for column, (after, before) in enumerate(marginals(figure, 2 * i, 4)[1:]):
            np.testing.assert_array_equal(after, picture.after[column])
            np.testing.assert_array_equal(before, picture.before[column])
        (after, before), *planes = marginals(figure, 2 * i + 1, 4)
        np.testing.assert_array_equal(after, picture.after[-1])
        np.testing.assert_array_equal(before, picture.before[-1])
        assert planes == [[], [], []]
        for column, axes in enumerate(figure.axes[8 * i + 5 : 8 * i + 8]):
            dots = [c for c in axes.collections if isinstance(c, PathCollection)]
            for dot, mass in zip(dots, (picture.after_joint[column], picture.before_joint[column]), strict=True):
                areas = dot.get_sizes() / dot.get_sizes().sum()
                at = np.rint(np.asarray(dot.get_offsets()) - picture.axis[0]).astype(int)
                np.testing.assert_allclose(areas, mass[at[:, 0], at[:, 1]], rtol=1e-9)
                assert dot.get_sizes().max() / mass.max() == pytest.approx(13**2 / max(largest), rel=1e-9)
                (left, right), (bottom, top) = axes.get_xlim(), axes.get_ylim()
                places = np.asarray(dot.get_offsets())
                assert ((places > [left, bottom]) & (places < [right, top])).all()


def test_no_text_of_the_figure_lies_over_another(found: list[TrialTheory]) -> None:
    for drawn in (pictures(found), pictures(found)[:1]):
        figure = figures.worst_case(drawn)
        figure.draw_without_rendering()
        texts = [text for axes in figure.axes for text in axes.texts]
        boxes = [text.get_window_extent() for text in [*texts, *figure.legends]]
        assert len(boxes) == len(drawn) * 5 + 1
        assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])
        frame = figure.bbox
        assert all(frame.x0 <= box.x0 and box.x1 <= frame.x1 and box.y1 <= frame.y1 for box in boxes)


def test_of_many_columns_those_that_move_most_are_drawn() -> None:
    mass = np.full((6, 3), 1 / 3)
    joint = np.full((5, 3, 3), 1 / 9)
    axis = np.array([-1.0, 0.0, 1.0])
    shift = np.array([0.0, 0.3, 0.1, 0.0, 0.2, 1.0])
    columns = ("age", "z2", "income", "z4", "z5", "price")
    figure = figures.worst_case([("one", BeforeAndAfter(columns, axis, mass, mass, joint, joint, shift))])
    assert [axes.get_xlabel() for axes in figure.axes[4:]] == ["share of the mass", "$z_{2}$", "income", "$z_{5}$"]
    assert figure.axes[4].get_ylabel() == "price"


def test_the_figure_of_one_trial(few_rows: rs.Dataset) -> None:
    sampler = rs.RobustSGLD(rs.SigmoidRegression(4), rs.DRO(eta2=2.0, j=0))
    result = made_up(eta2=2.0).result
    figure = trial_worst_case(result, sampler, few_rows)
    state = result.states[int(np.argsort(result.final_loss)[1]), -1]
    case = worst_case(sampler.problem, sampler.dro, state[:4], few_rows)
    picture = before_and_after(case, sampler.dro, few_rows.columns)
    np.testing.assert_array_equal(marginals(figure, 1, 4)[0][0], picture.after[-1])
    assert [text.get_text() for text in figure.axes[0].texts] == [
        "η₂ = 2",
        f"{100 * case.moved:.0f} % of the mass moves\nmean shift of $y$: {picture.displacement[-1]:.2f}",
    ]


def test_a_trial_without_a_worst_case_is_refused(few_rows: rs.Dataset) -> None:
    problem = rs.SigmoidRegression(4)
    with pytest.raises(rs.InvalidInput, match="not for sgld, which has no adversary"):
        trial_worst_case(made_up(eta2=None).result, rs.SGLD(problem), few_rows)
    diverged = made_up(final_loss=np.full(3, np.nan)).result
    with pytest.raises(rs.InvalidInput, match="every run of this trial diverged"):
        trial_worst_case(diverged, rs.RobustSGLD(problem, rs.DRO(j=0)), few_rows)


def test_mass_along_z_counts_moves_of_any_feature(few_rows: rs.Dataset) -> None:
    case = worst_case(rs.SigmoidRegression(4), rs.DRO(j=0), np.array([4.0, 4.0, 4.0, 0.0]), few_rows)
    by_hand = sum(m for s, t, m in zip(case.source, case.target, case.mass, strict=True) if (s[:3] != t[:3]).any())
    assert moved_along_z(case) == pytest.approx(by_hand, rel=1e-12)
    assert 0 < by_hand <= case.moved
