"""The domain of Landlock by itself, for each version of it that this kernel can play."""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from autograder.guest import landlock, walls
from autograder.sandbox.landlock import find_version, keep_within

VERSIONS = range(1, find_version() + 1)

pytestmark = pytest.mark.skipif(not VERSIONS, reason="this kernel has no Landlock")


def run_confined(version: int, readable: Path, private: Path, doings: dict[str, Callable[[], object]]) -> list[str]:
    """Which of some doings succeed in a domain, in a process of its own."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            walls.close_off()
            landlock.confine(version, [str(readable), "/nonexistent"], str(private))
            done = []
            for name, doing in doings.items():
                try:
                    doing()
                    done.append(name)
                except OSError:
                    pass
            os.write(writing, json.dumps(done).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        said = pipe.read()
    os.waitpid(pid, 0)
    found: list[str] = json.loads(said)
    return found


@pytest.mark.parametrize("version", VERSIONS)
def test_a_domain_opens_what_is_listed_and_nothing_else(version: int, tmp_path: Path) -> None:
    for name in ("readable", "private", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text("text")
    readable, private, other = (tmp_path / name for name in ("readable", "private", "other"))
    allowed: dict[str, Callable[[], object]] = {
        "read": (readable / "file").read_text,
        "list": lambda: os.listdir(readable),
        "write": lambda: (private / "new").write_text("text"),
        "truncate": lambda: os.truncate(private / "file", 1),
        "folder": (private / "folder").mkdir,
        "remove": (private / "folder").rmdir,
        "device": lambda: Path("/dev/null").write_text("text"),
        "own status": Path("/proc/self/status").read_text,
        "move": lambda: os.rename(private / "new", private / "newer"),
    }
    refused: dict[str, Callable[[], object]] = {
        "read other": (other / "file").read_text,
        "list other": lambda: os.listdir(other),
        "write other": lambda: (other / "file").write_text("text"),
        "write readable": lambda: (readable / "file").write_text("text"),
        "new in other": lambda: (other / "new").write_text("text"),
        "remove other": (other / "file").unlink,
        "move there": lambda: os.rename(private / "file", other / "moved"),
        "link from there": lambda: os.link(other / "file", private / "linked"),
        "command lines": Path("/proc/1/cmdline").read_text,
        "zero device": Path("/dev/zero").open,
        "list of processes": lambda: os.listdir("/proc"),
        "special file": lambda: os.mknod(private / "device", 0o20666, os.makedev(1, 3)),
    }
    later: dict[str, tuple[int, Callable[[], object]]] = {
        "truncate other": (3, lambda: os.truncate(other / "file", 1)),
        "signal": (6, lambda: os.kill(os.getppid(), 0)),
    }
    refused |= {name: doing for name, (since, doing) in later.items() if version >= since}
    assert run_confined(version, readable, private, allowed | refused) == list(allowed)
    assert (other / "file").read_text() == "text"


def test_a_version_that_the_kernel_does_not_play_is_a_fault(tmp_path: Path) -> None:
    """No domain is ever left out in silence."""
    landlock._RIGHTS[99] = 1 << 40
    try:
        with pytest.raises(json.JSONDecodeError):
            run_confined(99, tmp_path, tmp_path, {"anything": lambda: None})
    finally:
        del landlock._RIGHTS[99]


def test_paths_within_what_is_shown_are_told_from_others(tmp_path: Path) -> None:
    shown = tmp_path / "shown"
    shown.mkdir()
    (tmp_path / "link").symlink_to(shown)
    paths = [str(shown / "a"), str(tmp_path / "link" / "b"), str(tmp_path / "shown-not"), str(shown / ".." / "c")]
    assert keep_within(paths, [str(shown)]) == paths[:2]
    assert keep_within([sys.executable], [str(Path(sys.executable).resolve())]) == [sys.executable]
