"""What stopped a cell, in words. Pure.

An exception's text may hold numbers of a hidden input set, and a student can write anything into it. So it is
matched against patterns and never quoted; names are said only when they are known beforehand.
"""

import builtins
import difflib
import re
from collections.abc import Collection

import numpy as np

from autograder.marking.diagnosis.nouns import Explanation
from autograder.records import CellRun, Ending

_LONGEST_NAME = 40
"""Longer names are like no other: to compare two takes time that grows with the square of their length, or faster."""

_ENDINGS = {
    Ending.TIMEOUT: (
        "timeout",
        "Your cell was still running when its time was up.",
        "Does every loop come to its end? Does it repeat work that is needed once?",
    ),
    Ending.KILLED: (
        "killed",
        "Your cell had to be ended by force.",
        "Does it start programs, fill the disk or print without end?",
    ),
    Ending.EXITED: (
        "exited",
        "Your cell ends Python itself.",
        "Calls such as `exit()` and `quit()` stop the whole notebook. Nothing below them is run.",
    ),
    Ending.OUT_OF_MEMORY: (
        "out-of-memory",
        "Your cell asked for more memory than a submission may have (limit memory_bytes).",
        "Write down the shape of each array in it: which one grows too large?",
    ),
}

# (exception types, pattern of the text, id, what is wrong, hint)
_PATTERNS = (
    (
        "BlockingIOError RuntimeError OSError",
        r"^\[Errno 11\]|^can't start new thread",
        "too-many-processes",
        "it starts more processes and threads than a submission may have at once (limit processes)",
        "Does a loop start them without waiting for their end?",
    ),
    (
        "OSError",
        r"^\[Errno 24\]",
        "too-many-open",
        "it keeps too many files, pipes or processes open at once",
        "Does it close what it opens? Exercises of this kind need none of it.",
    ),
    (
        "OSError",
        r"^\[Errno 28\]",
        "disk-full",
        "it writes more than a submission may keep in files (limit disk_bytes), or more files (limit files)",
        "Everything that is needed is in the lesson's variables; no file has to be written.",
    ),
    (
        "OSError",
        r"^\[Errno 27\]|^\d+ requested and \d+ written",
        "disk-full",
        "it writes more than a submission may keep in files (limit disk_bytes)",
        "Everything that is needed is in the lesson's variables; no file has to be written.",
    ),
    (
        "ValueError",
        r"^matmul:|shapes .* not aligned|dimensions? mismatch",
        "matmul-shapes",
        "a matrix product of two arrays whose shapes do not fit",
        "The last axis of the left array must be as long as the last but one of the right array. Write both "
        "shapes down: which array is wrong, or which stands the wrong way?",
    ),
    (
        "ValueError",
        r"could not be broadcast together|non-broadcastable output",
        "broadcast-shapes",
        "an operation entry by entry on two arrays whose shapes do not fit",
        "`*`, `+`, `-`, `/` and comparisons pair entries, counted from the last axis. Should it be a matrix "
        "product, or are the axes in another order?",
    ),
    (
        "ValueError AxisError",
        r"axes don't match array",
        "axes-mismatch",
        "a transpose with another number of axes than the array has",
        "PyTorch names two axes to swap, NumPy's `transpose` wants the new order of all axes.",
    ),
    (
        "AxisError IndexError ValueError",
        r"axis -?\d+ is out of bounds|repeated axis|repeated entry in axis",
        "axes-mismatch",
        "an axis that the array does not have",
        "How many axes does the array have? They are counted from 0, or from -1 backwards.",
    ),
    (
        "ValueError",
        r"truth value of an array",
        "ambiguous-truth",
        "a yes or no that was asked of a whole array",
        "Comparing arrays gives one truth value for each entry; `if`, `and`, `or`, `not` and `bool` need a "
        "single one. Which question about all entries is meant?",
    ),
    (
        "ValueError",
        r"cannot reshape array",
        "reshape-size",
        "a reshape to another number of entries",
        "Reshaping keeps all entries. Is a length written down as a number that belongs to one text only, "
        "or is a transpose meant?",
    ),
    (
        "ValueError",
        r"could not broadcast input array|setting an array element with a sequence|inhomogeneous",
        "ragged-assignment",
        "an assignment of an array to a place of another shape",
        "Compare the shape of the place with the shape of what goes in.",
    ),
    (
        "ValueError",
        r"einstein|einsum|operand has (more|fewer) dimensions|subscripts? (string|must)",
        "einsum-subscripts",
        "an `einsum` whose letters do not fit its arrays",
        "One letter for each axis, the same letter for axes of one length; letters missing on the right are "
        "summed over.",
    ),
    (
        "ValueError",
        r"values to unpack",
        "unpacking",
        "an unpacking into another number of names than there are values",
        "How many axes does a shape of this array have?",
    ),
    (
        "ValueError",
        r"concatenat|all input arrays must have the same shape|all the input array",
        "stacking",
        "a stacking of arrays whose shapes do not fit",
        "All of them need the same number of axes, and the same lengths but for the one along which they "
        "are put together.",
    ),
    (
        "ValueError",
        r"invalid literal|could not convert string",
        "text-as-number",
        "a text that was taken for a number",
        "Compute with the numbers themselves instead of with what is printed of them.",
    ),
    (
        "AttributeError",
        r"'numpy\.ndarray' object has no attribute",
        "array-attribute",
        "a method or an attribute that NumPy's arrays do not have",
        "PyTorch and pandas have names of their own. Look for NumPy's name, which may be a function of `np`.",
    ),
    (
        "AttributeError",
        r"module 'numpy",
        "module-attribute",
        "a name that NumPy does not have",
        "Check its spelling; some names of other libraries are called differently in NumPy.",
    ),
    (
        "AttributeError TypeError",
        r"'?NoneType'?",
        "none-used",
        "a value that is None",
        "`print`, and methods that work in place such as `sort`, give nothing back. Which name became None?",
    ),
    (
        "AttributeError TypeError",
        r"'?ellipsis'?",
        "placeholder-used",
        "a `...` that is still in its place",
        "An answer is computed from one that is not filled in yet.",
    ),
    (
        "AttributeError TypeError",
        r"builtin_function_or_method|'(function|method)'",
        "not-called",
        "a function that was used without being called",
        "Only the parentheses after a function's name run it.",
    ),
    (
        "TypeError",
        r"object is not callable",
        "not-callable",
        "parentheses behind something that is no function",
        "Indexing takes square brackets, and a product needs its sign. Or did a name of your own cover a function?",
    ),
    (
        "TypeError",
        r"cannot be interpreted as an integer|expected (a sequence of integers|int)",
        "whole-number-needed",
        "an argument that has to be a whole number and is none",
        "Does this function take each length on its own, or all of them as one tuple? And `/` gives no "
        "whole number, `//` does.",
    ),
    (
        "TypeError",
        r"only (integer|length-1|size-1|0-dimensional)",
        "single-number-needed",
        "an array in a place where one number is needed",
        "Which of its entries is meant? Functions of `math` take single numbers, those of `np` take arrays.",
    ),
    (
        "TypeError",
        r"required positional argument|unexpected keyword|takes .* argument|got multiple values",
        "wrong-arguments",
        "a call with other arguments than the function takes",
        "Read the function's help for the names and the order of its arguments.",
    ),
    (
        "TypeError UFuncTypeError _UFuncOutputCastingError",
        r"same_kind|Cannot cast ufunc",
        "in-place-cast",
        "a result that does not fit into the array's kind of numbers",
        "An array of whole numbers cannot take fractions in place. Make a new array instead.",
    ),
)

