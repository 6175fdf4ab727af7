"""Answers that are no array of numbers, no truth value or no number where one is asked for. Pure."""

from collections.abc import Sequence

import numpy as np

from autograder.course import shape_symbols
from autograder.marking.diagnosis.nouns import Difference, Explanation
from autograder.records import Opaque

_CALL = "Only the parentheses after a function's name run it."
_PLAIN = "Take the numbers out of it first: hand in a NumPy array."
_ONE = "Reduce it to a single answer."

# id -> (what is wrong, follows "`name` "; hint)
_WORDS = {
    "none": (
        "is None.",
        "`print`, and methods that change an array in place such as `sort` and `fill`, give nothing back. "
        "What stands on the right of the equals sign?",
    ),
    "not-called": ("is a function, not what it gives: it was never called.", _CALL),
    "ragged-list": (
        "is a list or a tuple whose parts make no array: it is empty, or they differ in shape or kind.",
        "Which one of them is asked for, or how do they fit together into one array?",
    ),
    "lazy": (
        "is something that would make values one by one, but not the values themselves.",
        "Collect the values first.",
    ),
    "mapping": (
        "is a collection without positions, such as a dict or a set.",
        "Which of the values in it is asked for?",
    ),
    "foreign-array": ("belongs to another library.", _PLAIN),
    "too-large": (
        "is larger than an answer may be (limit answer_bytes).",
        "Compare its shape with the one that is asked for: which axis has grown?",
    ),
    "array-of-objects": (
        "is an array of things that are no numbers.",
        "Mixed lists, `dtype=object` and `...` make such arrays. Where did the first entry that is no number come in?",
    ),
    "array-of-text": (
        "is an array of text.",
        "Numbers in quotes, or beside text, become text. Compute with the numbers themselves.",
    ),
    "text-for-array": (
        "is text, not an array.",
        "Printing, `str` and f-strings make text for the eye. Hand in the array itself.",
    ),
    "number-for-array": (
        "is a single number, not an array.",
        "It was summed or indexed down to one number. Which axes should be left?",
    ),
    "array-of-bools": (
        "holds True and False, not numbers.",
        "A comparison gives truth values. Where does one stand that does not belong there?",
    ),
    "complex-numbers": ("holds complex numbers.", "Where did the imaginary part come in? Nothing here needs one."),
    "bool-as-text": (
        "is text; the truth value True or False is asked for, without quotes.",
        "Let a comparison give the answer and keep what it gives.",
    ),
    "bool-as-number": (
        "is a number; the truth value True or False is asked for.",
        "Let a comparison give the answer and keep what it gives.",
    ),
    "bool-as-array": (
        "is an array of many comparisons; one True or False about all of them is asked for.",
        "Two arrays are equal when all their entries are: `.all()` and `np.allclose` give one answer.",
    ),
    "numbers-for-bool": (
        "is an array of numbers; True or False is asked for.",
        "Compare, then hand in what the comparison says.",
    ),
    "empty": ("is empty.", "Which slice, loop or filter left nothing over?"),
    "number-as-text": (
        "is text; a number is asked for, without quotes.",
        "Hand in the number itself, not what is printed of it.",
    ),
    "bool-for-number": ("is True or False; a number is asked for.", "The question is how many, not whether."),
    "not-whole": (
        "is not a whole number.",
        "Something that is counted comes out whole. Which division or scale does not belong there?",
    ),
    "array-for-number": (
        "is a list or an array; one number is asked for.",
        "A shape is not yet a count. How do you get from it to a single number?",
    ),
    "not-finite": ("is not a finite number.", "Where is something divided by 0, or does a number grow without end?"),
    "wrong-kind": ("is of another kind than asked for.", "Look at what your last line makes, with `type(...)`."),
}

_TYPES = {
    **dict.fromkeys(
        "function method builtin_function_or_method method-wrapper method_descriptor wrapper_descriptor type ufunc "
        "_ArrayFunctionDispatcher partial vectorize".split(),
        "not-called",
    ),
    **dict.fromkeys(("list", "tuple"), "ragged-list"),
    **dict.fromkeys("generator map zip filter range enumerate reversed flatiter nditer coroutine".split(), "lazy"),
    **dict.fromkeys(
        "dict set frozenset dict_keys dict_values dict_items defaultdict Counter OrderedDict".split(), "mapping"
    ),
    **dict.fromkeys(
        "Tensor Parameter EagerTensor ArrayImpl DataFrame Series csr_matrix coo_matrix csc_matrix".split(),
        "foreign-array",
    ),
    "ndarray": "too-large",
    **dict.fromkeys(("array of U", "array of S", "array of T"), "array-of-text"),
    **dict.fromkeys(("array of O", "array of V", "array of M", "array of m"), "array-of-objects"),
}


def explain_kind(differences: Sequence[Difference]) -> tuple[Explanation, ...]:
    """The answer is of another kind than declared, in the same way on every input set."""
    slips = {find_slip(difference) for difference in differences}
    slip = slips.pop()
    if slips or slip is None:
        return ()
    said, hint = _WORDS[slip]
    return (Explanation(slip, f"`{differences[0].name}` {said}", hint),)


def find_slip(difference: Difference) -> str | None:
    """The id of what is wrong with the kind of an answer; None when its kind is as declared."""
    value, kind = difference.value, difference.kind
    if value is None:
        return "none"
    if isinstance(value, Opaque):
        return _TYPES.get(value.type_name, "wrong-kind")
    if shape_symbols(kind) is not None:
        return _find_array_slip(value)
    if kind == "bool":
        return _find_bool_slip(value)
    if kind == "text":
        return None if isinstance(value, str) else "wrong-kind"
    return _find_number_slip(value, whole=kind == "whole number")


def _find_array_slip(value: object) -> str | None:
    if isinstance(value, str):
        return "text-for-array"
    if not isinstance(value, np.ndarray):
        return "number-for-array"
    return {"b": "array-of-bools", "c": "complex-numbers"}.get(value.dtype.kind)


def _find_bool_slip(value: object) -> str | None:
    if isinstance(value, str):
        return "bool-as-text"
    if not isinstance(value, np.ndarray):
        return None if isinstance(value, bool) else "bool-as-number"
    if value.size == 0:
        return "empty"
    if value.dtype.kind != "b":
        return "numbers-for-bool" if value.size > 1 else "bool-as-number"
    return "bool-as-array" if value.size > 1 else None


def _find_number_slip(value: object, *, whole: bool) -> str | None:
    if isinstance(value, str):
        return "number-as-text"
    if isinstance(value, np.ndarray):
        if value.size != 1:
            return "array-for-number" if value.size else "empty"
        value = value.item()
    if isinstance(value, bool):
        return "bool-for-number"
    if isinstance(value, complex):
        return "complex-numbers"
    if isinstance(value, float) and whole:
        if not np.isfinite(value):
            return "not-finite"
        return None if value.is_integer() else "not-whole"
    return None
