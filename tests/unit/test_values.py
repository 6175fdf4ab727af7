"""What leaves the sandbox: plain values and base-class arrays; of everything else its type's name."""

import enum
import math
from array import array as memory_array
from collections import namedtuple
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from autograder.guest import wire
from autograder.guest.values import build_value, name_type
from autograder.records import Missing, Opaque
from autograder.sandbox.values import build_wire_value, read_value

CAP = 1000


def cross(value: Any, cap: int = CAP) -> Any:
    """A value as the host gets it, by the wire."""
    frame = wire.build_frame(wire.Answered(0, 0, build_value(value, cap)))
    (body,) = wire.FrameReader(10**6).feed(frame)
    reply = wire.parse_reply(body)
    assert isinstance(reply, wire.Answered)
    return read_value(reply.value)


class Matrix(np.ndarray):
    """A subclass that says something else than it holds."""

    def __array__(self, *_: Any, **__: Any) -> np.ndarray:
        raise RuntimeError

    def tobytes(self, *_: Any) -> bytes:
        return b"forged"


class Hostile:
    """An object that fails whatever is asked of it."""

    __class__ = property(lambda self: 1 / 0)  # type: ignore[assignment]

    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError(name)

    def __eq__(self, other: object) -> bool:
        raise RuntimeError

    def __hash__(self) -> int:
        raise RuntimeError


class Colour(enum.IntEnum):
    RED = 1


@pytest.mark.parametrize("value", [True, False, None, 0, -5, 2**63, -(2**63), 2**64 - 1, 1.5, "", "the lamp", "\u4e16"])
def test_plain_values_arrive_as_they_are(value) -> None:
    found = cross(value)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (np.bool_(True), True),
        (np.True_, True),
        (np.int64(5), 5),
        (np.uint8(5), 5),
        (np.float32(0.5), 0.5),
        (np.float64(0.5), 0.5),
        (np.longdouble(0.5), 0.5),
        (np.str_("abc"), "abc"),
        (np.array(True), True),
        (np.array(5), 5),
        (np.array(0.5, np.float16), 0.5),
        (np.array(0.5, np.longdouble), 0.5),
    ],
    ids=repr,
)
def test_numpy_scalars_and_0_d_arrays_arrive_as_plain_values(value, plain) -> None:
    found = cross(value)
    assert found == plain
    assert type(found) is type(plain)


def test_numbers_that_are_not_finite_arrive() -> None:
    assert math.isnan(cross(float("nan")))
    assert cross(-math.inf) == -math.inf
    assert math.isnan(cross(np.array(np.nan)))


@pytest.mark.parametrize(
    "value",
    [
        [1, 2, 3],
        (1.5, 2.5),
        [[1, 2], [3, 4]],
        [np.float64(1), np.float64(2)],
        [np.arange(3), np.arange(3)],
        [True, False],
        [[[1]]],
        (np.array([1.0]),),
    ],
    ids=repr,
)
def test_lists_and_tuples_of_numbers_arrive_as_arrays(value) -> None:
    found = cross(value)
    assert type(found) is np.ndarray
    np.testing.assert_array_equal(found, np.array(value))


@given(arrays.arrays(st.sampled_from([np.dtype(n) for n in "? i1 <i2 >i4 i8 u8 f2 >f4 f8 c8 >c16".split()]),
                     arrays.array_shapes(min_dims=1, max_dims=4, min_side=0, max_side=3)))  # fmt: skip
def test_arrays_arrive_with_their_kind_and_shape(array) -> None:
    found = cross(array, 10**5)
    assert type(found) is np.ndarray
    assert (found.shape, found.dtype) == (array.shape, array.dtype.newbyteorder("<"))
    np.testing.assert_array_equal(found, array)


@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
def test_subclasses_arrive_as_the_base_class_with_what_they_hold() -> None:
    for array in (np.arange(4.0).reshape(2, 2).view(Matrix), np.matrix([[0.0, 1.0], [2.0, 3.0]])):
        found = cross(array)
        assert type(found) is np.ndarray
        assert found.tolist() == [[0.0, 1.0], [2.0, 3.0]]


