"""Convergence diagnostics over the runs of a trial: rank-normalised split R-hat and effective sample sizes.

After Vehtari, Gelman, Simpson, Carpenter and Bürkner (Bayesian Analysis 16(2), 2021). Draws are (runs, n), one array a
scalar quantity. The tests compare with ArviZ, which is too heavy to be needed at run time.
"""

from __future__ import annotations

import numpy as np

from robust_sgld.checks import InvalidInput, array


def r_hat(draws: np.ndarray) -> float:
    """The larger of the rank-normalised split R-hat of the draws and of their distances to the median.

    1 where all runs agree; above about 1.01 they do not. NaN for draws that do not vary.
    """
    draws = _checked(draws)
    halves = _split(draws)
    folded = np.abs(halves - np.median(halves))
    return max(_r_hat(_rank_normal(halves)), _r_hat(_rank_normal(folded)))


def ess_bulk(draws: np.ndarray) -> float:
    """Effective sample size of rank-normalised split runs: how many independent draws locate the centre as well."""
    return _ess(_rank_normal(_split(_checked(draws))))


def ess_mean(draws: np.ndarray) -> float:
    """Effective sample size for the mean of the draws as they are."""
    return _ess(_split(_checked(draws)))


def _checked(draws: np.ndarray) -> np.ndarray:
    draws = array("draws", draws, shape=(None, None))
    if draws.shape[1] < 4:
        raise InvalidInput(f"draws must have at least 4 draws a run, got {draws.shape[1]}.")
    return draws


def _split(draws: np.ndarray) -> np.ndarray:
    half = draws.shape[1] // 2
    return np.concatenate([draws[:, :half], draws[:, -half:]])


def _rank_normal(draws: np.ndarray) -> np.ndarray:
    from scipy.special import ndtri
    from scipy.stats import rankdata  # slow to import

    ranks = rankdata(draws, method="average").reshape(draws.shape)
    return ndtri((ranks - 0.375) / (draws.size + 0.25))


def _r_hat(draws: np.ndarray) -> float:
    n = draws.shape[1]
    within = draws.var(axis=1, ddof=1).mean()
    between = n * draws.mean(axis=1).var(ddof=1)
    if within == 0:
        return float("nan")
    return float(np.sqrt((between / within + n - 1) / n))


def _autocovariance(draws: np.ndarray) -> np.ndarray:
    """(runs, n) by FFT, divided by n."""
    n = draws.shape[1]
    centred = draws - draws.mean(axis=1, keepdims=True)
    size = 2 ** int(np.ceil(np.log2(2 * n)))
    spectrum = np.fft.rfft(centred, size)
    return np.fft.irfft(spectrum * spectrum.conj(), size)[:, :n] / n


def _ess(draws: np.ndarray) -> float:
    """Geyer's initial monotone positive sequence over the combined autocorrelations."""
    runs, n = draws.shape
    covariance = _autocovariance(draws)
    mean_variance = covariance[:, 0].mean() * n / (n - 1)
    if mean_variance == 0:
        return float("nan")
    total_variance = mean_variance * (n - 1) / n
    if runs > 1:
        total_variance += draws.mean(axis=1).var(ddof=1)
    rho = 1 - (mean_variance - covariance.mean(axis=0)) / total_variance
    rho[0] = 1.0
    # sums of adjacent pairs are positive and decreasing for a reversible chain: stop where they are not, or near the
    # end, where they are noise; of the pair after the last one kept, the even lag still improves the estimate
    pairs = rho[: n - n % 2].reshape(-1, 2).sum(axis=1)
    last = max((n - 3) // 2, 0)
    negative = np.flatnonzero(pairs[:last] <= 0)
    kept = int(negative[0]) if negative.size else last
    tau = -1 + 2 * np.minimum.accumulate(pairs[:kept]).sum()
    if rho[2 * kept] > 0 or pairs[kept] >= 0:
        tau += rho[2 * kept]
    tau = max(tau, 1 / np.log10(runs * n))
    return float(runs * n / tau)