# exception type -> (id, what is wrong, hint)
_TYPES = {
    "SyntaxError": (
        "syntax-error",
        "Python cannot read it",
        "Run the cell: Python marks a line. Look at it and at the one above it: a bracket, a quote, a colon "
        "or a comma is missing, or one too many.",
    ),
    "IndentationError": (
        "syntax-error",
        "its lines are not indented as Python needs it",
        "Lines of one block begin in one column; only after a colon they move to the right.",
    ),
    "TabError": ("syntax-error", "it mixes tabs and blanks at the beginning of lines", "Use blanks only."),
    "ModuleNotFoundError": (
        "import-error",
        "it imports a module that is not there",
        "NumPy is enough for this exercise. Is the name spelled right?",
    ),
    "ImportError": ("import-error", "an import fails", "NumPy is enough for this exercise. Is the name spelled right?"),
    "IndexError": (
        "index-error",
        "it reads a position that does not exist",
        "Positions are counted from 0, and other inputs have other lengths. Where does the index come from?",
    ),
    "KeyError": ("key-error", "it looks up a key that is not there", "Does the key exist for every input?"),
    "ZeroDivisionError": ("zero-division", "it divides by 0", "Which quantity is 0 there, and should it be?"),
    "LinAlgError": (
        "linear-algebra-error",
        "a function of linear algebra cannot work on this matrix",
        "No step of this kind needs the inverse of a matrix. What do you want to reach?",
    ),
    "AssertionError": (
        "assertion-error",
        "a check of its own fails",
        "What does the assert expect, and does it hold for every input?",
    ),
    "RecursionError": ("recursion-error", "a function calls itself without end", "When does it stop?"),
    "MemoryError": (
        "out-of-memory",
        "it asks for more memory than a submission may have (limit memory_bytes)",
        "Write down the shape of each array in it: which one grows too large?",
    ),
    "FileNotFoundError": (
        "file-error",
        "it reads a file that is not there",
        "Everything that is needed is in the lesson's variables.",
    ),
    "PermissionError": (
        "file-error",
        "it does something with files or programs that is not allowed here",
        "Everything that is needed is in the lesson's variables.",
    ),
    "OSError": (
        "file-error",
        "it does something with files or the network that is not possible here",
        "Everything that is needed is in the lesson's variables.",
    ),
    "EOFError": ("input-asked", "it waits for somebody to type", "Nobody sits at the keyboard when this is run."),
    "StdinNotImplementedError": (
        "input-asked",
        "it waits for somebody to type",
        "Nobody sits at the keyboard when this is run.",
    ),
    "NotImplementedError": ("not-implemented", "a part of it is left open", "Fill in the part that raises this error."),
    "UnboundLocalError": (
        "unbound-local",
        "a function uses a name of its own before giving it a value",
        "A name that a function assigns is its own. Hand the value in as an argument.",
    ),
}

