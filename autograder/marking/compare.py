"""Comparing numbers: shape first, then the largest difference against the largest expected entry. Pure.

Everything here works on base-class arrays that the host rebuilt, never on a student's own object, and
never by broadcasting.
"""

import numpy as np

TOLERANCE = 1e-5
"""Largest accepted difference, as a part of the largest expected entry; float32 stays far below it."""


SMALLEST = 1e-100
"""A spread below it is none; numbers so small vanish when they are squared."""


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
    """Whether later steps may be judged on it: finite, not constant, its columns not all the same.

    What differs by less than the tolerance of a comparison is the same.
    """
    if answer.size < 2 or not np.isfinite(answer).all():
        return False
    with np.errstate(all="ignore"):
        least = max(TOLERANCE * np.abs(answer).max(), SMALLEST)
        spread = np.ptp(answer, axis=-1).max() if answer.ndim > 1 and answer.shape[-1] > 1 else np.ptp(answer)
        return bool(spread > least)


def find_copy(
    answer: np.ndarray, lesson: dict[str, object], right: np.ndarray, tolerance: float = TOLERANCE
) -> str | None:
    """The lesson's variable that an answer merely equals, up to a factor or a swap of its last two axes.

    A multiple of the right answer is no copy but a slip, even where the right answer is a lesson's variable.
    """
    if _is_multiple(answer, right, tolerance):
        return None
    for name, value in lesson.items():
        if not isinstance(value, np.ndarray) or value.dtype.kind != "f":
            continue
        turned = value.swapaxes(-1, -2) if value.ndim > 1 else value
        if _is_multiple(answer, value, tolerance) or _is_multiple(answer, turned, tolerance):
            return name
    return None


def _is_multiple(answer: np.ndarray, base: np.ndarray, tolerance: float) -> bool:
    if answer.shape != base.shape or not np.isfinite(answer).all():
        return False
    with np.errstate(all="ignore"):
        factor = np.vdot(base, answer) / np.vdot(base, base)
        return bool(np.isfinite(factor) and factor != 0 and is_close(answer, factor * base, tolerance))
