"""The container file, the manifests and the proxy's configuration are right, as far as programs can tell."""

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.main import get_command

from dpmpn.cli.main import app

FOLDER = Path(__file__).parents[2] / "examples" / "machines"
MANIFESTS = sorted(FOLDER.glob("*.yaml"))
KUBERNETES = "1.30"  # and newer: what is used is stable since


def tool(name: str) -> str:
    found = shutil.which(name, path=str(Path(sys.executable).parent)) or shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed; it comes with the extra 'test'")
    return found


def documents(path: Path) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(path.read_text("utf-8")))


def containers() -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Each container with the pod it is in."""
    pods = [
        document["spec"]["template"]["spec"]
        for path in MANIFESTS
        for document in documents(path)
        if "template" in document["spec"]
    ]
    return [(pod, container) for pod in pods for container in pod["containers"]]


def test_the_linter_accepts_the_container_file() -> None:
    found = subprocess.run([tool("hadolint"), str(FOLDER / "Containerfile")], capture_output=True, text=True)
    assert (found.returncode, found.stdout) == (0, "")


def test_the_linter_refuses_a_careless_container_file(tmp_path: Path) -> None:
    careless = (FOLDER / "Containerfile").read_text("utf-8").replace(":3.11-slim-bookworm", "")
    (tmp_path / "Containerfile").write_text(careless)
    assert subprocess.run([tool("hadolint"), str(tmp_path / "Containerfile")], capture_output=True).returncode


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.name)
@pytest.mark.parametrize("version", [KUBERNETES, "1.37"])
def test_manifests_are_those_of_kubernetes(path: Path, version: str) -> None:
    validate = pytest.importorskip("kubernetes_validate")
    for document in documents(path):
        validate.validate(document, version, strict=True)


def test_a_misspelt_field_is_refused() -> None:
    validate = pytest.importorskip("kubernetes_validate")
    document = documents(FOLDER / "serve.yaml")[0]
    document["spec"]["template"]["spec"]["terminationGracePeriod"] = 30
    with pytest.raises(validate.ValidationError):
        validate.validate(document, KUBERNETES, strict=True)


def test_what_containers_are_told_exists() -> None:
    commands = get_command(app).commands
    for _, container in containers():
        words = container["args"]
        if container.get("command"):  # a shell
            words = shlex.split(words[0])[2:]
        assert words[0] in commands
        options = {name for parameter in commands[words[0]].params for name in parameter.opts}
        assert {word for word in words if str(word).startswith("--")} <= options


def test_volumes_and_selectors_match() -> None:
    for pod, container in containers():
        assert {mount["name"] for mount in container["volumeMounts"]} == {
            volume["name"] for volume in pod["volumes"]
        }
    deployment, service, budget = documents(FOLDER / "serve.yaml")
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    for selector in (
        deployment["spec"]["selector"]["matchLabels"],
        service["spec"]["selector"],
        budget["spec"]["selector"]["matchLabels"],
    ):
        assert selector == labels
    assert budget["spec"]["minAvailable"] < deployment["spec"]["replicas"]


def test_a_replica_has_time_to_end() -> None:
    """The pause before the end, and the eleven seconds a server takes, fit into what Kubernetes grants."""
    (pod, container), *_ = containers()[-1:]
    pause = int(container["lifecycle"]["preStop"]["exec"]["command"][-1])
    assert pause + 11 < pod["terminationGracePeriodSeconds"]
    probes = {
        container[probe]["httpGet"]["path"] for probe in ("readinessProbe", "startupProbe", "livenessProbe")
    }
    assert probes == {"/readyz", "/livez"}


def test_each_shard_is_run_once() -> None:
    (job,) = documents(FOLDER / "bulk.yaml")
    (text,) = job["spec"]["template"]["spec"]["containers"][0]["args"]
    shards = re.search(r"--shard \$\(\(JOB_COMPLETION_INDEX \+ 1\)\)/(\d+)", text)
    assert shards and int(shards[1]) == job["spec"]["completions"]


def test_braces_of_the_proxys_configuration_are_closed() -> None:
    """And each statement ended; nginx itself is asked where it is installed."""
    text = re.sub(r"#.*", "", (FOLDER / "nginx.conf").read_text("utf-8"))
    depth = 0
    for statement in re.findall(r"[^;{}]*[;{}]", text):
        depth += statement.endswith("{") - statement.endswith("}")
        assert depth >= 0
        assert statement.strip() == "}" or statement.strip(" \n;{")
    assert depth == 0 and not text[text.rindex("}") + 1 :].strip()
