"""Where submissions lie: single notebooks, folders, nbgrader trees, and what LMSs let one download, also as zip.

Finding only lists files; each is read later, where it is graded, and nothing is unpacked to disk. Nothing is lost
silently: every file found is either a source or skipped with a reason, and is so once.

Who the student is:

* in the download of an LMS: what its names say (see `lms.py`);
* a notebook named on the command line, or in a flat folder: the file's stem;
* `<student>/<assignment>/<notebook>.ipynb` anywhere below a named folder (an nbgrader tree): the folder's name.
  `<assignment>.ipynb` counts, or a lone notebook under whatever name;
* another notebook in a folder below: its stem, but `<assignment>.ipynb` takes the name of the folder it lies in.

Where this gives one name to several students, each gets the LMS's id added, or the path, so that none replaces
another.
"""

import contextlib
import hashlib
import os
import stat
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from datetime import tzinfo
from pathlib import Path
from typing import Literal

import msgspec

from autograder.errors import NotebookError, UsageError
from autograder.intake.archives import list_archive, read_member, read_members
from autograder.intake.attempts import Attempts, Told, sort_out
from autograder.intake.files import MAX_FILE_BYTES, File, Source, classify_name, make_showable, tell_apart
from autograder.intake.folders import list_folder, read_beginning, read_file
from autograder.intake.lms import Submitter, is_in_submission, parse_gradescope_list
from autograder.records import Skipped, Submission

__all__ = ["MAX_FILE_BYTES", "Attempts", "Source", "find_attempts", "find_submissions", "read_submission"]

_TELLING = ("submission_metadata.yml", "timestamp.txt")
_MOST_LISTS = 4
"""Of Gradescope; a download has one."""
_TIMESTAMP_BYTES = 200
"""A time is shorter; a longer file is none of nbgrader's."""


def find_submissions(
    paths: Sequence[Path],
    assignment: str,
    *,
    choose: Literal["last", "first"] = "last",
    others: Collection[str] = (),
    zone: tzinfo | None = None,
) -> tuple[list[Source], list[Skipped]]:
    """List the submissions for `assignment` at some paths, in the order of the paths and sorted below each.

    Of several attempts of a student in one place, the last or the first is taken and the others are skipped.
    `others` are the course's other assignments: a notebook named after one of them is not taken for this one.
    `zone` is where an LMS's times that name no zone are read (`Course.zone`); without it they are not known.
    `UsageError` when a path does not exist or cannot be looked into.
    """
    return take_attempts(*find_attempts(paths, assignment, others, zone), choose)


def take_attempts(
    found: Sequence[Attempts], skipped: Sequence[Skipped], choose: Literal["last", "first", "best"]
) -> tuple[list[Source], list[Skipped]]:
    """The attempt of each student that counts; the others are skipped. For the best one all have to be graded."""
    sources: list[Source] = []
    rest = list(skipped)
    for attempts in found:
        if choose == "best":
            sources += attempts.sources
            continue
        chosen = attempts.sources[-1 if choose == "last" else 0]
        sources.append(chosen)
        reason = f"another attempt of this student; the {choose} one counts"
        rest += [Skipped(source.shown, reason) for source in attempts.sources if source is not chosen]
    return sources, rest


def find_attempts(
    paths: Sequence[Path], assignment: str, others: Collection[str] = (), zone: tzinfo | None = None
) -> tuple[list[Attempts], list[Skipped]]:
    """Every attempt of every student, for whoever wants to grade them all and keep the best."""
    found: list[Attempts] = []
    skipped: list[Skipped] = []
    for path in paths:
        attempts, rest = _find_at(path, assignment, others, zone)
        found += attempts
        skipped += rest
    return _make_unique(
        [_name_all(each, _tidy_name(each.sources[0].student)) for each in _drop_doubles(found)]
    ), skipped


def read_submission(source: Source) -> Submission:
    """Read one source. `NotebookError` says why it cannot be read; that submission is ungraded."""
    if source.fault:
        raise NotebookError(source.fault)
    try:
        data = read_member(source.path, source.member) if source.member else read_file(source.path)
    except OSError as error:
        raise NotebookError(f"The file cannot be read ({error.strerror}); check its permissions.") from error
    sha256 = hashlib.sha256(data).hexdigest()
    return Submission(source.student, source.shown, data, sha256, source.received, source.late, source.attempt)


