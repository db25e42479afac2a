"""A trial's own folder on disk from its start until the store has it: shards, config, result, and what was agreed.

`shards/` are finished runs, `config.yaml` is the resolved config, `trial.npz` the result once all runs are there, and
`journal.json` what every attempt has to say alike: the key that the trial's MLflow run carries, the time stamp and the
headline numbers of its delivery. The folder goes when the store has everything.
"""

from __future__ import annotations

import json
import logging
import shutil
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from robust_sgld.checks import InvalidInput
from robust_sgld.files import TEMPORARY, remove_unfinished, write_whole
from robust_sgld.result import TrialResult
from robust_sgld.tracking.store import CONFIG_FILE, TRIAL_FILE

log = logging.getLogger(__name__)

JOURNAL_FILE = "journal.json"


class TrialFolder:
    """One trial's folder; use it inside `held`."""

    def __init__(self, path: Path):
        self.path = path

    @property
    def shards(self) -> Path:
        """Where the finished runs go."""
        return self.path / "shards"

    @contextmanager
    def held(self, name: str) -> Iterator[None]:
        """Keeps other processes out, and waits while one is in. The lock of a process that has died holds nobody."""
        locks = self.path.parent / ".locks"
        locks.mkdir(parents=True, exist_ok=True)
        lock = FileLock(locks / self.path.name)  # outside the folder, which goes when the trial is recorded
        try:
            lock.acquire(timeout=0)
        except Timeout:
            log.info("%s is being run by another process: waiting for it.", name)
            lock.acquire()
        try:
            remove_unfinished(self.path)
            for left in self.path.parent.glob(f"{TEMPORARY}*"):
                shutil.rmtree(left, ignore_errors=True)
            yield
        finally:
            lock.release()

    def begin(self, config_text: str) -> None:
        """Makes the folder, or takes it up."""
        self.path.mkdir(parents=True, exist_ok=True)
        write_whole(self.path / CONFIG_FILE, config_text.encode())
        self.agree(key=uuid.uuid4().hex)

    @property
    def journal(self) -> dict[str, Any]:
        """What has been agreed so far."""
        try:
            found = json.loads((self.path / JOURNAL_FILE).read_text())
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}

    def agree(self, **values: Any) -> dict[str, Any]:
        """The journal with these values, where it has none of its own yet: what the first attempt said holds."""
        journal = self.journal
        agreed = {**values, **journal}
        if agreed != journal:
            write_whole(self.path / JOURNAL_FILE, json.dumps(agreed, indent=1).encode())
        return agreed

    def result(self) -> TrialResult | None:
        """The finished trial, where it waits to be recorded; a damaged file is set aside and made again."""
        path = self.path / TRIAL_FILE
        if not path.exists():
            return None
        try:
            return TrialResult.load(path)
        except InvalidInput as error:
            log.warning("%s It is set aside and made again.", error)
            path.replace(path.with_suffix(".damaged"))
            return None

    def keep(self, result: TrialResult) -> None:
        """Puts the finished trial on disk."""
        result.save(self.path / TRIAL_FILE)

    def delivery(self, numbers: Mapping[str, float]) -> tuple[dict[str, float], int]:
        """The headline numbers and the time stamp (ms) with which every attempt delivers the trial.

        Two values of a metric with one time stamp would both be kept, and a model could not be logged any more.
        """
        kept = {key: float(value) for key, value in numbers.items()}
        agreed = self.agree(delivery={"numbers": kept, "at": int(time.time() * 1000)})["delivery"]
        return dict(agreed["numbers"]), int(agreed["at"])

    def discard_unless_begun(self) -> None:
        """Removes it where it holds no finished run."""
        if not (self.path / TRIAL_FILE).exists() and not any(self.shards.glob("*.shard")):
            self.discard()

    def discard(self) -> None:
        """Removes it. Renamed first: a folder of which half is deleted would be taken for a trial."""
        gone = self.path.with_name(f"{TEMPORARY}{uuid.uuid4().hex}")
        try:
            self.path.rename(gone)
        except FileNotFoundError:
            return
        shutil.rmtree(gone, ignore_errors=True)


def waiting(folder: Path) -> tuple[list[TrialFolder], int]:
    """The finished trials below a folder that no store has yet, and how many unfinished ones there are."""
    paths = sorted(path.parent for path in folder.glob(f"*/{CONFIG_FILE}"))
    found = [TrialFolder(path) for path in paths if not path.name.startswith(".")]
    finished = [trial for trial in found if (trial.path / TRIAL_FILE).exists()]
    return finished, len(found) - len(finished)
