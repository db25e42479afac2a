"""Stage `ui`: a light MLflow server on loopback, and the address that lands on the comparison of trials.

python -m pipelines.ui [port=5000] [tracking.experiment=…]
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from typing import IO

from omegaconf import DictConfig, open_dict

from pipelines.config import Settings
from pipelines.stage import run_stage
from pipelines.train import open_store
from robust_sgld.checks import InvalidInput, integer
from robust_sgld.tracking import without_password

HOST = "127.0.0.1"


def comparison_url(base: str, experiment_id: str) -> str:
    """Machine-learning mode, chart view, trials only."""
    query = {
        "workflowType": "machine_learning",
        "compareRunsMode": "CHART",
        "searchFilter": "tags.kind = 'trial'",
        "orderByKey": "attributes.start_time",
        "orderByAsc": "false",
        "startTime": "ALL",
        "lifecycleFilter": "Active",
    }
    return f"{base}/#/experiments/{experiment_id}/runs?{urllib.parse.urlencode(query, quote_via=urllib.parse.quote)}"


def free_port(wanted: int) -> int:
    """The wanted port if it is free, else any free one."""
    for port in (wanted, 0):
        with socket.socket() as probe:
            try:
                probe.bind((HOST, port))
            except OSError:
                continue
            return int(probe.getsockname()[1])
    raise InvalidInput("no port is free on 127.0.0.1.")


def serve(cfg: DictConfig) -> None:
    """Prints the address, then serves until interrupted."""
    port = integer("port", cfg.port, least=0)
    if port > 65535:
        raise InvalidInput(f"port must be at most 65535, got {port}.")
    with open_dict(cfg):
        del cfg["port"]
    settings = Settings.of(cfg)
    store = open_store(settings)
    if store is None:
        raise InvalidInput("tracking=off has nothing to show.")
    if not store.uri.startswith("sqlite:///"):
        if not store.uri.startswith("http"):
            raise InvalidInput("the UI needs a local SQLite store or the http address of a server.")
        address = comparison_url(without_password(store.uri).rstrip("/"), store.experiment_id)
        print(f"Compare the trials at\n\n    {address}\n")
        return
    base = f"http://{HOST}:{free_port(port)}"
    command = [
        sys.executable, "-m", "mlflow", "server", "--backend-store-uri", store.uri, "--host", HOST,
        "--port", base.rsplit(":", 1)[1], "--workers", "1",
        # a page elsewhere cannot reach the server under a name of its own
        "--allowed-hosts", f"{HOST}:*,localhost:*",
    ]  # fmt: skip
    if settings.tracking.artifacts is not None:
        command += ["--default-artifact-root", settings.tracking.artifacts.as_uri()]
    light = {"MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false", "MLFLOW_DISABLE_TELEMETRY": "true", "DO_NOT_TRACK": "true"}
    print("Starting the MLflow server …", flush=True)
    # not a pipe: one that nobody empties would stop the server once it is full
    with tempfile.TemporaryFile("w+") as errors:
        server = subprocess.Popen(command, env={**os.environ, **light}, stdout=subprocess.DEVNULL, stderr=errors)
        try:
            _wait(server, base, errors)
            if not store.trials():
                print("No trial is finished yet: python -m pipelines.train trial=smoke makes one in seconds.")
            print(
                f"Compare the trials at\n\n    {comparison_url(base, store.experiment_id)}\n\nCtrl-C stops the server.",
                flush=True,
            )
            server.wait()
        finally:
            server.terminate()
            server.wait(timeout=20)


def _wait(server: subprocess.Popen[bytes], base: str, errors: IO[str], seconds: float = 90) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if server.poll() is not None:
            errors.seek(0)
            lines = [line for line in errors.read().splitlines() if line.strip()]
            raise InvalidInput(f"the MLflow server did not start: {lines[-1] if lines else 'no message'}")
        try:
            with urllib.request.urlopen(f"{base}/health", timeout=2):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.3)
    raise InvalidInput(f"the MLflow server did not answer within {seconds:.0f} s.")


if __name__ == "__main__":
    sys.exit(run_stage(serve, config_name="ui"))
