"""Folders that are gone afterwards: when their process is killed, by the next one that makes such a folder here."""

import fcntl
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir

_YOUNG_SECONDS = 60.0


@contextmanager
def make_temporary(prefix: str) -> Iterator[Path]:
    """A folder that nobody else may read. What processes that were killed left under this prefix is removed first."""
    sweep_stale(prefix)
    with TemporaryDirectory(prefix=prefix) as name:
        hold = os.open(name, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(hold, fcntl.LOCK_EX)
            yield Path(name)
        finally:
            os.close(hold)


def sweep_stale(prefix: str) -> None:
    """Remove folders of processes that were killed; whoever lives holds a lock on its own."""
    for path in Path(gettempdir()).glob(f"{prefix}*"):
        with suppress(OSError):
            folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                found = os.fstat(folder)
                # Between being made and being locked it is young.
                if found.st_uid == os.getuid() and time.time() - found.st_mtime > _YOUNG_SECONDS:
                    fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(path)
            finally:
                os.close(folder)
