"""What people and their programs get to read of hostile submissions: through the real command line, on real files.

A student chooses names of files and folders, of types and exceptions, the text of answers and outputs, and the texts in
a notebook. None of it may steer a terminal, turn the reading direction, hide, be taken for markup or for a formula.
"""

import csv
import io
import json
import os
import pty
import re
import subprocess
import sys
import tomllib
import unicodedata
import zipfile
from pathlib import Path
from typing import Self

import pytest
from pydantic import BaseModel, ConfigDict, model_validator

from autograder.catalogue import fill_notebook
from autograder.course import Course

from .attacks import ASSIGNMENT, CORPUS, ROOT

ANSI = "\x1b[31m\x1b]0;owned\x07\x1b]8;;http:e.invalid\x07\x9b2J\x08\x7f"
HIDDEN = "\u202elive\u2066\u200b\u200c\u2028\ufeff\u00ad\U000e0041"
MARKUP = "[bold red]loud[/bold red][link=http://e.invalid]link[/link][/]"
ACTIVE = (
    "<script>alert(1)</script><img src=http://e.invalid/a.png><svg onload=alert(1)></svg>"
    "<style>*{display:none}</style>[a](javascript:alert(1))![](http://e.invalid/b.png)"
)
HOSTILE = f"{ANSI}{HIDDEN}{MARKUP}{ACTIVE}"


class Shown(BaseModel):
    """A file of `corpus/shown/`: code that plays with what is shown, with `BAD` for all of the above, or names.

    tries, must: as of an attack.
    names: stems of notebooks. folders: names of students in a tree. members: of an archive. In the last two ANSI,
        MARKUP, HIDDEN and LONG stand for what is above.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    tries: str
    must: str
    code: str = ""
    names: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    members: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _check_one(self) -> Self:
        if not (self.code or self.names or self.folders or self.members):
            raise ValueError("it shows nothing")
        return self


SHOWN = {
    file.stem: Shown.model_validate(tomllib.loads(file.read_text(encoding="utf-8")))
    for file in sorted((CORPUS / "shown").glob("*.toml"))
}
NAMES = [name for each in SHOWN.values() for name in each.names]
PLAYED = {name: f"BAD = {HOSTILE!r}\n{each.code}" for name, each in SHOWN.items() if each.code}
FOLDERS = [name for each in SHOWN.values() for name in each.folders]
MEMBERS = [name for each in SHOWN.values() for name in each.members]


def spell(name: str) -> str:
    """A name with what its words stand for."""
    for word, text in (("ANSI", ANSI), ("MARKUP", MARKUP), ("HIDDEN", HIDDEN), ("LONG", "n" * 60_000)):
        name = name.replace(word, text)
    return name


def run(*arguments: object) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "autograder", "grade", *map(str, arguments), "--no-store", "--course", str(ROOT)]
    return subprocess.run(command, capture_output=True, timeout=300, check=False, cwd=ROOT)


def find_unshown(text: str) -> list[str]:
    """Characters that steer, turn or hide; a newline and letters that join others are fine."""
    kept = {"\n", "\u200c"}
    return [c for c in text if unicodedata.category(c) in {"Cc", "Cf", "Cs", "Zl", "Zp"} and c not in kept]


@pytest.fixture(scope="module")
def hostile_folder(course: Course, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Hostile names, which need not be graded, and hostile notebooks."""
    folder = tmp_path_factory.mktemp("shown")
    source = course.solution_notebook(ASSIGNMENT).read_bytes()
    for name in NAMES:
        (folder / f"{name}.ipynb").write_text("no notebook")
        (folder / f"{name[:100]}.txt").touch()
    Path(os.fsdecode(os.fsencode(folder) + b"/\xff\x1b[31m.ipynb")).write_text("no notebook")
    for name in FOLDERS:
        tree = folder / spell(name).replace("/", "|") / ASSIGNMENT
        tree.mkdir(parents=True)
        (tree / "x\x1b]0;\x07.ipynb").write_text("no notebook")
    for name, code in PLAYED.items():
        notebook = json.loads(fill_notebook(source, {"shared-key": code}))
        notebook["metadata"]["kernelspec"] = {"name": HOSTILE, "display_name": HOSTILE, "language": HOSTILE}
        notebook["cells"].append({"cell_type": HOSTILE, "id": HOSTILE, "source": HOSTILE, "metadata": {HOSTILE: 1}})
        notebook["cells"].append({"cell_type": "markdown", "id": "md", "source": HOSTILE, "metadata": {}})
        (folder / f"{name}.ipynb").write_text(json.dumps(notebook))
    with zipfile.ZipFile(folder / "names.zip", "w") as archive:
        for name in MEMBERS:
            archive.writestr(spell(name), "no notebook")
    return folder


def list_paths(folder: Path) -> list[Path]:
    return [folder, folder / "names.zip"]


