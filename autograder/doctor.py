"""What this machine can do: can it grade, and if not, what to install or to allow.

`examine_machine` looks and tries; the `classify_*` functions judge what was found and are pure.
"""

import ctypes
import importlib
import importlib.metadata
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

OLDEST_KERNEL = (5, 14)
"""From here on process limits are counted for each user namespace."""
OLDEST_PYTHON = (3, 11)
OLDEST_BUBBLEWRAP = (0, 6)
"""The first with `--size`, the cap on a tmpfs."""
OLDEST_PACKAGES: Mapping[str, tuple[int, ...]] = {"numpy": (2,), "ipython": (9,), "pytest": (8, 3)}
TRIAL_UID = 61001
"""Who starts the trial when root asks: the sandbox never runs with host uid 0 either."""
TRIAL_SECONDS = 20

NAMESPACE_SETTINGS = {
    "user.max_user_namespaces": Path("/proc/sys/user/max_user_namespaces"),
    "kernel.unprivileged_userns_clone": Path("/proc/sys/kernel/unprivileged_userns_clone"),
    "kernel.apparmor_restrict_unprivileged_userns": Path("/proc/sys/kernel/apparmor_restrict_unprivileged_userns"),
}

LINUX_ELSEWHERE = (
    "grading needs Linux: use a Linux virtual machine (Lima, UTM, Multipass), WSL2 on Windows, "
    "or let a CI service with Linux runners grade"
)
APPARMOR_ADVICE = """\
AppArmor refuses namespaces to programs without a profile (Ubuntu 23.10 and newer). Give a private copy of
bubblewrap a profile that allows them:
  sudo install -D -m 0755 /usr/bin/bwrap /opt/autograder/bin/bwrap
  sudo tee /etc/apparmor.d/autograder-bwrap <<'END'
abi <abi/4.0>,
include <tunables/global>
profile autograder-bwrap /opt/autograder/bin/bwrap flags=(unconfined) {
  userns,
}
END
  sudo apparmor_parser -r /etc/apparmor.d/autograder-bwrap
and grade with that copy first in the path: PATH=/opt/autograder/bin:$PATH autograder grade ...
Or lift the restriction for every program, until the next start of the machine:
  sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"""
CONTAINER_ADVICE = """\
this container may not make namespaces. Start it with
  docker run --security-opt seccomp=unconfined --security-opt apparmor=unconfined \\
    --security-opt systempaths=unconfined ...
or with rootless podman:
  podman run --security-opt seccomp=unconfined --security-opt unmask=ALL ...
or grade in a virtual machine; the options take the container's own wall down, so let it do nothing else"""


class Finding(msgspec.Struct, frozen=True):
    """One thing that was looked at. `advice` says what to do and is empty when there is nothing to do."""

    name: str
    ok: bool | None
    """True: as it must be. False: grading cannot run here. None: no hindrance, but worth knowing."""
    found: str
    advice: str = ""


class Trial(msgspec.Struct, frozen=True):
    """How a trial command ended. `status` is None when it could not be started or did not end in time."""

    status: int | None
    text: str


def can_grade(findings: Iterable[Finding]) -> bool:
    """Whether grading can run: nothing that was found forbids it."""
    return all(finding.ok is not False for finding in findings)


def get_exit_status(findings: Iterable[Finding]) -> int:
    """0 when grading can run here, 1 otherwise."""
    return 0 if can_grade(findings) else 1


def examine_machine() -> list[Finding]:
    """Look at this machine and try the sandbox's two walls for real. Takes well under a second."""
    system = classify_system(platform.system(), platform.machine())
    python = classify_python(sys.version_info[:3])
    packages = [classify_package(name, _find_version(name)) for name in OLDEST_PACKAGES]
    if not system.ok:
        return [system, python, *packages]
    bubblewrap = shutil.which("bwrap")
    outer = run_trial(bubblewrap, ["/bin/true"])
    inner = run_trial(bubblewrap, INNER_TRIAL)
    signs = find_container_signs()
    works = outer.status == 0 and inner.status == 0
    return [
        system,
        classify_kernel(platform.release()),
        python,
        *packages,
        classify_bubblewrap(_read_bubblewrap_version(bubblewrap)),
        classify_libseccomp(_find_libseccomp(), _find_binding()),
        *classify_namespaces(read_namespace_settings(), works),
        classify_container(signs, works),
        classify_outer_trial(outer, bool(signs)),
        classify_inner_trial(outer, inner, bool(signs)),
        classify_limiter(),
        run_sandbox(works),
    ]


def classify_system(system: str, machine: str) -> Finding:
    """`system` as `platform.system()` names it."""
    name = {"Darwin": "macOS"}.get(system, system or "unknown")
    is_linux = system == "Linux"
    return Finding("operating system", is_linux, f"{name} {machine}".strip(), "" if is_linux else LINUX_ELSEWHERE)


