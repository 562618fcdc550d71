"""`make env`: a .env for docker-compose.yaml, with random secrets in the places that .env.example names.

    python ops/env.py [FILE]     refuses to overwrite FILE (default: .env beside .env.example)

Needs nothing but Python: it runs before anything is set up.
"""

import base64
import os
import re
import secrets
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
EXAMPLE = ROOT / ".env.example"


def password() -> str:
    """Of letters, digits, - and _ alone: it becomes a part of addresses."""
    return secrets.token_urlsafe(32)


def signing_key() -> str:
    return secrets.token_urlsafe(64)


def fernet_key() -> str:
    """32 random bytes, as cryptography.fernet wants them."""
    return base64.urlsafe_b64encode(secrets.token_bytes(32)).decode()


MAKERS = {
    "POSTGRES_PASSWORD": password,
    "REDIS_PASSWORD": password,
    "AIRFLOW_FERNET_KEY": fernet_key,
    "AIRFLOW_SECRET_KEY": signing_key,
    "AIRFLOW_JWT_SECRET": signing_key,
    "AIRFLOW_ADMIN_PASSWORD": password,
}


def filled(example: str) -> str:
    """The example with a new secret behind every `NAME=`, and the revision that images are built from."""
    text = re.sub(r"^(\w+)=$", lambda line: f"{line[1]}={MAKERS[line[1]]()}", example, flags=re.MULTILINE)
    return text.replace("# GIT_REVISION=unknown", f"GIT_REVISION={_revision()}")


def _revision() -> str:
    command = ["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--abbrev=12"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def main(file: str = str(ROOT / ".env")) -> int:
    content = filled(EXAMPLE.read_text())
    try:
        handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        print(f"{file} is there already, and its secrets may be in use; move it away to have new ones", file=sys.stderr)
        return 1
    with os.fdopen(handle, "w") as output:
        output.write(content)
    print(f"{file}: written, readable by you alone; the password of the user admin is AIRFLOW_ADMIN_PASSWORD in it")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
