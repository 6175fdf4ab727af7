"""Runs as a program of its own when the grader is root: gives up root, then becomes bubblewrap.

Student code must never run under host uid 0: the kernel does not enforce process limits there, and root
owns too much. The new uid may be unable to reach a Python below root's home, so while still root this
binds what the sandbox shows into a private mount namespace that the uid can traverse.

Standard library only, run with `-I -S`. Argument: JSON with `uid`, `stage` (a folder) and `binds`
([source, name in the stage]) and `argv`.
"""

import ctypes
import json
import os
import signal
import sys

_CLONE_NEWNS = 0x00020000
_MS_BIND, _MS_REC, _MS_PRIVATE = 4096, 16384, 1 << 18
_PR_SET_PDEATHSIG = 1


def main() -> None:
    order = json.loads(sys.argv[1])
    libc = ctypes.CDLL(None, use_errno=True)

    def call(stage: str, result: int) -> None:
        if result != 0:
            sys.exit(f"{stage}: {os.strerror(ctypes.get_errno())}")

    call("unshare", libc.unshare(_CLONE_NEWNS))
    call("mount /", libc.mount(b"none", b"/", None, ctypes.c_ulong(_MS_REC | _MS_PRIVATE), None))
    stage = order["stage"]
    os.makedirs(stage, mode=0o755, exist_ok=True)
    call("mount stage", libc.mount(b"tmpfs", stage.encode(), b"tmpfs", ctypes.c_ulong(0), b"mode=0755,size=64k"))
    for source, name in order["binds"]:
        target = os.path.join(stage, name)
        if os.path.isdir(source):
            os.mkdir(target)
        else:
            open(target, "w").close()
        call(f"bind {source}", libc.mount(source.encode(), target.encode(), None, ctypes.c_ulong(_MS_BIND), None))
    # Written by root it can never be lowered again: when memory runs out, student processes go first.
    with open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")
    os.chdir("/")
    os.setgroups([])
    os.setresgid(order["uid"], order["uid"], order["uid"])
    os.setresuid(order["uid"], order["uid"], order["uid"])
    # A change of uid clears it; bubblewrap sets its own when it starts.
    libc.prctl(_PR_SET_PDEATHSIG, ctypes.c_ulong(signal.SIGKILL), 0, 0, 0)
    os.execv(order["argv"][0], order["argv"])


if __name__ == "__main__":
    main()
