"""Control groups of version 2: the kernel's own limit on the memory and the processes of one submission.

Used where a part of the tree of groups is delegated to us, such as by `systemd-run --user --scope -p Delegate=yes`;
elsewhere `watch.py` looks at /proc. A group counts what a submission adds: pages of the fork server belong to the
group of the fork server until a process changes them. A fault of the groups is never a student's: the watch takes over.
"""

import errno
import os
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from autograder.course import Limits
from autograder.sandbox.processes import read_memory, read_parent, walk_tree
from autograder.sandbox.watch import SLACK

_LEAF = "autograder"
"""Our own processes move here: the kernel gives limits to the children of a group without processes only."""
_PREFIX = "submission-"
_CONTROLLERS = {"memory", "pids"}
_UNITS = (".scope", ".service", ".slice")
_OWN_PROCESSES = 4
"""Of the walls, beside those of the student."""
_TRIES = 50
_REMOVE_SECONDS = 2.0


class Delegation(msgspec.Struct, frozen=True):
    """The group whose children may be made and limited, or None and why there is none."""

    folder: Path | None
    reason: str


def find_delegation(groups: str, mounts: str, pid: int) -> Delegation:
    """Look whether a group is delegated to a process; changes nothing.

    groups, mounts: what `/proc/<pid>/cgroup` and `/proc/<pid>/mountinfo` hold.
    """
    folder = find_folder(groups, mounts)
    if folder is None:
        return Delegation(None, "no control groups of version 2 are mounted here")
    home = folder.parent if folder.name == _LEAF else folder
    try:
        missing = _CONTROLLERS - set((home / "cgroup.controllers").read_text().split())
        if missing:
            return Delegation(None, f"{home} has no controller for {' and '.join(sorted(missing))}")
        if not all(os.access(home / name, os.W_OK) for name in ("", "cgroup.procs", "cgroup.subtree_control")):
            return Delegation(None, f"{home} is not delegated to this user")
        if home.name.endswith(_UNITS) and not _is_marked(home):
            return Delegation(None, f"{home} belongs to systemd, which did not delegate it")
        if _has_members(home) and _list_foreign(home, pid):
            return Delegation(None, f"{home} holds processes that are not ours")
    except OSError as error:
        return Delegation(None, f"{home} cannot be used ({error.strerror})")
    return Delegation(home, "")


def find_folder(groups: str, mounts: str) -> Path | None:
    """The folder of a process's group, from `/proc/<pid>/cgroup` and `/proc/<pid>/mountinfo`."""
    own = next((line[3:] for line in groups.splitlines() if line.startswith("0::/")), None)
    if own is None or own.endswith(" (deleted)"):
        return None
    for line in mounts.splitlines():
        left, _, right = line.partition(" - ")
        fields = left.split()
        if right.split()[:1] != ["cgroup2"] or len(fields) < 5:
            continue
        if Path(own).is_relative_to(fields[3]) and ".." not in Path(own).parts:
            return Path(fields[4]) / Path(own).relative_to(fields[3])
    return None


def look_here() -> Delegation:
    """`find_delegation` for this process."""
    try:
        groups, mounts = (Path(f"/proc/self/{name}").read_text() for name in ("cgroup", "mountinfo"))
    except OSError as error:
        return Delegation(None, f"/proc cannot be read ({error.strerror})")
    return find_delegation(groups, mounts, os.getpid())


class Groups:
    """Makes a group for each submission where one is delegated; a fault ends that for good, and quietly."""

    def __init__(self) -> None:
        self._home = look_here().folder
        if self._home is not None:
            try:
                _prepare(self._home)
            except OSError:
                self._home = None

    @property
    def in_use(self) -> bool:
        """Whether the kernel keeps the limits, and not the watch."""
        return self._home is not None

    @contextmanager
    def confine(self, root: int, limits: Limits) -> Iterator["Group | None"]:
        """A group with these limits around a process and all its descendants; None where there can be none.

        To be called before the processes run what a student wrote. When the block ends, all of them are killed.
        """
        group = self._make(root, limits)
        try:
            yield group if self.in_use else None
        finally:
            if group is not None:
                group.remove()

    def _make(self, root: int, limits: Limits) -> "Group | None":
        if self._home is None or root < 0:
            return None
        group = Group(self._home / f"{_PREFIX}{os.getpid()}-{secrets.token_hex(4)}")
        try:
            group.make(root, limits)
        except OSError:
            if read_parent(root):  # what is gone already is no fault of the groups
                self._home = None
        return group


