"""What student code can neither read, reach nor gain, in every mode that has a wall."""

import os
import shutil
import stat
import tempfile
from pathlib import Path

from .conftest import Room

READ = """
import os
told = []
def reads(path):
    try:
        with open(path, 'rb') as file:
            return file.read(2**16)
    except OSError:
        return b''
for top in FOLDERS:
    for name in FILES:
        told += [f'{top}/{name}'] * bool(reads(f'{top}/{name}'))
    try:
        told += [f'list of {top}'] * bool(os.listdir(top))
    except OSError:
        pass
if CANARY.encode() in b''.join(f'{name}={value}'.encode() for name, value in os.environ.items()):
    told.append('environment')
try:
    names = [name for name in os.listdir('/proc') if name.isdigit()]
except OSError:
    names = map(str, range(1, os.getpid() + 100))
for name in names:
    if int(name) != os.getpid():
        for what in ('environ', 'mem', 'maps', 'fd', 'cwd', 'root', 'auxv', 'syscall', 'stack', 'io'):
            path = f'/proc/{name}/{what}'
            try:
                # What a kernel thread has of these is empty; its memory can be opened, and holds nothing.
                if what == 'mem':
                    found = open(path, 'rb').close() is None and reads(f'/proc/{name}/cmdline')
                else:
                    found = os.listdir(path) if what in ('fd', 'cwd', 'root') else reads(path)
            except OSError:
                continue
            told += [path] * bool(found)
"""

STATUS = """
import ctypes
told = dict(line.split(':', 1) for line in open('/proc/self/status') if ':' in line)
told = {name: value.strip() for name, value in told.items()}
told['dumpable'] = ctypes.CDLL(None).prctl(3, 0, 0, 0, 0)
"""

GAIN = """
import ctypes, os, subprocess
told = []
libc = ctypes.CDLL(None)
def tries(name, function, *arguments):
    try:
        if function(*arguments) in (0, None):
            told.append(name)
    except OSError:
        pass
tries('setuid', os.setuid, 0)
tries('setgid', os.setgid, 0)
tries('setgroups', os.setgroups, [0])
tries('chroot', os.chroot, '/')
tries('unshare', libc.unshare, 0x10000000)
tries('mount', libc.mount, b'none', b'/tmp', b'tmpfs', 0, None)
tries('ptrace', libc.ptrace, 16, os.getppid(), 0, 0)
tries('dumpable', libc.prctl, 4, 1, 0, 0, 0)
try:
    said = subprocess.run([PROGRAM, '-u'], capture_output=True, text=True).stdout.strip()
except OSError:
    said = ''
told += ['setuid program'] * (said == '0')
"""

SOCKETS = """
import socket
told = []
for family in range(1, 46):
    for kind in (1, 2, 3, 5):
        try:
            socket.socket(family, kind).close()
        except OSError:
            continue
        told.append([family, kind])
"""


def test_no_file_of_the_course_no_environment_and_no_process_of_others_can_be_read(
    walled: Room, canary: str, course_folder: Path
) -> None:
    files = [str(path.relative_to(course_folder)) for path in course_folder.rglob("*") if path.is_file()]
    folders = [str(course_folder), str(course_folder / "tests" / "hidden"), str(course_folder / "submitted")]
    told = walled.ask(f"FOLDERS = {folders}\nFILES = {files}\nCANARY = {canary!r}\n{READ}")
    assert told == []


def test_there_are_no_rights_and_a_filter_of_system_calls(walled: Room) -> None:
    told = walled.ask(STATUS)
    assert {told[name] for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == {"0" * 16}
    assert (told["NoNewPrivs"], told["Seccomp"], told["dumpable"], told["Groups"]) == ("1", "2", 0, "")
    assert "0" not in told["Uid"].split()


def test_no_rights_can_be_gained(walled: Room) -> None:
    with tempfile.TemporaryDirectory(prefix="conformance-open-") as name:
        os.chmod(name, 0o755)
        program = Path(shutil.copy("/usr/bin/id", name))
        program.chmod(0o755 | stat.S_ISUID)
        assert walled.ask(f"PROGRAM = {str(program)!r}\n{GAIN}") == []


def test_no_socket_can_be_made(walled: Room) -> None:
    assert walled.ask(SOCKETS) == []
