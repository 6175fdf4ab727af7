"""Every exception that the package raises on purpose.

An exception means that *we*, the machine or the course files are at fault. What a student's code does
wrong is a value (see `records.Ending`), never an exception.
"""

import difflib
from collections.abc import Iterable


class AutograderError(Exception):
    """Base of all; the text is one sentence that says what happened, where, and what to do."""


class CourseError(AutograderError):
    """`course.toml`, a reference or a hidden test is wrong. Exit status 2."""


class UsageError(AutograderError):
    """The command line asks for something that does not exist. Exit status 2."""


class NotebookError(AutograderError):
    """A submission's bytes cannot be read as a notebook; the submission is ungraded."""


class SandboxError(AutograderError):
    """The sandbox could not run a submission or its guest broke the protocol; the submission is ungraded."""


class SandboxUnavailable(SandboxError):
    """This machine cannot run the sandbox at all; grading stops and the text says what to install."""


class ReleaseError(AutograderError):
    """A student notebook cannot be built, or would leak a solution."""


class ClusterError(AutograderError):
    """The cluster cannot be reached, or none of its workers may do the work."""


class StoreError(AutograderError):
    """The store cannot be opened, read or written. Exit status 2."""


class StoreBusyError(StoreError):
    """Another run works on the store; the text says whose."""


def suggest_near(word: str, known: Iterable[str]) -> str:
    """` (did you mean ...?)` for the text of an error; empty when nothing that is known comes near."""
    near = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f" (did you mean {near[0]}?)" if near else ""
