#!/usr/bin/env bash
# Runs the project's tests in two halves side by side, since most of them wait for processes that they have started.
# Each half takes about as long as the other.
# Arguments go to both runs of pytest.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

python=.venv/bin/python
log="$(mktemp)"
trap 'kill "${other:-}" 2>/dev/null || true; rm -f "$log"' EXIT

readonly moved=tests/cases/test_fair_limits.py
$python -m pytest tests/escapes tests/conformance tests/cluster "$moved" "$@" >"$log" 2>&1 &
other=$!
status=0
$python -m pytest tests/unit tests/cases --ignore="$moved" "$@" || status=$?
wait "$other" || status=$?
other=
cat "$log"
exit "$status"
