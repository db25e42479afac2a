"""The contents of a report: which tables and figures there are, in which order, and the words around them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from matplotlib.figure import Figure

from robust_sgld.checks import InvalidInput
from robust_sgld.data import Dataset
from robust_sgld.report import (
    baselines,
    fidelity,
    figures,
    published,
    real_data,
    table2,
    theory_page,
    theory_words,
    words,
)
from robust_sgld.report.displacement import displacements
from robust_sgld.report.formats import Column, Table, seconds, whole
from robust_sgld.report.trials import ReportTrial, departures, main_trials, other_losses, sweep

REAL_DATA = tuple(f"real_{experiment}" for experiment in real_data.SCORES)
FIGURES = (
    "figure1",
    "figure2",
    "theta",
    "hitting_times",
    "eta2",
    "adversary",
    "worst_case",
    "comparison",
    "corruption",
    "smoothing",
    "grid",
    *REAL_DATA,
)
TABLES = (
    "table2",
    "spread",
    "excess_risk",
    "quadrature",
    "worst_case",
    "baselines",
    "conventions",
    "figure1_levels",
    "trials",
    *REAL_DATA,
)
"""every name that a report may use for a file"""


@dataclass(frozen=True)
class Drawing:
    """A figure before it is written."""

    name: str
    draw: Callable[[], Figure]
    title: str
    caption: str


@dataclass(frozen=True)
class Part:
    """A section before it is a page."""

    id: str
    heading: str
    text: Sequence[str] = field(default=())
    tables: Sequence[Table] = field(default=())
    drawings: Sequence[Drawing] = field(default=())
    facts: Sequence[tuple[str, str]] = field(default=())


@dataclass(frozen=True)
class Contents:
    """A report in full, but for its files."""

    warning: str
    summary: list[str]
    parts: list[Part]


def contents(trials: Sequence[ReportTrial], data: Dataset) -> Contents:
    """What a report on these trials (newest first) holds; parts without trials are left out."""
    main = main_trials(trials, data.digest)
    if not main:
        raise InvalidInput(f"There is no trial on the data set {data.name!r} (digest {data.digest[:12]}) to report on.")
    printed = {(row.sampler, row.eta2) for row in published.TABLE2}
    shown = [trial for trial in main if trial.method in printed] or main
    comparison = table2.comparison(shown)
    parts = [_table2(comparison, shown), _paths(shown), _beyond(main, shown)]
    summary = [words.verdicts(comparison.records), *words.luck(comparison.records), *words.not_the_optimum(shown)]
    summary += words.turning_point(main)
    if any(trial.has_dual for trial in shown) and (moved := displacements(shown, data)):
        drawing = Drawing(
            "adversary",
            lambda: figures.adversary(moved),
            "Where the adversary moves the data",
            "Dots: atoms of the floored training data, area by weight. Arrows: to the mean of the grid under the "
            "softmax weights F_j at the last state of the run with the median final loss. The plane is that of the "
            "index and y, on which alone the loss depends. The larger η₂ is, the smaller is the price ι(α) of "
            "moving.",
        )
        parts.append(Part("adversary", "The adversary", [words.moved(moved)], drawings=[drawing]))
    if theories := theory_page.theories(shown, data):
        parts.append(_theory(theories, data))
        summary += theory_words.guarantee(theories)
    if all(trial.is_sigmoid for trial in main):
        rows = baselines.records(data, baselines.baselines(data), main, other_losses(trials, main))
        said = words.cheaper(rows) + words.another_loss(rows, main[0].result.clean_minimum)
        parts.append(_alternatives(data, rows, said, main))
        summary += [*said[:1], words.PURPOSE]
    parts += _sweeps(trials)
    parts += [_fidelity(shown, data), Part("trials", "Trials", tables=[_trials(trials, main)])]
    return Contents(warning(shown), summary, parts)


def warning(shown: Sequence[ReportTrial]) -> str:
    """What a reader must know first where trials are not the paper's protocol; empty if all are."""
    away = {trial.label: departures(trial) for trial in shown}
    if not any(away.values()):
        return ""
    if len({tuple(found) for found in away.values()}) == 1:
        return (
            f"Not the paper's protocol: {'; '.join(departures(shown[0]))}. What follows shows that everything works, "
            "not what the paper's experiment gives."
        )
    listed = "; ".join(f"{label} ({', '.join(found)})" for label, found in away.items() if found)
    return f"Not the paper's protocol in these rows, which are not judged: {listed}."


