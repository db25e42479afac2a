"""MLflow, and nothing else in the library knows it: where trials are recorded and found again."""

import os

# MLflow reads these when it is imported, which happens later: no telemetry, no chatter of its own on the terminal.
os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
os.environ.setdefault("DO_NOT_TRACK", "true")
os.environ.setdefault("MLFLOW_LOGGING_LEVEL", "WARNING")
# A server that is gone is noticed in seconds, not in the half hour of MLflow's own settings: results are kept on disk.
os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "2")
os.environ.setdefault("MLFLOW_HTTP_REQUEST_TIMEOUT", "30")
os.environ.setdefault("MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR", "false")

from robust_sgld.tracking.folder import TrialFolder, waiting
from robust_sgld.tracking.recorder import TrialRecord, TrialRecorder
from robust_sgld.tracking.store import CONFIG_FILE, RecordedTrial, Store, TrackingLost, without_password

__all__ = [
    "CONFIG_FILE",
    "RecordedTrial",
    "Store",
    "TrackingLost",
    "TrialFolder",
    "TrialRecord",
    "TrialRecorder",
    "waiting",
    "without_password",
]
