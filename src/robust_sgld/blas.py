"""One thread for BLAS where matrices are tiny: there its threads wait for each other far longer than they compute."""

from __future__ import annotations

from threadpoolctl import threadpool_limits


def one_blas_thread() -> threadpool_limits:
    """A context in which NumPy's and SciPy's BLAS use one thread.

    A step of L-BFGS-B in five dimensions takes 0.04 ms on one thread and up to a hundred times that on two that are
    not both free.
    """
    return threadpool_limits(limits=1, user_api="blas")
