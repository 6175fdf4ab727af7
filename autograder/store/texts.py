"""Texts that no database and no UTF-8 has bytes for, made storable and back."""

import re

_MARK = "\x10"
_UNSTORABLE = re.compile("[\x00\x10\ud800-\udfff]")
_STORED = re.compile("\x10([0-9a-f]{4})")


def escape_text(text: str) -> str:
    """A text without NUL and lone surrogates, which databases refuse. Any other text stays as it is."""
    return _UNSTORABLE.sub(lambda found: f"{_MARK}{ord(found[0]):04x}", text)


def restore_text(text: str) -> str:
    """The inverse of `escape_text`."""
    return _STORED.sub(lambda found: chr(int(found[1], 16)), text) if _MARK in text else text
