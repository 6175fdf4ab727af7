"""Files on disk: listing what lies below a folder, and reading one file."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from autograder.errors import NotebookError, UsageError
from autograder.intake.files import JUNK_FOLDERS, MAX_FILE_BYTES, TOO_LARGE, File, classify_name, make_showable

# Without O_NONBLOCK, opening a named pipe would wait for ever. What was no link when it was listed may be one now, to a
# file that only the grader may read.
_READING = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW


def list_folder(root: Path) -> Iterator[File]:
    """Every file below a folder, sorted by folder and name. Links are listed, never followed.

    `UsageError` when the folder itself cannot be listed.
    """
    waiting: list[tuple[Path, tuple[str, ...]]] = [(root, ())]
    while waiting:
        folder, folders = waiting.pop()
        try:
            with os.scandir(folder) as entries:
                ordered = sorted(entries, key=lambda entry: entry.name)
        except OSError as error:
            if not folders:
                raise UsageError(f"{make_showable(os.fspath(root))}: cannot be listed ({error.strerror})") from error
            junk = next((JUNK_FOLDERS[name] for name in folders if name in JUNK_FOLDERS), "")
            fault = f"The folder cannot be listed ({error.strerror}); check its permissions."
            shown = make_showable(os.fspath(folder))
            yield File(folder, shown, folder.name, folders, junk, bool(junk), fault, is_folder=True)
            continue
        below = []
        for entry in ordered:
            entry_path = folder / entry.name
            if entry.is_dir(follow_symlinks=False):
                below.append((entry_path, (*folders, entry.name)))
            else:
                skip, junk_file = classify_name(entry.name, folders, _read_mode(entry))
                yield File(entry_path, make_showable(os.fspath(entry_path)), entry.name, folders, skip, junk_file)
        waiting += reversed(below)


def _read_mode(entry: os.DirEntry[str]) -> int:
    try:
        return entry.stat(follow_symlinks=False).st_mode
    except OSError:
        # Gone or unreadable since it was listed; reading it will say so.
        return stat.S_IFREG


def read_beginning(path: Path, most: int) -> bytes:
    """The first bytes of a regular file; no bytes of anything else. `OSError` when it cannot be read."""
    with open(os.open(path, _READING), "rb") as file:
        return file.read(most) if stat.S_ISREG(os.fstat(file.fileno()).st_mode) else b""


def read_file(path: Path) -> bytes:
    """The bytes of a regular file. `NotebookError` when it is none or too large, `OSError` when it cannot be read."""
    with open(os.open(path, _READING), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise NotebookError("This is not a regular file; ask the student for the notebook file (.ipynb).")
        data = file.read(MAX_FILE_BYTES + 1)
    if len(data) > MAX_FILE_BYTES:
        raise NotebookError(TOO_LARGE)
    return data
