"""A plain control, as pid 1 of its own process namespace: an attack, its parent and a neighbour, and no wall.

Tells afterwards what the attack did to the others and what it left. Arguments: the attack's file, its temporary folder.
"""

import contextlib
import os
import resource
import signal
import subprocess
import sys
import time

LIMITS = [getattr(resource, name) for name in dir(resource) if name.startswith("RLIMIT_")]


def say(bite: str) -> None:
    os.write(1, f"\nBITE {bite}\n".encode())


def read_limits() -> list[tuple[int, int]]:
    return [resource.getrlimit(number) for number in LIMITS]


def be_parent(attack: str, told: int) -> None:
    before = read_limits()
    pid = subprocess.Popen([sys.executable, attack], stdin=subprocess.DEVNULL).pid
    os.write(told, str(pid).encode())
    _, status = os.waitpid(pid, os.WUNTRACED)
    if os.WIFSTOPPED(status):
        say("stopped")
    if read_limits() != before:
        say("parent")


def wait_for_end(pid: int, seconds: float = 20) -> None:
    """An attack that ended its parent may not be through yet."""
    end = time.monotonic() + seconds
    while list_states().get(pid, "Z") not in "ZT" and time.monotonic() < end:
        time.sleep(0.02)


def list_states() -> dict[int, str]:
    """The state letter of every process but this one; `S` where the first thread has ended and others have not."""
    states = {}
    for number in [int(name) for name in os.listdir("/proc") if name.isdigit()]:
        if number != os.getpid():
            with contextlib.suppress(OSError), open(f"/proc/{number}/stat") as file:
                state, *fields = file.read().rpartition(")")[2].split()
                states[number] = "S" if state == "Z" and int(fields[16]) > 1 else state
    return states


def main() -> None:
    attack, temporary = sys.argv[1:]
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    neighbour = subprocess.Popen(["sleep", "600"]).pid
    hear, told = os.pipe()
    parent = os.fork()
    if parent == 0:
        try:
            be_parent(attack, told)
        finally:
            os._exit(0)
    _, status = os.waitpid(parent, 0)
    if os.WIFSIGNALED(status):
        say("parent")
    wait_for_end(int(os.read(hear, 20)))
    if os.WIFSIGNALED(status):
        # Who was killed with it may not have had the processor yet that one needs to end.
        wait_for_end(neighbour, 5)
    states = list_states()
    if states.pop(neighbour) in "ZT":
        say("neighbour")
    if [state for state in states.values() if state != "Z"]:
        say("processes")
    if os.listdir(temporary):
        say("files")


main()
