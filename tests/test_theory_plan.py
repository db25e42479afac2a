"""What the plan says: in words, in a table, as JSON."""

from __future__ import annotations

import json

import pytest

import robust_sgld as rs
from robust_sgld.theory import PlanReport, plan_report
from tests.theory_problems import SMALL, Wave


@pytest.fixture(scope="module")
def published() -> PlanReport:
    return plan_report(rs.SigmoidRegression(4), rs.DRO(), 0.01, 1e9, 25_000, -2.0, epsilon=0.1)


def test_the_published_step_size_is_outside_by_17_orders(published: PlanReport) -> None:
    assert not published.step_inside
    assert "outside" in published.step_sentence()
    assert "17 orders of magnitude" in published.step_sentence()
    assert "does not apply" in published.bound_sentence()


def test_a_step_size_inside_is_said_to_be() -> None:
    report = plan_report(rs.SigmoidRegression(4), rs.DRO(), 1e-20, 1e9, 10, 0.0)
    assert report.step_inside
    assert "theorem applies" in report.step_sentence()
    assert "does not apply" not in report.bound_sentence()
    assert report.algorithm1 is None
    assert report.feasibility_sentence() == ""
    just_out = plan_report(rs.SigmoidRegression(4), rs.DRO(), 3e-20, 1e9, 10, 0.0)
    assert "too large by a factor 2.03" in just_out.step_sentence()


def test_bound_of_the_published_run(published: PlanReport) -> None:
    terms = {term.name: term for term in published.bound.terms}
    assert float(terms["smoothing"].value) == pytest.approx(1.109035, abs=5e-7)
    assert float(terms["quadrature"].value) == pytest.approx(1.374310e8, rel=5e-7)
    assert float(terms["moments"].value) == pytest.approx(2.377570e11, rel=5e-7)
    assert published.bound.dominating.name in {"convergence", "step"}
    assert published.bound.dominating_printed.name == "moments"
    assert "larger j" in published.bound_sentence()


def test_text_holds_everything(published: PlanReport) -> None:
    text = published.text()
    for entry in published.constants:
        assert entry.symbol in text
        assert entry.formula in text
    for word in ("1.476787e-20", "order of magnitude only", "no machine can run it", "5.9028e+28", "28.7711", "log10"):
        assert word in text
    assert all(len(line) == len(line.rstrip()) for line in text.splitlines())


def test_json_round_trip(published: PlanReport) -> None:
    stored = json.loads(json.dumps(published.to_dict(), allow_nan=False))
    assert stored["constants"]["step_max"]["value"] == pytest.approx(1.4767874e-20, rel=1e-7, abs=0)
    assert stored["constants"]["C1"]["value"] is None
    assert stored["constants"]["C1"]["status"] == "reconstructed, order of magnitude only"
    assert stored["step_size"]["inside"] is False
    assert stored["step_size"]["ratio"]["log10"] == pytest.approx(17.83, abs=0.01)
    assert stored["algorithm1"]["j"] == 55
    assert stored["algorithm1"]["n_iter"]["log10"] == pytest.approx(5.9028e28, rel=1e-4)
    assert all(inequality["holds"] for inequality in stored["algorithm1"]["inequalities"])
    assert stored["assumptions"]["sampled"]["J_U"]["declared"] == 28


def test_a_plan_that_can_be_run_says_so() -> None:
    """With a huge ε and a mild problem Algorithm 1 is within reach."""
    report = plan_report(Wave(), SMALL, 1e-9, 1.0, 10, 0.0, epsilon=1e9)
    assert "that can be run" in report.feasibility_sentence()


def test_constants_that_a_sample_contradicts_have_no_plan() -> None:
    with pytest.raises(rs.InvalidInput, match=r"K_nabla = 1\.5"):
        plan_report(Wave(K_nabla=1.5), SMALL, 0.01, 1.0, 10, 0.0)


@pytest.mark.parametrize(
    ("change", "word"), [({"step_size": 0.0}, "step_size"), ({"n_iter": 0}, "n_iter"), ({"beta": -1.0}, "beta")]
)
def test_settings_are_checked(change: dict[str, float], word: str) -> None:
    settings = {"step_size": 0.01, "beta": 1.0, "n_iter": 10, "theta0": 0.0} | change
    with pytest.raises(rs.InvalidInput, match=word):
        plan_report(Wave(), SMALL, **settings)  # type: ignore[arg-type]
