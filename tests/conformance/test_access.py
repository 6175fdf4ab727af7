"""Mode `user` refuses to start where student code could read what it must not, or could not read what it must."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from autograder.errors import SandboxUnavailable
from autograder.sandbox.access import check_access, find_readable, require_root

from .open_python import open_python

PACKAGES = (str(Path(os.__file__).parent),)

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a user for each submission")


@pytest.fixture
def open_course(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A course that everybody may enter."""
    folder = tmp_path_factory.mktemp("course")
    for path in (folder, *folder.parents):
        if path.is_relative_to("/tmp") and path != Path("/tmp"):
            path.chmod(0o755)
    (folder / "course.toml").write_text("secret")
    (folder / "course.toml").chmod(0o644)
    (folder / "tests" / "hidden").mkdir(parents=True)
    return folder


@as_root
def test_course_that_others_may_read_is_refused_until_it_is_closed(open_course: Path) -> None:
    with open_python():
        with pytest.raises(SandboxUnavailable, match=rf"course.toml could be read by .* chmod 700 {open_course}"):
            check_access(open_course, PACKAGES)
        open_course.chmod(0o700)
        check_access(open_course, PACKAGES)


@as_root
@pytest.mark.parametrize(
    "name",
    [
        "tests/hidden/x/test_x.py",
        "solutions/x/reference.py",
        ".autograder/grades.sqlite",
        ".git/objects/0a/object",
        "class-of-2027.csv",
    ],
)
def test_one_open_file_of_a_course_is_enough_to_refuse(open_course: Path, name: str) -> None:
    (open_course / "course.toml").chmod(0o600)
    (open_course / "tests" / "hidden").chmod(0o711)
    (open_course / name).parent.mkdir(parents=True, exist_ok=True)
    (open_course / name).write_text("secret")
    for folder in (open_course / name).parents:
        if folder != open_course and folder.is_relative_to(open_course):
            folder.chmod(0o711)
    with open_python(), pytest.raises(SandboxUnavailable, match=name.replace(".", r"\.")):
        check_access(open_course, PACKAGES)


@as_root
def test_python_that_others_may_not_read_is_refused_with_what_to_do(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    closed = tmp_path / "packages"
    closed.mkdir()
    with open_python(), pytest.raises(SandboxUnavailable, match=r"cannot be read by student code .*/opt"):
        check_access(Path("/nonexistent"), [str(closed)])


@as_root
def test_packages_that_others_may_change_are_refused(open_course: Path) -> None:
    changed = open_course / "packages"
    changed.mkdir()
    changed.chmod(0o777)
    open_course.chmod(0o755)
    with open_python(), pytest.raises(SandboxUnavailable, match="could be changed by student code"):
        check_access(Path("/nonexistent"), [str(changed)])


@as_root
def test_what_can_be_read_is_tried_out_as_somebody_else(open_course: Path) -> None:
    closed = open_course / "closed"
    closed.write_text("")
    closed.chmod(0o600)
    assert find_readable([str(closed), str(open_course / "course.toml")]) == [str(open_course / "course.toml")]
    assert os.geteuid() == 0


@pytest.mark.skipif(os.geteuid() == 0, reason="for an ordinary user")
def test_ordinary_user_is_told_that_mode_user_needs_root() -> None:
    with pytest.raises(SandboxUnavailable, match="needs root"):
        require_root()


def test_command_line_in_mode_none_warns_and_notes_it(tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    notebook = root / "solutions" / "qkv" / "qkv.ipynb"
    done = subprocess.run(
        [sys.executable, "-m", "autograder", "grade", notebook, "--sandbox", "none", "--json", "--no-store"],
        cwd=root,
        env={**os.environ, "PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("WARNING: --sandbox none") == 1
    assert "It was run without a sandbox" in done.stdout


DOCKER_CAPABILITIES = (
    "chown dac_override fsetid fowner mknod net_raw setgid setuid setfcap setpcap net_bind_service sys_chroot kill "
    "audit_write"
).split()
"""What root has in a container that was started without any option."""


@as_root
@pytest.mark.skipif(shutil.which("setpriv") is None, reason="setpriv of util-linux is not installed here")
def test_mode_user_works_with_the_rights_of_a_plain_container(tmp_path: Path) -> None:
    code = (
        "from autograder.sandbox.modes import SandboxMode; from autograder.sandbox.trials import try_mode; "
        "print([try_mode(SandboxMode.USER), try_mode(SandboxMode.NESTED) is None])"
    )
    bounding = ",".join(["-all", *(f"+{name}" for name in DOCKER_CAPABILITIES)])
    with open_python():
        done = subprocess.run(
            ["setpriv", "--inh-caps=-all", f"--bounding-set={bounding}", sys.executable, "-c", code],
            cwd=Path(__file__).parents[2],
            capture_output=True,
            text=True,
            check=False,
        )
    # Root that may not mount builds no wall of namespaces, and that is what mode user is for.
    assert done.stdout == "[None, False]\n", done.stderr
