#!/usr/bin/env bash
# Installs on Debian or Ubuntu what `make stack-test` needs besides Python packages; does nothing where all is there.
# PostgreSQL and Redis are started by the tests themselves, on ports of their own.
set -euo pipefail

packages=()
compgen -G "/usr/lib/postgresql/*/bin/postgres" > /dev/null || packages+=(postgresql)
command -v redis-server > /dev/null || packages+=(redis-server)
command -v chromium > /dev/null || packages+=(chromium)
command -v docker-compose > /dev/null || packages+=(docker-compose)
[ ${#packages[@]} -gt 0 ] || exit 0

echo "installing ${packages[*]}" >&2
export DEBIAN_FRONTEND=noninteractive
apt-get update --quiet --quiet
apt-get install --yes --quiet --quiet --no-install-recommends "${packages[@]}" > /dev/null
