"""Where submissions lie: single notebooks, folders of notebooks, nbgrader trees.

Finding only lists files; each is read later, where it is graded. Nothing is lost silently: every file found
is either a source or skipped with a reason.

Who the student is:

* a notebook named on the command line, or in a flat folder: the file's stem;
* `<student>/<assignment>/<notebook>.ipynb` anywhere below a named folder (an nbgrader tree): the folder's name.
  `<assignment>.ipynb` counts, or a lone notebook under whatever name;
* another notebook in a folder below: its stem, but `<assignment>.ipynb` takes the name of the folder it lies in.

Where this gives one name to several files, each gets its path added, so that none replaces another.
"""

import hashlib
import os
import re
import stat
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from autograder.errors import NotebookError, UsageError
from autograder.records import Skipped, Submission

MAX_FILE_BYTES = 64 * 2**20
"""A larger file is no homework; it is reported and not read."""

_JUNK_FOLDERS = {
    ".ipynb_checkpoints": "a copy that Jupyter keeps while editing",
    ".virtual_documents": "a copy that JupyterLab keeps while editing",
    "__MACOSX": "macOS's own data about a file",
    ".git": "git's own data",
}
_JUNK_FILES = {
    ".ds_store": "macOS's own data about a folder",
    "desktop.ini": "Windows's own data about a folder",
    "thumbs.db": "Windows's own data about a folder",
    "timestamp.txt": "the time of the submission, not a notebook",
}
_ARCHIVES = (".zip", ".tar", ".tgz", ".gz", ".7z", ".rar")
# Characters that would break a terminal line, a CSV file or the reading direction of what follows.
_UNSHOWABLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


class Source(msgspec.Struct, frozen=True):
    """A file that will be read as one student's submission."""

    student: str
    path: Path
    shown: str
    """The path as the instructor knows it, safe to print."""
    fault: str = ""
    """Why it can be seen already that this submission cannot be read; empty when it may be read."""


class _File(msgspec.Struct, frozen=True):
    """A file below a named folder, or a folder that cannot be listed (`fault`)."""

    path: Path
    shown: str
    folders: tuple[str, ...]
    """The folders between the named folder and the file."""
    skip: str = ""
    fault: str = ""


def find_submissions(paths: Sequence[Path], assignment: str) -> tuple[list[Source], list[Skipped]]:
    """List the submissions for `assignment` at some paths, in the order of the paths and sorted below each.

    `UsageError` when a path does not exist or cannot be looked into.
    """
    found: list[tuple[Source, str]] = []
    skipped: list[Skipped] = []
    for path in paths:
        sources, others = _find_at(path, assignment)
        found += sources
        skipped += others
    seen: set[str] = set()
    fresh = []
    for source, relative in found:
        # A file may be named twice, as itself and by its folder; it is one submission.
        key = os.path.abspath(source.path)
        if key not in seen:
            seen.add(key)
            fresh.append((source, relative))
    return _make_unique(fresh), skipped


def read_submission(source: Source) -> Submission:
    """Read one source. `NotebookError` says why it cannot be read; that submission is ungraded."""
    if source.fault:
        raise NotebookError(source.fault)
    try:
        data = _read_bytes(source.path)
    except OSError as error:
        raise NotebookError(f"The file cannot be read ({error.strerror}); check its permissions.") from error
    return Submission(student=source.student, path=source.shown, data=data, sha256=hashlib.sha256(data).hexdigest())


