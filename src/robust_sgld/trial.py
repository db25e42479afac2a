"""A trial: R independent runs of one sampler on one data set, and what they say."""

from __future__ import annotations

import hashlib
import math
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from robust_sgld.checks import integer, positive
from robust_sgld.data import Dataset
from robust_sgld.losses import LossEvaluator, minimise_risk
from robust_sgld.parallel import check_backend, in_parallel
from robust_sgld.problems import Problem
from robust_sgld.result import TrialResult
from robust_sgld.rng import draws
from robust_sgld.samplers import LangevinSampler, RobustSGLD
from robust_sgld.samplers.base import diverged_at, warn_diverged
from robust_sgld.shards import Block, ShardStore

Progress = Callable[[int, int], None]
"""Called as progress(finished runs, all runs), in the calling thread."""

OBJECTIVE_POINTS = 20, 100
"""About how many updates of a run the dual objective is evaluated at: few where its sums would outnumber a run's."""
OBJECTIVE_ATOMS = 200
"""The most atoms of μ_{0,ℓ,j} that the objective sums over; of ten columns nearly every row is one (published: 109)."""
LARGEST_BLOCK = 10
"""Runs that are advanced together, where that is of use, when finished runs are to be kept as they come."""


@dataclass(frozen=True)
class Plan:
    """What is the same for every run of a trial, and decides its numbers."""

    theta0: np.ndarray
    """(state_dim,)"""
    n_iter: int
    seed: int
    axis: np.ndarray
    """(T,) the updates that are kept, counted from 1"""
    objective_axis: np.ndarray
    """(T',) the updates, among them, at which the objective is evaluated"""
    reference: float
    tolerance: float
    measure: tuple[np.ndarray, np.ndarray] | None
    """atoms and weights of μ_{0,ℓ,j}, where the sampler has a dual objective"""


def thinned_axis(n_iter: int, thin: int) -> np.ndarray:
    """Every `thin`-th update, the last one, and early ones in geometric steps, because that is where paths fall."""
    regular = np.arange(thin, n_iter + 1, thin)
    early = np.geomspace(1, min(20 * thin, n_iter), 30).astype(int)
    return np.unique(np.concatenate([early, regular, [n_iter]]))


