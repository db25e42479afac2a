"""Faults on a real trial, and what is left of it: `make chaos`, or python -m tests.chaos [--kills 50] [--seed 0].

Every scenario starts real commands, does them harm, lets the same command run once more, and compares everything that
is then on disk and in MLflow with a trial that nobody disturbed: byte by byte, but for what a clock has measured.
"""

from __future__ import annotations

import argparse
import csv
import io
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pipelines.config import PROJECT_ROOT
from robust_sgld.tracking import Store

SETTING = ["trial.runs=30", "trial.n_iter=4000", "data.n_train=400", "data.n_test=300", "eta2=2"]
MEASURED = ("seconds", "loss_seconds", "wall_seconds", "workers")
"""Arrays of a trial that a clock or the machine decides, not the seed."""
CLOCK_METRICS = ("seconds", "seconds_per_run", "loss_seconds_per_run", "wall_seconds", "theory_seconds")
OWN_TAGS = ("trial_key", "mlflow.parentRunId", "git.dirty", "git.commit")
"""Tags that name one attempt or one checkout, not the trial."""


class Chaos(AssertionError):
    """A promise was broken."""


def expect(holds: bool, promise: str) -> None:
    if not holds:
        raise Chaos(promise)


def environment() -> dict[str, str]:
    paths = os.pathsep.join([str(PROJECT_ROOT / "src"), str(PROJECT_ROOT)])
    return {**os.environ, "PYTHONPATH": paths, "MLFLOW_DISABLE_TELEMETRY": "true"}


