"""Classes of submissions, made from the catalogue: the same number gives the same class."""

import hashlib
from collections.abc import Iterator
from pathlib import Path

from autograder.catalogue import Catalogue, Mistake, Variant, fill_notebook, load_catalogue
from autograder.course import Course
from autograder.records import Submission

WRONG_EVERY = 3
"""Every third student makes one known mistake; the others, and the other exercises, are right."""
LOOP = "while True:\n    pass"


def build_class(
    course: Course, assignment: str, template: bytes, size: int, *, loops: int = 0, wrong: bool = True
) -> Iterator[tuple[Submission, int]]:
    """Submissions with the number of points that each must lose, one at a time.

    template: the notebook that students get. wrong: whether there are mistakes at all. loops: how many students, spread
    over the class, hand in an exercise that never ends.
    No two have the same bytes, so nothing that is graded once can stand for another.
    """
    catalogue = load_catalogue(course, assignment)
    exercises = [each.id for each in course.assignment(assignment).exercises]
    for number in range(size):
        picks: dict[str, Variant | Mistake] = {each: pick_variant(catalogue, each, number) for each in exercises}
        lost = 0
        if wrong and number % WRONG_EVERY == 0:
            mistake = catalogue.mistakes[number * 7 % len(catalogue.mistakes)]
            picks[mistake.exercise] = mistake
            lost = len(mistake.loses)
        codes = {each: f"# submission {number}\n{pick.code}" for each, pick in picks.items()}
        before = {each: pick.before for each, pick in picks.items() if isinstance(pick, Variant) and pick.before}
        if loops and number % (size // loops) == 1:
            exercise = exercises[number % len(exercises)]
            codes[exercise] = f"# submission {number}\n{LOOP}"
        data = fill_notebook(template, codes, before)
        yield Submission(f"student-{number:05}", "", data, hashlib.sha256(data).hexdigest()), lost


def pick_variant(catalogue: Catalogue, exercise: str, number: int) -> Variant:
    """The accepted variants of an exercise take turns."""
    variants = [each for each in catalogue.variants if each.exercise == exercise]
    return variants[number % len(variants)]


def write_class(
    folder: Path, course: Course, assignment: str, template: bytes, size: int, *, loops: int = 0, wrong: bool = True
) -> dict[str, int]:
    """Write `<student>/<assignment>/<assignment>.ipynb`; returns the points that each student must lose."""
    lost = {}
    for submission, points in build_class(course, assignment, template, size, loops=loops, wrong=wrong):
        file = folder / submission.student / assignment / f"{assignment}.ipynb"
        file.parent.mkdir(parents=True)
        file.write_bytes(submission.data)
        lost[submission.student] = points
    return lost
