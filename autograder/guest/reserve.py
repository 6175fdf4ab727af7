"""Memory that is kept back, so that a cell that takes all there is leaves some for the cells of others."""

from mmap import MAP_ANONYMOUS, MAP_PRIVATE, mmap

_BYTES = 2**24
"""Of address space, which the limit is about; nobody writes there."""

_kept: list[mmap] = []


def keep() -> None:
    """Hold the reserve, if it is not held. `OSError` when memory is short."""
    if not _kept:
        _kept.append(mmap(-1, _BYTES, MAP_PRIVATE | MAP_ANONYMOUS))


def give_if_short() -> None:
    """Let go of it when half of it could not be had any more."""
    try:
        mmap(-1, _BYTES // 2, MAP_PRIVATE | MAP_ANONYMOUS).close()
    except OSError:
        while _kept:
            _kept.pop().close()
