"""What an honest submission sees of the world; nothing in it may come from the submission before."""

import json
import os


def list_open_folders():
    """Mount points other than the own /tmp where a file can be made."""
    found = []
    with open("/proc/self/mountinfo", encoding="utf-8") as table:
        points = {line.split()[4] for line in table}
    for point in sorted(points | {"/", "/dev", "/etc", "/grader", "/packages"}):
        try:
            os.close(os.open(f"{point}/planted-by-witness", os.O_CREAT | os.O_WRONLY))
            os.unlink(f"{point}/planted-by-witness")
        except OSError:
            continue
        found.append(point)
    return [point for point in found if point != "/tmp"]


print(
    "WITNESS",
    json.dumps(
        {
            "tmp": os.listdir("/tmp"),
            "shm": os.listdir("/dev/shm"),
            "processes": len([name for name in os.listdir("/proc") if name.isdigit()]),
            "open folders": list_open_folders(),
            "environment": sorted(name for name in os.environ if "CANARY" in name),
        }
    ),
)
