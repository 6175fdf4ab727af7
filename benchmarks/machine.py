"""What the numbers depend on."""

import os
import platform
from importlib import metadata
from pathlib import Path


def describe_machine() -> list[tuple[str, str]]:
    """Processor, cores, memory, kernel and versions, as label and value."""
    cpu = _read_value("/proc/cpuinfo", "model name") or platform.machine()
    memory = int((_read_value("/proc/meminfo", "MemTotal") or "0 kB").split()[0]) / 1024**2
    return [
        ("processor", cpu),
        ("cores", str(len(os.sched_getaffinity(0)))),
        ("memory", f"{memory:.0f} GiB"),
        ("kernel", f"{platform.system()} {platform.release()}"),
        ("Python", platform.python_version()),
        ("packages", ", ".join(f"{name} {metadata.version(name)}" for name in ("numpy", "ipython", "pytest"))),
        ("user", "root" if os.geteuid() == 0 else "an ordinary user"),
    ]


def describe_load() -> str:
    """How busy the machine is, over the last one and fifteen minutes."""
    one, _, fifteen = os.getloadavg()
    return f"{one:.1f} and {fifteen:.1f}"


def _read_value(file: str, key: str) -> str:
    for line in Path(file).read_text(encoding="utf-8").splitlines():
        if line.startswith(key):
            return line.partition(":")[2].strip()
    return ""
