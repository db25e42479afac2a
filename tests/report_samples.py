"""Made-up trials with known numbers, for the tests of the report."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from robust_sgld.report import ReportTrial
from robust_sgld.report.published import DATA_DIGEST
from robust_sgld.result import TrialResult

REFERENCE = 0.005014
THETA_STAR = np.array([-0.5, 0.5, 0.1, -0.2])


def made_up(
    n_es: Sequence[int] = (120, 80, 100),
    *,
    eta2: float | None = 1.0,
    n_iter: int = 25_000,
    digest: str = DATA_DIGEST,
    run_id: str = "",
    params: dict[str, Any] | None = None,
    **fields: Any,
) -> ReportTrial:
    """A trial with these hitting times (0 for a miss); eta2=None is vanilla. `fields` replace fields of its result.

    Paths are straight lines from -2 to θ*, a little apart from run to run; α goes from 0 to 1.
    """
    hits = np.array(n_es)
    runs = len(hits)
    axis = np.unique(np.linspace(1, n_iter, 9).astype(int))
    way = (axis / n_iter)[None, :, None] * np.linspace(0.9, 1.0, runs)[:, None, None]
    states = -2 + way * (THETA_STAR + 2)
    dual = eta2 is not None
    if dual:
        states = np.concatenate([states, way], axis=-1)
    spread = np.linspace(0, 1e-3, runs)
    losses = 0.155 * (1 - way[..., 0]) + 0.006 + spread[:, None]
    values: dict[str, Any] = {
        "sampler": "robust_sgld" if dual else "sgld",
        "engine": "pruned" if dual else "compiled",
        "n_iter": n_iter,
        "seed": 0,
        "reference": REFERENCE,
        "tolerance": 0.01,
        "theta_star": THETA_STAR,
        "clean_minimiser": np.array([-0.5, 0.5, 0.11, 0.01]),
        "clean_minimum": 0.0025,
        "wall_seconds": 3.0 * runs,
        "workers": 1,
        "runs": np.arange(runs),
        "axis": axis,
        "objective_axis": axis[::2],
        "states": states,
        "losses": losses,
        "objective": (5 * (1 - way[:, ::2, 0]) + spread[:, None]) if dual else np.empty((runs, 0)),
        "n_es": hits,
        "loss_at_n_es": np.where(hits > 0, REFERENCE + 1e-6 * np.arange(runs), np.nan),
        "closest_loss": np.where(hits > 0, REFERENCE, 0.0055 + 1e-4 * np.arange(runs)),
        "smallest_loss": 0.003 + spread,
        "final_loss": losses[:, -1],
        "inside_after_hit": np.where(hits > 0, 0.25, np.nan),
        "seconds": 1.0 + np.arange(runs),
        "loss_seconds": np.full(runs, 0.5),
        "diverged_at": np.zeros(runs, dtype=int),
    }
    known = {"eta2": eta2} if dual else {}
    name = f"trial {eta2} {run_id}"
    return ReportTrial(TrialResult(**(values | fields)), known | (params or {}), run_id or name, name, "", digest)
