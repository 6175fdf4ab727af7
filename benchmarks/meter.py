"""What a command costs with everything that it starts: wall time, processor time, memory."""

import ctypes
import os
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from benchmarks.account import open_account

_PR_SET_CHILD_SUBREAPER = 36


class Cost(msgspec.Struct, frozen=True):
    """Of one command. cpu_seconds: of the whole tree. parent_bytes: peak of its first process. tree_bytes: peak of
    the whole tree, pages that several share counted once; 0 where it was not watched."""

    wall_seconds: float
    cpu_seconds: float
    parent_bytes: int
    tree_bytes: int
    output: bytes


def measure_command(
    command: Sequence[str], folder: Path, *, environment: Mapping[str, str] | None = None, watch: bool = False
) -> Cost:
    """Run a command to its end and to the end of everything it left behind. `SystemExit` when it fails.

    What outlives its parent becomes a child of this process, which waits for it.
    watch: also look at the memory of the tree; that takes processor time away, so do not use the times then.
    """
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    with open_account() as account:
        began = time.perf_counter()
        process = subprocess.Popen(
            account.wrap_command(command),
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        watcher = _Watcher(process.pid, whole_tree=watch)
        watcher.start()
        try:
            output, _ = process.communicate()
            wall = time.perf_counter() - began
        finally:
            process.kill()
            watcher.stop()
            _reap_orphans()
        cpu = account.read_seconds()
    if process.returncode != 0:
        raise SystemExit(f"{' '.join(command)}: exit status {process.returncode}: {output[-2000:].decode()}")
    return Cost(wall, cpu, watcher.parent_bytes, watcher.tree_bytes, output)


def _reap_orphans() -> None:
    while True:
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


class _Watcher(threading.Thread):
    """Looks at a process, or at its whole tree, again and again."""

    def __init__(self, pid: int, *, whole_tree: bool) -> None:
        super().__init__(daemon=True)
        self.parent_bytes = self.tree_bytes = 0
        self._pid = pid
        self._whole_tree = whole_tree
        self._ended = threading.Event()

    def run(self) -> None:
        while not self._ended.wait(0.05):
            self.parent_bytes = max(self.parent_bytes, _read_kilobytes(f"/proc/{self._pid}/status", "VmHWM:"))
            if self._whole_tree:
                self.tree_bytes = max(self.tree_bytes, _measure_tree(self._pid))

    def stop(self) -> None:
        self._ended.set()
        self.join()


def _measure_tree(root: int) -> int:
    """Proportional set size of a process and its descendants; what this user may not look at counts as nothing."""
    total, waiting = 0, [root]
    while waiting:
        pid = waiting.pop()
        total += _read_kilobytes(f"/proc/{pid}/smaps_rollup", "Pss:")
        try:
            for task in os.listdir(f"/proc/{pid}/task"):
                waiting += map(int, Path(f"/proc/{pid}/task/{task}/children").read_text().split())
        except OSError:
            continue
    return total


def _read_kilobytes(file: str, key: str) -> int:
    """A line of the kernel's such as `VmHWM: 12 kB`, in bytes; 0 when the process is gone."""
    try:
        with open(file, encoding="utf-8", errors="replace") as lines:
            return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(key)), 0)
    except OSError:
        return 0
