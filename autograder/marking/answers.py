"""The student's answers of one input set, as hidden tests see them: of the declared kind and shape, or a failure."""

import math
from collections.abc import Mapping
from types import SimpleNamespace

import numpy as np

from autograder.course import Exercise, shape_symbols
from autograder.records import Missing, Value


class CheckFailed(AssertionError):
    """A hidden test's verdict that an answer is wrong.

    rationale: what is wrong, in words that a student may read; empty to let the numbers speak.
    hint: how to think about it. detail: numbers for the instructor.
    name, wanted: the answer that was looked at, and what it was compared with.
    """

    def __init__(
        self, rationale: str, *, hint: str = "", detail: str = "", name: str = "", wanted: object = None
    ) -> None:
        super().__init__(rationale)
        self.rationale = rationale
        self.hint = hint
        self.detail = detail
        self.name = name
        self.wanted = wanted


class Answers:
    """Answers by name; reading one that is missing or of a wrong kind fails the test that reads it.

    It has no other attributes, so that an answer may have any name; what the checks need besides stands on
    its sheet (`get_sheet`).
    """

    __slots__ = ("__sheet",)

    def __init__(
        self,
        values: Mapping[str, Value],
        exercises: tuple[Exercise, ...],
        inputs: SimpleNamespace,
        expected: SimpleNamespace,
    ) -> None:
        self.__sheet = Sheet(values, exercises, inputs, expected)

    def __getattr__(self, name: str) -> np.ndarray | bool | int | float | str:
        return self.__sheet.get(name)


def get_sheet(answers: Answers) -> "Sheet":
    """What stands behind the answers."""
    sheet: Sheet = object.__getattribute__(answers, "_Answers__sheet")
    return sheet


class Sheet:
    """The answers of one input set with what belongs to them.

    raw: the answers as they left the sandbox. notes: what was repaired or carried. read: names that a test has
    looked at.
    """

    def __init__(
        self,
        values: Mapping[str, Value],
        exercises: tuple[Exercise, ...],
        inputs: SimpleNamespace,
        expected: SimpleNamespace,
    ) -> None:
        self.raw = values
        self.kinds = {name: kind for exercise in exercises for name, kind in exercise.answers.items()}
        self.inputs = inputs
        self.notes: list[str] = []
        self.read: dict[str, None] = {}
        self._expected = expected
        self._ready: dict[str, np.ndarray | bool | int | float | str | CheckFailed] = {}
        self._repairs: dict[str, str] = {}

    def forget_reading(self) -> None:
        """Start to note anew which answers are read and what is said about them."""
        self.notes.clear()
        self.read.clear()

    def get(self, name: str) -> np.ndarray | bool | int | float | str:
        """An answer of the declared kind and shape. `CheckFailed` when it is not; `AttributeError` when undeclared."""
        if name not in self.kinds:
            raise AttributeError(f"course.toml declares no answer {name!r}")
        self.read[name] = None
        if name not in self._ready:
            try:
                self._ready[name] = self._read(name)
            except CheckFailed as failure:
                self._ready[name] = failure
        value = self._ready[name]
        # Whoever reads it hears of it, so that what is said of a test does not hang on which test came first.
        if (repair := self._repairs.get(name)) is not None and repair not in self.notes:
            self.notes.append(repair)
        if isinstance(value, CheckFailed):
            wanted = getattr(self._expected, name, None)
            raise CheckFailed(value.rationale, hint=value.hint, detail=value.detail, name=name, wanted=wanted)
        return value

    def _read(self, name: str) -> np.ndarray | bool | int | float | str:
        kind, value = self.kinds[name], self.raw.get(name, Missing())
        if isinstance(value, Missing):
            raise CheckFailed(f"`{name}` was not assigned.")
        symbols = shape_symbols(kind)
        if symbols is not None:
            return self._read_array(name, value, kind, symbols)
        if kind == "bool":
            return _read_bool(name, value)
        if kind == "text":
            if isinstance(value, str):
                return value
            raise _refuse_kind(name, value, "a text")
        return _read_number(name, value, whole=kind == "whole number")

    def _read_array(self, name: str, value: Value, kind: str, symbols: tuple[str, ...]) -> np.ndarray:
        if not isinstance(value, np.ndarray):
            raise _refuse_kind(name, value, f"an array of shape {kind}")
        if value.dtype.kind == "c" and not value.imag.any():
            value = value.real
        if value.dtype.kind == "c":
            raise CheckFailed(f"`{name}` holds complex numbers; an array of real numbers of shape {kind} is asked for.")
        if value.dtype.kind == "b":
            raise CheckFailed(f"`{name}` holds True and False; an array of numbers of shape {kind} is asked for.")
        shape = self.resolve_shape(symbols)
        if value.shape == shape:
            return value.astype(np.float64)
        if shape[0] == 1 and symbols[0] == "B" and value.shape == shape[1:]:
            self._repairs[name] = f"`{name}` came without the batch axis; it was added."
            return value.astype(np.float64)[np.newaxis]
        if len(shape) == 2 and symbols[0] == "C" and value.shape == shape[::-1]:
            self._repairs[name] = f"`{name}` came as ({symbols[1]}, {symbols[0]}); it was turned."
            return np.ascontiguousarray(value.T.astype(np.float64))
        raise CheckFailed(f"`{name}` has not the shape {kind}.", detail=f"shape {value.shape}, expected {shape}")

    def resolve_shape(self, symbols: tuple[str, ...]) -> tuple[int, ...]:
        """A symbolic shape in numbers of this input set."""
        return tuple(int(symbol) if symbol.isdigit() else int(getattr(self.inputs, symbol)) for symbol in symbols)


def describe_kind(value: Value) -> str:
    """A value's kind in words for a student: never its content, which may come from a hidden input set."""
    if isinstance(value, str):
        return "a text"
    if isinstance(value, bool):
        return "a bool"
    if isinstance(value, int):
        return "a whole number"
    if isinstance(value, float):
        return "a number"
    if isinstance(value, np.ndarray):
        return "an array"
    return "None" if value is None else "an object of another kind"


def _refuse_kind(name: str, value: Value, asked: str) -> CheckFailed:
    content = f"array of shape {value.shape} and dtype {value.dtype}" if isinstance(value, np.ndarray) else repr(value)
    return CheckFailed(f"`{name}` is {describe_kind(value)}; {asked} is asked for.", detail=f"got {content[:200]}")


def _read_truth(value: Value) -> bool | None:
    """The truth value that an answer is, as an array of one element too; None where it is none."""
    if isinstance(value, np.ndarray) and value.dtype.kind == "b" and value.size == 1:
        return bool(value.reshape(-1)[0])
    return value if isinstance(value, bool) else None


def _read_bool(name: str, value: Value) -> bool:
    truth = _read_truth(value)
    if truth is None:
        raise _refuse_kind(name, value, "True or False")
    return truth


def _read_number(name: str, value: Value, *, whole: bool) -> int | float:
    if isinstance(value, np.ndarray) and value.dtype.kind in "iuf" and value.size == 1:
        value = value.reshape(-1)[0].item()
    if isinstance(value, int | float) and not isinstance(value, bool):
        if not whole:
            return value
        if math.isfinite(value) and int(value) == value:
            return int(value)
    raise _refuse_kind(name, value, "a whole number" if whole else "a number")
