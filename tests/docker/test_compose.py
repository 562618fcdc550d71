"""docker-compose.yaml and the Dockerfile say what exists, and give nothing away. There is no Docker engine here: these
tests read the files, and tests/stack runs what they say.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from stack import compose

ROOT = Path(__file__).resolve().parents[2]

SECRETS = {name: f"secret-of-{name}" for name in compose.read_env(ROOT / ".env.example")}
SERVICES = compose.services(SECRETS)
AIRFLOW = {name: service for name, service in SERVICES.items() if "airflow" in service.get("command", [])}
DOCKERFILE = (ROOT / "docker" / "Dockerfile").read_text()
TEXT = compose.FILE.read_text()


class TestCompose:
    @pytest.mark.skipif(not shutil.which("docker-compose"), reason="needs docker-compose (ops/system-packages.sh)")
    @pytest.mark.parametrize("profile", ["gpu", "cpu"])
    def test_compose_itself_accepts_the_file(self, tmp_path, profile):
        """By the compose specification's schema, which comes with docker-compose."""
        env = tmp_path / ".env"
        env.write_text("".join(f"{name}={value}\n" for name, value in SECRETS.items()))
        options = ["--env-file", env, "--file", compose.FILE, "--profile", profile]
        done = subprocess.run(
            ["docker-compose", *options, "config", "--quiet"], capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stderr) == (0, "")

    def test_every_service_is_kept_alive_bounded_and_watched(self):
        for name, service in SERVICES.items():
            assert service["logging"]["options"] == {"max-size": "10m", "max-file": "3"}, name
            assert re.fullmatch(r"\d+[mg]", service["mem_limit"]), name
            once = name == "init"
            assert service["restart"] == ("no" if once else "unless-stopped"), name
            assert ("healthcheck" in service) != once, name

    def test_services_wait_for_services_that_exist(self):
        for name, service in SERVICES.items():
            for other, how in dict(service.get("depends_on") or {}).items():
                assert other in SERVICES, name
                assert how["condition"] != "service_healthy" or "healthcheck" in SERVICES[other], (name, other)

    def test_every_service_is_in_no_profile_or_in_one_of_the_two(self):
        profiles = {name: service["profiles"] for name, service in SERVICES.items() if "profiles" in service}
        assert profiles == {"worker-gpu": ["gpu"], "worker-cpu": ["cpu"]}

    def test_both_training_workers_are_the_same_but_for_the_gpu(self):
        """So that the stack test, which runs the one without, speaks for both."""
        gpu, cpu = SERVICES["worker-gpu"], SERVICES["worker-cpu"]
        assert {key for key in gpu.keys() | cpu.keys() if gpu.get(key) != cpu.get(key)} == {
            "profiles", "image", "build", "cap_add", "environment", "deploy"
        }  # fmt: skip
        assert gpu["environment"].keys() - cpu["environment"].keys() == {"NVIDIA_DRIVER_CAPABILITIES"}
        assert gpu["cap_add"] == ["SYS_ADMIN"], "the profiler may read GPU counters"
        [device] = gpu["deploy"]["resources"]["reservations"]["devices"]
        assert (device["driver"], device["capabilities"]) == ("nvidia", ["gpu"])
        assert "utility" in gpu["environment"]["NVIDIA_DRIVER_CAPABILITIES"], "nvidia-smi tells the fingerprint"


class TestNothingIsGivenAway:
    def test_ports_are_published_on_loopback_alone(self):
        ports = {name: service["ports"] for name, service in SERVICES.items() if "ports" in service}
        assert ports == {"api-server": ["127.0.0.1:8080:8080"], "tensorboard": ["127.0.0.1:6006:6006"]}

    def test_secrets_come_from_the_environment_and_have_no_default(self):
        """Every value that is named like a secret, or holds one in an address, is `${NAME:?...}`."""
        secret_like = re.compile(r"(\w*(?:PASSWORD|SECRET|SECRET_KEY|FERNET_KEY)):[ ]?(.*)")
        given = {name: value for name, value in secret_like.findall(TEXT) if value and name != "AWS_SECRET_ACCESS_KEY"}
        assert given
        assert [name for name, value in given.items() if not re.fullmatch(r"\$\{\w+:\?run make env\}", value)] == []
        with_password = re.findall(r"\w+://\w*:([^@\n]+)@", TEXT)
        assert len(with_password) == 3
        assert all(re.fullmatch(r"\$\{\w+:\?run make env\}", password) for password in with_password)

    def test_the_example_names_every_variable_and_holds_no_value_of_a_secret(self):
        used = set(re.findall(r"\$\{(\w+)", TEXT)) | set(re.findall(r"^ +([A-Z_]+):$", TEXT, re.MULTILINE))
        example = (ROOT / ".env.example").read_text()
        assert set(re.findall(r"^(?:# )?([A-Z_]+)=", example, re.MULTILINE)) == used
        required = set(re.findall(r"\$\{(\w+):\?", TEXT))
        assert compose.read_env(ROOT / ".env.example") == dict.fromkeys(required, "")

    def test_examples_of_airflow_are_off(self):
        assert all(service["environment"]["AIRFLOW__CORE__LOAD_EXAMPLES"] == "False" for service in AIRFLOW.values())

    def test_artefacts_are_mounted_by_those_who_need_them_and_read_only_where_only_read(self):
        mounts = {
            name: volume
            for name, service in SERVICES.items()
            for volume in service.get("volumes", ())
            if volume.startswith("artifacts:")
        }
        assert mounts == {
            **dict.fromkeys(("api-server", "dag-processor", "tensorboard"), "artifacts:/artifacts:ro"),
            **dict.fromkeys(("worker", "worker-gpu", "worker-cpu"), "artifacts:/artifacts"),
        }

    def test_images_run_as_an_ordinary_user(self):
        stages = DOCKERFILE.split("\nFROM ")[2:]
        assert len(stages) == 2
        assert all(stage.rstrip().endswith("USER feedbench") for stage in stages)


