"""Captures what a person would have seen below a cell, up to a cap in bytes."""

import io
import os
import sys
import threading
from collections.abc import Callable
from typing import Any

Show = Callable[[str, bytes], None]
"""Takes a MIME type and data."""


class Capture:
    """Collects the outputs of one pass and passes them on, until its cap is reached.

    They are passed on by the thread that runs the cells, between whose words no other may speak: what other threads
    show waits for it, and what forked processes show is lost.
    """

    def __init__(self, show: Show, cap: int) -> None:
        self._show = show
        self._owner = os.getpid(), threading.get_ident()
        self._waiting: list[tuple[str, bytes]] = []
        self._cap = self._left = cap
        self.stdout = _Stream(self, "stream/stdout")
        self.stderr = _Stream(self, "stream/stderr")

    def close(self) -> None:
        """Forget what comes from now on. Loggers and threads keep the streams of a pass that is over."""
        self._left = 0

    def add(self, mime: str, data: bytes) -> None:
        """Pass on one output; text is cut at the cap, an image over it is dropped, and a notice says so."""
        if self._left <= 0:
            return
        if not self.is_mine():
            self._waiting.append((mime, data))
            return
        whole = len(data) <= self._left
        if whole or mime.startswith(("stream/", "text/plain")):
            self._show(mime, data[: self._left])
        self._left -= len(data)
        if not whole:
            self._left = 0
            notice = f"\n[output cut here: a submission may show {self._cap} bytes (limit output_bytes)]\n"
            self._show("stream/stderr", notice.encode())

    def flush(self) -> None:
        """Pass on what the streams hold."""
        self.stdout.flush()
        self.stderr.flush()
        if self._waiting and self.is_mine():
            waiting, self._waiting = self._waiting, []
            for mime, data in waiting:
                self.add(mime, data)

    def is_mine(self) -> bool:
        """Whether this is the thread that runs the cells."""
        return self._owner == (os.getpid(), threading.get_ident())


class _Stream(io.TextIOBase):
    """A text stream that hands over in pieces of some kilobytes."""

    encoding = "utf-8"
    errors = "replace"

    def __init__(self, capture: Capture, mime: str) -> None:
        self._capture = capture
        self._mime = mime
        self._parts: list[str] = []
        self._size = 0

    def writable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return False

    def write(self, text: str) -> int:
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        self._parts.append(text)
        self._size += len(text)
        if self._size > 8192:
            self.flush()
        return len(text)

    def flush(self) -> None:
        if self._parts and self._capture.is_mine():
            text, self._parts, self._size = "".join(self._parts), [], 0
            self._capture.add(self._mime, text.encode("utf-8", "replace"))


class Silence(io.TextIOBase):
    """A text stream that forgets; for passes whose output nobody reads."""

    encoding = "utf-8"
    errors = "replace"

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        return len(text)


def show_figures(capture: Capture | None) -> None:
    """Close the open Matplotlib figures; with a capture, each is passed on as PNG first."""
    pyplot: Any = sys.modules.get("matplotlib.pyplot")
    if pyplot is None or not pyplot.get_fignums():
        return
    if capture is not None:
        for number in pyplot.get_fignums()[:20]:
            picture = io.BytesIO()
            pyplot.figure(number).savefig(picture, format="png", dpi=72)
            capture.add("image/png", picture.getvalue())
    pyplot.close("all")
