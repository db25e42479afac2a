"""The trials of a report: what is known of each, and which of them a table or figure is about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from robust_sgld.checks import InvalidInput
from robust_sgld.report import published
from robust_sgld.result import TrialResult

Setting = float | str | tuple[float, ...] | None
Method = tuple[str, float | None]
"""(sampler, eta2); eta2 is None for a sampler without a dual"""


@dataclass(frozen=True, eq=False)
class ReportTrial:
    """A finished trial and where it came from."""

    result: TrialResult
    params: dict[str, Any]
    """flat, by the keys of the configuration, e.g. "eta2", "data.q", "dro.delta"; numbers may come as text"""
    run_id: str
    run_name: str
    experiment: str
    data_digest: str
    metrics: Mapping[str, float] = field(default_factory=dict)
    """what was recorded of it as a whole, e.g. "excess_risk"; empty for a trial of an older store"""

    @property
    def has_dual(self) -> bool:
        """Whether its state is (θ, α)."""
        return self.result.states.shape[-1] > len(self.result.clean_minimiser)

    @property
    def eta2(self) -> float | None:
        """η₂, or None for a sampler that has none."""
        if not self.has_dual:
            return None
        value = self.setting("eta2")
        if not isinstance(value, float):
            raise InvalidInput(
                f"Trial {self.run_name!r} ({self.run_id}) is robust but has no number eta2, got {value!r}."
            )
        return value

    @property
    def method(self) -> Method:
        """What a row of Table 2 is about."""
        return self.result.sampler, self.eta2

    @property
    def label(self) -> str:
        """The method as a person reads it."""
        return method_label(*self.method)

    @property
    def runs(self) -> int:
        """R."""
        return len(self.result.runs)

    @property
    def is_sigmoid(self) -> bool:
        """Whether it is of the paper's problem, as far as is known."""
        return self.setting("problem.name") in (None, published.SETTINGS["problem.name"])

    @property
    def loss(self) -> str:
        """The loss as a person reads it, e.g. "Cauchy loss at scale 0.1"."""
        name, scale = str(self.setting("problem.name")), self.setting("problem.scale")
        words = {"CauchyLoss": "Cauchy loss", "PseudoHuberLoss": "pseudo-Huber loss", "QuantileLoss": "quantile loss"}
        return words.get(name, name) + (f" at scale {scale:g}" if isinstance(scale, float) else "")

    def setting(self, key: str) -> Setting:
        """One parameter in a form that can be compared, see `canonical`; None if it is not known."""
        return canonical(key, self.params.get(key))


def method_label(sampler: str, eta2: float | None) -> str:
    """ "robust SGLD, η₂ = 0.5", "vanilla SGLD"."""
    words = {"robust_sgld": "robust SGLD", "sgld": "vanilla SGLD"}.get(sampler, sampler)
    return words if eta2 is None else f"{words}, η₂ = {eta2:g}"


def canonical(key: str, value: Any) -> Setting:
    """A parameter as float, tuple of floats or text; a θ_0 of equal numbers (and α_0 = 0) is that number."""
    if value is None:
        return None
    if isinstance(value, str):
        items = value.strip("[]() ").split(",")
    else:
        items = list(value) if isinstance(value, Sequence) else [value]
    try:
        numbers = tuple(float(item) for item in items)
    except (TypeError, ValueError):
        return str(value)
    if key == "sampler.theta0" and len(numbers) > 1:
        theta = numbers[:-1] if numbers[-1] == 0 else numbers
        numbers = theta[:1] if len(set(theta)) == 1 else numbers
    return numbers[0] if len(numbers) == 1 else numbers


def relevant_settings(trial: ReportTrial) -> dict[str, Setting]:
    """The known settings, by the keys of tbl:params, that can change the trial's numbers; vanilla SGLD has no `dro`."""
    keys = [key for key in published.SETTINGS if trial.has_dual or not key.startswith("dro.")]
    return {key: value for key in keys if (value := trial.setting(key)) is not None}


