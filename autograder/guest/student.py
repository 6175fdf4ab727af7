"""The process that runs student code: what all modes have in common."""

import mmap
import os
import signal
from collections.abc import Callable
from typing import NoReturn

from . import runner, wire


def be_student(pipes: tuple[int, int], place: int, enter: Callable[[], None]) -> NoReturn:
    """Step behind the wall with `enter`, then run a submission; never returns.

    place: a descriptor of the memory that says where a pass is; it is closed with all others.
    """
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        memory = mmap.mmap(place, wire.PLACE.size)
        enter()
    except BaseException as error:
        report_fault(pipes[1], "student", error)
        os._exit(1)
    try:
        runner.run_submission(*pipes, memory, os.getcwd())
        os._exit(0)
    finally:
        os._exit(1)


def report_fault(reply_fd: int, stage: str, error: BaseException) -> None:
    """Tell the host that a wall could not be built; no student code has run by then."""
    os.write(reply_fd, wire.build_frame(wire.Fault(stage, str(error)[: wire.MAX_TEXT])))
