"""The theory, executable: constants, bound, Algorithm 1, assumptions, exact values and the worst case."""

from robust_sgld.theory.algorithm1 import Algorithm1, algorithm1
from robust_sgld.theory.assumptions import Assumptions, check_assumptions
from robust_sgld.theory.bound import Bound, excess_risk_bound
from robust_sgld.theory.constants import TheoryConstants
from robust_sgld.theory.excess import ExcessRisk, measured_excess_risk
from robust_sgld.theory.frontier import Frontier, frontier_of
from robust_sgld.theory.lognumber import LogNumber
from robust_sgld.theory.minimum import DualMinimum, PrimalMinimum, dual_minimum, primal_minimum
from robust_sgld.theory.plan import PlanReport, plan_report
from robust_sgld.theory.primal import primal_value
from robust_sgld.theory.quadrature import Level, quadrature_errors, quadrature_numbers, trial_quadrature
from robust_sgld.theory.values import RobustValue, Values, inverse_iota, robust_value, values_at
from robust_sgld.theory.worst_case import BeforeAndAfter, WorstCase, before_and_after, worst_case

__all__ = [
    "Algorithm1",
    "Assumptions",
    "BeforeAndAfter",
    "Bound",
    "DualMinimum",
    "ExcessRisk",
    "Frontier",
    "Level",
    "LogNumber",
    "PlanReport",
    "PrimalMinimum",
    "RobustValue",
    "TheoryConstants",
    "Values",
    "WorstCase",
    "algorithm1",
    "before_and_after",
    "check_assumptions",
    "dual_minimum",
    "excess_risk_bound",
    "frontier_of",
    "inverse_iota",
    "measured_excess_risk",
    "plan_report",
    "primal_minimum",
    "primal_value",
    "quadrature_errors",
    "quadrature_numbers",
    "robust_value",
    "trial_quadrature",
    "values_at",
    "worst_case",
]