def departures(trial: ReportTrial) -> list[str]:
    """In words, where the trial is not the published protocol; empty if it is. More than 100 runs are no departure."""
    result, found = trial.result, []
    if trial.data_digest != published.DATA_DIGEST:
        found.append("another data set")
    if trial.runs < published.RUNS:
        found.append(f"{trial.runs} run{'s' * (trial.runs != 1)} instead of {published.RUNS}")
    if result.n_iter != published.N_ITER:
        found.append(f"{result.n_iter} updates instead of {published.N_ITER}")
    if result.tolerance != published.TOLERANCE:
        found.append(f"a band of {result.tolerance:.3%} instead of 1 %")
    for key, value in relevant_settings(trial).items():
        if value != published.SETTINGS[key]:
            found.append(f"{key} = {show(value)} instead of {show(published.SETTINGS[key])}")
    return found


def show(value: Setting) -> str:
    """A setting as text."""
    if isinstance(value, tuple):
        return "[" + ", ".join(f"{number:g}" for number in value) + "]"
    return f"{value:g}" if isinstance(value, float) else str(value)


def best_of(trials: Sequence[ReportTrial]) -> ReportTrial:
    """Of trials of the same method, newest first: the closest to the published protocol, and of those the newest."""
    return min(trials, key=lambda trial: len(departures(trial)))


def main_trials(trials: Sequence[ReportTrial], digest: str) -> list[ReportTrial]:
    """One trial a method, of trials newest first, on the data set of that digest and with the same settings but for η₂.

    The settings are the published ones where any trial has them, else those of the newest trial. In the order of the
    paper, then other η₂ ascending, then other samplers.
    """
    here = [trial for trial in trials if trial.data_digest == digest]
    base = [t for t in here if all(published.SETTINGS[k] == v for k, v in relevant_settings(t).items())]
    if not base and here:
        wanted = relevant_settings(here[0])
        base = [t for t in here if all(wanted.get(k, v) == v for k, v in relevant_settings(t).items())]
    methods = {trial.method for trial in base}
    chosen = [best_of([trial for trial in base if trial.method == method]) for method in methods]
    return sorted(chosen, key=lambda trial: _order(trial.method))


def other_losses(trials: Sequence[ReportTrial], main: Sequence[ReportTrial]) -> list[ReportTrial]:
    """Trials, of trials newest first, like the main ones but for their loss, whose prediction is σ(t) as theirs.

    One for each loss and method; where a method is there with several η₂, all of them.
    """
    found: dict[tuple[Setting, Setting, Method], ReportTrial] = {}
    for trial in trials:
        like = trial.data_digest == main[0].data_digest and trial.result.n_iter == main[0].result.n_iter
        if like and not trial.is_sigmoid and trial.setting("problem.link") == "sigmoid":
            found.setdefault((trial.setting("problem.name"), trial.setting("problem.scale"), trial.method), trial)
    return sorted(found.values(), key=lambda trial: (trial.loss, _order(trial.method)))


def _order(method: Method) -> tuple[int, str, float]:
    printed = [(row.sampler, row.eta2) for row in published.TABLE2]
    if method in printed:
        return printed.index(method), "", 0.0
    sampler, eta2 = method
    return len(printed), sampler, eta2 or 0.0


@dataclass(frozen=True, eq=False)
class Series:
    """Trials that differ in one parameter alone."""

    method: Method
    values: list[float]
    """ascending"""
    trials: list[ReportTrial]


def sweep(trials: Sequence[ReportTrial], key: str) -> list[Series]:
    """Series of at least two trials, of trials newest first, that differ in `key` alone.

    With a `data.` key their data differ too. Of trials with the same value, the closest to the protocol and then the
    newest is taken; of several series of a method (with other settings elsewhere), the longest and then the newest.
    """
    groups: dict[tuple[object, ...], dict[float, list[ReportTrial]]] = {}
    for trial in trials:
        value = trial.setting(key)
        if not isinstance(value, float) or (key.startswith("dro.") and not trial.has_dual):
            continue
        others = {k: v for k, v in relevant_settings(trial).items() if k != key}
        if key.startswith("data."):
            others |= {k: trial.setting(k) for k in trial.params if k.startswith("data.") and k != key}
        else:
            others["data"] = trial.data_digest
        group = (trial.method, trial.result.n_iter, tuple((k, others[k]) for k in sorted(others)))
        groups.setdefault(group, {}).setdefault(value, []).append(trial)
    longest: dict[Method, Series] = {}
    for by_value in groups.values():
        values = sorted(by_value)
        chosen = [best_of(by_value[value]) for value in values]
        method = chosen[0].method
        known = len(longest[method].values) if method in longest else 1
        if len(values) > known:
            longest[method] = Series(method, values, chosen)
    return [longest[method] for method in sorted(longest, key=_order)]
