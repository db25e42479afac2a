"""The worst case: a saddle point, read off a literal maximisation, split at ties."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import robust_sgld as rs
from robust_sgld.theory import WorstCase, before_and_after, worst_case
from tests import literal
from tests.theory_problems import SMALL, Wave, small_rows, wave_U


def dataset(rng: np.random.Generator) -> rs.Dataset:
    return rs.Dataset(small_rows(rng), small_rows(rng, 11))


@given(
    seed=st.integers(0, 2**32 - 1),
    eta2=st.floats(0.01, 10),
    p=st.sampled_from([1.0, 2.0, 3.0]),
    scale=st.floats(0.1, 5),
)
@settings(max_examples=40)
def test_it_attains_the_supremum(seed: int, eta2: float, p: float, scale: float) -> None:
    """∫U dμ* - T²/(2η2) + η1|θ|²/2 = u^{ℓ,j}(θ) and T = η2𝔞 (unless 𝔞 = 0), and no other distribution does better."""
    rng = np.random.default_rng(seed)
    dro = replace(SMALL, eta2=eta2, p=p)
    data, theta = dataset(rng), scale * rng.standard_normal(2)
    case = worst_case(Wave(), dro, theta, data)
    # places within 1e-9 count as tied, so the loss is right to 1e-9
    assert case.value == pytest.approx(case.robust.value, abs=1e-8)
    assert case.transport_cost == pytest.approx(eta2 * case.a, abs=1e-7)
    assert case.mass.sum() == pytest.approx(1.0, abs=1e-12)

    grid = dro.grid(2)
    atoms, weights = grid.measure(data.train)
    for atom, weight in zip(atoms, weights, strict=True):
        assert case.mass[(case.source == atom).all(axis=1)].sum() == pytest.approx(weight, abs=1e-12)
    xi = grid.points()
    cost = np.linalg.norm(atoms[:, None] - xi, axis=2) ** p
    for coupling in rng.dirichlet(np.full(len(xi), 0.05), (50, len(atoms))):
        coupling *= weights[:, None]
        transport = (coupling * cost).sum()
        value = coupling.sum(axis=0) @ wave_U(theta, xi) - transport**2 / (2 * eta2) + case.regulariser
        assert value <= case.value + 1e-8


def test_at_a_given_dual_variable_each_atom_goes_to_its_maximum(rng: np.random.Generator) -> None:
    data, theta, a = dataset(rng), np.array([2.0, -1.3]), 0.4
    case = worst_case(Wave(), SMALL, theta, data, a)
    xi = literal.grid(2, SMALL.ell, SMALL.j, SMALL.support)
    at = literal.floored(data.train, SMALL.ell, SMALL.j)
    places = np.array([xi[(wave_U(theta, xi) - a * ((x - xi) ** 2).sum(1)).argmax()] for x in at])
    assert case.loss == pytest.approx(wave_U(theta, places).mean(), rel=1e-12)
    assert case.transport_cost == pytest.approx(((places - at) ** 2).sum(1).mean(), rel=1e-12)
    assert case.moved == pytest.approx((places != at).any(1).mean(), rel=1e-12)
    assert case.value < case.robust.value


def test_losses_are_those_of_the_data(rng: np.random.Generator) -> None:
    data, theta = dataset(rng), np.array([0.5, 1.0])
    case = worst_case(Wave(), SMALL, theta, data)
    assert case.empirical_loss == pytest.approx(wave_U(theta, data.train).mean(), rel=1e-12)
    assert case.clean_loss == pytest.approx(wave_U(theta, data.test).mean(), rel=1e-12)
    floored = literal.floored(data.train, SMALL.ell, SMALL.j)
    assert case.floored_loss == pytest.approx(wave_U(theta, floored).mean(), rel=1e-12)
    assert case.loss >= case.floored_loss
    assert case.to_dict()["worst_case_loss"] == case.loss


class Bowl(rs.Problem):
    """U = |x|² whatever θ: from 0 every corner of a square is as good as the others."""

    def U(self, theta: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        return (x**2).sum(-1) + 0 * theta.sum(-1)


def at_zero(eta2: float, a: float | None) -> WorstCase:
    dro = rs.DRO(eta1=1.0, eta2=eta2, ell=2, j=0, support=(-1.0, 1.0))
    return worst_case(Bowl(2, 2), dro, np.zeros(2), rs.Dataset(np.zeros((1, 2)), np.zeros((1, 2))), a)


def test_places_at_the_same_cost_get_equal_parts() -> None:
    """At 𝔞 < 1 the four corners, each at cost 2 and worth 2-2𝔞, are best."""
    case = at_zero(1.0, 0.5)
    assert sorted(map(tuple, case.target)) == [(-1, -1), (-1, 1), (1, -1), (1, 1)]
    assert case.mass == pytest.approx(np.full(4, 0.25))


def test_a_tie_between_costs_is_split_to_the_right_transport_cost() -> None:
    """At 𝔞 = 1 staying, moving one axis and moving both are worth the same; η2𝔞 decides how much moves.

    The dual is max{2-2𝔞, 0} + η2𝔞²/2 with minimiser 1 for η2 ≤ 2, so T = η2: half the mass goes to the corners at 1.
    """
    case = at_zero(1.0, None)
    assert case.a == pytest.approx(1.0, abs=1e-12)
    assert case.transport_cost == pytest.approx(1.0, abs=1e-9)
    assert case.mass[(case.target == 0).all(axis=1)].sum() == pytest.approx(0.5, abs=1e-9)
    assert case.value == pytest.approx(0.5, abs=1e-9)  # 1 - 1²/2
    quarter = at_zero(0.5, None)
    assert quarter.transport_cost == pytest.approx(0.5, abs=1e-9)


def test_a_negative_dual_variable_is_refused() -> None:
    with pytest.raises(rs.InvalidInput, match="a must not be negative"):
        at_zero(1.0, -0.1)


def test_the_published_problem(paper: rs.Dataset, problem: rs.SigmoidRegression) -> None:
    """At θ* the adversary attains the robust value, at a loss far above the clean one (0.005014, as printed)."""
    assert paper.theta_star is not None
    case = worst_case(problem, rs.DRO(), paper.theta_star, paper)
    assert case.value == pytest.approx(case.robust.value, rel=1e-9)
    assert case.clean_loss == pytest.approx(0.005014, abs=5e-7)
    assert case.clean_loss < case.empirical_loss < case.robust.value < case.loss


def test_before_and_after(rng: np.random.Generator) -> None:
    data, theta = dataset(rng), np.array([2.0, 1.0])
    case = worst_case(Wave(), SMALL, theta, data)
    picture = before_and_after(case, SMALL, data.columns)
    assert picture.columns == ("z1", "y")
    at = literal.floored(data.train, SMALL.ell, SMALL.j)
    for i in range(2):
        counted = [(at[:, i] == place).mean() for place in picture.axis]
        assert picture.before[i] == pytest.approx(counted, abs=1e-12)
        assert picture.after[i] @ picture.axis == pytest.approx(case.mass @ case.target[:, i], abs=1e-12)
    assert picture.displacement == pytest.approx(case.mass @ np.abs(case.target - case.source), abs=1e-12)
    for joint, alone in ((picture.before_joint, picture.before), (picture.after_joint, picture.after)):
        assert joint.shape == (1, 6, 6)
        assert joint[0].sum(axis=1) == pytest.approx(alone[0], abs=1e-12)
        assert joint[0].sum(axis=0) == pytest.approx(alone[1], abs=1e-12)
