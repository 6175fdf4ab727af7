"""Files without a name: what processes hold open or mapped after they have deleted it takes space all the same."""

import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress

_BLOCK = 512


def list_sizes(pids: Iterable[int]) -> Iterator[int]:
    """The bytes on disk, or in memory, of each deleted file that processes hold; each file once.

    Root may look everywhere if it may trace processes, and others may look at their own; what cannot be looked at is
    left out.
    """
    seen: set[tuple[int, int]] = set()
    for pid in pids:
        for found in (_list_open(pid), _list_mapped(pid)):
            for file, size in found:
                if file not in seen:
                    seen.add(file)
                    yield size


def _list_open(pid: int) -> Iterator[tuple[tuple[int, int], int]]:
    """Device and inode of open files, and their bytes. A thread may have descriptors of its own."""
    for task in _list(f"/proc/{pid}/task"):
        folder = f"/proc/{pid}/task/{task}/fd"
        for fd in _list(folder):
            with suppress(OSError):
                status = os.stat(f"{folder}/{fd}")
                if stat.S_ISREG(status.st_mode) and status.st_nlink == 0:
                    yield (status.st_dev, status.st_ino), status.st_blocks * _BLOCK


def _list_mapped(pid: int) -> Iterator[tuple[tuple[int, int], int]]:
    """The same of mapped files, and of shared memory that has no name.

    All threads share them, but one that has ended shows none.
    """
    maps: list[bytes] = []
    for task in _list(f"/proc/{pid}/task"):
        with suppress(OSError), open(f"/proc/{pid}/task/{task}/maps", "rb") as file:
            maps = file.readlines()
        if maps:
            break
    looked: set[tuple[bytes, bytes]] = set()
    for line in maps:
        if not line.endswith(b" (deleted)\n"):
            continue
        addresses, _, _, device, inode, _ = line.split(maxsplit=5)
        if (device, inode) in looked:
            continue
        looked.add((device, inode))
        start, end = (int(each, 16) for each in addresses.split(b"-"))
        try:
            status = os.stat(f"/proc/{pid}/map_files/{start:x}-{end:x}")
        except OSError:
            major, minor = (int(each, 16) for each in device.split(b":"))
            yield (os.makedev(major, minor), int(inode)), end - start
        else:
            if status.st_nlink == 0:
                yield (status.st_dev, status.st_ino), status.st_blocks * _BLOCK


def _list(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []
