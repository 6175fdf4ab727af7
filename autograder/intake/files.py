"""What every layout is made of: a file that was found, and a source that will be graded."""

import hashlib
import re
import stat
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path

import msgspec

MAX_FILE_BYTES = 64 * 2**20
"""A larger file is no homework; it is reported and not read."""

MAX_DEPTH = 32
"""Folders above a file in which an LMS's names and trees are looked for; students can nest thousands."""

TOO_LARGE = (
    f"The file is larger than {MAX_FILE_BYTES // 2**20} MiB; ask the student to clear the outputs and save it again."
)

JUNK_FOLDERS = {
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
    "submission_metadata.yml": "Gradescope's own list of the submissions",
}
_ARCHIVES = (".zip", ".tar", ".tgz", ".gz", ".7z", ".rar")
# Characters that would break a terminal line, a CSV file or the reading direction of what follows, or that cannot be
# seen, so that two names look like one.
_UNSHOWABLE = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0"
    "\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
    # Joiners are spelling in some scripts and emoji, and a disguise beside Latin letters.
    "|(?<![^\x00-\x7f])[\u200c\u200d]|[\u200c\u200d](?![^\x00-\x7f])"
)
_STACKED = re.compile("([\u0300-\u036f]{3})[\u0300-\u036f]+")


class Source(msgspec.Struct, frozen=True):
    """A file that will be read as one student's submission. Small, and enough to read it in another process."""

    student: str
    path: Path
    shown: str
    """The path as the instructor knows it, safe to print."""
    fault: str = ""
    """Why it can be seen already that this submission cannot be read; empty when it may be read."""
    member: str = ""
    """The name within the zip archive at `path`; empty for a file of its own."""
    id: str = ""
    """What the LMS knows the student by; empty outside of LMS downloads."""
    attempt: int = 0
    """The attempt's place among those found for the student, from 1; 0 outside of LMS downloads."""
    late: bool | None = None
    """Whether it was handed in late, as the LMS says; None where the LMS says nothing."""
    received: datetime | None = None
    """When it was handed in, in UTC; None where neither the LMS nor nbgrader says so."""
    notes: tuple[str, ...] = ()
    """What the instructor should know; goes to the notes of the grade."""
    lms: str = ""
    """Which LMS the id is of."""


class File(msgspec.Struct, frozen=True):
    """A file below a named folder or in a named archive, or a folder that cannot be listed (`fault`)."""

    path: Path
    shown: str
    name: str
    folders: tuple[str, ...] = ()
    """The folders between what was named and the file."""
    skip: str = ""
    """Why it is no notebook; empty when it may be one."""
    junk: bool = False
    """Nobody's work: what a system or an LMS left beside it."""
    fault: str = ""
    member: str = ""
    is_folder: bool = False
    """A folder that cannot be listed; `folders` ends with its own name."""
    tag: str = ""
    """Tells it from another one whose name is shown alike; empty where nothing has to. `shown` ends with it."""

    @property
    def raw(self) -> str:
        """The path below what was named, as it is."""
        return "/".join(self.folders if self.is_folder else (*self.folders, self.name))

    @property
    def relative(self) -> str:
        """The path below what was named, safe to print."""
        return make_showable(self.raw) + self.tag


def classify_name(name: str, folders: tuple[str, ...], mode: int) -> tuple[str, bool]:
    """Why a file is not a notebook (empty when it may be one), and whether it is junk."""
    for folder in folders:
        if folder in JUNK_FOLDERS:
            return JUNK_FOLDERS[folder], True
    if stat.S_ISLNK(mode):
        return "a symbolic link; links are not followed", False
    if not stat.S_ISREG(mode):
        return "not a regular file", False
    if name.startswith("._"):
        return JUNK_FOLDERS["__MACOSX"], True
    if name.lower() in _JUNK_FILES:
        return _JUNK_FILES[name.lower()], True
    if name.lower().endswith(_ARCHIVES):
        return "an archive, not a notebook; unpack it first", False
    if not name.lower().endswith(".ipynb"):
        return "not a notebook (its name does not end in .ipynb)", False
    return "", False


def make_showable(text: str) -> str:
    """A name that can be printed and stored: no control or invisible characters, no bytes that are not UTF-8."""
    return _STACKED.sub(r"\1", _UNSHOWABLE.sub("\ufffd", unicodedata.normalize("NFC", text)))


def tell_apart(files: Sequence[File]) -> list[File]:
    """The files of one place, with a tag for each whose name is written otherwise than it is shown."""
    tags = build_tags(file.raw for file in files)
    return [
        msgspec.structs.replace(file, shown=file.shown + tag, tag=tag) if (tag := tags.get(file.raw)) else file
        for file in files
    ]


def build_tags(names: Iterable[str]) -> dict[str, str]:
    """What is to be shown behind those names of one place that are written otherwise than they are shown.

    Students go by what is shown, and a Kelvin sign is shown as a K. Letters and their accents may be written together
    or apart, as systems and keyboards do it in their own way. Where one name is there in several of these, each gets a
    tag, so that none takes what belongs to it.
    """
    raws = set(names)
    disguised = {raw for raw in raws if _is_disguised(raw)}
    counts = Counter(make_showable(raw) for raw in raws - disguised)
    return {raw: _build_tag(raw) for raw in raws if raw in disguised or counts[make_showable(raw)] > 1}


def _is_disguised(raw: str) -> bool:
    """Whether characters of it are shown as others, or not at all."""
    composed = unicodedata.normalize("NFC", raw)
    # To decompose into one other, and that without a kind in angle brackets, is to be another's twin.
    twins = (unicodedata.decomposition(letter) for letter in raw)
    return make_showable(raw) != composed or any(twin and " " not in twin for twin in twins)


def _build_tag(raw: str) -> str:
    return f" [{hashlib.sha256(raw.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}]"


def make_lines_showable(text: str) -> str:
    """A text of several lines that can be printed."""
    return "\n".join(map(make_showable, text.split("\n")))
