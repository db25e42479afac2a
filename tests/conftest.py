"""What several test files share: the published data set, made once, and fixed seeds for Hypothesis."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import settings

import robust_sgld as rs

settings.register_profile("fixed", derandomize=True, deadline=None, database=None)
settings.load_profile("fixed")


@pytest.fixture(scope="session")
def paper() -> rs.Dataset:
    return rs.paper_dataset()


@pytest.fixture(scope="session")
def problem() -> rs.SigmoidRegression:
    return rs.SigmoidRegression(4)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20240314)
