"""What a person must know about the mode that is taken: said once in a run, whatever the number of workers."""

import mmap
import os
import sys
from multiprocessing import get_context

_FELL_BACK, _WARNED = range(2)
_shared = mmap.mmap(-1, 2)
"""Workers are forked from the process that imports this, and share it."""
_lock = get_context("fork").Lock()


def has_fallen_back() -> bool:
    """Whether a worker of this run has found that `nested` does not work here."""
    return _shared[_FELL_BACK] == 1


def note_fallback(reason: str) -> None:
    """`auto` takes `single`."""
    _say_once(
        _FELL_BACK,
        f"{reason}; every submission gets a bubblewrap of its own instead (--sandbox single), "
        "which is as safe and slower",
    )


def warn_unwalled() -> None:
    """Mode `none` is taken."""
    as_root = "; you are root, so it can change the whole machine" if os.geteuid() == 0 else ""
    _say_once(
        _WARNED,
        "WARNING: --sandbox none runs notebooks as yourself and without a wall: they can read and change all your "
        f"files, hidden tests and marks among them, and use the network{as_root}; never run a student's file like this",
    )


def _say_once(place: int, text: str) -> None:
    with _lock:
        if _shared[place]:
            return
        _shared[place] = 1
    print(f"autograder: {text}", file=sys.stderr, flush=True)
