"""Table 2: the paper's rule on trials with known hitting times, misses and ties; the verdict and its bootstrap."""

from __future__ import annotations

import math

import numpy as np
import pytest

from robust_sgld.report import published, table2, words
from robust_sgld.report.agreement import REPLICATES, judge, repetitions
from robust_sgld.report.table2 import entry
from tests.report_samples import REFERENCE, made_up

N_ITER = published.N_ITER


def test_n_es_is_the_largest_and_time_and_loss_are_of_that_run() -> None:
    found = entry(made_up((120, 800, 100)).result)
    # run 1 took 2 s for 25 000 updates, and its loss is the reference plus 1e-6
    assert found.n_es == 800
    assert found.run == 1
    assert found.seconds_to_n_es == pytest.approx(2.0 * 800 / 25_000, rel=1e-15)
    assert found.loss == REFERENCE + 1e-6


def test_of_several_runs_with_the_largest_n_es_the_first_is_taken() -> None:
    assert entry(made_up((100, 800, 800, 5)).result).run == 1


def test_one_miss_makes_na_and_the_loss_is_the_closest_of_those_that_missed() -> None:
    closest = np.array([REFERENCE, 0.0060, 0.0049, 0.0053])  # run 0 hit and must not count
    found = entry(made_up((100, 0, 0, 0), closest_loss=closest).result)
    assert found.n_es is None
    assert found.seconds_to_n_es is None
    assert found.loss == 0.0049  # 1.1e-4 below the reference, closer than 2.9e-4 above it


def test_a_run_that_diverged_at_once_has_no_closest_loss() -> None:
    found = entry(made_up((0, 0), closest_loss=np.array([np.nan, 0.0052])).result)
    assert found.loss == 0.0052


def test_a_hit_at_the_last_update_counts() -> None:
    assert entry(made_up((N_ITER, 5)).result).n_es == N_ITER


def test_the_printed_rows_come_in_the_papers_order_with_what_was_run() -> None:
    records = table2.records([made_up(range(1, 101), eta2=2.0)])
    assert [r["paper_n_es"] for r in records[:7]] == [None, None, 20353, 4044, 2795, 2427, None]
    assert [r["verdict"] for r in records[:7]] == ["not run"] * 5 + ["differs", "not run"]
    ours = records[5]
    assert (ours["n_es"], ours["seconds_per_run"], ours["seconds_per_run_amortised"]) == (100, 50.5, 3.0)
    assert math.isnan(records[0]["n_es"])
    assert records[7]["loss"] == REFERENCE
    assert records[7]["paper_loss"] == published.REFERENCE


def test_na_and_not_run_read_differently() -> None:
    rows = table2.comparison([made_up((1, 0), eta2=2.0)]).rows()
    assert rows[5][3] == "NA"
    assert rows[4][3] == "–"


def test_a_small_trial_is_not_judged() -> None:
    (record,) = [r for r in table2.records([made_up((1, 0, 2), n_iter=200, eta2=0.5)]) if r["runs"] == 3]
    assert record["verdict"] == "not judged"
    assert record["departures"] == "3 runs instead of 100; 200 updates instead of 25000"
    assert math.isnan(record["na_probability"])


def test_what_the_maximum_hides() -> None:
    (record,) = table2.spread_records([made_up((100, 300, 0, 200))])
    assert (record["reached"], record["runs"], record["n_es_median"], record["n_es_largest_hit"]) == (
        3,
        4,
        200.0,
        300.0,
    )
    # numpy's quantiles of (100, 200, 300) at 5 and 95 %: 100 + 0.1·100 and 300 - 0.1·100
    assert (record["n_es_q05"], record["n_es_q95"]) == pytest.approx((110.0, 290.0), rel=1e-12)
    assert record["inside_after_hit"] == 0.25


def test_no_run_that_reached_the_band_leaves_nothing_to_summarise() -> None:
    table = table2.hidden([made_up((0, 0))])
    assert table.rows()[0][1:5] == ["0/2", "–", "–", "–"]


