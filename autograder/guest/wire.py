"""The wire between host and guest: length-prefixed msgpack, exact types, no pickle.

A frame is a 4-byte big-endian length and a msgpack array whose first item is the message's tag. The
reader checks a declared length against its cap before it keeps a byte of the body. Arrays travel as a
dtype from an allow-list, a shape and raw little-endian bytes in C order; what the host gets from
`read_array` is a base-class array whatever the guest had.

What the guest says is a claim: the host checks it and decides.
"""

import math
import struct
from collections.abc import Iterator
from typing import Any, Literal

import msgspec
import numpy as np
from numpy import asarray, frombuffer  # bound before any student's code can patch NumPy

DTYPES = {
    name: np.dtype(name)
    for name in ("|b1", "|i1", "<i2", "<i4", "<i8", "|u1", "<u2", "<u4", "<u8", "<f2", "<f4", "<f8", "<c8", "<c16")
}
MAX_DIMENSIONS = 8
MAX_TEXT = 2_000
"""Longest text of an exception or of an answer, in characters; the guest cuts, the host refuses."""

_HEADER = struct.Struct(">I")
STATUS = struct.Struct("=idd")
"""Of the fork server, not of a guest: wait status of the init, user seconds, system seconds."""

PLACE = struct.Struct("=Q")
"""Where a graded pass is, in memory that host and guest share: 2**32 times its number, and 1 more than its cell."""

EndingName = Literal["ok", "error", "out-of-memory", "exited"]
"""The endings that a guest can tell; the others are seen by the host."""


ModeName = Literal["nested", "single", "user", "none"]
"""The ways of keeping a submission apart that a guest knows."""


class WireError(Exception):
    """Bytes that are no message of this protocol, or exceed a cap.

    People read its text, so that it holds nothing that the bytes hold: those may come from a hidden input set.
    """


