"""Each declared difference between the modes is as declared."""

import os
import tempfile
from pathlib import Path

import pytest

from autograder.records import Ending

from .conftest import Room
from .differences import DIFFERENCES, USERS

_CAP_SYS_PTRACE = 19

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

LOOK = """
import os
def look(path, mode='rb'):
    try:
        os.listdir(path) if os.path.isdir(path) else open(path, mode).close()
        return True
    except OSError:
        return False
"""

PROBES = {
    "what /proc says about the machine": "told = 'seen' if look('/proc/meminfo') else 'hidden'",
    "processes of the machine": (
        f"told = 'listed' if look('/proc/{os.getpid()}') or look('/proc/{os.getpid()}/cmdline') else 'hidden'"
    ),
    "whether a file is there": "told = 'seen' if os.path.exists(OPEN_FILE) else 'hidden'",
    "files that every user may read": "told = 'seen' if look(OPEN_FILE) or look(OPEN_FOLDER) else 'hidden'",
    "folders that every user may write into": """
if os.path.exists(OPEN_FOLDER):
    doings = [
        lambda: open(f'{OPEN_FOLDER}/new', 'w'), lambda: open(OPEN_FILE, 'w'), lambda: open(OPEN_FILE, 'a'),
        lambda: os.truncate(OPEN_FILE, 1), lambda: os.mkdir(f'{OPEN_FOLDER}/folder'),
        lambda: os.symlink('/', f'{OPEN_FOLDER}/link'), lambda: os.mkfifo(f'{OPEN_FOLDER}/fifo'),
        lambda: os.link(OPEN_FILE, 'mine'), lambda: os.rename(OPEN_FILE, 'mine'),
        lambda: (open('mine', 'w'), os.rename('mine', f'{OPEN_FOLDER}/mine')), lambda: os.unlink(OPEN_FILE),
    ]
    done = []
    for number, doing in enumerate(doings):
        try:
            doing()
            done.append(number)
        except OSError:
            pass
    told = 'open' if len(done) > 6 else 'refused' if not done else f'partly open: {done}'
else:
    told = 'hidden'
""",
    "locks between processes": """
import multiprocessing
try:
    with multiprocessing.Lock():
        told = 'work'
except OSError:
    told = 'refused'
""",
    "the zero device": "told = 'open' if look('/dev/zero', 'r+b') else 'refused'",
    "processes over the limit": FORKS,
    "a socket": "import socket\ntry:\n    socket.socket()\n    told = 'allowed'\nexcept OSError:\n    told = 'refused'",
    "the course's files": "told = 'seen' if look(COURSE_FILE) else 'hidden'",
}


def test_every_difference_is_looked_at() -> None:
    apart = {"more files than the limit", "more bytes in files than the limit", "a signal to itself"}
    assert DIFFERENCES.keys() == PROBES.keys() | apart


@pytest.mark.parametrize("name", PROBES)
def test_a_difference_is_as_declared(room: Room, name: str, course_folder: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="conformance-open-") as folder:
        os.chmod(folder, 0o777)
        file = Path(folder) / "open"
        file.write_text("open to all")
        file.chmod(0o666)
        head = (
            f"OPEN_FOLDER, OPEN_FILE, COURSE_FILE = {folder!r}, {str(file)!r}, {str(course_folder / 'course.toml')!r}\n"
        )
        assert room.ask(f"{head}{LOOK}{PROBES[name]}") == DIFFERENCES[name][room.mode]


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
    if place == "deleted and open":
        require_tracing(walled)
    execution = walled.run(f"COUNT, SIZE, b = 100, 0, -1\n{HIDDEN[place]}{FILL}else:\n    b = 1\n")
    walled.assert_others_right(execution)
    if DIFFERENCES["more files than the limit"][walled.mode] == "refused":
        assert [each.answers["b"] for each in execution.passes] == [-1, -1]
    else:
        assert "64" in walled.read_ending(execution)[1]


def require_tracing(room: Room) -> None:
    """Root of a plain container cannot look at what processes of others hold; then nothing of this is promised."""
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    if room.mode in USERS and not int(status["CapEff"], 16) >> _CAP_SYS_PTRACE & 1:
        pytest.skip("root may not look at processes of other users here")


UNNAMED = {
    "deleted and open": "held.append(open('f', 'w+b'))\nheld[-1].write(block)\nheld[-1].flush()\nos.unlink('f')",
    "never named": "held.append(os.open('.', os.O_TMPFILE | os.O_RDWR))\nos.write(held[-1], block)",
    "deleted and mapped": """
with open('f', 'w+b') as file:
    file.write(block)
    file.flush()
    held.append(mmap.mmap(file.fileno(), 4096))
os.unlink('f')
""",
    "shared memory of a device": """
held.append(mmap.mmap(os.open('/dev/zero', os.O_RDWR), len(block)))
held[-1][:] = block
held[-1].madvise(mmap.MADV_DONTNEED)
""",
}
CHILD = """
import mmap, os, time
held, block = [], bytes(2**19)
told, telling = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        try:
            for _ in range(8):
                BODY
            os.write(telling, b'through')
            time.sleep(1000)
        finally:
            os._exit(0)
    os._exit(0)
os.close(telling)
b = -1
if os.read(told, 9):
    time.sleep(1)
    b = 1
"""


@pytest.mark.parametrize("kind", UNNAMED)
def test_what_has_no_name_counts_to_the_limit_on_files(room: Room, kind: str) -> None:
    """Also where an orphan holds it."""
    require_tracing(room)
    execution = room.run(CHILD.replace("BODY", UNNAMED[kind].strip().replace("\n", "\n                ")))
    room.assert_others_right(execution)
    is_refused = DIFFERENCES["more bytes in files than the limit"][room.mode] == "refused"
    if is_refused or (kind == "shared memory of a device" and DIFFERENCES["the zero device"][room.mode] == "refused"):
        assert [each.answers["b"] for each in execution.passes] == [-1, -1]
    else:
        assert "2 MiB" in room.read_ending(execution)[1]
