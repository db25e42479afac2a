"""Table 2 (label tbl:mseloss): ours beside theirs, a computed verdict, and what the printed statistic hides."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from robust_sgld.report import published
from robust_sgld.report.agreement import LEVEL, RULE, judge
from robust_sgld.report.formats import NOTHING, Column, Record, Table, mse, seconds, share, sort_last, whole
from robust_sgld.report.statistics import deviation, mean, quantile
from robust_sgld.report.trials import ReportTrial, departures, method_label
from robust_sgld.result import TrialResult


@dataclass(frozen=True)
class Entry:
    """What the paper's rule makes of a trial; None is NA."""

    n_es: int | None
    seconds_to_n_es: float | None
    loss: float
    run: int
    """the position of the run that the row is about"""


def entry(result: TrialResult) -> Entry:
    """n_es is the largest over the runs, NA if any missed; time and loss are of that run (the first of several).

    For NA the loss is the closest to the reference of the runs that missed. The time is that of the run's sampling up
    to n_es: seconds · n_es / n_iter, because every update does the same work.
    """
    if result.reached.all():
        run = int(result.n_es.argmax())
        n_es = int(result.n_es[run])
        return Entry(n_es, float(result.seconds[run]) * n_es / result.n_iter, float(result.loss_at_n_es[run]), run)
    missed = np.flatnonzero(~result.reached)
    gap = np.abs(result.closest_loss[missed] - result.reference)
    run = int(missed[np.where(np.isnan(gap), np.inf, gap).argmin()])
    return Entry(None, None, float(result.closest_loss[run]), run)


def records(trials: Sequence[ReportTrial]) -> list[Record]:
    """A record for each row of the printed table, in its order; NaN where there is no trial."""
    by_method = {trial.method: trial for trial in trials}
    rows = [_record(row, by_method.get((row.sampler, row.eta2))) for row in published.TABLE2]
    if trials:
        reference = dict.fromkeys(rows[0], math.nan) | {
            "method": "reference (loss at θ*)",
            "loss": trials[0].result.reference,
            "paper_loss": published.REFERENCE,
            "verdict": "",
            "departures": "",
        }
        rows.append(reference)
    return rows


def _record(row: published.PublishedRow, trial: ReportTrial | None) -> Record:
    record: Record = {
        "method": method_label(row.sampler, row.eta2),
        "runs": math.nan,
        "n_iter": math.nan,
        "seconds_per_run": math.nan,
        "seconds_per_run_amortised": math.nan,
        "n_es": math.nan,
        "seconds_to_n_es": math.nan,
        "loss": math.nan,
        "paper_seconds": row.seconds,
        "paper_n_es": row.n_es,
        "paper_seconds_to_n_es": row.seconds_to_n_es,
        "paper_loss": row.loss,
        "n_es_low": math.nan,
        "n_es_high": math.nan,
        "na_probability": math.nan,
        "verdict": "not run",
        "departures": "",
    }
    if trial is None:
        return record
    result, away = trial.result, departures(trial)
    ours = entry(result)
    agreement = judge(result.n_es, result.n_iter, row.n_es, comparable=not away)
    return record | {
        "runs": trial.runs,
        "n_iter": result.n_iter,
        "seconds_per_run": float(result.seconds.mean()),
        "seconds_per_run_amortised": result.wall_seconds / trial.runs,
        "n_es": ours.n_es,
        "seconds_to_n_es": ours.seconds_to_n_es,
        "loss": ours.loss,
        "n_es_low": agreement.low,
        "n_es_high": agreement.high,
        "na_probability": agreement.na_probability,
        "verdict": agreement.verdict,
        "departures": "; ".join(away),
    }


def comparison(trials: Sequence[ReportTrial]) -> Table:
    """Table 2, ours beside theirs."""

    def numbers(key: str, text: object, label: str, group: str) -> Column:
        return Column(label, lambda r: text(r[key]), lambda r: sort_last(r[key]), group)  # type: ignore[operator]

    ours, theirs, judged = "ours", "paper", "does it agree?"
    columns = [
        Column("method", lambda r: r["method"], numeric=False),
        numbers("seconds_per_run", seconds, "s a run, one core", ours),
        numbers("seconds_per_run_amortised", seconds, "s a run, amortised", ours),
        numbers("n_es", whole, "n_es", ours),
        numbers("seconds_to_n_es", seconds, "s to n_es", ours),
        numbers("loss", mse, "loss", ours),
        numbers("paper_seconds", printed_seconds, "s a run", theirs),
        numbers("paper_n_es", whole, "n_es", theirs),
        numbers("paper_seconds_to_n_es", printed_seconds, "s to n_es", theirs),
        numbers("paper_loss", mse, "loss", theirs),
        Column(
            f"{LEVEL:.0%} interval of n_es".replace("%", " %"),
            lambda r: interval(r["n_es_low"], r["n_es_high"]),
            lambda r: sort_last(r["n_es_low"]),
            judged,
        ),
        numbers("na_probability", share, "P(NA)", judged),
        Column("verdict", lambda r: r["verdict"], group=judged, numeric=False, tone=lambda r: tone(r["verdict"])),
    ]
    notes = [
        "n_es is the largest, over the runs, of the first update whose test loss lies strictly within 1 % of the "
        "reference; NA if any run never gets there. Time and loss are those of that run; for NA, the loss is the "
        "one closest to the reference among the runs that missed.",
        "Times: ours are processor seconds of a run's sampling alone, on one core, and, amortised, the "
        "wall time of the whole trial (all workers, with every test loss and the dual objective) over its runs. "
        "Theirs are as printed and of another machine.",
        RULE,
        *closest_of_the_missed(trials),
        f"Source of the paper's columns: {published.SOURCE}.",
    ]
    return Table("table2", "Table 2, ours beside the paper's", columns, records(trials), notes)


