"""An execution comes back from its bytes as it went; damaged bytes are one sentence."""

import math
import struct
import subprocess
import sys
import zlib
from contextlib import suppress
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from autograder.errors import StoreError
from autograder.guest import wire
from autograder.records import Cell, CellRun, Ending, Execution, Missing, Opaque, Output, Pass, Program, Value
from autograder.store.packing import pack_bytes, pack_execution, unpack_bytes, unpack_execution

INT64 = st.integers(-(2**63), 2**64 - 1)
TEXT = st.text(max_size=20)  # lone surrogates too
NOTES = st.lists(TEXT, max_size=3).map(tuple)
SHAPES = arrays.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=3)
ARRAYS = st.sampled_from(list(wire.DTYPES.values())).flatmap(lambda dtype: arrays.arrays(dtype, SHAPES))
VALUES = st.one_of(
    st.none() | st.booleans() | INT64 | st.floats() | TEXT, ARRAYS, st.builds(Missing), st.builds(Opaque, TEXT)
)
RUNS = st.lists(st.builds(CellRun, INT64, st.sampled_from(Ending), TEXT, TEXT), max_size=3).map(tuple)
PASSES = st.builds(Pass, INT64, RUNS, st.dictionaries(TEXT, VALUES, max_size=4))
OUTPUTS = st.builds(Output, INT64, TEXT, st.binary(max_size=50))
EXECUTIONS = st.builds(
    Execution,
    st.lists(PASSES, max_size=3).map(tuple),
    st.lists(OUTPUTS, max_size=3).map(tuple),
    RUNS,
    NOTES,
    st.floats(0, 1e6),
)

CELLS = st.builds(Cell, INT64, TEXT, NOTES, NOTES, st.booleans())
PROGRAMS = st.none() | st.builds(Program, st.lists(CELLS, max_size=3).map(tuple), NOTES)


def describe(value: Value) -> tuple[Any, ...]:
    """A value with its kind and bits, so that NaN equals itself and True is not 1."""
    if isinstance(value, np.ndarray):
        return np.ndarray, value.dtype, value.shape, value.tobytes()
    return type(value), struct.pack("d", value) if isinstance(value, float) else value


def assert_same(found: Execution, wanted: Execution) -> None:
    assert msgspec.structs.replace(found, passes=()) == msgspec.structs.replace(wanted, passes=())
    assert [(each.seed, each.runs) for each in found.passes] == [(each.seed, each.runs) for each in wanted.passes]
    for one, other in zip(found.passes, wanted.passes, strict=True):
        assert {name: describe(value) for name, value in one.answers.items()} == {
            name: describe(value) for name, value in other.answers.items()
        }


@given(EXECUTIONS, PROGRAMS)
def test_execution_and_program_come_back_as_they_went(execution: Execution, program: Program | None) -> None:
    found, run = unpack_execution(pack_execution(execution, program))
    assert_same(found, execution)
    assert run == program


@pytest.mark.parametrize(
    "value",
    [
        *(None, True, 1, 1.0, -0.0, math.nan, math.inf, "", "\0", "\ud800", "\x10d800", Missing(), Opaque("\udcff")),
        *(np.array(0.5), np.zeros((0, 3)), np.array(True), np.array([1 + 2j]), np.array([np.nan, -0.0], "f4")),
    ],
)
def test_every_kind_of_answer_comes_back_as_it_went(value: Value) -> None:
    execution = Execution((Pass(42, (), {"K": value}),))
    assert_same(unpack_execution(pack_execution(execution))[0], execution)


def test_arrays_that_come_back_can_be_written_to() -> None:
    execution = Execution((Pass(42, (), {"K": np.arange(3.0)}),))
    unpack_execution(pack_execution(execution))[0].passes[0].answers["K"][0] = 7


@given(EXECUTIONS, st.integers(0, 10_000), st.binary(max_size=5))
def test_damaged_bytes_are_refused_or_give_an_execution(execution: Execution, place: int, other: bytes) -> None:
    data = pack_execution(execution)
    place %= len(data)
    try:
        found, _ = unpack_execution(data[:place] + other + data[place + len(other) + 1 :])
    except StoreError:
        return
    assert isinstance(found, Execution)


@given(st.binary(max_size=100))
def test_any_body_is_refused_or_gives_an_execution(body: bytes) -> None:
    for form in (b"\x01", b"\x02"):
        with suppress(StoreError):
            assert isinstance(unpack_execution(form + zlib.compress(body))[0], Execution)


def test_form_of_a_newer_version_is_told_from_damage() -> None:
    data = pack_execution(Execution(()))
    with pytest.raises(StoreError, match="newer autograder"):
        unpack_execution(b"\x09" + data[1:])
    with pytest.raises(StoreError, match="damaged"):
        unpack_execution(data[:-3])


@given(st.binary())
def test_submitted_bytes_come_back_as_they_went(data: bytes) -> None:
    assert unpack_bytes(pack_bytes(data)) == data


def test_damaged_submission_is_one_sentence() -> None:
    with pytest.raises(StoreError, match="damaged"):
        unpack_bytes(b"\x00nothing")


def test_workers_can_pack_without_loading_a_database_library() -> None:
    code = "import sys, autograder.store.packing, autograder.store.records; sys.exit('sqlalchemy' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
