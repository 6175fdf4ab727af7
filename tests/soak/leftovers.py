"""Everything that a command could leave behind, as far as this process's namespaces reach."""

import os
import sys
import time
from pathlib import Path

from .command import read_command_line

ROOT = Path(__file__).parents[2]
BASE = Path(sys.base_prefix)
"""This checkout and its Python are shown again where an empty folder covers them, see `scripts/soak.sh`."""
STAGE = "/run/autograder"
"""Where root mounts what the sandbox shows, in a mount namespace of its own; the empty folder stays."""
PLACES = ("/tmp", "/run", "/dev/shm")
PATIENCE = 15.0
"""Seconds that the kernel gets to take down what was killed."""


def list_things(work: Path) -> set[str]:
    """Processes but this one, files outside the folder `work`, mounts, IPC objects and control groups."""
    found = {*_list_processes(), *_list_files(work), *_list_mounts(), *_list_ipc_objects(), *_list_cgroups()}
    return found - {STAGE}


def list_leftovers(before: set[str], work: Path) -> set[str]:
    """What is there now and was not there before; what is just ending gets a moment."""
    end = time.monotonic() + PATIENCE
    while (left := list_things(work) - before) and time.monotonic() < end:
        time.sleep(0.05)
    return left


def _list_processes() -> set[str]:
    found = set()
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != os.getpid():
            try:
                state = Path(f"/proc/{name}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2]
            except OSError:
                continue
            # A zombie whose parent was killed is dead; only this process's duty to say so is left. One with further
            # threads is not: its first thread alone has ended.
            if state.split()[0] != "Z" or int(state.split()[17]) > 1:
                found.add(f"process {name} {read_command_line(int(name))[:80]!r}")
    return found


def _list_files(work: Path) -> set[str]:
    return {
        str(path)
        for place in PLACES
        for path in Path(place).rglob("*")
        if not any(path == own or own in path.parents or path in own.parents for own in (work, ROOT, BASE))
    }


def _list_mounts() -> set[str]:
    return {
        f"mount {line.split()[4]}" for line in Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()
    }


def _list_ipc_objects() -> set[str]:
    """System V objects; POSIX queues are files, see `scripts/soak.sh`."""
    return {
        f"ipc {kind} {' '.join(line.split()[:2])}"
        for kind in ("msg", "sem", "shm")
        for line in Path("/proc/sysvipc", kind).read_text(encoding="ascii").splitlines()[1:]
    }


def _list_cgroups() -> set[str]:
    """Groups of submissions below the control group, of version 2, of this process."""
    own = next((line[4:] for line in Path("/proc/self/cgroup").read_text().splitlines() if line.startswith("0::/")), "")
    return {f"cgroup {path}" for path in Path("/sys/fs/cgroup", own).parent.glob("**/submission-*")}
