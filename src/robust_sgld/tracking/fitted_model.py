"""The fitted estimator as an MLflow model, stored as this code and a JSON file: loading it unpickles nothing.

It stands on NumPy and pandas alone, so that it can be served where the library is not installed.
"""

import json
from typing import Any

import mlflow
import numpy as np
from mlflow.pyfunc import PythonModel
from pandas import DataFrame


class FittedSigmoid(PythonModel):
    """z ↦ σ(⟨w,z⟩+b) at the estimate θ = (w, b)."""

    def load_context(self, context: Any) -> None:
        with open(context.artifacts["estimate"]) as file:
            estimate = json.load(file)
        self.columns, self.theta = estimate["columns"], np.array(estimate["theta"])

    def predict(self, model_input: DataFrame) -> np.ndarray:
        z = model_input[self.columns].to_numpy(dtype=np.float64)
        return 1 / (1 + np.exp(-(z @ self.theta[:-1] + self.theta[-1])))


mlflow.models.set_model(FittedSigmoid())
