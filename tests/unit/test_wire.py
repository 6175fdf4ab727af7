"""The wire: every message comes back as it went, and no bytes at all can do more than be refused."""

import math
import struct
from typing import get_args

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from autograder.guest import wire

INT64 = st.integers(-(2**63), 2**63 - 1)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
SHAPES = arrays.array_shapes(min_dims=0, max_dims=8, min_side=0, max_side=3)
ALLOWED = st.sampled_from(list(wire.DTYPES.values()))
NUMBERS = st.one_of(ALLOWED, ALLOWED.map(lambda dtype: dtype.newbyteorder(">")))


VALUES = st.one_of(
    st.builds(wire.Plain, st.none() | st.booleans() | INT64 | st.floats() | TEXT),
    st.builds(wire.Array, TEXT, st.lists(INT64, max_size=9).map(tuple), st.binary(max_size=20)),
    st.builds(wire.Other, TEXT),
    st.builds(wire.Absent),
)
REPLIES = st.one_of(
    st.builds(wire.Began, INT64, INT64),
    st.builds(wire.Ended, INT64, INT64, st.sampled_from(get_args(wire.EndingName)), TEXT, TEXT),
    st.builds(wire.Ran, INT64, st.lists(INT64, max_size=5).map(tuple)),
    st.builds(wire.Answered, INT64, INT64, VALUES),
    st.builds(wire.Shown, INT64, TEXT, st.binary(max_size=50)),
    st.builds(wire.Finished, INT64),
    st.builds(wire.Fault, TEXT, TEXT),
)
NAMES = st.lists(TEXT, max_size=3).map(tuple)
CELLS = st.builds(wire.PlannedCell, INT64, TEXT, st.booleans(), st.booleans(), NAMES, NAMES, NAMES)
JOBS = st.builds(wire.Job, st.lists(CELLS, max_size=3).map(tuple), NAMES, INT64, INT64)


def read_bodies(data: bytes, cap: int = 2**32 - 1, step: int | None = None) -> list[bytes]:
    reader = wire.FrameReader(cap)
    step = step or max(1, len(data))
    return [body for start in range(0, len(data), step) for body in reader.feed(data[start : start + step])]


# --- messages -----------------------------------------------------------------------------------------------


@given(st.lists(REPLIES, max_size=5), st.integers(1, 7))
def test_replies_come_back_as_they_went_however_the_bytes_are_cut(replies, step) -> None:
    data = b"".join(map(wire.build_frame, replies))
    found = [wire.parse_reply(body) for body in read_bodies(data, step=step)]
    assert repr(found) == repr(replies)  # by repr, because NaN is not equal to itself


@given(JOBS)
def test_a_job_comes_back_as_it_went(job) -> None:
    (body,) = read_bodies(wire.build_frame(job))
    assert wire.parse_request(body) == job


@given(arrays.arrays(NUMBERS, SHAPES), INT64)
def test_the_values_of_a_pass_come_back_as_they_went(array, number) -> None:
    values = {
        "X": wire.build_array(array),
        "T": number,
        "text": "the lamp",
        "ids": [19, 9, 6],
        "four": [2, "a", [1], b""],
    }
    (body,) = read_bodies(wire.build_frame(wire.RunPass(1, 7, True, values, (3,))))
    message = wire.parse_request(body)
    assert isinstance(message, wire.RunPass)
    assert (message.number, message.seed, message.graded, message.skip) == (1, 7, True, (3,))
    assert message.values["X"] == values["X"]
    assert {name: message.values[name] for name in ("T", "text", "ids")} == {
        name: values[name] for name in ("T", "text", "ids")
    }