@pytest.fixture(scope="module")
def graded(hostile_folder: Path) -> tuple[subprocess.CompletedProcess[bytes], str]:
    """One run with the table and the CSV file; a good part is no notebook, so the status is 1."""
    table = hostile_folder.with_suffix(".csv")
    done = run(*list_paths(hostile_folder), "--details", "--csv", table)
    assert done.returncode == 1, done.stderr.decode()
    return done, table.read_bytes().decode("utf-8")


def test_nothing_that_steers_or_hides_reaches_a_log(graded) -> None:
    done, _ = graded
    assert find_unshown(done.stdout.decode()) == []
    assert find_unshown(done.stderr.decode()) == []


def test_on_a_terminal_only_our_own_colours_steer(hostile_folder: Path) -> None:
    outside, inside = pty.openpty()
    command = [sys.executable, "-m", "autograder", "grade", *map(str, list_paths(hostile_folder)), "--details"]
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "160"}
    process = subprocess.Popen(
        [*command, "--no-store", "--course", str(ROOT)],
        stdin=subprocess.DEVNULL,
        stdout=inside,
        stderr=inside,
        env=environment,
    )
    os.close(inside)
    shown = b""
    while True:
        try:
            part = os.read(outside, 2**16)
        except OSError:
            break  # how a terminal says that nobody writes to it any more
        if not part:
            break
        shown += part
    os.close(outside)
    assert process.wait() == 1
    text = shown.decode()
    assert "\x1b[" in text
    # Colours, and how the progress bar redraws its own line.
    ours = re.sub(r"\x1b\[[0-9;]*m|\x1b\[(?:\?25[lh]|[12]K|1A)|\r", "", text)
    assert find_unshown(ours) == []
    assert "\x1b[31m" not in text.split("Why marks were lost")[1]


def test_markup_is_shown_as_it_was_written(graded) -> None:
    shown = graded[0].stdout.decode()
    for name in ("[bold red]loud", "[link=x]y[", "<script>alert(1)<"):
        assert re.search(rf"^\W {re.escape(name)} ", shown, re.MULTILINE)


def test_each_submission_is_one_row_and_no_cell_is_a_formula(graded) -> None:
    _, text = graded
    rows = list(csv.DictReader(io.StringIO(text)))
    assert (
        len(rows) == len(NAMES) + len(PLAYED) + len(FOLDERS) + len(MEMBERS) + 1 - 1
    )  # of the archive's, one has a name too long to be read
    assert len(text.splitlines()) == len(rows) + 1
    assert find_unshown(text.replace("\r\n", "\n")) == []
    for row in rows:
        assert not [cell for cell in row.values() if cell and cell.lstrip()[0] in "=+-@\uff1d\uff0b\uff0d\uff20"]
    for separator in ";\t":
        cells = [cell for line in text.splitlines() for cell in line.split(separator)]
        assert not [cell for cell in cells if cell.lstrip(' "')[:1] in ("=", "@", "\uff1d")]
    assert len({row["student"] for row in rows}) == len(rows)


def test_names_that_look_alike_are_told_apart(graded) -> None:
    students = {row["student"] for row in csv.DictReader(io.StringIO(graded[1]))}
    assert {"zero", "Karl"} <= students
    tagged = {student.partition(" [")[0] for student in students if re.fullmatch(r".* \[[0-9a-f]{8}\]", student)}
    assert {"ze\ufffdro", "Karl", "M\xfcller", "a\ufffd"} <= tagged
    assert "\u0645\u06cc\u200c\u0646" in students


def test_the_document_is_valid_and_steers_nothing(hostile_folder: Path) -> None:
    done = run(*list_paths(hostile_folder), "--json")
    assert find_unshown(done.stdout.decode()) == []
    document = json.loads(done.stdout)
    played = {each["student"]: each for each in document["results"] if each["student"].startswith("played-")}
    assert {each["status"] for each in played.values()} == {"graded"}
    for each in played.values():
        scores = {exercise["id"]: exercise["score"] for exercise in each["exercises"]}
        assert scores == {"shared-key": 0.0, "head-size": 5.0, "shared-value": 4.0}
        told = [test["message"] + test["hint"] for exercise in each["exercises"] for test in exercise["tests"]]
        assert not [text for text in told if "e.invalid" in text or "loud" in text]


def test_no_line_is_longer_than_a_person_reads(graded) -> None:
    assert max(map(len, graded[0].stdout.decode().splitlines())) < 2_000


def test_a_complaint_about_a_path_steers_nothing(tmp_path: Path) -> None:
    done = run(tmp_path / f"{ANSI}\u202e.ipynb")
    assert done.returncode == 2
    assert find_unshown(done.stderr.decode()) == []
    (tmp_path / f"{ANSI}.txt").touch()
    nothing = run(tmp_path)
    assert nothing.returncode == 2
    assert find_unshown(nothing.stderr.decode()) == []
