"""The command line of a guest behind bubblewrap. Root gives up root first, through `launcher.py`."""

import functools
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from autograder.errors import SandboxUnavailable
from autograder.sandbox.bubblewrap import START, Bind, Sole, build_command, find_hidden, list_binds

SANDBOX_UID = 61001
"""Who student code is to the host when the grader is root; no account of this number should exist."""

STAGE = "/run/autograder"
_DISABLES_USERNS = (0, 8)
"""The first bubblewrap with `--disable-userns`."""


def find_bubblewrap() -> str:
    """The path of bubblewrap. `SandboxUnavailable` where it is not installed."""
    bubblewrap = shutil.which("bwrap")
    if bubblewrap is None:
        container = ", or, as root in a container, grade with --sandbox user" if os.geteuid() == 0 else ""
        raise SandboxUnavailable(
            "bubblewrap is not installed, and student code is not run without a sandbox; "
            f"install it (Debian, Ubuntu: apt-get install bubblewrap){container}, and see `autograder doctor`"
        )
    return bubblewrap


@functools.cache
def can_disable_userns(bubblewrap: str) -> bool:
    """Whether this bubblewrap can forbid user namespaces inside."""
    said = subprocess.run([bubblewrap, "--version"], capture_output=True, text=True, check=False).stdout
    match = re.search(r"(\d+)\.(\d+)", said)
    return match is not None and (int(match[1]), int(match[2])) >= _DISABLES_USERNS


class Walled:
    """What is shown behind the wall for one course; `build_argv` makes command lines of it."""

    def __init__(self, course_folder: Path | None, preload: Sequence[str]) -> None:
        self.bubblewrap = find_bubblewrap()
        self._binds, self._package_path = list_binds(preload)
        self._hidden = find_hidden(course_folder, self._binds)

    def build_argv(self, settings: int, sole: Sole | None = None) -> list[str]:
        """The command that starts a guest whose settings a descriptor holds."""
        arguments = [START, str(settings), *self._package_path]
        if os.geteuid() != 0:
            return build_command(self.bubblewrap, self._binds, self._hidden, arguments, sole)
        staged = [Bind(Path(STAGE) / str(number), bind.target) for number, bind in enumerate(self._binds)]
        order = {
            "uid": SANDBOX_UID,
            "stage": STAGE,
            "binds": [[str(bind.source), str(number)] for number, bind in enumerate(self._binds)],
            "argv": build_command(self.bubblewrap, staged, self._hidden, arguments, sole),
        }
        launcher = Path(__file__).with_name("launcher.py")
        return [sys.executable, "-I", "-S", str(launcher), json.dumps(order)]
