"""A torch module as U: against its formula written out, against autograd, in every shape, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

import robust_sgld as rs
from robust_sgld.checks import InvalidInput
from robust_sgld.problems.base import Problem


def formula(theta: np.ndarray, x: np.ndarray, hidden: int) -> float:
    """(y - σ(c·tanh(Az+a) + b))², θ = (A, a, c, b)."""
    k = len(x) - 1
    A, a = theta[: hidden * k].reshape(hidden, k), theta[hidden * k : hidden * (k + 1)]
    c, b = theta[hidden * (k + 1) : -1], theta[-1]
    return (x[-1] - 1 / (1 + np.exp(-(c @ np.tanh(A @ x[:-1] + a) + b)))) ** 2


@pytest.fixture
def network() -> rs.TwoLayerNetwork:
    return rs.TwoLayerNetwork(dim=3, hidden=4)


@pytest.mark.parametrize(
    ("of_theta", "of_x"),
    [((), ()), ((5,), (5,)), ((2, 1), (6,)), ((), (6,)), ((5,), ()), ((2, 1), (2, 6)), ((3, 4), (4,))],
)
def test_values_are_the_formula_in_every_shape(network, of_theta, of_x, rng):
    theta = rng.normal(size=(*of_theta, network.n_params))
    x = rng.uniform(-1, 1, size=(*of_x, 3))
    shape = np.broadcast_shapes(of_theta, of_x)
    got = network.U(torch.tensor(theta), torch.tensor(x)).numpy()
    assert got.shape == shape
    for index in np.ndindex(*shape):
        t = np.broadcast_to(theta, (*shape, network.n_params))[index]
        row = np.broadcast_to(x, (*shape, 3))[index]
        assert got[index] == pytest.approx(formula(t, row, 4), rel=1e-13)


@pytest.mark.parametrize("shared", [True, False])
def test_gradients_are_those_of_autograd(network, shared, rng):
    theta = torch.tensor(rng.normal(size=(4, 1 if shared else 7, network.n_params)))
    x = torch.tensor(rng.uniform(-1, 1, size=(7, 3)))
    leaf = theta.expand(4, 7, network.n_params).clone().requires_grad_(True)
    A, a = leaf[..., :8].reshape(4, 7, 4, 2), leaf[..., 8:12]
    inner = torch.tanh((A * x[:, None, :-1]).sum(-1) + a)
    total = ((x[:, -1] - ((leaf[..., 12:16] * inner).sum(-1) + leaf[..., 16]).sigmoid()) ** 2).sum()
    (expected,) = torch.autograd.grad(total, leaf)
    torch.testing.assert_close(network.grad(theta, x), expected, rtol=1e-12, atol=1e-14)


def test_the_parameters_are_the_modules_in_its_order():
    module = nn.Linear(2, 1)
    problem = rs.ModuleProblem(module, dim=3)
    start = torch.tensor(problem.initial_theta(), dtype=torch.float64)
    x = torch.randn(5, 3, dtype=torch.float64)
    torch.testing.assert_close(problem.predict(start, x), module.double()(x[:, :-1]).squeeze(-1).detach())


def test_another_loss_is_used():
    problem = rs.ModuleProblem(nn.Linear(2, 1), dim=3, loss=nn.HuberLoss(reduction="none", delta=0.5))
    x = torch.tensor([[0.0, 0.0, 3.0], [0.0, 0.0, 0.1]], dtype=torch.float64)
    zero = torch.zeros(3, dtype=torch.float64)
    assert problem.U(zero, x).tolist() == pytest.approx([0.5 * (3 - 0.25), 0.005])


def test_the_users_module_is_left_alone():
    module = nn.Linear(2, 1)
    rs.ModuleProblem(module, dim=3)
    assert module.training
    assert all(p.requires_grad and p.dtype == torch.float32 for p in module.parameters())


@pytest.mark.parametrize(
    ("module", "loss", "message"),
    [
        (nn.Linear(3, 1), None, "the module fails on rows of 2 inputs"),
        (nn.Linear(2, 1), nn.MSELoss(), "reduction='none'"),
        (nn.Linear(2, 2), None, "the module must give one number a row"),
        (nn.Identity(), None, "n_params must be"),
        ("linear", None, "must be a torch.nn.Module, got str"),
    ],
)
def test_a_module_that_does_not_fit_is_refused(module, loss, message):
    with pytest.raises(InvalidInput, match=message):
        rs.ModuleProblem(module, dim=3, loss=loss)


def test_a_chain_on_a_network_does_not_depend_on_its_company(network):
    data = rs.contaminated_dataset(theta_star=(0.5, -0.5, 0.1), n_train=50, n_test=20)
    sampler = rs.RobustSGLD(network, rs.DRO(eta2=0.5), engine="dense")
    theta0 = np.append(np.random.default_rng(3).normal(size=network.n_params), 1.0)
    indices, noise = rs.draws(0, 3, 5, 50, network.n_params + 1)
    together = sampler.run(data.train, theta0, indices, noise)
    alone = sampler.run(data.train, theta0, indices[1:2], noise[1:2])
    np.testing.assert_array_equal(together[1], alone[0])


def test_it_is_a_problem_like_any_other(network):
    assert isinstance(network, Problem)
    assert network.n_params == 4 * 4 + 1
    with pytest.raises(InvalidInput, match="does not declare its constants"):
        network.constants((-3.0, 3.0))
