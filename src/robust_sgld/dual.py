"""The discretised, smoothed dual objective and its pieces, by the names of the paper."""

from __future__ import annotations

import numpy as np

from robust_sgld.checks import InvalidInput, array
from robust_sgld.dro import DRO, iota, iota_prime, split
from robust_sgld.engines import Accuracy, make_engine
from robust_sgld.problems import Problem


class DualObjective:
    """V^δ, Ṽ^δ, H and v^{δ,ℓ,j} for one problem and one DRO, summed by the engine of that name."""

    def __init__(self, problem: Problem, dro: DRO, engine: str = "auto", accuracy: Accuracy | None = None):
        self.problem, self.dro = problem, dro
        self.engine = make_engine(engine, problem, dro, accuracy)
        self.grid = self.engine.grid

    def V(self, theta_bar: np.ndarray, x: np.ndarray) -> np.ndarray:
        """V^{δ,ℓ,j} = δ log( (1/N) Σ_j F_j ) (defn:v_delta) at states (B, d+1) and points (B, m), pair by pair."""
        theta_bar, x = self._pairs(theta_bar, x)
        return self.dro.delta * (self.engine.log_sum(theta_bar, x).value - self.grid.log_size)

    def V_max(self, theta_bar: np.ndarray, x: np.ndarray) -> np.ndarray:
        """max_j {U(θ,ξ_j) - ι(α)|x-ξ_j|^p}, which V^δ approaches from below as δ → 0 (lemma:smooth_max)."""
        return self.engine.maximum(*self._pairs(theta_bar, x))

    def V_tilde(self, theta_bar: np.ndarray, x: np.ndarray) -> np.ndarray:
        """Ṽ^{δ,ℓ,j} = V^{δ,ℓ,j} + η1|θ|²/2 + η2 ι(α)²/2 (defn:small_v_delta_discrete)."""
        return self.V(theta_bar, x) + self.regulariser(theta_bar)

    def V_tilde_max(self, theta_bar: np.ndarray, x: np.ndarray) -> np.ndarray:
        """Ṽ^{ℓ,j}, with the true maximum (defn:small_v_discrete)."""
        return self.V_max(theta_bar, x) + self.regulariser(theta_bar)

    def regulariser(self, theta_bar: np.ndarray) -> np.ndarray:
        """η1|θ|²/2 + η2 ι(α)²/2."""
        theta, alpha = split(np.asarray(theta_bar, dtype=np.float64))
        return 0.5 * self.dro.eta1 * (theta**2).sum(-1) + 0.5 * self.dro.eta2 * iota(alpha) ** 2

    def H(self, theta_bar: np.ndarray, x: np.ndarray) -> np.ndarray:
        """∇Ṽ^{δ,ℓ,j} (B, d+1), the stochastic gradient of robust SGLD (defn:grad_v_delta)."""
        theta_bar, x = self._pairs(theta_bar, x)
        return self.gradient(theta_bar, x)

    def gradient(self, theta_bar: np.ndarray, x: np.ndarray) -> np.ndarray:
        """`H` without the checks, for a loop over many updates."""
        theta, alpha = split(theta_bar)
        _, grad_u, cost = self.engine.log_sum(theta_bar, x)
        along_theta = self.dro.eta1 * theta + grad_u
        along_alpha = iota_prime(alpha) * (self.dro.eta2 * iota(alpha) - cost)
        return np.concatenate([along_theta, along_alpha[:, None]], axis=1)

    def v(self, theta_bar: np.ndarray, data: np.ndarray) -> np.ndarray:
        """v^{δ,ℓ,j}(θ̄) = ∫ Ṽ^{δ,ℓ,j} dμ_{0,ℓ,j} for states (…, d+1); μ_{0,ℓ,j} is made of the floored data."""
        return self.integral(theta_bar, *self.grid.measure(data))

    def v_max(self, theta_bar: np.ndarray, data: np.ndarray) -> np.ndarray:
        """v^{ℓ,j}(θ̄), with the true maximum (defn:small_v_discrete)."""
        return self.integral(theta_bar, *self.grid.measure(data), maximum=True)

    def integral(
        self, theta_bar: np.ndarray, atoms: np.ndarray, weights: np.ndarray, *, maximum: bool = False
    ) -> np.ndarray:
        """`v` (or, with maximum, `v_max`) over given atoms (a, m) and weights (a,) of `Grid.measure`."""
        states = np.asarray(theta_bar, dtype=np.float64)
        if states.shape[-1:] != (self.problem.n_params + 1,):
            raise InvalidInput(f"theta_bar must have shape (…, {self.problem.n_params + 1}), got {states.shape}.")
        V = self.V_max if maximum else self.V
        flat = states.reshape(-1, states.shape[-1])
        values = [weights @ V(np.tile(state, (len(atoms), 1)), atoms) for state in flat]
        return np.array(values).reshape(states.shape[:-1]) + self.regulariser(states)

    def _pairs(self, theta_bar: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        theta_bar = array("theta_bar", np.atleast_2d(theta_bar), shape=(None, self.problem.n_params + 1))
        x = array("x", np.atleast_2d(x), shape=(len(theta_bar), self.problem.dim))
        return theta_bar, x
