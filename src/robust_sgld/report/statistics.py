"""Over the runs that stayed finite: mean, standard deviation, quantile; NaN where there is nothing to take them of."""

from __future__ import annotations

import math

import numpy as np


def mean(values: np.ndarray) -> float:
    """Of the finite values."""
    finite = values[np.isfinite(values)]
    return float(finite.mean()) if finite.size else math.nan


def deviation(values: np.ndarray) -> float:
    """Standard deviation (n - 1) of the finite values."""
    finite = values[np.isfinite(values)]
    return float(finite.std(ddof=1)) if finite.size > 1 else math.nan


def quantile(values: np.ndarray, level: float) -> float:
    """Of the finite values."""
    finite = values[np.isfinite(values)]
    return float(np.quantile(finite, level)) if finite.size else math.nan
