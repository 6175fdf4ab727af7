"""An execution as bytes, to be kept, and a submission's bytes made small. No pickle."""

import zlib
from collections.abc import Callable
from typing import Any

import msgspec

from autograder.errors import StoreError
from autograder.guest.wire import WireError, WireValue
from autograder.records import CellRun, Execution, Output, Pass, Program
from autograder.sandbox.values import build_wire_value, read_value
from autograder.store.texts import escape_text, restore_text

_PLAIN = b"\x01"
_ESCAPED = b"\x02"
"""As plain, with texts that UTF-8 has no bytes for."""
_LEVEL = 3
"""Of zlib: on notebooks two thirds of the time of the default, for 7 % more bytes."""


class _Pass(msgspec.Struct, frozen=True):
    seed: int
    runs: tuple[CellRun, ...]
    answers: dict[str, WireValue]


class _Execution(msgspec.Struct, frozen=True):
    passes: tuple[_Pass, ...]
    outputs: tuple[Output, ...]
    evidence: tuple[CellRun, ...]
    notes: tuple[str, ...]
    cpu_seconds: float
    program: Program | None = None
    after_hidden: bool = False


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(_Execution)


def pack_execution(execution: Execution, program: Program | None = None) -> bytes:
    """An execution, and the program that was run, as compressed bytes; `unpack_execution` gives equal ones."""
    packed = _Execution(
        tuple(
            _Pass(each.seed, each.runs, {name: build_wire_value(value) for name, value in each.answers.items()})
            for each in execution.passes
        ),
        execution.outputs,
        execution.evidence,
        execution.notes,
        execution.cpu_seconds,
        program,
        execution.after_hidden,
    )
    try:
        return _PLAIN + zlib.compress(_encoder.encode(packed), _LEVEL)
    except UnicodeEncodeError:
        plain = msgspec.to_builtins(packed, builtin_types=(bytes,))
        return _ESCAPED + zlib.compress(_encoder.encode(_change_texts(plain, escape_text)), _LEVEL)


def unpack_execution(data: bytes) -> tuple[Execution, Program | None]:
    """The execution and the program that were packed. `StoreError` when the bytes are no packed execution."""
    try:
        body = zlib.decompress(data[1:])
        if data[:1] == _PLAIN:
            packed = _decoder.decode(body)
        elif data[:1] == _ESCAPED:
            plain = _change_texts(msgspec.msgpack.decode(body), restore_text)
            packed = msgspec.convert(plain, _Execution, builtin_types=(bytes,))
        else:
            raise StoreError("a stored execution has a form that a newer autograder made; install that version")
        passes = tuple(
            Pass(each.seed, each.runs, {name: read_value(value) for name, value in each.answers.items()})
            for each in packed.passes
        )
    except (zlib.error, msgspec.MsgspecError, WireError, UnicodeError, RecursionError) as error:
        raise StoreError(f"a stored execution is damaged ({error}); grade with --force to run it again") from error
    execution = Execution(
        passes, packed.outputs, packed.evidence, packed.notes, packed.cpu_seconds, packed.after_hidden
    )
    return execution, packed.program


def pack_bytes(data: bytes) -> bytes:
    """Bytes made small; the inverse is `unpack_bytes`."""
    return zlib.compress(data, _LEVEL)


def unpack_bytes(data: bytes) -> bytes:
    """The bytes that were packed. `StoreError` when they are damaged."""
    try:
        return zlib.decompress(data)
    except zlib.error as error:
        raise StoreError(f"a stored submission is damaged ({error}); grade its file again with --force") from error


def _change_texts(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list | tuple):
        return [_change_texts(each, change) for each in value]
    if isinstance(value, dict):
        return {_change_texts(key, change): _change_texts(each, change) for key, each in value.items()}
    return value
