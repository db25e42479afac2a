"""What the theory says of a planned run, in a table, in words and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from robust_sgld import checks
from robust_sgld.dro import DRO
from robust_sgld.problems import Problem
from robust_sgld.theory.algorithm1 import Algorithm1, algorithm1
from robust_sgld.theory.assumptions import Assumptions, check_assumptions
from robust_sgld.theory.bound import Bound, excess_risk_bound
from robust_sgld.theory.constants import Entry, TheoryConstants
from robust_sgld.theory.lognumber import LogNumber

RUNNABLE_UPDATES, RUNNABLE_POINTS = 1e12, 1e12
"""More updates, or grid points, than this are beyond the machines of today: a day is about 1e10 fast updates."""


@dataclass(frozen=True)
class PlanReport:
    """The constants of Appendix B, the step size against its limit, the theorem's bound, and Algorithm 1 for an ε."""

    constants: tuple[Entry, ...]
    assumptions: Assumptions
    step_size: float
    step_max: LogNumber
    bound: Bound
    algorithm1: Algorithm1 | None

    @property
    def step_ratio(self) -> LogNumber:
        """λ / λ_max,δ."""
        return LogNumber.of(self.step_size) / self.step_max

    @property
    def step_inside(self) -> bool:
        """Whether λ lies in (0, λ_max,δ), as the theorem asks."""
        return self.step_ratio < 1

    def step_sentence(self) -> str:
        """The step size against λ_max,δ, in words."""
        if self.step_inside:
            return (
                f"step_size = {self.step_size:g} lies inside (0, λ_max,δ) = (0, {self.step_max}): the theorem applies."
            )
        orders = int(self.step_ratio.log10)
        far = f"too large by {orders} orders of magnitude" if orders else f"too large by a factor {self.step_ratio}"
        return (
            f"step_size = {self.step_size:g} lies outside (0, λ_max,δ) = (0, {self.step_max}): it is {far}, "
            f"and the theorem says nothing about this run."
        )

    def bound_sentence(self) -> str:
        """Which term of the bound dominates, and what would reduce it."""
        top, printed = self.bound.dominating, self.bound.dominating_printed
        text = "" if self.step_inside else "It does not apply at this step size; its terms are given all the same. "
        text += f"The sum is {self.bound.total}. {top.formula} dominates ({top.status}); {top.remedy} would reduce it."
        if top != printed:
            text += (
                f" Of the terms that the paper prints, {printed.formula} = {printed.value} dominates; "
                f"{printed.remedy} would reduce it."
            )
        return text

    def feasibility_sentence(self) -> str:
        """Whether Algorithm 1's choice can be run."""
        chosen = self.algorithm1
        if chosen is None:
            return ""
        size = f"{chosen.n_iter} updates, each a sum over {chosen.grid_points} grid points"
        if chosen.n_iter < RUNNABLE_UPDATES and chosen.grid_points < RUNNABLE_POINTS:
            verdict = "that can be run."
        else:
            verdict = (
                "no machine can run it. The guarantee says that the algorithm converges, not how long a run takes."
            )
        return f"It asks for {size}: {verdict} λ and n rest on reconstructed constants (orders of magnitude only)."

    def text(self) -> str:
        """The whole report for a terminal."""
        rows = [(e.symbol, str(e.value), e.status, e.label, e.formula) for e in self.constants]
        parts = ["Constants (Appendix B)", _table(("constant", "value", "status", "label", "formula"), rows)]
        sampled = [
            (s.name, f"{s.declared:g}", f"{s.sampled:.6g}", s.label, s.meaning) for s in self.assumptions.sampled
        ]
        parts += ["Declared constants against sampled lower estimates"]
        parts += [_table(("constant", "declared", "sampled", "label", "largest value of"), sampled)]
        parts += ["\n".join(f"  {line}" for line in self.assumptions.holds)]
        parts += ["Step size", f"  {self.step_sentence()}"]
        terms = [(t.name, t.formula, str(t.value), t.status, t.remedy) for t in self.bound.terms]
        parts += ["Bound on the excess risk (theorem:excess risk)"]
        parts += [_table(("term", "formula", "value", "status", "reduced by"), terms), f"  {self.bound_sentence()}"]
        if self.algorithm1 is not None:
            parts += [f"Algorithm 1 for ε = {self.algorithm1.epsilon:g}", _choices(self.algorithm1)]
            parts += [f"  {self.feasibility_sentence()}"]
        return "\n\n".join(parts) + "\n"

    def to_dict(self) -> dict[str, Any]:
        """The whole report for JSON: no infinities, no NaN."""
        report: dict[str, Any] = {
            "constants": {
                e.name: {"symbol": e.symbol, "label": e.label, "formula": e.formula, "status": e.status}
                | e.value.to_dict()
                for e in self.constants
            },
            "assumptions": {
                "sampled": {
                    s.name: {"declared": s.declared, "sampled": s.sampled, "label": s.label, "witness": s.witness}
                    for s in self.assumptions.sampled
                },
                "holds": list(self.assumptions.holds),
            },
            "step_size": {
                "value": self.step_size,
                "inside": self.step_inside,
                "max": self.step_max.to_dict(),
                "ratio": self.step_ratio.to_dict(),
                "sentence": self.step_sentence(),
            },
            "bound": {
                "terms": {
                    t.name: {"formula": t.formula, "status": t.status, "remedy": t.remedy} | t.value.to_dict()
                    for t in self.bound.terms
                },
                "total": self.bound.total.to_dict(),
                "dominating": self.bound.dominating.name,
                "dominating_printed": self.bound.dominating_printed.name,
                "sentence": self.bound_sentence(),
            },
        }
        if self.algorithm1 is not None:
            chosen = self.algorithm1
            report["algorithm1"] = {
                "epsilon": chosen.epsilon,
                "ell": chosen.ell,
                "j": chosen.j,
                **{name: getattr(chosen, name).to_dict() for name in _CHOSEN},
                "grid_points": chosen.grid_points.to_dict(),
                "inequalities": [
                    {"label": i.label, "formula": i.formula, "holds": i.holds} for i in chosen.inequalities()
                ],
                "sentence": self.feasibility_sentence(),
            }
        return report


