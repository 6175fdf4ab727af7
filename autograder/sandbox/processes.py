"""What the processes of one submission use, read from outside through /proc; works unprivileged."""

import functools
import math
import os
from collections.abc import Callable, Iterator
from contextlib import suppress

import msgspec

_TICKS = os.sysconf("SC_CLK_TCK")
_COUNTED = ("RssAnon:", "RssShmem:", "VmSwap:", "HugetlbPages:")
_COUNTED_ONCE = ("Pss_Anon:", "Pss_Shmem:", "SwapPss:", "Shared_Hugetlb:", "Private_Hugetlb:")
_SOCKET_BYTES = 212_992
"""What the kernel gives a socket unless it is told otherwise."""
_MAPPING_BYTES = 256
"""What the kernel keeps for a mapping: 251 were measured (Linux 6.18, x86-64)."""
_ROUNDS = 3
"""For processes that were forked while others were looked at."""


class Usage(msgspec.Struct, frozen=True):
    """Of a whole tree: CPU seconds (with ended children), memory in bytes (see `read_memory`) and processes."""

    cpu_seconds: float
    memory_bytes: int
    processes: int
    threads: int


def measure_sockets(pid: int) -> int:
    """Bytes that the sockets of a process's network may hold in their buffers, which no process is charged for.

    A pair of local streams holds as much as may wait to be sent: `setsockopt`, which changes it, is denied inside.
    """
    try:
        sockets = int(_read(f"/proc/{pid}/net/sockstat").split(maxsplit=3)[2])
    except (OSError, ValueError, IndexError):
        return 0
    return sockets * _find_socket_bytes() if sockets else 0


@functools.cache
def _find_socket_bytes() -> int:
    """What one socket may hold."""
    with suppress(OSError, ValueError):  # not to be seen from a container with a network of its own
        return int(_read("/proc/sys/net/core/wmem_default"))
    return _SOCKET_BYTES


def measure_mappings(root: int, enough: float, is_over: Callable[[], bool] = lambda: False) -> int:
    """Bytes of the kernel's that the mappings of a tree take, which no process is charged for.

    enough: bytes after which the rest need not be looked at; 65,530 mappings, the most of a process, take 20 ms.
    is_over: asked between two processes; nothing more is looked at once it is.
    """
    size = 0
    for pid in walk_tree(root):
        if is_over():
            break
        size += _read_mappings(f"/proc/{pid}/maps", enough - size) or _read_mappings_of_others(pid, enough - size)
        if size > enough:
            break
    return size


def _read_mappings(file: str, enough: float) -> int:
    size = 0
    with suppress(OSError), open(file, "rb") as lines:
        while size <= enough and (part := lines.read(2**16)):
            size += part.count(b"\n") * _MAPPING_BYTES
    return size


def _read_mappings_of_others(pid: int, enough: float) -> int:
    """Where the first thread has ended, another one tells."""
    with suppress(OSError):
        tasks = (f"/proc/{pid}/task/{task}/maps" for task in os.listdir(f"/proc/{pid}/task"))
        return next((found for task in tasks if (found := _read_mappings(task, enough))), 0)
    return 0


def read_pid(pidfd: int) -> int:
    """The process id behind a pidfd, in this process's namespace; -1 when it is gone."""
    with open(f"/proc/self/fdinfo/{pidfd}", encoding="ascii") as file:
        for line in file:
            if line.startswith("Pid:"):
                return int(line.split()[1])
    return -1


def walk_tree(root: int) -> Iterator[int]:
    """A process and all its descendants; the children of each are looked up only after it was handed out."""
    waiting = [root]
    while waiting:
        pid = waiting.pop()
        yield pid
        with suppress(OSError, ValueError):
            waiting += _read_children(pid)


def measure_tree(root: int) -> Usage:
    """Sum over a process and all its descendants; those that end while it looks are left out.

    A page that forked processes share counts once for each of them.
    """
    cpu = 0.0
    memory = count = threads = 0
    for pid in walk_tree(root):
        try:
            seconds, running = _read_stat(pid)
            own = read_memory(pid)
        except (OSError, ValueError, IndexError):
            continue
        cpu += seconds
        memory += own
        count += 1
        threads += running
    return Usage(cpu, memory, count, threads)


