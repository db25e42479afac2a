"""Stage `plan`: what the theory says of a config before it is run. python -m pipelines.plan [epsilon=0.1] [format=json]

Prints the constants of Appendix B, the step size against its limit, the theorem's bound term by term and, with epsilon,
the parameters that Algorithm 1 would choose.
"""

from __future__ import annotations

import json
import logging
import sys

from omegaconf import DictConfig, open_dict

from pipelines.config import Settings
from pipelines.stage import run_stage
from robust_sgld.checks import InvalidInput
from robust_sgld.samplers import RobustSGLD
from robust_sgld.theory import PlanReport, plan_report

FORMATS = ("text", "json")


def plan(cfg: DictConfig) -> PlanReport:
    """Prints and returns the plan of the config."""
    epsilon, form = cfg.epsilon, cfg.format
    with open_dict(cfg):
        del cfg["epsilon"], cfg["format"]
    if form not in FORMATS:
        raise InvalidInput(f"format must be one of {', '.join(FORMATS)}, got {form!r}.")
    logging.getLogger("robust_sgld.engines").setLevel(logging.WARNING)  # nothing is sampled, and JSON stays JSON
    settings = Settings.of(cfg)
    sampler = settings.make_sampler(settings.make_data())
    if not isinstance(sampler, RobustSGLD):
        raise InvalidInput("the theory is about robust SGLD; use sampler=robust_sgld.")
    theta0 = sampler.initial_state(settings.theta0)
    report = plan_report(
        sampler.problem,
        sampler.dro,
        sampler.step_size,
        sampler.beta,
        settings.trial["n_iter"],
        theta0.tolist(),
        epsilon=epsilon,
    )
    print(json.dumps(report.to_dict(), indent=2) if form == "json" else report.text())
    return report


if __name__ == "__main__":
    sys.exit(run_stage(plan, config_name="plan"))
