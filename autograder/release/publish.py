"""Read the source, build and check the student notebook, write or compare it."""

import contextlib
import os
import tempfile
from pathlib import Path

from autograder.course import Course
from autograder.errors import ReleaseError
from autograder.release.build import build_stub, parse_source, read_config
from autograder.release.contract import find_gaps
from autograder.release.leaks import find_leaks, find_test_names


def build_release(course: Course, name: str) -> bytes:
    """The bytes that students get of an assignment.

    Raises `ReleaseError` that names the source and everything that is wrong with it: it cannot be read,
    nbgrader refuses it, it misses something that `course.toml` promises, or its stub would leak.
    """
    assignment = course.assignment(name)
    file = course.solution_notebook(name)
    try:
        source = file.read_bytes()
    except OSError as error:
        raise ReleaseError(f"{file}: cannot be read ({error.strerror})") from error
    try:
        before = parse_source(source)
        stub = build_stub(source, read_config(course.folder))
        after = parse_source(stub)
    except ReleaseError as error:
        raise ReleaseError(f"{file}: {error}") from error
    # What misses in the source misses in the stub; a gap that only the stub has is a region drawn too wide.
    problems = find_gaps(assignment, after) + find_leaks(before, after, _read_test_names(course.hidden_tests(name)))
    if problems:
        raise ReleaseError(f"{file}: the student notebook is not fit to be released: " + "; ".join(problems))
    return stub


def release_assignment(course: Course, name: str) -> Path:
    """Build the student notebook and put it in its place at one stroke. Raises `ReleaseError`."""
    stub = build_release(course, name)
    target = course.released_notebook(name)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        _write_atomically(target, stub)
    except OSError as error:
        raise ReleaseError(f"{target}: cannot be written ({error.strerror})") from error
    return target


def find_difference(course: Course, name: str) -> str | None:
    """One sentence when the released notebook is not what its source builds; None when it is.

    Raises `ReleaseError` when the source builds nothing.
    """
    target = course.released_notebook(name)
    stub = build_release(course, name)
    if not target.is_file():
        return f"{target}: is not there; run autograder release {name}"
    if target.read_bytes() != stub:
        return f"{target}: is not what {course.solution_notebook(name)} builds; run autograder release {name}"
    return None


def is_current(course: Course, name: str) -> bool:
    """Whether the released notebook is, byte for byte, what its source builds. Raises `ReleaseError`."""
    return find_difference(course, name) is None


def _read_test_names(folder: Path) -> set[str]:
    names: set[str] = set()
    for file in sorted(folder.rglob("*.py")):
        try:
            names.update(find_test_names(file.read_text(encoding="utf-8")))
        except (SyntaxError, UnicodeDecodeError) as error:
            raise ReleaseError(f"{file}: cannot be parsed ({error}), so its names cannot be looked for") from error
    return names


def _write_atomically(target: Path, data: bytes) -> None:
    handle, temporary = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
