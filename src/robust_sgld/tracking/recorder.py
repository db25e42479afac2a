"""Writes one trial into a store: a parent run with curves and artifacts, and a nested run for each of its runs."""

from __future__ import annotations

import csv
import importlib.metadata
import io
import json
import math
import os
import platform
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from robust_sgld.data import Dataset
from robust_sgld.problems import LinearIndexProblem, LogisticLoss
from robust_sgld.samplers import LangevinSampler
from robust_sgld.tracking.store import CONFIG_FILE, TRIAL_FILE, Store
from robust_sgld.trial import TrialResult, bands

if TYPE_CHECKING:
    from mlflow.entities import Metric

PER_RUN = ("n_es", "loss_at_n_es", "closest_loss", "smallest_loss", "final_loss", "inside_after_hit", "seconds")
BATCH = 1000
"""Metrics that the store takes in one call."""


@dataclass(frozen=True)
class TrialRecord:
    """What is known of a trial before it runs."""

    name: str
    params: Mapping[str, Any]
    tags: Mapping[str, str]
    config_text: str
    children: str = "headline"
    """headline, curves or none"""
    color: str | None = None


class TrialRecorder:
    """A context: RUNNING inside, then FINISHED; FAILED or KILLED, with the reason as a tag, if an error ends it."""

    def __init__(self, store: Store, record: TrialRecord, data: Dataset):
        self.store, self.record, self.data = store, record, data
        self.run_id = ""

    def __enter__(self) -> Self:
        from mlflow.exceptions import MlflowException
        from sqlalchemy.exc import SQLAlchemyError

        record, client = self.record, self.store.client
        tags = {
            "mlflow.runName": record.name,
            "kind": "trial",
            "data_digest": self.data.digest,
            **record.tags,
            **host_facts(),
        }
        if record.color:
            tags["mlflow.runColor"] = record.color
        try:
            self.run_id = client.create_run(self.store.experiment_id, tags=tags).info.run_id
            self._log_params()
            self._log_dataset()
            client.log_text(self.run_id, record.config_text, CONFIG_FILE)
            client.log_text(self.run_id, packages(), "environment.txt")
        except BaseException as error:
            if self.run_id:
                self.__exit__(type(error), error, None)
            if isinstance(error, MlflowException | SQLAlchemyError | OSError):
                raise self.store.unusable(error) from None
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is None:
            self.store.client.set_terminated(self.run_id, "FINISHED")
            return
        interrupted = isinstance(error, KeyboardInterrupt | SystemExit)
        reason = "interrupted" if interrupted else f"{type(error).__name__}: {error}"
        self.store.client.set_tag(self.run_id, "failure", reason[:5000])
        self.store.client.set_terminated(self.run_id, "KILLED" if interrupted else "FAILED")

    def log(
        self,
        result: TrialResult,
        sampler: LangevinSampler,
        numbers: Mapping[str, float] | None = None,
        figures: Mapping[str, Any] | None = None,
    ) -> None:
        """Everything that a finished trial has, further headline numbers, and figures (matplotlib's) by file name."""
        client = self.store.client
        client.set_tag(self.run_id, "engine", result.engine)
        now = int(time.time() * 1000)
        metrics = _metrics({**result.headline(), **(numbers or {})}, now) + list(_curves(result, now))
        for start in range(0, len(metrics), BATCH):
            client.log_batch(self.run_id, metrics=metrics[start : start + BATCH])
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            result.save(folder / TRIAL_FILE)
            (folder / "runs.csv").write_text(runs_table(result))
            for file, figure in (figures or {}).items():
                (folder / file).parent.mkdir(parents=True, exist_ok=True)
                figure.savefig(folder / file, dpi=150)
            client.log_artifacts(self.run_id, name)
        if self.record.children != "none":
            self._log_children(result)
        if isinstance(sampler.problem, LinearIndexProblem):
            self._log_model(result, sampler.problem)  # last, because MLflow ends the run with it

    def _log_params(self) -> None:
        from mlflow.entities import Param

        params = [Param(key, str(value)) for key, value in self.record.params.items()]
        self.store.client.log_batch(self.run_id, params=params)

    def _log_dataset(self) -> None:
        from mlflow.data.numpy_dataset import from_numpy
        from mlflow.entities import DatasetInput, InputTag

        inputs = []
        for context, rows in (("train", self.data.train), ("test", self.data.test)):
            named = from_numpy(rows[:, :-1], targets=rows[:, -1], name=self.data.name, digest=self.data.digest[:36])
            entity = named._to_mlflow_entity()
            inputs.append(DatasetInput(entity, [InputTag("mlflow.data.context", context)]))
        self.store.client.log_inputs(self.run_id, inputs)

    def _log_model(self, result: TrialResult, problem: LinearIndexProblem) -> None:
        """The average of the runs' final θ as a model that `mlflow models predict` and `load_model` can use.

        Where the data have a scaling it takes the file's columns and predicts in the target's units; for labels it
        predicts the probability of the larger one.
        """
        import mlflow
        from mlflow.models import infer_signature
        from pandas import DataFrame

        final = result.theta[:, -1]
        final = final[np.isfinite(final).all(axis=1)]
        if not len(final):
            return
        theta, rows, target = final.mean(axis=0), self.data.test[:3], (1.0, 0.0)
        if (scaling := self.data.scaling) is not None:
            theta, rows = np.append(*scaling.index(theta)), scaling.undo(rows)
            target = (1.0, 0.0) if isinstance(problem, LogisticLoss) else (scaling.scale[-1], scaling.centre[-1])
        columns = list(self.data.columns[:-1])
        example = DataFrame(rows[:, :-1], columns=columns)
        model = {"columns": columns, "theta": theta.tolist(), "link": problem.link.name, "target": target}
        with tempfile.TemporaryDirectory() as folder, _active_run(self.store, self.run_id):
            estimate = Path(folder) / "estimate.json"
            estimate.write_text(json.dumps(model))
            mlflow.pyfunc.log_model(
                name="model",
                python_model=str(Path(__file__).with_name("fitted_model.py")),
                artifacts={"estimate": str(estimate)},
                signature=infer_signature(example, np.zeros(3)),
                input_example=example,
                pip_requirements=[f"{p}=={importlib.metadata.version(p)}" for p in ("mlflow", "numpy", "pandas")],
            )

    def _log_children(self, result: TrialResult) -> None:
        client = self.store.client
        for row, number in enumerate(result.runs):
            tags = {
                "mlflow.parentRunId": self.run_id,
                "mlflow.runName": f"run {number}",
                "kind": "run",
                "run": str(number),
            }
            child = client.create_run(self.store.experiment_id, tags=tags).info.run_id
            ended = "KILLED"
            try:
                metrics = self._child_metrics(result, row)
                for start in range(0, len(metrics), BATCH):
                    client.log_batch(child, metrics=metrics[start : start + BATCH])
                ended = "FINISHED" if result.diverged_at[row] == 0 else "FAILED"
            finally:
                client.set_terminated(child, ended)

    def _child_metrics(self, result: TrialResult, row: int) -> list[Metric]:
        from mlflow.entities import Metric

        now = int(time.time() * 1000)
        values = {key: float(getattr(result, key)[row]) for key in PER_RUN}
        if not result.reached[row]:
            del values["n_es"]
        metrics = _metrics(values, now)
        if self.record.children == "curves":
            metrics += [
                Metric("test_mse", float(loss), now, int(n))
                for n, loss in zip(result.axis, result.losses[row], strict=True)
                if math.isfinite(loss)
            ]
        return metrics