def test_a_wider_float_arrives_as_float64() -> None:
    found = cross(np.array([0.5, 1.5], np.longdouble))
    assert found.dtype == np.float64
    assert found.tolist() == [0.5, 1.5]


@pytest.mark.parametrize("cap", [0, 79])
def test_an_array_over_the_cap_arrives_as_its_types_name(cap) -> None:
    assert cross(np.zeros(10), cap) == Opaque("ndarray")
    assert cross([0.0] * 10, cap) == Opaque("list")


def test_an_array_at_the_cap_arrives() -> None:
    assert cross(np.zeros(10), 80).shape == (10,)


def test_a_long_text_is_cut() -> None:
    assert cross("x" * 10**6) == "x" * wire.MAX_TEXT


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (object(), "object"),
        ({"a": 1}, "dict"),
        ({1, 2}, "set"),
        (range(3), "range"),
        (b"abc", "bytes"),
        (len, "builtin_function_or_method"),
        (np, "module"),
        (2**64, "int"),
        (-(2**63) - 1, "int"),
        ([], "list"),
        ([[1, 2], [3]], "list"),
        (np.datetime64("2027-01-15"), "datetime64"),
    ],
)
def test_everything_else_arrives_as_its_types_name(value, name) -> None:
    assert cross(value) == Opaque(name)


def test_subclasses_of_plain_kinds_become_plain() -> None:
    assert cross(Colour.RED) == int(Colour.RED)
    assert cross(type("Text", (str,), {})("x")) == "x"
    assert cross(namedtuple("Pair", "a b")(1, 2)).tolist() == [1, 2]
    assert cross(memory_array("d", [0.5, 1.5])).tolist() == [0.5, 1.5]


def test_an_object_array_of_real_numbers_is_an_array_of_numbers() -> None:
    numbers = np.array([0.5, 2, np.float32(0.25), Fraction(1, 8)], dtype=object)
    assert cross(numbers).tolist() == [0.5, 2.0, 0.25, 0.125]


def test_an_object_that_fails_whatever_is_asked_of_it_arrives_as_its_types_name() -> None:
    # Not by `==`: the comparison would ask the object.
    assert cross(Hostile()).type_name == "Hostile"
    assert cross([Hostile()]).type_name == "list"


@pytest.mark.parametrize(
    "array", [np.array(["a"]), np.array([object()]), np.array([(1, 2)], "i4,i4"), np.array(["2027"], "M8[Y]")], ids=str
)
def test_arrays_of_other_kinds_do_not_leave(array) -> None:
    assert isinstance(cross(array), Opaque)
    assert isinstance(cross(array[0:1].reshape(())), Opaque)


@pytest.mark.parametrize("text", ["\ud83d", "a\udc80b"])
def test_a_text_that_no_encoding_can_hold_still_arrives_as_something(text) -> None:
    assert isinstance(cross(text), str | Opaque)


def test_a_list_nested_without_end_does_not_leave() -> None:
    endless: list[Any] = []
    endless.append(endless)
    assert isinstance(cross(endless), Opaque)


def test_a_placeholder_is_missing() -> None:
    assert cross(...) == Missing()


def test_a_complex_number_arrives_as_an_array_of_it() -> None:
    found = cross(np.complex128(1 + 2j))
    assert found.tolist() == 1 + 2j


def test_the_name_of_a_type_is_the_types_own_and_short() -> None:
    class Meta(type):
        __name__ = property(lambda cls: "forged")  # type: ignore[assignment]

    assert name_type(Meta("Real", (), {})()) == "Real"
    assert name_type(type("N" * 10**5, (), {})()) == "N" * 200


@given(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(st.characters(exclude_categories=["Cs"]))
    | st.builds(Missing) | st.builds(Opaque, st.text(max_size=200)) | st.floats(allow_nan=False)
)  # fmt: skip
def test_an_answer_that_is_kept_comes_back_as_it_was(value) -> None:
    assert read_value(build_wire_value(value)) == value
