#!/usr/bin/env bash
# Prepares the database, the pool and the first user. May be run again: it changes only what is missing or out of date.
set -euo pipefail

airflow db migrate
airflow pools set gpu_benchmark "$FEEDBENCH_TRAINERS" "one trial at a time on each training worker"
airflow users create --role Admin --username "$FEEDBENCH_ADMIN_USER" --password "$FEEDBENCH_ADMIN_PASSWORD" \
    --firstname Feedbench --lastname Admin --email admin@example.org
