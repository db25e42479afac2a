"""What the theory guarantees of a report's runs, what it does not, and how what was measured compares."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from robust_sgld.data import Dataset
from robust_sgld.dro import split
from robust_sgld.dual import DualObjective
from robust_sgld.problems import SigmoidRegression
from robust_sgld.report.displacement import dro_of
from robust_sgld.report.formats import scientific, share
from robust_sgld.report.theory_page import TrialTheory, moved_along_z
from robust_sgld.theory import LogNumber, dual_minimum, frontier_of, robust_value

RAW_ROWS = 1_000
"""of the training set, evenly spaced, over which the objective is minimised as the sampler sees it"""
FAR_ABOVE = 1_000
"""no loss on [-3, 3]^m exceeds 16"""


def sentences(found: Sequence[TrialTheory], data: Dataset) -> list[str]:
    """A paragraph each: the guarantee and the bound, the excess risk, smoothing, the grid, the adversary."""
    errors = [smoothing(found), quadrature(found)]
    paragraphs = [guarantee(found) + bound(found), excess(found, data), *errors, adversary(found)]
    return [" ".join(paragraph) for paragraph in paragraphs if paragraph]


def guarantee(found: Sequence[TrialTheory]) -> list[str]:
    """Whether the theorem applies."""
    ratios = [one.step_ratio for one in found if not math.isnan(one.step_ratio)]
    outside = [ratio for ratio in ratios if ratio >= 1]
    if not ratios:
        return []
    if not outside:
        return ["The convergence theorem applies to every robust trial here: λ lies below λ_max."]
    whom = "these runs" if len(outside) == len(ratios) else f"{len(outside)} of these {len(ratios)} trials"
    orders = math.floor(math.log10(max(outside)))
    far = f"more than {orders} orders of magnitude" if orders > 1 else f"a factor of {max(outside):.3g}"
    return [
        f"The convergence theorem guarantees nothing about {whom}: it asks for λ below λ_max, and λ is too large by "
        f"{far}. That does not say that the runs fail, only that the proof does not reach them."
    ]


def bound(found: Sequence[TrialTheory]) -> list[str]:
    """What the theorem's bound amounts to, whether or not it applies."""
    bounds = [one.bound for one in found if one.bound is not None]
    if not bounds:
        return []
    total = max(one.total for one in bounds)
    printed = max((one.dominating_printed for one in bounds), key=lambda term: term.value)
    text = (
        f"Its bound on the excess risk would be {_size(total)}, an order of magnitude only, because it rests on "
        f"constants that are reconstructed; of the terms whose constants the paper prints, {printed.formula} is the "
        f"largest, up to {_size(printed.value)}."
    )
    if printed.value > FAR_ABOVE:
        text += " No loss here is anywhere near such numbers: the bound is vacuous at these settings."
    return [text]


def _size(value: LogNumber) -> str:
    log10 = float(value.log10)
    return f"10^({log10:.1e})" if abs(log10) > 1e6 else f"10^{log10:.1f}" if abs(log10) > 3 else f"{10**log10:.3g}"


def excess(found: Sequence[TrialTheory], data: Dataset) -> list[str]:
    """How far the runs are from the smallest robust value, and what that distance is made of."""
    measured = [one for one in found if not math.isnan(one.metric("excess_risk"))]
    if not measured:
        return []
    low, high = (pick(measured, key=lambda one: one.metric("excess_risk")) for pick in (min, max))
    parts = [_relative(one) for one in dict.fromkeys([low, high])]
    text = "Measured, the excess risk of the last states is "
    text += parts[0] if len(parts) == 1 else f"between {parts[0]} and {parts[1]}"
    explained = [(one, one.state) for one in measured if one.state is not None]
    return [f"{text}. {_explained(*explained[len(explained) // 2], data)}" if explained else f"{text}."]


def _relative(one: TrialTheory) -> str:
    value, smallest = one.metric("excess_risk"), one.metric("smallest_robust_value")
    part = f", {share(value / smallest)} of the smallest robust value," if smallest > 0 else ""
    return f"{value:.3f}{part} at η₂ = {one.trial.eta2:g}"


@dataclass(frozen=True)
class Shares:
    """What the excess risk of a trial is made of; the three add up to it."""

    smoothing: float
    """u - inf u at the minimiser of v^{δ,ℓ,j}"""
    grid: float
    """what is added at the minimiser of ∫Ṽ^{δ,ℓ,j}dμ_0 over rows as they are, which is what the sampler sees"""
    sampler: float
    """what is left: step size, temperature, and updates that were too few"""


