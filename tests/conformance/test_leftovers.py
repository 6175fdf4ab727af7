"""Nothing of a submission is there for the next one, for one beside it, or on the machine; in every mode."""

import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from autograder.sandbox.session import Session

from .conftest import Room
from .differences import BARE_USER, NONE, SINGLE, USERS

PLACES = ("/tmp", "/var/tmp", "/dev/shm", "/run/lock", "/dev/mqueue")

PLANT = """
import os, subprocess, tempfile
places = [tempfile.gettempdir(), os.environ['HOME'], os.getcwd(), *PLACES]
for place in places:
    try:
        os.makedirs(f'{place}/{MARK}-folder')
        open(f'{place}/{MARK}', 'w').close()
        open(f'{place}/{MARK}-folder/file', 'w').close()
    except OSError:
        pass
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for fd in range(256):
            try:
                os.close(fd)
            except OSError:
                pass
        os.execv('/usr/bin/sleep', ['sleep', SLEEP])
    os._exit(0)
told = [name for name in os.listdir() if MARK not in name]
"""

LOOK = """
import os, tempfile
places = [tempfile.gettempdir(), os.environ['HOME'], os.getcwd(), *PLACES]
told = [sorted(os.listdir()), sorted(os.listdir(tempfile.gettempdir()))]
told.append([])
for place in places:
    try:
        told[-1] += [place for name in os.listdir(place) if MARK in name]
    except OSError:
        pass
"""


def find_sleepers(number: str) -> list[int]:
    """Processes of the machine that are `sleep NUMBER`."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdecimal():
            try:
                words = Path(f"/proc/{name}/cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if number.encode() in words:
                found.append(int(name))
    return found


def await_no_sleepers(number: str) -> list[int]:
    end = time.monotonic() + 30
    while (found := find_sleepers(number)) and time.monotonic() < end:
        time.sleep(0.02)
    return found


def find_files(mark: str) -> list[str]:
    return [f"{place}/{name}" for place in PLACES if os.path.isdir(place) for name in os.listdir(place) if mark in name]


def count_system_v() -> list[int]:
    return [len(Path(f"/proc/sysvipc/{kind}").read_text().splitlines()) for kind in ("msg", "sem", "shm")]


def build_mark() -> tuple[str, str]:
    """A name, and a number of seconds that no other process sleeps."""
    return f"mark-{secrets.token_hex(8)}", f"{1000 + secrets.randbelow(10**6)}.{secrets.randbelow(10**9)}"


def test_nothing_is_left_on_the_machine_and_the_next_submission_has_an_empty_folder(room: Room) -> None:
    mark, sleep = build_mark()
    before = count_system_v()
    head = f"MARK, SLEEP = {mark!r}, {sleep!r}\nPLACES = {PLACES}\n"
    assert room.ask(head + PLANT) == []
    if room.mode == NONE:
        # Mode none removes the private folder alone.
        for file in find_files(mark):
            subprocess.run(["rm", "-r", file], check=True)
    assert find_sleepers(sleep) == []
    assert find_files(mark) == []
    assert count_system_v() == before
    assert room.ask(head + LOOK) == [[], [], []]


HEADLESS = """
import ctypes, os, threading, time
libc = ctypes.CDLL(None)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        libc.prctl(15, NAME.encode(), 0, 0, 0)
        threading.Thread(target=time.sleep, args=(600,)).start()
        libc.syscall(60 if os.uname().machine == 'x86_64' else 93, 0)
    os._exit(0)
os.wait()
time.sleep(0.2)
told = []
"""


def find_named(name: str) -> list[int]:
    """Processes of the machine whose first thread has this name, also when that one has ended and others have not."""
    found = []
    for number in filter(str.isdecimal, os.listdir("/proc")):
        try:
            state = Path(f"/proc/{number}/stat").read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        if f"({name})" in state:
            found.append(int(number))
    return found


def test_a_process_whose_first_thread_has_ended_ends_with_its_submission(room: Room) -> None:
    name = f"hl{secrets.token_hex(5)}"
    assert room.ask(f"NAME = {name!r}\n{HEADLESS}") == []
    assert find_named(name) == []


DEEP = """
import os, time
os.makedirs(MARK)
os.chdir(MARK)
for _ in range(DEPTH):
    os.mkdir(NAME)
    os.chdir(NAME)
# So that whoever looks at the files sees them while this cell runs.
time.sleep(0.3)
b = 1
"""


@pytest.mark.parametrize(("depth", "name"), [(1500, "n"), (30, "n" * 250)])
def test_folders_deeper_than_a_stack_or_a_path_are_removed(room: Room, depth: int, name: str) -> None:
    mark, _ = build_mark()
    limits = room.assignment.limits.model_copy(update={"files": 10_000, "disk_bytes": 2**26})
    assignment = room.assignment.model_copy(update={"limits": limits})
    with Session(room.folder, assignment, mode=room.sandbox) as session:
        execution = room.run(f"MARK, DEPTH, NAME = {mark!r}, {depth}, {name!r}\n{DEEP}", session)
    room.assert_others_right(execution)
    assert not [each for each in os.listdir("/tmp") if os.path.lexists(f"/tmp/{each}/{mark}")]


SLEEPER = """
import subprocess
subprocess.run(['/usr/bin/sleep', SLEEP])
"""

HOST = """
import sys
from pathlib import Path
from tests.conformance.conftest import Room, lend_kernel
room = Room(sys.argv[1], Path(sys.argv[2]))
with lend_kernel(room.mode), room.session:
    room.session.begin()
    print(*room.session.pids, flush=True)
    room.run(sys.argv[3])
