"""Health check: healthy.py scheduler|dag_processor|triggerer|api; exit 0 if it is.

Asks the API server, which knows from the database when each of them was last alive. `airflow jobs check` would say the
same, but imports Airflow: four seconds of a core, every time, beside what is being measured.
"""

import json
import os
import sys
import urllib.request
from urllib.parse import urljoin


def main(part: str) -> int:
    api = os.environ["AIRFLOW__CORE__EXECUTION_API_SERVER_URL"]
    with urllib.request.urlopen(urljoin(api, "/api/v2/monitor/health"), timeout=10) as answer:
        health = json.load(answer)
    return 0 if part == "api" or health[part]["status"] == "healthy" else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
