"""Known mistakes as they come out of the sandbox, kept on disk until something that they depend on changes."""

import contextlib
import hashlib
import os
import tempfile
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

import msgspec

from autograder.catalogue import Mistake, fill_notebook, load_catalogue
from autograder.course import Course
from autograder.guest.wire import WireValue
from autograder.intake.notebook import parse_program
from autograder.marking.known import KnownMistake
from autograder.marking.reference import InputSet
from autograder.records import Answers, Execution
from autograder.sandbox.session import Session
from autograder.sandbox.values import build_wire_value, read_value
from autograder.sandbox.watch import build_budget

_FOLDER = ".autograder"
_PACKAGES = ("numpy", "ipython", "msgspec")
_KEPT = msgspec.msgpack.Decoder(dict[str, list[dict[str, WireValue]]])


def load_known(course: Course, name: str, sandbox: Session, sets: Sequence[InputSet]) -> tuple[KnownMistake, ...]:
    """The known mistakes of an assignment with their answers on all input sets; run only when nothing fitting is kept."""
    mistakes = load_catalogue(course, name).mistakes
    file = course.folder / _FOLDER / f"mistakes-{name}-{_digest(course, name)}.msgpack"
    kept = _read_kept(file)
    if kept is None or kept.keys() != {each.id for each in mistakes}:
        kept = {each.id: run_mistake(course, name, sandbox, sets, each) for each in mistakes}
        _write_kept(file, kept)
    return tuple(build_known(each, kept[each.id]) for each in mistakes)


def build_known(mistake: Mistake, answers: Sequence[Answers]) -> KnownMistake:
    """The record of a catalogue entry and its answers."""
    return KnownMistake(
        id=mistake.id,
        exercise=mistake.exercise,
        title=mistake.title,
        hint=mistake.hint,
        loses=mistake.loses,
        answers=tuple(answers),
        raises=(mistake.raises.type, mistake.raises.message) if mistake.raises else None,
    )


def run_mistake(
    course: Course, name: str, sandbox: Session, sets: Sequence[InputSet], mistake: Mistake
) -> list[Answers]:
    """The answers of a mistake's exercise on each input set, through the sandbox."""
    assignment = course.assignment(name)
    data = fill_notebook(course.solution_notebook(name).read_bytes(), {mistake.exercise: mistake.code})
    program = parse_program(data, assignment)
    others = {n for n, cell in enumerate(program.cells) if cell.exercises and mistake.exercise not in cell.exercises}
    inputs = [(each.seed, each.inputs) for each in sets]
    execution: Execution = sandbox.execute(program, inputs, build_budget(assignment), skip=others, evidence=False)
    wanted = next(exercise.answers for exercise in assignment.exercises if exercise.id == mistake.exercise)
    return [{key: value for key, value in each.answers.items() if key in wanted} for each in execution.passes]


def _digest(course: Course, name: str) -> str:
    """Changes with whatever can change an answer: the course's files, this package, NumPy."""
    digest = hashlib.sha256()
    package = Path(__file__).parent
    files = [*sorted(course.solution_notebook(name).parent.glob("*.*")), *sorted((package / "guest").glob("*.py"))]
    for file in files:
        if file.is_file():
            digest.update(file.read_bytes() + b"\0")
    digest.update(course.assignment(name).model_dump_json().encode())
    digest.update(repr([(each, metadata.version(each)) for each in _PACKAGES]).encode())
    return digest.hexdigest()[:16]


def _read_kept(file: Path) -> dict[str, list[Answers]] | None:
    try:
        kept = _KEPT.decode(file.read_bytes())
    except (OSError, msgspec.MsgspecError):
        return None
    return {
        key: [{name: read_value(value) for name, value in one.items()} for one in each] for key, each in kept.items()
    }


def _write_kept(file: Path, kept: dict[str, list[Answers]]) -> None:
    """Put the file in place at one stroke; a folder that cannot be written to costs time, not grades."""
    plain = {
        key: [{name: build_wire_value(value) for name, value in one.items()} for one in each]
        for key, each in kept.items()
    }
    with contextlib.suppress(OSError):
        file.parent.mkdir(exist_ok=True)
        for old in file.parent.glob(f"{file.name.rpartition('-')[0]}-*.msgpack"):
            old.unlink(missing_ok=True)
        handle, temporary = tempfile.mkstemp(dir=file.parent)
        with os.fdopen(handle, "wb") as target:
            target.write(msgspec.msgpack.encode(plain))
        os.replace(temporary, file)
