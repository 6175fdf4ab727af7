"""The other graders' own environment, from pinned versions; nothing of it is needed to grade or to test."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

LOCK = Path(__file__).resolve().parent.parent / "requirements-peers.txt"
FOLDER = LOCK.parent / ".peers"


def install_peers() -> Path:
    """Create the environment when it is missing or old; returns the folder of its commands."""
    stamp, key = FOLDER / "installed", f"{sys.version} {hashlib.sha256(LOCK.read_bytes()).hexdigest()}"
    commands = FOLDER / "bin"
    if stamp.is_file() and stamp.read_text(encoding="utf-8") == key:
        return commands
    print(f"installing nbgrader and otter-grader into {FOLDER} (a minute or two, once)", file=sys.stderr)
    subprocess.run([sys.executable, "-m", "venv", "--clear", str(FOLDER)], check=True)
    pip = [str(commands / "python"), "-m", "pip", "--quiet", "--disable-pip-version-check", "--no-input", "install"]
    subprocess.run([*pip, "--require-hashes", "--only-binary", ":all:", "-r", str(LOCK)], check=True)
    subprocess.run([str(commands / "python"), "-m", "compileall", "-q", str(FOLDER / "lib")], check=False)
    stamp.write_text(key, encoding="utf-8")
    return commands


def build_environment() -> dict[str, str]:
    """Their commands look for others of their environment (alembic, jupyter) along the path."""
    return {**os.environ, "PATH": f"{FOLDER / 'bin'}:{os.environ.get('PATH', '')}", "VIRTUAL_ENV": str(FOLDER)}