class Message(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Base of everything that crosses the wire."""


class Settings(msgspec.Struct, frozen=True):
    """What a fork server is started with: its control socket, the system call filter, what to import and compile
    once, limits.

    cells: sources of the released notebook; most submissions carry them unchanged.
    lesson: the names that an input set gives.
    landlock: the kernel's version of it, 0 for none; mode `user` only.
    readable: what Landlock lets student code read.
    """

    mode: ModeName
    control: int
    filter: bytes
    """Empty in mode `none`."""
    preload: tuple[str, ...]
    cells: tuple[str, ...]
    lesson: tuple[str, ...]
    disk_bytes: int
    files: int
    memory_bytes: int
    processes: int
    cpu_seconds: int
    landlock: int = 0
    readable: tuple[str, ...] = ()


SETUP_FAILED = 125
"""Exit code of an init whose walls could not be built."""
SWEEP_FAILED = 124
"""Exit code of a keeper that could not end or remove all that a submission left."""
DISK_FULL = 2
"""Exit code of an init that ended a submission because of its files."""

DEVICES = ("/dev/null", "/dev/full", "/dev/random", "/dev/urandom")
"""All devices inside. Not /dev/zero: mapped shared, it gives memory that nobody counts."""


# ---- values ----------------------------------------------------------------------------------------


class Plain(Message, frozen=True, tag=1):
    """A Python scalar, a text or None."""

    value: bool | int | float | str | None


class Array(Message, frozen=True, tag=2):
    """An array: dtype from `DTYPES`, shape, raw bytes in C order."""

    dtype: str
    shape: tuple[int, ...]
    data: bytes


class Other(Message, frozen=True, tag=3):
    """Anything else, by its type's name."""

    type_name: str


class Absent(Message, frozen=True, tag=4):
    """Never assigned, or `...` left standing."""


WireValue = Plain | Array | Other | Absent


# ---- host to guest ---------------------------------------------------------------------------------


class PlannedCell(Message, frozen=True):
    """One cell and what happens around it in a graded pass.

    prelude: bind each lesson's name again right after a statement that assigns it, until an answer is assigned.
    bind_before: an exercise begins: seed, bind the lesson's names, then lay `keep` over them.
    collect: names of the answers to look at after the cell.
    ends: names of the answers whose exercise ends here: send them, then bind the lesson's names.
    keep: lesson's names that this cell, standing between two exercises, assigns on purpose.
    """

    number: int
    source: str
    prelude: bool = False
    bind_before: bool = False
    collect: tuple[str, ...] = ()
    ends: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()


class Job(Message, frozen=True, tag=10):
    """The program of one submission: cells in order, all answers to report, caps in bytes."""

    cells: tuple[PlannedCell, ...]
    answers: tuple[str, ...]
    output_bytes: int
    answer_bytes: int


class RunPass(Message, frozen=True, tag=11):
    """Run one pass. Without `graded` the notebook runs as submitted and its outputs are captured.

    values: the lesson's names; an array is an `Array`, all else is plain msgpack data.
    skip: numbers of cells that are not to be run.
    """

    number: int
    seed: int
    graded: bool
    values: dict[str, Any]
    skip: tuple[int, ...] = ()


# ---- guest to host ---------------------------------------------------------------------------------


class Began(Message, frozen=True, tag=20):
    """A cell is about to run."""

    pass_number: int
    cell: int


class Ended(Message, frozen=True, tag=21):
    """A cell came back: how, and for an exception its type's name and text."""

    pass_number: int
    cell: int
    ending: EndingName
    error: str = ""
    text: str = ""


class Ran(Message, frozen=True, tag=26):
    """Cells of a graded pass, one or more, that the course handed out and that came back well, in their order.

    That each of them was about to run was said in shared memory only (`PLACE`).
    """

    pass_number: int
    cells: tuple[int, ...]


class Answered(Message, frozen=True, tag=22):
    """The value of one answer, named by its place in `Job.answers`."""

    pass_number: int
    answer: int
    value: WireValue


class Shown(Message, frozen=True, tag=23):
    """One captured output of a cell."""

    cell: int
    mime: str
    data: bytes


class Finished(Message, frozen=True, tag=24):
    """All cells of a pass have run and all its answers are sent."""

    pass_number: int


class Fault(Message, frozen=True, tag=25):
    """The walls could not be built; no student code has run."""

    stage: str
    text: str


Reply = Began | Ended | Ran | Answered | Shown | Finished | Fault
Request = Job | RunPass

_encoder = msgspec.msgpack.Encoder()
_reply_decoder = msgspec.msgpack.Decoder(Reply)
_request_decoder = msgspec.msgpack.Decoder(Request)


def build_frame(message: Message) -> bytes:
    """One message as bytes: header and body."""
    body = _encoder.encode(message)
    return _HEADER.pack(len(body)) + body


def parse_reply(body: bytes) -> Reply:
    """One body from the guest. `WireError` when it is not a reply of this protocol."""
    try:
        return _reply_decoder.decode(body)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise WireError("not a reply of this protocol") from error


def parse_request(body: bytes) -> Request:
    """One body from the host."""
    message = _request_decoder.decode(body)
    if isinstance(message, RunPass):
        values = {name: _revive(value) for name, value in message.values.items()}
        return msgspec.structs.replace(message, values=values)
    return message


def _revive(value: Any) -> Any:
    if isinstance(value, list) and len(value) == 4 and value[0] == Array.__struct_config__.tag:
        return Array(value[1], tuple(value[2]), value[3])
    return value


class FrameReader:
    """Cuts a stream of bytes into frame bodies; `cap` is the longest body that is accepted, in bytes."""

    def __init__(self, cap: int) -> None:
        self._cap = cap
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Take bytes and give the bodies that are complete. `WireError` on a declared length over the cap."""
        buffer = self._buffer
        buffer += data
        start = 0
        try:
            while len(buffer) - start >= _HEADER.size:
                (length,) = _HEADER.unpack_from(buffer, start)
                if length > self._cap:
                    raise WireError(f"a frame over the cap of {self._cap} bytes")
                end = start + _HEADER.size + length
                if len(buffer) < end:
                    break
                body = bytes(buffer[start + _HEADER.size : end])
                start = end
                yield body
        finally:
            del buffer[:start]

    @property
    def pending(self) -> int:
        """Bytes of a frame that has begun and not ended."""
        return len(self._buffer)


def build_array(array: np.ndarray) -> Array:
    """A base-class array of an allowed dtype as a wire value. `WireError` for any other dtype."""
    dtype = array.dtype.newbyteorder("<").str
    if dtype not in DTYPES or array.ndim > MAX_DIMENSIONS:
        raise WireError(f"an array of dtype {dtype} with {array.ndim} dimensions")
    return Array(dtype, array.shape, asarray(array, dtype=DTYPES[dtype], order="C").tobytes())


def read_array(message: Array) -> np.ndarray:
    """The base-class array that a wire value describes, as a fresh writable copy. `WireError` when it lies."""
    dtype = DTYPES.get(message.dtype)
    if dtype is None:
        raise WireError("an array of a dtype that is not allowed")
    if len(message.shape) > MAX_DIMENSIONS or any(side < 0 for side in message.shape):
        raise WireError("an array of an impossible shape")
    if math.prod(message.shape) * dtype.itemsize != len(message.data):
        raise WireError("an array whose bytes do not fill its shape")
    try:
        return frombuffer(message.data, dtype=dtype).reshape(message.shape).copy()
    except (ValueError, OverflowError) as error:  # an empty array may still declare a side beyond any index
        raise WireError("an array of an impossible shape") from error
