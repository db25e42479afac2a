"""Distributionally robust learning with Langevin samplers.

The library behind the pipeline: data, problem, dual objective, sampler, trial. It knows neither Hydra nor MLflow (but
for `tracking`) and draws no figure (but for `report`).
"""

from typing import Any

from robust_sgld.checks import InvalidInput
from robust_sgld.data import Dataset, contaminated_dataset, paper_dataset
from robust_sgld.diagnostics import ess_bulk, ess_mean, r_hat
from robust_sgld.dro import DRO, iota, iota_prime, split
from robust_sgld.dual import DualObjective
from robust_sgld.grid import Grid
from robust_sgld.losses import LossEvaluator, first_hit, in_band, minimise_risk, test_losses
from robust_sgld.problems import (
    CauchyLoss,
    Constants,
    LinearIndexProblem,
    LogisticLoss,
    ModuleProblem,
    Problem,
    PseudoHuberLoss,
    QuantileLoss,
    SigmoidRegression,
    SquaredLoss,
    TwoLayerNetwork,
)
from robust_sgld.result import TrialResult, bands
from robust_sgld.rng import Draws, draws
from robust_sgld.samplers import SGLD, DivergenceWarning, LangevinSampler, RobustSGLD
from robust_sgld.scaling import Scaling, standardise
from robust_sgld.selection import criteria, held_out_losses
from robust_sgld.shards import ShardStore
from robust_sgld.tabular import bundled_dataset, file_dataset, tabular_dataset
from robust_sgld.trial import run_trial

__version__ = "0.2.0"


def __getattr__(name: str) -> Any:
    """The scikit-learn estimators, imported when they are asked for: scikit-learn takes a second."""
    if name in ("RobustSGLDClassifier", "RobustSGLDRegressor"):
        from robust_sgld import estimators

        return getattr(estimators, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "DRO",
    "SGLD",
    "CauchyLoss",
    "Constants",
    "Dataset",
    "DivergenceWarning",
    "Draws",
    "DualObjective",
    "Grid",
    "InvalidInput",
    "LangevinSampler",
    "LinearIndexProblem",
    "LogisticLoss",
    "LossEvaluator",
    "ModuleProblem",
    "Problem",
    "PseudoHuberLoss",
    "QuantileLoss",
    "RobustSGLD",
    "RobustSGLDClassifier",
    "RobustSGLDRegressor",
    "Scaling",
    "ShardStore",
    "SigmoidRegression",
    "SquaredLoss",
    "TrialResult",
    "TwoLayerNetwork",
    "bands",
    "bundled_dataset",
    "contaminated_dataset",
    "criteria",
    "draws",
    "ess_bulk",
    "ess_mean",
    "file_dataset",
    "first_hit",
    "held_out_losses",
    "in_band",
    "iota",
    "iota_prime",
    "minimise_risk",
    "paper_dataset",
    "r_hat",
    "run_trial",
    "split",
    "standardise",
    "tabular_dataset",
    "test_losses",
]
