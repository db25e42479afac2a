"""Samplers: a file an algorithm."""

from robust_sgld.samplers.base import DivergenceWarning, LangevinSampler
from robust_sgld.samplers.robust_sgld import RobustSGLD
from robust_sgld.samplers.sgld import SGLD

__all__ = ["SGLD", "DivergenceWarning", "LangevinSampler", "RobustSGLD"]
