"""What can be found out about this machine: trials of bubblewrap, settings of the kernel, versions, containers."""

import ctypes
import importlib
import importlib.metadata
import os
import re
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

TRIAL_UID = 61001
"""Who starts the trial when root asks: the sandbox never runs with host uid 0 either."""
TRIAL_SECONDS = 20

NAMESPACE_SETTINGS = {
    "user.max_user_namespaces": Path("/proc/sys/user/max_user_namespaces"),
    "kernel.unprivileged_userns_clone": Path("/proc/sys/kernel/unprivileged_userns_clone"),
    "kernel.apparmor_restrict_unprivileged_userns": Path("/proc/sys/kernel/apparmor_restrict_unprivileged_userns"),
}


class Trial(msgspec.Struct, frozen=True):
    """How a trial command ended. `status` is None when it could not be started or did not end in time."""

    status: int | None
    text: str


INNER_TRIAL = [
    "/usr/bin/unshare", "--user", "--map-root-user", "--pid", "--mount", "--ipc", "--uts", "--cgroup", "--fork",
    "/bin/sh", "-c",
    "mount -t proc -o subset=pid,nosuid,nodev proc /proc && "
    "mount -t tmpfs -o size=1m,nr_inodes=16,nosuid,nodev tmpfs /tmp",
]  # fmt: skip


def build_trial_command(bubblewrap: str, command: Iterable[str]) -> list[str]:
    """Bubblewrap with the flags of the sandbox's outer wall, around a command from `/usr`."""
    system: list[str] = ["--ro-bind", "/usr", "/usr"]
    for name in ("/bin", "/sbin", "/lib", "/lib32", "/lib64"):
        path = Path(name)
        if path.is_symlink():
            system += ["--symlink", str(path.readlink()), name]
        elif path.is_dir():
            system += ["--ro-bind", name, name]
    return [
        bubblewrap, "--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts",
        "--unshare-cgroup-try", "--uid", "1000", "--gid", "1000", "--die-with-parent", "--new-session", "--clearenv",
        *system, "--dev-bind", "/dev/null", "/dev/null", "--size", "1048576", "--perms", "0700", "--tmpfs", "/tmp",
        "--proc", "/proc", "--remount-ro", "/", "--cap-drop", "ALL", "--", *command,
    ]  # fmt: skip


def run_trial(bubblewrap: str | None, command: Iterable[str]) -> Trial:
    """Run a command inside bubblewrap as the sandbox would: never as host uid 0, with an empty environment."""
    if bubblewrap is None:
        return Trial(None, "bubblewrap is not installed")
    uid = TRIAL_UID if os.geteuid() == 0 else None
    groups: list[int] | None = [] if os.geteuid() == 0 else None
    try:
        done = subprocess.run(
            build_trial_command(bubblewrap, command),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            env={},
            cwd="/",
            user=uid,
            group=uid,
            extra_groups=groups,
            timeout=TRIAL_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Trial(None, f"did not end within {TRIAL_SECONDS} s")
    except OSError as error:
        return Trial(None, f"{bubblewrap}: {error.strerror}")
    return Trial(done.returncode, done.stderr)


def read_namespace_settings() -> dict[str, str | None]:
    """The kernel's settings about user namespaces; None for those that this kernel does not have."""
    return {name: _read_text(path) for name, path in NAMESPACE_SETTINGS.items()}


def find_container_signs(root: Path = Path("/"), environment: Mapping[str, str] = os.environ) -> list[str]:
    """What speaks for running in a container: marker files, the control groups of process 1, a variable."""
    signs = [f"/{name}" for name in (".dockerenv", "run/.containerenv") if (root / name).exists()]
    groups = _read_text(root / "proc/1/cgroup") or ""
    match = re.search(r"docker|kubepods|containerd|libpod|/lxc", groups)
    if match:
        signs.append(f"control group {match[0].strip('/')}")
    if environment.get("container"):
        signs.append(f"container={environment['container']}")
    return signs


def _read_text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None


def find_version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def read_bubblewrap_version(bubblewrap: str | None) -> str | None:
    if bubblewrap is None:
        return None
    try:
        done = subprocess.run(
            [bubblewrap, "--version"], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=10, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None


def find_binding() -> str | None:
    """The version of pyseccomp if it can be imported; it looks for the library by itself and may not find it."""
    try:
        importlib.import_module("pyseccomp")
    except (ImportError, RuntimeError, OSError):
        return None
    return find_version("pyseccomp")


class _SeccompVersion(ctypes.Structure):
    _fields_ = (("major", ctypes.c_uint), ("minor", ctypes.c_uint), ("micro", ctypes.c_uint))


def find_libseccomp() -> tuple[int, int, int] | None:
    try:
        library = ctypes.CDLL("libseccomp.so.2")
        library.seccomp_version.restype = ctypes.POINTER(_SeccompVersion)
        version = library.seccomp_version().contents
    except (OSError, AttributeError, ValueError):
        return None
    return version.major, version.minor, version.micro
