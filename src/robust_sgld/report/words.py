"""What the numbers say, in sentences that are computed from them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from robust_sgld.report.baselines import SCALE
from robust_sgld.report.displacement import Displacement
from robust_sgld.report.formats import Record, mse, seconds
from robust_sgld.report.statistics import mean
from robust_sgld.report.trials import ReportTrial, Series, method_label

PURPOSE = (
    "What the DRO estimator is for: it guards against every perturbation of the data within a transport penalty, "
    "whatever its form, and so against shifts that nobody has described. It is not a better outlier filter for this "
    "contamination, whose form is known: where outliers are far from the rest and the noise has a known size, a "
    "bounded loss is the tool made for it."
)


def verdicts(table2: Sequence[Record]) -> str:
    """How many rows of Table 2 agree."""
    rows = [record for record in table2 if record["verdict"]]
    count = {
        name: sum(r["verdict"] == name for r in rows) for name in ("agrees", "differs", "open", "not judged", "not run")
    }
    judged = count["agrees"] + count["differs"] + count["open"]
    if not judged:
        return "No row of Table 2 can be judged, because no trial here follows the paper's protocol in full."
    text = f"Of the {len(rows)} methods of Table 2, {judged} were run as in the paper; of these {count['agrees']} agree"
    if count["differs"]:
        names = ", ".join(r["method"] for r in rows if r["verdict"] == "differs")
        text += f", {count['differs']} differ ({names})"
    if count["open"]:
        text += f", {count['open']} cannot be told"
    return text + ", given how far the largest of 100 hitting times spreads."


def luck(table2: Sequence[Record]) -> list[str]:
    """Rows where NA or a number is a matter of chance."""
    return [
        f"Whether {record['method']} prints NA or a number is chance: a repetition of our own trial would print NA "
        f"with probability {record['na_probability']:.2f}."
        for record in table2
        if 0.05 < record["na_probability"] < 0.95
    ]


def not_the_optimum(trials: Sequence[ReportTrial]) -> list[str]:
    """The reference is not the smallest loss, where it is not."""
    result = trials[0].result
    if result.clean_minimum > (1 - result.tolerance) * result.reference:
        return []
    return [
        f"The reference {mse(result.reference)} is the loss at θ*, not the smallest: some θ has "
        f"{mse(result.clean_minimum)}. Reaching the band means to cross it, not to converge there, so the final loss "
        "is shown beside every n_es."
    ]


def turning_point(trials: Sequence[ReportTrial]) -> list[str]:
    """Where the final loss is smallest over η₂, and whether it rises beyond."""
    robust = sorted((t for t in trials if t.eta2 is not None), key=lambda t: t.eta2 or 0.0)
    losses = [mean(t.result.final_loss) for t in robust]
    if len(robust) < 3 or any(math.isnan(loss) for loss in losses):
        return []
    best = min(range(len(losses)), key=losses.__getitem__)
    text = f"The mean final loss is smallest at η₂ = {robust[best].eta2:g} ({mse(losses[best])})"
    if best == len(losses) - 1:
        return [text + ", the largest value tried: where it turns is beyond."]
    return [f"{text} and rises again beyond, to {mse(losses[-1])} at η₂ = {robust[-1].eta2:g}."]


def moved(found: Sequence[Displacement]) -> str:
    """How far the adversary moves labels and features, on average over μ_{0,ℓ,j}."""
    parts = []
    for one in found:
        shift = one.moved - one.atoms
        label, features = one.weights @ np.abs(shift[:, -1]), one.weights @ np.linalg.norm(shift[:, :-1], axis=1)
        parts.append(f"y by {label:.2f} and z by {features:.2f} at η₂ = {one.trial.eta2:g}")
    return "On average over the training data the adversary moves " + ", ".join(parts) + "."


def cheaper(rows: Sequence[Record]) -> list[str]:
    """Whether a plain robust regression beats the best sampler, and at which cost."""
    samplers = [r for r in rows if r["kind"] == "sampler" and math.isfinite(r["mse"])]
    others = [r for r in rows if r["kind"] == "robust regression"]
    if not samplers or not others:
        return []
    ours, best = min(samplers, key=lambda r: r["mse"]), min(others, key=lambda r: r["mse"])
    better = [r for r in others if r["mse"] < ours["mse"]]
    if not better:
        return [f"No alternative here has a smaller test loss than {ours['method']} ({mse(ours['mse'])})."]
    quick = [r for r in better if r["seconds"] < ours["seconds"]]
    text = (
        f"{best['method']} (scale {SCALE:g}) reaches {mse(best['mse'])} in {seconds(best['seconds'])} s, where "
        f"{ours['method']}, the best sampler here, stays at {mse(ours['mse'])} on average after "
        f"{seconds(ours['seconds'])} s a run."
    )
    if best in quick:
        text = "The cheaper method wins: " + text
    many = f"{len(better)} of the {len(others)} alternatives have a smaller test loss than every sampler"
    return [text, f"{many}, {'all' if len(quick) == len(better) else len(quick)} of them in less time."]


def another_loss(rows: Sequence[Record], clean_minimum: float) -> list[str]:
    """What a sampler gains by a loss that is robust itself."""
    squared = [r for r in rows if r["kind"] == "sampler" and math.isfinite(r["mse"])]
    others = [r for r in rows if r["kind"] == "sampler, other loss" and math.isfinite(r["mse"])]
    if not squared or not others:
        return []
    best, ours = min(others, key=lambda r: r["mse"]), min(squared, key=lambda r: r["mse"])
    against = "less" if best["mse"] < ours["mse"] else "no less"
    return [
        f"With another loss: {best['method']} ends at {mse(best['mse'])}, {against} than {ours['method']} with the "
        f"squared loss ({mse(ours['mse'])}) and {best['mse'] / clean_minimum:.2f} times the smallest possible "
        f"({mse(clean_minimum)})."
    ]


def sweep_summary(series: Sequence[Series], symbol: str) -> str:
    """The ends of each series."""
    parts = []
    for one in series:
        first, last = (mean(t.result.final_loss) for t in (one.trials[0], one.trials[-1]))
        parts.append(
            f"{method_label(*one.method)}: {mse(first)} at {symbol} = {one.values[0]:g}, {mse(last)} at "
            f"{one.values[-1]:g}"
        )
    return "Mean final loss. " + "; ".join(parts) + "."
