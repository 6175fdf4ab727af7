"""Mode `user`, the real command: submissions of others are closed by the kernel, or else nothing is graded.

Each claim is looked at on this kernel, with Landlock, and as on one without it.
"""

import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from autograder.catalogue import fill_notebook
from autograder.sandbox.landlock import find_version

from ..escapes.attacks import read_solution
from .open_python import open_python

ROOT = Path(__file__).parents[2]
OLD_KERNEL = Path(__file__).with_name("old_kernel.py")

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a user for each submission")
landlocked = pytest.mark.skipif(find_version() == 0, reason="this kernel has no Landlock")

PEEK = """
seen = 0
for place in {places}:
    try:
        seen += len(open(place, "rb").read())
    except OSError:
        pass
if seen:
    Wk_shared = K_shared = scores_shared = is_symmetric = None
"""


@dataclass(frozen=True)
class Place:
    """A course that is closed, and an open folder with submissions beside it."""

    course: Path
    folder: Path

    def write(self, name: str, *peeked: str) -> Path:
        """The solution in a file that everybody may read; it gives wrong answers when it can read these others."""
        source = (ROOT / "solutions" / "qkv" / "qkv.ipynb").read_bytes()
        peek = PEEK.format(places=[str(self.folder / each) for each in peeked])
        file = self.folder / name
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(fill_notebook(source, {"shared-key": f"{read_solution(source, 'shared-key')}\n{peek}"}))
        file.chmod(0o644)
        return file

    def run(
        self, *arguments: object, old: bool, command: str = "grade", mode: str = "user"
    ) -> "subprocess.CompletedProcess[str]":
        """A command of the autograder; `old` is as on a kernel without Landlock."""
        start = [sys.executable, str(OLD_KERNEL)] if old else []
        options = ["--sandbox", mode, "--json"]
        return subprocess.run(
            [*start, sys.executable, "-m", "autograder", command, *map(str, arguments), *options],
            cwd=self.course,
            capture_output=True,
            text=True,
            check=False,
        )

    def read_scores(self, *arguments: object, old: bool, mode: str = "user") -> dict[str, float]:
        """Scores by student; all must be graded."""
        done = self.run(*arguments, old=old, mode=mode)
        assert done.returncode == 0, done.stderr
        return {each["student"]: each["score"] for each in json.loads(done.stdout)["results"]}

    def assert_refused(self, done: "subprocess.CompletedProcess[str]", file: Path, advice: str) -> None:
        assert done.returncode == 2
        (line,) = done.stderr.strip().splitlines()
        assert f"{file} could be read by student code of other submissions in the mode user; {advice}" in line


@pytest.fixture
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    course, folder = tmp_path_factory.mktemp("course"), tmp_path_factory.mktemp("submissions")
    course.chmod(0o700)
    for path in (folder, *folder.parents):
        if path.is_relative_to("/tmp") and path != Path("/tmp"):
            path.chmod(0o755)
    for name in ("course.toml", "assignments", "solutions", "tests/hidden"):
        (course / name).parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["cp", "-r", ROOT / name, course / name], check=True)
    with open_python():
        yield Place(course, folder)


@landlocked
def test_submissions_that_everybody_may_read_are_closed_to_each_other_by_the_kernel(place: Place) -> None:
    place.write("ada.ipynb", "bob.ipynb", "class.zip")
    place.write("bob.ipynb", "ada.ipynb")
    with zipfile.ZipFile(place.folder / "class.zip", "w") as archive:
        archive.write(place.folder / "ada.ipynb", "cyd.ipynb")
    assert place.read_scores(place.folder, old=False) == {"ada": 13, "bob": 13}
    assert place.read_scores(place.folder, old=False, mode="none") == {"ada": 9, "bob": 9}


def test_a_single_submission_that_everybody_may_read_is_graded(place: Place) -> None:
    file = place.write("ada.ipynb")
    assert place.read_scores(file, "--no-store", old=True) == {"ada": 13}


def test_without_landlock_a_notebook_beside_a_single_one_must_be_closed(place: Place) -> None:
    graded, other = place.write("ada.ipynb", "bob.ipynb"), place.write("bob.ipynb")
    place.assert_refused(place.run(graded, old=True), other, f"chmod 700 {place.folder}")
    other.chmod(0o600)
    assert place.read_scores(graded, old=True) == {"ada": 13}


def test_without_landlock_everything_below_a_graded_folder_must_be_closed(place: Place) -> None:
    place.write("ada.ipynb").chmod(0o600)
    other = place.write("notes/draft.ipynb")
    place.folder.chmod(0o777)
    place.assert_refused(place.run(place.folder, old=True), other, f"chmod 700 {other.parent}")
    other.unlink()
    archive = place.folder / "class.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.write(place.folder / "ada.ipynb", "cyd.ipynb")
    place.assert_refused(place.run(archive, old=True), archive, f"chmod 600 {archive}")


def test_without_landlock_submissions_that_the_store_knows_must_be_closed(place: Place) -> None:
    first = place.write("first/ada.ipynb")
    assert place.read_scores(first, old=True) == {"ada": 13}
    second = place.write("second/bob.ipynb", "first/ada.ipynb")
    place.assert_refused(place.run(second, old=True), first, f"chmod 700 {first.parent}")
    first.parent.chmod(0o700)
    assert place.read_scores(second, old=True) == {"bob": 13}
    first.parent.chmod(0o755)
    place.assert_refused(place.run(old=True, command="regrade"), first, f"chmod 700 {first.parent}")
    first.parent.chmod(0o700)
    second.parent.chmod(0o700)
    assert place.run(old=True, command="regrade").returncode == 0


def test_results_that_everybody_may_read_are_refused(place: Place) -> None:
    graded = place.write("ada.ipynb")
    store = place.folder / "grades.sqlite"
    assert place.read_scores(graded, "--store", store, old=True) == {"ada": 13}
    store.chmod(0o644)
    done = place.run(graded, "--store", store, old=True)
    assert done.returncode == 2
    assert f"{store} could be read by student code in the mode user; chmod 600 {store}" in done.stderr


@landlocked
def test_landlock_does_not_close_what_lies_in_folders_that_python_needs(place: Place, tmp_path: Path) -> None:
    """Such a submission is looked for as on a kernel without it."""
    within = Path("/usr/local/share/autograder-conformance")
    within.mkdir(mode=0o755)
    try:
        moved = Place(place.course, within)
        graded, other = moved.write("ada.ipynb"), moved.write("bob.ipynb")
        moved.assert_refused(moved.run(graded, old=False), other, f"chmod 700 {within}")
    finally:
        subprocess.run(["rm", "-r", within], check=True)