def _read_bytes(path: Path) -> bytes:
    # Without O_NONBLOCK, opening a named pipe would wait for ever.
    with open(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise NotebookError("This is not a regular file; ask the student for the notebook file (.ipynb).")
        data = file.read(MAX_FILE_BYTES + 1)
    if len(data) > MAX_FILE_BYTES:
        raise NotebookError(
            f"The file is larger than {MAX_FILE_BYTES // 2**20} MiB; "
            "ask the student to clear the outputs and save it again."
        )
    return data


def _find_at(path: Path, assignment: str) -> tuple[list[tuple[Source, str]], list[Skipped]]:
    """The sources at one path, each with its path relative to the named folder, and what was skipped."""
    shown = _make_showable(os.fspath(path))
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UsageError(f"{shown}: cannot be opened ({reason}); name a notebook or a folder of notebooks") from error
    if not stat.S_ISDIR(mode):
        file = _File(path, shown, (), _reason_to_skip(path.name, mode))
        if file.skip:
            return [], [Skipped(shown, file.skip)]
        return [(Source(_make_showable(path.stem), path, shown), shown)], []
    return _sort_out(path, list(_list_files(path)), assignment)


def _list_files(root: Path) -> Iterator[_File]:
    """Every file below a folder, sorted by folder and name. Links are listed, never followed."""
    waiting: list[tuple[Path, tuple[str, ...]]] = [(root, ())]
    while waiting:
        folder, folders = waiting.pop()
        junk = next((_JUNK_FOLDERS[name] for name in folders if name in _JUNK_FOLDERS), "")
        try:
            with os.scandir(folder) as entries:
                ordered = sorted(entries, key=lambda entry: entry.name)
        except OSError as error:
            if not folders:
                raise UsageError(f"{_make_showable(os.fspath(root))}: cannot be listed ({error.strerror})") from error
            fault = f"The folder cannot be listed ({error.strerror}); check its permissions."
            yield _File(folder, _make_showable(os.fspath(folder)), folders, junk, fault)
            continue
        below = []
        for entry in ordered:
            entry_path = folder / entry.name
            if entry.is_dir(follow_symlinks=False):
                below.append((entry_path, (*folders, entry.name)))
            else:
                skip = junk or _reason_to_skip(entry.name, _read_mode(entry))
                yield _File(entry_path, _make_showable(os.fspath(entry_path)), folders, skip)
        waiting += reversed(below)


def _read_mode(entry: os.DirEntry[str]) -> int:
    try:
        return entry.stat(follow_symlinks=False).st_mode
    except OSError:
        # Gone or unreadable since it was listed; reading it will say so.
        return stat.S_IFREG


def _reason_to_skip(name: str, mode: int) -> str:
    """Why a file with this name and mode is not a notebook; empty when it may be one."""
    if stat.S_ISLNK(mode):
        return "a symbolic link; links are not followed"
    if not stat.S_ISREG(mode):
        return "not a regular file"
    if name.startswith("._"):
        return _JUNK_FOLDERS["__MACOSX"]
    if name.lower() in _JUNK_FILES:
        return _JUNK_FILES[name.lower()]
    if name.lower().endswith(_ARCHIVES):
        return "an archive, not a notebook; unpack it first"
    if not name.lower().endswith(".ipynb"):
        return "not a notebook (its name does not end in .ipynb)"
    return ""


def _sort_out(root: Path, files: list[_File], assignment: str) -> tuple[list[tuple[Source, str]], list[Skipped]]:
    """Decide for the files of one folder which of them are submissions, and whose."""
    skipped = [Skipped(file.shown, file.skip) for file in files if file.skip]
    bases = {base for file in files if (base := _find_tree(file, assignment)) is not None}
    sources: list[tuple[Source, str]] = []
    groups: dict[tuple[str, ...], list[_File]] = {}
    for file in files:
        if file.skip:
            continue
        home = _find_home(file.folders, bases)
        if home is None:
            student = _name_student(root, file, assignment)
            sources.append((Source(student, file.path, file.shown, file.fault), _show_relative(root, file.path)))
        elif home[-1] == assignment:
            groups.setdefault(home, []).append(file)
        else:
            skipped.append(Skipped(file.shown, f"belongs to the assignment {_make_showable(home[-1])}"))
    for home, group in groups.items():
        source, others = _choose_notebook(root, home, group, assignment)
        sources.append((source, _show_relative(root, source.path)))
        skipped += others
    return sorted(sources, key=lambda pair: pair[0].path.parts), sorted(skipped, key=lambda item: item.path)


def _find_tree(file: _File, assignment: str) -> tuple[str, ...] | None:
    """The folders above `<student>/<assignment>/` when this file shows that an nbgrader tree lies there."""
    for at in range(len(file.folders) - 1, 0, -1):
        # A folder packed into itself gives <student>/<assignment>/<assignment>/; the outer one is meant.
        if file.folders[at] == assignment and (at == 1 or file.folders[at - 1] != assignment):
            return file.folders[: at - 1]
    # nbgrader writes this file into <student>/<assignment>/ and nowhere else.
    if file.path.name == "timestamp.txt" and len(file.folders) >= 2:
        return file.folders[:-2]
    return None


def _find_home(folders: tuple[str, ...], bases: set[tuple[str, ...]]) -> tuple[str, ...] | None:
    """The `.../<student>/<assignment>` folders that a file of a tree lies in; None outside of every tree."""
    depth = next((depth for depth in range(len(folders) - 2, -1, -1) if folders[:depth] in bases), None)
    return None if depth is None else folders[: depth + 2]


def _choose_notebook(
    root: Path, home: tuple[str, ...], group: list[_File], assignment: str
) -> tuple[Source, list[Skipped]]:
    """The one notebook that counts in `<student>/<assignment>/`; the others are skipped."""
    student = _make_showable(home[-2])
    # What a student put into a folder of its own counts only where nothing else is there.
    near = [file for file in group if file.folders == home] or group
    named = [file for file in near if file.path.name == f"{assignment}.ipynb"]
    chosen = named[0] if len(named) == 1 else near[0] if len(near) == 1 else None
    if chosen is None:
        folder = root.joinpath(*home)
        shown = _make_showable(os.fspath(folder))
        fault = f"There are {len(near)} notebooks and none is named {assignment}.ipynb; rename the one that counts."
        reason = f"one of several notebooks, and none is named {assignment}.ipynb"
        return Source(student, folder, shown, fault), [Skipped(file.shown, reason) for file in group]
    reason = f"beside {_make_showable(chosen.path.name)}, which counts for this student"
    others = [Skipped(file.shown, reason) for file in group if file is not chosen]
    return Source(student, chosen.path, chosen.shown, chosen.fault), others


def _name_student(root: Path, file: _File, assignment: str) -> str:
    """The student's name outside of an nbgrader tree."""
    if file.fault:
        return _make_showable(file.path.name)
    if file.path.stem == assignment and file.folders:
        above = [os.path.basename(os.path.abspath(root)), *file.folders]
        return _make_showable(next((name for name in reversed(above) if name not in ("", assignment)), assignment))
    return _make_showable(file.path.stem)


def _make_unique(found: list[tuple[Source, str]]) -> list[Source]:
    counts = Counter(source.student for source, _ in found)
    taken = {name for name, count in counts.items() if count == 1}
    unique = []
    for source, relative in found:
        student = source.student
        if counts[student] > 1:
            student = _find_free_name(source, relative, taken)
            taken.add(student)
        unique.append(msgspec.structs.replace(source, student=student))
    return unique


def _find_free_name(source: Source, relative: str, taken: set[str]) -> str:
    label = f"{source.student} ({relative})"
    if label in taken:
        label = f"{source.student} ({source.shown})"
    number = 2
    free = label
    while free in taken:
        free, number = f"{label} #{number}", number + 1
    return free


def _show_relative(root: Path, path: Path) -> str:
    return _make_showable(os.fspath(path.relative_to(root)))


def _make_showable(text: str) -> str:
    """A name that can be printed and stored: no control characters, no bytes that are not UTF-8."""
    return _UNSHOWABLE.sub("\ufffd", unicodedata.normalize("NFC", text))
