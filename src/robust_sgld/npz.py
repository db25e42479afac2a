"""Named arrays in one file, without pickle."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from robust_sgld.checks import InvalidInput
from robust_sgld.files import write_whole


def write_arrays(path: Path, arrays: Mapping[str, Any]) -> None:
    """Compressed, under exactly this name (NumPy itself would add a suffix to a name without one), whole or not at all.

    The same arrays give the same bytes: the archive holds no time of day.
    """
    write_whole(path, pack(arrays))


def pack(arrays: Mapping[str, Any], *, compress: bool = True) -> bytes:
    """The bytes of an npz file."""
    made = {name: np.asarray(value) for name, value in arrays.items()}
    for name, value in made.items():
        if value.dtype == object:
            raise InvalidInput(f"{name} cannot be stored without pickle.")
    buffer = io.BytesIO()
    (np.savez_compressed if compress else np.savez)(buffer, **made)  # type: ignore[arg-type]
    return buffer.getvalue()


def unpack(content: bytes) -> dict[str, np.ndarray]:
    """All arrays of `pack`; raises whatever NumPy does for bytes that are none."""
    with np.load(io.BytesIO(content), allow_pickle=False) as stored:
        return {name: stored[name] for name in stored.files}


def read_arrays(path: Path, names: Iterable[str], what: str) -> dict[str, np.ndarray]:
    """The arrays of these names; a file that is not `what` is refused."""
    try:
        # np.load leaves a file open that it fails to read, so it is given one that is closed here
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as stored:
            return {name: stored[name] for name in names}
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read as {what}: {error.strerror or error}.") from None
    except Exception:  # damage shows in numpy, zipfile, zlib or the header's parser, each with errors of its own
        raise InvalidInput(f"{path} is not {what}, or it is damaged.") from None
