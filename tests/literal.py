"""The paper's equations in plain NumPy, written down as they are printed: what the tests hold the library to.

Every grid point, every data row, no shortcut; the only liberty is the shift by the maximum before an exponential, which
changes nothing but the range. Functions keep the precision of their arguments: given `np.longdouble` they are a
reference with eleven more bits than float64. A state is θ̄ = (θ, α); `dro` is read for eta1, eta2, delta and p.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

Array = np.ndarray
Loss = Callable[[Array, Array], Array]


def sigmoid(t: Array) -> Array:
    with np.errstate(over="ignore"):  # e^{-t} = inf gives 0, which is right
        return 1 / (1 + np.exp(-t))


def U(theta: Array, x: Array) -> Array:
    """eq:DROexample_U at rows x = (z, y)."""
    return (x[..., -1] - sigmoid(x[..., :-1] @ theta[:-1] + theta[-1])) ** 2


def grad_U(theta: Array, x: Array) -> Array:
    """eqn:grad_U, (…, d)."""
    s = sigmoid(x[..., :-1] @ theta[:-1] + theta[-1])
    common = -2 * (x[..., -1] - s) * s * (1 - s)
    return np.concatenate([common[..., None] * x[..., :-1], common[..., None]], axis=-1)


def iota(alpha: Any) -> Any:
    """def:iota."""
    return np.log(np.cosh(alpha))


def dyadics(ell: int, j: int) -> list[float]:
    """K_{ℓ,j} of defn:dyadic."""
    return [-(2 ** (ell - 1)) + k / 2**j for k in range(2 ** (ell + j))]


def grid(dim: int, ell: int, j: int, support: tuple[float, float]) -> Array:
    """Ξ ∩ K_{ℓ,j}^m, (N, m)."""
    axis = [k for k in dyadics(ell, j) if support[0] <= k <= support[1]]
    return np.array(list(itertools.product(axis, repeat=dim)))


def floored(x: Array, ell: int, j: int) -> Array:
    """[x]_j: the corner i of the cell Q_{i,j} of eqn:qij that holds x."""
    k = np.array(dyadics(ell, j))
    return np.array([[k[k <= value].max() for value in row] for row in x])


def values(theta_bar: Array, x: Array, xi: Array, dro: Any, loss: Loss = U) -> Array:
    """U(θ,ξ_j) - ι(α)|x-ξ_j|^p for every j."""
    return loss(theta_bar[:-1], xi) - iota(theta_bar[-1]) * np.linalg.norm(x - xi, axis=1) ** dro.p


def log_sum(theta_bar: Array, x: Array, xi: Array, dro: Any, loss: Loss = U) -> Any:
    """log Σ_j F_j."""
    exponent = values(theta_bar, x, xi, dro, loss) / dro.delta
    return exponent.max() + np.log(np.exp(exponent - exponent.max()).sum())


def weights(theta_bar: Array, x: Array, xi: Array, dro: Any, loss: Loss = U) -> Array:
    """F_j / Σ_j F_j."""
    exponent = values(theta_bar, x, xi, dro, loss) / dro.delta
    F = np.exp(exponent - exponent.max())
    return F / F.sum()


def V(theta_bar: Array, x: Array, xi: Array, dro: Any, loss: Loss = U) -> Any:
    """defn:v_delta, with N the number of points there are."""
    return dro.delta * (log_sum(theta_bar, x, xi, dro, loss) - np.log(len(xi)))


def regulariser(theta_bar: Array, dro: Any) -> Any:
    return dro.eta1 / 2 * (theta_bar[:-1] ** 2).sum() + dro.eta2 / 2 * iota(theta_bar[-1]) ** 2


def V_tilde(theta_bar: Array, x: Array, xi: Array, dro: Any, loss: Loss = U) -> Any:
    """defn:small_v_delta_discrete."""
    return V(theta_bar, x, xi, dro, loss) + regulariser(theta_bar, dro)


def V_tilde_max(theta_bar: Array, x: Array, xi: Array, dro: Any, loss: Loss = U) -> Any:
    """defn:small_v_discrete."""
    return values(theta_bar, x, xi, dro, loss).max() + regulariser(theta_bar, dro)


def H(theta_bar: Array, x: Array, xi: Array, dro: Any, loss: Loss = U, gradient: Loss = grad_U) -> Array:
    """defn:grad_v_delta, (d+1,)."""
    theta, alpha = theta_bar[:-1], theta_bar[-1]
    cost = np.linalg.norm(x - xi, axis=1) ** dro.p
    exponent = (loss(theta, xi) - iota(alpha) * cost) / dro.delta
    F = np.exp(exponent - exponent.max())
    along_theta = dro.eta1 * theta + F @ gradient(theta, xi) / F.sum()
    along_alpha = dro.eta2 * iota(alpha) * np.tanh(alpha) - np.tanh(alpha) * (F @ cost) / F.sum()
    return np.append(along_theta, along_alpha)


def update(state: Array, gradient: Array, noise: Array, step_size: float, beta: float) -> Array:
    """eqn:sgld."""
    return state - step_size * gradient + np.sqrt(2 * step_size / beta) * noise


def robust_path(
    train: Array, theta_bar: Array, indices: Array, noise: Array, xi: Array, dro: Any, step_size: float, beta: float
) -> Array:
    """Robust SGLD, one run: the state after every update, (n, d+1)."""
    path = []
    for i, z in zip(indices, noise, strict=True):
        theta_bar = update(theta_bar, H(theta_bar, train[i], xi, dro), z, step_size, beta)
        path.append(theta_bar)
    return np.array(path)


def plain_path(train: Array, theta: Array, indices: Array, noise: Array, step_size: float, beta: float) -> Array:
    """SGLD on U itself, one run, (n, d)."""
    path = []
    for i, z in zip(indices, noise, strict=True):
        theta = update(theta, grad_U(theta, train[i]), z, step_size, beta)
        path.append(theta)
    return np.array(path)


def mean_losses(path: Array, rows: Array) -> Array:
    """The mean of U over the rows after every update, (n,)."""
    return np.array([U(theta, rows).mean() for theta in path])


def hitting_time(losses: Array, reference: float, tolerance: float) -> int | None:
    """The first n, from 1, with (1-tolerance)·reference < loss < (1+tolerance)·reference."""
    for n, loss in enumerate(losses, start=1):
        if (1 - tolerance) * reference < loss < (1 + tolerance) * reference:
            return n
    return None
