"""The fork server: imports once, then makes a walled process for each submission.

It never reads a request or a reply: those pipes are made by the host, passed through and closed, so
that no submission's bytes stay in memory that the next one inherits.

Control socket: the host sends one byte with two descriptors (request to read, reply to write); the
server answers one byte with the init's pidfd, and when all is over a `wire.STATUS` record.
"""

import gc
import importlib
import os
import signal
import socket
import sys

import msgspec

from . import ipython, runner, walls, wire


def serve(settings: wire.Settings) -> None:
    """Serve submissions until the control socket closes."""
    control = socket.socket(fileno=settings.control)
    filter_bytes = settings.filter
    for module in settings.preload:
        importlib.import_module(module)
    ipython.start_shell()
    runner.compile_known(settings.cells, frozenset(settings.lesson))
    limits = {
        "RLIMIT_AS": walls.address_space() + settings.memory_bytes,
        "RLIMIT_CPU": settings.cpu_seconds + 1,
        "RLIMIT_NPROC": settings.processes,
        "RLIMIT_NOFILE": 128,
        "RLIMIT_FSIZE": settings.disk_bytes,
        # Not 0: a core_pattern that is a pipe ignores 0 and honours 1.
        "RLIMIT_CORE": 1,
        "RLIMIT_RTPRIO": 0,
        "RLIMIT_NICE": 0,
        "RLIMIT_MSGQUEUE": 0,
        "RLIMIT_MEMLOCK": 0,
    }
    gc.collect()
    gc.freeze()
    control.send(b"r")
    while True:
        data, fds, _, _ = socket.recv_fds(control, 1, 2)
        if not data:
            return
        pid, pidfd = walls.clone_into_namespaces()
        if pid == 0:
            _be_init(control, (fds[0], fds[1]), settings, limits, filter_bytes)
        for fd in fds:
            os.close(fd)
        socket.send_fds(control, [b"p"], [pidfd])
        os.close(pidfd)
        _, status, usage = os.wait4(pid, 0)
        control.send(wire.STATUS.pack(status, usage.ru_utime, usage.ru_stime))


def _read_all(fd: int) -> bytes:
    os.lseek(fd, 0, os.SEEK_SET)
    with os.fdopen(fd, "rb") as file:
        return file.read()


def _be_init(
    control: socket.socket,
    pipes: tuple[int, int],
    settings: wire.Settings,
    limits: dict[str, int],
    filter_bytes: bytes,
) -> None:
    """Build the wall, fork the student, wait; never returns."""
    stage = "init"
    try:
        # Python's own handler would let a student's process end its init.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        control.close()
        walls.enter_init(settings.disk_bytes, settings.files)
        stage = "student"
        student = os.fork()
        if student == 0:
            _be_student(pipes, limits, filter_bytes)
        for fd in pipes:
            os.close(fd)
        os._exit(walls.wait_for_student(student))
    except BaseException as error:
        _report_fault(pipes[1], stage, error)
        os._exit(wire.SETUP_FAILED)


def _be_student(pipes: tuple[int, int], limits: dict[str, int], filter_bytes: bytes) -> None:
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        walls.enter_student(pipes, limits, filter_bytes)
    except BaseException as error:
        _report_fault(pipes[1], "student", error)
        os._exit(1)
    try:
        runner.run_submission(*pipes)
        os._exit(0)
    finally:
        os._exit(1)


def _report_fault(reply_fd: int, stage: str, error: BaseException) -> None:
    os.write(reply_fd, wire.build_frame(wire.Fault(stage, str(error)[: wire.MAX_TEXT])))


def main() -> None:
    """Entry point inside the wall. The first argument names a descriptor that holds the settings."""
    serve(msgspec.msgpack.decode(_read_all(int(sys.argv[1])), type=wire.Settings))
