"""Files that are either there in full or not at all."""

from __future__ import annotations

import os
import uuid
from pathlib import Path

TEMPORARY = ".unfinished-"
"""How the name of a file begins that is being written; one that a killed process left behind may be deleted."""


def write_whole(path: Path, content: bytes) -> None:
    """Writes a file so that after a kill or a power cut at any moment `path` holds the old or the new content in full.

    The content reaches the disk (fsync) under another name in the same folder before it takes the name, and the
    folder's entry reaches the disk before this returns.
    """
    temporary = path.with_name(f"{TEMPORARY}{uuid.uuid4().hex}")
    try:
        with open(temporary, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Makes renames in a folder survive a power cut, where the system can (not on Windows)."""
    if os.name == "nt":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove_unfinished(folder: Path) -> None:
    """Deletes what killed writers left behind; only for a folder that nobody else is writing to."""
    for left in folder.glob(f"{TEMPORARY}*"):
        left.unlink(missing_ok=True)
