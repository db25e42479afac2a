"""Progress of long work: a bar with rate and time left on a terminal, sparse lines in a log."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from tqdm import tqdm

from robust_sgld.trial import Progress

SECONDS_BETWEEN_LINES = 10

log = logging.getLogger(__name__)


@contextmanager
def progress(label: str, total: int) -> Iterator[Progress]:
    """A callback (done, total) for `run_trial`."""
    if sys.stderr.isatty():
        with tqdm(total=total, desc=label, unit="run", dynamic_ncols=True) as bar:
            yield lambda done, _: bar.update(done - bar.n) and None
        return
    began = said = time.monotonic()
    before: int | None = None

    def line(done: int, total: int) -> None:
        nonlocal said, before
        if before is None:
            before = done - 1  # runs of an earlier attempt say nothing of the speed
        now = time.monotonic()
        if now - said >= SECONDS_BETWEEN_LINES and done < total:
            said, seconds = now, now - began
            log.info(
                "%s: %d/%d runs, %.0f s, about %.0f s left",
                label,
                done,
                total,
                seconds,
                seconds * (total - done) / (done - before),
            )

    yield line
