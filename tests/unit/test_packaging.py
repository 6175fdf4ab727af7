"""The project's own files agree with each other: metadata, lock, commands, continuous integration."""

import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

from autograder.doctor import OLDEST_PACKAGES, OLDEST_PYTHON, parse_version

ROOT = Path(__file__).resolve().parents[2]
LOCK = (ROOT / "requirements.lock").read_text(encoding="utf-8")
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PIN = re.compile(r"^([a-z0-9-]+)==(\S+)((?: ;.*)?) \\\n((?:    --hash=sha256:[0-9a-f]{64}(?: \\)?\n)+)", re.MULTILINE)


def list_direct_requirements() -> list[str]:
    """Names of everything that pyproject.toml asks for, with the extras and the build backend."""
    extras = PROJECT["optional-dependencies"].values()
    build = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["build-system"]["requires"]
    lines = [*PROJECT["dependencies"], *(line for extra in extras for line in extra), *build]
    names = [re.split(r"[<>=!~\[; ]", line)[0].lower() for line in lines]
    return [name for name in names if name != PROJECT["name"]]


def test_every_direct_requirement_is_pinned() -> None:
    pinned = {match[1] for match in PIN.finditer(LOCK)}
    assert set(list_direct_requirements()) - pinned == set()


def test_every_line_of_the_lock_is_a_pin_with_hashes() -> None:
    rest = PIN.sub("", LOCK)
    assert [line for line in rest.splitlines() if not line.startswith("#")] == []


def test_lock_names_no_index_no_host_and_no_local_path() -> None:
    assert re.findall(r"https?:|file:|--(?:extra-)?index|--find-links|--trusted|(?<!sha256:)/[a-z]+/", LOCK) == []


def test_lock_keeps_to_the_bounds_of_the_project() -> None:
    oldest = {
        name.lower(): version
        for name, version in re.findall(r'"([\w-]+)>=([\d.]+)"', (ROOT / "pyproject.toml").read_text())
    }
    for match in PIN.finditer(LOCK):
        if match[1] in oldest:
            assert parse_version(match[2]) >= parse_version(oldest[match[1]]), match[1]


def test_doctor_asks_for_the_versions_that_the_project_asks_for() -> None:
    assert PROJECT["requires-python"] == f">={OLDEST_PYTHON[0]}.{OLDEST_PYTHON[1]}"
    for name, version in OLDEST_PACKAGES.items():
        assert f"{name}>={'.'.join(map(str, version))}" in PROJECT["dependencies"]


