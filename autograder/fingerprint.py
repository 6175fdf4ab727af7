"""What decides a result, as digests: of how submissions are run, and of how answers are marked.

Equal digests mean that nothing needs to be done again. The descriptions behind them say what differs.
"""

import hashlib
import platform
from collections.abc import Iterable, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from autograder.course import Course
from autograder.marking.reference import InputSet, build_input_sets, load_reference
from autograder.sandbox.modes import SandboxMode, read_mode

_PACKAGE = Path(__file__).parent
_RUNNING = (
    "guest", "sandbox", "intake/notebook.py", "intake/names.py", "intake/calls.py", "intake/reach.py", "syntax.py",
    "runs.py",
)  # fmt: skip
"""Parts of this package that decide what a submission answers."""
_MARKING = ("marking", "catalogue.py", "mistakes.py", "solution.py", "grading.py")
"""Parts of this package that decide what answers are worth, and how that is said."""
_PACKAGES = ("numpy", "ipython", "msgspec")
_LENGTH = 16


class Fingerprint(msgspec.Struct, frozen=True):
    """A digest and the description that it is the digest of."""

    digest: str
    description: dict[str, Any]


def describe_environment(course: Course, name: str) -> Fingerprint:
    """How submissions of an assignment are run: interpreter, NumPy, BLAS, limits, inputs, the guest."""
    assignment = course.assignment(name)
    sets = build_input_sets(course, name, load_reference(course.reference(name)))
    released = course.released_notebook(name)
    return _build_fingerprint(
        {
            "python": platform.python_version(),
            "machine": platform.machine(),
            "packages": {each: _find_version(each) for each in (*_PACKAGES, *assignment.preload)},
            "blas": _describe_blas(),
            "limits": assignment.limits.model_dump(),
            "inputs": _digest_inputs(sets),
            # In their order, by which markers name them.
            "answers": [[exercise.id, list(exercise.answers)] for exercise in assignment.exercises],
            "released notebook": _digest_files([released], released.parent),
            "guest": _digest_files(_list_own(_RUNNING), _PACKAGE),
            # All walls are alike; what ran without one proves nothing.
            "sandbox": "none" if read_mode() is SandboxMode.NONE else "walled",
        }
    )


def describe_marking(course: Course, name: str) -> Fingerprint:
    """How answers of an assignment are marked: hidden tests, reference, catalogue, exercises, this package."""
    assignment = course.assignment(name)
    tests, solutions = course.hidden_tests(name), course.reference(name).parent
    catalogue = [solutions / each for each in ("mistakes.toml", "variants.toml", "equivalents.toml")]
    return _build_fingerprint(
        {
            "hidden tests": _digest_files(_list_files(tests), tests),
            "reference": _digest_files([each for each in _list_files(solutions) if each not in catalogue], solutions),
            "catalogue": _digest_files(catalogue[:1], solutions),
            "exercises": [exercise.model_dump() for exercise in assignment.exercises],
            "hints": assignment.show_hints,
            "packages": {each: _find_version(each) for each in ("numpy", "pytest")},
            "autograder": _digest_files(_list_own(_MARKING), _PACKAGE),
        }
    )


def list_differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """The parts in which two descriptions differ, in the order of the newer one."""
    return [part for part in (*new, *(each for each in old if each not in new)) if old.get(part) != new.get(part)]


def _build_fingerprint(description: dict[str, Any]) -> Fingerprint:
    plain = msgspec.json.encode(description, order="sorted")
    return Fingerprint(hashlib.sha256(plain).hexdigest(), msgspec.json.decode(plain))


def _list_files(folder: Path) -> list[Path]:
    """All files below a folder, since tests and references may read others than Python's."""
    return sorted(
        file
        for file in folder.rglob("*")
        if file.is_file() and not {"__pycache__", ".ipynb_checkpoints"} & {*file.parts}
    )


def _list_own(parts: Iterable[str]) -> list[Path]:
    files: list[Path] = []
    for part in parts:
        path = _PACKAGE / part
        files += sorted(path.rglob("*.py")) if path.is_dir() else [path]
    return files


def _digest_files(files: Sequence[Path], root: Path) -> str:
    """Of names and contents; a file that is not there counts as that."""
    digest = hashlib.sha256()
    for file in files:
        digest.update(f"{file.relative_to(root)}\0".encode())
        data = file.read_bytes() if file.is_file() else None
        digest.update(b"-" if data is None else hashlib.sha256(data).digest())
    return digest.hexdigest()[:_LENGTH]


def _digest_inputs(sets: Sequence[InputSet]) -> str:
    digest = hashlib.sha256()
    for each in sets:
        digest.update(f"seed {each.seed}\0".encode())
        for name, value in each.inputs.items():
            digest.update(f"{name}\0".encode())
            if isinstance(value, np.ndarray):
                digest.update(f"{value.dtype.str}{value.shape}".encode() + np.ascontiguousarray(value).tobytes())
            else:
                digest.update(repr(value).encode())
    return digest.hexdigest()[:_LENGTH]


def _describe_blas() -> str:
    built: Any = np.show_config(mode="dicts")
    blas = built.get("Build Dependencies", {}).get("blas", {}) if isinstance(built, dict) else {}
    return f"{blas.get('name', 'unknown')} {blas.get('version', '')}".strip()


def _find_version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""
