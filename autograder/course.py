"""`course.toml` -> `Course`. Every error names the file, the key and what was expected."""

import functools
import re
import tomllib
from datetime import tzinfo
from pathlib import Path
from typing import Annotated, Any, Literal, get_args
from zoneinfo import available_timezones

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from autograder.clock import find_zone
from autograder.errors import CourseError, suggest_near

FILE_NAME = "course.toml"
ROSTER_NAME = "students.csv"

Identifier = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]*$", max_length=64)]
PythonName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", max_length=64)]
Seconds = Annotated[float, Field(gt=0, le=3600)]
Bytes = Annotated[int, Field(gt=0)]

KINDS = ("bool", "whole number", "number", "text")
_SHAPE = re.compile(r"^\(\s*((?:[A-Za-z_]\w*|\d+)(?:\s*,\s*(?:[A-Za-z_]\w*|\d+))*)\s*,?\s*\)$")


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=False)


class Limits(_Model):
    """What one submission may use. Sizes in bytes, times in seconds."""

    cell_wall_seconds: Seconds = 10
    cell_cpu_seconds: Seconds = 3
    wall_seconds: Seconds = 60
    cpu_seconds: Seconds = 20
    memory_bytes: Annotated[int, Field(ge=64 * 2**20, le=2**40)] = 1024 * 2**20
    processes: Annotated[int, Field(ge=4, le=4096)] = 32
    disk_bytes: Annotated[int, Field(ge=4096, le=2**40)] = 32 * 2**20
    files: Annotated[int, Field(ge=16, le=2**24)] = 1024
    output_bytes: Bytes = 1 * 2**20
    answer_bytes: Annotated[int, Field(ge=4096, le=2**30)] = 8 * 2**20


class Late(_Model):
    """What handing in after the deadline costs. It is taken from the total and shown as a line of its own."""

    policy: Literal["none", "per-day"] = "none"
    percent_per_day: Annotated[float, Field(gt=0, le=100)] | None = None
    """For each day that has begun."""
    percent_of: Literal["maximum", "earned"] = "maximum"
    """Whether the per cent are of the assignment's points or of those that the student earned."""
    grace_minutes: Annotated[float, Field(ge=0, le=7 * 24 * 60)] = 0
    """After the deadline; they cost nothing, and days are counted from their end."""
    max_percent: Annotated[float, Field(gt=0, le=100)] | None = None
    """No more than this is taken off."""
    latest_days: Annotated[int, Field(ge=1, le=366)] | None = None
    """What is handed in after more days than these earns nothing."""

    @model_validator(mode="after")
    def _check_policy(self) -> "Late":
        if self.policy == "per-day" and self.percent_per_day is None:
            raise ValueError('the key percent_per_day is missing, which policy = "per-day" needs')
        for key in ("percent_per_day", "max_percent", "latest_days"):
            if self.policy == "none" and getattr(self, key) is not None:
                raise ValueError(f'{key} does nothing under policy = "none"; write policy = "per-day" or take it out')
        return self


class Exercise(_Model):
    """One exercise: its answers by name, each with a symbolic shape such as `(B, T, hs)` or a kind."""

    id: Identifier
    title: str
    answers: Annotated[dict[PythonName, str], Field(min_length=1)]
    written_points: Annotated[float, Field(ge=0)] = 0

    @field_validator("answers")
    @classmethod
    def _check_kinds(cls, answers: dict[str, str]) -> dict[str, str]:
        for name, kind in answers.items():
            if kind not in KINDS and not _SHAPE.match(kind):
                raise ValueError(
                    f'{name}: expected a shape such as "(B, T, hs)" or one of {", ".join(KINDS)}, not "{kind}"'
                )
        return answers


