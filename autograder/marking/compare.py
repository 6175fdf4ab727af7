"""Comparing numbers: shape first, then the largest difference against the largest expected entry. Pure.

Everything here works on base-class arrays that the host rebuilt, never on a student's own object, and
never by broadcasting.
"""

import numpy as np

TOLERANCE = 1e-5
"""Largest accepted difference, as a part of the largest expected entry; float32 stays far below it."""


def is_close(answer: np.ndarray, expected: np.ndarray, tolerance: float = TOLERANCE) -> bool:
    """`max|answer - expected| <= tolerance * max|expected|`, shapes first; NaN and infinity equal nothing."""
    if answer.shape != expected.shape:
        return False
    if expected.size == 0:
        return True
    with np.errstate(all="ignore"):
        difference, scale = np.abs(answer - expected).max(), np.abs(expected).max()
        # An infinite scale would accept anything; it comes from a student's own step that overflows.
        return bool(np.isfinite(scale) and difference <= tolerance * scale)


def is_usable(answer: np.ndarray) -> bool:
    """Whether later steps may be judged on it: finite and not constant."""
    return bool(answer.size > 1 and np.isfinite(answer).all() and (answer != answer.flat[0]).any())


def find_copy(answer: np.ndarray, lesson: dict[str, object], tolerance: float = TOLERANCE) -> str | None:
    """The lesson's variable that an answer merely equals, if any."""
    for name, value in lesson.items():
        if isinstance(value, np.ndarray) and is_close(answer, value, tolerance):
            return name
    return None
