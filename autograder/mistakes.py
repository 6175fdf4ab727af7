"""Known mistakes as they come out of the sandbox, kept on disk until something that they depend on changes."""

import contextlib
import fcntl
import hashlib
import os
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from importlib import metadata
from pathlib import Path

import msgspec

from autograder.catalogue import Mistake, load_catalogue
from autograder.course import Course
from autograder.guest.wire import WireError, WireValue
from autograder.marking.known import Failure, KnownMistake, find_failure
from autograder.marking.reference import InputSet
from autograder.records import Answers, Ending, Pass, Program
from autograder.sandbox.session import Session
from autograder.sandbox.values import build_wire_value, read_value
from autograder.sandbox.watch import CELL_CPU
from autograder.solution import batch_by_exercise, execute_codes, is_shared_safely

_FOLDER = ".autograder"
_DIGEST_LENGTH = 16
_RUNNING = ("guest", "sandbox", "intake", "syntax.py")
"""Parts of this package that decide what code gives."""
_PACKAGES = ("numpy", "ipython", "msgspec")
_KEPT = msgspec.msgpack.Decoder(dict[str, list[tuple[dict[str, WireValue], Failure | None]]])

Ran = list[tuple[Answers, Failure | None]]
"""What a mistake came to, input set by input set."""


def load_known(course: Course, name: str, sandbox: Session, sets: Sequence[InputSet]) -> tuple[KnownMistake, ...]:
    """The known mistakes of an assignment with their answers on all input sets; run only where none are kept."""
    mistakes = load_catalogue(course, name).mistakes
    file = course.folder / _FOLDER / f"mistakes-{name}-{_digest(course, name)}.msgpack"
    with _lock(file.parent):
        kept = _read_kept(file)
        if kept is None or kept.keys() != {each.id for each in mistakes}:
            kept = run_mistakes(course, name, sandbox, sets, mistakes)
            if not _was_cut_short(kept):
                _write_kept(file, kept)
    return tuple(build_known(each, kept[each.id]) for each in mistakes)


@contextlib.contextmanager
def _lock(folder: Path) -> Iterator[None]:
    """One process at a time runs the mistakes; the others wait and read. Without a folder each runs them itself."""
    try:
        folder.mkdir(exist_ok=True)
        handle = os.open(folder / "lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    except OSError:
        yield
        return
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _was_cut_short(ran: Mapping[str, Ran]) -> bool:
    """Whether a run ended as a busy machine can end it, by the clock or from outside; the next start tries again."""
    failures = [failure for each in ran.values() for _, failure in each if failure is not None]
    return any(kind == Ending.KILLED or (kind == Ending.TIMEOUT and CELL_CPU not in text) for kind, text in failures)


def build_known(mistake: Mistake, ran: Ran) -> KnownMistake:
    """The record of a catalogue entry and what it came to."""
    return KnownMistake(
        id=mistake.id,
        exercise=mistake.exercise,
        title=mistake.title,
        hint=mistake.hint,
        loses=mistake.loses,
        answers=tuple(answers for answers, _ in ran),
        failures=tuple(failure for _, failure in ran),
    )


def run_mistakes(
    course: Course, name: str, sandbox: Session, sets: Sequence[InputSet], mistakes: Sequence[Mistake]
) -> dict[str, Ran]:
    """What each mistake's exercise comes to on each input set, through the sandbox; by the mistake's id."""
    wanted = {exercise.id: exercise.answers for exercise in course.assignment(name).exercises}
    results: dict[str, Ran] = {}
    for batch in batch_by_exercise(mistakes):
        shared = execute_codes(course, name, sandbox, sets, {each.exercise: each.code for each in batch})
        safe = is_shared_safely(shared[1])
        for each in batch:
            own = shared if safe else execute_codes(course, name, sandbox, sets, {each.exercise: each.code})
            results[each.id] = [_pick(each.exercise, wanted[each.exercise], own[0], one) for one in own[1].passes]
    return results


def _pick(exercise: str, wanted: Collection[str], program: Program, one_pass: Pass) -> tuple[Answers, Failure | None]:
    """An exercise's answers and exception in one pass."""
    answers = {key: value for key, value in one_pass.answers.items() if key in wanted}
    return answers, find_failure(run for run in one_pass.runs if exercise in program.cells[run.cell].exercises)


def _digest(course: Course, name: str) -> str:
    """Changes with whatever can change an answer: the course's files, this package, NumPy."""
    digest = hashlib.sha256()
    package = Path(__file__).parent
    files = sorted(course.solution_notebook(name).parent.glob("*.*"))
    files += [file for part in _RUNNING for file in sorted((package / part).glob("*.py")) or [package / part]]
    for file in files:
        if file.is_file():
            digest.update(file.read_bytes() + b"\0")
    digest.update(course.assignment(name).model_dump_json(exclude={"due", "late"}).encode())
    digest.update(repr([(each, metadata.version(each)) for each in _PACKAGES]).encode())
    return digest.hexdigest()[:_DIGEST_LENGTH]


def _read_kept(file: Path) -> dict[str, Ran] | None:
    try:
        kept = _KEPT.decode(file.read_bytes())
        return {
            key: [({name: read_value(value) for name, value in one.items()}, failure) for one, failure in each]
            for key, each in kept.items()
        }
    except (OSError, msgspec.MsgspecError, WireError):
        return None


def _write_kept(file: Path, kept: dict[str, Ran]) -> None:
    """Put the file in place at one stroke; a folder that cannot be written to costs time, not grades."""
    plain = {
        key: [({name: build_wire_value(value) for name, value in one.items()}, failure) for one, failure in each]
        for key, each in kept.items()
    }
    with contextlib.suppress(OSError):
        file.parent.mkdir(exist_ok=True)
        for old in file.parent.glob(f"{file.name.rpartition('-')[0]}-{'?' * _DIGEST_LENGTH}.msgpack"):
            old.unlink(missing_ok=True)
        handle, temporary = tempfile.mkstemp(dir=file.parent)
        with os.fdopen(handle, "wb") as target:
            target.write(msgspec.msgpack.encode(plain))
        os.replace(temporary, file)
