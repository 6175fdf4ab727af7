"""Runs a command as on a kernel that has no Landlock: its system calls are not there for it and all that it starts."""

import errno
import os
import sys

import pyseccomp


def main() -> None:
    """Become the command that the arguments name."""
    program = pyseccomp.SyscallFilter(pyseccomp.ALLOW)
    for name in ("landlock_create_ruleset", "landlock_add_rule", "landlock_restrict_self"):
        program.add_rule(pyseccomp.ERRNO(errno.ENOSYS), name)
    program.load()
    os.execv(sys.argv[1], sys.argv[1:])


if __name__ == "__main__":
    main()
