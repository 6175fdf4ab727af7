"""The command line as a process of its own, and the processes below it with the part that each plays."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

AUTOGRADER = Path(sys.executable).with_name("autograder")
JOBS = 2


@dataclass(frozen=True)
class Ended:
    """How a command ended; `results` are those of its JSON document by student, None where it printed none."""

    status: int
    results: dict[str, dict[str, Any]] | None
    errors: str


@dataclass(frozen=True)
class Process:
    """A process below a command, and its role: one of `ROLES`."""

    pid: int
    role: str


ROLES = ("command", "worker", "launcher", "bubblewrap", "fork server", "student")


class Command:
    """A running `autograder grade FOLDER --json`, in a session of its own."""

    def __init__(self, course: Path, submissions: Path, log: Path) -> None:
        self._out, self._err = log.with_suffix(".out"), log.with_suffix(".err")
        with self._out.open("wb") as out, self._err.open("wb") as err:
            self.process = subprocess.Popen(
                [AUTOGRADER, "grade", submissions, "--json", "--jobs", str(JOBS), "--course", course],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )

    @property
    def is_running(self) -> bool:
        return self.process.poll() is None

    def wait(self, seconds: float) -> Ended:
        """Wait for the end; `subprocess.TimeoutExpired` when it is too far away."""
        status = self.process.wait(seconds)
        text = self._out.read_bytes()
        document = json.loads(text) if text else None
        results = {each["student"]: each for each in document["results"]} if document else None
        return Ended(status, results, self._err.read_text(encoding="utf-8", errors="replace"))

    def list_processes(self) -> list[Process]:
        """The command and everything below it at this moment."""
        found = [Process(self.process.pid, "command")]
        for process in found:
            found += [Process(pid, _find_role(pid, process.role)) for pid in _read_children(process.pid)]
        return [process for process in found if process.role in ROLES]


def _find_role(pid: int, parent: str) -> str:
    """What a child does, by what it is and by its parent's role."""
    if parent == "command":
        return "worker"
    if parent == "worker":
        return "launcher" if b"launcher.py" in read_command_line(pid) else "bubblewrap"
    if parent == "bubblewrap":
        return "bubblewrap" if read_command_line(pid).split(b" ")[0].endswith(b"bwrap") else "fork server"
    return {"fork server": "student", "student": "student"}.get(parent, "bubblewrap")


def read_command_line(pid: int) -> bytes:
    """The arguments of a process, separated by spaces; empty when it is gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ")
    except OSError:
        return b""


def _read_children(pid: int) -> list[int]:
    try:
        tasks = os.listdir(f"/proc/{pid}/task")
        return [
            int(child)
            for task in tasks
            for child in Path(f"/proc/{pid}/task/{task}/children").read_text(encoding="ascii").split()
        ]
    except OSError:
        return []
