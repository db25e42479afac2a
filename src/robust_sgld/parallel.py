"""Where the runs of a trial are computed: threads of this process, processes of this machine, or a Dask cluster."""

from __future__ import annotations

import importlib.metadata
import logging
import platform
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from robust_sgld.checks import InvalidInput

if TYPE_CHECKING:
    from distributed import Client

T = TypeVar("T")
R = TypeVar("R")

log = logging.getLogger(__name__)

BACKENDS = ("threads", "loky", "dask")
MOST_LOSSES = 3
"""Times that dead worker processes are replaced before the trial gives up."""
SECONDS_FOR_A_CLUSTER = 20


def check_backend(backend: str, scheduler: str | None) -> None:
    """Refuses a backend that is not there, and a scheduler that would not be used."""
    if backend not in BACKENDS:
        raise InvalidInput(f"backend must be one of {', '.join(BACKENDS)}, got {backend!r}.")
    if scheduler is not None and (not isinstance(scheduler, str) or "://" not in scheduler):
        raise InvalidInput(f"scheduler must be the address of a Dask scheduler, as tcp://host:8786, got {scheduler!r}.")
    if (backend == "dask") != (scheduler is not None):
        raise InvalidInput("backend=dask needs a scheduler (tcp://host:8786), and only backend=dask takes one.")
    if backend == "dask":
        try:
            importlib.metadata.version("distributed")
        except importlib.metadata.PackageNotFoundError:
            raise InvalidInput("backend=dask needs the extra: pip install 'robust-sgld[dask]'.") from None


def in_parallel(
    function: Callable[[T], R],
    items: Sequence[T],
    *,
    workers: int,
    backend: str = "threads",
    scheduler: str | None = None,
) -> Iterator[R]:
    """function(item) of every item as they finish, in any order; items of a worker that dies are computed again."""
    if backend == "dask":
        assert scheduler is not None  # `check_backend`
        yield from _on_cluster(function, items, scheduler)
        return
    from joblib import Parallel, delayed
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    numbered = _Numbered(function)
    name = "threading" if backend == "threads" else backend
    left = dict(enumerate(items))
    losses = 0
    while left:
        parallel = Parallel(n_jobs=workers, backend=name, return_as="generator_unordered", batch_size=1)
        try:
            for number, result in parallel(delayed(numbered)(number, item) for number, item in left.copy().items()):
                del left[number]
                yield result
        except TerminatedWorkerError:
            losses += 1
            if losses > MOST_LOSSES:
                raise
            log.warning("a worker process died: %d blocks of runs are started again.", len(left))


class _Numbered:
    """A function that says which item a result is of; a class, so that it can be sent to other processes."""

    def __init__(self, function: Callable[[Any], Any]):
        self.function = function

    def __call__(self, number: int, item: Any) -> tuple[int, Any]:
        return number, self.function(item)


def versions() -> dict[str, str]:
    """What has to be the same on every machine for results to be the same."""
    packages = ("robust-sgld", "numpy", "numba")
    return {"python": platform.python_version()} | {name: importlib.metadata.version(name) for name in packages}


def _on_cluster(function: Callable[[T], R], items: Sequence[T], scheduler: str) -> Iterator[R]:
    from distributed import Client, as_completed

    try:
        client = Client(scheduler, timeout=SECONDS_FOR_A_CLUSTER, set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        raise InvalidInput(f"the Dask scheduler {scheduler} does not answer: {type(error).__name__}.") from None
    with client:
        _check_workers(client, scheduler)
        shared = client.scatter(function, broadcast=True)  # one copy a worker, not one a task
        futures = [client.submit(_call, shared, item, pure=False) for item in items]
        for future in as_completed(futures, loop=client.loop):
            yield future.result()
            future.release()


def _call(function: Callable[[T], R], item: T) -> R:
    return function(item)


def _check_workers(client: Client, scheduler: str) -> None:
    """A cluster whose workers lack the package would wait for ever without a word."""
    try:
        client.wait_for_workers(1, timeout=SECONDS_FOR_A_CLUSTER)
    except TimeoutError:
        raise InvalidInput(f"the Dask scheduler {scheduler} has no worker.") from None
    try:
        found = client.run(versions)
    except Exception as error:  # whatever the worker raises when it cannot import
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InvalidInput(f"a Dask worker of {scheduler} cannot use robust_sgld: {reason}") from None
    ours = versions()
    for address, theirs in found.items():
        different = [
            f"{name} {theirs.get(name)} instead of {ours[name]}" for name in ours if theirs.get(name) != ours[name]
        ]
        if different:
            raise InvalidInput(f"the Dask worker {address} has {', '.join(different)}: results would differ.")
