"""Figures: each one a function that returns a matplotlib figure, in the house style."""

from robust_sgld.report.figures.adversary import adversary
from robust_sgld.report.figures.comparison import comparison
from robust_sgld.report.figures.dimension import cost_against_dimension
from robust_sgld.report.figures.paths import figure1, figure2, theta_paths, trial_losses
from robust_sgld.report.figures.splits import splits
from robust_sgld.report.figures.spread import final_mse_against_eta2, hitting_times
from robust_sgld.report.figures.sweeps import corruption, grid_cost, smoothing
from robust_sgld.report.figures.worst_case import worst_case

__all__ = [
    "adversary",
    "comparison",
    "corruption",
    "cost_against_dimension",
    "figure1",
    "figure2",
    "final_mse_against_eta2",
    "grid_cost",
    "hitting_times",
    "smoothing",
    "splits",
    "theta_paths",
    "trial_losses",
    "worst_case",
]
