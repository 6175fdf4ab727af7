"""The ways in which student code can be kept apart."""

import os
from enum import StrEnum

from autograder.errors import UsageError

VARIABLE = "AUTOGRADER_SANDBOX"
"""The environment variable that says the mode where nothing else does; `--sandbox` sets it for all workers."""


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


def read_mode() -> SandboxMode:
    """The mode that the environment asks for; `auto` where it asks for none. `UsageError` for an unknown one."""
    asked = os.environ.get(VARIABLE, "") or SandboxMode.AUTO
    try:
        return SandboxMode(asked)
    except ValueError:
        raise UsageError(f"{VARIABLE}: there is no mode {asked!r}; the modes are {', '.join(SandboxMode)}") from None


UNWALLED = "It was run without a sandbox (--sandbox none): nothing kept its code from reading or changing anything."
"""A note on every result of mode `none`."""
