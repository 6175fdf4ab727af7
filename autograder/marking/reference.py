"""Loads an assignment's reference and asks it for input sets and expected answers."""

import importlib.util
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import msgspec
import numpy as np

from autograder.course import Assignment, Course, Exercise, shape_symbols
from autograder.errors import CourseError


class InputSet(msgspec.Struct, frozen=True):
    """One input set: the seed, the lesson's names with their values, and the expected answers."""

    seed: int
    inputs: dict[str, Any]
    expected: dict[str, Any]


def load_reference(file: Path) -> ModuleType:
    """Import `reference.py` from a file. `CourseError` names what is wrong with it."""
    spec = importlib.util.spec_from_file_location(f"reference_of_{file.parent.name}", file)
    if spec is None or spec.loader is None or not file.is_file():
        raise CourseError(f"{file}: the reference is missing")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise CourseError(f"{file}: cannot be imported ({type(error).__name__}: {error})") from error
    return module


def build_input_sets(course: Course, name: str, reference: ModuleType) -> tuple[InputSet, ...]:
    """The input sets of an assignment in the order of its seeds."""
    assignment = course.assignment(name)
    return tuple(build_input_set(assignment, reference, seed) for seed in assignment.seeds)


def build_input_set(assignment: Assignment, reference: ModuleType, seed: int) -> InputSet:
    """One input set with what the reference expects on it. `CourseError` when it fails or forgets an answer."""
    file = reference.__file__
    try:
        inputs: Mapping[str, Any] = reference.inputs(seed)
        expected: dict[str, Any] = {}
        for exercise in assignment.exercises:
            answers = getattr(reference, exercise.id.replace("-", "_"))({k: _copy(v) for k, v in inputs.items()})
            forgotten = [name for name in exercise.answers if name not in answers]
            if forgotten:
                raise CourseError(f"{file}: {exercise.id} gives no {', '.join(forgotten)}, which course.toml declares")
            _check_shapes(exercise, inputs)
            expected |= {name: answers[name] for name in exercise.answers}
    except CourseError:
        raise
    except (Exception, SystemExit) as error:
        raise CourseError(f"{file}: fails with seed {seed} ({type(error).__name__}: {error})") from error
    for name, value in inputs.items():
        if not isinstance(value, bool | int | float | str | list | np.ndarray) or isinstance(value, np.generic):
            raise CourseError(
                f"{file}: inputs({seed}) gives {name} as {type(value).__name__}; give plain Python or an array"
            )
        if isinstance(value, np.ndarray) and value.dtype.kind not in "biufc":
            raise CourseError(f"{file}: inputs({seed}) gives {name} as an array of {value.dtype}; give numbers")
    return InputSet(seed, dict(inputs), expected)


def _check_shapes(exercise: Exercise, inputs: Mapping[str, Any]) -> None:
    """Every length in a declared shape is a whole number of the lesson."""
    lengths = [name for name, value in inputs.items() if isinstance(value, int) and not isinstance(value, bool)]
    for name, kind in exercise.answers.items():
        for symbol in shape_symbols(kind) or ():
            if not symbol.isdigit() and symbol not in lengths:
                raise CourseError(
                    f"course.toml: {exercise.id}: {name} = {kind!r}: the lesson has no length {symbol}; "
                    f"it has {', '.join(lengths)}"
                )


def build_namespace(values: Mapping[str, Any]) -> SimpleNamespace:
    """Values by name as attributes. Arrays cannot be written to: what one hidden test changed, another would see."""
    return SimpleNamespace(**{name: _freeze(value) for name, value in values.items()})


def _freeze(value: Any) -> Any:
    copy = _copy(value)
    if isinstance(copy, np.ndarray):
        copy.flags.writeable = False
    return copy


def _copy(value: Any) -> Any:
    return value.copy() if hasattr(value, "copy") else value
