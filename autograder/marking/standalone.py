"""`pytest tests/hidden/<assignment>`: one notebook through the sandbox, for plain pytest to mark."""

from pathlib import Path

from autograder.course import Course, find_course_folder, load_course
from autograder.errors import CourseError, UsageError
from autograder.intake.notebook import parse_program
from autograder.marking.cases import Bench, build_cases
from autograder.marking.reference import build_input_sets, load_reference
from autograder.sandbox.session import Session
from autograder.sandbox.watch import build_budget


def fill_bench(bench: Bench, test_file: Path, submission: str | None) -> None:
    """Execute the solution notebook, or the one named by `--submission`, and lay its cases on the bench."""
    course = load_course(find_course_folder(test_file.parent))
    name = find_assignment(course, test_file)
    assignment = course.assignment(name)
    notebook = Path(submission) if submission else course.solution_notebook(name)
    if not notebook.is_file():
        raise UsageError(f"{notebook}: there is no such notebook; name one with --submission FILE")
    bench.reference = load_reference(course.reference(name))
    sets = build_input_sets(course, name, bench.reference)
    program = parse_program(notebook.read_bytes(), assignment)
    with Session(course.folder, assignment) as session:
        inputs = [(input_set.seed, input_set.inputs) for input_set in sets]
        execution = session.execute(program, inputs, build_budget(assignment), evidence=False)
    bench.cases = build_cases(course, name, sets, execution)


def find_assignment(course: Course, path: Path) -> str:
    """The assignment whose hidden tests stand at this path."""
    folder = course.folder / "tests" / "hidden"
    if not path.is_relative_to(folder):
        raise CourseError(f"{path}: is not below {folder}")
    return path.relative_to(folder).parts[0]