def classify_kernel(release: str) -> Finding:
    """`release` as in `uname -r`, such as 6.1.0-18-amd64."""
    ok = parse_version(release) >= OLDEST_KERNEL
    advice = f"a kernel {_dotted(OLDEST_KERNEL)} or newer is needed: older ones do not count processes per sandbox"
    return Finding("kernel", ok, release, "" if ok else advice)


def classify_python(version: tuple[int, ...]) -> Finding:
    """`version` as in `sys.version_info[:3]`."""
    ok = version >= OLDEST_PYTHON
    return Finding("Python", ok, _dotted(version), "" if ok else f"install Python {_dotted(OLDEST_PYTHON)} or newer")


def classify_package(name: str, version: str | None) -> Finding:
    """A Python package that decides a grade, with its installed version."""
    if version is None:
        return Finding(name, False, "not installed", "install the autograder's packages: make setup")
    oldest = OLDEST_PACKAGES[name]
    ok = parse_version(version) >= oldest
    return Finding(name, ok, version, "" if ok else f"{name} {_dotted(oldest)} or newer is needed: make setup")


def classify_bubblewrap(text: str | None) -> Finding:
    """`text` as `bwrap --version` prints it; None when there is no bwrap."""
    install = "install it: apt-get install bubblewrap, dnf install bubblewrap or pacman -S bubblewrap"
    if text is None:
        return Finding("bubblewrap", False, "not found", install)
    ok = parse_version(text) >= OLDEST_BUBBLEWRAP
    advice = f"bubblewrap {_dotted(OLDEST_BUBBLEWRAP)} or newer is needed"
    return Finding("bubblewrap", ok, text.removeprefix("bubblewrap").strip(), "" if ok else advice)


def classify_libseccomp(version: tuple[int, ...] | None, binding: str | None) -> Finding:
    """The system's libseccomp and the version of its Python binding; None for what is not there or not usable."""
    name = "libseccomp"
    if version is None:
        install = "install it: apt-get install libseccomp2, dnf install libseccomp or pacman -S libseccomp"
        return Finding(name, False, "not found", install)
    if binding is None:
        return Finding(name, False, f"{_dotted(version)}, without a usable pyseccomp", "install pyseccomp: make setup")
    return Finding(name, True, f"{_dotted(version)}, with pyseccomp {binding}")


def classify_namespaces(settings: Mapping[str, str | None], trial_works: bool) -> list[Finding]:
    """The kernel's settings by name; None where this kernel has no such setting.

    A setting that forbids namespaces is no hindrance when the trial works nevertheless: a profile or a
    capability may allow them to bubblewrap alone.
    """
    maximum = settings.get("user.max_user_namespaces")
    clone = settings.get("kernel.unprivileged_userns_clone")
    apparmor = settings.get("kernel.apparmor_restrict_unprivileged_userns")
    if maximum is None:
        findings = [
            Finding("user namespaces", None if trial_works else False, "unknown to this kernel",
                    "" if trial_works else "a kernel built with CONFIG_USER_NS is needed")
        ]  # fmt: skip
    else:
        raise_it = "allow them: sudo sysctl -w user.max_user_namespaces=15000"
        findings = [_classify_setting("user namespaces", f"at most {maximum}", maximum != "0", trial_works, raise_it)]
    if clone is not None:
        allow = "allow them: sudo sysctl -w kernel.unprivileged_userns_clone=1"
        found = "allowed" if clone == "1" else "forbidden to ordinary users"
        findings.append(_classify_setting("namespaces for ordinary users", found, clone == "1", trial_works, allow))
    if apparmor is not None:
        found = "no restriction" if apparmor == "0" else "restricts user namespaces"
        findings.append(_classify_setting("AppArmor", found, apparmor == "0", trial_works, APPARMOR_ADVICE))
    return findings


def _classify_setting(name: str, found: str, allows: bool, trial_works: bool, advice: str) -> Finding:
    if allows:
        return Finding(name, True, found)
    if trial_works:
        return Finding(name, None, f"{found}; the trial below works all the same")
    return Finding(name, False, found, advice)


def classify_container(signs: Iterable[str], trial_works: bool) -> Finding:
    """`signs` are what speaks for a container, as `find_container_signs` lists them."""
    found = ", ".join(signs)
    if not found:
        return Finding("container", True, "not in a container")
    return Finding("container", None, f"in a container ({found})", "" if trial_works else CONTAINER_ADVICE)


def classify_outer_trial(trial: Trial, in_container: bool) -> Finding:
    """The trial of the outer wall: bubblewrap with the sandbox's flags."""
    if trial.status == 0:
        return Finding("trial: bubblewrap", True, "works")
    return Finding("trial: bubblewrap", False, _describe_trial(trial), advise_on_failure(trial.text, in_container))


