"""Zip archives: listing and reading their members without unpacking anything to disk.

An archive is hostile until shown otherwise. Sizes are checked as declared before a member is opened, and as they
are while it is read. One member's fault is its own; only an archive whose directory lies as a whole is refused.
"""

import contextlib
import io
import os
import stat
import struct
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO

from autograder.errors import NotebookError
from autograder.intake.files import MAX_FILE_BYTES, TOO_LARGE, File, classify_name, make_showable

MAX_DIRECTORY_BYTES = 16 * 2**20
"""Of the list of members, some 150 000; it is held in memory as a whole."""
MAX_TOTAL_BYTES = 8 * 2**30
"""Of all notebooks of one archive together, unpacked. The smallest ones are read first."""
MAX_RATIO = 200
"""Unpacked over packed size. Text with long runs of zeros stays below; a bomb is made to reach 1000."""
RATIO_MATTERS_BYTES = 8 * 2**20
"""A smaller member is harmless at any ratio."""

_CHUNK_BYTES = 2**20
_MAX_NAME_CHARS = 4096
"""Linux's own limit on a path."""
# Python unpacks the other methods without a limit on what comes out.
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_LAST_RECORD = struct.Struct("<4s4H2LH")
_COUNTED_ELSEWHERE = 0xFFFF
"""In the larger record that an archive of very many members has before it."""
_UTF8_NAME = 0x800
_WINDOWS = 0
"""What a zip archive calls the system that it was made on."""
_ENCRYPTED = 0x1 | 0x40 | 0x2000
_BROKEN = (
    *(zipfile.BadZipFile, zlib.error, struct.error, NotImplementedError, RuntimeError),
    *(ValueError, OverflowError, EOFError, IndexError),
)


class _BoundedFile(io.BufferedReader):
    """A file that gives no more at once than a list of members may hold."""

    def read(self, size: int | None = -1) -> bytes:
        bounded = size is not None and size >= 0
        data = super().read(min(size or 0, MAX_DIRECTORY_BYTES + 1) if bounded else MAX_DIRECTORY_BYTES + 1)
        if len(data) > MAX_DIRECTORY_BYTES:
            raise NotebookError(
                f"The archive's list of members is larger than {MAX_DIRECTORY_BYTES // 2**20} MiB; "
                "unpack it and name the folder."
            )
        return data


def list_archive(path: Path) -> list[File]:
    """Every member that is not a folder, sorted by name. `NotebookError` when this is no archive that can be read.

    `OSError` when the file cannot be opened.
    """
    with _BoundedFile(io.FileIO(path)) as file:
        try:
            with zipfile.ZipFile(file) as archive:
                _check_count(archive, file)
                members = [info for info in archive.infolist() if not info.is_dir() or info.file_size]
        except _BROKEN as error:
            raise NotebookError(
                f"This is no zip archive that can be read ({make_showable(str(error))}); download it again."
            ) from error
        if sum(info.compress_size for info in members) > os.fstat(file.fileno()).st_size:
            raise NotebookError("The archive claims to hold more than it does, as a zip bomb does; it was not read.")
    left = Counter(info.filename for info in members)
    # Some tools of Windows write \ for /, throughout. Elsewhere it is a letter that a student put into a name.
    windows = all(info.create_system == _WINDOWS and "\\" in info.filename for info in members)
    files = []
    for info in members:
        left[info.filename] -= 1
        files.append(_describe_member(path, info, doubled=left[info.filename] > 0, windows=windows))
    sizes = {info.filename: info.file_size for info in members}
    return sorted(_ration(files, sizes), key=lambda file: (file.folders, file.name))


def _check_count(archive: zipfile.ZipFile, file: io.BufferedReader) -> None:
    """`NotebookError` when the list breaks off before all members that the archive's last record counts."""
    file.seek(-_LAST_RECORD.size - len(archive.comment), os.SEEK_END)
    signature, _, _, _, counted, *_ = _LAST_RECORD.unpack(file.read(_LAST_RECORD.size))
    # Something may be appended to the archive, and then this is not the record.
    if signature == b"PK\5\6" and counted not in (_COUNTED_ELSEWHERE, len(archive.infolist()) % 2**16):
        raise NotebookError("The archive's list of members is damaged; download it again.")


