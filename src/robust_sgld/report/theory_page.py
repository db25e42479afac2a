"""The theory beside the runs: measured excess risk, smoothing error, the theorem's bound, and the worst case."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure

from robust_sgld.checks import InvalidInput
from robust_sgld.data import Dataset
from robust_sgld.dro import DRO, split
from robust_sgld.dual import DualObjective
from robust_sgld.problems import Problem, SigmoidRegression
from robust_sgld.report import figures, published
from robust_sgld.report.displacement import dro_of, typical_run
from robust_sgld.report.formats import NOTHING, Column, Record, Table, scientific, share, sort_last
from robust_sgld.report.trials import ReportTrial
from robust_sgld.result import TrialResult
from robust_sgld.samplers import LangevinSampler, RobustSGLD
from robust_sgld.theory import (
    BeforeAndAfter,
    Bound,
    LogNumber,
    TheoryConstants,
    Values,
    WorstCase,
    before_and_after,
    excess_risk_bound,
    values_at,
    worst_case,
)

MOST_VISITS = 20_000_000
"""atoms times grid points beyond which the worst case is not computed for a page; the paper's are 3 million"""


@dataclass(frozen=True, eq=False)
class TrialTheory:
    """What the theory says of one robust trial; None where it cannot be computed from what is stored.

    `values` and `case` are at the last state of the run with the median final loss. A mean over runs would not do: the
    sign of α differs from run to run and means nothing, so that a mean of α is no state that any run was near to.
    """

    trial: ReportTrial
    step_ratio: float
    """λ/λ_max,δ; NaN where it is not known"""
    bound: Bound | None
    state: np.ndarray | None
    values: Values | None
    case: WorstCase | None
    picture: BeforeAndAfter | None

    def metric(self, key: str) -> float:
        """A number of `ExcessRisk.headline` that was recorded with the trial, NaN if it was not."""
        return float(self.trial.metrics.get(key, math.nan))

    @property
    def values_by_mesh(self) -> dict[int, float]:
        """u^{ℓ,j} at the mean of the last θ, by j, as recorded by `theory.quadrature_numbers`; ascending."""
        name = "robust_value_at_j"
        found = {
            int(key.removeprefix(name)): value for key, value in self.trial.metrics.items() if key.startswith(name)
        }
        return dict(sorted(found.items()))

    @property
    def known(self) -> bool:
        """Whether there is anything to show."""
        return self.bound is not None or not math.isnan(self.metric("excess_risk"))


def theory_of(trial: ReportTrial, data: Dataset) -> TrialTheory:
    """For a robust trial; of a problem that is not the sigmoid regression only what was recorded is known."""
    ratio = float(trial.metrics.get("step_size_over_max", math.nan))
    bound = state = values = case = picture = None
    if trial.is_sigmoid:
        problem, dro = SigmoidRegression(data.dim), dro_of(trial)
        step, beta, theta0 = (_known(trial, f"sampler.{name}") for name in ("step_size", "beta", "theta0"))
        constants = TheoryConstants.of(problem, dro, beta=beta, theta0=theta0)  # type: ignore[arg-type]
        ratio = float(LogNumber.of(step) / constants.step_max)  # type: ignore[arg-type]
        bound = excess_risk_bound(
            constants, m=problem.dim, ell=dro.ell, j=dro.j, step_size=step, n_iter=trial.result.n_iter  # type: ignore[arg-type]
        )  # fmt: skip
        run = typical_run(trial.result)
        grid = dro.grid(data.dim)
        if run is not None and grid.size * len(grid.measure(data.train)[0]) <= MOST_VISITS:
            state = trial.result.states[run, -1]
            values = values_at(DualObjective(problem, dro), state, data.train)
            case, picture = _worst_case_at(problem, dro, state, data)
    return TrialTheory(trial, ratio, bound, state, values, case, picture)


def theories(trials: Sequence[ReportTrial], data: Dataset) -> list[TrialTheory]:
    """Of the robust trials of which something is known, by η₂."""
    robust = sorted((trial for trial in trials if trial.has_dual), key=lambda trial: trial.eta2 or 0.0)
    return [found for trial in robust if (found := theory_of(trial, data)).known]


def trial_worst_case(result: TrialResult, sampler: LangevinSampler, data: Dataset) -> Figure:
    """The data before and after the adversary of one robust trial, at the last state of its typical run.

    Raises `InvalidInput` where there is none: a sampler without a dual, a trial all of whose runs diverged, or a grid
    that is too large to be tabulated.
    """
    if not isinstance(sampler, RobustSGLD):
        raise InvalidInput(f"a worst case exists for robust_sgld, not for {sampler.name}, which has no adversary.")
    run = typical_run(result)
    if run is None:
        raise InvalidInput("a worst case is at the last state of a run, and every run of this trial diverged.")
    case, picture = _worst_case_at(sampler.problem, sampler.dro, result.states[run, -1], data)
    return figures.worst_case([(_label(sampler.dro.eta2, case), picture)])


