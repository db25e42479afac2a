"""Real servers on loopback for tests: MLflow's, and PostgreSQL where the machine has it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pipelines.ui import free_port

LIGHT = {"MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false", "MLFLOW_DISABLE_TELEMETRY": "true", "DO_NOT_TRACK": "true"}


class MlflowServer:
    """An MLflow server that can be stopped and started again at the same address."""

    def __init__(self, folder: Path, backend: str | None = None, workers: int = 1):
        self.folder, self.workers = folder, workers
        self.backend = backend or f"sqlite:///{folder}/mlflow.db"
        self.port = free_port(0)
        self.uri = f"http://127.0.0.1:{self.port}"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        call = [
            sys.executable, "-m", "mlflow", "server", "--backend-store-uri", self.backend, "--host", "127.0.0.1",
            "--port", str(self.port), "--workers", str(self.workers),
            "--artifacts-destination", str(self.folder / "artifacts"),
        ]  # fmt: skip
        self.process = subprocess.Popen(
            call, env={**os.environ, **LIGHT}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=self.folder
        )
        deadline = time.monotonic() + 180
        while time.monotonic() < deadline:
            assert self.process.poll() is None, "the MLflow server ended"
            try:
                with urllib.request.urlopen(f"{self.uri}/health", timeout=5):
                    return
            except OSError:
                time.sleep(0.2)
        raise AssertionError("the MLflow server did not answer")

    def stop(self) -> None:
        if self.process is not None:
            self.process.terminate()
            self.process.wait(timeout=60)
            self.process = None


@contextmanager
def mlflow_server(folder: Path, backend: str | None = None, workers: int = 1) -> Iterator[MlflowServer]:
    server = MlflowServer(folder, backend, workers)
    server.start()
    try:
        yield server
    finally:
        server.stop()


def postgres_tools() -> Path | None:
    """The folder of PostgreSQL's programs, on the path or where Debian puts them."""
    found = shutil.which("initdb")
    places = [Path(found).parent] if found else sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((place for place in places if (place / "initdb").exists() and (place / "pg_ctl").exists()), None)


@contextmanager
def postgres() -> Iterator[str]:
    """A fresh PostgreSQL on a free port of loopback; gives its SQLAlchemy address."""
    tools = postgres_tools()
    assert tools is not None
    user = "nobody" if os.geteuid() == 0 else None  # PostgreSQL refuses to run as root
    folder = Path(tempfile.mkdtemp(prefix="robust-sgld-postgres-"))
    if user is not None:
        shutil.chown(folder, user)
    port = free_port(0)

    def call(*words: str) -> None:
        done = subprocess.run(words, user=user, cwd=folder, capture_output=True, text=True, timeout=180)
        assert done.returncode == 0, done.stdout + done.stderr

    data, log = str(folder / "data"), str(folder / "log")
    try:
        call(str(tools / "initdb"), "-D", data, "-U", "robust", "--auth=trust", "--no-sync")
        options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={folder}"
        call(str(tools / "pg_ctl"), "-D", data, "-l", log, "-w", "-o", options, "start")
        try:
            yield f"postgresql+psycopg://robust@127.0.0.1:{port}/postgres"
        finally:
            call(str(tools / "pg_ctl"), "-D", data, "-m", "immediate", "-w", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
