"""How names of people are compared. Pure functions over texts."""

import re
import unicodedata
from collections.abc import Collection, Iterable

_ACCENTS = re.compile("[\u0300-\u036f]")
"""Of Latin, Greek and Cyrillic letters alone: in other scripts such marks are vowels, and tell names apart."""
_MAX_WORDS = 8


class Index:
    """Which students a key stands for; empty keys are none."""

    def __init__(self, pairs: Iterable[tuple[str, str]]) -> None:
        self._students: dict[str, set[str]] = {}
        for key, student in pairs:
            if key:
                self._students.setdefault(key, set()).add(student)

    def find(self, key: str) -> set[str]:
        """Every student that this key stands for."""
        return set(self._students.get(key, ()))

    def find_any(self, keys: Collection[str]) -> set[str]:
        """Every student that one of these keys stands for."""
        return set().union(*(self.find(key) for key in keys))


def fold_text(text: str) -> str:
    """The text without what writers differ in: case, width and composition of letters, spaces."""
    return " ".join(unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold()).split())


def find_forms(name: str) -> set[str]:
    """All ways to run a name's words together, as LMSs do: `Ada Lovelace` and `Lovelace, Ada` give `lovelaceada` too.

    Lower case letters and digits without accents. Words keep their order and may begin with any of them, since nobody
    knows where a family name begins (`vanderbergjan`).
    """
    last, comma, first = fold_text(name).partition(",")
    words = [_strip_word(word) for word in (f"{first} {last}" if comma else last).split()][:_MAX_WORDS]
    return {"".join(words[at:] + words[:at]) for at in range(len(words))} - {""}


def _strip_word(word: str) -> str:
    bare = _ACCENTS.sub("", unicodedata.normalize("NFKD", word))
    return "".join(letter for letter in bare if letter.isalnum() or unicodedata.category(letter).startswith("M"))