class Group:
    """The group of one submission."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def make(self, root: int, limits: Limits) -> None:
        """Make the group, set its limits and move a process with its descendants into it. `OSError` when it fails."""
        # Its files and the pages of the fork server that it changes count here as well.
        memory = int(SLACK * limits.memory_bytes) + limits.disk_bytes + read_memory(root)
        self._folder.mkdir()
        _write(self._folder / "memory.max", str(memory))
        _write(self._folder / "memory.oom.group", "1")
        _write(self._folder / "pids.max", str(limits.processes + _OWN_PROCESSES))
        with suppress(FileNotFoundError):  # without swap, or when it is not counted
            _write(self._folder / "memory.swap.max", "0")
        # Each is moved before its children are looked up: whoever is forked later is inside from the beginning.
        for pid in walk_tree(root):
            with suppress(ProcessLookupError):
                _write(self._folder / "cgroup.procs", str(pid))

    def is_out_of_memory(self) -> bool:
        """Whether the kernel ended the processes because they had too much memory."""
        return self._read_event("memory.events", "oom_kill") > 0

    def count_refused_processes(self) -> int:
        """How often the group refused a new process or thread."""
        return self._read_event("pids.events", "max")

    def _read_event(self, name: str, key: str) -> int:
        try:
            lines = (self._folder / name).read_text().splitlines()
        except OSError:
            return 0
        return next((int(line.split()[1]) for line in lines if line.startswith(f"{key} ")), 0)

    def remove(self) -> None:
        """End what is still inside, and take the group away; one that stays is left to the next run."""
        with suppress(OSError):
            _write(self._folder / "cgroup.kill", "1")
        deadline = time.monotonic() + _REMOVE_SECONDS
        while True:
            try:
                self._folder.rmdir()
            except OSError as error:
                if error.errno != errno.EBUSY or time.monotonic() > deadline:
                    return
                time.sleep(0.002)
            else:
                return


def _prepare(home: Path) -> None:
    """Move our own processes out of the way, let children have limits, remove what a killed run left behind."""
    if _has_members(home):
        with suppress(FileExistsError):
            (home / _LEAF).mkdir()
    for left in range(_TRIES, -1, -1):
        for pid in _list_members(home) if _has_members(home) else ():
            with suppress(ProcessLookupError):
                _write(home / _LEAF / "cgroup.procs", str(pid))
        try:
            _write(home / "cgroup.subtree_control", " ".join(f"+{name}" for name in sorted(_CONTROLLERS)))
            break
        except OSError as error:
            # Somebody was just forked.
            if error.errno != errno.EBUSY or left == 0:
                raise
    for folder in home.glob(f"{_PREFIX}*"):
        if not Path("/proc", folder.name.split("-")[1]).exists():
            with suppress(OSError):
                folder.rmdir()


def _has_members(home: Path) -> bool:
    """Whether processes in a group are in the way: not in the topmost one, which has no limits itself."""
    return (home / "cgroup.type").exists()


def _list_members(folder: Path) -> list[int]:
    return [int(line) for line in (folder / "cgroup.procs").read_text().split()]


def _list_foreign(home: Path, pid: int) -> list[int]:
    """Processes in a group that do not descend from our first ancestor there: moving them is not for us."""
    members = _list_members(home)
    leaf = home / _LEAF
    inside = {*members, *(_list_members(leaf) if leaf.exists() else ())}
    first = [each for each in _list_ancestors(pid) if each in inside][-1:]
    return [each for each in members if not first or first[0] not in _list_ancestors(each)]


def _list_ancestors(pid: int) -> list[int]:
    """A process, its parent, and so on; empty when it is not to be seen from here."""
    found = []
    while pid > 0:
        found.append(pid)
        pid = read_parent(pid)
    return found


def _is_marked(folder: Path) -> bool:
    """Whether systemd says that it leaves a group to others; older ones tell root only."""
    for name in ("user.delegate", "trusted.delegate"):
        with suppress(OSError):
            if os.getxattr(folder, name) == b"1":
                return True
    return False


def _write(path: Path, text: str) -> None:
    """One write, which the kernel takes or refuses as a whole."""
    fd = os.open(path, os.O_WRONLY)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)