@contextmanager
def _active_run(store: Store, run_id: str) -> Iterator[None]:
    """MLflow's model logging wants a process-wide current run; it is put back afterwards."""
    import mlflow

    before = mlflow.get_tracking_uri()
    mlflow.set_tracking_uri(store.uri)
    try:
        with mlflow.start_run(run_id=run_id, log_system_metrics=False):
            yield
    finally:
        mlflow.set_tracking_uri(before)


def _metrics(values: Mapping[str, float], now: int) -> list[Metric]:
    from mlflow.entities import Metric

    return [Metric(key, float(value), now, 0) for key, value in values.items() if math.isfinite(value)]


def _curves(result: TrialResult, now: int) -> Iterator[Metric]:
    """Step = update, so that the curves of several trials overlay; v_… are the dual's, listed after the loss."""
    from mlflow.entities import Metric

    at_objective = np.isin(result.axis, result.objective_axis)
    curves = {"test_mse": (result.axis, result.losses)}
    if result.iota_alpha.size:
        curves["v_objective"] = (result.objective_axis, result.objective)
        curves["v_iota"] = (result.objective_axis, result.iota_alpha[:, at_objective])
    for name, (axis, paths) in curves.items():
        for statistic, values in bands(paths).items():
            for n, value in zip(axis, values, strict=True):
                if math.isfinite(value):
                    yield Metric(f"{name}/{statistic}", float(value), now, int(n))


def runs_table(result: TrialResult) -> str:
    """One line a run, as CSV; an empty field where there is nothing."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(["run", *PER_RUN, "diverged_at"])
    for row, number in enumerate(result.runs):
        values = [getattr(result, key)[row] for key in (*PER_RUN, "diverged_at")]
        writer.writerow([number, *("" if not math.isfinite(v) else v for v in values)])
    return text.getvalue()


def packages() -> str:
    """name==version of every installed package."""
    installed = {(d.metadata["Name"] or "").lower(): d.version for d in importlib.metadata.distributions()}
    return "".join(f"{name}=={version}\n" for name, version in sorted(installed.items()) if name)


def host_facts() -> dict[str, str]:
    """What a reader of a timing wants to know of the machine."""
    return {
        "host.python": platform.python_version(),
        "host.system": f"{platform.system()} {platform.machine()}",
        "host.cores": str(os.cpu_count()),
    }
