"""The text of the checks, as it is put into a notebook or a test file, and which exercise each check belongs to."""

from pathlib import Path

from autograder.course import Course

CHECKS_OF = {
    "shared-key": ("check_key_matrix", "check_keys", "check_scores", "check_symmetry"),
    "head-size": (
        "check_new_matrices",
        "check_projections",
        "check_parameters",
        "check_new_scores",
        "check_same_shape",
    ),
    "shared-value": ("check_first_value", "check_value_matrix", "check_values", "check_comparisons"),
}
"""A point each, in the order of the hidden tests."""


_TEXT = """
import sys
import types

sys.modules["reference"] = types.ModuleType("reference")
exec({reference!r}, vars(sys.modules["reference"]))
{checks}
"""


def build_text(course: Course, assignment: str) -> str:
    """The checks and the course's reference as one text that imports nothing of ours."""
    reference = (course.solution_notebook(assignment).parent / "reference.py").read_text(encoding="utf-8")
    checks = (Path(__file__).parent / "checks.py").read_text(encoding="utf-8")
    return _TEXT.format(reference=reference, checks=checks)
