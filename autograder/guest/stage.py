"""What every mode starts from: imports done once, limits, the control socket."""

import ctypes
import gc
import importlib
import socket

from . import ipython, reserve, runner, walls, wire


class Stage:
    """A process that has imported everything and waits for submissions."""

    def __init__(self, settings: wire.Settings) -> None:
        self.settings = settings
        self.control = socket.socket(fileno=settings.control)
        for module in settings.preload:
            importlib.import_module(module)
        ipython.start_shell()
        runner.compile_known(settings.cells, frozenset(settings.lesson))
        reserve.keep()
        self.limits = {
            "RLIMIT_AS": walls.address_space() + settings.memory_bytes,
            # The host's own limit comes first: the kernel counts in ticks, and may be a tenth ahead.
            "RLIMIT_CPU": settings.cpu_seconds * 5 // 4 + 1,
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
        runner.note_preloaded()
        gc.collect()
        gc.freeze()
        if settings.mode != "single":  # which forks once
            _merge_pages()


_MADV_COLLAPSE = 25
_HUGE = 2**21


def _merge_pages() -> None:
    """Put what was allocated so far onto large pages, of which a fork copies 512 times fewer; where the kernel can."""
    libc = ctypes.CDLL(None)
    with open("/proc/self/maps", encoding="ascii", errors="replace") as file:
        lines = [line.split() for line in file]
    for line in lines:
        if line[1] == "rw-p" and (len(line) < 6 or line[5] == "[heap]"):
            start, end = (int(number, 16) for number in line[0].split("-"))
            start, end = -(-start // _HUGE) * _HUGE, end // _HUGE * _HUGE
            if end > start:
                libc.madvise(ctypes.c_void_p(start), ctypes.c_size_t(end - start), _MADV_COLLAPSE)
