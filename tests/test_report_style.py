"""Colours: one for each sampler and η₂, ordered, readable on white and on a dark page."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest

from robust_sgld.report.style import ETA2_COLORS, INK, PAPER, VANILLA, contrast, luminance, on_dark, trial_color

ETA2 = sorted({*np.geomspace(1e-3, 40, 200), *np.arange(0.1, 5, 0.1).round(1), *ETA2_COLORS})


def test_luminance_and_contrast_of_known_colours() -> None:
    assert luminance("#ffffff") == pytest.approx(1.0)
    assert contrast("#ffffff", "#000000") == pytest.approx(21.0)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.005)  # the usual example of WCAG


def test_colours_are_hexadecimal_and_depend_on_their_arguments_alone() -> None:
    for color in (trial_color("sgld", None), trial_color("robust_sgld", 0.37), trial_color("other", 1.0, "q=0.1")):
        assert re.fullmatch("#[0-9a-f]{6}", color)
    assert trial_color("robust_sgld", 1) == trial_color("robust_sgld", 1.0) == ETA2_COLORS[1.0]
    assert trial_color("sgld", None) == VANILLA


def test_no_two_trials_of_any_sweep_share_a_colour() -> None:
    rates = [f"q={q / 20:g}" for q in range(11)] + [f"δ={delta}" for delta in (0.01, 0.03, 0.05, 0.3)] + ["j=0", "j=2"]
    colors = [trial_color("robust_sgld", eta2) for eta2 in ETA2] + [trial_color("sgld", None)]
    methods = [("robust_sgld", 0.5), ("robust_sgld", 1.0), ("robust_sgld", 2.0), ("sgld", None), ("another", 1.0)]
    colors += [trial_color(sampler, eta2, rate) for (sampler, eta2), rate in itertools.product(methods, rates)]
    assert len(set(colors)) == len(colors)


def test_the_papers_eta2_are_ordered_by_lightness() -> None:
    # a step of a seventh in luminance ratio is well above what an eye needs to order two patches
    light = [luminance(ETA2_COLORS[eta2]) + 0.05 for eta2 in sorted(ETA2_COLORS)]
    assert all(a / b > 8 / 7 for a, b in itertools.pairwise(light))


def test_vanilla_differs_from_every_eta2_for_colour_blind_eyes() -> None:
    # Without the red-green channel a colour is its luminance and its yellow-blue balance.
    def seen(color: str) -> np.ndarray:
        r, g, b = (int(color[i : i + 2], 16) / 255 for i in (1, 3, 5))
        return np.array([luminance(color) ** (1 / 2.4), (r + g) / 2 - b])

    distance = [np.abs(seen(VANILLA) - seen(color)).max() for color in ETA2_COLORS.values()]
    assert min(distance) > 0.05


def test_lines_are_readable_on_both_pages() -> None:
    # 2.4 on white is enough for a thick line beside darker ones; text needs 4.5
    for color in [*ETA2_COLORS.values(), VANILLA]:
        assert contrast(color, PAPER) > 2.4
        assert contrast(on_dark(color), on_dark(PAPER)) > 4.4
    assert contrast(on_dark(INK), on_dark(PAPER)) > 10
    assert len({on_dark(color) for color in ETA2_COLORS.values()}) == len(ETA2_COLORS)
