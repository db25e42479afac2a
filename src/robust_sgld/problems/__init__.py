"""Problems: a file a model and loss."""

from robust_sgld.problems.base import Constants, Problem
from robust_sgld.problems.cauchy import CauchyLoss
from robust_sgld.problems.linear_index import KernelCode, LinearIndexProblem, ResidualLoss
from robust_sgld.problems.logistic import LogisticLoss
from robust_sgld.problems.module import ModuleProblem
from robust_sgld.problems.pseudo_huber import PseudoHuberLoss
from robust_sgld.problems.quantile import QuantileLoss
from robust_sgld.problems.sigmoid_regression import SigmoidRegression
from robust_sgld.problems.squared import SquaredLoss
from robust_sgld.problems.two_layer import TwoLayerNetwork

__all__ = [
    "CauchyLoss",
    "Constants",
    "KernelCode",
    "LinearIndexProblem",
    "LogisticLoss",
    "ModuleProblem",
    "Problem",
    "PseudoHuberLoss",
    "QuantileLoss",
    "ResidualLoss",
    "SigmoidRegression",
    "SquaredLoss",
    "TwoLayerNetwork",
]
