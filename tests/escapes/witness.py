"""What an honest submission sees of the world; nothing in it may come from the submission before."""

import json
import os

OWN = os.environ.get("TMPDIR", "/tmp")
USUAL = {"/", "/tmp", "/var/tmp", "/run/lock", "/dev", "/dev/shm", "/dev/mqueue", "/etc", "/grader", "/packages"}


def list_open_folders():
    """Mount points and usual places other than the own folder where a file can be made."""
    found = []
    points = set(USUAL)
    try:
        with open("/proc/self/mountinfo", encoding="utf-8") as table:
            points |= {line.split()[4] for line in table}
    except OSError:
        pass
    for point in sorted(points):
        try:
            os.close(os.open(f"{point}/planted-by-witness", os.O_CREAT | os.O_WRONLY))
            os.unlink(f"{point}/planted-by-witness")
        except OSError:
            continue
        if os.path.realpath(point) != OWN:
            found.append(point)
    return found


def look_into(folder):
    """What is in a folder; None where it may not be looked into."""
    try:
        return os.listdir(folder)
    except OSError:
        return None


numbers = look_into("/proc")
print(
    "WITNESS",
    json.dumps(
        {
            "tmp": look_into(OWN),
            "shm": look_into("/dev/shm"),
            "processes": numbers and len([name for name in numbers if name.isdigit()]),
            "open folders": list_open_folders(),
            "environment": sorted(name for name in os.environ if "CANARY" in name),
        }
    ),
)
