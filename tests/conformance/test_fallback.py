"""Where namespaces inside bubblewrap are forbidden, `auto` takes a bubblewrap for each submission and says so once."""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from autograder.course import load_course
from autograder.errors import SandboxUnavailable
from autograder.sandbox.modes import SandboxMode
from autograder.sandbox.session import Session

ROOT = Path(__file__).parents[2]

# A user namespace in which one cgroup namespace may be made at a time: bubblewrap gets it, a wall inside does not.
FORBID = """
import ctypes, os, sys
ready, go = int(sys.argv[1]), int(sys.argv[2])
assert ctypes.CDLL(None).unshare(0x10000000) == 0
os.write(ready, b"x")
os.read(go, 1)
with open("/proc/sys/user/max_cgroup_namespaces", "w") as file:
    file.write("1")
os.execv(sys.argv[3], sys.argv[3:])
"""

GRADE = """
import sys
from pathlib import Path
from autograder.course import load_course
from autograder.gradebook import grade
course = load_course(Path(sys.argv[1]))
source = course.solution_notebook("qkv")
copies = [Path(sys.argv[2]) / name for name in ("ada.ipynb", "bob.ipynb")]
for copy in copies:
    copy.write_bytes(source.read_bytes())
for copy in copies:
    print([each.score for each in grade(course, "qkv", [copy], jobs=1)])
"""


def run_forbidden(command: Sequence[str], mode: str) -> "subprocess.CompletedProcess[str]":
    """Run a command where namespaces inside bubblewrap do not work."""
    ready_read, ready = os.pipe()
    go, go_write = os.pipe()
    with subprocess.Popen(
        [sys.executable, "-c", FORBID, str(ready), str(go), *command],
        pass_fds=(ready, go),
        cwd=ROOT,
        env={**os.environ, "AUTOGRADER_SANDBOX": mode},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        os.close(ready)
        assert os.read(ready_read, 1) == b"x"
        uid, gid = os.geteuid(), os.getegid()
        maps = {"uid_map": "0 0 65536", "gid_map": "0 0 65536"}
        if uid != 0:
            maps = {"setgroups": "deny", "uid_map": f"{uid} {uid} 1", "gid_map": f"{gid} {gid} 1"}
        for name, text in maps.items():
            Path(f"/proc/{process.pid}/{name}").write_text(text)
        os.write(go_write, b"x")
        output, errors = process.communicate(timeout=300)
    for fd in (ready_read, go, go_write):
        os.close(fd)
    return subprocess.CompletedProcess(process.args, process.returncode, output, errors)


pytestmark = pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed here")


def test_auto_falls_back_and_says_so_once(tmp_path: Path) -> None:
    done = run_forbidden([sys.executable, "-c", GRADE, str(ROOT), str(tmp_path)], "auto")
    assert done.stdout == "[13.0]\n[13.0]\n", done.stderr
    assert done.stderr.count("namespaces inside bubblewrap do not work here") == 1
    assert "--sandbox single" in done.stderr
    assert "slower" in done.stderr


def test_nested_that_was_asked_for_is_refused_and_nothing_weaker_is_taken(tmp_path: Path) -> None:
    done = run_forbidden([sys.executable, "-c", GRADE, str(ROOT), str(tmp_path)], "nested")
    assert "NestedForbidden" in done.stderr or "namespaces inside bubblewrap do not work here" in done.stdout
    assert "13.0" not in done.stdout


def test_the_doctor_says_that_grading_works_and_is_slower() -> None:
    done = run_forbidden([sys.executable, "-m", "autograder", "doctor"], "auto")
    assert done.returncode == 0, done.stdout
    assert "note mode nested: namespaces inside bubblewrap do not work here" in done.stdout
    assert "ok   mode single: works" in done.stdout


@pytest.mark.parametrize("mode", [SandboxMode.NESTED, SandboxMode.SINGLE])
def test_a_start_that_takes_too_long_is_said_to(mode: SandboxMode, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("autograder.sandbox.started.START_SECONDS", 0.01)
    course = load_course(ROOT)
    with (
        pytest.raises(SandboxUnavailable, match=r"not ready after 0\.01 s"),
        Session(course.folder, course.assignment("qkv"), mode=mode),
    ):
        pass
