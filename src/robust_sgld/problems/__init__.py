"""Problems: a file a model and loss."""

from robust_sgld.problems.base import Constants, Problem
from robust_sgld.problems.sigmoid_regression import SigmoidRegression

__all__ = ["Constants", "Problem", "SigmoidRegression"]
