#!/usr/bin/env bash
# install.sh PYTHON VENV LOCKFILE: makes VENV hold exactly what LOCKFILE says, and this package, editable.
set -euo pipefail
python=$1 venv=$2 lock=$3

"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
    echo "feedbench needs Python 3.11 or newer; '$python' is $("$python" --version 2>&1). Try make PYTHON=python3.12 ..." >&2
    exit 2
}
echo "setting up $venv from $lock (once; a minute or two)" >&2
"$python" -m venv "$venv"
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check uv
VIRTUAL_ENV="$venv" "$venv/bin/uv" pip sync --quiet --compile-bytecode "$lock"
VIRTUAL_ENV="$venv" "$venv/bin/uv" pip install --quiet --no-deps --editable .
