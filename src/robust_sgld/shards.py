"""The finished runs of a trial on disk, as they come: what a killed trial does not compute again.

A shard is one line of JSON (identity and SHA-256) followed by an uncompressed npz. It is written whole or not at all,
and it is used only if its checksum is right and its identity is that of the trial: anything else is set aside.
"""

from __future__ import annotations

import functools
import hashlib
import json
import logging
import time
from collections.abc import Collection, Mapping
from pathlib import Path

import numpy as np

from robust_sgld.files import remove_unfinished, write_whole
from robust_sgld.npz import pack, unpack

log = logging.getLogger(__name__)

Block = dict[str, np.ndarray]
"""Per-run arrays of some runs; `runs` holds their numbers."""

SECONDS_BETWEEN_SHARDS = 0.5
"""Runs that finish within this time share a shard, so that reaching the disk costs a small share of the work."""

NOT_NUMBERS = ("report", "tracking", "theory")
"""Packages that decide no number of a run."""


@functools.cache
def code_digest() -> str:
    """SHA-256 of the library's files that decide the numbers of a run: other code, other shards."""
    sha = hashlib.sha256()
    package = Path(__file__).parent
    for path in sorted(package.rglob("*.py")):
        if path.relative_to(package).parts[0] not in NOT_NUMBERS:
            sha.update(str(path.relative_to(package)).encode())
            sha.update(path.read_bytes())
    return sha.hexdigest()


class ShardStore:
    """A folder of shards. One process at a time may use it; `run_trial` opens it for the trial at hand.

    Parameters
    ----------
    folder : made where it does not exist
    identity : what the caller knows of the trial that `run_trial` cannot see (the hash of a config, say)
    """

    def __init__(self, folder: Path, identity: Mapping[str, str] | None = None):
        self.folder = Path(folder)
        self.identity = dict(identity or {})
        self._waiting: list[Block] = []
        self._written = time.perf_counter()

    def open(self, facts: Mapping[str, str], runs: Collection[int]) -> tuple[list[Block], float]:
        """Takes on the trial's own facts; returns its finished blocks among `runs`, and the seconds they took.

        Damaged and foreign shards are named in the log and moved to `set-aside/`.
        """
        self.identity |= {**facts, "code": code_digest()}
        self.folder.mkdir(parents=True, exist_ok=True)
        remove_unfinished(self.folder)
        self._waiting, self._written = [], time.perf_counter()
        found: list[Block] = []
        seen: set[int] = set()
        seconds = 0.0
        for path in sorted(self.folder.glob("*.shard")):
            fault, block = self._read(path)
            if block is None:
                self._set_aside(path, fault)
                continue
            seconds += float(block.pop("wall_seconds"))
            new = np.array([int(k) in runs and int(k) not in seen for k in block["runs"]], dtype=bool)
            seen |= {int(k) for k in block["runs"]}
            if new.any():
                found.append({name: values[new] for name, values in block.items()})
        if found:
            log.info("%d of %d runs are finished already.", sum(len(block["runs"]) for block in found), len(runs))
        return found, seconds

    def add(self, block: Block) -> None:
        """Takes finished runs; they are on disk at the latest after `flush`."""
        self._waiting.append(block)
        if time.perf_counter() - self._written >= SECONDS_BETWEEN_SHARDS:
            self.flush()

    def flush(self) -> None:
        """Writes what is waiting."""
        if not self._waiting:
            return
        now = time.perf_counter()
        blocks = self._waiting
        joined = {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}
        payload = pack({**joined, "wall_seconds": now - self._written}, compress=False)
        sha = hashlib.sha256(payload).hexdigest()
        header = json.dumps({"identity": self.identity, "sha256": sha}, sort_keys=True).encode()
        write_whole(self.folder / f"{int(joined['runs'].min()):06d}-{sha[:12]}.shard", header + b"\n" + payload)
        self._waiting, self._written = [], now

    def _read(self, path: Path) -> tuple[str, Block | None]:
        try:
            line, _, payload = path.read_bytes().partition(b"\n")
            header = json.loads(line)
            identity, sha = dict(header["identity"]), str(header["sha256"])
        except (OSError, ValueError, KeyError, TypeError):
            return "is damaged", None
        if hashlib.sha256(payload).hexdigest() != sha:
            return "is damaged", None
        if identity != self.identity:
            keys = sorted({*identity, *self.identity})
            other = [key for key in keys if identity.get(key) != self.identity.get(key)]
            return f"belongs to another trial ({', '.join(other)} differ)", None
        return "", unpack(payload)

    def _set_aside(self, path: Path, fault: str) -> None:
        aside = self.folder / "set-aside"
        aside.mkdir(exist_ok=True)
        path.replace(aside / path.name)
        log.warning("%s %s: set aside in %s, its runs are computed again.", path.name, fault, aside)
