"""Where a control group would be made: what kernels and containers were seen to say, and this machine for real."""

import os
import signal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autograder.sandbox.cgroup import find_delegation, find_folder, look_here
from autograder.sandbox.limiter import describe_limiter

V2 = "30 23 0:26 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:9 - cgroup2 cgroup2 rw,nsdelegate\n"
HYBRID = """\
31 24 0:27 / /sys/fs/cgroup ro,nosuid,nodev,noexec shared:9 - tmpfs tmpfs ro,mode=755
36 31 0:32 / /sys/fs/cgroup/memory rw,nosuid,nodev,noexec,relatime shared:15 - cgroup cgroup rw,memory
43 31 0:39 / /sys/fs/cgroup/unified rw,nosuid,nodev,noexec,relatime shared:10 - cgroup2 cgroup2 rw,nsdelegate
"""
CONTAINER = "1214 1213 0:26 /docker/f0c8 /sys/fs/cgroup ro,nosuid,nodev,noexec,relatime - cgroup2 cgroup rw\n"
SCOPE = "/user.slice/user-1000.slice/user@1000.service/app.slice/run-r1.scope"


@pytest.mark.parametrize(
    ("groups", "mounts", "folder"),
    [
        (f"0::{SCOPE}\n", V2, f"/sys/fs/cgroup{SCOPE}"),
        ("0::/\n", V2, "/sys/fs/cgroup"),
        ("9:name=systemd:/\n4:memory:/a\n0::/b\n", HYBRID, "/sys/fs/cgroup/unified/b"),
        ("0::/docker/f0c8/inner\n", CONTAINER, "/sys/fs/cgroup/inner"),
        ("0::/docker/f0c8\n", CONTAINER, "/sys/fs/cgroup"),
        ("0::/elsewhere\n", CONTAINER, None),
        ("0::/../outside\n", V2, None),
        ("0::/gone (deleted)\n", V2, None),
        ("4:memory:/a\n", HYBRID, None),
        ("0::/\n", "", None),
        ("", V2, None),
    ],
)
def test_the_folder_of_a_group_is_found_in_every_layout(groups, mounts, folder) -> None:
    assert find_folder(groups, mounts) == (folder and Path(folder))


@given(st.text(), st.text())
def test_no_text_breaks_the_reading(groups, mounts) -> None:
    assert find_folder(groups, mounts) is None or "cgroup2" in mounts


@given(st.lists(st.sampled_from(["a", "b c", "x.scope"]), max_size=4))
def test_a_group_that_is_found_lies_below_the_mount(parts) -> None:
    found = find_folder("0::/" + "/".join(parts) + "\n", V2)
    assert found == Path("/sys/fs/cgroup", *parts)


@pytest.fixture
def tree(tmp_path):
    """A folder with the files of a delegated group, and the two texts that lead a process there."""

    def build(name: str = "grading", controllers: str = "cpu memory pids", members: str = f"{os.getpid()}\n"):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "cgroup.controllers").write_text(f"{controllers}\n")
        (folder / "cgroup.type").write_text("domain\n")
        (folder / "cgroup.procs").write_text(members)
        (folder / "cgroup.subtree_control").write_text("")
        return folder, f"0::/{name}\n", f"30 23 0:26 / {tmp_path} rw - cgroup2 cgroup2 rw\n"

    return build


def test_a_group_with_our_processes_only_is_taken(tree) -> None:
    folder, groups, mounts = tree()
    found = find_delegation(groups, mounts, os.getpid())
    assert (found.folder, found.reason) == (folder, "")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"controllers": "cpu pids"}, "no controller for memory"),
        ({"controllers": ""}, "no controller for memory and pids"),
        ({"members": "0\n"}, "not ours"),
        ({"name": "session-3.scope"}, "systemd, which did not delegate"),
    ],
    ids=["memory is missing", "the other version has them", "hidden processes", "a login session"],
)
def test_any_other_group_is_left_alone_with_a_reason(tree, change, reason) -> None:
    _, groups, mounts = tree(**change)
    found = find_delegation(groups, mounts, os.getpid())
    assert found.folder is None
    assert reason in found.reason


@pytest.fixture
def child():
    """A process of ours that waits."""
    pid = os.fork()
    if pid == 0:
        signal.pause()
    yield pid
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def test_what_descends_from_whoever_started_us_in_the_group_is_ours(tree, child) -> None:
    folder, groups, mounts = tree(members=f"{os.getppid()}\n{os.getpid()}\n{child}\n")
    assert find_delegation(groups, mounts, os.getpid()).folder == folder


def test_a_process_beside_ours_is_a_stranger(tree, child) -> None:
    _, groups, mounts = tree(members=f"{child}\n{os.getpid()}\n")
    # To the eyes of its parent, who is not in the group, both are somebody else's.
    assert "not ours" in find_delegation(groups, mounts, os.getppid()).reason


def test_a_run_that_was_moved_aside_before_finds_the_same_group(tree) -> None:
    folder, _, mounts = tree(members="")
    (folder / "autograder").mkdir()
    (folder / "autograder" / "cgroup.procs").write_text(f"{os.getpid()}\n")
    assert find_delegation("0::/grading/autograder\n", mounts, os.getpid()).folder == folder


def test_looking_changes_nothing_and_the_doctor_has_words_for_it() -> None:
    before = Path("/proc/self/cgroup").read_text()
    delegation = look_here()
    found, advice = describe_limiter(delegation)
    assert Path("/proc/self/cgroup").read_text() == before
    assert ("control group below" in found) == (delegation.folder is not None)
    assert ("systemd-run" in advice) == (delegation.folder is None)
    assert delegation.reason in found
