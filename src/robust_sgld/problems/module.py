"""Your own model: a torch module with a per-sample loss as U."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from robust_sgld.checks import InvalidInput
from robust_sgld.problems.base import Problem

if TYPE_CHECKING:
    from torch import Tensor, nn


class ModuleProblem(Problem):
    """U(θ, (z, y)) = loss(f_θ(z), y), f a torch module and θ all its parameters, flattened in their order.

    The module maps (n, m-1) to (n,) or (n, 1); `loss` maps predictions and targets (n,) to one number each. The module
    is copied, in float64 and in evaluation mode, and its own parameter values are not used: a start is `theta0`, and
    `initial_theta` gives the module's as one.

    Whether the paper's assumptions hold depends on the module: a network whose last layer is linear has a gradient
    that is not bounded in θ, so that assumption:1 fails. `theory.check_assumptions` looks for witnesses.
    """

    def __init__(
        self, module: nn.Module, dim: int, loss: Callable[[Tensor, Tensor], Tensor] | None = None, name: str = ""
    ):
        import torch

        if not isinstance(module, torch.nn.Module):
            raise InvalidInput(f"module must be a torch.nn.Module, got {type(module).__name__}.")
        self.module = copy.deepcopy(module).double().eval().requires_grad_(False)
        self.loss = torch.nn.MSELoss(reduction="none") if loss is None else loss
        self.name = name or type(module).__name__
        self._shapes = {key: value.shape for key, value in self.module.named_parameters()}
        super().__init__(dim, sum(shape.numel() for shape in self._shapes.values()))
        self._check()

    def _check(self) -> None:
        import torch

        theta, x = torch.zeros(self.n_params, dtype=torch.float64), torch.zeros(3, self.dim, dtype=torch.float64)
        for what, function in (("module", self.predict), ("loss", self._losses)):
            try:
                values = function(theta, x)
            except (RuntimeError, ValueError, TypeError) as error:
                reason = str(error).splitlines()[0]
                raise InvalidInput(f"{self!r}: the {what} fails on rows of {self.dim - 1} inputs: {reason}") from None
            if not isinstance(values, torch.Tensor) or values.shape != (3,):
                got = tuple(values.shape) if isinstance(values, torch.Tensor) else type(values).__name__
                raise InvalidInput(
                    f"{self!r}: the {what} must give one number a row, (3,) for 3 rows, got {got}"
                    + ("; torch's losses need reduction='none'." if what == "loss" else ".")
                )

    def initial_theta(self) -> list[float]:
        """The module's own parameter values, as a start."""
        return [float(v) for value in self.module.parameters() for v in value.flatten()]

    def guess(self) -> np.ndarray:
        """Random, but always the same: at 0 a network's hidden units are all alike and stay so."""
        return np.random.default_rng(0).normal(scale=0.5, size=self.n_params)

    def predict(self, theta: Tensor, x: Tensor) -> Tensor:
        """f_θ(z) for one θ (d,) and rows x (n, m); the last column is not read."""
        from torch.func import functional_call

        parameters, start = {}, 0
        for key, shape in self._shapes.items():
            parameters[key] = theta[start : start + shape.numel()].reshape(shape)
            start += shape.numel()
        prediction = functional_call(self.module, parameters, (x[..., :-1],))
        return prediction.squeeze(-1) if prediction.ndim == x.ndim else prediction

    def _losses(self, theta: Tensor, x: Tensor) -> Tensor:
        """U at one θ (d,) and rows x (n, m)."""
        return self.loss(self.predict(theta, x), x[..., -1])

    def U(self, theta: Tensor, x: Tensor) -> Tensor:
        return self._over_pairs(self._losses, theta, x)

    def grad(self, theta: Tensor, x: Tensor) -> Tensor:
        from torch.func import grad, vmap

        def at_row(theta: Tensor, row: Tensor) -> Tensor:
            return self._losses(theta, row[None])[0]

        return self._over_pairs(vmap(grad(at_row), in_dims=(None, 0)), theta.detach(), x.detach())

    def _over_pairs(self, function: Callable[[Tensor, Tensor], Tensor], theta: Tensor, x: Tensor) -> Tensor:
        """A function of one θ (d,) and rows (n, m), over batches that broadcast.

        Rows that share a θ go through the module together and one θ after the other, so that the numbers of one do not
        depend on how many there are.
        """
        import torch

        shape = torch.broadcast_shapes(theta.shape[:-1], x.shape[:-1])
        if not shape:
            return function(theta, x[None])[0]
        if theta.ndim == 1 or theta.shape[-2] == 1:  # one θ for each group of rows
            groups = theta.expand(*shape[:-1], 1, self.n_params).reshape(-1, self.n_params)
            rows = x.expand(*shape, self.dim).reshape(len(groups), -1, self.dim)
            values = torch.stack([function(t, r) for t, r in zip(groups, rows, strict=True)])
        else:
            pairs = theta.expand(*shape, self.n_params).reshape(-1, self.n_params)
            values = torch.func.vmap(function)(pairs, x.expand(*shape, self.dim).reshape(-1, 1, self.dim))
        return values.reshape(*shape, *values.shape[2:])

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name}, dim={self.dim})"
