"""Mode `user`: what a user without rights of its own can reach on this machine, looked up as such a user."""

import json
import os
import stat
import sys
import sysconfig
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from autograder.errors import SandboxUnavailable
from autograder.sandbox import landlock
from autograder.sandbox.bubblewrap import GUEST, find_python

NOBODY = 59_999
"""Who looks: like the users of submissions it has no account, no groups and no files."""

_SECRETS = ("course.toml", "tests/hidden", "solutions", ".autograder", "*.csv", "submitted", ".git")
"""The history of a course holds everything that it ever held; a table holds names or marks."""
_MOST_LOOKED_AT = 2_000
_SUBMISSIONS = (".ipynb", ".zip")


def require_root() -> None:
    """`SandboxUnavailable` unless the grader is root."""
    if os.geteuid() != 0:
        raise SandboxUnavailable(
            "--sandbox user needs root, which makes a user for each submission; leave the option out where bubblewrap "
            "works, or run the grader as root in a container of its own"
        )


def check_access(course_folder: Path, packages: Sequence[str]) -> None:
    """`SandboxUnavailable` when student code could read the course, or could not read Python and the packages."""
    require_root()
    if found := find_readable(list_secrets(course_folder)):
        raise SandboxUnavailable(
            f"{found[0]} could be read by student code in the mode user; chmod 700 {course_folder.resolve()}"
        )
    # A home below root is closed to others: the interpreter, its library and packages must stand elsewhere.
    needed = [find_python(), sysconfig.get_path("stdlib"), str(GUEST), *packages]
    if closed := sorted(set(needed) - set(find_readable(needed))):
        raise SandboxUnavailable(
            f"{closed[0]} cannot be read by student code in the mode user; install Python and the autograder where "
            "every user may read them, for example a virtual environment in /opt made by /usr/bin/python3"
        )
    if writable := find_writable(needed):
        raise SandboxUnavailable(
            f"{writable[0]} could be changed by student code in the mode user; chmod -R o-w {writable[0]}"
        )


def check_files(
    given: Iterable[Path], graded: Iterable[Path], stored: Iterable[str], store: str | None, preload: Iterable[str]
) -> None:
    """`SandboxUnavailable` when submissions of others, or results, could be read by student code.

    A notebook that is graded alone is its own reader. Where the kernel has Landlock, only what lies within its
    allow-list is looked at.

    given: the files and folders that are to be graded; submissions lie in these folders and beside these files.
    graded: the files among them that are.
    stored: paths of submissions that the store knows, as people were shown them.
    store: a file or the address of a database.
    preload: modules of the course that student code can read.
    """
    require_root()
    allowed = landlock.list_readable(preload) if landlock.find_version() else None

    def find_exposed(paths: Iterable[str]) -> list[str]:
        return find_readable(list(paths) if allowed is None else landlock.keep_within(paths, allowed))

    if store is not None and (found := find_exposed([str(Path(store).resolve())])):
        raise SandboxUnavailable(f"{found[0]} could be read by student code in the mode user; chmod 600 {found[0]}")
    own = {str(path.resolve()) for path in graded}
    others = own.union(list_neighbours(given), list_neighbours(Path(path) for path in own), find_stored(stored))
    alone = own or others
    if len(alone) == 1 and all(path.endswith(".ipynb") for path in alone):
        others -= alone
    if found := find_exposed(sorted(others)):
        raise SandboxUnavailable(
            f"{found[0]} could be read by student code of other submissions in the mode user; "
            f"{_advise_closing(Path(found[0]))}"
        )


def list_neighbours(given: Iterable[Path]) -> Iterator[str]:
    """What looks like a submission in the folders among some paths, and beside the files among them."""
    for path in {each.resolve() for each in given}:
        places = os.walk(path) if path.is_dir() else [(str(path.parent), [], _list_names(path.parent))]
        for folder, _, names in places:
            yield from (f"{folder}/{name}" for name in names if name.lower().endswith(_SUBMISSIONS))


def _list_names(folder: Path) -> list[str]:
    return os.listdir(folder) if folder.is_dir() else []


def find_stored(paths: Iterable[str]) -> Iterator[str]:
    """Those files of stored submissions that are still there; for a member of an archive it is the archive."""
    for path in paths:
        for place in (Path(path), *Path(path).parents):
            if place.is_file():
                yield str(place.resolve())
            if place.exists():
                break


def _advise_closing(file: Path) -> str:
    is_everybodys = file.parent.stat().st_mode & stat.S_IWOTH
    return f"chmod 600 {file}" if is_everybodys else f"chmod 700 {file.parent}"


def list_secrets(course_folder: Path) -> list[str]:
    """What of a course student code may not read."""
    found: list[str] = []
    for top in (each for pattern in _SECRETS for each in sorted(course_folder.resolve().glob(pattern))):
        found.append(str(top))
        if top.is_dir():
            found += [str(each) for each in sorted(top.rglob("*"))[:_MOST_LOOKED_AT]]
    return found


def find_readable(paths: Sequence[str]) -> list[str]:
    """Those files and folders that a user without rights can really open."""
    return _ask_nobody(paths, _can_open)


def find_writable(paths: Sequence[str]) -> list[str]:
    """Those files and folders that a user without rights may change."""
    return _ask_nobody(paths, _can_write)


def _can_open(path: str) -> bool:
    try:
        os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK))
    except OSError:
        return False
    return True


def _can_write(path: str) -> bool:
    return os.access(path, os.W_OK)


def _ask_nobody(paths: Sequence[str], question: Callable[[str], bool]) -> list[str]:
    """The paths of which something holds for a user without rights, asked in a process of that user."""
    reading, writing = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid == 0:
        try:
            os.setgroups([])
            os.setresgid(NOBODY, NOBODY, NOBODY)
            os.setresuid(NOBODY, NOBODY, NOBODY)
            answer = json.dumps([path for path in paths if question(path)])
            with os.fdopen(writing, "w") as pipe:
                pipe.write(answer)
            os._exit(0)
        finally:
            os._exit(1)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        answer = pipe.read()
    if os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) != 0:
        raise SandboxUnavailable("root may not become another user here, which --sandbox user needs")
    found: list[str] = json.loads(answer)
    return found