_OUTSIDERS = {
    "torch": "PyTorch",
    "F": "PyTorch",
    "nn": "PyTorch",
    "tf": "TensorFlow",
    "jnp": "JAX",
    "pd": "pandas",
    "plt": "Matplotlib",
    "math": "the module `math`",
    "numpy": "NumPy, which is called `np` here",
    "scipy": "SciPy",
}
_UNDEFINED = re.compile(r"name '([^\W\d]\w*)' is not defined")


def explain_run(run: CellRun, known: Collection[str]) -> Explanation | None:
    """Why a cell ended as it did; None when it ended well. `known` are names that may be said."""
    if run.ending is Ending.TIMEOUT and run.text:
        # Only the host says that time is up, and its words name the limit.
        kind, said, hint = _ENDINGS[run.ending]
        return Explanation(kind, f"{said.removesuffix('.')}: {run.text}.", hint)
    if run.ending in _ENDINGS:
        return Explanation(*_ENDINGS[run.ending])
    if run.ending is not Ending.ERROR:
        return None
    if run.error == "NameError":
        return _explain_undefined(run.text, known)
    for types, pattern, kind, said, hint in _PATTERNS:
        if run.error in types.split() and re.search(pattern, run.text[:2000]):
            return Explanation(kind, f"Your cell stopped with {_name_error(run.error)}: {said}.", hint)
    kind, said, hint = _TYPES.get(
        run.error, ("cell-failed", "", "Run the notebook from the top and read the last line of the error.")
    )
    return Explanation(kind, f"Your cell stopped with {_name_error(run.error)}{': ' if said else ''}{said}.", hint)


def _name_error(error: str) -> str:
    """The exception's type with an article, where it is one that Python or NumPy defines."""
    built_in = getattr(builtins, error, None)
    known = (
        (isinstance(built_in, type) and issubclass(built_in, BaseException)) or error in _TYPES or error == "AxisError"
    )
    if not known:
        return "an error"
    return f"{'an' if error[0] in 'AEIOU' else 'a'} {error}"


def _explain_undefined(text: str, known: Collection[str]) -> Explanation:
    match = _UNDEFINED.search(text[:2000])
    name = match[1] if match else ""
    lead = "Your cell stopped with a NameError: "
    if name in _OUTSIDERS:
        said = f"{lead}`{name}` is not there: {_OUTSIDERS[name]} was not imported."
        return Explanation("undefined-name", said, "Everything here can be done with `np`.")
    if name in known:
        said = f"{lead}`{name}` is used before it has a value."
        return Explanation(
            "undefined-name",
            said,
            "Does the line that gives it a value stand above, and is it run? One equals sign assigns, two compare.",
        )
    if name and hasattr(np, name) and not name.startswith("_"):
        said = f"{lead}`{name}` is not defined on its own."
        return Explanation("undefined-name", said, "NumPy's functions begin with `np.`.")
    near = find_near(name, known) if name else None
    meant = f", close to `{near}`" if near else ""
    return Explanation(
        "undefined-name",
        f"{lead}it uses a name that nothing has given a value to{meant}.",
        "Check the spelling, capital and small letters too, and that the name is assigned above.",
    )


def find_near(name: str, known: Collection[str]) -> str | None:
    """The known name that a name was probably meant to be."""
    if len(name) > _LONGEST_NAME:
        return None
    known = [word for word in known if len(word) <= _LONGEST_NAME]
    folded = {word.casefold().replace("_", ""): word for word in known}
    exact = folded.get(name.casefold().replace("_", ""))
    return exact or next(iter(difflib.get_close_matches(name, known, n=1, cutoff=0.8)), None)
