#!/usr/bin/env bash
# Sets up this checkout: system packages, a virtual environment in .venv, the pinned packages, the
# autograder itself. A second run finds its stamp and does nothing. PYTHON=/path/to/python chooses a Python.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
unset PYTHONPATH PYTHONHOME

readonly venv=.venv
readonly stamp=$venv/.autograder-setup

say() { printf 'setup: %s\n' "$*"; }
stop() {
    printf 'setup: %s\n' "$@" >&2
    exit 1
}

is_recent_python() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; }

describe_python() { "$1" -c 'import sys; print(*sys.version_info[:3], sys.base_prefix)' 2>/dev/null || true; }

has_libseccomp() { [[ "$(PATH="$PATH:/usr/sbin:/sbin" ldconfig -p 2>/dev/null || true)" == *libseccomp.so.2* ]]; }

# Asks for what to type on this system: apt-get, dnf, ... and the names that its packages have there.
tell_packages() {
    if command -v dnf >/dev/null; then
        echo "sudo dnf install bubblewrap libseccomp python3 make"
    elif command -v pacman >/dev/null; then
        echo "sudo pacman -S bubblewrap libseccomp python make"
    elif command -v zypper >/dev/null; then
        echo "sudo zypper install bubblewrap libseccomp2 python311 make"
    elif command -v apk >/dev/null; then
        echo "sudo apk add bubblewrap libseccomp python3 make"
    else
        echo "your package manager: bubblewrap, libseccomp, python 3.11 or newer"
    fi
}

find_python() {
    local candidate
    if [[ -n "${PYTHON:-}" ]]; then
        is_recent_python "$PYTHON" || stop "PYTHON=$PYTHON is not a Python 3.11 or newer that runs here."
        echo "$PYTHON"
        return
    fi
    for candidate in python3 python3.14 python3.13 python3.12 python3.11; do
        if is_recent_python "$candidate"; then
            echo "$candidate"
            return
        fi
    done
    if command -v apt-get >/dev/null; then
        stop "no Python 3.11 or newer was found. Install one and run this again:" \
            "  sudo apt-get install python3 python3-venv" \
            "On Ubuntu 22.04, whose python3 is 3.10: sudo apt-get install python3.11 python3.11-venv" \
            "A Python elsewhere can be named: make setup PYTHON=/path/to/python3"
    fi
    stop "no Python 3.11 or newer was found. Install one and run this again:" "  $(tell_packages)" \
        "A Python elsewhere can be named: make setup PYTHON=/path/to/python3"
}

# Installs with apt-get; the package lists are fetched only when the packages are not found without.
install_packages() {
    command -v apt-get >/dev/null ||
        stop "these are missing: $*. Install them and run this again:" "  $(tell_packages)"
    local as_root=()
    if ((EUID != 0)); then
        command -v sudo >/dev/null || stop "these are missing: $*. As root, run: apt-get install $*"
        as_root=(sudo)
    fi
    say "installing with apt-get: $*"
    local install=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends "$@")
    "${install[@]}" </dev/null >/dev/null 2>&1 && return
    "${as_root[@]}" apt-get update -qq </dev/null || stop "apt-get update failed; is there a network?"
    "${install[@]}" </dev/null >/dev/null || stop "apt-get could not install: $*"
}

# Runs a command and shows what it printed only when it fails.
run_quietly() {
    local log=$venv/setup.log
    "$@" >"$log" 2>&1 </dev/null || {
        tail -n 40 "$log" >&2
        stop "this failed: $*" "The whole text is in $log"
    }
}

# Also where PYTHONDONTWRITEBYTECODE is set, so that no start has to compile again.
compile_package() { "$venv/bin/python" -m compileall -q autograder >/dev/null 2>&1 || true; }

[[ "$(uname -s)" == Linux ]] ||
    stop "the sandbox needs Linux. On macOS use a Linux virtual machine (Lima, UTM, Multipass)," \
        "on Windows use WSL2, or let a CI service with Linux runners do the grading."

key="$(cat pyproject.toml requirements.lock scripts/setup.sh | sha256sum | cut -d' ' -f1) $PWD"
missing=()
command -v bwrap >/dev/null || missing+=(bubblewrap)
has_libseccomp || missing+=(libseccomp2)

# Empty when the environment that stands there can stay.
python=
if ! is_recent_python "$venv/bin/python" ||
    [[ -n "${PYTHON:-}" && "$(describe_python "$PYTHON")" != "$(describe_python "$venv/bin/python")" ]]; then
    python="$(find_python)"
fi
if ((${#missing[@]} == 0)) && [[ -z $python && -f $stamp && "$(<"$stamp")" == "$key" ]]; then
    compile_package
    exit 0
fi

if [[ -n $python ]] && ! "$python" -c 'import ensurepip, venv' >/dev/null 2>&1; then
    missing+=("python$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')-venv")
fi
if ((${#missing[@]} > 0)); then
    install_packages "${missing[@]}"
fi

if [[ -n $python ]]; then
    say "creating $venv with $("$python" -V)"
    "$python" -m venv --clear "$venv" || stop "$python could not create $venv; the lines above say why."
fi
rm -f "$stamp"
say "installing $(grep -c '==' requirements.lock) pinned packages into $venv (about a minute the first time)"
pip=("$venv/bin/python" -m pip --disable-pip-version-check --no-input)
run_quietly "${pip[@]}" install --require-hashes --only-binary :all: -r requirements.lock
run_quietly "${pip[@]}" install --no-deps --no-build-isolation --editable .
"$venv/bin/python" -m compileall -q -j 0 "$venv/lib" >/dev/null 2>&1 || true
compile_package
printf '%s\n' "$key" >"$stamp"
say "ready: $venv/bin/autograder"