def test_types_are_exact() -> None:
    encode = msgspec.msgpack.encode
    for body in (
        [20, "1", 2],  # a text for a number
        [20, 1.5, 2],
        [20, True, 2],
        [20, 1],  # too few fields
        [20, 1, 2, 3],  # too many
        [21, 1, 2, "timeout"],  # an ending that only the host can tell
        [21, 1, 2, "ok", b"bytes"],
        [22, 1, 2, 5],  # a bare value
        [22, 1, 2, [2, "<f8", [1.0], b"12345678"]],
        [22, 1, 2, [9, 1]],  # an unknown kind of value
        [99, 1],  # an unknown message
        [10, [], [], 1, 1],  # a request is no reply
        {"type": 20, "pass_number": 1, "cell": 2},
        [],
        None,
        20,
        msgspec.msgpack.Ext(1, b"x"),
    ):
        with pytest.raises(wire.WireError):
            wire.parse_reply(encode(body))


# --- bytes from outside -------------------------------------------------------------------------------------


@given(st.binary(max_size=200))
def test_any_bytes_are_a_reply_or_are_refused(data) -> None:
    try:
        message = wire.parse_reply(data)
    except wire.WireError:
        return
    assert isinstance(message, get_args(wire.Reply))


@given(REPLIES, st.data())
def test_a_damaged_reply_is_a_reply_or_is_refused(reply, data) -> None:
    body = bytearray(wire.build_frame(reply)[4:])
    for _ in range(data.draw(st.integers(1, 3))):
        body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    body = body[: data.draw(st.integers(0, len(body)))]
    try:
        message = wire.parse_reply(bytes(body))
    except wire.WireError:
        return
    assert isinstance(message, get_args(wire.Reply))


def test_a_body_nested_without_end_is_refused() -> None:
    with pytest.raises(wire.WireError):
        wire.parse_reply(b"\x93\x16\x01\x01" + b"\x91" * 1_000_000)


@given(st.binary(max_size=100), st.integers(0, 50), st.integers(1, 9))
def test_any_bytes_are_frames_within_the_cap_or_are_refused(data, cap, step) -> None:
    try:
        bodies = read_bodies(data, cap, step)
    except wire.WireError:
        return
    assert all(len(body) <= cap for body in bodies)


@given(st.lists(st.binary(max_size=20), max_size=6))
def test_frames_that_come_byte_by_byte_are_whole(bodies) -> None:
    data = b"".join(struct.pack(">I", len(body)) + body for body in bodies)
    assert read_bodies(data, step=1) == bodies == read_bodies(data)


def test_a_declared_length_over_the_cap_is_refused_before_the_body_arrives() -> None:
    reader = wire.FrameReader(100)
    assert list(reader.feed(struct.pack(">I", 100))) == []
    assert reader.pending == 4
    reader = wire.FrameReader(100)
    with pytest.raises(wire.WireError, match="over the cap of 100 bytes"):
        list(reader.feed(struct.pack(">I", 101)))


SECRET = "7531 hidden"


@pytest.mark.parametrize("body", [[SECRET], [21, 0, 0, SECRET, "", ""], [22, 0, 0, [9, SECRET]], {SECRET: 1}, SECRET])
def test_what_is_wrong_with_a_reply_is_told_without_its_content(body) -> None:
    """People read what is told, and the bytes may hold something of a hidden input set."""
    with pytest.raises(wire.WireError) as caught:
        wire.parse_reply(msgspec.msgpack.encode(body))
    assert "hidden" not in str(caught.value)


@pytest.mark.parametrize("array", [wire.Array("<f8", (7531,), b""), wire.Array("7531", (1,), b"")])
def test_what_is_wrong_with_an_array_is_told_without_its_content(array) -> None:
    with pytest.raises(wire.WireError) as caught:
        wire.read_array(array)
    assert "7531" not in str(caught.value)


def test_a_length_that_is_refused_is_not_told() -> None:
    with pytest.raises(wire.WireError) as caught:
        list(wire.FrameReader(100).feed(struct.pack(">I", 7531)))
    assert "7531" not in str(caught.value)


def test_a_frame_before_a_bad_one_is_still_given() -> None:
    feed = wire.FrameReader(10).feed(struct.pack(">I", 1) + b"a" + struct.pack(">I", 11))
    assert next(feed) == b"a"
    with pytest.raises(wire.WireError):
        next(feed)