def _find_at(
    path: Path, assignment: str, others: Collection[str], zone: tzinfo | None
) -> tuple[list[Attempts], list[Skipped]]:
    """The attempts at one path, and what was skipped."""
    shown = make_showable(os.fspath(path))
    try:
        mode = os.stat(path).st_mode
        if stat.S_ISREG(mode) and path.suffix.lower() == ".zip":
            files = list_archive(path)
            return sort_out(path.stem, files, assignment, others, _read_told(files, zone))
    except NotebookError as error:
        return [Attempts((Source(make_showable(path.stem), path, shown, str(error)),), shown)], []
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UsageError(
            f"{shown}: cannot be opened ({reason}); name a notebook, a folder of notebooks or a zip archive"
        ) from error
    if stat.S_ISDIR(mode):
        files = list(list_folder(path))
        root_name = os.path.basename(os.path.abspath(path))
        return sort_out(root_name, files, assignment, others, _read_told(files, zone))
    skip, _ = classify_name(path.name, (), mode)
    if skip:
        return [], [Skipped(shown, skip)]
    # A link that a person names is followed, here and once; one that takes a file's place later is not.
    target = Path(os.path.realpath(path)) if path.is_symlink() else path
    (file,) = tell_apart([File(target, shown, path.name)])
    return [Attempts((Source(make_showable(path.stem) + file.tag, target, file.shown),), file.shown)], []


def _read_told(files: Sequence[File], zone: tzinfo | None) -> Told:
    """What Gradescope's lists and nbgrader's timestamps say. One that cannot be read says nothing."""
    # What lies in a student's own folder is the student's, and tells nothing.
    telling = [
        file for file in files if file.name in _TELLING and not file.fault and not is_in_submission(file.folders)
    ]
    stamps = [file for file in telling if file.name == "timestamp.txt"]
    timestamps = {
        file.folders: data.decode("utf-8", "replace") for file, data in _read_several(stamps, _TIMESTAMP_BYTES)
    }
    lists = sorted((file for file in telling if file.name != "timestamp.txt"), key=lambda file: len(file.folders))
    submitters: dict[tuple[str, ...], Submitter] = {}
    for file, data in _read_several(lists[:_MOST_LISTS], MAX_FILE_BYTES):
        for folder, submitter in parse_gradescope_list(data.decode("utf-8", "replace")).items():
            submitters[(*file.folders, folder)] = submitter
    return Told(submitters, timestamps, zone)


def _read_several(files: Sequence[File], most: int) -> Iterator[tuple[File, bytes]]:
    """Files of one place with their first bytes; those that cannot be read are left out."""
    packed = {file.member: file for file in files if file.member}
    if packed:
        yield from ((packed[member], data) for member, data in read_members(files[0].path, packed, most))
    for file in files:
        if not file.member:
            with contextlib.suppress(OSError):
                yield file, read_beginning(file.path, most)


def _drop_doubles(found: Sequence[Attempts]) -> list[Attempts]:
    """A file may be named twice, as itself and by its folder; it is one submission."""
    seen: set[tuple[str, str]] = set()
    fresh = []
    for attempts in found:
        keys = [(os.path.abspath(source.path), source.member) for source in attempts.sources]
        if not seen.issuperset(keys):
            fresh.append(attempts)
        seen.update(keys)
    return fresh


def _tidy_name(name: str) -> str:
    """A name that comes back the same from a table that a person edits: single spaces, none around it."""
    return " ".join(name.split()) or "\ufffd"


def _name_all(attempts: Attempts, name: str) -> Attempts:
    sources = tuple(msgspec.structs.replace(source, student=name) for source in attempts.sources)
    return msgspec.structs.replace(attempts, sources=sources)


def _make_unique(found: Sequence[Attempts]) -> list[Attempts]:
    counts = Counter(attempts.sources[0].student for attempts in found)
    taken = {name for name, count in counts.items() if count == 1}
    unique = []
    for attempts in found:
        first = attempts.sources[0]
        if counts[first.student] > 1:
            name = _find_free_name(first, attempts.relative, taken)
            taken.add(name)
            unique.append(_name_all(attempts, name))
        else:
            unique.append(attempts)
    return unique


def _find_free_name(source: Source, relative: str, taken: set[str]) -> str:
    wanted = [
        _tidy_name(f"{source.student} ({each})")
        for each in (source.id, relative, source.shown)
        if each not in ("", source.student)
    ]
    free = next((label for label in wanted if label not in taken), wanted[-1])
    number = 2
    while free in taken:
        free, number = f"{wanted[-1]} #{number}", number + 1
    return free
