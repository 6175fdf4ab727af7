"""In what the sandbox modes differ. All else, every mode keeps; `none` keeps no wall and is left out there.

Each row is asserted to be as it stands here, in every mode (`test_differences.py`).
"""

NESTED, SINGLE, USER, BARE_USER, NONE = MODES = ("nested", "single", "user", "user-without-landlock", "none")
WALLED = (NESTED, SINGLE, USER, BARE_USER)
USERS = (USER, BARE_USER)
"""The mode `user` on a kernel that has Landlock, and on one that has not."""


def declare(nested: str, single: str, user: str, bare_user: str, none: str) -> dict[str, str]:
    """A row of the table."""
    return dict(zip(MODES, (nested, single, user, bare_user, none), strict=True))


DIFFERENCES: dict[str, dict[str, str]] = {
    # The tmpfs of a submission refuses a file too many; elsewhere a look at its files ends the submission.
    "more files than the limit": declare("refused", "ended", "ended", "ended", "ended"),
    "more bytes in files than the limit": declare("refused", "refused", "ended", "ended", "ended"),
    # Kernel-wide files of /proc, such as meminfo and cpuinfo.
    "what /proc says about the machine": declare("hidden", "seen", "hidden", "seen", "seen"),
    # Command lines; never memory, environment or descriptors.
    "processes of the machine": declare("hidden", "hidden", "hidden", "listed", "listed"),
    # Landlock refuses to open a file. That it is there, its size and its times are no secret to it.
    "whether a file is there": declare("hidden", "hidden", "seen", "seen", "seen"),
    "files that every user may read": declare("hidden", "hidden", "hidden", "seen", "seen"),
    # Everybody's /tmp is there beside the private folder. What is put there is removed with the submission.
    "folders that every user may write into": declare("hidden", "hidden", "refused", "open", "open"),
    # They are files in /dev/shm, wherever a program wants its own to be.
    "locks between processes": declare("work", "work", "refused", "work", "work"),
    # It gives memory that stays when its pages are let go of.
    "the zero device": declare("refused", "refused", "refused", "open", "open"),
    # Mode none cannot count processes without counting the whole desktop.
    "processes over the limit": declare("refused", "refused", "refused", "refused", "allowed"),
    # The student's process is the init of its namespace there.
    "a signal to itself": declare("ignored", "ended", "ended", "ended", "ended"),
    "a socket": declare("refused", "refused", "refused", "refused", "allowed"),
    "the course's files": declare("hidden", "hidden", "hidden", "hidden", "seen"),
}
