"""What the processes of one submission use, read from outside through /proc; works unprivileged."""

import os

import msgspec

_TICKS = os.sysconf("SC_CLK_TCK")


class Usage(msgspec.Struct, frozen=True):
    """Of a whole tree: CPU seconds (with ended children), memory in bytes (anonymous and shared) and processes."""

    cpu_seconds: float
    memory_bytes: int
    root_memory_bytes: int
    """Of the root alone."""
    processes: int


def read_pid(pidfd: int) -> int:
    """The process id behind a pidfd, in this process's namespace; -1 when it is gone."""
    with open(f"/proc/self/fdinfo/{pidfd}", encoding="ascii") as file:
        for line in file:
            if line.startswith("Pid:"):
                return int(line.split()[1])
    return -1


def measure_tree(root: int) -> Usage:
    """Sum over a process and all its descendants; those that end while it looks are left out."""
    cpu = 0.0
    memory = root_memory = count = 0
    waiting = [root]
    while waiting:
        pid = waiting.pop()
        try:
            cpu += _read_cpu(pid)
            own = _read_memory(pid)
            memory += own
            root_memory = own if pid == root else root_memory
            waiting += _read_children(pid)
        except (OSError, ValueError, IndexError):
            continue
        count += 1
    return Usage(cpu, memory, root_memory, count)


def _read(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def _read_cpu(pid: int) -> float:
    fields = _read(f"/proc/{pid}/stat").rpartition(")")[2].split()
    return sum(int(field) for field in fields[11:15]) / _TICKS


def _read_memory(pid: int) -> int:
    """Anonymous and shared memory; where the first thread has ended, another one tells."""
    lines = _list_memory_lines(f"/proc/{pid}/status")
    if not lines:
        tasks = (f"/proc/{pid}/task/{task}/status" for task in os.listdir(f"/proc/{pid}/task"))
        lines = next((found for task in tasks if (found := _list_memory_lines(task))), [])
    return 1024 * sum(int(line.split()[1]) for line in lines)


def _list_memory_lines(status: str) -> list[str]:
    return [line for line in _read(status).splitlines() if line.startswith(("RssAnon:", "RssShmem:"))]


def _read_children(pid: int) -> list[int]:
    return [
        int(child)
        for task in os.listdir(f"/proc/{pid}/task")
        for child in _read(f"/proc/{pid}/task/{task}/children").split()
    ]
