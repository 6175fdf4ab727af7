"""What the doctor says about machines: recorded texts, and this machine for real."""

import os
import shutil
from pathlib import Path

import pytest

from autograder import doctor, machine
from autograder.doctor import Finding
from autograder.machine import Trial

UBUNTU_24_04 = {
    "user.max_user_namespaces": "63436",
    "kernel.unprivileged_userns_clone": "1",
    "kernel.apparmor_restrict_unprivileged_userns": "1",
}
FEDORA = {
    "user.max_user_namespaces": "127000",
    "kernel.unprivileged_userns_clone": None,
    "kernel.apparmor_restrict_unprivileged_userns": None,
}
APPARMOR_TEXT = "bwrap: setting up uid map: Permission denied\n"
DOCKER_TEXT = (
    "bwrap: No permissions to create new namespace, likely because the kernel does not allow non-privileged user "
    "namespaces. See <https://deb.li/bubblewrap> or <file:///usr/share/doc/bubblewrap/README.Debian.gz>.\n"
)
WORKS = Trial(0, "")

needs_bubblewrap = pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed here")


def name_bad(findings: list[Finding]) -> list[str]:
    return [finding.name for finding in findings if finding.ok is False]


@pytest.mark.parametrize("system", ["Darwin", "Windows", "FreeBSD"])
def test_other_system_than_linux_is_told_the_way_out(system: str) -> None:
    finding = doctor.classify_system(system, "arm64")
    assert finding.ok is False
    assert "virtual machine" in finding.advice
    assert "WSL2" in finding.advice
    assert "CI" in finding.advice


def test_macos_is_called_by_its_name() -> None:
    assert doctor.classify_system("Darwin", "arm64").found == "macOS arm64"


@pytest.mark.parametrize(
    ("release", "ok"),
    [
        ("6.1.0-18-amd64", True),
        ("5.14.0-427.el9.x86_64", True),
        ("5.13.19", False),
        ("4.18.0-553.el8", False),
        ("", False),
    ],
)
def test_kernel_must_be_5_14_or_newer(release: str, ok: bool) -> None:
    assert doctor.classify_kernel(release).ok is ok


@pytest.mark.parametrize(("version", "ok"), [((3, 11, 0), True), ((3, 13, 1), True), ((3, 10, 12), False)])
def test_python_must_be_3_11_or_newer(version: tuple[int, ...], ok: bool) -> None:
    assert doctor.classify_python(version).ok is ok


@pytest.mark.parametrize(
    ("text", "version"),
    [("bubblewrap 0.8.0", (0, 8, 0)), ("2.4.6", (2, 4, 6)), ("9.0.0rc1", (9, 0, 0)), ("6.8-45-x", (6, 8)), ("-", ())],
)  # fmt: skip
def test_version_is_the_first_number_in_a_text(text: str, version: tuple[int, ...]) -> None:
    assert doctor.parse_version(text) == version


def test_missing_package_is_installed_by_setup() -> None:
    assert doctor.classify_package("numpy", None).ok is False
    assert "make setup" in doctor.classify_package("numpy", None).advice


def test_package_that_is_too_old_is_refused() -> None:
    assert doctor.classify_package("numpy", "1.26.4").ok is False
    assert doctor.classify_package("numpy", "2.4.6").ok is True


def test_missing_bubblewrap_comes_with_the_command_that_installs_it() -> None:
    finding = doctor.classify_bubblewrap(None)
    assert finding.ok is False
    assert "apt-get install bubblewrap" in finding.advice


@pytest.mark.parametrize(
    ("text", "ok"), [("bubblewrap 0.6.1", True), ("bubblewrap 0.11.0", True), ("bubblewrap 0.4.0", False)]
)
def test_bubblewrap_must_know_the_size_cap(text: str, ok: bool) -> None:
    assert doctor.classify_bubblewrap(text).ok is ok


def test_libseccomp_needs_its_python_binding() -> None:
    assert doctor.classify_libseccomp((2, 5, 4), "0.1.2").ok is True
    assert doctor.classify_libseccomp((2, 5, 4), None).ok is False
    assert "libseccomp2" in doctor.classify_libseccomp(None, "0.1.2").advice


