"""What a soak grades: a course with small limits, and a folder of honest and hostile notebooks."""

import itertools
import json
import random
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from autograder.catalogue import fill_notebook, load_catalogue
from autograder.course import load_course
from autograder.records import Ending

from ..escapes.attacks import ASSIGNMENT, LIMITS, ROOT, Attack, build_attack, load_corpus, read_solution

TIMES: dict[str, int | float] = {
    "cell_wall_seconds": 6,
    "cell_cpu_seconds": 2,
    "wall_seconds": 30,
    "cpu_seconds": 10,
}
"""No honest cell meets these on a busy machine; what only a time limit ends does not take all night."""

STEADY = [(ending,) for ending in (Ending.OK, Ending.ERROR, Ending.EXITED, Ending.KILLED)]
SLOW = {"read-walk-for-the-course", "stay-planted-files"}
"""They look through the whole file system, and meet a time limit on a busy machine."""

COURSE_PARTS = ("course.toml", "assignments", "solutions", "tests/hidden")


@dataclass(frozen=True)
class Entry:
    """One submission; `attack` is None for an honest one."""

    student: str
    data: bytes
    attack: Attack | None

    @property
    def file_name(self) -> str:
        return f"{self.student}.ipynb"


def copy_course(folder: Path) -> Path:
    """The course in a folder of its own, with small limits and nothing stored."""
    for part in COURSE_PARTS:
        target = folder / part
        target.parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / part).is_dir():
            shutil.copytree(ROOT / part, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copyfile(ROOT / part, target)
    file = folder / "course.toml"
    text = file.read_text(encoding="utf-8")
    for key, value in (LIMITS | TIMES).items():
        text, found = re.subn(rf"^{key} = .*$", f"{key} = {value}", text, flags=re.MULTILINE)
        assert found == 1, f"course.toml has no line for {key}"
    file.write_text(text, encoding="utf-8")
    return folder


def build_entries(course_folder: Path, size: int, chance: random.Random, *, steady: bool = False) -> list[Entry]:
    """`size` submissions, a third of them hostile, in a random order.

    course_folder: the course that the attackers know of.
    steady: only attacks that end in the same way each time, and are not waited for.
    """
    corpus = load_corpus().items()
    attacks = [each for each in corpus if not steady or (each[1].endings in STEADY and each[0] not in SLOW)]
    honest = list(iterate_honest(course_folder))
    for pool in (attacks, honest):
        chance.shuffle(pool)
    course = load_course(course_folder)
    count = size // 3
    drawn: list[tuple[str, bytes, Attack | None]] = [
        (name, build_attack(attack, course), attack)
        for name, attack in itertools.islice(itertools.cycle(attacks), count)
    ]
    drawn += [(name, data, None) for name, data in itertools.islice(itertools.cycle(honest), size - count)]
    chance.shuffle(drawn)
    return [
        Entry(f"{number:04}-{name}", make_distinct(data, number), attack)
        for number, (name, data, attack) in enumerate(drawn)
    ]


def iterate_honest(course_folder: Path) -> Iterator[tuple[str, bytes]]:
    """The solution, each accepted variant and each known mistake, with a name."""
    course = load_course(course_folder)
    source = course.solution_notebook(ASSIGNMENT).read_bytes()
    catalogue = load_catalogue(course, ASSIGNMENT)
    for exercise in course.assignment(ASSIGNMENT).exercises:
        code = f"# As it should be.\n{read_solution(source, exercise.id)}"
        yield f"solution-{exercise.id}", fill_notebook(source, {exercise.id: code})
    for variant in catalogue.variants:
        before = {variant.exercise: variant.before} if variant.before is not None else None
        yield f"variant-{variant.id}", fill_notebook(source, {variant.exercise: variant.code}, before)
    for mistake in catalogue.mistakes:
        yield f"mistake-{mistake.id}", fill_notebook(source, {mistake.exercise: mistake.code})


def make_distinct(data: bytes, number: int) -> bytes:
    """The notebook with a comment at the end of its first code cell that no other submission has."""
    notebook = json.loads(data)
    cell = next(cell for cell in notebook["cells"] if cell["cell_type"] == "code")
    cell["source"] = f"{''.join(cell['source'])}\n# Submission {number}"
    return json.dumps(notebook).encode()


def write_entries(entries: list[Entry], folder: Path) -> Path:
    """One notebook for each submission in a folder."""
    folder.mkdir(parents=True)
    for entry in entries:
        (folder / entry.file_name).write_bytes(entry.data)
    return folder
