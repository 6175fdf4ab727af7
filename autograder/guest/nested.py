"""Mode `nested`: the fork server is behind one bubblewrap, each submission in namespaces of its own."""

import os
from typing import NoReturn

from . import minder, walls, wire
from .stage import Stage
from .student import be_student, report_fault


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
    """Clones an init for each submission; ending it ends everything."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage

    def start(self, pipes: tuple[int, int]) -> tuple[int, int]:
        """The init's pid and pidfd."""
        pid, pidfd = walls.clone_into_namespaces()
        if pid == 0:
            self._be_init(pipes)
        return pid, pidfd

    def finish(self, status: int) -> None:
        """With the namespaces all is gone."""

    def _be_init(self, pipes: tuple[int, int]) -> NoReturn:
        stage, settings = "init", self._stage.settings
        try:
            minder.catch_signals()
            self._stage.control.close()
            walls.enter_init(settings.disk_bytes, settings.files, wire.DEVICES)
            stage = "student"
            student = os.fork()
            if student == 0:
                be_student(pipes, lambda: walls.enter_student(pipes, self._stage.limits, settings.filter))
            for fd in pipes:
                os.close(fd)
            os._exit(minder.wait_for_student(student))
        except BaseException as error:
            report_fault(pipes[1], stage, error)
            os._exit(wire.SETUP_FAILED)
