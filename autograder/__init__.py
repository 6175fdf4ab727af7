"""Autograded exercises in NumPy notebooks, with answers and tests kept apart from student code.

from autograder import grade, load_course

grades = grade(load_course("."), "qkv", ["submissions/"])
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from autograder.course import load_course
    from autograder.gradebook import grade

__all__ = ["grade", "load_course"]


def __getattr__(name: str) -> Any:
    """Import what is asked for, and only then: the command line must start at once."""
    if name == "load_course":
        from autograder.course import load_course

        return load_course
    if name == "grade":
        from autograder.gradebook import grade

        return grade
    raise AttributeError(f"module 'autograder' has no attribute {name!r}")
