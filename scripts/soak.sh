#!/usr/bin/env bash
# Runs tests/soak as whoever calls and, when that is root, once more as an ordinary user. What is given goes to pytest.
# Environment: SOAK_SIZE submissions (500), SOAK_KILLS (50), SOAK_SEED (drawn, and printed), SOAK_CALLER_ONLY=1 for no
# second run.
#
# Each run has namespaces of its own for processes, mounts and IPC, and empty folders where things could be left:
# whatever is there afterwards, the autograder has left there. Needs root or user namespaces.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
readonly ordinary_uid=61002

# The first process of the new namespaces: builds them, then becomes pytest.
run_inside() {
    local caller=$1 uid=$2 path number
    local -a kept=("$PWD" "$(.venv/bin/python -c 'import sys; print(sys.base_prefix)')") covers=(/tmp /run /dev/shm)
    shift 2
    # An ordinary user may not look into root's home, where this checkout and its Python may lie.
    ((caller == 0 && uid != 0)) && covers+=("$HOME")
    exec 8<"${kept[0]}" 9<"${kept[1]}"
    mount -t proc proc /proc
    for path in "${covers[@]}"; do mount -t tmpfs -o mode=1777 tmpfs "$path"; done
    mkdir /run/mqueue && mount -t mqueue mqueue /run/mqueue
    for number in 0 1; do
        if [[ ! -e ${kept[number]} ]]; then
            mkdir -p "${kept[number]}"
            mount --no-canonicalize --rbind "/proc/self/fd/$((8 + number))" "${kept[number]}"
        fi
    done
    cd "${kept[0]}"
    exec 8<&- 9<&-
    local -a become=()
    if ((caller != 0)); then
        become=(unshare --user --map-user="$uid" --map-group="$uid")
    elif ((uid != 0)); then
        become=(setpriv --reuid="$uid" --regid="$uid" --clear-groups)
    fi
    HOME=/tmp exec "${become[@]}" .venv/bin/python -B -m pytest -p no:cacheprovider tests/soak "$@"
}

run_as() {
    local -a namespaces=(unshare --mount --ipc --pid --fork --kill-child)
    ((EUID == 0)) || namespaces+=(--user --map-root-user)
    printf '\n>>> Soak as uid %s\n' "$1"
    "${namespaces[@]}" bash scripts/soak.sh --inside "$EUID" "$@"
}

if [[ ${1-} == --inside ]]; then
    shift
    run_inside "$@"
fi
status=0
run_as "$EUID" "$@" || status=1
((EUID != 0)) || [[ -n ${SOAK_CALLER_ONLY-} ]] || run_as "$ordinary_uid" "$@" || status=1
exit "$status"
