"""In what the sandbox modes differ. All else, every mode keeps; `none` keeps no wall and is left out there.

Each row is asserted to be as it stands here, in every mode (`test_differences.py`).
"""

NESTED, SINGLE, USER, NONE = MODES = ("nested", "single", "user", "none")
WALLED = (NESTED, SINGLE, USER)

DIFFERENCES: dict[str, dict[str, str]] = {
    # The tmpfs of a submission refuses a file too many; elsewhere a look at its files ends the submission.
    "more files than the limit": {NESTED: "refused", SINGLE: "ended", USER: "ended", NONE: "ended"},
    "more bytes in files than the limit": {NESTED: "refused", SINGLE: "refused", USER: "ended", NONE: "ended"},
    # Kernel-wide files of /proc, such as meminfo and cpuinfo.
    "what /proc says about the machine": {NESTED: "hidden", SINGLE: "seen", USER: "seen", NONE: "seen"},
    # Numbers and command lines; never memory, environment or descriptors.
    "processes of the machine": {NESTED: "hidden", SINGLE: "hidden", USER: "listed", NONE: "listed"},
    # Everybody's /tmp is there beside the private folder. What is put there is removed with the submission.
    "files that every user may read": {NESTED: "hidden", SINGLE: "hidden", USER: "seen", NONE: "seen"},
    # Mode none cannot count processes without counting the whole desktop.
    "processes over the limit": {NESTED: "refused", SINGLE: "refused", USER: "refused", NONE: "allowed"},
    # The student's process is the init of its namespace there.
    "a signal to itself": {NESTED: "ignored", SINGLE: "ended", USER: "ended", NONE: "ended"},
    "a socket": {NESTED: "refused", SINGLE: "refused", USER: "refused", NONE: "allowed"},
    "the course's files": {NESTED: "hidden", SINGLE: "hidden", USER: "hidden", NONE: "seen"},
}