def read_member(path: Path, member: str) -> bytes:
    """The bytes of one member. `NotebookError` when it cannot be read, `OSError` when the archive cannot."""
    with _BoundedFile(io.FileIO(path)) as file:
        try:
            with zipfile.ZipFile(file) as archive:
                info = archive.getinfo(member)
                if fault := _find_fault(info):
                    raise NotebookError(fault)
                with archive.open(info) as stream:
                    return _read_stream(stream)
        except KeyError as error:
            raise NotebookError("The archive has changed since it was listed; grade it again.") from error
        except _BROKEN as error:
            raise NotebookError(
                f"The file is damaged in the archive ({make_showable(str(error))}); download it again, "
                "or ask the student for the notebook file (.ipynb)."
            ) from error


def read_members(path: Path, members: Iterable[str], most: int) -> Iterator[tuple[str, bytes]]:
    """Names and the first bytes of several members, opening the archive once; what cannot be read is left out."""
    broken = contextlib.suppress(KeyError, OSError, NotebookError, *_BROKEN)
    with broken, _BoundedFile(io.FileIO(path)) as file, zipfile.ZipFile(file) as archive:
        for member in members:
            data = None
            with broken:
                info = archive.getinfo(member)
                if not _find_fault(info):
                    with archive.open(info) as stream:
                        data = stream.read(most)
            if data is not None:
                yield member, data


def _read_stream(stream: IO[bytes]) -> bytes:
    data = bytearray()
    while chunk := stream.read(_CHUNK_BYTES):
        data += chunk
        if len(data) > MAX_FILE_BYTES:
            raise NotebookError(TOO_LARGE)
    return bytes(data)


def _describe_member(path: Path, info: zipfile.ZipInfo, *, doubled: bool, windows: bool) -> File:
    """A member as a file; `doubled` when another of the same name follows, `windows` when `\\` divides its path."""
    raw = _repair_name(info)
    if len(raw) > _MAX_NAME_CHARS:
        shown = make_showable(f"{os.fspath(path)}/{raw[:100]}...")
        return File(path, shown, raw[:100], (), "its name is too long", member=info.filename)
    parts = [part for part in (raw.replace("\\", "/") if windows else raw).split("/") if part not in ("", ".")]
    name, folders = (parts[-1] if parts else ""), tuple(parts[:-1])
    shown = make_showable(f"{os.fspath(path)}/{raw}")
    # The upper half holds a Unix mode where the archive was made on such a system; else nothing.
    mode = info.external_attr >> 16
    skip, junk = classify_name(name, folders, mode if stat.S_IFMT(mode) else stat.S_IFREG)
    if ".." in raw.replace("\\", "/").split("/") or raw.startswith(("/", "\\")) or raw[1:2] == ":":
        skip = "its path leads out of the archive"
    elif info.is_dir():
        skip = "a folder that claims to hold data"
    elif doubled:
        skip = "a later member of the archive has the same name and replaces it"
    return File(path, shown, name, folders, skip, junk, "" if skip else _find_fault(info), info.filename)


def _repair_name(info: zipfile.ZipInfo) -> str:
    """The member's name. Many tools write UTF-8 without saying so, which reads as another character set."""
    if info.flag_bits & _UTF8_NAME:
        return info.filename
    try:
        return info.filename.encode("cp437").decode("utf-8")
    except UnicodeError:
        return info.filename


def _find_fault(info: zipfile.ZipInfo) -> str:
    """Why a member must not be opened, by what the archive declares; empty when it may be."""
    if info.flag_bits & _ENCRYPTED:
        return "The file is encrypted in the archive; ask the student for it without a password."
    if info.compress_type not in _METHODS:
        return "The file is packed by a method that is not read here; unpack the archive and name the folder."
    if info.file_size > MAX_FILE_BYTES:
        return TOO_LARGE
    if info.file_size > RATIO_MATTERS_BYTES and info.file_size > MAX_RATIO * max(info.compress_size, 1):
        return (
            f"The file unpacks to more than {MAX_RATIO} times its packed size, as a zip bomb does; it was not read. "
            "Ask the student to clear the outputs and save it again."
        )
    return ""


def _ration(files: list[File], sizes: dict[str, int]) -> list[File]:
    """Take the notebooks from the smallest on until they fill the total, so that a few large ones cost nobody else."""
    total = 0
    rationed = []
    for file in sorted(files, key=lambda file: sizes[file.member]):
        if not file.skip and not file.fault:
            total += sizes[file.member]
            if total > MAX_TOTAL_BYTES:
                fault = f"The notebooks of this archive unpack to more than {MAX_TOTAL_BYTES / 2**30:g} GiB together"
                fault = f"{fault}, and this is one of the largest; unpack the archive and name the folder."
                rationed.append(_set_fault(file, fault))
                continue
        rationed.append(file)
    return rationed


def _set_fault(file: File, fault: str) -> File:
    return File(file.path, file.shown, file.name, file.folders, file.skip, file.junk, fault, file.member)
