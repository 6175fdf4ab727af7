"""Mode `nested`: the fork server is behind one bubblewrap, each submission in namespaces of its own.

The student's process is itself the init of these namespaces: a process above it would cost as much as the submission's
own code, and would be one more that student code could look at.
"""

import os

from . import walls, wire
from .stage import Stage
from .student import be_student


def find_fault(settings: wire.Settings) -> str:
    """Build the wall of a submission around nothing; why this machine does not let it stand, or nothing."""
    reading, writing = os.pipe()
    try:
        pid, pidfd = walls.clone_into_namespaces()
    except OSError as error:
        return str(error)
    if pid == 0:
        try:
            walls.enter_init(settings.disk_bytes, settings.files, wire.DEVICES)
        except OSError as error:
            os.write(writing, str(error).encode())
        finally:
            os._exit(0)
    os.close(pidfd)
    os.close(writing)
    os.waitpid(pid, 0)
    with os.fdopen(reading, "rb") as pipe:
        return pipe.read().decode(errors="replace")


class NestedMaker:
    """Clones a student's process for each submission, as the init of its namespaces: its end ends everything."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage

    def start(self, pipes: tuple[int, int], place: int) -> tuple[int, int]:
        """The student's pid and pidfd."""
        pid, pidfd = walls.clone_into_namespaces()
        if pid == 0:
            be_student(pipes, place, lambda: self._enter(pipes))
        return pid, pidfd

    def finish(self, status: int) -> int:
        """With the namespaces all is gone. The student chose the exit code, which must not pass for one of ours."""
        return 1 << 8 if os.WIFEXITED(status) and os.WEXITSTATUS(status) else status

    def _enter(self, pipes: tuple[int, int]) -> None:
        settings = self._stage.settings
        walls.enter_init(settings.disk_bytes, settings.files, wire.DEVICES)
        walls.enter_student(pipes, self._stage.limits, settings.filter)
