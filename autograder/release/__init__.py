"""Student notebooks: built from the source with nbgrader's own steps, checked for leaks, written atomically."""

from autograder.release.build import build_stub
from autograder.release.leaks import find_leaks
from autograder.release.publish import build_release, find_difference, is_current, release_assignment

__all__ = ["build_release", "build_stub", "find_difference", "find_leaks", "is_current", "release_assignment"]
