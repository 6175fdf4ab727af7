"""What is said about a mode is said once, however many workers take it."""

import subprocess
import sys

SAY = """
import os
from autograder.sandbox import notices
children = []
for _ in range(4):
    pid = os.fork()
    if pid == 0:
        notices.note_fallback("it does not work")
        notices.warn_unwalled()
        os._exit(0 if notices.has_fallen_back() else 1)
    children.append(pid)
print([os.waitpid(pid, 0)[1] for pid in children], notices.has_fallen_back())
"""


def test_four_workers_say_it_once_and_all_know_it() -> None:
    done = subprocess.run([sys.executable, "-c", SAY], capture_output=True, text=True, check=True)
    assert done.stdout == "[0, 0, 0, 0] True\n"
    assert done.stderr.count("--sandbox single") == 1
    assert done.stderr.count("WARNING: --sandbox none") == 1