def _table2(comparison: Table, shown: Sequence[ReportTrial]) -> Part:
    drawing = Drawing(
        "hitting_times",
        lambda: figures.hitting_times(shown),
        "Distribution of the hitting times",
        "Share of the runs that have been inside the 1 % band by update n. A curve that ends below 1 has runs that "
        "missed, which the table prints as NA. Triangles: the paper's n_es, the largest of its 100 runs.",
    )
    return Part("table2", "Table 2", tables=[comparison, table2.hidden(shown)], drawings=[drawing])


def _paths(shown: Sequence[ReportTrial]) -> Part:
    drawings = []
    if any(trial.result.objective.shape[1] for trial in shown):
        drawings.append(
            Drawing(
                "figure1",
                lambda: figures.figure1(shown),
                "Figure 1",
                "Path of E[v] over the floored training data μ₀,ℓ,j as defined: mean over the runs, 5–95 % shaded. "
                "Left: the whole path, dots where the objective was evaluated. Right: after the first fall.",
            )
        )
    drawings.append(
        Drawing(
            "figure2",
            lambda: figures.figure2(shown),
            "Figure 2",
            "Mean squared loss on the clean test rows: mean over the runs, 5–95 % shaded. Above: every method of "
            "the table. Below: the largest η₂ of the table against vanilla SGLD.",
        )
    )
    return Part("figures", "Figures 1 and 2", drawings=drawings)


def _beyond(main: Sequence[ReportTrial], shown: Sequence[ReportTrial]) -> Part:
    drawings = [
        Drawing(
            "theta",
            lambda: figures.theta_paths(shown),
            "Components of θ",
            "Median over the runs, 5–95 % shaded. Solid line: θ*. Dotted line: the minimiser of the clean risk, "
            "which is not θ* where the noise of y does not have mean 0.",
        )
    ]
    if sum(trial.has_dual for trial in main) > 1:
        few = [f"{trial.eta2:g} ({trial.runs})" for trial in main if trial.has_dual and trial.runs < published.RUNS]
        small = f" Fewer than {published.RUNS} runs at η₂ = {', '.join(few)}." if few else ""
        drawings.append(
            Drawing(
                "eta2",
                lambda: figures.final_mse_against_eta2(main),
                "Loss against η₂",
                "Mean over the runs, bars from 5 to 95 %: the loss after the last update and the smallest loss of "
                "each run." + small,
            )
        )
    return Part("beyond", "Beyond the paper", words.turning_point(main), drawings=drawings)


def _theory(theories: Sequence[theory_page.TrialTheory], data: Dataset) -> Part:
    tables, drawings = [theory_page.excess_table(theories)], []
    if any(one.values_by_mesh for one in theories):
        tables.append(theory_page.quadrature_table(theories))
    if pictures := theory_page.pictures(theories):
        tables.append(theory_page.worst_case_table(theories))
        drawings.append(
            Drawing(
                "worst_case",
                lambda: figures.worst_case(pictures),
                "The data before and after the adversary",
                "The worst case at the last state of the run with the median final loss. Outlines: the training data "
                "on the grid; fillings: where the adversary has moved them. An empty outline is mass that has left, a "
                "filling without outline is where it went. Left: the mass of y. Above: that of each feature. Below it: "
                "that of both together, by area.",
            )
        )
    return Part("theory", "Theory", theory_words.sentences(theories, data), tables, drawings)


def _alternatives(data: Dataset, rows: list[dict[str, object]], said: list[str], main: Sequence[ReportTrial]) -> Part:
    drawing = Drawing(
        "comparison",
        lambda: figures.comparison(rows, main[0].result.clean_minimum),
        "Samplers and alternatives",
        "Test loss and seconds, best first. Circles: samplers, mean over the runs at the last update; squares: with "
        "another loss. Diamonds: robust regression; the open one is told which rows are outliers.",
    )
    text = [" ".join(said), words.PURPOSE]
    return Part("alternatives", "What else a user could have picked", text, [baselines.table(data, rows)], [drawing])


def _sweeps(trials: Sequence[ReportTrial]) -> list[Part]:
    parts = []
    for key, name, heading, symbol, draw, caption in (
        (
            "data.q", "corruption", "Contamination", "q", figures.corruption,
            "Loss after the last update (mean, bars from 5 to 95 %) and share of runs that reached the band, "
            "against the rate at which training rows are replaced.",
        ),
        (
            "dro.delta", "smoothing", "Smoothing", "δ", figures.smoothing,
            "Loss after the last update (mean, bars from 5 to 95 %) and share of runs that reached the band, "
            "against Nesterov's smoothing parameter δ.",
        ),
        (
            "dro.j", "grid", "Grid", "j", figures.grid_cost,
            "Loss after the last update and seconds a run on one core (mean, bars from 5 to 95 %), against j: the "
            "mesh is 2^-j.",
        ),
    ):  # fmt: skip
        series = sweep(trials, key)
        if series:
            counts = sorted({trial.runs for one in series for trial in one.trials})
            size = " to ".join(str(n) for n in dict.fromkeys([counts[0], counts[-1]]))
            drawing = Drawing(name, lambda d=draw, s=series: d(s), heading, f"{caption} {size} runs a point.")  # type: ignore[misc]
            parts.append(Part(name, heading, [words.sweep_summary(series, symbol)], drawings=[drawing]))
    return parts


def real_data_part(experiment: str, trials: Sequence[ReportTrial], data: Mapping[str, Dataset]) -> Part | None:
    """The section on a real data set, of trials newest first and their data by digest; None without complete splits."""
    rows = real_data.records(experiment, trials, data)
    if not rows or not rows[0]["splits"]:
        return None
    heading = f"Real data: {experiment.replace('_', ' ')}"
    drawing = Drawing(
        f"real_{experiment}",
        lambda: figures.splits(rows, [score.label for score in real_data.SCORES[experiment]]),
        heading,
        f"Small dots: the {rows[0]['splits']} splits. Large dots: their mean, with a 95 % interval that allows for the "
        "rows which the splits share. Best first. The open dot is told which rows are outliers.",
    )
    said = real_data.words(experiment, rows)
    return Part(f"real_{experiment}", heading, said, [real_data.table(experiment, rows, trials)], [drawing])


def _fidelity(shown: Sequence[ReportTrial], data: Dataset) -> Part:
    tables = [fidelity.conventions()]
    comparable = [trial for trial in shown if not departures(trial)]
    if any(trial.has_dual for trial in comparable):
        tables.append(fidelity.figure1_levels(comparable, data))
    return Part("fidelity", "Fidelity", tables=tables, facts=fidelity.facts(shown, data))


def _trials(trials: Sequence[ReportTrial], main: Sequence[ReportTrial]) -> Table:
    chosen = {trial.run_id for trial in main}
    records = [
        {
            "run_name": trial.run_name,
            "run_id": trial.run_id,
            "experiment": trial.experiment,
            "runs": trial.runs,
            "n_iter": trial.result.n_iter,
            "seed": trial.result.seed,
            "engine": trial.result.engine,
            "workers": trial.result.workers,
            "wall_seconds": trial.result.wall_seconds,
            "data_digest": trial.data_digest,
            "in_main_figures": trial.run_id in chosen,
        }
        for trial in trials
    ]
    columns = [
        Column("trial", lambda r: r["run_name"], numeric=False),
        Column("MLflow run", lambda r: r["run_id"], numeric=False),
        Column("experiment", lambda r: r["experiment"] or "–", numeric=False),
        Column("runs", lambda r: whole(r["runs"]), lambda r: r["runs"]),
        Column("updates", lambda r: whole(r["n_iter"]), lambda r: r["n_iter"]),
        Column("seed", lambda r: str(r["seed"]), lambda r: r["seed"]),
        Column("engine", lambda r: r["engine"], numeric=False),
        Column("workers", lambda r: str(r["workers"]), lambda r: r["workers"]),
        Column("wall seconds", lambda r: seconds(r["wall_seconds"]), lambda r: r["wall_seconds"]),
        Column("data digest", lambda r: r["data_digest"][:12], numeric=False),
        Column("in the main tables", lambda r: "yes" if r["in_main_figures"] else "no", numeric=False),
    ]
    note = "Of several trials of a method, the one closest to the paper's protocol is taken, and of those the newest."
    return Table("trials", "The trials behind this report", columns, records, [note])
