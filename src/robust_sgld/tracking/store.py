"""A tracking store: an SQLite file beside its artifacts, or a server; opened safely by many processes at once."""

from __future__ import annotations

import re
import sqlite3
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filelock import FileLock

from robust_sgld.checks import InvalidInput
from robust_sgld.files import TEMPORARY
from robust_sgld.result import TrialResult

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Run

TRIAL_FILE = "trial.npz"
CONFIG_FILE = "config.yaml"


class TrackingLost(Exception):
    """The store that a trial is recorded in does not take what it is given: a server gone, a disk full."""


def without_password(uri: str) -> str:
    """A URI that can be shown: the password of user:password@host is left out."""
    return re.sub(r"(://[^/:@\s]*):[^@/\s]*@", r"\1:***@", uri)


@dataclass(frozen=True)
class RecordedTrial:
    """A trial as MLflow knows it; `result()` reads its numbers."""

    run_id: str
    name: str
    status: str
    params: dict[str, str]
    metrics: dict[str, float]
    tags: dict[str, str]
    start_time: int
    store: Store

    def result(self) -> TrialResult:
        """The stored paths and per-run numbers."""
        with self.artifact(TRIAL_FILE) as path:
            try:
                return TrialResult.load(path)
            except InvalidInput:
                raise InvalidInput(
                    f"run {self.run_id} ({self.name}): its {TRIAL_FILE} is damaged; delete the run."
                ) from None

    def config_text(self) -> str:
        """The resolved config that made it."""
        with self.artifact(CONFIG_FILE) as path:
            return path.read_text()

    @contextmanager
    def artifact(self, name: str) -> Iterator[Path]:
        """A local copy of one artifact."""
        from mlflow.exceptions import MlflowException

        with tempfile.TemporaryDirectory() as folder:
            try:
                local = self.store.client.download_artifacts(self.run_id, name, folder)
            except (MlflowException, OSError) as error:
                raise InvalidInput(
                    f"run {self.run_id} ({self.name}) has no readable artifact {name}: {error}"
                ) from None
            yield Path(local)