def pictures(found: Sequence[TrialTheory]) -> list[tuple[str, BeforeAndAfter]]:
    """For `figures.worst_case`: the weakest, a middle and the strongest adversary."""
    drawn = [one for one in found if one.case is not None and one.picture is not None]
    shown = [drawn[i] for i in sorted({0, len(drawn) // 2, len(drawn) - 1})] if drawn else []
    return [(_label(one.trial.eta2, one.case), one.picture) for one in shown if one.case and one.picture]


def _worst_case_at(problem: Problem, dro: DRO, state: np.ndarray, data: Dataset) -> tuple[WorstCase, BeforeAndAfter]:
    case = worst_case(problem, dro, split(state)[0], data)
    return case, before_and_after(case, dro, data.columns)


def _label(eta2: float | None, case: WorstCase) -> str:
    return f"η₂ = {eta2:g}\n{100 * case.moved:.0f} % of the mass moves"


def _known(trial: ReportTrial, key: str) -> object:
    value = trial.setting(key)
    return published.SETTINGS[key] if value is None else value


def excess_table(found: Sequence[TrialTheory]) -> Table:
    """Measured excess risk and smoothing error beside what the theorem bounds them by."""
    measured, smoothing, bound = "measured at the last update", "smoothing error", "the theorem's bound, log₁₀"
    columns = [
        Column("η₂", lambda r: f"{r['eta2']:g}", lambda r: r["eta2"]),
        Column(
            "log₁₀ λ/λ_max", lambda r: _number(r["log10_step_ratio"], 1), lambda r: sort_last(r["log10_step_ratio"])
        ),
        _interval("excess_risk", "excess risk (95 %)", measured),
        _interval("smoothed_excess_risk", "smoothed excess risk (95 %)", measured),
        _plain("robust_value", "robust value", measured),
        _plain("smallest_robust_value", "smallest robust value", measured),
        _plain("smoothing_error", "measured", smoothing),
        _plain("smoothing_bound", "δ log N", smoothing),
        Column("sum", lambda r: _power(r["log10_bound"]), lambda r: sort_last(r["log10_bound"]), bound),
        Column(
            "largest printed term",
            lambda r: _power(r["log10_largest_printed"]),
            lambda r: sort_last(r["log10_largest_printed"]),
            bound,
        ),
        Column("which", lambda r: r["largest_printed"], group=bound, numeric=False),
    ]
    records = [_excess_record(one) for one in found]
    notes = [
        "Excess risk: the mean over the runs of u(θ) at the last update, less the smallest u that minimisation from "
        "many starts finds (corollary:excess_risk_discrete), where u is the robust value over the floored training "
        "data. What is found cannot be below the infimum, so the true excess is at least this. Smoothed: the same with "
        "v, which the sampler follows (prop:excess_risk_discrete). Intervals are Student's, over the runs.",
        "Smoothing error: v with the true maximum less v, at the last state of the run with the median final loss; N "
        "counts the grid points that Ξ really holds. The bound of theorem:excess risk is a sum whose first two terms "
        "rest on constants that the paper does not print; they are reconstructed to their order of magnitude.",
    ]
    largest = {one.bound.dominating_printed for one in found if one.bound is not None}
    formulas = sorted({(term.name, term.formula) for term in largest})
    if formulas:
        named = ", ".join(f"“{name}” is {formula}" for name, formula in formulas)
        notes.append(f"Largest of the terms whose constants the paper prints: {named}.")
    if any(math.isnan(record["excess_risk"]) for record in records):
        notes.append(f"{NOTHING}: not recorded with the trial, or not computable from what was.")
    return Table("excess_risk", "Excess risk, measured and bounded", columns, records, notes)


def _excess_record(one: TrialTheory) -> Record:
    keys = ("excess_risk", "smoothed_excess_risk")
    numbers: Record = {"eta2": one.trial.eta2, "runs": one.trial.runs}
    numbers["log10_step_ratio"] = math.log10(one.step_ratio) if one.step_ratio > 0 else math.nan
    numbers |= {key + end: one.metric(key + end) for key in keys for end in ("", "_low", "_high")}
    numbers |= {key: one.metric(key) for key in ("robust_value", "smallest_robust_value", "smallest_objective")}
    numbers["smoothing_error"] = math.nan if one.values is None else one.values.smoothing_error
    numbers["smoothing_bound"] = math.nan if one.values is None else one.values.smoothing_bound
    if one.bound is None:
        return numbers | {"log10_bound": math.nan, "largest_printed": NOTHING, "log10_largest_printed": math.nan}
    printed = one.bound.dominating_printed
    return numbers | {
        "log10_bound": float(one.bound.total.log10),
        "largest_printed": printed.name,
        "log10_largest_printed": float(printed.value.log10),
    }


def quadrature_table(found: Sequence[TrialTheory]) -> Table:
    """The robust value on finer and finer meshes, and the error of the trial's own mesh against its bound."""
    shown = [one for one in found if one.values_by_mesh]
    meshes = sorted({j for one in shown for j in one.values_by_mesh})
    value, error = "robust value of the mean last θ", "error of the trial's mesh"
    columns = [
        Column("η₂", lambda r: f"{r['eta2']:g}", lambda r: r["eta2"]),
        Column("trial's j", lambda r: f"{r['j']:g}", lambda r: r["j"]),
        *(_plain(f"robust_value_at_j{j}", f"j = {j}", value) for j in meshes),
        _plain("quadrature_error", "measured", error),
        Column("bound", lambda r: scientific(r["quadrature_bound"]), lambda r: sort_last(r["quadrature_bound"]), error),
    ]
    keys = [*(f"robust_value_at_j{j}" for j in meshes), "quadrature_error", "quadrature_bound"]
    records: list[Record] = [
        {"eta2": one.trial.eta2, "j": float(dro_of(one.trial).j)} | {key: one.metric(key) for key in keys}
        for one in shown
    ]
    notes = [
        "The robust value u is computed exactly on the trial's grid, with mesh 2^-j, and on coarser and finer ones; "
        "rows are floored to each. Measured error: the difference to the finest mesh of the row, which stands in for "
        "the limit. Bound: what the theory allows that difference to be, the bounds of both meshes together "
        "(eqn:primal_diff_fixed_theta)."
    ]
    if any(math.isnan(record["quadrature_error"]) for record in records):
        notes.append(f"{NOTHING}: that mesh was not computed, or no finer one than the trial's was affordable.")
    return Table("quadrature", "The error of the grid", columns, records, notes)


def worst_case_table(found: Sequence[TrialTheory]) -> Table:
    """What the adversary does at the typical run's last θ, and what it gains."""
    moves, loss = "mass moved", "mean loss at the typical run's θ"
    columns = [
        Column("η₂", lambda r: f"{r['eta2']:g}", lambda r: r["eta2"]),
        _plain("a", "price of moving"),
        Column("in all", lambda r: share(r["moved"]), lambda r: sort_last(r["moved"]), moves),
        Column("along z", lambda r: share(r["moved_z"]), lambda r: sort_last(r["moved_z"]), moves),
        _plain("transport_cost", "transport cost"),
        _plain("clean_loss", "clean test rows", loss, 4),
        _plain("empirical_loss", "training rows", loss, 4),
        _plain("floored_loss", "the same on the grid", loss, 4),
        _plain("worst_case_loss", "worst case", loss, 4),
        _plain("penalty", "penalty"),
        _plain("robust_value", "robust value"),
    ]
    records = [_worst_case_record(one) for one in found]
    notes = [
        "The adversary's exact answer to θ, the last one of the run with the median final loss: the distribution that "
        "attains the supremum in the robust value. The price is the minimiser of the dual; at it the transport cost is "
        "η₂ times the price. The robust value is the loss in the worst case, less the penalty (the squared cost over "
        "2η₂), plus the regulariser."
    ]
    return Table("worst_case", "The worst case", columns, records, notes)


_WORST_CASE = (
    "a", "moved", "transport_cost", "clean_loss", "empirical_loss", "floored_loss", "worst_case_loss", "penalty",
    "regulariser", "robust_value",
)  # fmt: skip


def _worst_case_record(one: TrialTheory) -> Record:
    record: Record = {"eta2": one.trial.eta2, "moved_z": math.nan} | dict.fromkeys(_WORST_CASE, math.nan)
    if one.case is not None:
        numbers = one.case.to_dict()
        record |= {key: numbers[key] for key in _WORST_CASE} | {"moved_z": moved_along_z(one.case)}
    return record


def moved_along_z(case: WorstCase) -> float:
    """The share of the mass whose z changes."""
    return float(case.mass[(case.source != case.target)[:, :-1].any(axis=1)].sum())


def _plain(key: str, label: str, group: str = "", digits: int = 3) -> Column:
    return Column(label, lambda r: _number(r[key], digits), lambda r: sort_last(r[key]), group)


def _interval(key: str, label: str, group: str) -> Column:
    def text(record: Record) -> str:
        low, high = record[f"{key}_low"], record[f"{key}_high"]
        ends = "" if math.isnan(low) else f" ({_number(low, 4)}–{_number(high, 4)})"
        return _number(record[key], 4) + ends

    return Column(label, text, lambda r: sort_last(r[key]), group)


def _number(value: float, digits: int) -> str:
    return NOTHING if math.isnan(value) else f"{value:.{digits}f}"


def _power(log10: float) -> str:
    """A logarithm, which may itself be astronomic."""
    return NOTHING if math.isnan(log10) else f"{log10:.1f}" if abs(log10) < 1e6 else f"{log10:.1e}"