def classify_inner_trial(outer: Trial, inner: Trial, in_container: bool) -> Finding:
    """The trial of the inner wall: namespaces, a proc and a tmpfs made inside bubblewrap."""
    name = "trial: namespaces inside bubblewrap"
    if inner.status == 0:
        return Finding(name, True, "works")
    if outer.status != 0:
        return Finding(name, None, "not tried, because bubblewrap itself does not work")
    return Finding(name, False, _describe_trial(inner), CONTAINER_ADVICE if in_container else APPARMOR_ADVICE)


def advise_on_failure(text: str, in_container: bool) -> str:
    """What to do about an error message of bubblewrap."""
    if in_container:
        return CONTAINER_ADVICE
    # AppArmor lets the namespace come into being, but without its capabilities.
    if re.search(r"uid map: Permission denied|RTM_NEWADDR|Failed to make / (slave|private)", text):
        return APPARMOR_ADVICE
    if "No permissions to create" in text or "Operation not permitted" in text:
        return "user namespaces are forbidden here; see the settings above, or grade in a virtual machine"
    if "No space left on device" in text:
        return "the number of user namespaces is used up: sudo sysctl -w user.max_user_namespaces=15000"
    return "see the message; man bwrap explains it, and a virtual machine is a way out"


def parse_version(text: str) -> tuple[int, ...]:
    """The first dotted number in a text: `bubblewrap 0.8.0` -> (0, 8, 0); empty when there is none."""
    match = re.search(r"\d+(?:\.\d+)*", text)
    return tuple(int(part) for part in match[0].split(".")) if match else ()


def _dotted(version: Iterable[int]) -> str:
    return ".".join(str(part) for part in version)


def _describe_trial(trial: Trial) -> str:
    lines = [line for line in trial.text.strip().splitlines() if line.strip()]
    ending = "could not be run" if trial.status is None else f"ended with status {trial.status}"
    return f"{ending}: {lines[-1].strip()}" if lines else ending


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


def classify_limiter() -> Finding:
    """What limits memory and processes of a submission as a whole."""
    from autograder.sandbox.cgroup import look_here
    from autograder.sandbox.limiter import describe_limiter

    found, advice = describe_limiter(look_here())
    return Finding("limits", None if advice else True, found, advice)


def run_sandbox(worth_trying: bool) -> Finding:
    """The whole sandbox, for real: one cell, one answer."""
    name = "trial: a cell in the sandbox"
    if not worth_trying:
        return Finding(name, None, "not tried, because a wall cannot be built")
    # Imported here: on other systems than Linux these modules do not even load, and this command must.
    from autograder.course import Assignment, Exercise
    from autograder.errors import SandboxError
    from autograder.records import Cell, Program
    from autograder.sandbox.session import Session
    from autograder.sandbox.watch import build_budget

    exercise = Exercise(id="doctor", title="doctor", answers={"pulse": "whole number"})
    assignment = Assignment(title="doctor", seeds=(0, 1), exercises=(exercise,))
    program = Program((Cell(0, "import numpy as np\npulse = int(np.arange(4).sum())", ("doctor",)),))
    try:
        with Session(Path("/"), assignment) as session:
            execution = session.execute(program, [(seed, {}) for seed in assignment.seeds], build_budget(assignment))
    except SandboxError as error:
        return Finding(name, False, str(error), "see the findings above; if they are all well, please report this")
    answers = [one_pass.answers.get("pulse") for one_pass in execution.passes]
    if answers != [6, 6]:
        return Finding(name, False, f"its answers were {answers}", "NumPy does not work inside; please report this")
    return Finding(name, True, "works")


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


def _find_version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _read_bubblewrap_version(bubblewrap: str | None) -> str | None:
    if bubblewrap is None:
        return None
    try:
        done = subprocess.run(
            [bubblewrap, "--version"], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=10, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None


def _find_binding() -> str | None:
    """The version of pyseccomp if it can be imported; it looks for the library by itself and may not find it."""
    try:
        importlib.import_module("pyseccomp")
    except (ImportError, RuntimeError, OSError):
        return None
    return _find_version("pyseccomp")


class _SeccompVersion(ctypes.Structure):
    _fields_ = (("major", ctypes.c_uint), ("minor", ctypes.c_uint), ("micro", ctypes.c_uint))


def _find_libseccomp() -> tuple[int, int, int] | None:
    try:
        library = ctypes.CDLL("libseccomp.so.2")
        library.seccomp_version.restype = ctypes.POINTER(_SeccompVersion)
        version = library.seccomp_version().contents
    except (OSError, AttributeError, ValueError):
        return None
    return version.major, version.minor, version.micro