def test_apparmor_restriction_is_answered_with_a_profile_and_with_the_setting() -> None:
    findings = doctor.classify_namespaces(UBUNTU_24_04, trial_works=False)
    assert name_bad(findings) == ["AppArmor"]
    advice = findings[-1].advice
    assert "profile autograder-bwrap /opt/autograder/bin/bwrap flags=(unconfined) {\n  userns,\n}" in advice
    assert "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0" in advice


def test_apparmor_restriction_does_not_matter_when_the_trial_works() -> None:
    findings = doctor.classify_namespaces(UBUNTU_24_04, trial_works=True)
    assert name_bad(findings) == []
    assert findings[-1].ok is None
    assert "works all the same" in findings[-1].found


@pytest.mark.parametrize(
    ("setting", "value", "advice"),
    [
        ("user.max_user_namespaces", "0", "sysctl -w user.max_user_namespaces="),
        ("kernel.unprivileged_userns_clone", "0", "sysctl -w kernel.unprivileged_userns_clone=1"),
    ],
)
def test_setting_that_forbids_namespaces_is_named(setting: str, value: str, advice: str) -> None:
    findings = doctor.classify_namespaces({**FEDORA, setting: value}, trial_works=False)
    assert [advice in finding.advice for finding in findings if finding.ok is False] == [True]


def test_kernel_without_the_other_settings_is_fine() -> None:
    assert [finding.ok for finding in doctor.classify_namespaces(FEDORA, trial_works=True)] == [True]


def test_kernel_without_user_namespaces_is_refused() -> None:
    settings = dict.fromkeys(FEDORA, None)
    assert name_bad(doctor.classify_namespaces(settings, trial_works=False)) == ["user namespaces"]


@pytest.mark.parametrize(
    ("text", "in_container", "part"),
    [
        (APPARMOR_TEXT, False, "apparmor_parser"),
        ("bwrap: loopback: Failed RTM_NEWADDR: Operation not permitted", False, "apparmor_parser"),
        (DOCKER_TEXT, True, "--security-opt seccomp=unconfined"),
        ("bwrap: Can't mount proc on /newroot/proc: Operation not permitted", True, "systempaths=unconfined"),
        (DOCKER_TEXT, False, "user namespaces are forbidden here"),
        ("bwrap: Creating new namespace failed: No space left on device", False, "user.max_user_namespaces"),
        ("bwrap: something new", False, "virtual machine"),
    ],
)
def test_failed_trial_is_answered_with_what_helps(text: str, in_container: bool, part: str) -> None:
    finding = doctor.classify_outer_trial(Trial(1, text), in_container)
    assert finding.ok is False
    assert part in finding.advice
    assert text.strip() in finding.found


def test_trial_that_could_not_be_run_is_no_success() -> None:
    assert doctor.classify_outer_trial(Trial(None, ""), in_container=False).ok is False


def test_inner_wall_is_judged_only_when_the_outer_one_stands() -> None:
    failed = Trial(1, APPARMOR_TEXT)
    assert doctor.classify_inner_trial(failed, failed, in_container=False).ok is None
    refused = doctor.classify_inner_trial(WORKS, Trial(1, "unshare: unshare failed: Operation not permitted"), False)
    assert refused.ok is False
    assert "userns," in refused.advice


def test_bubblewrap_for_each_submission_is_enough_to_grade_and_said_to_be_slower() -> None:
    faults = {"nested": "namespaces inside bubblewrap do not work here", "single": None}
    walls = [doctor.classify_inner_trial(WORKS, Trial(1, "unshare: Operation not permitted"), in_container=False)]
    findings = [*doctor.soften(walls, faults), *doctor.classify_modes(faults)]
    assert doctor.can_grade(findings)
    assert "slower" in findings[-1].found
    assert findings[0].advice == doctor.APPARMOR_ADVICE