def shares(one: TrialTheory, state: np.ndarray, data: Dataset) -> Shares:
    """The excess risk of a trial that has it recorded, taken apart by minimising from a last state (d+1,)."""
    problem, dro = SigmoidRegression(data.dim), dro_of(one.trial)
    dual, frontier = DualObjective(problem, dro), frontier_of(problem, dro, data.train)
    rows = data.train[:: max(1, len(data.train) // RAW_ROWS)]
    raw = (rows, np.full(len(rows), 1 / len(rows)))
    smallest = one.metric("smallest_robust_value")
    at_floored, at_raw = (
        robust_value(frontier, split(found.theta_bar)[0]).value - smallest
        for found in (
            dual_minimum(dual, *measure, starts=0, known=state[None])
            for measure in ((frontier.atoms, frontier.weights), raw)
        )
    )
    return Shares(at_floored, at_raw - at_floored, one.metric("excess_risk") - at_raw)


def _explained(one: TrialTheory, state: np.ndarray, data: Dataset) -> str:
    parts = shares(one, state, data)
    total = one.metric("excess_risk")
    text = (
        f"At η₂ = {one.trial.eta2:g} the {total:.3f} is made of {parts.smoothing:.3f} for smoothing (the minimiser of "
        f"v has that much), {parts.grid:.3f} for the grid (added by the minimiser of the same objective over rows as "
        f"they are, which is what the sampler sees, while u is over floored rows) and {parts.sampler:.3f} for the "
        "sampler itself."
    )
    if parts.grid > 0.5 * total:
        text += " Most of the excess is the grid's, and no number of updates removes it."
    if abs(parts.sampler) < 0.1 * total:
        text += " The runs end about where the objective that they see is smallest."
    if one.case is not None:
        text += (
            f" Flooring alone takes the loss of that run's θ on the training data from {one.case.empirical_loss:.3f} "
            f"to {one.case.floored_loss:.3f}."
        )
    return text


def smoothing(found: Sequence[TrialTheory]) -> list[str]:
    """The smoothing error against its bound."""
    values = [one.values for one in found if one.values is not None]
    if not values:
        return []
    percent = [100 * one.smoothing_error / one.smoothing_bound for one in values]
    text = (
        f"The smoothing error is {_range([one.smoothing_error for one in values], '.3f')}, which is "
        f"{_range(percent, '.0f')} % of its bound δ log N = {values[0].smoothing_bound:.3f}."
    )
    if min(percent) > 80:
        text += (
            " The bound is nearly met because few of the N grid points carry weight; this lowers the level of v "
            "(Figure 1) and says little about where its minimum is."
        )
    return [text]


def quadrature(found: Sequence[TrialTheory]) -> list[str]:
    """The error of the grid, measured by refining it, against its bound."""
    measured = [one for one in found if not math.isnan(one.metric("quadrature_error"))]
    if not measured:
        return []
    errors = [one.metric("quadrature_error") for one in measured]
    finest = [max(one.values_by_mesh) for one in measured]
    own = [dro_of(one.trial).j for one in measured]
    parts = [100 * error / one.values_by_mesh[j] for error, one, j in zip(errors, measured, own, strict=True)]
    text = (
        f"Refining the grid from j = {_range(own, 'd')} to j = {_range(finest, 'd')} changes the robust value of the "
        f"mean last θ by {_range(errors, '.3f')}, {_range(parts, '.0f')} % of it"
    )
    bounds = [one.metric("quadrature_bound") for one in measured]
    if not math.isnan(sum(bounds)):
        orders = min(math.log10(limit / max(error, 1e-300)) for limit, error in zip(bounds, errors, strict=True))
        within = all(error <= limit for error, limit in zip(errors, bounds, strict=True))
        ends = dict.fromkeys(scientific(end) for end in (min(bounds), max(bounds)))
        text += f"; the bound allows {' to '.join(ends)}"
        text += f", at least {math.floor(orders)} orders of magnitude more" if within and orders >= 1 else ""
    text += "." + _falling(measured, own)
    recorded = [one.metric("excess_risk") for one in measured]
    if all(error > excess_risk for error, excess_risk in zip(errors, recorded, strict=True)):
        text += " In every trial that is more than the excess risk: the grid is the larger error."
    return [text]


def _falling(measured: Sequence[TrialTheory], own: Sequence[int]) -> str:
    """By which factor the error falls from the next coarser mesh; nothing where that was not computed."""
    factors = []
    for one, j in zip(measured, own, strict=True):
        values = one.values_by_mesh
        if j - 1 in values and (error := one.metric("quadrature_error")) > 0:
            factors.append(abs(values[j - 1] - values[max(values)]) / error)
    if len(factors) < len(measured):
        return ""
    return f" On the next coarser mesh it is {_range(factors, '.1f')} times as large."


def adversary(found: Sequence[TrialTheory]) -> list[str]:
    """What the worst case does to the data and to the loss."""
    known = [(one.trial.eta2, one.case) for one in found if one.case is not None]
    if not known:
        return []
    along_z = [100 * moved_along_z(case) for _, case in known]
    (eta2, case), most = known[-1], max(along_z)
    changes = f"z changes for {_range(along_z, '.2g')} % of the mass"
    if most <= 10 * max(case.moved for _, case in known):
        slope = float(np.linalg.norm(case.theta[:-1])) / 4
        text = "The adversary moves y alone" if most == 0 else f"The adversary moves y and hardly z ({changes})"
        text += f": a step of y changes the residual by its length, a step of z by at most |w|/4 = {slope:.2f} of it"
    else:
        text = f"The adversary moves both y and z ({changes})"
    text += (
        f". At η₂ = {eta2:g} it moves {share(case.moved)} of the mass and takes the mean loss from "
        f"{case.floored_loss:.3f} to {case.loss:.3f}; on clean test rows the same θ has {case.clean_loss:.4f}."
    )
    return [text]


def _range(values: Sequence[float] | Sequence[int], form: str) -> str:
    """ "0.1 to 0.3", or one number where both ends read the same."""
    return " to ".join(dict.fromkeys(format(end, form) for end in (min(values), max(values))))