def plan_trial(
    sampler: LangevinSampler,
    data: Dataset,
    *,
    n_iter: int,
    theta0: float | Sequence[float],
    seed: int,
    thin: int,
    tolerance: float,
    reference: float | None = None,
) -> tuple[Plan, np.ndarray]:
    """Checks everything, before any work; returns the plan and the minimiser of the test risk."""
    sampler.check_data(f"{data.name} train", data.train, data.columns)
    n_iter, thin = integer("n_iter", n_iter, least=1), integer("thin", thin, least=1)
    seed = integer("seed", seed, least=0)
    start = sampler.initial_state(theta0)
    problem = sampler.problem
    truth = known_truth(data, problem)
    evaluator = LossEvaluator(problem, data.test)
    minimiser = minimise_risk(problem, data.test, problem.guess() if truth is None else truth)
    if reference is None:
        at = minimiser if truth is None else truth
        reference = float(evaluator.losses(at[None])[0])
    axis = thinned_axis(n_iter, thin)
    measure = sampler.dual.grid.measure(data.train, OBJECTIVE_ATOMS) if isinstance(sampler, RobustSGLD) else None
    points = int(np.clip(n_iter if measure is None else 2 * n_iter // len(measure[1]), *OBJECTIVE_POINTS))
    # densest where the objective falls, which is in the first few hundred updates
    wanted = np.concatenate([np.geomspace(1, n_iter, points // 2), np.linspace(1, n_iter, points // 2)])
    objective_axis = np.unique(axis[np.searchsorted(axis, wanted)])
    reference, tolerance = positive("reference", reference), positive("tolerance", tolerance)
    return Plan(start, n_iter, seed, axis, objective_axis, reference, tolerance, measure), minimiser


def known_truth(data: Dataset, problem: Problem) -> np.ndarray | None:
    """θ* where the data have one and it can be a parameter of this problem: a network has others."""
    matches = data.theta_star is not None and len(data.theta_star) == problem.n_params
    return data.theta_star if matches else None


@np.errstate(over="ignore", invalid="ignore")  # a run that leaves the finite numbers is reported as such
def run_block(sampler: LangevinSampler, data: Dataset, plan: Plan, numbers: Sequence[int]) -> Block:
    """Some runs of a trial, start to end: the per-run arrays of `TrialResult` for these run numbers.

    A run's full path lives only here (8·n_iter·state_dim bytes); what needs every update is computed from it.
    """
    # a thread's own processor time knows nothing of torch's other threads
    clock = time.thread_time if sampler.compiled else time.perf_counter
    began = clock()
    stream = draws(plan.seed, numbers, plan.n_iter, len(data.train), sampler.state_dim)
    full = sampler.advance(data.train, plan.theta0, stream.indices, stream.noise)
    sampled = clock()
    evaluator = LossEvaluator(sampler.problem, data.test)
    along = [evaluator.along(sampler.theta(path), plan.reference, plan.tolerance) for path in full]
    states = full[:, plan.axis - 1]
    losses = np.full(states.shape[:2], np.nan)
    finite = np.isfinite(states).all(axis=-1)
    losses[finite] = evaluator.losses(sampler.theta(states[finite]))
    objective = np.empty((len(full), 0))
    if isinstance(sampler, RobustSGLD) and plan.measure is not None:
        at = full[:, plan.objective_axis - 1]
        objective = np.full(at.shape[:2], np.nan)
        finite = np.isfinite(at).all(axis=-1)
        if finite.any():
            objective[finite] = sampler.dual.integral(at[finite], *plan.measure)
    measured = clock()
    share = np.full(len(full), 1 / len(full))
    return {
        "runs": np.asarray(numbers),
        "states": states,
        "losses": losses,
        "objective": objective,
        "n_es": np.array([a.n_es for a in along]),
        "loss_at_n_es": np.array([a.loss_at_n_es for a in along]),
        "closest_loss": np.array([a.closest for a in along]),
        "smallest_loss": np.array([a.smallest for a in along]),
        "final_loss": np.array([a.final for a in along]),
        "inside_after_hit": np.array([a.inside_after_hit for a in along]),
        "seconds": (sampled - began) * share,
        "loss_seconds": (measured - sampled) * share,
        "diverged_at": np.array([diverged_at(path) for path in full]),
    }


def run_trial(
    sampler: LangevinSampler,
    data: Dataset,
    *,
    runs: int = 100,
    n_iter: int = 25_000,
    theta0: float | Sequence[float] = -2.0,
    seed: int = 0,
    thin: int = 50,
    tolerance: float = 0.01,
    reference: float | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
    backend: str = "threads",
    scheduler: str | None = None,
    shards: ShardStore | None = None,
) -> TrialResult:
    """R runs in parallel, in bounded memory.

    Parameters
    ----------
    theta0 : one number for every θ_i, or d or d+1 numbers; see `LangevinSampler.initial_state`
    thin : keep every thin-th state; hitting times and extremes use every update all the same
    tolerance : half-width of the band around the reference, as a share of it
    reference : the test loss to reach; the loss at θ* where θ* is known, else the smallest possible test loss
    workers : threads or processes; all cores by default
    backend : threads (compiled loops release the interpreter lock), loky (processes) or dask (a cluster at `scheduler`)
    shards : keeps finished runs on disk as they come; runs that it has of this trial already are not computed again

    The numbers do not depend on `workers`, `backend`, or on how often a trial with `shards` was interrupted.
    """
    began = time.perf_counter()
    runs = integer("runs", runs, least=1)
    workers = os.cpu_count() or 1 if workers is None else integer("workers", workers, least=1)
    check_backend(backend, scheduler)
    plan, minimiser = plan_trial(
        sampler, data, n_iter=n_iter, theta0=theta0, seed=seed, thin=thin, tolerance=tolerance, reference=reference
    )
    numbers = range(runs)
    finished, seconds_before = ([], 0.0) if shards is None else shards.open(_facts(sampler, data, plan), numbers)
    known = {int(k) for block in finished for k in block["runs"]}
    missing = np.array([k for k in numbers if k not in known], dtype=int)
    if missing.size and backend == "threads":
        _compile(sampler, data, plan)
    least = 1 if shards is None else math.ceil(missing.size / LARGEST_BLOCK)
    count = missing.size if sampler.compiled else min(missing.size, max(workers, least))
    blocks = [block.tolist() for block in np.array_split(missing, count)] if count else []
    done = len(known)
    work = _Work(sampler, data, plan, compiles=backend != "threads")
    try:
        for block in in_parallel(work, blocks, workers=workers, backend=backend, scheduler=scheduler):
            finished.append(block)
            if shards is not None:
                shards.add(block)
            done += len(block["runs"])
            if progress is not None:
                progress(done, runs)
    finally:
        if shards is not None:
            shards.flush()
    joined = {name: np.concatenate([block[name] for block in finished]) for name in finished[0]}
    joined = {name: values[np.argsort(joined["runs"])] for name, values in joined.items()}
    warn_diverged(joined["runs"], joined["diverged_at"], plan.n_iter)
    evaluator = LossEvaluator(sampler.problem, data.test)
    unknown = np.full(sampler.problem.n_params, np.nan)
    return TrialResult(
        sampler=sampler.name,
        engine=sampler.engine_name,
        n_iter=plan.n_iter,
        seed=plan.seed,
        reference=plan.reference,
        tolerance=plan.tolerance,
        theta_star=unknown if (truth := known_truth(data, sampler.problem)) is None else truth,
        clean_minimiser=minimiser,
        clean_minimum=float(evaluator.losses(minimiser[None])[0]),
        wall_seconds=seconds_before + time.perf_counter() - began,
        workers=workers,
        axis=plan.axis,
        objective_axis=plan.objective_axis,
        **joined,
    )


def _facts(sampler: LangevinSampler, data: Dataset, plan: Plan) -> dict[str, str]:
    """What a trial's finished runs are recognised by."""
    axes = hashlib.sha256(plan.axis.tobytes() + plan.objective_axis.tobytes()).hexdigest()
    engine = sampler.dual.engine if isinstance(sampler, RobustSGLD) else None
    accuracy = {name: getattr(engine, name) for name in ("tolerance", "samples", "seed") if hasattr(engine, name)}
    return {
        "sampler": f"{type(sampler).__qualname__} {sampler.step_size!r} {sampler.beta!r} {sampler.engine_name}",
        "accuracy": repr(accuracy),
        "problem": repr(sampler.problem),
        "dro": repr(sampler.dro) if isinstance(sampler, RobustSGLD) else "",
        "data_digest": data.digest,
        "theta0": repr(plan.theta0.tolist()),
        "n_iter": str(plan.n_iter),
        "seed": str(plan.seed),
        "axes": axes,
        "band": f"{plan.reference!r} {plan.tolerance!r}",
    }


class _Work:
    """Run numbers to a finished block; a class, so that it can be sent to other processes."""

    def __init__(self, sampler: LangevinSampler, data: Dataset, plan: Plan, *, compiles: bool):
        self.sampler, self.data, self.plan, self.compiles = sampler, data, plan, compiles

    def __call__(self, numbers: list[int]) -> Block:
        kind = (type(self.sampler), type(self.sampler.problem), self.sampler.engine_name)
        if self.compiles and kind not in _compiled_here:
            _compile(self.sampler, self.data, self.plan)
            _compiled_here.add(kind)
        return run_block(self.sampler, self.data, self.plan, numbers)


_compiled_here: set[tuple[type, type, str]] = set()
"""What a worker process has compiled already."""


def _compile(sampler: LangevinSampler, data: Dataset, plan: Plan) -> None:
    """Compiles (or loads from the cache) what the runs need, so that no run's time contains it."""
    short = replace(plan, n_iter=2, axis=np.array([1, 2]), objective_axis=np.array([2]))
    run_block(sampler, data, short, [0])
