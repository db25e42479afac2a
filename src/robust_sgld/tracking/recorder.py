"""Writes one trial into a store: a parent run with curves and artifacts, and a nested run for each of its runs."""

from __future__ import annotations

import csv
import importlib.metadata
import io
import json
import logging
import math
import os
import platform
import tempfile
import time
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from robust_sgld.data import Dataset
from robust_sgld.problems import LinearIndexProblem, LogisticLoss
from robust_sgld.result import TrialResult, bands
from robust_sgld.samplers import LangevinSampler
from robust_sgld.tracking.store import CONFIG_FILE, TRIAL_FILE, Store, TrackingLost

if TYPE_CHECKING:
    from mlflow.entities import Metric, Run

log = logging.getLogger(__name__)

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
    """A context: RUNNING inside, then FINISHED; FAILED or KILLED, with the reason as a tag, if an error ends it.

    `key` names the trial across attempts: a run that carries it is taken up again where an earlier attempt left it, so
    that a trial which was killed at any moment ends as one run with each thing in it once. Everything here can be said
    twice to the store without being there twice.
    """

    def __init__(self, store: Store, record: TrialRecord, data: Dataset, key: str | None = None):
        self.store, self.record, self.data = store, record, data
        self.key = key or uuid.uuid4().hex
        self.run_id = ""

    def __enter__(self) -> Self:
        try:
            with self.store.answering():
                self._begin()
        except BaseException as error:
            if self.run_id:
                self._end_early(error)
            raise
        return self

    def _begin(self) -> None:
        record, client = self.record, self.store.client
        tags = {
            "mlflow.runName": record.name,
            "kind": "trial",
            "trial_key": self.key,
            "data_digest": self.data.digest,
            **record.tags,
            **host_facts(),
        }
        if record.color:
            tags["mlflow.runColor"] = record.color
        runs = self.store.runs(f"tags.trial_key = '{self.key}'")
        if not runs:
            client.create_run(self.store.experiment_id, tags=tags)
            # a request that was sent again, because its answer was lost, has made two
            runs = self.store.runs(f"tags.trial_key = '{self.key}'")
        run, *doubles = runs
        self.run_id = run.info.run_id
        for double in doubles:
            client.delete_run(double.info.run_id)
        if run.info.status != "RUNNING":
            client.update_run(self.run_id, status="RUNNING")
        if "failure" in run.data.tags:
            client.delete_tag(self.run_id, "failure")
        self._log_params(run, tags)
        if not run.inputs.dataset_inputs:
            self._log_dataset()
        client.log_text(self.run_id, record.config_text, CONFIG_FILE)
        client.log_text(self.run_id, packages(), "environment.txt")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is None:
            with self.store.answering():
                self.store.client.set_terminated(self.run_id, "FINISHED")
        elif not isinstance(error, TrackingLost):  # then the trial is well, and a later attempt ends the run
            self._end_early(error)

    def _end_early(self, error: BaseException) -> None:
        interrupted = isinstance(error, KeyboardInterrupt | SystemExit)
        reason = "interrupted" if interrupted else f"{type(error).__name__}: {error}"
        try:
            with self.store.answering():
                self.store.client.set_tag(self.run_id, "failure", reason[:5000])
                self.store.client.set_terminated(self.run_id, "KILLED" if interrupted else "FAILED")
        except TrackingLost as lost:  # the error itself matters more, and the next attempt puts the state right
            log.warning("%s", lost)

    def log(
        self,
        result: TrialResult,
        sampler: LangevinSampler,
        numbers: Mapping[str, float] | None = None,
        figures: Mapping[str, Any] | None = None,
        at: int | None = None,
    ) -> None:
        """Everything that a finished trial has, further headline numbers, and figures (matplotlib's) by file name.

        `at` is the time stamp of all metrics, in milliseconds: the same one in every attempt.
        """
        with self.store.answering():
            self._log(result, sampler, {**result.headline(), **(numbers or {})}, figures or {}, at or _now())

    def _log(
        self,
        result: TrialResult,
        sampler: LangevinSampler,
        numbers: Mapping[str, float],
        figures: Mapping[str, Any],
        at: int,
    ) -> None:
        client = self.store.client
        client.set_tag(self.run_id, "engine", result.engine)
        self._log_metrics(self.run_id, _metrics(numbers, at) + list(_curves(result, at)))
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            result.save(folder / TRIAL_FILE)
            (folder / "runs.csv").write_text(runs_table(result))
            for file, figure in figures.items():
                (folder / file).parent.mkdir(parents=True, exist_ok=True)
                figure.savefig(folder / file, dpi=150)
            client.log_artifacts(self.run_id, name)
        if self.record.children != "none":
            self._log_children(result, at)
        if isinstance(sampler.problem, LinearIndexProblem):
            self._log_model(result, sampler.problem)

    def _log_metrics(self, run_id: str, metrics: list[Metric]) -> None:
        for start in range(0, len(metrics), BATCH):
            self.store.client.log_batch(run_id, metrics=metrics[start : start + BATCH])

    def _log_params(self, run: Run, tags: Mapping[str, str]) -> None:
        """What the run does not have yet; a parameter cannot be changed once it is there."""
        from mlflow.entities import Param, RunTag

        params = [Param(key, str(value)) for key, value in self.record.params.items() if key not in run.data.params]
        changed = [RunTag(key, value) for key, value in tags.items() if run.data.tags.get(key) != value]
        if params or changed:
            self.store.client.log_batch(self.run_id, params=params, tags=changed)

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
        from mlflow import pyfunc
        from mlflow.entities import LoggedModelOutput
        from mlflow.models import Model, infer_signature
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
        # step by step, because `pyfunc.log_model` begins a new model each time, and links it before it is whole
        client = self.store.client
        linked = {output.model_id for output in client.get_run(self.run_id).outputs.model_outputs}
        found = client.search_logged_models([self.store.experiment_id], f"source_run_id = '{self.run_id}'")
        found = sorted(found, key=lambda known: known.model_id not in linked)
        for double in found[1:]:
            client.delete_logged_model(double.model_id)
        logged = (
            found[0]
            if found
            else client.create_logged_model(self.store.experiment_id, "model", self.run_id, model_type="pyfunc")
        )
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            (folder / "estimate.json").write_text(json.dumps(model))
            pyfunc.save_model(
                folder / "model",
                python_model=str(Path(__file__).with_name("fitted_model.py")),
                artifacts={"estimate": str(folder / "estimate.json")},
                signature=infer_signature(example, np.zeros(3)),
                input_example=example,
                pip_requirements=[f"{p}=={importlib.metadata.version(p)}" for p in ("mlflow", "numpy", "pandas")],
                mlflow_model=Model(run_id=self.run_id, model_uuid=logged.model_id, model_id=logged.model_id),
            )
            client.log_model_artifacts(logged.model_id, str(folder / "model"))
        if logged.status != "READY":
            client.finalize_logged_model(logged.model_id, "READY")
        if logged.model_id not in linked:
            client.log_outputs(self.run_id, [LoggedModelOutput(logged.model_id, step=0)])

    def _log_children(self, result: TrialResult, at: int) -> None:
        """A nested run for each run, once, whatever an earlier attempt has left."""
        client = self.store.client
        children = self._children()
        for row, number in enumerate(result.runs):
            if str(number) not in children:
                tags = {
                    "mlflow.parentRunId": self.run_id,
                    "mlflow.runName": f"run {number}",
                    "kind": "run",
                    "run": str(number),
                }
                children[str(number)] = [client.create_run(self.store.experiment_id, tags=tags)]
            child = children[str(number)][0].info
            if child.status != "RUNNING":
                continue
            self._log_metrics(child.run_id, self._child_metrics(result, row, at))
            client.set_terminated(child.run_id, "FINISHED" if result.diverged_at[row] == 0 else "FAILED")
        for same in self._children().values():
            for double in same[1:]:
                client.delete_run(double.info.run_id)

    def _children(self) -> dict[str, list[Run]]:
        """The nested runs that the store has, by run number, finished ones first."""
        found: dict[str, list[Run]] = {}
        runs = self.store.runs(f"tags.mlflow.parentRunId = '{self.run_id}' and tags.kind = 'run'")
        for run in sorted(runs, key=lambda run: run.info.status == "RUNNING"):
            found.setdefault(run.data.tags["run"], []).append(run)
        return found

    def _child_metrics(self, result: TrialResult, row: int, at: int) -> list[Metric]:
        from mlflow.entities import Metric

        values = {key: float(getattr(result, key)[row]) for key in PER_RUN}
        if not result.reached[row]:
            del values["n_es"]
        metrics = _metrics(values, at)
        if self.record.children == "curves":
            metrics += [
                Metric("test_mse", float(loss), at, int(n))
                for n, loss in zip(result.axis, result.losses[row], strict=True)
                if math.isfinite(loss)
            ]
        return metrics


def _now() -> int:
    return int(time.time() * 1000)


def _metrics(values: Mapping[str, float], at: int) -> list[Metric]:
    from mlflow.entities import Metric

    return [Metric(key, float(value), at, 0) for key, value in values.items() if math.isfinite(value)]


def _curves(result: TrialResult, at: int) -> Iterator[Metric]:
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
                    yield Metric(f"{name}/{statistic}", float(value), at, int(n))


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