@pytest.mark.parametrize("script", ["scripts/setup.sh", "scripts/setup-tests.sh", "scripts/demo.sh", ".ci/run"])
def test_script_is_executable_and_parses(script: str) -> None:
    assert os.access(ROOT / script, os.X_OK)
    done = subprocess.run(["bash", "-n", ROOT / script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_help_of_make_lists_what_the_readme_promises() -> None:
    done = subprocess.run(["make", "-C", ROOT, "help"], capture_output=True, text=True, check=True)
    listed = {line.split()[1] for line in done.stdout.splitlines() if line.startswith("  make ")}
    assert listed >= {"setup", "demo", "test", "bench", "clean", "help"}


def run_demo(folder: Path, status: int) -> subprocess.CompletedProcess[str]:
    """The demo script in a folder whose autograder ends with this status."""
    for name in ("scripts", ".venv/bin"):
        (folder / name).mkdir(parents=True)
    (folder / "scripts" / "demo.sh").write_bytes((ROOT / "scripts" / "demo.sh").read_bytes())
    command = folder / ".venv" / "bin" / "autograder"
    command.write_text(f'#!/bin/sh\necho "$@"\nexit {status}\n')
    command.chmod(0o755)
    return subprocess.run(["bash", folder / "scripts" / "demo.sh"], capture_output=True, text=True, check=False)


def test_demo_succeeds_when_grading_ends_with_1_and_says_why(tmp_path: Path) -> None:
    done = run_demo(tmp_path, 1)
    assert done.returncode == 0
    assert "grade examples/qkv/submitted -a qkv" in done.stdout
    assert "The exit status was 1, as it should be" in done.stdout


@pytest.mark.parametrize("status", [0, 2, 137])
def test_demo_fails_when_grading_ends_otherwise(tmp_path: Path, status: int) -> None:
    done = run_demo(tmp_path, status)
    assert done.returncode == 1
    assert f"the exit status was {status}" in done.stderr


FAKE_PYTHON = """#!/bin/bash
echo "python $*" >>"$LOG"
case "$*" in
    *ensurepip*) [[ -e "$NO_VENV" ]] && ! grep -q venv "$LOG.apt" 2>/dev/null && exit 1 ;;
    *base_prefix*) echo 3 12 0 /usr ;;
    *%d.%d*) echo 3.12 ;;
    "-m venv"*) mkdir -p .venv/bin && cp "$0" .venv/bin/python ;;
esac
exit 0
"""
FAKE_APT = """#!/bin/bash
echo "$*" >>"$LOG.apt"
[[ "$1" == install ]] && printf '#!/bin/sh\\n' >"$BIN/bwrap" && chmod +x "$BIN/bwrap"
exit 0
"""
TOOLS = ("bash", "dirname", "cat", "sha256sum", "cut", "env", "grep", "mkdir", "cp", "rm", "tail", "chmod", "uname")


class Machine:
    """A folder with the setup script and a PATH of its own, where only the commands put there exist.

    Python, pip and apt-get are played by scripts that write down how they were called.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.bin = folder / "checkout", folder / "bin"
        self.log = folder / "log"
        (self.folder / "scripts").mkdir(parents=True)
        self.bin.mkdir()
        for name in ("pyproject.toml", "requirements.lock", "scripts/setup.sh"):
            (self.folder / name).write_bytes((ROOT / name).read_bytes())
        for tool in TOOLS:
            (self.bin / tool).symlink_to(str(shutil.which(tool)))
        self.add("ldconfig", "#!/bin/sh\necho 'libseccomp.so.2 (libc6) => /lib/libseccomp.so.2'\n")
        self.add("sudo", '#!/bin/sh\nexec "$@"\n')

    def add(self, name: str, text: str) -> None:
        (self.bin / name).unlink(missing_ok=True)
        (self.bin / name).write_text(text)
        (self.bin / name).chmod(0o755)

    def set_up(self, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run the script; forget what earlier runs wrote down."""
        self.log.unlink(missing_ok=True)
        return subprocess.run(
            [self.bin / "bash", self.folder / "scripts" / "setup.sh"],
            env={"PATH": str(self.bin), "LOG": str(self.log), "BIN": str(self.bin), "NO_VENV": "/none", **environment},
            capture_output=True,
            text=True,
            check=False,
        )

    def read_log(self) -> str:
        return self.log.read_text() if self.log.exists() else ""


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """A Debian machine with everything but bubblewrap."""
    machine = Machine(tmp_path)
    machine.add("python3", FAKE_PYTHON)
    machine.add("apt-get", FAKE_APT)
    return machine


def test_setup_installs_what_is_missing_and_the_lock_with_hashes(machine: Machine) -> None:
    done = machine.set_up()
    assert done.returncode == 0, done.stderr
    assert "installing with apt-get: bubblewrap" in done.stdout
    assert "install --require-hashes --only-binary :all: -r requirements.lock" in machine.read_log()
    assert "install --no-deps --no-build-isolation --editable ." in machine.read_log()


def test_second_setup_installs_nothing_and_says_nothing(machine: Machine) -> None:
    machine.set_up()
    done = machine.set_up()
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert "install" not in machine.read_log()


def test_changed_lock_is_installed(machine: Machine) -> None:
    machine.set_up()
    with (machine.folder / "requirements.lock").open("a") as lock:
        lock.write("# changed\n")
    machine.set_up()
    assert "-r requirements.lock" in machine.read_log()
    assert "-m venv" not in machine.read_log()


def test_setup_that_broke_off_starts_again(machine: Machine) -> None:
    broken = FAKE_PYTHON.replace("case", '[[ "$*" == *hashes* ]] && echo "no network" && exit 1\ncase', 1)
    machine.add("python3", broken)
    done = machine.set_up()
    assert done.returncode == 1
    assert "no network" in done.stderr
    (machine.folder / ".venv" / "bin" / "python").write_text(FAKE_PYTHON)
    assert machine.set_up().returncode == 0
    assert "-r requirements.lock" in machine.read_log()


def test_missing_venv_module_is_installed_for_the_python_that_was_found(machine: Machine, tmp_path: Path) -> None:
    (tmp_path / "no-venv").touch()
    done = machine.set_up(NO_VENV=str(tmp_path / "no-venv"))
    assert "installing with apt-get: bubblewrap python3.12-venv" in done.stdout
    assert done.returncode == 0, done.stderr


def test_without_a_recent_python_setup_names_what_to_install(machine: Machine) -> None:
    (machine.bin / "python3").unlink()
    done = machine.set_up()
    assert done.returncode == 1
    assert "no Python 3.11 or newer was found" in done.stderr
    assert "sudo apt-get install python3 python3-venv" in done.stderr


def test_python_that_does_not_run_is_named(machine: Machine) -> None:
    done = machine.set_up(PYTHON="/no/such/python")
    assert done.returncode == 1
    assert "PYTHON=/no/such/python is not a Python 3.11 or newer" in done.stderr


def test_without_apt_get_setup_says_what_to_type_and_stops(machine: Machine) -> None:
    (machine.bin / "apt-get").unlink()
    machine.add("dnf", "#!/bin/sh\n")
    done = machine.set_up()
    assert done.returncode == 1
    assert "sudo dnf install bubblewrap libseccomp" in done.stderr
    assert "-m pip" not in machine.read_log()


def test_other_system_than_linux_is_told_the_way_out(machine: Machine) -> None:
    machine.add("uname", "#!/bin/sh\necho Darwin\n")
    done = machine.set_up()
    assert done.returncode == 1
    assert "virtual machine" in done.stderr


def test_license_is_the_one_that_the_metadata_names() -> None:
    assert PROJECT["license"] == "BSD-3-Clause"
    assert (ROOT / "LICENSE").read_text(encoding="utf-8").startswith("BSD 3-Clause License")
