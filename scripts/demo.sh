#!/usr/bin/env bash
# Grades the example submissions. One of them is no notebook on purpose, so the command must end with 1.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

command=(.venv/bin/autograder grade examples/qkv/submitted -a qkv)
printf '$ autograder %s\n' "${command[*]:1}"
status=0
"${command[@]}" || status=$?
echo
if ((status == 1)); then
    echo "The demo worked. The exit status was 1, as it should be: one of the example files cannot be graded on"
    echo "purpose, and a grading run in which a submission stays ungraded never ends with 0."
    exit 0
fi
echo "The demo did not work: the exit status was $status, and it should be 1, because exactly one of the example" >&2
echo "files cannot be graded on purpose. 'make setup' and '.venv/bin/autograder doctor' help to find out why." >&2
exit 1
