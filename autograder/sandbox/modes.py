"""The ways in which student code can be kept apart."""

from enum import StrEnum


class SandboxMode(StrEnum):
    """How student code is kept apart; what each mode promises stands in docs/sandbox.md."""

    AUTO = "auto"
    """`nested` where it works, otherwise `single`."""
    NESTED = "nested"
    """Namespaces for each submission inside one bubblewrap."""
    SINGLE = "single"
    """A bubblewrap for each submission."""
    USER = "user"
    """A user for each submission; the grader must be root."""
    NONE = "none"
    """No wall at all, for a teacher's own files."""


UNWALLED = "It was run without a sandbox (--sandbox none): nothing kept its code from reading or changing anything."
"""A note on every result of mode `none`."""
