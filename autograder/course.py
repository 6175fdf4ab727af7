"""`course.toml` -> `Course`. Every error names the file, the key and what was expected."""

import difflib
import re
import tomllib
from pathlib import Path
from typing import Annotated, Any, get_args

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from autograder.errors import CourseError

FILE_NAME = "course.toml"

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
    show_hints: bool = True
    """Whether a lost mark's hint is given out, or only what is wrong."""
    limits: Limits = Limits()
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
    assignments: Annotated[dict[Identifier, Assignment], Field(min_length=1)]


class Course(_CourseFile):
    """A course and the folder that holds it."""

    folder: Path

    def assignment(self, name: str) -> Assignment:
        """The assignment with this id; `CourseError` with a near match when there is none."""
        if name not in self.assignments:
            near = _did_you_mean(name, list(self.assignments))
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

    def hidden_tests(self, name: str) -> Path:
        """The folder with the hidden tests of an assignment."""
        return self.folder / "tests" / "hidden" / name


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
            lines.append(f"{file}: unknown key {where}{_did_you_mean(key, _known_keys(problem['loc'][:-1]))}")
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


def _did_you_mean(word: str, known: list[str]) -> str:
    near = difflib.get_close_matches(word, known, n=1, cutoff=0.6)
    return f" (did you mean {near[0]}?)" if near else ""
