"""Python's parser on the text of students, of which nothing reaches a person by the way."""

import ast
import functools
import warnings

_MAX_CACHED_CHARS = 4_000


def parse_python(source: str) -> ast.Module | None:
    """The tree of a text; None where it is no Python, or more than the parser takes. To be looked at only.

    Its warnings, which quote the text, are for whoever wrote it.
    """
    return _parse_cached(source) if len(source) <= _MAX_CACHED_CHARS else _parse(source)


def _parse(source: str) -> ast.Module | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError):
        return None


# A cell is read for its names, and again for what it may have done to others.
_parse_cached = functools.lru_cache(maxsize=8)(_parse)
