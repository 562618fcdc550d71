#!/usr/bin/env bash
# Writes the lock files anew from pyproject.toml, for every Python from 3.11 on. `uv` must be on PATH or in .venv.
set -euo pipefail
cd "$(dirname "$0")/.."
PATH="$PWD/.venv/bin:$PATH"

lock() {
    local out=$1
    shift
    uv pip compile --quiet --universal --python-version 3.11 --no-emit-index-url --no-annotate --no-header \
        pyproject.toml "$@" --output-file "requirements/$out.txt"
}

lock dev --extra airflow --extra stack --extra train-cpu --group dev "${UPGRADE:---upgrade}"
# The others hold the versions that the tests ran with.
lock cpu --extra airflow --extra train-cpu --constraint requirements/dev.txt
lock airflow --extra stack --constraint requirements/dev.txt
lock worker-cpu --extra airflow --extra stack --extra train-cpu --constraint requirements/dev.txt
sed '/^tensorflow-cpu==/d' requirements/dev.txt > requirements/.without-tensorflow
lock gpu --extra airflow --extra stack --extra train-gpu --constraint requirements/.without-tensorflow
rm requirements/.without-tensorflow
