"""What this machine can do: can it grade, and if not, what to install or to allow.

`examine_machine` looks and tries; the `classify_*` functions judge what was found and are pure.
"""

import os
import platform
import re
import shutil
import sys
from collections.abc import Iterable, Mapping

import msgspec

from autograder.machine import (
    INNER_TRIAL,
    Trial,
    find_binding,
    find_container_signs,
    find_libseccomp,
    find_version,
    read_bubblewrap_version,
    read_namespace_settings,
    run_trial,
)

OLDEST_KERNEL = (5, 14)
"""From here on process limits are counted for each user namespace."""
OLDEST_PYTHON = (3, 11)
OLDEST_BUBBLEWRAP = (0, 6)
"""The first with `--size`, the cap on a tmpfs."""
OLDEST_PACKAGES: Mapping[str, tuple[int, ...]] = {"numpy": (2,), "ipython": (9,), "pytest": (8, 3)}

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
or grade in a virtual machine; the options take the container's own wall down, so let it do nothing else.
A grader that is root in the container can do without namespaces: autograder grade --sandbox user ..."""
SLOWER = "with a bubblewrap of its own for every submission, which is as safe and slower; see above for what is missing"
USER_ADVICE = (
    "give that option, or set AUTOGRADER_SANDBOX=user; let the container do nothing else, and see docs/sandbox.md for "
    "what this mode does not promise"
)


class Finding(msgspec.Struct, frozen=True):
    """One thing that was looked at. `advice` says what to do and is empty when there is nothing to do."""

    name: str
    ok: bool | None
    """True: as it must be. False: grading cannot run here. None: no hindrance, but worth knowing."""
    found: str
    advice: str = ""


def can_grade(findings: Iterable[Finding]) -> bool:
    """Whether grading can run: nothing that was found forbids it."""
    return all(finding.ok is not False for finding in findings)


def get_exit_status(findings: Iterable[Finding]) -> int:
    """0 when grading can run here, 1 otherwise."""
    return 0 if can_grade(findings) else 1


def examine_machine() -> list[Finding]:
    """Look at this machine, try the sandbox's walls and run a cell in each mode. Takes some seconds."""
    system = classify_system(platform.system(), platform.machine())
    python = classify_python(sys.version_info[:3])
    packages = [classify_package(name, find_version(name)) for name in OLDEST_PACKAGES]
    if not system.ok:
        return [system, python, *packages]
    bubblewrap = shutil.which("bwrap")
    outer = run_trial(bubblewrap, ["/bin/true"])
    inner = run_trial(bubblewrap, INNER_TRIAL)
    signs = find_container_signs()
    works = outer.status == 0 and inner.status == 0
    walls = [
        classify_bubblewrap(read_bubblewrap_version(bubblewrap)),
        *classify_namespaces(read_namespace_settings(), works),
        classify_container(signs, works),
        classify_outer_trial(outer, bool(signs)),
        classify_inner_trial(outer, inner, bool(signs)),
    ]
    faults = try_modes()
    return [
        system,
        classify_kernel(platform.release()),
        python,
        *packages,
        classify_libseccomp(find_libseccomp(), find_binding()),
        *soften(walls, faults),
        classify_limiter(),
        classify_landlock(find_landlock()),
        *classify_modes(faults),
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


def classify_limiter() -> Finding:
    """What limits memory and processes of a submission as a whole."""
    from autograder.sandbox.cgroup import look_here
    from autograder.sandbox.limiter import describe_limiter

    found, advice = describe_limiter(look_here())
    return Finding("limits", None if advice else True, found, advice)


def find_landlock() -> int:
    """The version of Landlock that this kernel offers, 0 for none."""
    from autograder.sandbox.landlock import find_version

    return find_version()


def classify_landlock(version: int) -> Finding:
    """What closes files to student code in the mode `user`, beside their permissions."""
    if version:
        return Finding("Landlock", True, f"version {version}, which the mode user takes")
    return Finding(
        "Landlock", None, "not offered by this kernel or container: in the mode user permissions alone close files"
    )


def try_modes() -> dict[str, str | None]:
    """Why each mode that has a wall does not work here, None where it does; those that need root only as root."""
    # Imported here: on other systems than Linux these modules do not even load, and this command must.
    from autograder.sandbox.modes import SandboxMode
    from autograder.sandbox.trials import try_mode

    modes = [SandboxMode.NESTED, SandboxMode.SINGLE] + [SandboxMode.USER] * (os.geteuid() == 0)
    return {mode.value: try_mode(mode) for mode in modes}


def classify_modes(faults: Mapping[str, str | None]) -> list[Finding]:
    """What `try_modes` found out, and what follows for grading."""
    findings = []
    for mode in ("nested", "single", "user"):
        if mode not in faults:
            findings.append(Finding(f"mode {mode}", None, "not tried, because it needs root"))
        elif (fault := faults[mode]) is None:
            findings.append(Finding(f"mode {mode}", True, "works"))
        else:
            findings.append(Finding(f"mode {mode}", None, fault))
    works = [mode for mode in ("nested", "single", "user") if faults.get(mode, "") is None]
    if "nested" in works:
        verdict = Finding("grading", True, "works")
    elif "single" in works:
        verdict = Finding("grading", True, f"works, {SLOWER}")
    elif "user" in works:
        verdict = Finding("grading", None, "works with --sandbox user only", USER_ADVICE)
    else:
        advice = "see the findings above; if they are all well, please report this"
        verdict = Finding("grading", False, "no mode works here", advice)
    return [*findings, verdict]


def soften(findings: Iterable[Finding], faults: Mapping[str, str | None]) -> list[Finding]:
    """Findings about walls, none of which is a hindrance where a mode works."""
    if all(fault is not None for fault in faults.values()):
        return list(findings)
    return [msgspec.structs.replace(each, ok=None) if each.ok is False else each for each in findings]
