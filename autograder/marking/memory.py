"""Marks made before. Equal answers get the mark that they got, and the hidden test does not run again.

In a class most right answers are equal to the last bit, and so are many wrong ones. A test that reads nothing but our
fixtures depends on the answers that it reads and on nothing else; what is said of a lost mark depends on all answers
of its exercise and on how its cells ended.
"""

import functools
import hashlib
import struct
from collections.abc import Callable, Hashable, Iterable
from typing import Any

import numpy as np

from autograder.marking.explain import Attempt, HiddenTest
from autograder.records import Execution, Mark

_MOST = 10_000
"""Marks that are remembered; about a kilobyte each."""

_Key = tuple[HiddenTest, tuple[str, ...], tuple[bytes, ...], Hashable]


class Memory:
    """The marks of one marking session."""

    def __init__(self) -> None:
        self._marks: dict[_Key, Mark] = {}
        self._reads: dict[HiddenTest, set[tuple[str, ...]]] = {}

    def open(self, execution: Execution, attempt: Callable[[], Attempt] | None, *, with_known: bool) -> "Recollection":
        """Look at one execution.

        attempt: gives the same at each call; None where lost marks are not explained.
        with_known: whether the known mistakes explain them, too.
        """
        return Recollection(self, _digest_answers(execution), attempt, with_known=with_known)

    def find(self, test: HiddenTest, digests: dict[str, bytes], context: Hashable) -> Mark | None:
        """The mark of the same test for answers of these digests."""
        for names in self._reads.get(test, ()):
            if (mark := self._marks.get((test, names, _pick(digests, names), context))) is not None:
                return mark
        return None

    def keep(
        self, test: HiddenTest, names: Iterable[str], digests: dict[str, bytes], context: Hashable, mark: Mark
    ) -> None:
        """Remember a mark that depends on these answers and on the context."""
        if len(self._marks) >= _MOST:
            self._marks.clear()
            self._reads.clear()
        read = tuple(sorted(names))
        self._reads.setdefault(test, set()).add(read)
        self._marks[test, read, _pick(digests, read), context] = mark


class Recollection:
    """What is remembered of one execution's answers."""

    def __init__(
        self,
        memory: Memory,
        digests: dict[str, bytes],
        attempt: Callable[[], Attempt] | None,
        *,
        with_known: bool,
    ) -> None:
        self._memory = memory
        self._digests = digests
        self._attempt = attempt
        self._with_known = with_known
        self._contexts: dict[str, bytes] = {}

    def recall(self, test: HiddenTest) -> Mark | None:
        """The mark that these answers got before."""
        if not test.is_pure:
            return None
        passed = self._memory.find(test, self._digests, "passed")
        return passed or self._memory.find(test, self._digests, self._build_context(test))

    def keep(self, test: HiddenTest, read: Iterable[str], mark: Mark) -> None:
        """Remember the mark of a test that has read these answers."""
        if not test.is_pure:
            return
        if mark.outcome == "passed":
            self._memory.keep(test, read, self._digests, "passed", mark)
            return
        also = self._attempt().answers[test.exercise] if self._attempt is not None else ()
        self._memory.keep(test, {*read, *also}, self._digests, self._build_context(test), mark)

    def _build_context(self, test: HiddenTest) -> Hashable:
        if self._attempt is None:
            return "unexplained"
        if test.exercise not in self._contexts:
            attempt = self._attempt()
            errors = (tuple(runs) for runs in attempt.errors[test.exercise])
            # A digest: students choose how long the texts are.
            self._contexts[test.exercise] = _digest((*errors, *attempt.assigned[test.exercise], attempt.after_hidden))
        return self._with_known, self._contexts[test.exercise]


def _pick(digests: dict[str, bytes], names: Iterable[str]) -> tuple[bytes, ...]:
    return tuple(digests.get(name, b"") for name in names)


def _digest_answers(execution: Execution) -> dict[str, bytes]:
    """A digest of each answer's values on all input sets."""
    names = {name for one_pass in execution.passes for name in one_pass.answers}
    return {name: _digest(one_pass.answers.get(name, ...) for one_pass in execution.passes) for name in names}


def _digest(values: Iterable[object]) -> bytes:
    hashed = hashlib.blake2b(digest_size=16)
    for value in values:
        if isinstance(value, np.ndarray):
            head, data = _build_head(value.dtype, value.shape), value.tobytes()
        elif isinstance(value, float):
            head, data = b"float", struct.pack("<d", value)
        else:
            head, data = type(value).__name__.encode(), repr(value).encode("utf-8", "surrogatepass")
        hashed.update(struct.pack("<QQ", len(head), len(data)) + head + data)
    return hashed.digest()


@functools.lru_cache(maxsize=256)
def _build_head(dtype: np.dtype[Any], shape: tuple[int, ...]) -> bytes:
    return f"{dtype.str}{shape}".encode()
