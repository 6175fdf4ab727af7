"""The outer wall: limits and paths -> the command line of bubblewrap. Pure but for looking at paths."""

import importlib.util
import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from autograder.errors import SandboxUnavailable
from autograder.guest.wire import DEVICES

GUEST = Path(__file__).resolve().parent.parent / "guest"
STUDENT_PACKAGES = ("numpy", "IPython", "msgspec")
"""What every student environment has; the course's `preload` comes on top."""

_ENVIRONMENT = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "HOME": "/tmp",
    "USER": "student",
    "LOGNAME": "student",
    "LANG": "C.UTF-8",
    "TERM": "dumb",
    "MPLBACKEND": "agg",
    "MPLCONFIGDIR": "/tmp",
    "IPYTHONDIR": "/tmp",
    # One submission has one core; and a set hash seed makes two runs of a class alike.
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    # Otherwise the C library keeps 64 MiB of address space for each thread, which the limit on memory counts.
    "MALLOC_ARENA_MAX": "1",
    "PYTHONHASHSEED": "0",
}
_MACHINE_FACTS = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")
"""Which kernels this processor runs right is known outside only."""

PYTHON_FLAGS = ("-S", "-s", "-P", "-B", "-c")

START = "import sys; sys.path[:0] = ['/grader', *sys.argv[2:]]; from guest.server import main; main()"


class Bind(msgspec.Struct, frozen=True):
    """A folder or file of the host, read-only inside under `target`."""

    source: Path
    target: str


def list_binds(preload: Iterable[str]) -> tuple[list[Bind], list[str]]:
    """Everything readable inside, and the entries of `sys.path` for packages.

    The allow-list: `/usr`, the loader's cache, Python, the packages' folders and `guest/`.
    """
    binds = [Bind(Path("/usr"), "/usr")]
    if Path("/etc/ld.so.cache").exists():
        binds.append(Bind(Path("/etc/ld.so.cache"), "/etc/ld.so.cache"))
    for name in ("/bin", "/sbin", "/lib", "/lib32", "/lib64"):
        if Path(name).is_dir() and not Path(name).is_symlink():
            binds.append(Bind(Path(name), name))
    prefix = Path(sys.base_prefix).resolve()
    if not prefix.is_relative_to("/usr"):
        binds.append(Bind(prefix, str(prefix)))
    packages = find_package_folders((*STUDENT_PACKAGES, *preload))
    targets = [f"/packages/{number}" for number in range(len(packages))]
    binds += [Bind(folder, target) for folder, target in zip(packages, targets, strict=True)]
    binds.append(Bind(GUEST, "/grader/guest"))
    return binds, targets


def find_package_folders(modules: Iterable[str]) -> list[Path]:
    """The folders that hold these modules' packages, without importing them. `SandboxUnavailable` where one is not."""
    folders: dict[Path, None] = {}
    for module in modules:
        top, *inner = module.split(".")
        spec = importlib.util.find_spec(top) if top.isidentifier() else None
        if spec is None or spec.origin is None or not _is_inside(Path(spec.origin).parent, inner):
            where = "" if module in STUDENT_PACKAGES else "course.toml, preload: "
            raise SandboxUnavailable(
                f"{where}the module {module} is not installed; install its package beside the autograder"
                + (", or correct the name" if where else "")
            )
        origin = Path(spec.origin).resolve()
        if origin.is_relative_to(Path(os.__file__).resolve().parent) and "site-packages" not in origin.parts:
            continue
        folders[origin.parent.parent if spec.submodule_search_locations else origin.parent] = None
    return list(folders)


def _is_inside(package: Path, names: Sequence[str]) -> bool:
    """Whether a package's folder holds a module of this name, as a file or as a folder."""
    for name in names:
        if not (package / name).is_dir() and not any(package.glob(f"{name}.*")):
            return False
        package /= name
    return True


class Sole(msgspec.Struct, frozen=True):
    """What differs where bubblewrap walls in one submission alone, whose init the guest is.

    info: the descriptor that bubblewrap tells the init's pid through.
    disable_userns: whether this bubblewrap can forbid further user namespaces; the system call filter does so anyway.
    """

    disk_bytes: int
    info: int
    disable_userns: bool


def build_environment() -> dict[str, str]:
    """The whole environment of a guest."""
    facts = {name: os.environ[name] for name in _MACHINE_FACTS if name in os.environ}
    return _ENVIRONMENT | facts


def find_python() -> str:
    """The interpreter itself, not that of a virtual environment."""
    return str(Path(sys._base_executable).resolve())  # type: ignore[attr-defined]


def build_command(
    bubblewrap: str, binds: Sequence[Bind], hidden: Sequence[str], start: Sequence[str], sole: Sole | None = None
) -> list[str]:
    """The argv that starts a guest behind a bubblewrap.

    hidden: folders inside that are covered by empty ones, see `find_hidden`.
    start: Python code and its arguments.
    """
    command = [bubblewrap]
    if sole is not None:
        command += ["--as-pid-1", "--info-fd", str(sole.info)] + ["--disable-userns"] * sole.disable_userns
    for namespace in ("user", "ipc", "pid", "net", "uts", "cgroup-try"):
        command.append(f"--unshare-{namespace}")
    command += ["--uid", "1000", "--gid", "1000", "--hostname", "sandbox"]
    command += ["--die-with-parent", "--new-session", "--clearenv"]
    for name, value in build_environment().items():
        command += ["--setenv", name, value]
    for bind in binds:
        command += ["--ro-bind", str(bind.source), bind.target]
    for name in ("/bin", "/sbin", "/lib", "/lib32", "/lib64"):
        if Path(name).is_symlink():
            command += ["--symlink", os.readlink(name), name]
    for folder in hidden:
        command += ["--tmpfs", folder, "--remount-ro", folder]
    for device in DEVICES:
        command += ["--dev-bind", device, device]
    command += ["--symlink", "/tmp", "/dev/shm", "--symlink", "/proc/self/fd", "/dev/fd"]
    size = sole.disk_bytes if sole is not None else 2**20
    command += ["--size", str(size), "--perms", "0700", "--tmpfs", "/tmp", "--proc", "/proc"]
    command += ["--remount-ro", "/", "--cap-drop", "ALL", "--chdir", "/tmp"]
    return [*command, "--", find_python(), *PYTHON_FLAGS, *start]


def find_hidden(course_folder: Path | None, binds: Sequence[Bind]) -> list[str]:
    """Where the course, or the autograder installed beside NumPy, would be seen inside a bind."""
    hidden = []
    for bind in binds:
        if course_folder is not None and course_folder.is_relative_to(bind.source):
            hidden.append(str(Path(bind.target) / course_folder.relative_to(bind.source)))
        if bind.target.startswith("/packages/") and (bind.source / "autograder").is_dir():
            hidden.append(f"{bind.target}/autograder")
    return hidden
