"""Mode `single`: every submission has a bubblewrap of its own, in which the server itself is the init."""

import os
import resource
import shutil
import socket
from typing import NoReturn

from . import minder, walls, wire
from .stage import Stage
from .student import be_student, report_fault


def serve_one(stage: Stage) -> NoReturn:
    """Serve one submission as pid 1, tell how it ended, and end with everything in the namespace; never returns.

    The host knows this process already, so that no pidfd is sent.
    """
    walls.enter_sole_init()
    minder.catch_signals()
    # What the imports left there.
    for entry in os.scandir("/tmp"):
        shutil.rmtree(entry.path) if entry.is_dir() else os.unlink(entry.path)
    stage.control.send(b"r")
    data, fds, _, _ = socket.recv_fds(stage.control, 1, 3)
    if not data:
        os._exit(0)
    pipes, place = (fds[0], fds[1]), fds[2]
    try:
        student = os.fork()
        if student == 0:
            be_student(pipes, place, lambda: walls.enter_student(pipes, stage.limits, stage.settings.filter))
        for fd in fds:
            os.close(fd)
        # The tmpfs caps the bytes; nothing but these looks caps the files.
        code = minder.mind_student(student, (), lambda: minder.count_files("/tmp") > stage.settings.files)
    except BaseException as error:
        report_fault(pipes[1], "student", error)
        code = wire.SETUP_FAILED
    # What is still there dies with this process. Its own time, of starting, is not the submission's.
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    stage.control.send(wire.STATUS.pack(code << 8, used.ru_utime, used.ru_stime))
    os._exit(code)
