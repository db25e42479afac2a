"""The fitted estimator as an MLflow model, stored as this code and a JSON file: loading it unpickles nothing.

It stands on NumPy and pandas alone, so that it can be served where the library is not installed.
"""

import json
from collections.abc import Callable
from typing import Any

import mlflow
import numpy as np
from mlflow.pyfunc import PythonModel
from pandas import DataFrame

LINKS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "sigmoid": lambda t: 0.5 + 0.5 * np.tanh(0.5 * t),
    "identity": lambda t: t,
    "tanh": np.tanh,
}


class FittedIndex(PythonModel):
    """z ↦ scale·s(⟨w,z⟩+b) + centre at the estimate θ = (w, b), s the link; scale and centre are the target's units."""

    def load_context(self, context: Any) -> None:
        with open(context.artifacts["estimate"]) as file:
            estimate = json.load(file)
        self.columns, self.theta, self.link = estimate["columns"], np.array(estimate["theta"]), LINKS[estimate["link"]]
        self.scale, self.centre = estimate["target"]

    def predict(self, model_input: DataFrame) -> np.ndarray:
        z = model_input[self.columns].to_numpy(dtype=np.float64)
        return self.scale * self.link(z @ self.theta[:-1] + self.theta[-1]) + self.centre


mlflow.models.set_model(FittedIndex())