class TestWhatIsNamedExists:
    def test_files_of_the_image_are_copied_into_it(self):
        words = [word for line in re.findall(r"^COPY (.*) ", DOCKERFILE, re.MULTILINE) for word in line.split()]
        copied = {f"/opt/feedbench/{word}" for word in words}
        for path in set(re.findall(r"/opt/feedbench/[\w./-]+", TEXT)):
            assert path in copied, path
            assert (ROOT / path.removeprefix("/opt/feedbench/")).exists(), path

    def test_locks_that_images_are_built_from_exist_and_the_slim_one_has_no_tensorflow(self):
        locks = {"airflow.txt", *re.findall(r"LOCK[:=] ?([\w.-]+)", TEXT + DOCKERFILE)}
        assert locks == {"airflow.txt", "gpu.txt", "worker-cpu.txt"}
        names = {lock: re.findall(r"^([\w-]+)==", (ROOT / "requirements" / lock).read_text(), re.M) for lock in locks}
        assert {lock for lock, found in names.items() if {"tensorflow", "tensorflow-cpu"} & set(found)} == {
            "gpu.txt", "worker-cpu.txt"
        }  # fmt: skip
        assert all("apache-airflow-providers-celery" in found for found in names.values())

    def test_build_stages_exist(self):
        stages = set(re.findall(r"^FROM \S+ AS (\w+)$", DOCKERFILE, re.MULTILINE))
        assert {service["build"]["target"] for service in SERVICES.values() if "build" in service} <= stages

    def test_folders_that_volumes_are_mounted_on_are_made_with_the_right_owner(self):
        made = re.search(r"install --directory --owner feedbench \\\n(.*) \\", DOCKERFILE)[1].split()
        mounted = {volume.split(":")[1] for service in SERVICES.values() if "build" in service
                   for volume in service.get("volumes", ())}  # fmt: skip
        assert mounted <= set(made)

    def test_hosts_in_addresses_are_services(self):
        hosts = {host for service in AIRFLOW.values() for value in service["environment"].values()
                 for host in re.findall(r"[@/]([\w-]+):\d+", value or "")}  # fmt: skip
        assert hosts - {"localhost"} == {"postgres", "redis", "api-server"}  # people reach Airflow at localhost
        assert hosts - {"localhost"} <= SERVICES.keys()

    def test_commands_and_options_are_airflows(self, airflow_knows):
        """Each `airflow ...` of the file and of its first start is parsed by Airflow's own parser, not run."""
        script = (ROOT / "docker" / "init.sh").read_text().replace("\\\n", " ")
        first = [shlex.split(line) for line in script.splitlines() if line.startswith("airflow ")]
        first = [["1" if word.startswith("$") else word for word in command] for command in first]
        commands = [*first, *(service["command"] for service in AIRFLOW.values())]
        assert (len(first), len(AIRFLOW)) == (3, 7)
        assert [command for command in commands if not airflow_knows("command", command[1:])] == []

    def test_variables_of_the_first_start_are_given(self):
        script = (ROOT / "docker" / "init.sh").read_text()
        assert set(re.findall(r"\$(\w+)", script)) <= SERVICES["init"]["environment"].keys()

    def test_settings_are_airflows(self, airflow_knows):
        """Every AIRFLOW__SECTION__OPTION is one of this version's, or of its providers'."""
        given = {
            name for service in AIRFLOW.values() for name in service["environment"] if name.startswith("AIRFLOW__")
        }
        assert len(given) > 10
        assert [name for name in given if not airflow_knows("option", name.lower().split("__")[1:])] == []

    def test_airflow_does_not_know_everything(self, airflow_knows):
        assert not airflow_knows("command", ["scheduler", "--no-such-flag"])
        assert not airflow_knows("option", ["core", "no_such_option"])


@pytest.fixture(scope="module")
def airflow_knows(tmp_path_factory):
    """Asks an Airflow of its own home: importing it writes a configuration there."""
    child = subprocess.Popen(
        [sys.executable, Path(__file__).with_name("airflow_knows.py")],
        env={**os.environ, "AIRFLOW_HOME": str(tmp_path_factory.mktemp("airflow"))},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )

    def ask(kind: str, words: list[str]) -> bool:
        print(json.dumps([kind, words]), file=child.stdin, flush=True)
        return json.loads(child.stdout.readline())

    with child:
        yield ask