def closest_of_the_missed(trials: Sequence[ReportTrial]) -> list[str]:
    """Over which range the closest losses of the runs that missed lie, where the paper prints NA."""
    printed = {(row.sampler, row.eta2): row.loss for row in published.TABLE2 if row.n_es is None}
    parts = []
    for trial in trials:
        closest = trial.result.closest_loss[~trial.result.reached]
        closest = closest[np.isfinite(closest)]
        if trial.method in printed and closest.size and not departures(trial):
            loss = printed[trial.method]
            inside = "inside" if closest.min() <= loss <= closest.max() else "outside"
            parts.append(
                f"{trial.label}: {mse(closest.min())}–{mse(closest.max())}, the printed {mse(loss)} is {inside}"
            )
    if not parts:
        return []
    return [
        "The paper does not say of which run it prints the loss for NA. The closest losses of our runs that missed "
        "range over "
        + "; ".join(parts) + "."
    ]  # fmt: skip


def printed_seconds(value: float | None) -> str:
    """To the digits of the paper."""
    return seconds(value) if value is None or math.isnan(value) else f"{value:.2f}"


def tone(verdict: str) -> str:
    """The class of a verdict's cell."""
    return {"agrees": "good", "differs": "bad", "open": "open"}.get(verdict, "muted")


def interval(low: float, high: float) -> str:
    """ "2 100–2 600"; one end alone where both are the same."""
    if math.isnan(low):
        return NOTHING
    return whole(low) if low == high else f"{whole(low)}–{whole(high)}"


def spread_records(trials: Sequence[ReportTrial]) -> list[Record]:
    """What a maximum over runs hides, a record for each trial."""
    found = []
    for trial in trials:
        result = trial.result
        hits = result.n_es[result.reached]
        low, median, high = np.quantile(hits, [0.05, 0.5, 0.95]) if hits.size else [math.nan] * 3
        found.append(
            {
                "method": trial.label,
                "runs": trial.runs,
                "reached": int(result.reached.sum()),
                "diverged": int((result.diverged_at > 0).sum()),
                "n_es_median": float(median),
                "n_es_q05": float(low),
                "n_es_q95": float(high),
                "n_es_largest_hit": float(hits.max()) if hits.size else math.nan,
                "final_mse_mean": mean(result.final_loss),
                "final_mse_std": deviation(result.final_loss),
                "final_mse_q05": quantile(result.final_loss, 0.05),
                "final_mse_q95": quantile(result.final_loss, 0.95),
                "smallest_mse_mean": mean(result.smallest_loss),
                "smallest_mse_std": deviation(result.smallest_loss),
                "inside_after_hit": mean(result.inside_after_hit),
            }
        )
    return found


def hidden(trials: Sequence[ReportTrial]) -> Table:
    """What the printed statistic hides."""
    times, losses = "updates to the band, of the runs that reached it", "test loss"
    columns = [
        Column("method", lambda r: r["method"], numeric=False),
        Column("runs that reached it", lambda r: f"{r['reached']}/{r['runs']}", lambda r: r["reached"] / r["runs"]),
        Column("median", lambda r: whole(r["n_es_median"]), lambda r: sort_last(r["n_es_median"]), times),
        Column("5–95 %", lambda r: interval(r["n_es_q05"], r["n_es_q95"]), lambda r: sort_last(r["n_es_q05"]), times),
        Column("largest", lambda r: whole(r["n_es_largest_hit"]), lambda r: sort_last(r["n_es_largest_hit"]), times),
        Column(
            "final, mean ± sd",
            lambda r: plus_minus(r["final_mse_mean"], r["final_mse_std"]),
            lambda r: sort_last(r["final_mse_mean"]),
            losses,
        ),
        Column(
            "final, 5–95 %",
            lambda r: f"{mse(r['final_mse_q05'])}–{mse(r['final_mse_q95'])}",
            lambda r: sort_last(r["final_mse_q95"]),
            losses,
        ),
        Column(
            "smallest of a run, mean ± sd",
            lambda r: plus_minus(r["smallest_mse_mean"], r["smallest_mse_std"]),
            lambda r: sort_last(r["smallest_mse_mean"]),
            losses,
        ),
        Column(
            "updates inside the band afterwards",
            lambda r: share(r["inside_after_hit"]),
            lambda r: sort_last(r["inside_after_hit"]),
        ),
    ]
    notes = []
    if trials and trials[0].result.clean_minimum < trials[0].result.reference * (1 - trials[0].result.tolerance):
        result = trials[0].result
        notes.append(
            f"The reference {mse(result.reference)} is not the smallest possible test loss, which is "
            f"{mse(result.clean_minimum)}: the noise of y does not have mean 0, and the bias can learn its mean. So "
            "a path crosses the band on its way down and may cross it again on its way up. Hence the last column, "
            "and the final loss."
        )
    return Table("spread", "What the printed statistic hides", columns, spread_records(trials), notes)


def plus_minus(value: float, error: float) -> str:
    """ "0.005094 ± 0.000679"."""
    return mse(value) if math.isnan(error) else f"{mse(value)} ± {mse(error)}"