_CHOSEN = (
    "delta", "delta_below", "beta", "beta_above", "step_size", "step_size_below", "n_iter", "n_iter_above",
)  # fmt: skip


def plan_report(
    problem: Problem,
    dro: DRO,
    step_size: float,
    beta: float,
    n_iter: int,
    theta0: float | Sequence[float],
    epsilon: float | None = None,
) -> PlanReport:
    """Everything that the theory says of robust SGLD with these settings; theta0 as for a sampler.

    Raises `InvalidInput` where the problem declares no constants, or constants that a sample contradicts.
    """
    step_size = checks.positive("step_size", step_size)
    n_iter = checks.integer("n_iter", n_iter, least=1)
    constants = TheoryConstants.of(problem, dro, beta=beta, theta0=theta0)
    return PlanReport(
        constants=tuple(constants.table()),
        assumptions=check_assumptions(problem, dro),
        step_size=step_size,
        step_max=constants.step_max,
        bound=excess_risk_bound(constants, m=problem.dim, ell=dro.ell, j=dro.j, step_size=step_size, n_iter=n_iter),
        algorithm1=None if epsilon is None else algorithm1(problem, dro, epsilon, theta0),
    )


def _choices(chosen: Algorithm1) -> str:
    rows = [
        ("ℓ", str(chosen.ell), "", "", "Ξ ⊂ [-2^{ℓ-1}, 2^{ℓ-1})^m"),
        ("j", str(chosen.j), "", "", "> log2(5√m (C4 + ℭ4(1/a+2b))/ε)"),
        _choice("δ", chosen.delta, f"< {chosen.delta_below}"),
        _choice("β", chosen.beta, f"> {chosen.beta_above}"),
        _choice("λ", chosen.step_size, f"< {chosen.step_size_below}"),
        _choice("n", chosen.n_iter, f"> {chosen.n_iter_above}"),
        _choice("grid points", chosen.grid_points, "|Ξ ∩ K_{ℓ,j}^m|"),
    ]
    return _table(("choice", "value", "log10", "log10 |log10|", "condition"), rows)


def _choice(name: str, value: LogNumber, condition: str) -> tuple[str, ...]:
    numbers = value.to_dict()
    logs = ("" if number is None else f"{number:.6g}" for number in (numbers["log10"], numbers["log10_log10"]))
    return (name, str(value), *logs, condition)


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    widths = [max(_width(row[i]) for row in (head, *rows)) for i in range(len(head))]
    lines = [head, tuple("-" * width for width in widths), *rows]
    return "\n".join(
        "  " + "  ".join(cell + " " * (width - _width(cell)) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def _width(cell: str) -> int:
    """Columns on a terminal: a combining tilde takes none."""
    import unicodedata

    return sum(not unicodedata.combining(letter) for letter in cell)
