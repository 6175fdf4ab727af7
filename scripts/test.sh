#!/usr/bin/env bash
# Runs the project's tests in two halves side by side, since most of them wait for processes that they have started.
# One file of tests/cases, which takes long, belongs to the other half, so that both take about as long.
# Arguments go to both runs of pytest.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

python=.venv/bin/python
log="$(mktemp)"
trap 'kill "${other:-}" 2>/dev/null || true; rm -f "$log"' EXIT

readonly slow=tests/cases/test_fair_limits.py
$python -m pytest tests/escapes tests/conformance "$slow" "$@" >"$log" 2>&1 &
other=$!
status=0
$python -m pytest tests/unit tests/cases tests/cluster --ignore="$slow" "$@" || status=$?
wait "$other" || status=$?
other=
cat "$log"
exit "$status"