def test_pending_counts_the_bytes_of_a_frame_that_has_not_ended() -> None:
    reader = wire.FrameReader(100)
    assert list(reader.feed(struct.pack(">I", 3) + b"ab")) == []
    assert reader.pending == 6
    assert list(reader.feed(b"c")) == [b"abc"]
    assert reader.pending == 0


# --- arrays -------------------------------------------------------------------------------------------------


@given(arrays.arrays(NUMBERS, SHAPES))
def test_arrays_of_every_allowed_kind_come_back_equal(array) -> None:
    found = wire.read_array(wire.build_array(array))
    assert type(found) is np.ndarray
    assert found.shape == array.shape
    assert found.dtype == array.dtype.newbyteorder("<")
    np.testing.assert_array_equal(found, array)
    assert found.flags.writeable
    assert found.flags.owndata or found.base.flags.owndata


@pytest.mark.parametrize(
    "array",
    [
        np.arange(24).reshape(2, 3, 4)[::-1, :, ::2],
        np.arange(24).reshape(2, 3, 4).T,
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        np.broadcast_to(np.arange(3.0), (4, 3)),
        np.zeros((3, 0, 2)),
        np.array(5.0),
        np.array([-0.0, np.nan, np.inf, -np.inf]),
        np.frombuffer(bytes(9), np.uint8)[1:].view("<f8"),
    ],
)
def test_arrays_of_any_layout_come_back_in_c_order(array) -> None:
    found = wire.read_array(wire.build_array(array))
    np.testing.assert_array_equal(found, array)
    assert found.flags.c_contiguous
    if array.dtype.kind == "f":
        np.testing.assert_array_equal(np.signbit(found), np.signbit(array))


@pytest.mark.parametrize(
    "array",
    [
        np.array([object()]),
        np.array(["a"]),
        np.array([b"a"]),
        np.array([1], dtype="M8[s]"),
        np.array([1], dtype="m8[s]"),
        np.array([(1, 2.0)], dtype=[("a", int), ("b", float)]),
        np.zeros(2, np.longdouble),
        np.zeros(2, np.clongdouble),
        np.zeros((1,) * 9),
    ],
    ids=lambda array: str(array.dtype),
)
def test_arrays_of_other_kinds_are_refused(array) -> None:
    with pytest.raises(wire.WireError):
        wire.build_array(array)


@given(
    st.sampled_from([*wire.DTYPES, "O", "|O", "V8", "<U4", ">f8", "f8", "<M8[s]", "", "i4,f8"]),
    st.lists(st.integers(-3, 5) | INT64, max_size=10).map(tuple),
    st.binary(max_size=64),
)
def test_any_description_of_an_array_is_one_or_is_refused(dtype, shape, data) -> None:
    try:
        array = wire.read_array(wire.Array(dtype, shape, data))
    except wire.WireError:
        return
    assert dtype in wire.DTYPES
    assert array.shape == shape
    assert array.nbytes == len(data)


@pytest.mark.parametrize(
    ("dtype", "shape", "size"),
    [
        ("<f8", (2**62, 2**62), 8),
        ("<f8", (2**40,), 8),
        ("<f8", (0, 2**63), 0),
        ("<f8", (2**64 - 1, 0), 0),
        ("<f8", (-1, -1), 8),
        ("<f8", (1,) * 9, 8),
        ("<f8", (1,), 7),
        ("|O", (1,), 8),
        ("|V8", (1,), 8),
    ],
)
def test_an_array_that_lies_about_itself_is_refused(dtype, shape, size) -> None:
    with pytest.raises(wire.WireError):
        wire.read_array(wire.Array(dtype, shape, bytes(size)))


def test_a_copy_does_not_share_memory_with_the_message() -> None:
    data = np.arange(3.0).tobytes()
    first, second = (wire.read_array(wire.Array("<f8", (3,), data)) for _ in range(2))
    first[:] = math.pi
    assert second.tolist() == [0.0, 1.0, 2.0]
    assert np.frombuffer(data).tolist() == [0.0, 1.0, 2.0]