"""


@pytest.fixture
def hosted(room: Room, course_folder: Path) -> Iterator[tuple[subprocess.Popen[str], int, str]]:
    """A grader of its own in the midst of a submission: its process, its server's pid, what the submission sleeps."""
    mark, sleep = build_mark()
    code = f"SLEEP = {sleep!r}\nimport os\nopen({mark!r}, 'w').close()\n{SLEEPER}"
    root = Path(__file__).parents[2]
    command = [sys.executable, "-c", HOST, room.mode, str(course_folder), code]
    with subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as host:
        assert host.stdout is not None
        server = int(host.stdout.readline())
        end = time.monotonic() + 30
        while not find_sleepers(sleep) and time.monotonic() < end:
            time.sleep(0.02)
        assert find_sleepers(sleep)
        yield host, server, sleep
        host.kill()


@pytest.mark.parametrize("victim", ["host", "server"])
def test_killing_the_grader_or_its_server_leaves_nothing(
    room: Room, hosted: tuple[subprocess.Popen[str], int, str], victim: str
) -> None:
    host, server, sleep = hosted
    os.kill(host.pid if victim == "host" else server, signal.SIGKILL)
    assert await_no_sleepers(sleep) == []
    if room.mode in USERS:
        assert await_nothing_owned() == []


def await_nothing_owned() -> list[str]:
    """What users of submissions own in places that are open to all; a keeper's sweep gets a moment."""
    from autograder.guest.users import UIDS

    end = time.monotonic() + 30
    while time.monotonic() < end:
        found = [entry.path for place in ("/tmp", "/dev/shm") for entry in os.scandir(place) if is_of(entry, UIDS)]
        if not found:
            return []
        time.sleep(0.05)
    return found


def is_of(entry: "os.DirEntry[str]", uids: range) -> bool:
    try:
        return entry.stat(follow_symlinks=False).st_uid in uids
    except OSError:
        return False


def test_a_killed_keeper_is_cleaned_up_after_by_its_server(room: Room) -> None:
    if room.mode == SINGLE:
        pytest.skip("its root is ended with its bubblewrap alone")
    mark, sleep = build_mark()
    code = f"MARK, SLEEP = {mark!r}, {sleep!r}\nPLACES = {PLACES if room.mode in USERS else ()}\n{PLANT}\n{SLEEPER}"
    room.session.begin()
    (server,) = room.session.pids
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(room.run, code)
        # The first end from outside is nobody's fault, and the code runs again.
        for _ in range(2):
            end = time.monotonic() + 30
            while len(find_sleepers(sleep)) < 2 and time.monotonic() < end:
                time.sleep(0.02)
            fork_server = find_server(server)
            (root,) = Path(f"/proc/{fork_server}/task/{fork_server}/children").read_text().split()
            ended = set(find_sleepers(sleep))
            os.kill(int(root), signal.SIGKILL)
            while ended & {*find_sleepers(sleep)} and time.monotonic() < end + 30:
                time.sleep(0.02)
        execution = running.result()
    room.assert_others_right(execution)
    assert await_no_sleepers(sleep) == []
    assert find_files(mark) == []


def find_server(pid: int) -> int:
    """The fork server itself: behind bubblewrap it is the grandchild."""
    if "bwrap" not in Path(f"/proc/{pid}/comm").read_text():
        return pid
    for _ in range(2):
        (pid,) = [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return pid


BESIDE = """
import os, signal
told = []
for name in map(str, range(1, LAST)):
    try:
        if SLEEP.encode() not in open(f'/proc/{name}/cmdline', 'rb').read().split(b'\\0'):
            continue
    except OSError:
        continue
    told.append('listed')
    for what in ('environ', 'mem', 'cwd', 'fd'):
        try:
            os.listdir(f'/proc/{name}/{what}') if what in ('cwd', 'fd') else open(f'/proc/{name}/{what}', 'rb').close()
        except OSError:
            continue
        told.append(what)
    try:
        os.kill(int(name), signal.SIGKILL)
    except OSError:
        continue
    told.append('killed')
for place in PLACES:
    try:
        marked = [f'{place}/{name}' for name in os.listdir(place) if MARK in name]
        told += [path for path in marked if os.access(path, os.W_OK)]
    except OSError:
        pass
try:
    os.kill(-1, signal.SIGKILL)
except OSError:
    pass
told = sorted(set(told))
"""


def test_submissions_side_by_side_do_not_touch_each_other(walled: Room) -> None:
    mark, sleep = build_mark()
    head = f"MARK, SLEEP = {mark!r}, {sleep!r}\nPLACES = {PLACES}\n"
    quiet = (
        "import subprocess\ntry:\n    open(f'/tmp/{MARK}', 'w').close()\nexcept OSError:\n    pass\n"
        "subprocess.run(['/usr/bin/sleep', SLEEP])\ntold = 1"
    )
    with walled.open_session() as other, ThreadPoolExecutor(1) as pool:
        running = pool.submit(walled.ask, head + quiet, other)
        end = time.monotonic() + 60
        while not (before := find_sleepers(sleep)) and time.monotonic() < end:
            time.sleep(0.02)
        told = walled.ask(f"{head}LAST = {max(before) + 100}\n{BESIDE}")
        assert find_sleepers(sleep) == before
        while not running.done():
            for pid in find_sleepers(sleep):
                os.kill(pid, signal.SIGKILL)
            time.sleep(0.02)
        assert running.result() == 1
    assert told == (["listed"] if walled.mode == BARE_USER else [])
