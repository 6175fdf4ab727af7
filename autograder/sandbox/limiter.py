"""Which limiter of memory and processes is used on this machine, and why, in words for the doctor."""

from autograder.sandbox.cgroup import Delegation

SCOPE = "systemd-run --user --scope -p Delegate=yes autograder grade ..."


def describe_limiter(delegation: Delegation) -> tuple[str, str]:
    """What limits a submission as a whole, and what would make it better (empty when there is nothing to do)."""
    if delegation.folder is not None:
        return f"memory and processes of a submission by a control group below {delegation.folder}", ""
    found = (
        "memory of a submission by looking at /proc 50 times a second, processes by the kernel's count for each "
        f"sandbox; no control group is used: {delegation.reason}"
    )
    return found, f"where systemd runs, the kernel keeps both limits with: {SCOPE}"