def measure_cpu(root: int) -> float:
    """The CPU seconds of a process and all its descendants, with those of ended children."""
    cpu = 0.0
    for pid in walk_tree(root):
        with suppress(OSError, ValueError, IndexError):
            cpu += _read_stat(pid)[0]
    return cpu


def measure_delay(root: int) -> float:
    """Seconds for which a process of a tree was ready to run and had no processor, the longest of them; 0 where the
    kernel does not say."""
    longest = 0
    for pid in walk_tree(root):
        with suppress(OSError, ValueError, IndexError):
            longest = max(longest, int(_read(f"/proc/{pid}/schedstat").split()[1]))
    return longest / 1e9


class Shared(msgspec.Struct, frozen=True):
    """Memory of a whole tree where a page that several processes share counts once."""

    memory_bytes: int
    """Of those processes that could be read."""
    read: int
    ended: int
    """Processes that were there and were gone before they could be read."""

    @property
    def likely_bytes(self) -> int:
        """The same with the ended ones, as if they had been like the others; they may have hidden what they shared."""
        return self.memory_bytes * (self.read + self.ended) // max(1, self.read)


def measure_shared(root: int, enough: float = math.inf, is_over: Callable[[], bool] = lambda: False) -> Shared:
    """Look closely at a process and all its descendants. Costs some milliseconds for each of them.

    A process that may not be looked at so closely counts as in `measure_tree`.
    enough: bytes after which the rest need not be looked at, so that the processes gain no time to take more.
    is_over: asked between two processes; nothing more is looked at once it is.
    """
    seen: set[int] = set()
    memory = read = ended = 0
    for _ in range(_ROUNDS):
        fresh = [pid for pid in walk_tree(root) if pid not in seen]
        if not fresh:
            break
        seen.update(fresh)
        for pid in fresh:
            if is_over():
                return Shared(memory, read, ended)
            part = _read_shared(pid)
            if part is None:
                ended += 1
            else:
                memory += part
                read += 1
            if memory > enough and not ended:
                return Shared(memory, read, ended)
    return Shared(memory, read, ended)


def _read(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def _read_fields(pid: int) -> list[str]:
    """The fields of `/proc/<pid>/stat` from the third on."""
    return _read(f"/proc/{pid}/stat").rpartition(")")[2].split()


def _read_stat(pid: int) -> tuple[float, int]:
    """Seconds of processor time, with ended children, and the number of threads."""
    fields = _read_fields(pid)
    return sum(int(field) for field in fields[11:15]) / _TICKS, int(fields[17])


def read_parent(pid: int) -> int:
    """The process id of a process's parent; 0 when there is none to be seen."""
    try:
        return int(_read_fields(pid)[1])
    except (OSError, ValueError, IndexError):
        return 0


def read_memory(pid: int) -> int:
    """Bytes of anonymous, shared and swapped memory; where the first thread has ended, another one tells."""
    lines = _list_memory_lines(f"/proc/{pid}/status")
    if not lines:
        tasks = (f"/proc/{pid}/task/{task}/status" for task in os.listdir(f"/proc/{pid}/task"))
        lines = next((found for task in tasks if (found := _list_memory_lines(task))), [])
    return 1024 * sum(int(line.split()[1]) for line in lines)


def _list_memory_lines(status: str) -> list[str]:
    return [line for line in _read(status).splitlines() if line.startswith(_COUNTED)]


def _read_shared(pid: int) -> int | None:
    """`read_memory` with each page divided by the number of processes that share it; None when the process is gone."""
    with suppress(OSError, ValueError, IndexError):
        lines = _read(f"/proc/{pid}/smaps_rollup").splitlines()
        parts = [line.split() for line in lines if line.startswith(_COUNTED_ONCE)]
        if parts:
            return 1024 * sum(int(part[1]) for part in parts)
    try:
        return read_memory(pid)
    except (OSError, ValueError, IndexError):
        return None


def _read_children(pid: int) -> list[int]:
    """The children of all its threads; a thread that ends while it is looked at hides those of no other."""
    children: list[int] = []
    for task in os.listdir(f"/proc/{pid}/task"):
        with suppress(OSError, ValueError):
            children += map(int, _read(f"/proc/{pid}/task/{task}/children").split())
    return children
