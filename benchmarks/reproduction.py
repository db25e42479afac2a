"""Where the time of `make reproduce` goes, read from its own records: sampling, theory, tracking, report."""

from __future__ import annotations

from benchmarks.figure import Figure
from benchmarks.processes import ROOT
from robust_sgld.tracking import Store

METHODS = 7


def shares() -> list[Figure]:
    """Of the newest complete Table 2 in the project's store; none before `make reproduce` has run."""
    database = ROOT / "mlruns" / "mlflow.db"
    if not database.exists():
        return []
    store = Store(f"sqlite:///{database}", "robust-sgld", ROOT / "mlruns" / "artifacts")
    trials = {t.params.get("eta2", "vanilla"): t for t in reversed(store.trials("tags.experiment = 'table2'"))}
    full = [t for t in trials.values() if (t.params["trial.runs"], t.params["trial.n_iter"]) == ("100", "25000")]
    reports = store.client.search_runs([store.experiment_id], "tags.kind = 'report'", max_results=1)
    if len(full) < METHODS or not reports or "report_seconds" not in reports[0].data.metrics:
        return []
    runs = [store.client.get_run(t.run_id).info for t in full]
    sampling = sum(t.metrics["wall_seconds"] for t in full)
    theory = sum(t.metrics.get("theory_seconds", 0.0) for t in full)
    tracking = sum((run.end_time - run.start_time) / 1000 for run in runs) - sampling - theory
    report = reports[0].data.metrics["report_seconds"]
    total = sampling + theory + tracking + report
    return [
        Figure("make reproduce: sampling and losses", sampling, "s", most=180),
        Figure("make reproduce: theory", theory, "s"),
        Figure("make reproduce: tracking", tracking, "s"),
        Figure("make reproduce: report", report, "s"),
        Figure("make reproduce: tracking and report, share of all", (tracking + report) / total, "", most=0.25),
    ]
