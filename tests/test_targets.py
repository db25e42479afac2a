"""Torch modules by `_target_`, nested in a problem's node: built as written, and nothing else can be named."""

from __future__ import annotations

import pytest
import torch

from pipelines.targets import call_target
from robust_sgld.checks import InvalidInput

MODULE = "robust_sgld.problems.ModuleProblem"


class Slope(torch.nn.Module):
    """A model of one's own: y = a z1."""

    def __init__(self, start: float = 1.0):
        super().__init__()
        self.a = torch.nn.Parameter(torch.tensor([start]))

    def forward(self, z):
        return self.a * z[..., 0]


def built(module: object, *allow: str, **more: object):
    return call_target("problem", {"_target_": MODULE, "module": module, **more}, ("robust_sgld", *allow), dim=3)


def test_a_network_is_built_as_it_is_written():
    layers = [
        {"_target_": "torch.nn.Linear", "in_features": 2, "out_features": 4},
        {"_target_": "torch.nn.Tanh"},
        {"_target_": "torch.nn.Linear", "_args_": [4, 1]},
    ]
    loss = {"_target_": "torch.nn.HuberLoss", "reduction": "none", "delta": 0.5}
    problem = built({"_target_": "torch.nn.Sequential", "_args_": layers}, loss=loss)
    assert problem.n_params == 2 * 4 + 4 + 4 + 1
    assert isinstance(problem.loss, torch.nn.HuberLoss)
    assert [type(layer) for layer in problem.module] == [torch.nn.Linear, torch.nn.Tanh, torch.nn.Linear]


def test_a_module_of_ones_own_needs_its_package_allowed():
    node = {"_target_": "tests.test_targets.Slope", "start": 2.0}
    with pytest.raises(
        InvalidInput, match=r"module\._target_ must name a torch module of torch\.nn or robust_sgld, got"
    ):
        built(node)
    assert built(node, "tests").initial_theta() == [2.0]


@pytest.mark.parametrize(
    ("module", "message"),
    [
        ({"_target_": "os.system", "command": "true"}, "must name a torch module of torch.nn"),
        ({"_target_": "torch.nn.modules.module.torch.load"}, "must name a torch module of torch.nn"),
        ({"_target_": "torch.hub.load"}, "must name a torch module of torch.nn"),
        ({"_target_": "torch.nn.Parameter"}, "must name a torch module, and"),
        ({"_target_": "torch.nn.Nothing"}, "does not exist"),
        ({"_target_": 3}, "must name a torch module of torch.nn"),
        ({"_target_": "torch.nn.Linear"}, "torch.nn.Linear cannot be made: .*in_features"),
        ({"_target_": "torch.nn.Sequential", "_args_": [{"_target_": "os.system"}]}, r"module\._args_\[0\]\._target_"),
    ],
)
def test_nothing_else_can_be_named(module, message):
    with pytest.raises(InvalidInput, match=message):
        built(module)