class Assignment(_Model):
    """One assignment. The first seed makes the published input set, the others the hidden ones."""

    title: str
    due: AwareDatetime | None = None
    seeds: Annotated[tuple[Annotated[int, Field(ge=0, lt=2**32)], ...], Field(min_length=2)]
    preload: tuple[str, ...] = ()
    """Modules that are imported once for all submissions that name a package of them."""
    show_hints: bool = True
    """Whether a lost mark's hint is given out, or only what is wrong."""
    limits: Limits = Limits()
    late: Late = Late()
    exercises: Annotated[tuple[Exercise, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _check_unique(self) -> "Assignment":
        for what, names in (
            ("seed", [str(seed) for seed in self.seeds]),
            ("exercise id", [exercise.id for exercise in self.exercises]),
            ("answer", [name for exercise in self.exercises for name in exercise.answers]),
        ):
            twice = sorted({name for name in names if names.count(name) > 1})
            if twice:
                raise ValueError(f"{what} {twice[0]} stands there twice; each must be unique within the assignment")
        if self.late.policy != "none" and self.due is None:
            raise ValueError(f'the key due is missing, which late.policy = "{self.late.policy}" needs')
        runs = len(self.seeds) + 1
        for what in ("wall", "cpu"):
            cell, whole = getattr(self.limits, f"cell_{what}_seconds"), getattr(self.limits, f"{what}_seconds")
            if whole < runs * cell:
                raise ValueError(
                    f"limits.{what}_seconds: expected at least {runs * cell:g}, since a cell may use "
                    f"cell_{what}_seconds = {cell:g} in each of {runs} runs (one for each seed, one as submitted)"
                )
        return self


class _CourseFile(_Model):
    id: Identifier
    title: str
    time_zone: str | None = None
    """Such as Europe/Berlin: where days begin and end, and how times without a zone are read."""
    roster: str | None = None
    """The list of students, below the course's folder; else `students.csv` if there is one."""
    assignments: Annotated[dict[Identifier, Assignment], Field(min_length=1)]

    @field_validator("time_zone")
    @classmethod
    def _check_zone(cls, name: str | None) -> str | None:
        if name is not None and find_zone(name) is None:
            near = suggest_near(name, available_timezones())
            raise ValueError(f'expected a time zone such as "Europe/Berlin", not "{name}"{near}')
        return name


class Course(_CourseFile):
    """A course and the folder that holds it."""

    folder: Path

    def assignment(self, name: str) -> Assignment:
        """The assignment with this id; `CourseError` with a near match when there is none."""
        if name not in self.assignments:
            near = suggest_near(name, self.assignments)
            known = ", ".join(self.assignments)
            raise CourseError(f"{self.folder / FILE_NAME}: there is no assignment {name!r}{near}; it has {known}")
        return self.assignments[name]

    def solution_notebook(self, name: str) -> Path:
        """The source notebook of an assignment, with its solutions."""
        return self.folder / "solutions" / name / f"{name}.ipynb"

    def released_notebook(self, name: str) -> Path:
        """The student notebook that `autograder release` builds."""
        return self.folder / "assignments" / name / f"{name}.ipynb"

    def reference(self, name: str) -> Path:
        """The module with `inputs(seed)` and one function for each exercise."""
        return self.folder / "solutions" / name / "reference.py"

    def zone(self, name: str) -> tzinfo | None:
        """The time zone that days and times of an assignment are read in: the course's, else that of the due date."""
        due = self.assignment(name).due
        return find_zone(self.time_zone) if self.time_zone else due.tzinfo if due else None

    def roster_file(self) -> Path | None:
        """The list of students, where there is one. `CourseError` when `course.toml` names one that is not there."""
        file = self.folder / (self.roster or ROSTER_NAME)
        if file.is_file():
            return file
        if self.roster is not None:
            raise CourseError(f"{self.folder / FILE_NAME}: roster: there is no file {file}")
        return None

    def hidden_tests(self, name: str) -> Path:
        """The folder with the hidden tests of an assignment."""
        return self.folder / "tests" / "hidden" / name


@functools.cache
def shape_symbols(kind: str) -> tuple[str, ...] | None:
    """`"(B, T, 6)"` -> `("B", "T", "6")`; None when the kind is not a shape."""
    match = _SHAPE.match(kind)
    return tuple(symbol.strip() for symbol in match[1].split(",")) if match else None


def find_course_folder(start: Path) -> Path:
    """The nearest folder at or above `start` that holds a `course.toml`."""
    start = start.resolve()
    for folder in (start, *start.parents):
        if (folder / FILE_NAME).is_file():
            return folder
    raise CourseError(f"no {FILE_NAME} in {start} or above it; go into a course's folder or name it with --course DIR")


def load_course(folder: str | Path) -> Course:
    """Read `course.toml` in `folder`. `CourseError` names the file, the key and what was expected."""
    file = Path(folder).resolve() / FILE_NAME
    try:
        data = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise CourseError(
            f"{file}: cannot be read ({error.strerror}); name the course's folder with --course DIR"
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise CourseError(f"{file}: is not valid TOML: {error}") from error
    if "folder" in data:
        raise CourseError(f"{file}: unknown key folder")
    try:
        return Course.model_validate({**data, "folder": file.parent})
    except ValidationError as error:
        raise CourseError(_explain(file, error)) from error


def _explain(file: Path, error: ValidationError) -> str:
    lines = []
    for problem in error.errors(include_url=False):
        where = ".".join(str(part) for part in problem["loc"]) or "the file"
        if problem["type"] == "extra_forbidden":
            key = str(problem["loc"][-1])
            lines.append(f"{file}: unknown key {where}{suggest_near(key, _known_keys(problem['loc'][:-1]))}")
        elif problem["type"] == "missing":
            lines.append(f"{file}: the key {where} is missing")
        else:
            own = problem["msg"].startswith("Value error, ")
            text = problem["msg"].removeprefix("Value error, ")
            found = "" if isinstance(problem["input"], dict | list | tuple) else f" (found {problem['input']!r})"
            lines.append(f"{file}: {where}: {text if own else text[0].lower() + text[1:]}{found}")
    return "\n".join(lines)


def _known_keys(location: tuple[int | str, ...]) -> list[str]:
    """The keys that the model at this place of the file knows."""
    model: Any = _CourseFile
    for part in location:
        if isinstance(model, type) and issubclass(model, BaseModel):
            field = model.model_fields.get(str(part))
            model = field.annotation if field else None
        else:
            model = next((arg for arg in reversed(get_args(model)) if isinstance(arg, type)), None)
    return list(model.model_fields) if isinstance(model, type) and issubclass(model, BaseModel) else []
