"""scikit-learn estimators: robust SGLD behind `fit` and `predict`, in the user's units."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any, ClassVar, Self

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted, validate_data

from robust_sgld.checks import InvalidInput, integer, positive
from robust_sgld.data import sigmoid
from robust_sgld.diagnostics import r_hat
from robust_sgld.dro import DRO, split
from robust_sgld.problems import (
    CauchyLoss,
    LinearIndexProblem,
    LogisticLoss,
    PseudoHuberLoss,
    QuantileLoss,
    SigmoidRegression,
    SquaredLoss,
)
from robust_sgld.rng import draws
from robust_sgld.samplers import RobustSGLD
from robust_sgld.samplers.base import diverged_at
from robust_sgld.scaling import centre_and_spread, standardise
from robust_sgld.selection import tail_mean

LINK_VALUES: dict[str, Callable[[np.ndarray], np.ndarray]] = {"sigmoid": sigmoid, "tanh": np.tanh}
TARGET_RANGE = {"identity": None, "sigmoid": (0.0, 1.0), "tanh": (-1.0, 1.0)}
"""where the target's median ± reach robust standard deviations go; None is the support"""


class _RobustSGLDEstimator(BaseEstimator):
    """What both estimators do alike: standardise, sample n_chains chains, average, compare the chains."""

    def _sample(self, rows: np.ndarray, problem: LinearIndexProblem) -> np.ndarray:
        """Runs the chains on standardised rows; sets the fitted attributes that do not depend on units; returns θ."""
        n_iter = integer("n_iter", self.n_iter, least=8)
        n_chains = integer("n_chains", self.n_chains, least=2)
        thin = integer("thin", self.thin, least=1)
        dro = DRO(self.eta1, self.eta2, self.delta, self.p, self.ell, self.j, tuple(self.support))
        sampler = RobustSGLD(problem, dro, self._step_size(rows, problem), self.beta, self.engine, self.tolerance)
        random = check_random_state(self.random_state)
        seed = int(random.randint(2**31 - 1))
        # dispersed starts, so that chains which agree in the end have forgotten where they began
        starts = random.normal(size=(n_chains, sampler.state_dim))
        began = time.perf_counter()

        def chain(k: int) -> np.ndarray:
            stream = draws(seed, [k], n_iter, len(rows), sampler.state_dim)
            path = sampler.advance(rows, starts[k], stream.indices, stream.noise)[0]
            if self.verbose:
                print(f"[{type(self).__name__}] chain {k + 1}/{n_chains}: {time.perf_counter() - began:.1f} s")
            return path

        paths = np.stack(Parallel(n_jobs=self.n_jobs, prefer="threads")(delayed(chain)(k) for k in range(n_chains)))
        if gone := [k for k in range(n_chains) if diverged_at(paths[k])]:
            raise InvalidInput(
                f"{len(gone)} of {n_chains} chains diverged, the first at update {diverged_at(paths[gone[0]])}; a "
                f"step_size below {sampler.step_size:g} may help."
            )
        theta, alpha = split(paths[:, n_iter // 2 :])
        self.paths_ = paths[:, thin - 1 :: thin].copy() if thin <= n_iter else paths[:, -1:].copy()
        self.alpha_ = float(np.abs(alpha).mean())
        self.n_iter_ = n_iter
        self.step_size_, self.engine_ = sampler.step_size, sampler.engine_name
        self._compare(theta)
        return split(tail_mean(paths))[0]

    def _step_size(self, rows: np.ndarray, problem: LinearIndexProblem) -> float:
        """λ, or for "auto" 0.1 / (c (1 + mean |z|²)) with c = max_i |∂²u/∂t²(0, y_i)|.

        A step along a row is stable below 2/(c |(z, 1)|²). In standardised units the corners of the support, where the
        adversary may go, have about 16 times the mean |z|², so a tenth of 1/(c (1 + mean |z|²)) is below that too.
        """
        if self.step_size != "auto":
            return positive("step_size", self.step_size)
        import torch

        y = torch.from_numpy(rows[:, -1].copy())
        above, below = (problem.u_and_slope(torch.full_like(y, t), y)[1] for t in (1e-4, -1e-4))
        curvature = max(float((above - below).abs().max()) / 2e-4, 1e-3)
        return 0.1 / (curvature * (1 + float((rows[:, :-1] ** 2).sum(axis=1).mean())))

    def _compare(self, theta: np.ndarray) -> None:
        """R-hat of every parameter over the second half of the chains (n_chains, n, d), and a warning above the limit.

        Neighbouring states hardly differ, so about 200 of them a chain say as much as all.
        """
        kept = theta[:, :: max(1, theta.shape[1] // 200)]
        found = np.array([r_hat(kept[..., i]) for i in range(kept.shape[-1])])
        self.r_hat_ = np.where(np.isnan(found), 1.0, found)  # a parameter that never moves is the same in every chain
        worst = int(self.r_hat_.argmax())
        if self.r_hat_[worst] > self.r_hat_limit:
            names = getattr(self, "feature_names_in_", [f"feature {i}" for i in range(len(found) - 1)])
            warnings.warn(
                f"the chains disagree: R-hat is {self.r_hat_[worst]:.2f} for {[*names, 'the intercept'][worst]} over "
                f"the second half of {len(kept)} chains of {self.n_iter_} updates (1 is agreement, the limit "
                f"{self.r_hat_limit:g}); raise n_iter, or step_size (now {self.step_size_:.2g}) where paths_ still "
                "drift.",
                ConvergenceWarning,
                stacklevel=4,
            )

    def _index(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        return X @ np.ravel(self.coef_) + float(np.ravel(self.intercept_)[0])


class RobustSGLDRegressor(RegressorMixin, _RobustSGLDEstimator):
    """Linear (or sigmoid, tanh) regression that is robust to perturbations of every row, features and target.

    Minimises over θ the regularised DRO objective of the paper (eqn:dro_problem) for U(θ, x) = ρ(y - s(⟨w,z⟩+b)) by
    robust SGLD. Columns are brought into the support by median and MAD (`standardise`), so that outliers do not decide
    the units; coefficients and predictions are in the user's.

    Parameters
    ----------
    loss : "squared", "pseudo_huber", "cauchy" or "quantile"; ρ
    link : "identity", "sigmoid" or "tanh"; s
    loss_scale : scale of pseudo_huber, cauchy and quantile, in robust standard deviations of the target
    level : which quantile, for loss="quantile"
    eta1 : regularisation of θ (in standardised units)
    eta2 : strength of the adversary; larger is stronger
    delta : Nesterov's smoothing of the maximum
    p : the transport cost is |x-x'|^p
    ell, j, support : the grid of the adversary: [support]^m with mesh 2^-j inside [-2^(ell-1), 2^(ell-1)). A coarse
        mesh acts like rounding the features: weights shrink by about 4^-j/12 over the variance of a column
    reach : median ± reach robust standard deviations of a column go to the ends of the support; training values beyond
        are moved to its edge. None: all fit
    step_size : λ, or "auto": a tenth of what the curvature of the loss and the mean |z|² allow
    beta : inverse temperature
    n_iter, n_chains : updates a chain, and chains; the estimate is the mean of all chains' second halves
    thin : every thin-th state is kept in `paths_`
    engine : "auto", or a name of an engine
    tolerance : error that engine "chain" may make in the log of a sum over the grid
    r_hat_limit : R-hat above which a ConvergenceWarning is given
    random_state, n_jobs, verbose : as everywhere in scikit-learn; chains run in threads

    Attributes
    ----------
    coef_ (n_features,), intercept_ : prediction = ⟨coef_, X⟩ + intercept_ for the identity link; for the others the
        index inside the link, whose value is then brought back to the target's units
    alpha_ : mean |α|; ι(α) is the price of moving a row by one unit
    n_iter_, n_features_in_, step_size_, engine_, scaling_
    r_hat_ : (n_features + 1,) of the weights and the intercept
    paths_ : (n_chains, T, n_features + 2) thinned states (w, b, α), in standardised units
    """

    losses: ClassVar[tuple[str, ...]] = ("squared", "pseudo_huber", "cauchy", "quantile")

    def __init__(
        self,
        *,
        loss: str = "squared",
        link: str = "identity",
        loss_scale: float = 1.0,
        level: float = 0.5,
        eta1: float = 1e-3,
        eta2: float = 0.1,
        delta: float = 0.1,
        p: float = 2,
        ell: int = 3,
        j: int = 2,
        support: tuple[float, float] = (-3.0, 3.0),
        reach: float | None = 4.0,
        step_size: float | str = "auto",
        beta: float = 1e9,
        n_iter: int = 5000,
        n_chains: int = 4,
        thin: int = 20,
        engine: str = "auto",
        tolerance: float = 1e-4,
        r_hat_limit: float = 1.2,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ):
        self.loss = loss
        self.link = link
        self.loss_scale = loss_scale
        self.level = level
        self.eta1 = eta1
        self.eta2 = eta2
        self.delta = delta
        self.p = p
        self.ell = ell
        self.j = j
        self.support = support
        self.reach = reach
        self.step_size = step_size
        self.beta = beta
        self.n_iter = n_iter
        self.n_chains = n_chains
        self.thin = thin
        self.engine = engine
        self.tolerance = tolerance
        self.r_hat_limit = r_hat_limit
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: Any, y: Any) -> Self:
        """Samples the chains on the rows of X (n, n_features) and y (n,)."""
        X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True, ensure_min_samples=2)
        if self.link not in TARGET_RANGE:
            raise InvalidInput(f"link must be one of {', '.join(TARGET_RANGE)}, got {self.link!r}.")
        raw = np.column_stack([X, y.astype(np.float64)])
        rows, self.scaling_ = standardise(raw, self.support, self.reach, TARGET_RANGE[self.link])
        spread = centre_and_spread(raw[:, -1])[1] / float(self.scaling_.scale[-1])
        theta = self._sample(rows, self._problem(raw.shape[1], spread or 1.0))
        coef, intercept = self.scaling_.index(theta)
        if self.link == "identity":
            coef, intercept = coef * self.scaling_.scale[-1], self.scaling_.target(intercept)
        self.coef_, self.intercept_ = coef, float(intercept)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """The target at the rows of X, in its units."""
        t = self._index(X)
        return t if self.link == "identity" else self.scaling_.target(LINK_VALUES[self.link](t))

    def _problem(self, dim: int, spread: float) -> LinearIndexProblem:
        scale = positive("loss_scale", self.loss_scale) * spread
        if self.loss == "squared" and self.link == "sigmoid":
            return SigmoidRegression(dim)  # the published problem, for which there is an engine of its own
        if self.loss == "squared":
            return SquaredLoss(dim, self.link)
        if self.loss == "pseudo_huber":
            return PseudoHuberLoss(dim, self.link, scale)
        if self.loss == "cauchy":
            return CauchyLoss(dim, self.link, scale)
        if self.loss == "quantile":
            return QuantileLoss(dim, self.link, self.level, scale)
        raise InvalidInput(f"loss must be one of {', '.join(self.losses)}, got {self.loss!r}.")


class RobustSGLDClassifier(ClassifierMixin, _RobustSGLDEstimator):
    """Logistic regression for two classes that is robust to perturbations of every row, features and label.

    As `RobustSGLDRegressor`, with U(θ, x) = log(1 + e^{-y(⟨w,z⟩+b)}) and labels -1 and +1 in the order of `classes_`.
    The adversary moves labels along the whole axis of the grid, at the same price as features. For more than two
    classes wrap it in `sklearn.multiclass.OneVsRestClassifier`.

    Attributes
    ----------
    classes_ : (2,)
    coef_ (1, n_features), intercept_ (1,) : the log-odds of classes_[1], in the user's units
    The others are those of `RobustSGLDRegressor`.
    """

    def __init__(
        self,
        *,
        eta1: float = 1e-3,
        eta2: float = 0.1,
        delta: float = 0.1,
        p: float = 2,
        ell: int = 3,
        j: int = 2,
        support: tuple[float, float] = (-3.0, 3.0),
        reach: float | None = 4.0,
        step_size: float | str = "auto",
        beta: float = 1e9,
        n_iter: int = 5000,
        n_chains: int = 4,
        thin: int = 20,
        engine: str = "auto",
        tolerance: float = 1e-4,
        r_hat_limit: float = 1.2,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ):
        self.eta1 = eta1
        self.eta2 = eta2
        self.delta = delta
        self.p = p
        self.ell = ell
        self.j = j
        self.support = support
        self.reach = reach
        self.step_size = step_size
        self.beta = beta
        self.n_iter = n_iter
        self.n_chains = n_chains
        self.thin = thin
        self.engine = engine
        self.tolerance = tolerance
        self.r_hat_limit = r_hat_limit
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def fit(self, X: Any, y: Any) -> Self:
        """Samples the chains on the rows of X (n, n_features) and the labels y (n,)."""
        X, y = validate_data(self, X, y, dtype=np.float64, ensure_min_samples=2)
        check_classification_targets(y)
        if type_of_target(y, input_name="y") != "binary":
            raise InvalidInput(
                f"Only binary classification is supported. The type of the target is {type_of_target(y)}."
            )
        self.classes_, labels = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise InvalidInput(f"y has one class only, {self.classes_[0]!r}; two are needed.")
        raw = np.column_stack([X, 2.0 * labels - 1])
        rows, self.scaling_ = standardise(raw, self.support, self.reach, (-1.0, 1.0))
        coef, intercept = self.scaling_.index(self._sample(rows, LogisticLoss(raw.shape[1])))
        self.coef_, self.intercept_ = coef[None], np.atleast_1d(intercept)
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """The log-odds of classes_[1]."""
        return self._index(X)

    def predict_proba(self, X: Any) -> np.ndarray:
        """(n, 2) probabilities of the classes."""
        p = sigmoid(self._index(X))
        return np.column_stack([1 - p, p])

    def predict(self, X: Any) -> np.ndarray:
        """The more probable class of each row."""
        positive_class = self.decision_function(X) > 0
        return self.classes_[positive_class.astype(int)]
