"""An example of a model of one's own: a network with one hidden layer."""

from __future__ import annotations

from robust_sgld.checks import integer
from robust_sgld.problems.module import ModuleProblem


class TwoLayerNetwork(ModuleProblem):
    """U(θ, (z, y)) = (y - σ(c·tanh(Az+a) + b))², θ = (A, a, c, b); d = hidden·(m+1) + 1.

    Both activations are bounded with bounded derivatives and the target's support is compact, so U is bounded; but
    ∂U/∂A holds the factor c, so ∇_θU is not bounded in θ and the paper's assumption:1 fails. It can be run; the
    theorem says nothing about it.
    """

    def __init__(self, dim: int = 3, hidden: int = 3):
        from torch import nn

        dim = integer("dim (z and y together)", dim, least=2)
        self.hidden = integer("hidden", hidden, least=1)
        network = nn.Sequential(nn.Linear(dim - 1, hidden), nn.Tanh(), nn.Linear(hidden, 1), nn.Sigmoid())
        super().__init__(network, dim, name=f"hidden={hidden}")
