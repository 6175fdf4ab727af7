#!/usr/bin/env bash
# Installs what only the tests need: the programs of a PostgreSQL server, which the tests start and end themselves.
# Without them those tests are skipped and say so, so that nothing here is an error. Never asks for a password.
set -euo pipefail

say() { printf 'setup: %s\n' "$*"; }

has_postgresql() {
    command -v initdb >/dev/null || compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null
}

has_postgresql && exit 0

as_root=()
if ((EUID != 0)); then
    as_root=(sudo -n)
fi
if ! command -v apt-get >/dev/null || { ((EUID != 0)) && ! sudo -n true 2>/dev/null; }; then
    say "PostgreSQL is not installed, so the tests that need it are skipped (Debian, Ubuntu: sudo apt-get install postgresql)"
    exit 0
fi

say "installing with apt-get: postgresql (for the tests only)"
# The package would make a cluster and start it; this machine gets neither.
readonly policy=/etc/postgresql-common/createcluster.d/autograder-tests.conf
"${as_root[@]}" mkdir -p "${policy%/*}"
trap '"${as_root[@]}" rm -f "$policy"' EXIT
echo 'create_main_cluster = false' | "${as_root[@]}" tee "$policy" >/dev/null
install=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends postgresql)
"${install[@]}" </dev/null >/dev/null 2>&1 ||
    { "${as_root[@]}" apt-get update -qq </dev/null && "${install[@]}" </dev/null >/dev/null; } ||
    say "PostgreSQL could not be installed, so the tests that need it are skipped"