def start(root: Path, *words: str, before: tuple[str, ...] = ()) -> subprocess.Popen[str]:
    """The command, with `before` in front of it, as a process of its own."""
    call = [*before, sys.executable, "-m", "pipelines.train", *SETTING, f"root={root}", *words]
    return subprocess.Popen(
        call, cwd=PROJECT_ROOT, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def finish(process: subprocess.Popen[str], code: int = 0) -> str:
    out, errors = process.communicate(timeout=600)
    expect(process.returncode == code, f"exit code {process.returncode} instead of {code}:\n{out}{errors}")
    expect("Traceback" not in errors, errors)
    return out + errors


class Laboratory:
    """Fresh roots with an empty store, and what an undisturbed trial leaves in one."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.template = folder / "template" / "mlflow.db"
        Store(f"sqlite:///{self.template}", "template")
        root = self.root()
        finish(start(root))
        self.undisturbed = left_in(root)

    def seconds(self) -> float:
        """How long an undisturbed trial takes, caches warm; it leaves what the first one left."""
        root = self.root()
        began = time.monotonic()
        finish(start(root))
        seconds = time.monotonic() - began
        self.same(root, "a second undisturbed trial")
        return seconds

    def root(self) -> Path:
        root = Path(tempfile.mkdtemp(dir=self.folder))
        (root / "mlruns").mkdir()
        shutil.copy(self.template, root / "mlruns" / "mlflow.db")
        return root

    def same(self, root: Path, what: str) -> None:
        found = left_in(root)
        for key in sorted({*found, *self.undisturbed}):
            expect(found.get(key) == self.undisturbed.get(key), f"{what}: {key} differs in {root}")


def left_in(root: Path) -> dict[str, Any]:
    """Everything that a finished trial leaves, by name; raises if there is not exactly one trial."""
    store = Store(f"sqlite:///{root}/mlruns/mlflow.db", "robust-sgld")
    trials = store.trials(finished=False)
    expect([trial.status for trial in trials] == ["FINISHED"], f"trials: {[trial.status for trial in trials]}")
    run_id = trials[0].run_id
    found: dict[str, Any] = {"name": trials[0].name}
    parent, *rest = store.runs(f"tags.trial_key = '{trials[0].tags['trial_key']}'")
    expect(not rest, "the trial has one run")
    found |= {f"run {key}": value for key, value in _run(store, parent).items()}
    children = store.runs(f"tags.mlflow.parentRunId = '{run_id}'")
    found["children"] = sorted(child.data.tags["run"] for child in children)
    for child in children:
        found |= {f"child {child.data.tags['run']} {key}": value for key, value in _run(store, child).items()}
    everything = store.runs("")
    found["runs in the store"] = len(everything)
    models = store.client.search_logged_models([store.experiment_id])
    found["models"] = [(model.name, str(model.status), len(parent.outputs.model_outputs)) for model in models]
    estimates = sorted(
        path.read_bytes()
        for path in (root / "mlruns/artifacts").rglob("estimate.json")
        if models[0].model_id in str(path)
    )
    found["estimates"] = estimates
    artifacts = Path(parent.info.artifact_uri.removeprefix("file://"))
    for path in sorted(p for p in artifacts.rglob("*") if p.is_file()):
        found |= {f"artifact {path.relative_to(artifacts)}{part}": b for part, b in _bytes(path, root).items()}
    found["left to deliver"] = sorted(str(p) for p in (root / "outputs/trials").glob("[!.]*"))
    return found


def _run(store: Store, run: Any) -> dict[str, Any]:
    facts: dict[str, Any] = {"status": run.info.status, "params": dict(run.data.params)}
    facts["tags"] = {k: v for k, v in run.data.tags.items() if k not in OWN_TAGS}
    facts["inputs"] = sorted(i.dataset.digest for i in run.inputs.dataset_inputs)
    for key in sorted(run.data.metrics):
        history = store.client.get_metric_history(run.info.run_id, key)
        clock = key in CLOCK_METRICS
        facts[f"metric {key}"] = sorted((m.step, None if clock else m.value) for m in history)
    return facts


def _bytes(path: Path, root: Path) -> dict[str, bytes]:
    """What has to be the same in every trial: a file's bytes without measured times and the root's own name."""
    if path.name == "trial.npz":
        with zipfile.ZipFile(path) as archive:
            return {f" {n}": archive.read(n) for n in archive.namelist() if n.removesuffix(".npy") not in MEASURED}
    if path.name == "runs.csv":
        rows = list(csv.reader(io.StringIO(path.read_text())))
        return {"": repr([[v for k, v in zip(rows[0], row, strict=True) if k != "seconds"] for row in rows]).encode()}
    return {"": path.read_bytes().replace(str(root).encode(), b"ROOT")}


def wait_for(condition: Callable[[], bool], process: subprocess.Popen[str], seconds: float = 300) -> bool:
    """Whether the condition came true while the process was alive."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and process.poll() is None:
        if condition():
            return True
        time.sleep(0.005)
    return condition()


def kill(process: subprocess.Popen[str], number: int = signal.SIGKILL) -> None:
    if process.poll() is None:
        os.kill(process.pid, number)
    process.communicate(timeout=600)


def shards_in(root: Path) -> int:
    return len(list((root / "outputs" / "trials").glob("*/shards/*.shard")))


def is_sampled(root: Path) -> bool:
    return any((root / "outputs" / "trials").glob("*/trial.npz"))


def kills_at_random_moments(lab: Laboratory, kills: int, seed: int, per_trial: int = 5) -> None:
    """SIGKILL anywhere between start and end; several times a trial, then the command is left alone."""
    moments, seconds = random.Random(seed), lab.seconds()
    done = 0
    while done < kills:
        root = lab.root()
        for _ in range(min(per_trial, kills - done)):
            process, began = start(root), time.monotonic()
            try:
                process.wait(timeout=moments.uniform(0, seconds))
            except subprocess.TimeoutExpired:
                kill(process)
                done += 1
                state = "sampled" if is_sampled(root) else f"{shards_in(root)} shards"
                print(f"  kill {done} after {time.monotonic() - began:.2f} s: {state}", flush=True)
            else:  # quicker than the one that was measured, and no kill
                finish(process)
                seconds = min(seconds, time.monotonic() - began)
                break
        finish(start(root))
        lab.same(root, f"kill {done}")
        shutil.rmtree(root)


def kills_in_each_phase(lab: Laboratory) -> None:
    """SIGKILL once shards are there, once the result is, and a little later, while it is being recorded."""
    root = lab.root()
    process = start(root)
    expect(wait_for(lambda: shards_in(root) > 0, process), "a trial writes shards as it goes")
    kill(process)
    before = shards_in(root)
    expect(before > 0, "shards outlive the process")
    for delay in (0.0, 0.7):
        process = start(root)
        expect(wait_for(lambda: is_sampled(root), process), "a continued trial comes to its end")
        time.sleep(delay)
        kill(process)
    out = finish(start(root))
    expect("skipped" in out or "recorded as" in out, out)
    lab.same(root, "kills in each phase")


def signals(lab: Laboratory) -> None:
    """Ctrl-C and a scheduler's SIGTERM: KILLED in MLflow, exit code 130, and the same command continues."""
    for number in (signal.SIGINT, signal.SIGTERM):
        root = lab.root()
        process = start(root)
        wait_for(lambda root=root: shards_in(root) > 0, process)  # type: ignore[misc]
        os.kill(process.pid, number)
        finish(process, 130)
        (trial,) = Store(f"sqlite:///{root}/mlruns/mlflow.db", "robust-sgld").trials(finished=False)
        expect((trial.status, trial.tags["failure"]) == ("KILLED", "interrupted"), f"{trial.status} {trial.tags}")
        finish(start(root))
        lab.same(root, f"signal {number}")


def twins(lab: Laboratory) -> None:
    """Two identical commands at the same time: one waits, finds the trial complete and skips it."""
    root = lab.root()
    both = [start(root), start(root)]
    said = sorted((finish(process) for process in both), key=lambda out: "skipped" in out)
    expect("skipped" not in said[0], said[0])
    expect("skipped" in said[1], said[1])
    lab.same(root, "twins")


def backward_clock(lab: Laboratory) -> None:
    """A clock that goes back an hour with every second: nothing is ordered by it."""
    root = lab.root()
    code = (
        "import runpy, sys, time; real = time.time; zero = real(); "
        "time.time = lambda: real() - 3600 * (real() - zero); "
        "runpy.run_module('pipelines.train', run_name='__main__', alter_sys=True)"
    )

    def begin() -> subprocess.Popen[str]:
        call = [sys.executable, "-c", code, *SETTING, f"root={root}"]
        return subprocess.Popen(
            call, cwd=PROJECT_ROOT, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    process = begin()
    wait_for(lambda: shards_in(root) > 0, process)
    kill(process)
    finish(begin())
    lab.same(root, "backward clock")


def read_only_store(lab: Laboratory) -> None:
    """mlruns/ read-only: refused in one sentence with exit code 2, before anything is sampled."""
    root = lab.root()
    script = 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec "$@"'
    process = start(root, before=("unshare", "-rm", "sh", "-c", script, str(root / "mlruns")))
    said = finish(process, 2)
    expect("error: tracking.uri" in said, said)
    expect(not shards_in(root), "nothing is sampled for a store that takes nothing")
    finish(start(root))
    lab.same(root, "read-only store")


def full_disk(lab: Laboratory) -> None:
    """outputs/trials on a disk of 300 kB: the trial stops with a sentence; with room again it continues."""
    root = lab.root()
    (root / "outputs" / "trials").mkdir(parents=True)
    inner = [sys.executable, "-m", "tests.chaos", "--inside-a-small-disk", str(root)]
    call = ["unshare", "-rm", *inner]
    done = subprocess.run(call, cwd=PROJECT_ROOT, env=environment(), capture_output=True, text=True, timeout=900)
    expect(done.returncode == 0, done.stdout + done.stderr)
    lab.same(root, "full disk")


def inside_a_small_disk(root: Path) -> None:
    """The scenario itself, in a mount namespace of its own."""
    disk = root / "outputs" / "trials"
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=300k", "none", str(disk)], check=True)
    said = finish(start(root), 2)
    expect("No space left on device" in said, said)
    kept = shards_in(root)
    expect(kept > 0, "what was written before the disk was full is kept")
    subprocess.run(["mount", "-o", "remount,size=100m", str(disk)], check=True)
    said = finish(start(root))
    expect("runs are finished already" in said, said)


def can_mount() -> bool:
    """Whether this system lets us have mounts of our own, for a small or a read-only disk."""
    try:
        return subprocess.run(["unshare", "-rm", "true"], capture_output=True).returncode == 0
    except OSError:
        return False


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--inside-a-small-disk", type=Path)
    given = parser.parse_args()
    if given.inside_a_small_disk is not None:
        inside_a_small_disk(given.inside_a_small_disk)
        return
    scenarios: dict[str, Callable[[Laboratory], None]] = {
        "kills in each phase": kills_in_each_phase,
        "signals": signals,
        "twins": twins,
        "backward clock": backward_clock,
        "read-only store": read_only_store,
        "full disk": full_disk,
        f"{given.kills} kills": lambda lab: kills_at_random_moments(lab, given.kills, given.seed),
    }
    with tempfile.TemporaryDirectory() as folder:
        lab = Laboratory(Path(folder))
        print(f"{len(lab.undisturbed)} facts to compare", flush=True)
        for name, scenario in scenarios.items():
            if scenario in (read_only_store, full_disk) and not can_mount():
                print(f"{name}: left out, this system gives no mounts of one's own (unshare -rm)", flush=True)
                continue
            began = time.monotonic()
            scenario(lab)
            print(f"{name}: as promised ({time.monotonic() - began:.0f} s)", flush=True)


if __name__ == "__main__":
    main()
