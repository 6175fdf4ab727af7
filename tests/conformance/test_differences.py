"""Each declared difference between the modes is as declared."""

import os
import tempfile
from pathlib import Path

import pytest

from autograder.records import Ending

from .conftest import Room
from .differences import DIFFERENCES, USER

FILL = """
import os, time
try:
    for number in range(COUNT):
        with open(f'{number}', 'wb') as file:
            file.write(bytes(SIZE))
    time.sleep(1)
except OSError:
    b = -1
"""

HIDDEN = {
    "in a folder that cannot be read": """
import os
os.makedirs('closed', exist_ok=True)
os.chmod('closed', 0o300)
os.chdir('closed')
""",
    "deeper than a path can name": """
import os
for _ in range(18):
    os.makedirs('n' * 250, exist_ok=True)
    os.chdir('n' * 250)
""",
    "deleted and open": """
import builtins, os
held = []


def open(name, mode):
    held.append(builtins.open(name, mode))
    os.unlink(name)
    return builtins.open(os.devnull, mode)
""",
}

FORKS = """
import subprocess
made = []
try:
    for _ in range(30):
        made.append(subprocess.Popen(['/usr/bin/sleep', '1000']))
    told = 'allowed'
except OSError:
    told = 'refused'
for process in made:
    process.kill()
    process.wait()
"""

PROBES = {
    "what /proc says about the machine": "import os\ntold = 'seen' if os.path.exists('/proc/meminfo') else 'hidden'",
    "processes of the machine": f"import os\ntold = 'listed' if os.path.exists('/proc/{os.getpid()}') else 'hidden'",
    "files that every user may read": "import os\ntold = 'seen' if os.access(OPEN_FILE, os.R_OK) else 'hidden'",
    "processes over the limit": FORKS,
    "a socket": "import socket\ntry:\n    socket.socket()\n    told = 'allowed'\nexcept OSError:\n    told = 'refused'",
    "the course's files": "import os\ntold = 'seen' if os.access(COURSE_FILE, os.R_OK) else 'hidden'",
}


def test_every_difference_is_looked_at() -> None:
    apart = {"more files than the limit", "more bytes in files than the limit", "a signal to itself"}
    assert DIFFERENCES.keys() == PROBES.keys() | apart


@pytest.mark.parametrize("name", PROBES)
def test_a_difference_is_as_declared(room: Room, name: str, course_folder: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="conformance-open-") as folder:
        os.chmod(folder, 0o755)
        file = Path(folder) / "open"
        file.write_text("open to all")
        head = f"OPEN_FILE, COURSE_FILE = {str(file)!r}, {str(course_folder / 'course.toml')!r}\n"
        assert room.ask(head + PROBES[name]) == DIFFERENCES[name][room.mode]


def test_a_signal_that_a_process_sends_itself_is_heard_as_declared(room: Room) -> None:
    execution = room.run("import os\nos.kill(os.getpid(), 15)\nb = n")
    room.assert_others_right(execution)
    ending, _ = room.read_ending(execution)
    assert ending is (Ending.OK if DIFFERENCES["a signal to itself"][room.mode] == "ignored" else Ending.KILLED)


@pytest.mark.parametrize(
    ("name", "count", "size"),
    [("more files than the limit", 100, 0), ("more bytes in files than the limit", 8, 2**19)],
)
def test_files_over_the_limit_meet_it_as_declared(room: Room, name: str, count: int, size: int) -> None:
    execution = room.run(f"COUNT, SIZE = {count}, {size}\n{FILL}")
    room.assert_others_right(execution)
    ending, text = room.read_ending(execution)
    if DIFFERENCES[name][room.mode] == "refused":
        assert [each.answers["b"] for each in execution.passes] == [-1, -1]
    else:
        assert ending is Ending.KILLED
        assert "2 MiB" in text
        assert "64" in text


@pytest.mark.parametrize("place", HIDDEN)
def test_files_over_the_limit_are_found_where_student_code_hides_them(walled: Room, place: str) -> None:
    if walled.mode == USER and place == "deleted and open":
        pytest.skip("what is deleted is counted by a mount of its own only")
    execution = walled.run(f"COUNT, SIZE, b = 100, 0, -1\n{HIDDEN[place]}{FILL}else:\n    b = 1\n")
    walled.assert_others_right(execution)
    if DIFFERENCES["more files than the limit"][walled.mode] == "refused":
        assert [each.answers["b"] for each in execution.passes] == [-1, -1]
    else:
        assert "64" in walled.read_ending(execution)[1]