def test_repetitions_of_equal_hitting_times_print_that_time() -> None:
    # through a logarithm and back: a relative error of a few ulp of log(700)
    assert repetitions(np.full(100, 700), N_ITER) == pytest.approx(700, rel=1e-14)


def test_repetitions_of_trials_that_always_miss_print_na() -> None:
    assert np.isinf(repetitions(np.zeros(100, dtype=int), N_ITER)).all()


def test_the_probability_of_na_is_that_of_drawing_twice() -> None:
    # One miss in R = 100: k ~ Binomial(R, 1/R) in the first draw, then NA unless 100 draws avoid it:
    # P = 1 - Σ_k Bin(k) (1 - k/R)^100. The share of 4 000 replicates has a standard error below 0.5/√4000 = 0.008.
    n_es = np.concatenate([np.full(99, 500), [0]])
    avoid = sum(math.comb(100, k) * 0.01**k * 0.99 ** (100 - k) * (1 - k / 100) ** 100 for k in range(101))
    found = np.isinf(repetitions(n_es, N_ITER)).mean()
    assert found == pytest.approx(1 - avoid, abs=4 * 0.008)


def test_repetitions_go_beyond_the_largest_run_seen() -> None:
    n_es = np.arange(1000, 1100)
    simulated = repetitions(n_es, N_ITER)
    assert len(simulated) == REPLICATES
    assert (simulated > n_es.max()).mean() > 0.1
    assert simulated.min() >= 1000 * (1 - 1e-14)


def test_a_maximum_beyond_the_last_update_is_na() -> None:
    n_es = np.concatenate([np.full(90, 1000), np.linspace(2000, 24_000, 10).astype(int)])
    assert np.isinf(repetitions(n_es, N_ITER)).mean() > 0.05


def test_the_interval_covers_the_maximum_of_another_trial() -> None:
    # 200 pairs of trials of one law with an exponential tail. The interval is of level 95 %; a fit to ten runs is
    # rough, so anything from 88 % is accepted: at a true coverage of 95 %, 25 or more of 200 outside has probability
    # 3e-5. A plain bootstrap covers at most about half: the other maximum is the larger one with probability 1/2.
    stream = np.random.default_rng(1)
    inside = 0
    for _ in range(200):
        ours, theirs = (2000 + stream.exponential(300, (2, 100))).astype(int)
        found = judge(ours, N_ITER, int(theirs.max()), comparable=True)
        inside += found.verdict == "agrees"
    assert inside >= 176


@pytest.mark.parametrize(
    ("missed", "printed", "verdict"),
    [
        (0, 1100, "agrees"),
        (0, 400, "differs"),  # earlier than any of ours
        (0, 9000, "differs"),  # far beyond the tail
        (0, None, "open"),  # one miss in their 100 is enough
        (1, None, "agrees"),
        (1, 1100, "agrees"),  # NA or a number is chance
        (50, None, "agrees"),
        (50, 1050, "differs"),  # a hundred runs without a miss have probability 2^-100
    ],
)
def test_verdicts(missed: int, printed: int | None, verdict: str) -> None:
    n_es = np.concatenate([np.arange(1000, 1100 - missed), np.zeros(missed, dtype=int)])
    assert judge(n_es, N_ITER, printed, comparable=True).verdict == verdict
    assert judge(n_es, N_ITER, printed, comparable=False).verdict == "not judged"


def test_words_count_the_verdicts() -> None:
    agreeing = made_up(2000 + np.arange(100) * 4, eta2=2.0)
    differing = made_up(range(1, 101), eta2=1.5)
    said = words.verdicts(table2.records([agreeing, differing]))
    assert said.startswith("Of the 7 methods of Table 2, 2 were run as in the paper; of these 1 agree, 1 differ")
    assert "η₂ = 1.5" in said
    assert words.verdicts(table2.records([made_up((1, 2), eta2=2.0)])).startswith("No row of Table 2 can be judged")


def test_words_name_the_rows_that_are_luck() -> None:
    n_es = np.concatenate([np.full(99, 3900), [0]])
    (said,) = words.luck(table2.records([made_up(n_es, eta2=0.5)]))
    assert "η₂ = 0.5 prints NA or a number is chance" in said