def test_root_without_namespaces_is_told_of_mode_user() -> None:
    faults = {"nested": "no", "single": "no", "user": None}
    walls = [doctor.classify_outer_trial(Trial(1, DOCKER_TEXT), in_container=True)]
    findings = [*doctor.soften(walls, faults), *doctor.classify_modes(faults)]
    assert doctor.can_grade(findings)
    assert "--sandbox user" in findings[-1].found
    assert "AUTOGRADER_SANDBOX=user" in findings[-1].advice
    assert "--sandbox user" in findings[0].advice


@pytest.mark.parametrize("faults", [{"nested": "no", "single": "no"}, {"nested": "no", "single": "no", "user": "no"}])
def test_no_mode_that_works_is_a_hindrance(faults: dict[str, str | None]) -> None:
    walls = [doctor.classify_bubblewrap(None)]
    assert name_bad(doctor.soften(walls, faults)) == ["bubblewrap"]
    assert name_bad(doctor.classify_modes(faults)) == ["grading"]


def test_container_is_no_hindrance_where_the_trial_works() -> None:
    assert doctor.classify_container(["/.dockerenv"], trial_works=True) == Finding(
        "container", None, "in a container (/.dockerenv)"
    )
    assert "podman" in doctor.classify_container(["/.dockerenv"], trial_works=False).advice
    assert doctor.classify_container([], trial_works=False).ok is True


def test_container_is_recognised_by_its_files_groups_and_variable(tmp_path: Path) -> None:
    assert machine.find_container_signs(tmp_path, {}) == []
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / ".containerenv").touch()
    (tmp_path / "proc" / "1").mkdir(parents=True)
    (tmp_path / "proc" / "1" / "cgroup").write_text("0::/kubepods/burstable/pod1\n")
    signs = machine.find_container_signs(tmp_path, {"container": "podman"})
    assert signs == ["/run/.containerenv", "control group kubepods", "container=podman"]


def test_one_hindrance_is_enough_for_exit_status_1() -> None:
    good, warning, bad = Finding("a", True, ""), Finding("b", None, ""), Finding("c", False, "")
    assert doctor.get_exit_status([good, warning]) == 0
    assert doctor.get_exit_status([good, warning, bad]) == 1


@needs_bubblewrap
def test_trial_runs_inside_and_never_as_host_root() -> None:
    trial = machine.run_trial(shutil.which("bwrap"), ["/bin/sh", "-c", "cat /proc/self/uid_map /proc/1/comm >&2"])
    assert trial.status == 0, trial.text
    inside, outside, count = trial.text.split()[:3]
    assert (inside, count) == ("1000", "1")
    assert outside == str(os.geteuid() or machine.TRIAL_UID)


@needs_bubblewrap
def test_trial_that_fails_inside_tells_its_status_and_text() -> None:
    assert machine.run_trial(shutil.which("bwrap"), ["/bin/sh", "-c", "echo why >&2; exit 3"]) == Trial(3, "why\n")


def test_trial_without_bubblewrap_fails() -> None:
    assert machine.run_trial(None, ["/bin/true"]).status is None
    assert machine.run_trial("/no/such/bwrap", ["/bin/true"]).status is None


def test_findings_have_names_of_their_own_and_advice_where_something_is_wrong() -> None:
    findings = doctor.examine_machine()
    names = [finding.name for finding in findings]
    assert len(set(names)) == len(names)
    assert all(finding.advice for finding in findings if finding.ok is False)
    assert {"operating system", "kernel", "Python", "bubblewrap", "trial: bubblewrap"} <= set(names)


@pytest.mark.parametrize(("version", "ok"), [(7, True), (1, True), (0, None)])
def test_landlock_is_told_of_and_is_no_hindrance_where_it_is_not(version: int, ok: bool | None) -> None:
    finding = doctor.classify_landlock(version)
    assert finding.ok is ok
    assert "mode user" in finding.found


def test_landlock_of_this_kernel_is_found() -> None:
    version = doctor.find_landlock()
    assert doctor.classify_landlock(version) in doctor.examine_machine()
