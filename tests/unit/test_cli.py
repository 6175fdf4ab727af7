"""The command line in one process: help, version, and how each kind of end becomes an exit status."""

import re
import subprocess
import sys
import textwrap
from importlib import metadata
from pathlib import Path

import pytest

from autograder import cli
from autograder.__main__ import main
from autograder.errors import AutograderError, CourseError, SandboxUnavailable, UsageError

ROOT = Path(__file__).parents[2]


@pytest.fixture
def call(monkeypatch, capsys):
    """Calls the command line in the course's folder; gives the exit status, standard output and error."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("TERM", "dumb")

    monkeypatch.setattr(sys, "unraisablehook", sys.unraisablehook)

    def run(*arguments: str) -> tuple[object, str, str]:
        monkeypatch.setattr(sys, "argv", ["autograder", *arguments])
        with pytest.raises(SystemExit) as caught:
            main()
        out, err = capsys.readouterr()
        return caught.value.code, out, re.sub(r"\x1b\[[0-9;]*m", "", err)

    return run


def test_the_version_is_the_distributions(call) -> None:
    assert call("--version") == (0, f"autograder {metadata.version('autograder-numpy')}\n", "")


def test_help_lists_every_command(call) -> None:
    status, out, _ = call("--help")
    assert status == 0
    for command in ("grade", "regrade", "mark", "status", "show", "forget", "validate", "release", "doctor"):
        assert re.search(rf"^\W*{command}\b", out, re.MULTILINE), command


@pytest.mark.parametrize(
    ("command", "options"),
    [
        ("grade", ["--assignment", "-a", "--json", "--csv", "--jobs", "-j", "--details", "--course", "[PATH]..."]),
        ("grade", ["--force", "--store", "--no-store", "--scheduler", "--attempt"]),
        ("regrade", ["--dry-run", "--json", "--store"]),
        ("mark", ["--override", "--why", "--who", "--csv", "STUDENT", "EXERCISE", "POINTS"]),
        ("status", ["--json"]),
        ("show", ["STUDENT"]),
        ("forget", ["--yes", "STUDENT"]),
        ("validate", ["--course", "[ID]..."]),
        ("release", ["--check", "--course", "ID"]),
        ("doctor", []),
    ],
)
def test_help_of_a_command_says_what_it_does_and_mentions_each_option(call, command, options) -> None:
    status, out, _ = call(command, "--help")
    assert status == 0
    for option in options:
        assert option in out
    (function,) = [each.callback for each in cli.app.registered_commands if each.callback.__name__ == command]
    assert function.__doc__.split(".")[0] in " ".join(out.split())


def test_help_of_grade_tells_the_exit_statuses(call) -> None:
    _, out, _ = call("grade", "--help")
    assert "0 all graded, 1 some could not be, 2 usage or course files wrong" in " ".join(out.split())


@pytest.mark.parametrize(
    "arguments",
    [
        ["grade", "--no-such-option"],
        ["grade", "no/such/path"],
        ["grade", "solutions/qkv/qkv.ipynb", "-a", "qk"],
        ["grade", "solutions/qkv/qkv.ipynb", "--jobs", "many"],
        ["grade", "--course", "/no/such/course"],
        ["grade", "--course"],
        ["nothing"],
        ["release"],
        ["validate", "softmax"],
    ],
    ids=" ".join,
)
def test_wrong_usage_ends_with_2_and_one_message_on_standard_error(call, arguments) -> None:
    status, _, err = call(*arguments)
    assert status == 2
    assert err.startswith("autograder: ")
    assert "Traceback" not in err


def test_nothing_to_grade_says_what_to_do(call, tmp_path) -> None:
    (tmp_path / "course.toml").write_bytes((ROOT / "course.toml").read_bytes())
    status, _, err = call("grade", "--course", str(tmp_path))
    assert status == 2
    assert "submitted/" in err


def test_several_assignments_must_be_told_apart(call, tmp_path) -> None:
    text = (ROOT / "course.toml").read_text()
    (tmp_path / "course.toml").write_text(
        text + text[text.index("[assignments") :].replace("assignments.qkv", "assignments.two")
    )
    status, _, err = call("grade", "x.ipynb", "--course", str(tmp_path))
    assert status == 2
    assert "qkv, two" in err
    assert "-a" in err


ENDS = [
    (CourseError("course.toml: wrong"), 2, "autograder: course.toml: wrong\n"),
    (UsageError("no such thing"), 2, "autograder: no such thing\n"),
    (SandboxUnavailable("install bubblewrap"), 2, "autograder: install bubblewrap\n"),
    (AutograderError("anything"), 2, "autograder: anything\n"),
]


@pytest.mark.parametrize(("error", "status", "said"), ENDS, ids=lambda value: type(value).__name__)
def test_an_error_becomes_one_sentence_and_its_status(call, monkeypatch, error, status, said) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr("autograder.course.load_course", fail)
    assert call("validate") == (status, "", said)


def test_a_run_that_is_stopped_from_the_keyboard_ends_with_130_and_no_traceback(call, monkeypatch) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("autograder.course.load_course", stop)
    status, out, err = call("validate")
    assert (status, out) == (130, "")
    assert "Traceback" not in err


INTERRUPTED = {
    "while a text is executed": "exec('raise KeyboardInterrupt')",
    "while an object is cleaned up": """
class Last:
    def __del__(self):
        raise KeyboardInterrupt
Last()
time.sleep(30)
""",
}


@pytest.mark.parametrize("code", INTERRUPTED.values(), ids=INTERRUPTED)
def test_an_interrupt_ends_the_command_with_130_wherever_it_comes(code: str, tmp_path: Path) -> None:
    program = "import signal, time\nfrom autograder import __main__, cli\n"
    program += f"def app(**_):\n{textwrap.indent(code, '    ')}\n"
    program += "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    (tmp_path / "interrupted.py").write_text(program + "cli.app = app\n__main__.main()\n")
    command = [sys.executable, "-m", "interrupted"]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=20, check=False)
    assert (ended.returncode, ended.stderr) == (130, "stopped\n")


def test_an_interrupt_while_the_command_is_still_being_imported_ends_it_with_130(tmp_path: Path) -> None:
    code = "import os, signal, time\ntry:\n    os.kill(os.getpid(), signal.SIGINT)\n    time.sleep(30)\n"
    (tmp_path / "typer.py").write_text(f"{code}except BaseException:\n    raise RuntimeError\n")
    command = [Path(sys.executable).with_name("autograder"), "--version"]
    ended = subprocess.run(
        command, env={"PYTHONPATH": str(tmp_path)}, capture_output=True, text=True, timeout=20, check=False
    )
    assert (ended.returncode, ended.stderr) == (130, "stopped\n")


def test_a_fault_of_the_autograder_is_no_status_of_a_grade(call, monkeypatch) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("autograder.course.load_course", fail)
    status, out, err = call("validate")
    assert status not in (0, 1, 2)
    assert out == ""
    assert "fault of the autograder" in err