class Store:
    """One MLflow tracking store and one experiment in it."""

    def __init__(self, uri: str, experiment: str, artifacts: Path | None = None):
        self.uri, self.experiment, self.artifacts = uri, experiment, artifacts
        self.client, self.experiment_id = self._open()

    def _open(self) -> tuple[MlflowClient, str]:
        from mlflow import MlflowClient
        from mlflow.exceptions import MlflowException
        from sqlalchemy.exc import SQLAlchemyError

        try:
            if not self.uri.startswith("sqlite:///"):
                client = MlflowClient(self.uri)
                return client, self._find_experiment(client)
            database = Path(self.uri.removeprefix("sqlite:///"))
            if database.is_dir():
                raise InvalidInput(f"tracking.uri {self.uri} is a folder, not a database.")
            database.parent.mkdir(parents=True, exist_ok=True)
            _commit_without_waiting()
            # two processes that create the same database at once break it for good
            with FileLock(f"{database}.lock"):
                if database.exists():
                    _check_database(database)
                else:
                    _make_database(database)
                client = MlflowClient(self.uri)
                experiment_id = self._find_experiment(client)
                _write_ahead(database)
                return client, experiment_id
        except InvalidInput:
            raise
        except (MlflowException, SQLAlchemyError, sqlite3.DatabaseError, OSError, ImportError) as error:
            raise self.unusable(error) from None

    def unusable(self, error: Exception) -> InvalidInput:
        """What to say when the store does not take what it should."""
        return InvalidInput(f"tracking.uri {without_password(self.uri)} cannot be used: {_reason(error)}")

    @contextmanager
    def answering(self) -> Iterator[None]:
        """Turns the many ways in which a store can fail into `TrackingLost`."""
        from mlflow.exceptions import MlflowException
        from sqlalchemy.exc import SQLAlchemyError

        try:
            yield
        except (MlflowException, SQLAlchemyError, OSError) as error:
            raise TrackingLost(str(self.unusable(error))) from None

    def _find_experiment(self, client: MlflowClient) -> str:
        from mlflow.exceptions import MlflowException

        found = client.get_experiment_by_name(self.experiment)
        if found is not None:
            if found.lifecycle_stage != "active":
                raise InvalidInput(
                    f"tracking.experiment {self.experiment!r} is deleted in MLflow; restore it or use another name."
                )
            return found.experiment_id
        location = None if self.artifacts is None else (self.artifacts / self.experiment).as_uri()
        try:
            return client.create_experiment(self.experiment, artifact_location=location)
        except MlflowException:
            found = client.get_experiment_by_name(self.experiment)  # another process may have made it meanwhile
            if found is None:
                raise
            return found.experiment_id

    def trials(self, filter_string: str = "", *, finished: bool = True) -> list[RecordedTrial]:
        """Trials (not their runs, not reports), newest first."""
        wanted = ["tags.kind = 'trial'", *(["attributes.status = 'FINISHED'"] if finished else [])]
        wanted += [filter_string] if filter_string else []
        return [self._recorded(run) for run in self.runs(" and ".join(wanted), newest_first=True)]

    def runs(self, filter_string: str, *, newest_first: bool = False) -> list[Run]:
        """All runs of the experiment that a filter of MLflow's finds."""
        found: list[Run] = []
        token: str | None = None
        order = f"attributes.start_time {'DESC' if newest_first else 'ASC'}"
        while True:
            page = self.client.search_runs([self.experiment_id], filter_string, order_by=[order], page_token=token)
            found += page
            token = page.token
            if not token:
                return found

    def complete(self, config_hash: str, data_digest: str) -> RecordedTrial | None:
        """The newest finished trial of this config on these data, if there is one."""
        same = self.trials(f"tags.config_hash = '{config_hash}' and tags.data_digest = '{data_digest}'")
        return same[0] if same else None

    def trial(self, run_id: str) -> RecordedTrial:
        """The trial of that MLflow run id."""
        from mlflow.exceptions import MlflowException

        try:
            run = self.client.get_run(run_id)
        except MlflowException:
            raise InvalidInput(f"there is no run {run_id!r} in {without_password(self.uri)}.") from None
        if run.data.tags.get("kind") != "trial":
            raise InvalidInput(f"run {run_id} is not a trial; its parent may be one.")
        return self._recorded(run)

    def log_folder(self, name: str, kind: str, folder: Path, tags: Mapping[str, str]) -> str:
        """A folder of files as a run of its own (a report, say); returns its run id."""
        run = self.client.create_run(self.experiment_id, tags={"mlflow.runName": name, "kind": kind, **tags})
        try:
            self.client.log_artifacts(run.info.run_id, str(folder))
        except BaseException:
            self.client.set_terminated(run.info.run_id, "FAILED")
            raise
        self.client.set_terminated(run.info.run_id, "FINISHED")
        return str(run.info.run_id)

    def _recorded(self, run: Run) -> RecordedTrial:
        info: Any = run.info
        return RecordedTrial(
            run_id=info.run_id,
            name=info.run_name,
            status=info.status,
            params=dict(run.data.params),
            metrics=dict(run.data.metrics),
            tags=dict(run.data.tags),
            start_time=info.start_time,
            store=self,
        )


def _write_ahead(database: Path) -> None:
    """Gives the database a write-ahead log, for good; a database that others are using keeps what it has.

    Without one every commit, and a trial has some 300, waits for the disk several times, and a reader such as the UI
    holds up a sweep. A crash or a power cut leaves a whole database either way.
    """
    with closing(sqlite3.connect(database)) as connection, suppress(sqlite3.OperationalError):
        connection.execute("PRAGMA journal_mode = WAL")


@cache
def _commit_without_waiting() -> None:
    """From now on a commit to a write-ahead log does not wait for the disk: only moving the log into the database does.

    SQLite keeps this for each connection, and MLflow makes the connections.
    """
    from sqlalchemy import Engine, event

    @event.listens_for(Engine, "connect")
    def connected(connection: Any, _: Any) -> None:
        if isinstance(connection, sqlite3.Connection):
            connection.execute("PRAGMA synchronous = NORMAL")


def _check_database(database: Path) -> None:
    """Raises where the file is no database, which MLflow would find out only after a minute of trying."""
    with closing(sqlite3.connect(database)) as connection, suppress(sqlite3.OperationalError):
        connection.execute("PRAGMA schema_version").fetchone()


def _make_database(database: Path) -> None:
    """An empty store. Made under another name: a half-made one, of a killed process, is of no use to anyone."""
    from mlflow import MlflowClient

    unfinished = database.with_name(f"{TEMPORARY}{database.name}")
    for left in database.parent.glob(f"{unfinished.name}*"):
        left.unlink()
    MlflowClient(f"sqlite:///{unfinished}").search_experiments()
    unfinished.replace(database)


def _reason(error: Exception) -> str:
    lines = str(error).splitlines()
    return without_password(lines[0]) if lines else type(error).__name__
