"""What every mode starts from: imports done once, limits, the control socket."""

import gc
import importlib
import socket

from . import ipython, runner, walls, wire


class Stage:
    """A process that has imported everything and waits for submissions."""

    def __init__(self, settings: wire.Settings) -> None:
        self.settings = settings
        self.control = socket.socket(fileno=settings.control)
        for module in settings.preload:
            importlib.import_module(module)
        ipython.start_shell()
        runner.compile_known(settings.cells, frozenset(settings.lesson))
        self.limits = {
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
